"""Similarities as pandas frames, networkx graphs and rsatoolbox RDMs, and back through as_similarity."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from simdims import SRF, Similarity, _memory, as_similarity, from_dissimilarity

NAMES = ["cat", "dog", "car", "bus", "van"]


@pytest.fixture(scope="session")
def networkx():
    return pytest.importorskip("networkx")


@pytest.fixture(scope="session")
def rsatoolbox():
    return pytest.importorskip("rsatoolbox")


def complete(n_items=5, seed=0, dtype=np.float64):
    """A dense symmetric matrix with positive entries and ones on the diagonal."""
    S = np.random.default_rng(seed).uniform(0.1, 0.9, (n_items, n_items))
    S = np.triu(S) + np.triu(S, 1).T
    np.fill_diagonal(S, 1.0)
    return S.astype(dtype)


def with_gaps(n_items=5, dtype=np.float64):
    S = complete(n_items, dtype=dtype)
    S[0, 3] = S[3, 0] = S[1, 1] = np.nan
    return S


def stored(entries, n_items=5):
    """A sparse matrix with exactly the given {(row, column): value} stored, on both sides."""
    both = {**entries, **{(j, i): value for (i, j), value in entries.items()}}
    rows, columns = zip(*both, strict=True)
    return sparse.coo_array((list(both.values()), (rows, columns)), shape=(n_items, n_items))


RING = {(0, 1): 0.5, (1, 2): 0.0, (2, 3): 0.75, (3, 4): 0.25, (0, 4): 0.125, (0, 0): 0.9}


def as_dense(matrix, rest):
    if not sparse.issparse(matrix):
        return np.asarray(matrix)
    dense = np.full(matrix.shape, rest)
    matrix = matrix.tocoo()
    dense[matrix.row, matrix.col] = matrix.data
    return dense


# pandas


@pytest.mark.parametrize("labels", [None, NAMES])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_frame_and_back(labels, dtype):
    similarity = Similarity(with_gaps(dtype=dtype), labels)
    frame = similarity.to_frame()
    assert list(frame.index) == list(frame.columns) == (labels or list(range(5)))
    back = as_similarity(frame)
    assert back.labels == similarity.labels
    assert back.values.dtype == dtype
    np.testing.assert_array_equal(back.values, similarity.values)
    frame.iloc[0, 0] = 7.0
    assert similarity.values[0, 0] == 1.0


@pytest.mark.parametrize(("absent", "rest"), [("missing", np.nan), ("zero", 0.0), (0.25, 0.0)])
def test_the_frame_of_sparse_values_is_dense_and_its_unstored_diagonal_missing(absent, rest):
    frame = Similarity(stored(RING), NAMES, absent=absent).to_frame()
    expected = as_dense(stored(RING), rest)
    expected[[1, 2, 3, 4], [1, 2, 3, 4]] = np.nan
    np.testing.assert_array_equal(frame.to_numpy(), expected)


def test_the_frame_of_implicit_values_is_their_product():
    F = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 2.0]])
    np.testing.assert_array_equal(Similarity.from_factors(F, NAMES[:3]).to_frame().to_numpy(), F @ F.T)


# networkx


@pytest.mark.parametrize("labels", [None, NAMES])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_graph_of_dense_values_holds_the_observed_pairs_and_comes_back(networkx, labels, weighted):
    weights = complete(seed=1) if weighted else None
    if weighted:
        weights[1, 2] = weights[2, 1] = 0.0  # leaves the pair out
    similarity = Similarity(with_gaps(), labels, weights)
    graph = similarity.to_networkx()
    names = labels or list(range(5))
    assert list(graph) == names
    assert networkx.number_of_selfloops(graph) == 0
    assert not graph.has_edge(names[0], names[3])
    assert graph.has_edge(names[1], names[2]) == (not weighted)
    assert graph[names[0]][names[1]]["weight"] == similarity.values[0, 1]
    assert graph.nodes[names[0]]["self_similarity"] == 1.0
    assert "self_similarity" not in graph.nodes[names[1]]
    back = as_similarity(graph)
    assert back.absent == "missing"
    assert back.labels == similarity.labels
    assert back.density == similarity.density
    seen = ~np.isnan(similarity.values) & (True if weights is None else weights > 0)
    np.testing.assert_array_equal(as_dense(back.values, np.nan), np.where(seen, similarity.values, np.nan))
    if weighted:
        np.testing.assert_array_equal(as_dense(back.weights, 0.0), np.where(seen, weights, 0.0))


@pytest.mark.parametrize("absent", ["missing", "zero", 0.25])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_graph_of_sparse_values_comes_back_as_it_was(networkx, absent, weighted):
    weights = stored({pair: value + 1 for pair, value in RING.items()}) if weighted else None
    similarity = Similarity(stored(RING), NAMES, weights, absent)
    graph = similarity.to_networkx()
    assert graph.number_of_edges() == 5
    assert graph["dog"]["car"]["weight"] == 0.0
    back = as_similarity(graph)
    assert (back.absent, back.labels, back.density) == (absent, similarity.labels, similarity.density)
    for name in ("values", "weights") if weighted else ("values",):
        one, other = getattr(back, name), getattr(similarity, name)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert as_similarity(graph, absent="zero").absent == "zero"


def test_pairs_left_out_beside_zeros_have_no_place_in_a_graph(networkx):
    similarity = Similarity(stored({**RING, (1, 3): np.nan}), absent="zero")
    with pytest.raises(ValueError, match=r"1 missing.*\.npz"):
        similarity.to_networkx()
    assert Similarity(stored({**RING, (1, 3): np.nan}), absent="missing").to_networkx().number_of_edges() == 5


def test_a_graph_of_implicit_values_is_complete(networkx):
    graph = Similarity.from_factors([[1.0, 0.0], [0.5, 0.5], [0.0, 2.0]]).to_networkx()
    assert {(i, j): data["weight"] for i, j, data in graph.edges(data=True)} == {(0, 1): 0.5, (0, 2): 0.0, (1, 2): 1.0}


def test_les_miserables_are_fitted_as_a_graph(networkx):
    graph = networkx.les_miserables_graph()
    similarity = as_similarity(graph, absent="zero")
    assert similarity.labels == tuple(graph)
    np.testing.assert_array_equal(similarity.values.toarray(), networkx.to_numpy_array(graph))
    assert SRF(n_components=3, random_state=0).fit(similarity.to_networkx()).embedding_.shape == (77, 3)
    assert dict(similarity.info) == {"source": "networkx Graph"}


def test_edges_without_a_weight_count_one_and_isolated_nodes_stay(networkx):
    graph = networkx.path_graph(3)
    graph.add_node(3)
    similarity = as_similarity(graph, absent=0.1)
    assert similarity.labels is None
    assert similarity.n_items == 4
    np.testing.assert_array_equal(similarity.values.toarray()[0], [0, 1, 0, 0])


def test_a_graph_must_say_what_pairs_without_an_edge_mean(networkx):
    with pytest.raises(ValueError, match="absent must"):
        as_similarity(networkx.path_graph(3))


def test_a_directed_graph_needs_symmetrize_where_its_sides_differ(networkx):
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", 0.5), ("b", "a", 0.25), ("b", "c", 0.5)])
    with pytest.raises(ValueError, match=r"between 0\.5 at \('a', 'b'\) and 0\.25 at \('b', 'a'\).*symmetrize"):
        as_similarity(graph, absent="zero")
    mean = as_similarity(graph, absent="zero", symmetrize="mean").values.toarray()
    np.testing.assert_array_equal(mean, [[0, 0.375, 0], [0.375, 0, 0.25], [0, 0.25, 0]])
    undirected = as_similarity(networkx.path_graph(3), absent="zero", symmetrize="mean")
    np.testing.assert_array_equal(undirected.values.toarray()[0], [0, 1, 0])


def test_the_diagonal_is_a_self_loop_or_a_nodes_self_similarity(networkx):
    graph = networkx.Graph()
    graph.add_edge("a", "b", weight=0.5)
    graph.add_edge("a", "a", weight=0.9)
    graph.nodes["b"]["self_similarity"] = 0.8
    np.testing.assert_array_equal(as_similarity(graph, absent="zero").values.toarray(), [[0.9, 0.5], [0.5, 0.8]])
    graph.nodes["a"]["self_similarity"] = 0.9
    as_similarity(graph, absent="zero")
    graph.nodes["a"]["self_similarity"] = 0.7
    with pytest.raises(ValueError, match=r"got a self-loop of 0\.9 and self_similarity 0\.7 for 'a'"):
        as_similarity(graph, absent="zero")


def test_labels_beside_a_graph_must_be_its_nodes(networkx):
    assert as_similarity(networkx.path_graph(3), labels=NAMES[:3], absent="zero").labels == tuple(NAMES[:3])
    named = networkx.path_graph(NAMES[:3])
    assert as_similarity(named, labels=NAMES[:3], absent="zero").labels == tuple(NAMES[:3])
    with pytest.raises(ValueError, match=r"nodes of the graph .*labels.*another order"):
        as_similarity(named, labels=NAMES[2::-1], absent="zero")
    with pytest.raises(ValueError, match=r"labels .*'1'"):
        as_similarity(networkx.path_graph([1, "1", 2]), absent="zero")


@pytest.mark.parametrize(
    ("make", "fragment"),
    [
        (lambda nx: nx.MultiGraph([(0, 1), (0, 1)]), "MultiGraph"),
        (lambda nx: nx.MultiDiGraph([(0, 1)]), "MultiDiGraph"),
        (lambda nx: nx.Graph(), "at least one node"),
        (lambda nx: nx.empty_graph(3), "at least one edge"),
        (lambda nx: nx.Graph([(0, 1, {"weight": "much"})]), r"weight .*'much' on the edge from 0 to 1"),
        (lambda nx: nx.Graph([(0, 1, {"weight": None})]), r"weight .*None"),
        (lambda nx: nx.Graph([(0, 1, {"weight": -1.0})]), "1 negative pair"),
        (lambda nx: nx.Graph([(0, 1, {"pair_weight": 2}), (1, 2)]), "pair_weight must"),
    ],
)
def test_other_graphs_are_refused(networkx, make, fragment):
    with pytest.raises(ValueError, match=fragment):
        as_similarity(make(networkx), absent="zero")


# rsatoolbox


@pytest.mark.parametrize("labels", [None, NAMES])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_rdm_holds_the_distance_to_the_largest_similarity_and_comes_back(rsatoolbox, labels, dtype):
    S = with_gaps(dtype=dtype)
    S[2, 2] = 1.5
    similarity = Similarity(S, labels)
    rdms = similarity.to_rsatoolbox()
    assert isinstance(rdms, rsatoolbox.rdm.RDMs)
    assert (rdms.n_rdm, rdms.n_cond) == (1, 5)
    D = rdms.get_matrices()[0]
    off_diagonal = ~np.eye(5, dtype=bool)
    np.testing.assert_array_equal(D[off_diagonal], (1.5 - S.astype(np.float64))[off_diagonal])
    back = as_similarity(rdms)
    assert back.labels == similarity.labels
    assert back.values.dtype == dtype
    np.testing.assert_allclose(back.values, similarity.values, rtol=0, atol=2**-53)
    assert back.info["source"] == "rsatoolbox RDMs"


@given(seed=st.integers(0, 2**32 - 1), n_items=st.integers(2, 7), scale=st.sampled_from([1e-12, 0.1, 1.0, 1e9]))
def test_any_similarity_survives_an_rdm_to_the_rounding_of_the_largest(seed, n_items, scale):
    pytest.importorskip("rsatoolbox")
    rng = np.random.default_rng(seed)
    S = scale * complete(n_items, seed) ** rng.integers(1, 9)
    S[0, -1] = S[-1, 0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        back = as_similarity(Similarity(S).to_rsatoolbox()).values
    np.testing.assert_allclose(back, S, rtol=0, atol=np.spacing(scale))
    # Float32 values lie far enough apart to come back exactly.
    single = (scale * complete(n_items, seed)).astype(np.float32)
    np.testing.assert_array_equal(as_similarity(Similarity(single).to_rsatoolbox()).values, single)


@pytest.mark.parametrize("absent", ["missing", "zero"])
def test_an_rdm_of_sparse_values_is_dense(rsatoolbox, absent):
    similarity = Similarity(stored(RING), NAMES, absent=absent)
    back = as_similarity(similarity.to_rsatoolbox())
    np.testing.assert_array_equal(back.values, similarity.to_frame().to_numpy())


@pytest.mark.parametrize(
    "similarity",
    [
        lambda: Similarity(complete(), weights=complete(seed=1)),
        lambda: Similarity(stored(RING), absent=0.25),
    ],
)
def test_an_rdm_cannot_hold_how_much_a_pair_counts(rsatoolbox, similarity):
    with pytest.raises(ValueError, match=r"weights|absent=0\.25"):
        similarity().to_rsatoolbox()
    as_similarity(similarity().to_frame()).to_rsatoolbox()


def test_an_rdm_comes_back_after_rsatoolbox_saved_sorted_and_cut_it(rsatoolbox, tmp_path):
    similarity = Similarity(with_gaps(), NAMES)
    rdms = similarity.to_rsatoolbox()
    rdms.save(str(tmp_path / "rdms.h5"))
    loaded = as_similarity(rsatoolbox.rdm.load_rdm(str(tmp_path / "rdms.h5")))
    assert loaded.labels == tuple(NAMES)
    np.testing.assert_allclose(loaded.values, similarity.values, rtol=0, atol=2**-53)
    rdms.sort_by(labels="alpha")
    order = np.argsort(NAMES)
    np.testing.assert_allclose(as_similarity(rdms).values, with_gaps()[np.ix_(order, order)], rtol=0, atol=2**-53)
    cut = as_similarity(rdms.subset_pattern("labels", ["bus", "cat", "dog"]))
    assert cut.labels == ("bus", "cat", "dog")
    places = [3, 0, 1]
    np.testing.assert_allclose(cut.values, with_gaps()[np.ix_(places, places)], rtol=0, atol=2**-53)


def test_an_rdm_that_rsatoolbox_changed_is_one_of_a_users_own(rsatoolbox):
    ranks = rsatoolbox.rdm.rank_transform(Similarity(complete(), NAMES).to_rsatoolbox())
    D = ranks.get_matrices()[0]
    similarity = as_similarity(ranks)
    np.testing.assert_allclose(similarity.values, 1 - D / D.max())
    assert similarity.labels == tuple(NAMES)


@pytest.mark.parametrize(
    ("descriptors", "expected"),
    [
        ({}, None),
        ({"labels": NAMES}, tuple(NAMES)),
        ({"conds": np.array(NAMES)}, tuple(NAMES)),
        ({"conds": np.arange(5)}, None),
        ({"conds": [11, 12, 13, 14, 15]}, ("11", "12", "13", "14", "15")),
        ({"picture": NAMES, "category": ["a", "a", "b", "b", "b"]}, tuple(NAMES)),
        ({"picture": NAMES, "file": [f"{name}.png" for name in NAMES]}, None),
        ({"picture": NAMES, "name": NAMES[::-1]}, tuple(NAMES[::-1])),
        ({"position": [0.1, 0.2, 0.3, 0.4, 0.5]}, None),
    ],
)
def test_an_rdm_of_a_users_own_is_read_as_from_dissimilarity_does(rsatoolbox, descriptors, expected):
    features = np.random.default_rng(0).random((5, 8))
    data = rsatoolbox.data.Dataset(features, obs_descriptors={"row": np.arange(5)})
    measured = rsatoolbox.rdm.calc_rdm(data, method="euclidean")
    rdms = rsatoolbox.rdm.RDMs(
        measured.get_vectors(), dissimilarity_measure="euclidean", pattern_descriptors=dict(descriptors)
    )
    similarity = as_similarity(rdms)
    np.testing.assert_array_equal(similarity.values, from_dissimilarity(measured.get_matrices()[0]).values)
    assert similarity.labels == expected
    assert similarity.info["dissimilarity_measure"] == "euclidean"


def test_several_rdms_are_refused_with_the_ways_out(rsatoolbox):
    rdms = rsatoolbox.rdm.RDMs(np.random.default_rng(0).random((3, 10)))
    with pytest.raises(ValueError, match=r"RDM.*3.*from_dissimilarity"):
        as_similarity(rdms)
    assert from_dissimilarity(rdms.get_matrices()).n_items == as_similarity(rdms[0]).n_items == 5


def test_labels_beside_an_rdm_must_be_its_own(rsatoolbox):
    rdms = Similarity(complete(), NAMES).to_rsatoolbox()
    with pytest.raises(ValueError, match=r"patterns of the RDM .*labels"):
        as_similarity(rdms, labels=NAMES[::-1])
    unnamed = Similarity(complete()).to_rsatoolbox()
    assert as_similarity(unnamed, labels=NAMES).labels == tuple(NAMES)
    with pytest.raises(ValueError, match="absent must be None"):
        as_similarity(unnamed, absent="zero")


# Memory and libraries


@pytest.mark.parametrize(("method", "size"), [("to_frame", "5 items .*200 bytes"), ("to_networkx", "6 edges")])
def test_what_does_not_fit_into_memory_is_refused_before_it_is_made(networkx, monkeypatch, method, size):
    similarity = Similarity(stored({**RING, (1, 3): 0.5}), absent="zero")
    monkeypatch.setattr(_memory, "available_bytes", lambda: 100)
    monkeypatch.setattr(_memory, "_ALWAYS_THERE", 0)
    with pytest.raises(MemoryError, match=size):
        getattr(similarity, method)()


@pytest.mark.parametrize(("method", "library"), [("to_networkx", "networkx"), ("to_rsatoolbox", "rsatoolbox.rdm")])
def test_a_library_that_is_not_installed_is_named(monkeypatch, method, library):
    package = library.partition(".")[0]
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"{method} needs {package}.*pip install {package}"):
        getattr(Similarity(complete()), method)()


def test_other_libraries_are_not_imported_for_those_who_do_not_use_them():
    script = (
        "import sys; from simdims import as_similarity; as_similarity([[1.0]]); "
        "sys.exit(bool({'networkx', 'rsatoolbox', 'pandas', 'simdims.io.exchange'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
