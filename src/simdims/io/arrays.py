"""Files of named arrays (.npy, .npz, HDF5, MATLAB): find the square matrix or stack, and the names of its items."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from simdims._dependencies import library
from simdims._memory import require
from simdims._parameters import ParameterError
from simdims.similarity import Parts
from simdims.similarity.symmetry import people_first

PICKLED = "Python objects, which are stored as a pickle and never loaded: a pickle can run any code"
STRUCTURED = "a structured array"
# Kinds whose size in bytes does not follow from the shape or is unknown.
UNSIZED = ("objects", STRUCTURED)
# Kinds that may name the items: MATLAB stores lists of text in cell arrays.
MAY_BE_NAMES = ("text", "a cell array")


class Variable(NamedTuple):
    """One array of a file: its shape, and whether it holds numbers, sparse numbers, text, objects or something else."""

    shape: tuple[int, ...]
    kind: str
    n_bytes: int = 0

    def __str__(self) -> str:
        size = " x ".join(map(str, self.shape)) or "a single value"
        return size if self.kind == "numbers" else f"{size}, {self.kind}"


class ArrayFile(NamedTuple):
    """A file of named arrays: their descriptions, and functions that load one by name, unchanged or as text.

    A MATLAB struct is loaded as a list of elements. An element maps fields to an array of numbers, a text, a list of
    text, or None for anything else.
    """

    kind: str
    variables: dict[str, Variable]
    read: Callable[[str], Any]
    texts: Callable[[str], Sequence[str]]


@contextmanager
def reading(kind: str) -> Iterator[None]:
    """Turn any exception that a library raises about a damaged file into a ValueError."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # parsers of damaged files may raise anything
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        got = f"one that is damaged, cut short or of another type ({reason.rstrip('.')})"
        raise ValueError(f"the file must be a valid {kind} file, got {got}.") from None


def read_npy(path: Path) -> Parts:
    """Read the single array of an .npy file."""
    with reading(".npy"), path.open("rb") as file:
        variable = _npy_variable(file)
        _refuse_claim(variable, path.stat().st_size - file.tell(), "the file")
    if variable.kind == "objects":
        raise ValueError(f"the file must contain an array of numbers, got {PICKLED}.")
    _require(variable)
    with reading(".npy"):
        values = np.load(path, allow_pickle=False)
    return Parts(people_first(values) if values.ndim == 3 else values, info={"found": f"an array of {variable}"})


def read_named_arrays(path: Path, key: str | None, labels: Sequence[str] | None) -> Parts:
    """Read the only square matrix or stack of an .npz, HDF5 or MATLAB file, or the variable that `key` names."""
    file = _opened(path)
    if file.kind == ".npz" and key is None and {"format", "shape", "data"} <= set(file.variables):
        require_all(file.variables)
        with reading(".npz"):
            return Parts(checked(sparse.load_npz(path)), info={"found": "a sparse matrix of scipy"})
    if file.kind == ".mat" and key is None:
        from simdims.io.meadows import read_mat

        if (parts := read_mat(file)) is not None:
            return parts
    key, field = _split_field(file.variables, key)
    key = _choose(file.variables, key)
    _require(file.variables[key])
    if file.variables[key].kind != "struct":
        if file.kind == ".npz" and file.variables[key].kind == "objects":
            raise ValueError(f"{key} must hold an array of numbers, got {PICKLED}.")
        with reading(file.kind):
            return _labelled_parts(file, key, file.read(key), labels)
    from simdims.io.matlab import stack_of

    with reading(file.kind):
        elements = file.read(key)
    stack = stack_of(key, field, elements)
    file.variables[stack.key] = Variable(stack.values.shape, "numbers")
    with reading(file.kind):
        parts = _labelled_parts(file, stack.key, stack.values, labels)
    if stack.people is not None:
        parts = parts._replace(info={**parts.info, "people": stack.people})
    if labels is None and parts.labels is None and stack.labels is not None:
        parts = parts._replace(labels=stack.labels, named_by=key)
    return parts


