"""The folder of a Discovery: plain arrays, CSV tables, and a manifest that is written last."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simdims._journal import as_folder, cannot_write, name_beside, names_beside, remove_abandoned, sealed, unsealed
from simdims._parameters import ParameterError
from simdims.consensus import Consensus
from simdims.consensus.result import numbered_names
from simdims.encoder import as_arrays, from_arrays
from simdims.io import load_similarity
from simdims.io.tables import write_csv
from simdims.selection import Calibration, DetectableDimensions, RankSelection, SystemsComparison
from simdims.selection.resampling import Resampled
from simdims.systems import SimilaritySet

if TYPE_CHECKING:
    from simdims.discovery.result import Discovery

#: Format version. Version 1 had no checksum of the manifest itself; several systems need the latest.
FORMAT, FORMAT_OF_SYSTEMS = 2, 3

#: Number of times to read a folder again if a concurrent save replaced it.
_ATTEMPTS = 10

#: Files that the command line writes beside a result, to repeat the run.
RUN_FILE = "run.toml"

_MANIFEST = "discovery.json"
_CONSENSUS_ARRAYS = ("embeddings", "reliability", "agreement", "objectives", "converged", "n_iter", "seeds")
#: Tables with user-given names, for which spreadsheets need a byte order mark.
_NAMED = ("embedding", "dimensions", "weights", "systems")
_TABLES = (*_NAMED, "selection_fits", "selection_curve")
_FILES = {*(f"{name}.npz" for name in ("arrays", "similarity", "encoder")), *(f"{name}.csv" for name in _TABLES)}
_FILES |= {"methods.txt", RUN_FILE, _MANIFEST}
_SELECTION_TABLES = ("scores", "curve")
_CALIBRATION_ARRAYS = ("grid", "signal_loss", "leakage", "eigenvalues")


def save(found: Discovery, folder: str | os.PathLike[str], *, same_run: bool = False) -> None:
    """Write a Discovery to a temporary folder, then move it to `folder`; `same_run` keeps the files that repeat it."""
    target = as_folder(folder, "folder").absolute()
    with _in_turn(target):
        _put_back(target)
        check_folder(folder)
    remove_abandoned(target)
    part = name_beside(target, "part")
    try:
        part.mkdir(parents=True)
    except OSError as error:
        raise cannot_write(target, error) from None
    try:
        _write(found, part)
        with _in_turn(target):
            for name in [*_strangers(target), *([RUN_FILE] if same_run and (target / RUN_FILE).exists() else [])]:
                if (target / name).is_dir():
                    shutil.copytree(target / name, part / name, copy_function=_link)
                else:
                    _link(target / name, part / name)
            _exchange(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _in_turn(target: Path) -> Iterator[bool]:
    """Let one process at a time move folders here, by locking the parent folder; whether that is possible.

    This leaves no lock file behind.
    """
    is_locked = False
    with ExitStack() as lock:
        with suppress(ImportError, OSError):  # no locks on Windows and some disks, or no such folder yet
            import fcntl

            handle = os.open(target.parent, os.O_RDONLY)
            lock.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Unlock explicitly: a process forked meanwhile also holds the folder open.
            lock.callback(fcntl.flock, handle, fcntl.LOCK_UN)
            is_locked = True
        yield is_locked


def _exchange(part: Path, target: Path) -> None:
    """Replace `target` by `part` as a whole; the old folder is first set aside, where `load` finds it."""
    earlier = name_beside(target, "old")
    try:
        if os.path.lexists(target):  # also a broken link
            os.replace(target, earlier)
        os.replace(part, target)
    except BaseException:
        if earlier.exists() and not target.exists():
            os.replace(earlier, target)
        raise
    for left in names_beside(target, "old"):
        shutil.rmtree(left, ignore_errors=True)


def _set_aside(target: Path) -> Path | None:
    """The folder set aside by a save that was killed before it put another in its place."""
    found = [path for path in names_beside(target, "old") if (path / _MANIFEST).exists()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def _put_back(target: Path) -> None:
    """Give the folder that a killed save set aside its name again."""
    if not target.exists() and (earlier := _set_aside(target)):
        os.replace(earlier, target)


def _link(source: Any, copy: Any) -> None:
    """Hard-link a file, or copy it if the disk does not support links."""
    try:
        os.link(source, copy)
    except OSError:
        shutil.copy2(source, copy)


def load(folder: str | os.PathLike[str]) -> Discovery:
    """Read what `save` wrote."""
    path = as_folder(folder, "folder")
    _tidy(path.absolute())
    for _ in range(_ATTEMPTS):
        here = path if path.exists() else _set_aside(path.absolute()) or path
        before = _stamp(here)
        try:
            found = _load(here)
        except (ValueError, FileNotFoundError):
            if _stamp(here) == before:
                raise
            continue
        if _stamp(here) == before:  # otherwise files of two results may have been read
            return found
    raise ValueError(f"{str(path)!r} cannot be read, because another process keeps replacing it.")


def _tidy(target: Path) -> None:
    """Put the earlier result back where a killed save had set it aside, and remove what else it left."""
    remove_abandoned(target)
    if not target.exists() and _set_aside(target):
        with _in_turn(target) as is_alone, suppress(OSError):  # a disk may be read-only
            if is_alone:  # otherwise a save may be under way
                _put_back(target)
    if is_saved(target):  # otherwise the folder set aside is the earlier result
        remove_abandoned(target, "old")


def _stamp(folder: Path) -> tuple[int, int] | None:
    """A stamp that differs between any two folders written by `save`."""
    try:
        manifest = os.stat(folder / _MANIFEST)
    except OSError:
        return None
    return manifest.st_ino, manifest.st_mtime_ns


def _load(path: Path) -> Discovery:
    manifest = _read_manifest(path)
    try:
        return _restore(path, manifest)
    except (KeyError, TypeError, AttributeError, IndexError, FileNotFoundError):
        raise ValueError(f"{str(path / _MANIFEST)!r} is damaged.") from None


def _restore(path: Path, manifest: dict[str, Any]) -> Discovery:
    from simdims.discovery.result import Discovery

    arrays = _read_arrays(path / "arrays.npz")
    systems, detected = manifest.get("systems"), manifest.get("detectable")  # absent for one system
    compared = systems and systems["comparison"]
    load_any = load_similarity if systems is None else SimilaritySet.load
    similarity: Any = load_any(path / "similarity.npz")
    labels = None if similarity.labels is None else tuple(similarity.labels)
    of_runs: dict[str, Any] = {name: arrays[name] for name in _CONSENSUS_ARRAYS}
    if systems is not None:
        of_runs |= {"weights": arrays["weights"], "shrinkage": float(systems["shrinkage"])}
        of_runs |= {"systems": similarity.names, "system_info": similarity.info}
    consensus = Consensus(
        **of_runs,
        selected=manifest["consensus"]["selected"],
        n_splits=manifest["consensus"]["n_splits"],
        labels=labels,
        seed=manifest["consensus"].get("seed"),
        alpha=manifest["consensus"].get("alpha", 0.0),
        dimension_names=tuple(manifest["consensus"].get("dimension_names", ())),  # only if names were given
    )
    if not 0 <= consensus.selected < consensus.n_runs:
        raise IndexError
    return Discovery(
        similarity=similarity,
        selection=_selection(manifest["selection"], arrays),
        consensus=consensus,
        metrics=manifest["metrics"],
        settings=manifest["settings"],
        estimated_seconds=manifest["estimated_seconds"],
        detectable=None if detected is None else DetectableDimensions.from_dict(detected),
        systems=None if compared is None else SystemsComparison.from_dict(compared),
        encoder=from_arrays(_read_arrays(path / "encoder.npz")) if "encoder.npz" in manifest["files"] else None,
    )


def _write(found: Discovery, folder: Path) -> None:
    consensus, selection = found.consensus, found.selection
    arrays = {name: getattr(consensus, name) for name in _CONSENSUS_ARRAYS}
    tables = {
        "embedding": found.embedding_frame().rename_axis("item").reset_index(),
        "dimensions": found.dimensions_frame().reset_index(),
    }
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "consensus": {name: getattr(consensus, name) for name in ("selected", "n_splits", "seed", "alpha")},
        "selection": None,
        "metrics": found.metrics,
        "settings": found.settings,
        "estimated_seconds": found.estimated_seconds,
        "detectable": found.detectable and found.detectable.to_dict(),
    }
    if found.dimension_names != numbered_names(found.n_components):
        manifest["consensus"]["dimension_names"] = found.dimension_names
    if isinstance(found.similarity, SimilaritySet):
        compared = found.systems
        manifest["format"] = FORMAT_OF_SYSTEMS
        manifest["systems"] = {"shrinkage": str(consensus.shrinkage), "comparison": compared and compared.to_dict()}
        arrays["weights"] = np.asarray(consensus.weights)
        tables["weights"] = found.weights_frame().rename_axis("system").reset_index()
        tables |= {} if compared is None else {"systems": compared.r2.reset_index()}
    if selection is not None:
        tables |= {"selection_fits": selection.scores, "selection_curve": selection.curve}
        plain = {name: value for name, value in selection.to_dict().items() if name not in ("scores", "curve")}
        if selection.calibration is not None:
            arrays |= {f"calibration_{name}": getattr(selection.calibration, name) for name in _CALIBRATION_ARRAYS}
            plain["calibration"] = {k: v for k, v in plain["calibration"].items() if k not in _CALIBRATION_ARRAYS}
        manifest["selection"] = plain
        # The tables too, so that loading does not depend on edits made in a spreadsheet.
        for name in _SELECTION_TABLES:
            table = getattr(selection, name)
            arrays |= {f"{name}_{column}": table[column].to_numpy() for column in table}
    np.savez(folder / "arrays.npz", **arrays)
    found.similarity.save(folder / "similarity.npz")
    if found.encoder is not None:
        np.savez(folder / "encoder.npz", **as_arrays(found.encoder))  # type: ignore[arg-type]
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv", "utf-8-sig" if name in _NAMED else "utf-8")
    (folder / "methods.txt").write_text(found.methods_text() + "\n", encoding="utf-8")
    manifest["files"] = {path.name: _digest(path) for path in sorted(folder.iterdir())}
    (folder / _MANIFEST).write_text(sealed(manifest, indent=1), encoding="utf-8")


def check_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse folders that save could not write to."""
    target = as_folder(folder, "folder").absolute()
    if target.exists() and not target.is_dir():
        raise ParameterError("folder", "must be a folder", f"{str(target)!r}, which is a file")
    if target.exists() and any(target.iterdir()) and not (target / _MANIFEST).exists():
        got = f"{str(target)!r}, which contains other files"
        raise ParameterError("folder", "must be new, empty, or that of a saved Discovery", got)
    above = next(path for path in target.parents if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(f"Cannot write to {str(target)!r}: permission denied.")


def is_saved(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a Discovery, complete or damaged."""
    return Path(folder, _MANIFEST).exists()


def _strangers(folder: Path) -> list[str]:
    """Files beside an earlier Discovery that save did not write."""
    if not folder.exists():
        return []
    own = set(_FILES)
    with suppress(OSError, ValueError, KeyError, TypeError):
        own.update(json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))["files"])
    return sorted(path.name for path in folder.iterdir() if path.name not in own)


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        raise FileNotFoundError(f"No such folder: {str(folder)!r}.")
    if not (folder / _MANIFEST).is_file():
        got = f"{str(folder)!r}, which has no {_MANIFEST}"
        raise ParameterError("folder", "must be one written by {Discovery.save()}", got)
    try:
        manifest = unsealed((folder / _MANIFEST).read_bytes(), indent=1, need=False)
        version, files = manifest["format"], dict(manifest["files"].items())
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{str(folder / _MANIFEST)!r} is damaged.") from None
    if version not in (1, FORMAT, FORMAT_OF_SYSTEMS):
        raise ValueError(f"{str(folder)!r} has format {version}, which needs a newer version of simdims.")
    for name, digest in files.items():
        # Tables are for users, who may save them again from a spreadsheet.
        if not (folder / name).is_file():
            raise ValueError(f"{str(folder / name)!r} is missing.")
        if name.endswith(".npz") and _digest(folder / name) != digest:
            raise ValueError(f"{str(folder / name)!r} is damaged.")
    return dict(manifest)


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file}


def _selection(values: dict[str, Any] | None, arrays: dict[str, np.ndarray]) -> RankSelection | None:
    import pandas as pd

    if values is None:
        return None
    values = {**values}
    if values["calibration"] is not None:
        curves: dict[str, Any] = {name: arrays[f"calibration_{name}"] for name in _CALIBRATION_ARRAYS}
        values["calibration"] = Calibration(**values["calibration"], **curves)
    values |= {name: tuple(values[name]) for name in ("valley", "tried")}
    if "systems" in values:
        values |= {name: float(values[name]) for name in ("shrinkage", "comparison_shrinkage")}
        values["systems"] = pd.DataFrame(values["systems"]).set_index("system")
    again = values.get("resampled")  # not in folders of earlier versions
    if again is not None:
        values["resampled"] = Resampled(tuple(again["ranks"]), tuple(again["frequencies"]), again["n_resamples"])
    tables: dict[str, Any] = {
        table: pd.DataFrame(
            {name.removeprefix(f"{table}_"): arrays[name] for name in arrays if name.startswith(f"{table}_")}
        )
        for table in _SELECTION_TABLES
    }
    return RankSelection(**values, **tables)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
