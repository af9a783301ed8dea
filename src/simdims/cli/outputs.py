"""The files and JSON that commands write: checked before the run, and either complete or absent after it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: The endings of figures, which determine their format.
FIGURES = (".pdf", ".svg", ".png", ".eps", ".jpg")


def check_target(
    target: Path | None, endings: tuple[str, ...], sources: Iterable[tuple[str, Path]] = (), *, overwrite: bool
) -> None:
    """Check before the run that OUT can be written, and overwrites no other file; inputs are named as in the help."""
    if target is None:
        return
    if target.suffix.lower() not in endings:
        *most, last = endings
        ending = f"{', '.join(most)} or {last}" if most else last
        raise ValueError(f"OUT must end in {ending}, got {str(target)!r}.")
    if target.is_dir():
        raise ValueError(f"OUT must be a file, got the folder {str(target)!r}.")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"No such folder: {str(target.parent)!r}.")
    for name, source in sources:
        if os.path.realpath(source) == os.path.realpath(target):
            raise ValueError(f"OUT must be another file than {name}, got {str(target)!r} for both.")
    if target.exists() and not overwrite:
        raise FileExistsError(f"{str(target)!r} already exists: choose another name, or pass --overwrite.")
    check_writable(target)


def check_writable(target: Path, *, is_filled: bool = False) -> None:
    """Check that a file or folder can be created or, with `is_filled`, that files can be written into it, by trying."""
    from simdims._journal import cannot_write, name_beside

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
        raise cannot_write(target, error) from None
    finally:
        for one in reversed(made):
            one.rmdir()


def write_result(target: Path | None, values: dict[str, Any], table: pd.DataFrame) -> None:
    """Write a result to OUT, if it was given: as .json (everything) or .csv (its table), in one step."""
    if target is None:
        return
    from simdims._journal import replacing
    from simdims.io.tables import write_csv

    with replacing(target) as part:
        if target.suffix.lower() == ".json":
            part.write_text(as_json(values, indent=1) + "\n", encoding="utf-8")
        else:
            write_csv(table, part)


def write_figure(target: Path, axes: Any) -> None:
    """Draw a figure in one step, in the format of its ending."""
    from simdims._journal import replacing
    from simdims.plots import save_figure

    with replacing(target, ending=f"part{target.suffix}") as part:
        save_figure(axes, part)


def as_json(values: Any, indent: int | None = None) -> str:
    """Values as standard JSON; NaN and infinity become null."""
    return json.dumps(_plain(values), indent=indent, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "to_dict"):  # a table
        return _plain(value.to_dict(orient="records"))
    if hasattr(value, "tolist"):  # an array or a NumPy scalar
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
