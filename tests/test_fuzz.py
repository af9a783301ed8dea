"""Random input: it is accepted or refused with an error of ours, without a crash, a hang or too much memory."""

import io
import json
import os
import re
import signal
import tempfile
import warnings
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import savemat

from simdims import (
    Similarity,
    as_similarity,
    from_associations,
    from_dissimilarity,
    from_features,
    from_ratings,
    from_triplets,
    load_similarity,
)
from simdims._parameters import ParameterError, ParameterTypeError
from simdims.io import LOADED

resource = pytest.importorskip("resource", reason="this system has no limit of memory to set")

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),  # an overflow that nobody noticed
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no alarm to end a hang with"),
]

#: An example may take so many seconds, and add so many bytes to the process.
SECONDS, BYTES = 10, 2**30

#: For a longer search, set SIMDIMS_FUZZ_EXAMPLES.
EXAMPLES = int(os.environ.get("SIMDIMS_FUZZ_EXAMPLES", "100"))

fuzz = settings(
    max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


class HangError(Exception):
    """What a call that does not end is ended with."""


@contextmanager
def bounded():
    """End what takes too long, and let no more memory be allocated than there is to spare."""

    def stop(*_):
        raise HangError

    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    before = signal.signal(signal.SIGALRM, stop), resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, before[1][1]))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before[0])
        resource.setrlimit(resource.RLIMIT_AS, before[1])


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is looked up in /proc")


REFUSALS = (ValueError, TypeError, MemoryError, FileNotFoundError, ParameterError, ParameterTypeError)
#: Of these words an error has at least one.
WORDS = ["must", "need", "cannot", "is used by", "No such"]
#: What the calls of the test that is running returned.
TAKEN = []
#: Tests of what can hardly be valid, or has to be.
NONE_TAKEN = {
    "test_random_bytes_are_refused_in_a_sentence",
    "test_a_whole_file_of_every_type_is_read",
    "test_what_is_no_name_of_a_file_is_refused",
}


@pytest.fixture(autouse=True)
def some_examples_are_taken(request):
    """A test in which every example is refused would say nothing of what is accepted."""
    TAKEN.clear()
    yield
    is_checked = any(
        suffix in request.node.name for suffix in ("[.h5]", "[.hdf5]", "[.h5ad]", "[.npz]")
    )  # damage shows
    assert TAKEN or is_checked or request.function.__name__ in NONE_TAKEN


def check(x, *calls):
    """Check that each call returns a valid Similarity or refuses `x` with an error of ours, and does not change it."""
    before = x.copy() if hasattr(x, "copy") and not isinstance(x, type) else x
    for call in calls:
        with bounded():
            try:
                TAKEN.append(call())
                assert is_sound(TAKEN[-1])
                continue
            except REFUSALS as error:
                refusal = error
        assert type(refusal) in REFUSALS, repr(refusal)  # not one that a library made up
        assert str(refusal).endswith((".", "?")), repr(refusal)
        words = ["would need"] if isinstance(refusal, MemoryError) else WORDS
        assert any(word in str(refusal) for word in words), repr(refusal)
    assert is_same(x, before)


def is_same(x, before):
    if isinstance(x, np.ndarray) and not isinstance(x, np.ma.MaskedArray) and x.dtype != object:
        return x.tobytes() == before.tobytes()
    if sparse.issparse(x):
        return repr(x.tocoo()) == repr(before.tocoo())
    return not isinstance(x, np.ndarray | pd.DataFrame) or repr(x) == repr(before)


def is_sound(S):
    """Whether what was accepted is what a Similarity promises to be."""
    if S.factors is not None:
        return bool(np.isfinite(S.factors).all())
    stored = S.values.data if sparse.issparse(S.values) else S.values
    dense = S.values.toarray() if sparse.issparse(S.values) else S.values
    is_symmetric = np.array_equal(dense, dense.T, equal_nan=True)
    known = stored[~np.isnan(stored)]
    return bool(is_symmetric and np.isfinite(known).all() and (known >= 0).all() and 0 <= S.density <= 1)


