"""Files of named arrays (.npy, .npz, HDF5, MATLAB): the square matrix or stack in them, and the names beside it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.spatial.distance import squareform

from simdims._dependencies import library
from simdims._memory import require
from simdims.similarity import Parts
from simdims.similarity.symmetry import n_items_of, people_first

MATLAB_NUMBERS = {
    "double", "single", "logical", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
}  # fmt: skip
PICKLED = "Python objects, which are stored as a pickle and never loaded: a pickle can run any code"
STRUCTURED = "a structured array"
# Kinds whose size in bytes does not follow from their shape, or is not known.
UNSIZED = ("objects", STRUCTURED)


# Kinds that may name the items: MATLAB keeps lists of texts in cell arrays.
MAY_BE_NAMES = ("text", "a cell array")


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
        values = np.load(path, allow_pickle=False)
    return Parts(people_first(values) if values.ndim == 3 else values, info={"found": f"an array of {variable}"})


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
    key, field = _split_field(variables, key)
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
        if variables[key].kind != "struct":
            return _parts(key, checked(values), variables, labels, names_of)
        fields = values.dtype.names or ()
        elements = [{name: _mat_content(record[name]) for name in fields} for record in values.ravel()]
    stack = stack_of(key, field, elements)
    with reading(".mat"):
        return _stack_parts(stack, variables, labels, names_of)


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
    stacks = [name for name, variable in variables.items() if variable.kind == "struct" or _is_stack(variable)]
    if len(stacks) == 1:
        return stacks[0]
    if stacks:
        raise ValueError(f"key must say which of {' and '.join(stacks)} to read, got None: this file holds {listed}.")
    pickled = [name for name, variable in variables.items() if variable.kind == "objects"]
    also = f"; {' and '.join(pickled)} hold {PICKLED}" if pickled else ""
    raise ValueError(f"this must hold a square matrix of numbers, got none: it holds {listed}{also}.")


def _is_stack(variable: Variable) -> bool:
    shape = variable.shape
    return variable.kind == "numbers" and len(shape) == 3 and shape[1] in (shape[0], shape[2]) and min(shape) > 0


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
    values = people_first(values) if values.ndim == 3 else values
    n_items = values.shape[-1] if values.ndim == 3 else values.shape[0] if values.ndim else 0
    info = {"found": found, "variable": key}
    texts = [name for name, found in variables.items() if found.kind in MAY_BE_NAMES and n_items in found.shape]
    lists = {} if labels is not None else {name: tuple(names_of(name)) for name in texts}
    lists = {name: names for name, names in lists.items() if len(names) == len(set(names)) == n_items}
    if len(set(lists.values())) != 1:
        return Parts(values, info=info)
    source, names = next(iter(lists.items()))
    return Parts(values, names, named_by=source, info={**info, "found": f"{found}, labels in {source}"})


class Stack(NamedTuple):
    """The matrices in one field of a MATLAB struct array, the people they belong to, and the items if it names them."""

    key: str
    values: np.ndarray
    people: list[str] | None
    labels: tuple[str, ...] | None


def stack_of(key: str, field: str | None, elements: Sequence[Mapping[str, Any]]) -> Stack:
    """Return the matrices of a MATLAB struct array, one per element, or of a struct with a matrix or stack in a field.

    An element is a mapping of its fields to an array of numbers, a text, a list of texts, or None for all else.
    """
    fields = list(elements[0]) if elements else []
    count = "the field" if len(fields) == 1 else f"the {len(fields)} fields"
    listed = f"{count} {', '.join(fields)}" if fields else "no fields"
    if field is not None and field not in fields:
        raise ValueError(f"key must name a field of {key}, got {field!r}: the struct has {listed}.")
    candidates = [name for name in fields if _holds_matrices(elements, name)] if field is None else [field]
    told = [name for name in candidates if re.search("rdm|sim|dist", name, re.IGNORECASE)]
    candidates = told if len(told) == 1 else candidates
    if len(candidates) != 1:
        which = f"square matrices in {' and '.join(candidates)}" if candidates else "square matrices in none of them"
        raise ValueError(
            f"key must say which field of the struct {key} holds the matrices, as in {key}.RDM, got {listed}, with "
            f"{which}."
        )
    name = candidates[0]
    arrays = [element[name] for element in elements]
    if not all(isinstance(array, np.ndarray) for array in arrays):
        raise ValueError(f"{key}.{name} must hold numbers, got something else in some or all elements of the struct.")
    shapes = list(dict.fromkeys(" x ".join(map(str, array.shape)) for array in arrays))
    if len(shapes) > 1:
        raise ValueError(
            f"{key}.{name} must hold matrices of one size, got {', '.join(shapes[:4])} in {len(arrays)} elements: "
            "leave out what does not belong, or average only the items that all of them have."
        )
    squares = [_as_square(array) for array in arrays]
    values = squares[0] if len(squares) == 1 else np.stack(squares)
    values = people_first(values) if values.ndim == 3 else values
    n_items = values.shape[-1]
    lists = (content for content in elements[0].values() if isinstance(content, list))
    labels = next((tuple(names) for names in lists if len(names) == len(set(names)) == n_items), None)
    return Stack(f"{key}.{name}", values, _people_of(elements) if len(elements) > 1 else None, labels)


def _holds_matrices(elements: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether a field is a square matrix, a stack or a long vector of pairs in every element; sizes may differ."""
    return all(isinstance(element[name], np.ndarray) and _is_matrix(element[name]) for element in elements)


