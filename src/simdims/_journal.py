"""A folder of finished work: whatever is in it survives a kill, and a later run goes on from there.

``settings.json`` says of which data and settings the work is, ``journal.jsonl`` holds one line for each finished task,
and arrays stand beside it. Lines are only ever appended; one that a kill cut short is dropped when the folder is opened
again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from simdims._parallel import root_seed, settle_seed

_SETTINGS, _LINES, _LOCK = "settings.json", "journal.jsonl", "lock"

#: What a kill of the process cannot take is written at once; what a power cut could take, this often (seconds).
_SYNC_EVERY = 1.0


class Journal:
    """The finished tasks of one piece of work.

    Parameters
    ----------
    folder : path
        New, empty, or of an earlier run.
    settings : mapping of plain values
        What the work depends on. An earlier run's must be the same, but for `seed`: where that is None, the earlier
        one is taken over, and where there is none a fresh one is drawn. With a `random_state`, an integer or None, the
        seed follows from it; in `settings` it is the number to repeat the work with, or None in folders of versions
        that did not record it.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.folder = as_folder(folder, "checkpoint")
        self._lock = lock_folder(self.folder)
        try:
            self.settings = self._agree(dict(settings))
            self.records = self._read()
            self._tidy()
            self._lines = os.open(self.folder / _LINES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except BaseException:
            os.close(self._lock)
            raise
        self._synced = time.monotonic()

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record; it is written when this returns."""
        line = memoryview((json.dumps(record, allow_nan=True) + "\n").encode())
        end = os.fstat(self._lines).st_size
        try:
            while line:
                line = line[os.write(self._lines, line) :]
        except BaseException:  # on a full disk a part of the line may be there, which the next one must not go on from
            os.ftruncate(self._lines, end)
            raise
        if time.monotonic() - self._synced > _SYNC_EVERY:
            os.fsync(self._lines)
            self._synced = time.monotonic()

    def keep(self, name: str, array: np.ndarray) -> None:
        """Store an array under a name; a file of that name is either whole or not there."""
        with replacing(self.folder / f"{name}.npy") as path, open(path, "wb") as file:
            np.save(file, array, allow_pickle=False)

    def kept(self, name: str) -> np.ndarray | None:
        """The array of that name, or None, also where a power cut has left a part of it."""
        try:
            return np.load(self.folder / f"{name}.npy", allow_pickle=False)
        except (FileNotFoundError, ValueError, EOFError):
            return None

    def drop(self, name: str) -> None:
        """Forget the array of that name."""
        (self.folder / f"{name}.npy").unlink(missing_ok=True)

    def close(self) -> None:
        """Let others have the folder."""
        try:
            os.fsync(self._lines)
        finally:
            os.close(self._lines)
            os.close(self._lock)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _agree(self, settings: dict[str, Any]) -> dict[str, Any]:
        path = self.folder / _SETTINGS
        wanted = json.loads(json.dumps(settings))
        if wanted.get("random_state") is not None:
            wanted["seed"] = root_seed(wanted["random_state"])
        if not path.exists():
            strangers = sorted({p.name for p in self.folder.iterdir()} - {_LOCK})
            if strangers and not all(name.endswith(".part") for name in strangers):
                raise ValueError(
                    f"checkpoint must be a new or empty folder, or one of an earlier run, got {str(self.folder)!r}, "
                    f"which holds {strangers[0]!r}."
                )
            if "random_state" in wanted and wanted["random_state"] is None:
                wanted["random_state"] = settle_seed(None)
                wanted["seed"] = root_seed(wanted["random_state"])
            elif "seed" in wanted and wanted["seed"] is None:
                wanted["seed"] = root_seed(None)
            with replacing(path) as part:
                part.write_text(json.dumps(wanted, indent=1))
            return wanted
        try:
            found = json.loads(path.read_text())
            if not isinstance(found, dict):
                raise ValueError
        except ValueError:
            raise ValueError(f"checkpoint must be readable, got {str(path)!r}, which is damaged.") from None
        if wanted.get("seed") is None:
            wanted["seed"] = found.get("seed")
            wanted |= {"random_state": found.get("random_state")} if "random_state" in wanted else {}
        for name in [*wanted, *found]:
            # Of two that give the same seed one is the other, or was not recorded.
            if name != "random_state" and wanted.get(name) != found.get(name):
                raise ValueError(
                    f"checkpoint must be of the same data and settings, got {str(self.folder)!r}, "
                    f"{_difference(name, found.get(name), wanted.get(name))}. Use another folder, or the same settings."
                )
        return wanted

    def _read(self) -> list[dict[str, Any]]:
        path = self.folder / _LINES
        if not path.exists():
            return []
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)
        try:
            records = [json.loads(line) for line in content[:whole].splitlines()]
            if not all(isinstance(record, dict) for record in records):
                raise ValueError
        except ValueError:
            raise ValueError(f"checkpoint must be readable, got {str(path)!r}, which is damaged.") from None
        return records

    def _tidy(self) -> None:
        """Remove what a kill left half written."""
        for part in self.folder.glob(".*.part"):
            part.unlink(missing_ok=True)


def as_folder(folder: Any, name: str) -> Path:
    """The path that an argument is."""
    if not isinstance(folder, str | os.PathLike) or not isinstance(os.fspath(folder), str):
        raise TypeError(f"{name} must be a path, got {folder!r}.")
    if not os.fspath(folder) or "\0" in os.fspath(folder):
        raise ValueError(f"{name} must name a folder, got {os.fspath(folder)!r}.")
    refuse_name(Path(folder), name)
    return Path(folder)


def refuse_name(path: Path, name: str) -> None:
    """Refuse what no file can be called."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ValueError(f"{name} must be a name that a file can have, got {str(path)!r} ({reason}).") from None


def lock_folder(folder: Path) -> int:
    """Make a folder where there is none, and keep others out of it until the handle is closed."""
    try:
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"checkpoint must be a folder, got {str(folder)!r}, which is a file.")
        folder.mkdir(parents=True, exist_ok=True)
        return _locked(folder / _LOCK)
    except OSError as error:
        raise ValueError(
            f"checkpoint must lie where files may be written, got {str(folder)!r} ({error.strerror})."
        ) from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write that takes the place of `path` once the body has ended well."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def fingerprint(*arrays: np.ndarray | float | None) -> str:
    """A text that differs where the arrays do."""
    digest = hashlib.sha256()
    for array in arrays:
        plain = np.ascontiguousarray(np.zeros(0) if array is None else array)
        digest.update(f"{plain.dtype.str}{plain.shape}".encode())
        digest.update(plain.view(np.uint8).data if plain.size else b"")
    return digest.hexdigest()


def _difference(name: str, found: Any, wanted: Any) -> str:
    if name == "data":
        return "which is of other similarities"
    if name == "seed":
        return "where random_state was another"
    if isinstance(found, dict) and isinstance(wanted, dict):
        for part in [*wanted, *found]:
            if found.get(part) != wanted.get(part):
                return f"where {part} of the {name} is {found.get(part)}, not {wanted.get(part)}"
    return f"where {name} is {found!r}, not {wanted!r}"


def _locked(path: Path) -> int:
    """An open file that no second run can open; it is free again when its process ends, however it ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise ValueError(
            f"checkpoint must not be in use, got {str(path.parent)!r}, on which another run is at work."
        ) from None
    return handle
