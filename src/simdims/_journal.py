"""Checkpoints: a folder of completed tasks, from which a killed run resumes, and files that are complete or absent.

``settings.json`` identifies the data and settings, ``journal.jsonl`` has one line per completed task, and arrays are
stored beside it. Lines are only ever appended; a line cut short by a kill is dropped when the folder is opened again.
Settings, lines and arrays carry checksums: damaged lines and arrays are dropped with a warning and computed again;
damaged settings raise an error.
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
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from simdims import __version__
from simdims._parallel import root_seed, run_tasks, settle_seed
from simdims._parameters import ParameterError, ParameterTypeError, plural, shortlist, shown, warn
from simdims._progress import Reporter, reporting

T = TypeVar("T", bound=tuple)

#: Runs tasks, and yields their results in the order in which they finish.
RunTasks = Callable[[list[Any]], Generator[Any, None, None]]

_SETTINGS, _LINES, _LOCK = "settings.json", "journal.jsonl", "lock"

#: The version of the format; the first had no checksums.
_FORMAT = 2

#: Bytes of the checksum at the end of an array's file.
_DIGEST_BYTES = 32

#: Lines survive a kill of the process immediately, and a power cut after at most this many seconds.
_SYNC_EVERY = 1.0


class Journal:
    """The completed tasks of one run, in a folder that is new, empty, or that of an earlier run.

    The `settings` are plain values on which the results depend. They must match those of an earlier run, except for
    `seed`: if it is None, the earlier seed is used, or a new one drawn. With a `random_state`, an integer or None, the
    seed follows from it; in `settings` it is then the number that reproduces the run, or None in folders of versions
    that did not record it.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.folder = as_folder(folder, "checkpoint")
        had_lock = (self.folder / _LOCK).exists()
        self._lock = lock_folder(self.folder)
        try:
            self.settings, is_sealed = self._agree(dict(settings))
            self.records = self._read(is_sealed)
            for part in self.folder.glob(".*.part"):  # incomplete files left by a killed process
                part.unlink(missing_ok=True)
            if not is_sealed:
                self._seal()
            self._lines = os.open(self.folder / _LINES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except BaseException as error:
            os.close(self._lock)
            # A folder that is no checkpoint is left as it was.
            if isinstance(error, ParameterError) and not had_lock and not (self.folder / _SETTINGS).exists():
                (self.folder / _LOCK).unlink(missing_ok=True)
            raise
        self._synced = time.monotonic()

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record; it is on disk when this returns."""
        line = memoryview(f"{sealed(record)}\n".encode())
        end = os.fstat(self._lines).st_size
        try:
            while line:
                line = line[os.write(self._lines, line) :]
        except BaseException:  # on a full disk, part of the line may have been written
            os.ftruncate(self._lines, end)
            raise
        if time.monotonic() - self._synced > _SYNC_EVERY:
            os.fsync(self._lines)
            self._synced = time.monotonic()

    def keep(self, name: str, array: np.ndarray) -> None:
        """Store an array under a name."""
        content = io.BytesIO()
        np.save(content, array, allow_pickle=False)
        body = content.getvalue()
        with replacing(self.folder / f"{name}.npy", tidy=False) as path:
            path.write_bytes(body + _array_digest(name, body))

    def kept(self, name: str) -> np.ndarray | None:
        """The array of that name, or None if there is none or, with a warning, if it is damaged."""
        path = self.folder / f"{name}.npy"
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        body, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
        if digest != _array_digest(name, body):
            warn(f"{str(path)!r} is damaged (its checksum does not match); its content is computed again.")
            return None
        return np.load(io.BytesIO(body), allow_pickle=False)

    def drop(self, name: str) -> None:
        """Remove the array of that name, if there is one."""
        (self.folder / f"{name}.npy").unlink(missing_ok=True)

    def close(self) -> None:
        """Release the folder for other runs."""
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
        """The settings, with the seed of an earlier run, and whether its files carry checksums."""
        path = self.folder / _SETTINGS
        wanted = json.loads(json.dumps(settings))
        if wanted.get("random_state") is not None:
            wanted["seed"] = root_seed(wanted["random_state"])
        if not path.exists():
            others = sorted({p.name for p in self.folder.iterdir()} - {_LOCK})
            if others and not all(name.endswith(".part") for name in others):
                got = f"{str(self.folder)!r}, which holds {others[0]!r}"
                raise ParameterError("checkpoint", "must be a new or empty folder, or that of an earlier run", got)
            if "random_state" in wanted and wanted["random_state"] is None:
                wanted["random_state"] = settle_seed(None)
                wanted["seed"] = root_seed(wanted["random_state"])
            elif "seed" in wanted and wanted["seed"] is None:
                wanted["seed"] = root_seed(None)
            self._write_settings(wanted)
            return wanted, True
        try:
            found = unsealed(path.read_bytes(), indent=1, need=False)
        except ValueError:
            got, remedy = f"{str(path)!r}, which is damaged", "restore the file from a backup, or use another folder"
            raise ParameterError("checkpoint", "must be readable", got, remedy) from None
        version = found.pop("format", 1)
        if version not in (1, _FORMAT):
            got, remedy = f"{str(path)!r} of format {version}, which a newer simdims wrote", "update simdims"
            raise ParameterError("checkpoint", f"must be of format {_FORMAT}", got, f"{remedy}, or use another folder")
        if wanted.get("seed") is None:
            wanted["seed"] = found.get("seed")
            wanted |= {"random_state": found.get("random_state")} if "random_state" in wanted else {}
        for name in [*wanted, *found]:
            # The same seed may come from a random_state that was not recorded.
            if name != "random_state" and wanted.get(name) != found.get(name):
                got = f"{str(self.folder)!r}, {_difference(name, found.get(name), wanted.get(name))}"
                remedy = "use another folder, or repeat the earlier settings"
                raise ParameterError("checkpoint", "must be of the same data and settings", got, remedy)
        return wanted, version == _FORMAT

    def _write_settings(self, settings: dict[str, Any]) -> None:
        with replacing(self.folder / _SETTINGS) as part:
            part.write_text(sealed({"format": _FORMAT, **settings}, indent=1))

    def _read(self, is_sealed: bool) -> list[dict[str, Any]]:
        """The records of complete lines; other lines are removed from the file."""
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
                "checksum does not match); these results are computed again."
            )
            self._write_lines(records)
        return records

    def _write_lines(self, records: list[dict[str, Any]]) -> None:
        with replacing(self.folder / _LINES, tidy=False) as part:
            part.write_text("".join(f"{sealed(record)}\n" for record in records))

    def _seal(self) -> None:
        """Add checksums to a folder of the first format, whose content cannot be verified; settings come last."""
        warn(
            f"The checkpoint {str(self.folder)!r} was written by an earlier simdims without checksums; its content is "
            "used as it is, and checksums are added."
        )
        for path in self.folder.glob("*.npy"):
            with suppress(ValueError, EOFError):  # a truncated one is reported when it is read
                self.keep(path.stem, np.load(path, allow_pickle=False))
        self._write_lines(self.records)
        self._write_settings(self.settings)


class Work(NamedTuple):
    """A call that runs many tasks: the number that reproduces it, the seed derived from it, and where tasks run."""

    seed: int | None
    root: int
    journal: Journal | None
    reporter: Reporter
    n_jobs: int | None

    @classmethod
    def unsaved(cls, root: int, n_jobs: int | None) -> Work:
        """Work without a checkpoint and a progress bar."""
        return cls(None, root, None, Reporter(None, show_bar=False), n_jobs)

    def records(self, kind: str) -> list[dict[str, Any]]:
        """The records of one kind in the checkpoint."""
        return [record for record in (self.journal.records if self.journal else []) if record["kind"] == kind]

    def kept(self, name: str) -> np.ndarray | None:
        """The array of that name in the checkpoint, if there is one."""
        return None if self.journal is None else self.journal.kept(name)

    def remembered(self, wanted: dict[str, Any], choose: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The first record in the checkpoint with the `wanted` entries, or a new one with what `choose` returns too."""
        for record in self.records(wanted["kind"]):
            if wanted.items() <= record.items():
                return record
        record = {**wanted, **choose()}
        if self.journal is not None:
            self.journal.append(record)
        return record

    def runner(self, function: Callable[..., Any], shared: tuple[Any, ...], device: str = "cpu") -> RunTasks:
        """`run_tasks` for the tasks that it is called with: in one process if they use a device."""
        n_jobs = self.n_jobs if device == "cpu" else 1
        return partial(run_tasks, function, shared, n_jobs=n_jobs, one_by_one=self.journal is not None)

    def collect(
        self,
        stage: str,
        n_tasks: int,
        run: RunTasks,
        found: Mapping[int, T] | None = None,
        save: Callable[[Journal, T], None] | None = None,
        name: str = "",
    ) -> list[T]:
        """The results of tasks 0, 1, ...: those `found` in the checkpoint, and the others, saved as they finish.

        A result begins with the number of its task.
        """
        results = dict(found or {})
        self.reporter.begin(stage, n_tasks, done=len(results))
        with closing(run([number for number in range(n_tasks) if number not in results])) as finished:
            for result in finished:
                results[result[0]] = result
                if save is not None and self.journal is not None:
                    save(self.journal, result)
                self.reporter.step(f"{name} {result[0] + 1}" if name else "")
        return [results[number] for number in range(n_tasks)]


@contextmanager
def working(
    work: str, settings: Callable[[], Mapping[str, Any]], checkpoint: Any, random_state: Any, n_jobs: Any, progress: Any
) -> Iterator[Work]:
    """Open the checkpoint, which must agree on `settings`; they leave out what a later run may extend."""
    with ExitStack() as stack:
        reporter = stack.enter_context(reporting(progress))
        if checkpoint is None:
            seed = settle_seed(random_state)
            yield Work(seed, root_seed(seed), None, reporter, n_jobs)
            return
        number = None if random_state is None else settle_seed(random_state)
        described = {"work": work, "version": __version__, **settings(), "seed": None, "random_state": number}
        journal = stack.enter_context(Journal(checkpoint, described))
        yield Work(journal.settings["random_state"], journal.settings["seed"], journal, reporter, n_jobs)


def seed_of_earlier(checkpoint: Path) -> int | None:
    """The number that reproduces the run of a checkpoint; None if there is none, or if it cannot be read."""
    try:
        return unsealed((checkpoint / _SETTINGS).read_bytes(), indent=1, need=False).get("random_state")
    except (OSError, ValueError):
        return None


def as_folder(folder: Any, name: str) -> Path:
    """An argument as a path."""
    if not isinstance(folder, str | os.PathLike) or not isinstance(os.fspath(folder), str):
        raise ParameterTypeError(name, "must be a path", shown(folder))
    if not os.fspath(folder) or "\0" in os.fspath(folder):
        raise ParameterError(name, "must be the name of a folder", repr(os.fspath(folder)))
    refuse_name(Path(folder), name)
    return Path(folder)


def refuse_name(path: Path, name: str) -> None:
    """Refuse a name that no file can have."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ParameterError(name, "must be a valid file name", f"{str(path)!r} ({reason})") from None


def cannot_write(path: Path, error: OSError) -> ValueError:
    """The error for a location that is not writable."""
    return ValueError(f"Cannot write to {str(path)!r}: {error.strerror or error}.")


def lock_folder(folder: Path) -> int:
    """Create a folder if needed, and lock it until the handle is closed or its process ends."""
    if folder.exists() and not folder.is_dir():
        raise ParameterError("checkpoint", "must be a folder", f"{str(folder)!r}, which is a file")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise cannot_write(folder, error) from None
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        got = f"{str(folder)!r}, in which another run is writing"
        raise ParameterError("checkpoint", "must not be in use", got) from None
    return handle


@contextmanager
def replacing(path: Path, *, ending: str = "part", tidy: bool = True) -> Iterator[Path]:
    """Write a temporary file with this ending, which replaces `path` if the body succeeds.

    With `tidy`, files left beside `path` by killed processes are removed first.
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
def replacing_file(path: Path) -> Iterator[IO[bytes]]:
    """`replacing`, with the file opened for writing."""
    with replacing(path) as part:
        try:
            opened = part.open("xb")
        except OSError as error:
            raise cannot_write(path, error) from None
        with opened as file:
            yield file


def name_beside(path: Path, ending: str) -> Path:
    """A hidden temporary name beside `path` that identifies this process."""
    return path.with_name(f"{_hidden(path)}{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.{ending}")


def names_beside(path: Path, ending: str) -> list[Path]:
    """All files and folders with such a name, of any process."""
    start = _hidden(path)
    try:
        names = os.listdir(path.parent)
    except OSError:
        return []
    return [path.with_name(name) for name in names if name.startswith(start) and name.endswith(f".{ending}")]


def remove_abandoned(path: Path, ending: str = "part") -> None:
    """Remove temporary files of ended processes on this machine."""
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
    """The start of names beside `path`; long names are hashed to leave space for the rest."""
    name = path.name if len(os.fsencode(path.name)) <= 150 else hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]
    return f".{name}."


