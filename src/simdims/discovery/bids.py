"""Export dimensions as a BIDS derivative: .tsv tables, each with a .json file that describes its columns."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims import __version__
from simdims._journal import as_folder, cannot_write, name_beside
from simdims._parameters import ParameterError

if TYPE_CHECKING:
    from simdims.discovery.result import Discovery

_BIDS_VERSION = "1.10.0"
_DESCRIPTION = "dataset_description.json"

#: Descriptions of columns; other columns are dimensions.
_COLUMNS = {
    "item": {"Description": "The item."},
    "system": {"Description": "The person, brain region, model or other system."},
    "dimension": {"Description": "The dimension, which is a column of embedding.tsv."},
    "name": {"Description": "The name that people gave the dimension."},
    "share": {
        "Description": "Share of the dimension in the reconstruction of the similarities.",
        "Units": "proportion",
    },
    "reliability": {"Description": "Correlation of the dimension with those of other random starts, matched."},
    "top_items": {"Description": "The items with the largest loadings, the largest first."},
}


def export(found: Discovery, folder: str | os.PathLike[str]) -> Path:
    """Write the tables to a temporary folder, then move it to `folder`; see Discovery.to_bids."""
    target = as_folder(folder, "folder").absolute()
    if not (is_free(target) or is_export(target)):
        raise ParameterError("folder", "must be new, empty, or an earlier export", f"{str(target)!r}, which is neither")
    top = found.dimensions_frame()["top_items"]
    tables = {
        "embedding": (found.embedding_frame().rename_axis("item"), "Loading of the item on {dimension}: {top}."),
        "dimensions": (found.dimensions_frame().rename_axis("dimension"), "{dimension}"),
    }
    if found.weights is not None:
        weights = found.weights_frame().rename_axis("system")
        tables["weights"] = (weights, "Weight of {dimension} in the system; the mean over systems is 1.")
    part = name_beside(target, "part")
    try:
        part.mkdir(parents=True)
        for name, (table, template) in tables.items():
            plain = table.reset_index()
            # BIDS requires tabs, n/a, and quotes around text with tabs.
            plain.to_csv(part / f"{name}.tsv", sep="\t", na_rep="n/a", index=False, lineterminator="\n")
            described = {
                column: _COLUMNS.get(column)
                or {"Description": template.format(dimension=column, top=top.get(column, "no items"))}
                for column in map(str, plain.columns)
            }
            _write_json(part / f"{name}.json", described)
        generated = {"Name": "simdims", "Version": __version__}
        about = {"Name": "Dimensions of similarities", "BIDSVersion": _BIDS_VERSION, "DatasetType": "derivative"}
        _write_json(part / _DESCRIPTION, {**about, "GeneratedBy": [generated]})
        (part / "README").write_text(found.methods_text() + "\n", encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        os.replace(part, target)
    except OSError as error:
        raise cannot_write(target, error) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def is_free(folder: Path) -> bool:
    """Whether a folder is empty or does not exist."""
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))


def is_export(folder: Path) -> bool:
    """Whether a folder contains only files that `export` wrote."""
    names = {"README", _DESCRIPTION}
    names |= {f"{name}{suffix}" for name in ("embedding", "dimensions", "weights") for suffix in (".tsv", ".json")}
    if not folder.is_dir() or not {one.name for one in folder.iterdir()} <= names:
        return False
    try:
        described = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
        return bool(described["GeneratedBy"][0]["Name"] == "simdims")
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return False


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
