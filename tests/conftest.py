"""What the tests share: where real data lie, and how Hypothesis runs."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

# A shell that starts the tests in the background makes them, and the processes they start, deaf to Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = Path(__file__).resolve().parents[1]

# Compilation on first use breaks any deadline; a fixed choice of examples makes a failure repeatable.
hypothesis.settings.register_profile("simdims", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("simdims")


@pytest.fixture(scope="session")
def data_path() -> Callable[[str], Path]:
    """Path of a real data file by name; the test is skipped where the file is absent.

    The files lie in the folder that SIMDIMS_DATA names, or in ../shared/data beside the checkout.
    """
    folder = Path(os.environ.get("SIMDIMS_DATA", REPOSITORY.parent / "shared" / "data"))

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            pytest.skip(f"real data {name!r} not found: set SIMDIMS_DATA to the folder that holds it")
        return path

    return find
