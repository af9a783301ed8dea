"""Install the wheel of a folder into a fresh environment and run the tests of the sdist beside it against that.

python .ci/test_wheel.py dist [pytest arguments]

Nothing of the source tree is on the path: what is imported is what users get. The sdist is installed as well, into an
environment of its own, and has to give the same files.
"""

import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path


def main() -> None:
    """Run it."""
    dist = Path(sys.argv[1]).resolve()
    (wheel,) = dist.glob("simdims-*.whl")
    (sdist,) = dist.glob("simdims-*.tar.gz")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (source,) = folder.glob("simdims-*")
        python = environment(folder / "wheel")
        run(python, "-m", "pip", "install", "--quiet", f"{wheel}[test]")
        from_sdist = environment(folder / "sdist")
        run(from_sdist, "-m", "pip", "install", "--quiet", "--no-deps", str(sdist))
        assert files(python) == files(from_sdist), "the sdist installs other files than the wheel"
        imported = output(python, "-c", "import simdims; print(simdims.__file__)", cwd=folder)
        assert Path(imported).is_relative_to(folder / "wheel"), imported
        assert output(python, "-W", "error", "-m", "simdims", "--version", cwd=folder).startswith("simdims ")
        # The tests, and the examples in the docstrings of what is installed; the sources beside them stay out.
        rest = sys.argv[2:] or ["-n", "auto", "--maxprocesses", "8"]
        run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", *rest, cwd=source)
        # The room for devices needs PyTorch, which `test` does not bring.
        examples = ["--pyargs", "simdims", "--doctest-ignore-import-errors"]
        run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *examples, *rest, cwd=source)


def environment(folder: Path) -> Path:
    """A new environment's interpreter."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def run(python: Path, *arguments: str, cwd: Path | None = None) -> None:
    """Run an interpreter, which has to end well."""
    subprocess.run([python, *arguments], check=True, cwd=cwd)


def output(python: Path, *arguments: str, cwd: Path | None = None) -> str:
    """What an interpreter writes."""
    return subprocess.run([python, *arguments], check=True, cwd=cwd, capture_output=True, text=True).stdout.strip()


def files(python: Path) -> str:
    """Names and sums of the files of the package, as its installer recorded them."""
    code = (
        "from importlib.metadata import files\n"
        "own = [f for f in files('simdims') if f.parts[0] == 'simdims' and f.suffix != '.pyc']\n"
        "print(sorted((str(f), f.hash.value) for f in own))"
    )
    return output(python, "-c", code)


if __name__ == "__main__":
    main()