@cache
def _machine() -> str:
    """An identifier of the machine or container, because each numbers its own processes."""
    try:
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbers = ""
    return hashlib.sha256(f"{socket.gethostname()} {numbers}".encode()).hexdigest()[:8]


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # on Windows, signal 0 would be Ctrl-C
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def sealed(record: Mapping[str, Any], indent: int | None = None) -> str:
    """A record as JSON with a checksum at the end."""
    text = json.dumps(record, indent=indent)
    return json.dumps({**record, "checksum": hashlib.sha256(text.encode()).hexdigest()[:32]}, indent=indent)


def unsealed(text: str | bytes, indent: int | None = None, *, need: bool = True) -> dict[str, Any]:
    """The record that `sealed` wrote, or a ValueError.

    The text must match, byte by byte, what would be written again, so that any damage is detected. Unless `need`, a
    record of the first format, which had no checksums, is accepted.
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


def _array_digest(name: str, body: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + body).digest()


def fingerprint(*arrays: np.ndarray | float | None) -> str:
    """A text that changes with the content of the arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        plain = np.ascontiguousarray(np.zeros(0) if array is None else array)
        digest.update(f"{plain.dtype.str}{plain.shape}".encode())
        digest.update(plain.view(np.uint8).data if plain.size else b"")
    return digest.hexdigest()


def _difference(name: str, found: Any, wanted: Any) -> str:
    if name == "data":
        return "which was written for other similarities"
    if name == "seed":
        return "which has another random seed"
    if isinstance(found, dict) and isinstance(wanted, dict):
        for part in [*wanted, *found]:
            # A penalty of zero is not recorded.
            there, here = found.get(part, "0.0"), wanted.get(part, "0.0")
            if there != here:
                return f"where {part} of the {name} is {there}, not {here}"
    return f"where {name} is {found!r}, not {wanted!r}"
