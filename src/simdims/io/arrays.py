"""Files of named arrays (.npy, .npz, HDF5, MATLAB): the one square matrix in them, and the names beside it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from simdims._memory import require
from simdims._parts import Parts, library

MATLAB_NUMBERS = {
    "double", "single", "logical", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
}  # fmt: skip
PICKLED = "Python objects, which are stored as a pickle and never loaded: a pickle can run any code"
STRUCTURED = "a structured array"
# Kinds whose size in bytes does not follow from their shape, or is not known.
UNSIZED = ("objects", STRUCTURED)


class Variable(NamedTuple):
    """One array of a file: its shape, and whether it holds numbers, sparse numbers, text, objects or something else."""

    shape: tuple[int, ...]
    kind: str
    n_bytes: int = 0

    def __str__(self) -> str:
        size = " x ".join(map(str, self.shape)) or "a single value"
        return size if self.kind == "numbers" else f"{size}, {self.kind}"


@contextmanager
def reading(kind: str) -> Iterator[None]:
    """Say in a sentence what a library says by an exception of its own when a file is damaged."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # parsers of damaged bytes may raise anything
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ValueError(
            f"this must be a {kind} file, got one that is damaged, cut short or of another type ({reason.rstrip('.')})."
        ) from None


def read_npy(path: Path) -> Parts:
    """Read the one array of an .npy file."""
    with reading(".npy"), path.open("rb") as file:
        variable = _npy_variable(file)
        _refuse_claim(variable, path.stat().st_size - file.tell(), "the file")
    if variable.kind == "objects":
        raise ValueError(f"this must hold an array of numbers, got {PICKLED}.")
    _require(variable)
    with reading(".npy"):
        return Parts(np.load(path, allow_pickle=False), info={"found": f"an array of {variable}"})


def read_npz(path: Path, key: str | None, labels: Sequence[str] | None) -> Parts:
    """Read the one square array of an .npz file, or the sparse matrix that scipy wrote there."""
    variables = npz_variables(path)
    if key is None and {"format", "shape", "data"} <= set(variables):
        require_all(variables)
        with reading(".npz"):
            return Parts(checked(sparse.load_npz(path)), info={"found": "a sparse matrix of scipy"})
    key = choose(variables, key)
    if variables[key].kind == "objects":
        raise ValueError(f"{key} must hold an array of numbers, got {PICKLED}.")
    _require(variables[key])
    with reading(".npz"), np.load(path, allow_pickle=False) as file:

        def names_of(name: str) -> Sequence[str]:
            return [str(text) for text in file[name].ravel()]

        return _parts(key, file[key], variables, labels, names_of)


def npz_variables(path: Path) -> dict[str, Variable]:
    """The arrays of an .npz file by name, after checking that as many bytes are stored of each as it claims to have.

    So nothing is allocated for more than there is, and an array is read to its end, where its checksum is compared.
    """
    variables = {}
    with reading(".npz"), zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.filename.endswith(".npy"):
                name = entry.filename.removesuffix(".npy")
                with archive.open(entry) as file:
                    variable = variables[name] = _npy_variable(file)
                    stored = entry.file_size - file.tell()
                _refuse_claim(variable, stored, name)
                if variable.kind not in UNSIZED and variable.n_bytes < stored:
                    raise ValueError(f"{name} has {stored} bytes for an array of {variable}")
    return variables


def require_all(variables: Mapping[str, Variable]) -> None:
    """Refuse arrays that together are more than the memory that is left."""
    n_bytes = sum(variable.n_bytes for variable in variables.values())
    require(n_bytes, "Reading this file", "leave items out, or store float32 or a sparse matrix")