# --- what people pass --------------------------------------------------------------------------------------------

odd_numbers = st.sampled_from(
    [0.0, -0.0, 1.0, 0.5, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-200, 1e200, 2**53, 10**30, 10**400]
)
numbers = st.one_of(st.floats(0, 1), st.floats(), st.integers(-5, 5), odd_numbers)
texts = st.one_of(st.text(max_size=4), st.sampled_from(["", "nan", "1e5", "0,5", "\0", "\ud800", "NA", "1.0", "ä\n"]))
junk = st.one_of(
    st.none(), st.booleans(), numbers, texts, st.binary(max_size=4), st.complex_numbers(), st.just(pd.NA),
    st.just(pd.NaT), st.dates(), st.decimals(allow_nan=False), st.fractions(), st.just(object), st.builds(dict),
    st.builds(set),
)  # fmt: skip
DTYPES = [
    "float64", "float32", "float16", "longdouble", ">f8", ">f4", "int8", "int64", "uint64", "bool", "object", "U3",
    "S3", "complex128", "M8[s]", "m8[s]", "V8",
]  # fmt: skip


@st.composite
def arrays(draw):
    """Arrays of every shape and type, and of many values that are none."""
    shape = draw(st.sampled_from([(3, 3), (4, 4), (1, 1), (2, 2), (0, 0), (3, 0), (2, 3), (3,), (), (2, 2, 2), (6,)]))
    size = int(np.prod(shape, dtype=int))
    cells = draw(st.lists(st.one_of(numbers, junk) if draw(st.booleans()) else numbers, min_size=size, max_size=size))
    table = np.empty(shape, dtype=object)
    table.ravel()[:] = cells if size else []
    if table.ndim == 2 and shape[0] == shape[1] and draw(st.booleans()):
        lower = np.tril_indices(shape[0], -1)
        table[lower] = table.T[lower]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(ValueError, TypeError, OverflowError, AttributeError):
            table = table.astype(draw(st.sampled_from(DTYPES)))
    if draw(st.booleans()):
        table = np.asfortranarray(table)
    if draw(st.integers(0, 4)) == 0:
        mask = np.zeros(shape, dtype=bool)
        mask.ravel()[: size // 2] = True
        table = np.ma.array(table, mask=mask)
    return table


@st.composite
def frames(draw):
    table = np.atleast_2d(np.ma.getdata(draw(arrays())))
    assume(table.ndim == 2 and table.dtype.kind != "V")
    names = st.one_of(texts, junk.filter(lambda name: not isinstance(name, dict | set)))
    axes = []
    for length in table.shape:
        kind = draw(st.sampled_from(["none", "text", "odd", "levels", "dates", "same"]))
        axes.append(
            {
                "none": None,
                "text": [f"i{k}" for k in range(length)],
                "odd": draw(st.lists(names, min_size=length, max_size=length)),
                "levels": pd.MultiIndex.from_arrays([range(length), range(length)]) if length else None,
                "dates": pd.date_range("2020", periods=length),
                "same": ["a"] * length,
            }[kind]
        )
    try:
        frame = pd.DataFrame(table.astype(object), index=axes[0], columns=axes[1])
    except UnicodeEncodeError:  # half of a character, which pandas cannot store
        assume(False)
    if not draw(st.booleans()) or not frame.columns.is_unique:
        return frame
    with warnings.catch_warnings(), suppress(TypeError):  # older versions of pandas try complex numbers as integers
        warnings.simplefilter("ignore")
        frame = frame.convert_dtypes()
    return frame


@st.composite
def sparse_matrices(draw):
    table = np.ma.getdata(draw(arrays()))
    assume(table.ndim == 2 and table.size and table.dtype.kind in "biufc" and table.dtype.itemsize in (1, 4, 8))
    matrix = sparse.coo_array(table if table.dtype.isnative else table.astype(float))
    return matrix.asformat(draw(st.sampled_from(["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])))


@st.composite
def measurements(draw):
    """Rows of numbers such as features are; some may be equal."""
    n_rows, n_columns = draw(st.integers(3, 6)), draw(st.integers(1, 4))
    row = st.lists(st.floats(0, 1), min_size=n_columns, max_size=n_columns)
    return np.array(draw(st.lists(row, min_size=n_rows, max_size=n_rows)))


nested = st.recursive(numbers, lambda inner: st.lists(inner, max_size=4), max_leaves=16)
anything = st.one_of(arrays(), frames(), sparse_matrices(), nested, junk)
columns = st.one_of(texts, junk, arrays())


# --- arrays and tables -------------------------------------------------------------------------------------------


@needs_proc
@fuzz
@given(
    x=anything,
    labels=st.one_of(st.none(), st.lists(junk, max_size=4), columns),
    weights=st.one_of(st.none(), anything),
    absent=st.one_of(st.none(), st.sampled_from(["missing", "zero", 0.5]), junk, arrays()),
    symmetrize=st.one_of(st.none(), st.sampled_from(["mean", "max"]), junk, arrays()),
)
def test_as_similarity_takes_it_or_says_why_not(x, labels, weights, absent, symmetrize):
    check(x, lambda: as_similarity(x, labels=labels, weights=weights, absent=absent, symmetrize=symmetrize))


@needs_proc
@fuzz
@given(x=anything)
def test_matrices_alone(x):
    check(
        x,
        lambda: as_similarity(x),
        lambda: as_similarity(x, absent="zero"),
        lambda: as_similarity(x, symmetrize="mean"),
        lambda: Similarity(x),
        lambda: Similarity.from_factors(x),
    )


@needs_proc
@fuzz
@given(
    X=st.one_of(measurements(), anything),
    kernel=st.one_of(st.sampled_from(["auto", "linear", "rbf", "cosine"]), junk.filter(lambda k: not callable(k))),
    bandwidth=st.one_of(st.just(0.4), numbers, junk),
    implicit=st.one_of(st.booleans(), junk),
    n_landmarks=st.one_of(st.none(), st.integers(-1, 5), junk),
)
def test_features(X, kernel, bandwidth, implicit, n_landmarks):
    check(
        X,
        lambda: from_features(X, kernel=kernel, bandwidth=bandwidth, implicit=implicit, n_landmarks=n_landmarks),
        *(lambda kernel=kernel: from_features(X, kernel=kernel) for kernel in ("auto", "rbf", "cosine")),
    )


@needs_proc
@fuzz
@given(
    D=st.one_of(
        anything,
        st.lists(st.one_of(arrays(), frames()), max_size=3),
        st.lists(st.floats(0.1, 10), min_size=3, max_size=3),  # the upper triangle of three items
    ),
    method=st.one_of(st.sampled_from(["max", "correlation", "gaussian"]), junk),
    sigma=st.one_of(st.none(), numbers, junk),
    negative=st.one_of(st.sampled_from([None, "clip", "shift"]), junk),
)
@example(D=[1.0, 4.0, 3.0], method="max", sigma=None, negative=None)
def test_dissimilarities(D, method, sigma, negative):
    check(
        D,
        lambda: from_dissimilarity(D, method=method, sigma=sigma, negative=negative),
        lambda: from_dissimilarity(D),
        lambda: from_dissimilarity(D, method="gaussian"),
    )


@needs_proc
@fuzz
@given(
    triplets=st.one_of(
        anything,
        st.lists(st.lists(st.one_of(st.integers(0, 5), texts, junk), min_size=3, max_size=3), max_size=6),
        st.lists(st.permutations([0, 1, 2]), min_size=1, max_size=5),
    ),
    odd=st.one_of(st.just(-1), st.integers(-4, 4), junk),
    n_items=st.one_of(st.none(), st.integers(-1, 6), junk),
    smoothing=st.one_of(st.just(1.0), numbers, junk),
)
def test_triplets(triplets, odd, n_items, smoothing):
    check(
        triplets,
        lambda: from_triplets(triplets, odd=odd, n_items=n_items, smoothing=smoothing),
        lambda: from_triplets(triplets),
    )


@st.composite
def trials(draw):
    """A table of two columns of items and one of numbers, which may have cells that are neither."""
    if draw(st.integers(0, 3)) == 0:
        pairs = [("cat", "dog"), ("dog", "cat"), ("car", "dog"), ("cat", "car"), ("car", "cat")]
        values = draw(st.lists(st.integers(1, 5), min_size=5, max_size=5))
        return pd.DataFrame(pairs, columns=["one", "two"]).assign(n=values)
    n_rows = draw(st.integers(0, 5))
    names = (
        st.one_of(st.sampled_from(["cat", "dog", "car"]), texts, junk) if draw(st.booleans()) else st.sampled_from("ab")
    )
    values = st.one_of(st.floats(0, 5), numbers, junk) if draw(st.booleans()) else numbers

    def column(cells):
        return draw(st.lists(cells, min_size=n_rows, max_size=n_rows))

    table = {"one": column(names), "two": column(names), "n": column(values)}
    return pd.DataFrame(table) if draw(st.booleans()) else table


@needs_proc
@fuzz
@given(
    table=st.one_of(trials(), anything),
    one=st.one_of(st.just("one"), columns),
    low=st.one_of(st.none(), numbers, junk),
    high=st.one_of(st.none(), numbers, junk),
)
def test_tables_of_trials(table, one, low, high):
    check(
        table,
        lambda: from_ratings(table, item1=one, item2="two", rating="n", low=low, high=high),
        lambda: from_ratings(table, item1="one", item2="two", rating="n"),
        lambda: from_associations(table, cue=one, response="two", count="n"),
        lambda: from_associations(table, cue="one", response="two", count="n"),
    )


# --- files -------------------------------------------------------------------------------------------------------


def whole_files():
    """A valid file of every type, as bytes."""
    S = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
    square = "item,cat,dog,car\ncat,1,0.5,0.2\ndog,0.5,1,0.3\ncar,0.2,0.3,1\n"
    pairs = "item1,item2,value,weight\ncat,dog,0.5,1\ndog,car,0.3,2\ncat,car,0.2,1\n"
    files = {
        ".csv": [square.encode(), pairs.encode(), square.replace(",", ";").replace(".", ",").encode("utf-16")],
        ".tsv": [square.replace(",", "\t").encode()],
        ".txt": [square.replace(",", " ").encode("utf-8-sig"), b"1 0.5\n0.5 1\n"],
        ".edgelist": [b"# a graph\ncat dog 0.5\ndog car 0.3\n"],
        ".edges": [b"0,1\n1,2\n"],
    }
    for suffix, write in (
        (".npy", lambda file: np.save(file, S)),
        (".npz", lambda file: np.savez(file, S=S, names=np.array(["cat", "dog", "car"]))),
        (".mat", lambda file: savemat(file, {"S": S, "names": np.array(["cat", "dog", "car"], dtype=object)})),
        (".parquet", lambda file: pd.DataFrame(S, columns=list("abc")).to_parquet(file, engine="pyarrow")),
    ):
        file = io.BytesIO()
        write(file)
        files[suffix] = [file.getvalue()]
    with tempfile.TemporaryDirectory() as folder:
        Similarity(S, labels=["cat", "dog", "car"], weights=np.ones((3, 3))).save(Path(folder, "own.npz"))
        listed = Similarity(sparse.csr_array(S), absent="zero")
        listed.save(Path(folder, "sparse.npz"))
        sparse.save_npz(Path(folder, "scipy.npz"), sparse.csr_array(S))
        files[".npz"] += [Path(folder, name).read_bytes() for name in ("own.npz", "sparse.npz", "scipy.npz")]
        import h5py
        import networkx

        with h5py.File(Path(folder, "a.h5"), "w") as file:
            file["group/S"] = S
            file["names"] = ["cat", "dog", "car"]
        networkx.write_graphml(listed.to_networkx(), Path(folder, "a.graphml"))
        files[".h5"] = files[".hdf5"] = [Path(folder, "a.h5").read_bytes()]
        with h5py.File(Path(folder, "a.mat"), "w") as file:
            file["S"] = S
            file["S"].attrs["MATLAB_class"] = b"double"
        files[".mat"].append(Path(folder, "a.mat").read_bytes())
        files[".graphml"] = [Path(folder, "a.graphml").read_bytes()]
        files |= {
            suffix: [write(Path(folder, f"new{suffix}"), S) for write in writes] for suffix, writes in NEW.items()
        }
        files[".mat"].append(write_meadows_mat(Path(folder, "m.mat"), S))
    return files


def write_sheet(path, S):
    pd.DataFrame(S, NAMES, NAMES).to_excel(path, engine="odf" if path.suffix == ".ods" else "openpyxl")
    return path.read_bytes()


def write_feather(path, S):
    pd.DataFrame(S, columns=NAMES).to_feather(path)
    return path.read_bytes()


def write_r(path, S):
    """A data frame as rdata writes it, not compressed, so that its reader meets the damage."""
    import rdata

    table = pd.DataFrame(S, columns=NAMES)
    if path.suffix == ".rds":
        rdata.write_rds(path, table, compression=None)
    else:
        rdata.write_rda(path, {"S": table}, compression=None)
    return path.read_bytes()


def write_anndata(path, S):
    """What anndata writes, without which this can be tested."""
    import h5py

    with h5py.File(path, "w") as file:
        file["obs/_index"] = NAMES
        file["obs"].attrs["_index"] = "_index"
        file["obsp/dense"] = S
        file["X"] = S[:, :2]
    return path.read_bytes()


def write_sparse_anndata(path, S):
    import h5py

    write_anndata(path, S)
    stored = sparse.csr_array(S)
    with h5py.File(path, "a") as file:
        del file["obsp/dense"]
        for name in ("data", "indices", "indptr"):
            file[f"obsp/listed/{name}"] = getattr(stored, name)
        file["obsp/listed"].attrs.update({"encoding-type": "csr_matrix", "shape": S.shape})
    return path.read_bytes()


def write_meadows_json(path, S):
    tasks = [
        {"task": {"name": name}, "stimuli": [{"name": item} for item in NAMES], "rdm": list(S[PAIRS])} for name in "ab"
    ]
    path.write_text(json.dumps({"tasks": tasks}))
    return path.read_bytes()


def write_meadows_mat(path, S):
    savemat(path, {"rdmutv_a_b": S[PAIRS][None], "stimuli_a_b": np.array(NAMES)}, do_compression=False)
    return path.read_bytes()


NAMES = ["cat", "dog", "car"]
PAIRS = np.triu_indices(3, 1)
#: The files that other programs write.
NEW = {
    ".xlsx": [write_sheet],
    ".ods": [write_sheet],
    ".feather": [write_feather],
    ".rds": [write_r],
    ".rda": [write_r],
    ".rdata": [write_r],
    ".h5ad": [write_anndata, write_sparse_anndata],
    ".json": [write_meadows_json],
}


WHOLE = whole_files()
PIECES = [
    b"", b"\0", b"\n", b",", b'"', b"nan", b"inf", b"-1", b"1e999", b"\xff", b"\xef\xbb\xbf", b"PK\x03\x04", b"\n\n\n",
    b"0" * 40, b"999999999", b"item", b"\x93NUMPY", b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"\x80\x04\x95", b",,,,",
]  # fmt: skip


@st.composite
def mutated(draw, suffix):
    """A valid file with bytes changed, cut, doubled, put in or cut off; of a zip file perhaps those of a member."""
    content = draw(st.sampled_from(WHOLE[suffix]))
    if suffix not in (".xlsx", ".ods") or draw(st.booleans()):
        return draw(damaged(content))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    tables = [name for name in parts if name in ("content.xml", "xl/worksheets/sheet1.xml", "xl/workbook.xml")]
    chosen = draw(st.sampled_from(tables))
    if draw(st.booleans()):
        claims = list(re.finditer(rb'="([A-Z]*[\d.]+)"', parts[chosen]))
        start, end = draw(st.sampled_from(claims)).span(1)
        claim = draw(st.sampled_from([b"0", b"-1", b"99999999", b"XFD1048576", b"ZZZZZZZ1", b"1e9", b""]))
        parts[chosen] = parts[chosen][:start] + claim + parts[chosen][end:]
    else:
        parts[chosen] = draw(damaged(parts[chosen]))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return file.getvalue()


@st.composite
def damaged(draw, whole):
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        length = draw(st.integers(0, 12))
        action = draw(st.sampled_from(["flip", "cut", "put", "double", "end"]))
        if action == "flip" and content:
            content[at] ^= draw(st.integers(1, 255))
        elif action == "cut":
            del content[at : at + length]
        elif action == "put":
            content[at:at] = draw(st.sampled_from(PIECES))
        elif action == "double":
            content[at:at] = content[at : at + 4 * length]
        elif action == "end":
            del content[at:]
    return bytes(content)


def load(folder, name, content, **options):
    path = Path(folder, name)
    path.write_bytes(content)
    check(content, lambda: load_similarity(path, **options))
    assert path.read_bytes() == content
    assert os.listdir(folder) == [name]
    path.unlink()


def test_a_whole_file_of_every_type_is_read(tmp_path):
    """Otherwise what is made of them is far from what files are."""
    assert set(WHOLE) == set(LOADED)
    for suffix, contents in WHOLE.items():
        for number, content in enumerate(contents):
            path = tmp_path / f"{number}{suffix}"
            path.write_bytes(content)
            try:
                assert is_sound(load_similarity(path))
            except ParameterError as error:
                assert error.name == "absent", suffix  # noqa: PT017
                assert is_sound(load_similarity(path, absent="zero"))


@needs_proc
@pytest.mark.parametrize("suffix", sorted(WHOLE))
def test_damaged_files_are_read_or_refused_in_a_sentence(suffix):
    quick = suffix in (".npy", ".npz", ".csv", ".tsv", ".txt", ".edgelist", ".edges", ".json")

    @settings(fuzz, max_examples=EXAMPLES // 2 if quick else EXAMPLES // 5)
    @given(content=mutated(suffix), absent=st.sampled_from([None, "zero"]))
    def run(content, absent):
        with tempfile.TemporaryDirectory() as folder:
            load(folder, f"file{suffix}", content, absent=absent)

    run()


@needs_proc
@fuzz
@given(
    content=st.one_of(st.binary(max_size=200), st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace"))),
    suffix=st.sampled_from([*LOADED, ".xls", ".pkl", ".zip", ".CSV", "", ".csv.gz", ".doc"]),
    form=st.one_of(st.none(), st.sampled_from(["square", "long"]), junk),
    key=st.one_of(st.none(), junk),
)
def test_random_bytes_are_refused_in_a_sentence(content, suffix, form, key):
    with tempfile.TemporaryDirectory() as folder:
        load(folder, f"file{suffix}", content)
        load(folder, f"file{suffix}", content, form=form, key=key)


@needs_proc
@fuzz
@given(
    lines=st.lists(st.lists(st.one_of(texts, numbers.map(repr)), min_size=1, max_size=4), min_size=1, max_size=5),
    separator=st.sampled_from([",", ";", "\t", " ", "|"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_tables_of_odd_cells_are_read_or_refused_in_a_sentence(lines, separator, end):
    content = end.join(separator.join(cells) for cells in lines).encode("utf-8", "surrogatepass")
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".csv", ".txt", ".edgelist"):
            load(folder, f"file{suffix}", content)
        load(folder, "file.csv", content, form="long")
        load(folder, "file.csv", content, form="square", symmetrize="max")


@needs_proc
@fuzz
@given(path=st.one_of(junk, st.text(max_size=300)))
def test_what_is_no_name_of_a_file_is_refused(path):
    assume(not isinstance(path, str) or not Path(path.replace("\0", "x")).exists())
    with bounded(), pytest.raises((ValueError, TypeError, FileNotFoundError), match=r"path must|No such file"):
        load_similarity(path)
