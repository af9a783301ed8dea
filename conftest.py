"""Which examples in docstrings can run here."""

from importlib.util import find_spec

# Fits on a device need PyTorch, which is an extra of its own.
needs_torch = [f"src/simdims/solvers/{name}.py" for name in ("torch", "listed_torch", "joint_torch")]
collect_ignore = [] if find_spec("torch") else needs_torch
