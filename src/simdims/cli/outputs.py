"""Files and JSON that commands write: refused before the work, whole after it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def check_target(
    target: Path | None, endings: tuple[str, ...], sources: Iterable[tuple[str, Path]] = (), *, overwrite: bool
) -> None:
    """Refuse before the work what could not, or should not, be written after it.

    Parameters
    ----------
    target : Path or None
        What is to be written, if anything.
    endings : tuple of str
    sources : iterable of (name, path)
        The files that the command reads, which it must not write over, and what its help calls them.
    overwrite : bool
        Whether a file that is there may be replaced.
    """
    if target is None:
        return
    if endings and target.suffix.lower() not in endings:
        raise ValueError(f"OUT must end in {' or '.join(endings)}, got {str(target)!r}.")
    if target.is_dir():
        raise ValueError(f"OUT must be a file, got {str(target)!r}, which is a folder.")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"OUT must lie in a folder that is there, got {str(target)!r}.")
    for name, source in sources:
        if os.path.realpath(source) == os.path.realpath(target):
            raise ValueError(f"OUT must be another file than {name}, got {str(target)!r} for both.")
    if target.exists() and not overwrite:
        raise FileExistsError(
            f"OUT must be new, got {str(target)!r}, which is there already: choose another name, or pass --overwrite."
        )
    check_place(target, "OUT")


def check_place(target: Path, name: str, *, is_filled: bool = False) -> None:
    """Refuse a place at which no file or folder can be made: an empty file is put there, and taken away again.

    Parameters
    ----------
    target : Path
        The file or folder to be written; folders above it may have to be made, too.
    name : str
        What the help of the command calls it.
    is_filled : bool
        Whether files are written into `target` one by one, rather than beside it and moved there once they are whole.
    """
    from simdims._journal import name_beside

    place = target.absolute()
    probe = name_beside(place / "settings.json" if is_filled else place, "part")
    folder = probe.parent
    made: list[Path] = []
    try:
        for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
            missing.mkdir()
            made.append(missing)
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"{name} must lie where files can be written, got {str(target)!r} ({reason}).") from None
    finally:
        for one in reversed(made):
            one.rmdir()


def write_result(target: Path, values: dict[str, Any], table: pd.DataFrame | None = None) -> None:
    """Write a result as .json (everything) or .csv (its table); an existing file is replaced once the new is whole."""
    from simdims._journal import replacing
    from simdims.io.text import write_csv

    with replacing(target) as part:
        if target.suffix.lower() == ".json":
            part.write_text(as_json(values, indent=1) + "\n", encoding="utf-8")
        elif table is not None:
            write_csv(table, part)


def as_json(values: Any, indent: int | None = None) -> str:
    """Plain values as JSON that every program reads: a number that is none, as NaN, becomes null."""
    return json.dumps(_plain(values), indent=indent, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "to_dict"):  # a table
        return _plain(value.to_dict(orient="records"))
    if hasattr(value, "tolist"):  # an array, or one of its numbers
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
