"""A folder of finished work: whatever is in it survives a kill, and a later run goes on from there.

``settings.json`` says of which data and settings the work is, ``journal.jsonl`` holds one line for each finished task,
and arrays stand beside it. Lines are only ever appended; one that a kill cut short is dropped when the folder is opened
again. Settings, lines and arrays carry checksums: damaged lines and arrays are dropped with a warning, so that their
tasks are done again, and damaged settings are refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np

from simdims._parallel import root_seed, settle_seed
from simdims._parameters import plural, shortlist, warn

_SETTINGS, _LINES, _LOCK = "settings.json", "journal.jsonl", "lock"

#: The version of what is written; the first one had no checksums.
_FORMAT = 2

#: Bytes of the checksum at the end of the file of an array.
_DIGEST_BYTES = 32

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
            self.settings, is_sealed = self._agree(dict(settings))
            self.records = self._read(is_sealed)
            self._tidy()
            if not is_sealed:
                self._seal()
            self._lines = os.open(self.folder / _LINES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except BaseException:
            os.close(self._lock)
            raise
        self._synced = time.monotonic()

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record; it is written when this returns."""
        line = memoryview(f"{sealed(record)}\n".encode())
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
        content = io.BytesIO()
        np.save(content, array, allow_pickle=False)
        body = content.getvalue()
        with replacing(self.folder / f"{name}.npy", tidy=False) as path:
            path.write_bytes(body + _array_digest(name, body))

    def kept(self, name: str) -> np.ndarray | None:
        """The array of that name, or None where there is none, or, with a warning, only a damaged one."""
        path = self.folder / f"{name}.npy"
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
        if digest != _array_digest(name, body):
            warn(f"{str(path)!r} is damaged (its checksum does not match): what it held is computed again.")
            return None
        return np.load(io.BytesIO(body), allow_pickle=False)

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

    def _agree(self, settings: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The settings, with the seed of an earlier run, and whether all there is carries checksums."""
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
            self._write_settings(wanted)
            return wanted, True
        found = read_sealed(path, "checkpoint")
        version = found.pop("format", 1)
        if version not in (1, _FORMAT):
            raise ValueError(
                f"checkpoint must be of format {_FORMAT}, got {str(path)!r} of format {version}: a newer simdims wrote "
                "it; update simdims, or use another folder."
            )
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
        return wanted, version == _FORMAT

    def _write_settings(self, settings: dict[str, Any]) -> None:
        with replacing(self.folder / _SETTINGS) as part:
            part.write_text(sealed({"format": _FORMAT, **settings}, indent=1))

    def _read(self, is_sealed: bool) -> list[dict[str, Any]]:
        """The records of the lines that are whole; the file is left with these only."""
        path = self.folder / _LINES
        if not path.exists():
            return []
        content = path.read_bytes()
        *lines, unfinished = content.split(b"\n")
        if unfinished:
            os.truncate(path, len(content) - len(unfinished))
        records, damaged = [], []
        for number, line in enumerate(lines, start=1):
            try:
                records.append(unsealed(line, need=is_sealed))
            except ValueError:
                damaged.append(number)
        if damaged:
            warn(
                f"{str(path)!r} is damaged in {plural('line', len(damaged))} {shortlist(list(map(str, damaged)))} (the "
                "checksum does not match): these records are dropped and computed again."
            )
            self._write_lines(records)
        return records

    def _write_lines(self, records: list[dict[str, Any]]) -> None:
        with replacing(self.folder / _LINES, tidy=False) as part:
            part.write_text("".join(f"{sealed(record)}\n" for record in records))

    def _seal(self) -> None:
        """Add checksums to a folder of the first format, whose content must be taken as it is; settings are last."""
        warn(
            f"The checkpoint {str(self.folder)!r} is of an earlier simdims, which kept no checksums: what it holds is "
            "used as it is, and has checksums from now on."
        )
        for path in self.folder.glob("*.npy"):
            with suppress(ValueError, EOFError):  # one that is cut short is found damaged when it is asked for
                self.keep(path.stem, np.load(path, allow_pickle=False))
        self._write_lines(self.records)
        self._write_settings(self.settings)

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
def replacing(path: Path, *, ending: str = "part", tidy: bool = True) -> Iterator[Path]:
    """A file to write, of this ending, that takes the place of `path` once the body has ended well.

    With `tidy`, what processes that were killed have left beside `path` is removed first.
    """
    if tidy:
        remove_abandoned(path, ending)
    part = name_beside(path, ending)
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def replacing_file(path: Path, name: str) -> Iterator[IO[bytes]]:
    """The same, opened for writing; where nothing can be written, a sentence about the argument `name`."""
    with replacing(path) as part:
        try:
            opened = part.open("xb")
        except OSError as error:
            raise ValueError(
                f"{name} must lie where files may be written, got {str(path)!r} ({error.strerror})."
            ) from None
        with opened as file:
            yield file


def name_beside(path: Path, ending: str) -> Path:
    """A hidden name beside `path` for what is on its way there or from there; it says which process uses it."""
    return path.with_name(f"{_hidden(path)}{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.{ending}")


def names_beside(path: Path, ending: str) -> list[Path]:
    """All files and folders that have such a name, whichever process made them."""
    start = _hidden(path)
    try:
        names = os.listdir(path.parent)
    except OSError:
        return []
    return [path.with_name(name) for name in names if name.startswith(start) and name.endswith(f".{ending}")]


def remove_abandoned(path: Path, ending: str = "part") -> None:
    """Remove what has such a name and belongs to a process of this machine that has ended."""
    for left in names_beside(path, ending):
        owner = re.fullmatch(r"([0-9a-f]{8})-([0-9]+)-[0-9a-f]{8}", left.name[len(_hidden(path)) : -len(ending) - 1])
        if owner is None or owner[1] != _machine() or _is_running(int(owner[2])):
            continue
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            with suppress(OSError):
                left.unlink()


def _hidden(path: Path) -> str:
    """How names beside `path` begin; a long name would leave no room for the rest."""
    name = path.name if len(os.fsencode(path.name)) <= 150 else hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]
    return f".{name}."


@cache
def _machine() -> str:
    """What tells apart machines, and containers, whose processes have numbers of their own."""
    try:
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbers = ""
    return hashlib.sha256(f"{socket.gethostname()} {numbers}".encode()).hexdigest()[:8]


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # where signal 0 would be Ctrl-C
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def sealed(record: Mapping[str, Any], indent: int | None = None) -> str:
    """A record as JSON that ends with a checksum of the rest."""
    text = json.dumps(record, indent=indent)
    return json.dumps({**record, "checksum": hashlib.sha256(text.encode()).hexdigest()[:32]}, indent=indent)


def unsealed(text: str | bytes, indent: int | None = None, *, need: bool = True) -> dict[str, Any]:
    """The record that `sealed` wrote, or a ValueError.

    The text must be what would be written again, byte by byte, so that no damage goes unnoticed. Unless there is need
    of a checksum, a record of the first format, which had none, is taken as it is.
    """
    plain = text.decode() if isinstance(text, bytes) else text
    try:
        record = json.loads(plain)
    except RecursionError:
        record = None
    if not isinstance(record, dict):
        raise ValueError("no record")
    if "checksum" not in record and not need and record.get("format", 1) == 1:
        return record
    record.pop("checksum", None)
    if sealed(record, indent) != plain:
        raise ValueError("another checksum")
    return record


def read_sealed(path: Path, name: str) -> dict[str, Any]:
    """The record in a file that `sealed(..., indent=1)` wrote; one of the first format has no checksum."""
    try:
        return unsealed(path.read_bytes(), indent=1, need=False)
    except ValueError:
        raise ValueError(
            f"{name} must be readable, got {str(path)!r}, which is damaged: use a copy of it from a backup, or another "
            "folder."
        ) from None


def _array_digest(name: str, body: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + body).digest()


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