def _is_matrix(array: np.ndarray) -> bool:
    if array.ndim == 3:
        return _is_stack(Variable(array.shape, "numbers"))
    is_square = array.ndim == 2 and array.shape[0] == array.shape[1] > 1
    # Vectors of 3 numbers are colours, not the pairs of 3 items.
    return is_square or (_is_vector(array) and array.size > 3 and n_items_of(array.size) is not None)


def _is_vector(array: np.ndarray) -> bool:
    return array.ndim == 2 and 1 in array.shape and array.size > 1


def _as_square(array: np.ndarray) -> np.ndarray:
    """A matrix as it stands; of a vector of pairs the matrix without a diagonal."""
    n_items = n_items_of(array.size) if _is_vector(array) else None
    if n_items is None:
        return array
    square = squareform(array.ravel().astype(np.float64), checks=False)
    np.fill_diagonal(square, np.nan)
    return square


def _people_of(elements: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """The texts that name the elements of a struct array: in its field "name", or in the only one of distinct texts."""
    texts = {
        name: [str(element[name]) for element in elements]
        for name in elements[0]
        if all(isinstance(element[name], str) for element in elements)
    }
    distinct = [name for name, names in texts.items() if len(set(names)) == len(names)]
    chosen = "name" if "name" in texts else distinct[0] if len(distinct) == 1 else None
    return None if chosen is None else texts[chosen]


def _stack_parts(
    stack: Stack, variables: Mapping[str, Variable], labels: Sequence[str] | None, names_of: Callable[[str], Any]
) -> Parts:
    known = {**variables, stack.key: Variable(stack.values.shape, "numbers")}
    parts = _parts(stack.key, stack.values, known, labels, names_of)
    if stack.people is not None:
        parts = parts._replace(info={**parts.info, "people": stack.people})
    if labels is None and parts.labels is None and stack.labels is not None:
        parts = parts._replace(labels=stack.labels, named_by=stack.key.partition(".")[0])
    return parts


def _split_field(variables: Mapping[str, Variable], key: str | None) -> tuple[str | None, str | None]:
    """A key as variable and field: "rdms.RDM" is the field RDM of the struct rdms."""
    variable, dot, field = (key or "").partition(".")
    is_field = bool(dot) and variable in variables and variables[variable].kind == "struct"
    return (variable, field) if is_field else (key, None)


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
    return Variable(shape, "text" if kind == "char" else "a cell array" if kind == "cell" else kind)


def _mat_content(cell: Any) -> Any:
    """What a field of a struct holds: numbers, a text, a list of texts, or None for all else."""
    if not isinstance(cell, np.ndarray):
        return None
    if cell.dtype.kind == "U":
        return str(cell.ravel()[0]) if cell.size == 1 else "" if cell.size == 0 else [str(row).rstrip() for row in cell]
    if cell.dtype == object:
        texts = [_mat_content(inner) for inner in cell.ravel()]
        return texts if texts and all(isinstance(text, str) for text in texts) else None
    return cell if cell.dtype.kind in "biuf" else None


def _read_mat_hdf5(path: Path, key: str | None, labels: Sequence[str] | None) -> Parts:
    h5py = library("h5py", "Reading .mat files of version 7.3", '"simdims[io]"')
    with reading(".mat"), h5py.File(path, "r") as file:
        variables = {name: _mat_hdf5_variable(found) for name, found in file.items() if not name.startswith("#")}
    key, field = _split_field(variables, key)
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

        if variables[key].kind != "struct":
            return _parts(key, _mat_hdf5_values(file[key]), variables, labels, names_of)
        elements = _mat_hdf5_elements(h5py, file, file[key])
    stack = stack_of(key, field, elements)
    with reading(".mat"), h5py.File(path, "r") as file:
        return _stack_parts(stack, variables, labels, names_of)


def _mat_hdf5_elements(h5py: Any, file: Any, struct: Any) -> list[dict[str, Any]]:
    """The elements of a struct array, whose fields are references, or the one of a struct, whose fields are arrays."""
    columns = {}
    for name, found in struct.items():
        is_array = getattr(found, "dtype", None) == h5py.ref_dtype and not _matlab_class(found)
        columns[name] = [file[one] for one in found[...].ravel()] if is_array else [found]
    n_elements = max(map(len, columns.values()), default=0)
    columns = {name: found for name, found in columns.items() if len(found) == n_elements}
    return [
        {name: _mat_hdf5_content(h5py, file, found[place]) for name, found in columns.items()}
        for place in range(n_elements)
    ]


def _mat_hdf5_content(h5py: Any, file: Any, found: Any) -> Any:
    """What a field of a struct holds; see _mat_content."""
    kind = _matlab_class(found)
    if "MATLAB_empty" in found.attrs:
        return "" if kind == "char" else np.empty((0, 0)) if kind in MATLAB_NUMBERS else None
    if kind == "char":
        return _characters(found[...].ravel())
    if kind == "cell" and found.dtype == h5py.ref_dtype:
        texts = [_mat_hdf5_content(h5py, file, file[one]) for one in found[...].ravel()]
        return texts if texts and all(isinstance(text, str) for text in texts) else None
    return found[...].T if kind in MATLAB_NUMBERS and hasattr(found, "shape") else None


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