def read_hdf5(path: Path, key: str | None, labels: Sequence[str] | None) -> Parts:
    """Read the one square dataset of an HDF5 file."""
    h5py = library("h5py", f"Reading {path.suffix.lower()} files", '"simdims[io]"')
    with reading("HDF5"), h5py.File(path, "r") as file:
        variables: dict[str, Variable] = {}

        def note(name: str, found: Any) -> None:
            if isinstance(found, h5py.Dataset):
                variables[name] = _hdf5_variable(h5py, found)

        file.visititems(note)
    key = choose(variables, key)
    _require(variables[key])
    with reading("HDF5"), h5py.File(path, "r") as file:

        def names_of(name: str) -> Sequence[str]:
            return [str(text) for text in file[name].asstr()[...].ravel()]

        return _parts(key, file[key][...], variables, labels, names_of)


def read_mat(path: Path, key: str | None, labels: Sequence[str] | None) -> Parts:
    """Read the one square variable of a MATLAB file, of version 7.3 (HDF5) or before."""
    with path.open("rb") as file:
        start = file.read(520)
    if start.startswith(b"MATLAB 7.3") or b"\x89HDF" in (start[:4], start[512:516]):
        return _read_mat_hdf5(path, key, labels)
    from scipy import io

    with reading(".mat"):
        variables = {name: _mat_variable(shape, kind) for name, shape, kind in io.whosmat(path)}
    key = choose(variables, key)
    _require(variables[key])
    with reading(".mat"):

        def names_of(name: str) -> Sequence[str]:
            cells = io.loadmat(path, variable_names=[name])[name].ravel()
            if cells.dtype.kind == "U":  # the rows of a matrix of characters, filled up with blanks
                return [str(row).rstrip() for row in cells]
            texts = [cell for cell in cells if isinstance(cell, np.ndarray) and cell.dtype.kind == "U"]
            return ["".join(cell.ravel()) for cell in texts] if len(texts) == len(cells) else []

        values = io.loadmat(path, variable_names=[key])[key]
        return _parts(key, checked(values), variables, labels, names_of)


def choose(variables: Mapping[str, Variable], key: str | None) -> str:
    """Return the name of the variable that `key` names, or of the only square matrix there is."""
    listed = "; ".join(f"{name} ({variable})" for name, variable in variables.items()) or "nothing"
    if key is not None:
        name = key if key in variables else key.strip("/")
        if name in variables:
            return name
        raise ValueError(f"key must name a variable of this file, got {key!r}: it holds {listed}.")
    square = [
        name
        for name, variable in variables.items()
        if variable.kind in ("numbers", "sparse") and len(variable.shape) == 2 and len(set(variable.shape)) == 1
    ]
    if any(variables[name].shape[0] > 1 for name in square):
        square = [name for name in square if variables[name].shape[0] > 1]  # MATLAB's numbers are 1 x 1
    if len(square) == 1:
        return square[0]
    if square:
        raise ValueError(
            f"key must say which of the {len(square)} square matrices to read, got None: this file holds {listed}."
        )
    pickled = [name for name, variable in variables.items() if variable.kind == "objects"]
    also = f"; {' and '.join(pickled)} hold {PICKLED}" if pickled else ""
    raise ValueError(f"this must hold a square matrix of numbers, got none: it holds {listed}{also}.")


