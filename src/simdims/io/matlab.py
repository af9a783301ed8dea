"""MATLAB files of every version: variables, cell arrays of text, and structs with one matrix per person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial.distance import squareform

from simdims._dependencies import library
from simdims._parameters import ParameterError
from simdims.io.arrays import ArrayFile, Variable, checked, is_stack, reading
from simdims.similarity.symmetry import n_items_of, people_first

NUMBERS = {
    "double", "single", "logical", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
}  # fmt: skip


def open_mat(path: Path) -> ArrayFile:
    """Open a MATLAB file of any version."""
    with path.open("rb") as file:
        start = file.read(520)
    is_hdf5 = start.startswith(b"MATLAB 7.3") or b"\x89HDF" in (start[:4], start[512:516])
    return _open_hdf5(path) if is_hdf5 else _open_before_7_3(path)


class Stack(NamedTuple):
    """The matrices in one field of a MATLAB struct array, with the names of people and, if given, of items."""

    key: str
    values: np.ndarray
    people: list[str] | None
    labels: tuple[str, ...] | None


def stack_of(key: str, field: str | None, elements: Sequence[Mapping[str, Any]]) -> Stack:
    """Return the matrices of a struct array, one per element, or of a struct with a matrix or stack in a field."""
    fields = list(elements[0]) if elements else []
    count = "the field" if len(fields) == 1 else f"the {len(fields)} fields"
    listed = f"{count} {', '.join(fields)}" if fields else "no fields"
    if field is not None and field not in fields:
        raise ParameterError("key", "must name a field of the struct", f"{key}.{field}; {key} has {listed}")
    of_matrices = (name for name in fields if all(_is_matrix(element[name]) for element in elements))
    candidates = list(of_matrices) if field is None else [field]
    named = [name for name in candidates if re.search("rdm|sim|dist", name, re.IGNORECASE)]
    candidates = named if len(named) == 1 else candidates
    if len(candidates) != 1:
        where = " and ".join(candidates) or "none of them"
        got = f"{key} with {listed}, and square matrices in {where}"
        raise ParameterError("key", "must name the field that holds the matrices, as in people.RDM", got)
    name = candidates[0]
    arrays = [element[name] for element in elements]
    if not all(isinstance(array, np.ndarray) for array in arrays):
        raise ValueError(f"{key}.{name} must hold numbers, got something else in some or all elements of the struct.")
    shapes = list(dict.fromkeys(" x ".join(map(str, array.shape)) for array in arrays))
    if len(shapes) > 1:
        got = f"{', '.join(shapes[:4])} in {len(arrays)} elements"
        remedy = "remove those that do not belong, or keep only the items that all of them have"
        raise ValueError(f"{key}.{name} must hold matrices of equal size, got {got}: {remedy}.")
    squares = [_as_square(array) for array in arrays]
    values = squares[0] if len(squares) == 1 else np.stack(squares)
    values = people_first(values) if values.ndim == 3 else values
    n_items = values.shape[-1]
    lists = (content for content in elements[0].values() if isinstance(content, list))
    labels = next((tuple(names) for names in lists if len(names) == len(set(names)) == n_items), None)
    return Stack(f"{key}.{name}", values, _people_of(elements) if len(elements) > 1 else None, labels)


def _is_matrix(array: Any) -> bool:
    """Whether an array is a square matrix, a stack or a vector of pairs."""
    if not isinstance(array, np.ndarray):
        return False
    if array.ndim == 3:
        return is_stack(array.shape)
    is_square = array.ndim == 2 and array.shape[0] == array.shape[1] > 1
    # Vectors of 3 numbers are colours, not the pairs of 3 items.
    return is_square or (_is_vector(array) and array.size > 3 and n_items_of(array.size) is not None)


def _is_vector(array: np.ndarray) -> bool:
    return array.ndim == 2 and 1 in array.shape and array.size > 1


def _as_square(array: np.ndarray) -> np.ndarray:
    """Convert a vector of pairs to a matrix without a diagonal; a matrix is unchanged."""
    n_items = n_items_of(array.size) if _is_vector(array) else None
    if n_items is None:
        return array
    square = squareform(array.ravel().astype(np.float64), checks=False)
    np.fill_diagonal(square, np.nan)
    return square


def _people_of(elements: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """The names of a struct array's elements: its field "name", or its only field of distinct text."""
    texts = {
        name: [str(element[name]) for element in elements]
        for name in elements[0]
        if all(isinstance(element[name], str) for element in elements)
    }
    distinct = [name for name, names in texts.items() if len(set(names)) == len(names)]
    chosen = "name" if "name" in texts else distinct[0] if len(distinct) == 1 else None
    return None if chosen is None else texts[chosen]