def _labelled_parts(file: ArrayFile, key: str, values: Any, labels: Sequence[str] | None) -> Parts:
    """The chosen array, labelled by the file's only list of distinct names of matching length, if there is one."""
    found = f"{key}, {'a sparse matrix' if sparse.issparse(values) else 'an array'} of {file.variables[key]}"
    values = people_first(values) if values.ndim == 3 else values
    n_items = values.shape[-1] if values.ndim == 3 else values.shape[0] if values.ndim else 0
    info = {"found": found, "variable": key}
    texts = [name for name, one in file.variables.items() if one.kind in MAY_BE_NAMES and n_items in one.shape]
    lists = {} if labels is not None else {name: tuple(file.texts(name)) for name in texts}
    lists = {name: names for name, names in lists.items() if len(names) == len(set(names)) == n_items}
    if len(set(lists.values())) != 1:
        return Parts(values, info=info)
    source, names = next(iter(lists.items()))
    return Parts(values, names, named_by=source, info={**info, "found": f"{found}, labels in {source}"})


def has_pairs(path: Path) -> bool:
    """Whether an AnnData file contains matrices of pairs of observations."""
    return any(name.startswith("obsp/") for name in _opened(path).variables)


def _split_field(variables: Mapping[str, Variable], key: str | None) -> tuple[str | None, str | None]:
    """Split a key into variable and field: "rdms.RDM" is the field RDM of the struct rdms."""
    variable, dot, field = (key or "").partition(".")
    is_field = bool(dot) and variable in variables and variables[variable].kind == "struct"
    return (variable, field) if is_field else (key, None)


def _choose(variables: Mapping[str, Variable], key: str | None) -> str:
    """The variable that `key` names, or the only square matrix or stack."""
    listed = "; ".join(f"{name} ({variable})" for name, variable in variables.items()) or "nothing"
    if key is not None:
        ends = [name for name in variables if name.endswith(f"/{key}")]
        name = key if key in variables or len(ends) != 1 else ends[0]
        if (name := name.strip("/")) in variables:
            return name
        raise ParameterError("key", "must name a variable of this file", f"{key!r}; the file contains {listed}")
    square = [
        name
        for name, variable in variables.items()
        if variable.kind in ("numbers", "sparse") and len(variable.shape) == 2 and len(set(variable.shape)) == 1
    ]
    # MATLAB stores scalars as 1 x 1 matrices.
    square = [name for name in square if variables[name].shape[0] > 1] or square
    stacks = [
        name
        for name, variable in variables.items()
        if variable.kind == "struct" or (variable.kind == "numbers" and is_stack(variable.shape))
    ]
    for found, what in ((square, "square matrices"), (stacks, "stacks of matrices")):
        if len(found) == 1:
            return found[0]
        if found:
            got = f"a file that contains {listed}"
            raise ParameterError("key", f"must name one of the {len(found)} {what} in this file", got)
    pickled = [name for name, variable in variables.items() if variable.kind == "objects"]
    also = f"; {' and '.join(pickled)} hold {PICKLED}" if pickled else ""
    raise ValueError(f"the file must contain a square matrix of numbers, got {listed}{also}.")


def is_stack(shape: tuple[int, ...]) -> bool:
    """Whether a shape is that of a stack of square matrices, with people first or last."""
    return len(shape) == 3 and shape[1] in (shape[0], shape[2]) and min(shape) > 0