def checked(matrix: Any) -> Any:
    """Return a matrix after checking, if it is sparse, that its indices lie within it; compiled code relies on it."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return matrix


def _parts(
    key: str,
    values: Any,
    variables: Mapping[str, Variable],
    labels: Sequence[str] | None,
    names_of: Callable[[str], Sequence[str]],
) -> Parts:
    """The chosen array, labelled by the one list of as many distinct names in the file if there is just one."""
    found = f"{key}, {'a sparse matrix' if sparse.issparse(values) else 'an array'} of {variables[key]}"
    n_items = values.shape[0] if values.ndim else 0
    texts = [name for name, variable in variables.items() if variable.kind == "text" and n_items in variable.shape]
    lists = {} if labels is not None else {name: tuple(names_of(name)) for name in texts}
    lists = {name: names for name, names in lists.items() if len(names) == len(set(names)) == n_items}
    if len(set(lists.values())) != 1:
        return Parts(values, info={"found": found})
    source, names = next(iter(lists.items()))
    return Parts(values, names, named_by=source, info={"found": f"{found}, labels in {source}"})


def _require(variable: Variable) -> None:
    size = " x ".join(map(str, variable.shape))
    require(variable.n_bytes, f"An array of {size}", "leave items out, or store float32 or a sparse matrix")


def _refuse_claim(variable: Variable, n_stored: int, where: str) -> None:
    if variable.kind not in UNSIZED and variable.n_bytes > n_stored:
        raise ValueError(
            f"an array of {variable} is said to need {variable.n_bytes} bytes, but {where} has {max(n_stored, 0)}"
        )


def _npy_variable(file: Any) -> Variable:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        return Variable((), STRUCTURED)
    kind = _kind(dtype)
    return Variable(shape, kind, int(np.prod(shape, dtype=object)) * dtype.itemsize)


def _kind(dtype: np.dtype) -> str:
    if dtype.hasobject:
        return "objects"
    return "numbers" if dtype.kind in "biuf" else "text" if dtype.kind == "U" else str(dtype)


def _hdf5_variable(h5py: Any, dataset: Any) -> Variable:
    shape = dataset.shape or ()
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return Variable(shape, "text")
    return Variable(shape, _kind(dataset.dtype), dataset.size * dataset.dtype.itemsize if dataset.size else 0)


def _mat_variable(shape: tuple[int, ...], kind: str) -> Variable:
    if kind in MATLAB_NUMBERS:
        return Variable(shape, "numbers", int(np.prod(shape, dtype=object)) * 8)
    return Variable(shape, "text" if kind in ("char", "cell") else kind)


def _read_mat_hdf5(path: Path, key: str | None, labels: Sequence[str] | None) -> Parts:
    h5py = library("h5py", "Reading .mat files of version 7.3", '"simdims[io]"')
    with reading(".mat"), h5py.File(path, "r") as file:
        variables = {name: _mat_hdf5_variable(found) for name, found in file.items() if not name.startswith("#")}
    key = choose(variables, key)
    _require(variables[key])
    with reading(".mat"), h5py.File(path, "r") as file:

        def names_of(name: str) -> Sequence[str]:
            if file[name].dtype != h5py.ref_dtype:
                return [_characters(row).rstrip() for row in file[name][...].T]
            cells = [file[cell] for cell in file[name][...].ravel()]
            are_texts = all(_matlab_class(cell) == "char" for cell in cells)
            return (
                ["" if "MATLAB_empty" in c.attrs else _characters(c[...].ravel()) for c in cells] if are_texts else []
            )

        return _parts(key, _mat_hdf5_values(file[key]), variables, labels, names_of)


def _mat_hdf5_variable(found: Any) -> Variable:
    if "MATLAB_sparse" in found.attrs:
        return Variable(_sparse_shape(found), "sparse")
    if not hasattr(found, "shape"):
        return Variable((), _matlab_class(found) or "group")
    # HDF5 counts the dimensions of MATLAB's arrays from the other end.
    return _mat_variable(tuple(found.shape[::-1]), _matlab_class(found) or "unknown")


def _matlab_class(found: Any) -> str:
    name = found.attrs.get("MATLAB_class", "")
    return name.decode() if isinstance(name, bytes) else str(name)


def _mat_hdf5_values(found: Any) -> Any:
    if "MATLAB_sparse" not in found.attrs:
        return found[...].T
    if "data" not in found:  # nothing is stored
        return sparse.csc_array(_sparse_shape(found))
    rows, starts = found["ir"][...].astype(np.int64), found["jc"][...].astype(np.int64)
    return checked(sparse.csc_array((found["data"][...], rows, starts), shape=_sparse_shape(found)))


def _sparse_shape(found: Any) -> tuple[int, int]:
    return int(found.attrs["MATLAB_sparse"]), len(found["jc"]) - 1


def _characters(codes: np.ndarray) -> str:
    return codes.astype("<u2").tobytes().decode("utf-16-le")
