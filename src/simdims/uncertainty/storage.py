"""Save and load a Bootstrap: plain arrays in an .npz file without pickle."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from simdims._journal import replacing_file
from simdims._parameters import ParameterError
from simdims.io import as_path, check_file, named_in_errors
from simdims.io.arrays import npz_variables, reading, require_all
from simdims.uncertainty.result import Bootstrap

#: The version of the format, and the array that holds it.
FORMAT, MARK = 1, "simdims_bootstrap"


def save_bootstrap(sure: Bootstrap, path: str | os.PathLike[str]) -> None:
    """Write a Bootstrap; numbers and names become JSON."""
    target = as_path(path)
    if target.suffix.lower() != ".npz":
        raise ParameterError("path", "must end in .npz", f"{target.name!r}")
    values = {field.name: getattr(sure, field.name) for field in fields(sure)}
    arrays: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    plain = {name: value for name, value in values.items() if name not in arrays}
    with replacing_file(Path(target).resolve()) as file:
        np.savez(file, **{MARK: np.array(FORMAT), "text": np.array(json.dumps(plain)), **arrays})


def load_bootstrap(path: str | os.PathLike[str]) -> Bootstrap:
    """Read what save_bootstrap wrote."""
    target = as_path(path)
    check_file(target, (".npz",))
    with named_in_errors(target):
        variables = npz_variables(target)
    if MARK not in variables:
        raise ParameterError("path", "must be a file that Bootstrap.save wrote", f"{target.name!r}")
    require_all(variables)
    with named_in_errors(target), reading("saved Bootstrap"), np.load(target, allow_pickle=False) as file:
        if int(file[MARK]) != FORMAT:
            raise ValueError(f"format {int(file[MARK])}, which a newer simdims wrote")
        values: dict[str, Any] = json.loads(str(file["text"]))
        values |= {name: file[name] for name in file if name not in (MARK, "text")}
        for name in ("labels", "systems"):
            values[name] = None if values[name] is None else tuple(values[name])
        values["dimension_names"] = tuple(values.get("dimension_names", ()))
        return Bootstrap(**values)