def checked(matrix: Any) -> Any:
    """Return a matrix after checking that sparse indices are in bounds, which compiled code assumes."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return matrix


def _require(variable: Variable) -> None:
    size = " x ".join(map(str, variable.shape))
    require(variable.n_bytes, f"An array of {size}", "leave items out, or store float32 or a sparse matrix")


def require_all(variables: Mapping[str, Variable]) -> None:
    """Refuse arrays that together exceed the available memory."""
    n_bytes = sum(variable.n_bytes for variable in variables.values())
    require(n_bytes, "Reading this file", "leave items out, or store float32 or a sparse matrix")


def _opened(path: Path) -> ArrayFile:
    suffix = path.suffix.lower()
    if suffix == ".mat":
        from simdims.io.matlab import open_mat

        return open_mat(path)
    return _npz_file(path) if suffix == ".npz" else _hdf5_file(path)


def _npz_file(path: Path) -> ArrayFile:
    def read(name: str) -> Any:
        with np.load(path, allow_pickle=False) as file:
            return file[name]

    return ArrayFile(".npz", npz_variables(path), read, lambda name: [str(text) for text in read(name).ravel()])


def npz_variables(path: Path) -> dict[str, Variable]:
    """The arrays of an .npz file by name, after checking that each has as many stored bytes as it claims.

    Thus no excess memory is allocated, and arrays are read to the end, where the checksum is verified.
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


def _refuse_claim(variable: Variable, n_stored: int, where: str) -> None:
    if variable.kind not in UNSIZED and variable.n_bytes > n_stored:
        claim = f"an array of {variable} is said to need {variable.n_bytes} bytes"
        raise ValueError(f"{claim}, but {where} has {max(n_stored, 0)}")


def _npy_variable(file: Any) -> Variable:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        return Variable((), STRUCTURED)
    return Variable(shape, _kind(dtype), int(np.prod(shape, dtype=object)) * dtype.itemsize)


def _kind(dtype: np.dtype) -> str:
    if dtype.hasobject:
        return "objects"
    return "numbers" if dtype.kind in "biuf" else "text" if dtype.kind == "U" else str(dtype)


def _hdf5_file(path: Path) -> ArrayFile:
    h5py = library("h5py", f"Reading {path.suffix.lower()} files", '"simdims[io]"')
    variables: dict[str, Variable] = {}

    def note(name: str, found: Any) -> None:
        if _is_sparse_group(h5py, found):
            variables[name] = Variable(tuple(int(length) for length in found.attrs["shape"]), "sparse")
        elif isinstance(found, h5py.Dataset) and name.rpartition("/")[0] not in variables:
            variables[name] = _hdf5_variable(h5py, found)

    def read(name: str) -> Any:
        with h5py.File(path, "r") as file:
            found = file[name]
            if isinstance(found, h5py.Dataset):
                return found[...]
            stored = tuple(found[part][...] for part in ("data", "indices", "indptr"))
            form = sparse.csc_array if found.attrs["encoding-type"] == "csc_matrix" else sparse.csr_array
            return checked(form(stored, shape=variables[name].shape))

    def texts(name: str) -> Sequence[str]:
        with h5py.File(path, "r") as file:
            return [str(text) for text in file[name].asstr()[...].ravel()]

    with reading("HDF5"), h5py.File(path, "r") as file:
        file.visititems(note)
        if path.suffix.lower() == ".h5ad":
            variables = _of_observations(file, variables)
    return ArrayFile("HDF5", variables, read, texts)


def _is_sparse_group(h5py: Any, found: Any) -> bool:
    """Whether a group is a sparse matrix in AnnData's format."""
    is_group = isinstance(found, h5py.Group) and {"data", "indices", "indptr"} <= set(found)
    return is_group and {"shape", "encoding-type"} <= set(found.attrs)


def _of_observations(file: Any, variables: dict[str, Variable]) -> dict[str, Variable]:
    """The contents of an AnnData file about its observations: pairs, features and names."""
    names = f"obs/{file['obs'].attrs['_index']}"
    kept = {name: one for name, one in variables.items() if name.partition("/")[0] in ("obsp", "obsm", "layers", "X")}
    return {**kept, names: variables[names]}


def _hdf5_variable(h5py: Any, dataset: Any) -> Variable:
    shape = dataset.shape or ()
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return Variable(shape, "text")
    return Variable(shape, _kind(dataset.dtype), dataset.size * dataset.dtype.itemsize if dataset.size else 0)
