"""Which examples in docstrings can run here."""

from importlib.util import find_spec

# Fits on a device need PyTorch, which is an extra of its own.
collect_ignore = [] if find_spec("torch") else ["src/simdims/solvers/torch.py", "src/simdims/solvers/joint_torch.py"]