def _open_before_7_3(path: Path) -> ArrayFile:
    from scipy import io

    def load(name: str) -> Any:
        return io.loadmat(path, variable_names=[name])[name]

    def read(name: str) -> Any:
        if variables[name].kind != "struct":
            return checked(load(name))
        records = load(name)
        return [{field: _content(record[field]) for field in records.dtype.names or ()} for record in records.ravel()]

    with reading(".mat"):
        variables = {name: _variable(shape, kind) for name, shape, kind in io.whosmat(path)}
    return ArrayFile(".mat", variables, read, lambda name: _as_list(_content(load(name))))


def _variable(shape: tuple[int, ...], kind: str) -> Variable:
    if kind in NUMBERS:
        return Variable(shape, "numbers", int(np.prod(shape, dtype=object)) * 8)
    return Variable(shape, "text" if kind == "char" else "a cell array" if kind == "cell" else kind)


def _content(cell: Any) -> Any:
    """The content of a field or variable: numbers, a text, a list of text, or None for anything else."""
    if not isinstance(cell, np.ndarray):
        return None
    if cell.dtype.kind == "U":  # the rows of a character matrix, padded with blanks
        return str(cell.ravel()[0]) if cell.size == 1 else "" if cell.size == 0 else [str(row).rstrip() for row in cell]
    if cell.dtype == object:
        return _if_texts([_content(inner) for inner in cell.ravel()])
    return cell if cell.dtype.kind in "biuf" else None


def _if_texts(contents: list[Any]) -> list[str] | None:
    return contents if contents and all(isinstance(content, str) for content in contents) else None


def _as_list(content: Any) -> list[str]:
    return [content] if isinstance(content, str) else content if isinstance(content, list) else []


def _open_hdf5(path: Path) -> ArrayFile:
    """Open a file of version 7.3, which is HDF5."""
    h5py = library("h5py", "Reading .mat files of version 7.3", '"simdims[io]"')

    def read(name: str) -> Any:
        with h5py.File(path, "r") as file:
            is_struct = variables[name].kind == "struct"
            return _hdf5_elements(h5py, file, file[name]) if is_struct else _hdf5_values(file[name])

    def texts(name: str) -> Sequence[str]:
        with h5py.File(path, "r") as file:
            return _as_list(_hdf5_content(h5py, file, file[name]))

    with reading(".mat"), h5py.File(path, "r") as file:
        variables = {name: _hdf5_variable(found) for name, found in file.items() if not name.startswith("#")}
    return ArrayFile(".mat", variables, read, texts)


def _hdf5_elements(h5py: Any, file: Any, struct: Any) -> list[dict[str, Any]]:
    """The elements of a struct array (whose fields are references), or the single one of a struct."""
    columns = {}
    for name, found in struct.items():
        is_array = getattr(found, "dtype", None) == h5py.ref_dtype and not _matlab_class(found)
        columns[name] = [file[one] for one in found[...].ravel()] if is_array else [found]
    n_elements = max(map(len, columns.values()), default=0)
    columns = {name: found for name, found in columns.items() if len(found) == n_elements}
    return [
        {name: _hdf5_content(h5py, file, found[place]) for name, found in columns.items()}
        for place in range(n_elements)
    ]


def _hdf5_content(h5py: Any, file: Any, found: Any) -> Any:
    """The content of a field of a struct; see _content."""
    kind = _matlab_class(found)
    if "MATLAB_empty" in found.attrs:
        return "" if kind == "char" else np.empty((0, 0)) if kind in NUMBERS else None
    if kind == "char":
        codes = np.atleast_2d(found[...].T).astype("<u2")
        rows = [row.tobytes().decode("utf-16-le") for row in codes]
        return rows[0] if len(rows) == 1 else [row.rstrip() for row in rows]
    if kind == "cell" and found.dtype == h5py.ref_dtype:
        return _if_texts([_hdf5_content(h5py, file, file[one]) for one in found[...].ravel()])
    return found[...].T if kind in NUMBERS and hasattr(found, "shape") else None


def _hdf5_variable(found: Any) -> Variable:
    if "MATLAB_sparse" in found.attrs:
        return Variable(_sparse_shape(found), "sparse")
    if not hasattr(found, "shape"):
        return Variable((), _matlab_class(found) or "group")
    # HDF5 reverses the order of MATLAB's dimensions.
    return _variable(tuple(found.shape[::-1]), _matlab_class(found) or "unknown")


def _matlab_class(found: Any) -> str:
    name = found.attrs.get("MATLAB_class", "")
    return name.decode() if isinstance(name, bytes) else str(name)


def _hdf5_values(found: Any) -> Any:
    if "MATLAB_sparse" not in found.attrs:
        return found[...].T
    if "data" not in found:  # an empty dataset
        return sparse.csc_array(_sparse_shape(found))
    rows, starts = found["ir"][...].astype(np.int64), found["jc"][...].astype(np.int64)
    return checked(sparse.csc_array((found["data"][...], rows, starts), shape=_sparse_shape(found)))


def _sparse_shape(found: Any) -> tuple[int, int]:
    return int(found.attrs["MATLAB_sparse"]), len(found["jc"]) - 1
