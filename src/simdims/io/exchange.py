"""Convert similarities to and from objects of pandas, xarray, networkx, rsatoolbox and AnnData."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import squareform

from simdims._dependencies import library
from simdims._memory import require
from simdims._parameters import ParameterError
from simdims.similarity import Parts, Similarity, is_anndata

if TYPE_CHECKING:
    import pandas as pd

    from simdims.systems import SimilaritySet

logger = logging.getLogger("simdims")

MEASURE = "largest similarity - similarity"
# Memory per edge, including its dictionaries.
EDGE_BYTES = 400
# Common names of the descriptor that names the items of an RDM.
NAME_DESCRIPTORS = ("labels", "label", "names", "name", "items", "item", "conds", "conditions", "condition", "stimulus")


def to_array(similarity: Similarity, dtype: Any, copy: bool | None) -> NDArray[Any]:
    """Return the values of a dense Similarity, read-only unless copied, for `Similarity.__array__`."""
    if similarity.factors is not None:
        raise TypeError("A Similarity of factors has no matrix of values: compute it as S.factors @ S.factors.T.")
    if sparse.issparse(similarity.values):
        raise TypeError(
            "A sparse Similarity is not an array: use S.values, or S.to_frame() for a dense table in which missing "
            "pairs are NaN."
        )
    if similarity.weights is not None:
        raise TypeError("A Similarity with weights is not one array: use S.values and S.weights.")
    values = similarity.values
    if dtype is not None and np.dtype(dtype) != values.dtype:
        if copy is False:
            raise ValueError(f"Values of {values.dtype} cannot become {np.dtype(dtype)} without a copy.")
        return values.astype(dtype)
    return values.copy() if copy else values.view()  # a view of read-only values is read-only


def to_frame(S: Similarity) -> pd.DataFrame:
    """Return the values as a DataFrame; see Similarity.to_frame."""
    import pandas as pd

    names = None if S.labels is None else list(S.labels)
    return pd.DataFrame(dense_values(S, copy=True), index=names, columns=names, copy=False)


def to_xarray(S: Similarity) -> Any:
    """Return the values as a DataArray; see Similarity.to_xarray."""
    xarray = library("xarray", "to_xarray", "xarray")
    coordinates = {} if S.labels is None else {"item1": list(S.labels), "item2": list(S.labels)}
    return xarray.DataArray(dense_values(S, copy=True), coordinates, ("item1", "item2"), "similarity")


def to_anndata(S: Similarity) -> Any:
    """Return the matrices as pairwise annotations of observations; see Similarity.to_anndata."""
    anndata = library("anndata", "to_anndata", "anndata")
    import pandas as pd

    names = list(map(str, range(S.n_items))) if S.labels is None else list(S.labels)
    held: Any = dense_values(S, copy=True) if S.factors is not None else S.values.copy()
    matrices = {"similarity": held} | ({} if S.weights is None else {"weights": S.weights.copy()})
    # AnnData requires scipy's sparse matrices, which behave like sparse arrays here.
    pairs = {name: sparse.csr_matrix(one) if sparse.issparse(one) else one for name, one in matrices.items()}
    made = anndata.AnnData(obs=pd.DataFrame(index=pd.Index(names, dtype=object)), obsp=pairs)
    if S.absent is not None:
        made.uns["simdims_absent"] = S.absent
    return made


def to_networkx(S: Similarity) -> Any:
    """Return the observed pairs as a networkx graph; see Similarity.to_networkx."""
    networkx = library("networkx", "to_networkx", "networkx")
    names = range(S.n_items) if S.labels is None else S.labels
    first, second, values, weights = _observed_entries(S)
    off_diagonal = np.flatnonzero(first != second)
    require(EDGE_BYTES * off_diagonal.size, f"A graph of {off_diagonal.size} edges", "keep the matrix, S.values")
    graph = networkx.Graph(simdims_absent="missing" if S.absent is None else S.absent)
    graph.add_nodes_from(names)

    def attributes(row: np.intp, value: str, weight: str) -> dict[str, float]:
        found = {value: float(values[row])}
        return found if weights is None else {**found, weight: float(weights[row])}

    for row in np.flatnonzero(first == second):
        graph.nodes[names[first[row]]].update(attributes(row, "self_similarity", "self_weight"))
    for row in off_diagonal:
        graph.add_edge(names[first[row]], names[second[row]], **attributes(row, "weight", "pair_weight"))
    return graph


def to_rsatoolbox(S: Similarity) -> Any:
    """Return the similarities as the dissimilarities of an rsatoolbox RDM; see Similarity.to_rsatoolbox."""
    rdm = library("rsatoolbox.rdm", "to_rsatoolbox", "rsatoolbox")
    values = _unweighted(S)
    largest = float(np.nanmax(values))
    patterns = {**S.info.get("pattern_descriptors", {}), "self_similarity": values.diagonal().tolist()}
    if S.labels is not None:
        patterns["labels"] = list(S.labels)
    dtype = S.values.dtype if S.factors is None else S.factors.dtype
    own = {name: [value] for name, value in S.info.get("rdm_descriptors", {}).items()}
    return rdm.RDMs(
        squareform(largest - values, checks=False)[None],
        dissimilarity_measure=MEASURE,
        descriptors=dict(S.info.get("descriptors", {})),
        rdm_descriptors={**own, "largest_similarity": [largest], "dtype": [str(dtype)]},
        pattern_descriptors=patterns,
    )


def set_to_xarray(systems: SimilaritySet) -> Any:
    """Return the values of all systems as a DataArray; see SimilaritySet.to_xarray."""
    xarray = library("xarray", "to_xarray", "xarray")
    items = {} if systems.labels is None else {item: list(systems.labels) for item in ("item1", "item2")}
    stack = dense_stack(systems, dense_values)
    return xarray.DataArray(stack, {"system": list(systems.names), **items}, ("system", "item1", "item2"), "similarity")


def set_to_rsatoolbox(systems: SimilaritySet) -> Any:
    """Return one RDM per system; see SimilaritySet.to_rsatoolbox."""
    rdm = library("rsatoolbox.rdm", "to_rsatoolbox", "rsatoolbox")
    stack = dense_stack(systems, _unweighted)
    largest = np.nanmax(stack, axis=(1, 2))
    described = {str(name): column.tolist() for name, column in systems.info.items()}
    patterns = {} if systems.labels is None else {"labels": list(systems.labels)}
    return rdm.RDMs(
        np.stack([squareform(top - values, checks=False) for top, values in zip(largest, stack, strict=True)]),
        dissimilarity_measure=MEASURE,
        rdm_descriptors={
            **described,
            "name": list(systems.names),
            "largest_similarity": largest.tolist(),
            "self_similarity": np.diagonal(stack, axis1=1, axis2=2).copy(),
        },
        pattern_descriptors=patterns,
    )


def dense_stack(systems: SimilaritySet, dense: Callable[[Similarity], NDArray[np.floating]]) -> NDArray[np.float64]:
    """The values of all systems, NaN for missing pairs and for items that a system lacks."""
    n, m = systems.n_items, systems.n_systems
    require(8 * m * n * n, f"{m} matrices of {n} items", "choose fewer items or systems")
    stack = np.full((m, n, n), np.nan)
    for values, one, at in zip(stack, systems, systems.positions, strict=True):
        values[np.ix_(at, at)] = dense(one)
    return stack


def _unweighted(S: Similarity) -> NDArray[np.float64]:
    """The values of a Similarity with equal pair weights."""
    if S.weights is not None or isinstance(S.absent, float):
        got = "weights" if S.weights is not None else f"absent={S.absent!r}"
        remedy = "drop them with as_similarity(S.to_frame())"
        raise ParameterError("S", "must have no weights of pairs, which an RDM of rsatoolbox cannot hold", got, remedy)
    return dense_values(S).astype(np.float64)


def parts_of(x: Any) -> Parts | None:
    """Return the parts of a Similarity from a networkx graph, rsatoolbox RDMs or AnnData; None for anything else."""
    # If a library is not loaded, `x` cannot be one of its objects.
    networkx, rsatoolbox = sys.modules.get("networkx"), sys.modules.get("rsatoolbox.rdm.rdms")
    if networkx is not None and isinstance(x, networkx.Graph):
        return from_networkx(x)
    if rsatoolbox is not None and isinstance(x, rsatoolbox.RDMs):
        return from_rsatoolbox(x)
    if is_anndata(x):
        return from_anndata(x)
    return None


def from_anndata(data: Any) -> Parts:
    """Return the parts of a Similarity from the only matrix of pairs of an AnnData object."""
    names = [name for name in data.obsp if not (name == "weights" and "similarity" in data.obsp)]
    if len(names) != 1:
        got = ", ".join(map(repr, names)) or "none"
        remedy = "pass data.obsp[NAME] and labels=data.obs_names" if names else "use {from_features()} for its features"
        raise ParameterError("AnnData", "must have one matrix in obsp to become a Similarity", got, remedy)
    labels, absent = tuple(map(str, data.obs_names)), data.uns.get("simdims_absent")
    weights = data.obsp.get("weights") if names[0] == "similarity" else None
    info = {"source": "AnnData", "variable": names[0]}
    return Parts(data.obsp[names[0]], labels, weights, absent, named_by="obs_names", info=info)


def from_networkx(graph: Any) -> Parts:
    """Return the parts of a Similarity from a networkx graph, as documented in as_similarity."""
    if graph.is_multigraph():
        remedy = "merge the edges, for example with networkx.Graph(graph), which keeps the last one"
        raise ParameterError("graph", "must have one edge between two nodes", f"a {type(graph).__name__}", remedy)
    nodes = list(graph)
    if not nodes:
        raise ParameterError("graph", "must have at least one node", "none")
    names = _node_names(graph, nodes)
    place = {node: position for position, node in enumerate(nodes)}
    entries: dict[tuple[int, int], tuple[float, Any]] = {}
    for one, other, attributes in graph.edges(data=True):
        where = f"the edge from {one!r} to {other!r}"
        entry = (_number(attributes.get("weight", 1.0), "weight", where), attributes.get("pair_weight"))
        entries[place[one], place[other]] = entry
        if not graph.is_directed():
            entries[place[other], place[one]] = entry
    for node, attributes in graph.nodes(data=True):
        if "self_similarity" not in attributes:
            continue
        own = _number(attributes["self_similarity"], "self_similarity", f"the node {node!r}")
        loop, _ = entries.setdefault((place[node], place[node]), (own, attributes.get("self_weight")))
        if not np.array_equal(loop, own, equal_nan=True):
            got = f"a self-loop of {loop:.6g} and self_similarity {own:.6g} for {node!r}"
            raise ParameterError("graph", "must have one similarity of each node to itself", got)
    if not entries:
        raise ParameterError("graph", "must have at least one edge", "none")
    rows, columns = np.array(list(entries)).T
    numbers, weights = zip(*entries.values(), strict=True)
    shape = (len(nodes), len(nodes))
    values = sparse.coo_array((np.array(numbers), (rows, columns)), shape=shape)
    omega, absent = _pair_weights(weights, rows, columns, shape), graph.graph.get("simdims_absent")
    info = {"source": f"networkx {type(graph).__name__}"}
    return Parts(values, names, omega, absent, named_by="the nodes of the graph", info=info)


def from_rsatoolbox(rdms: Any) -> Parts:
    """Return the parts of a Similarity from an rsatoolbox RDM, as documented in as_similarity."""
    if rdms.n_rdm != 1:
        mean = "average them with from_dissimilarity(rdms.get_matrices())"
        remedy = f"pass rdms[0], {mean}, or keep them apart with SimilaritySet(rdms)"
        raise ParameterError("RDMs", "must hold one RDM to become a Similarity", f"{rdms.n_rdm}", remedy)
    patterns = rdms.pattern_descriptors
    labels = _pattern_names(patterns, rdms.n_cond)
    largest = rdms.rdm_descriptors.get("largest_similarity")
    measure = rdms.dissimilarity_measure
    info: dict[str, Any] = {
        "source": "rsatoolbox RDMs",
        "dissimilarity_measure": None if measure is None else str(measure),
        **_descriptors_of(rdms, labels),
    }
    own = patterns.get("self_similarity", rdms.rdm_descriptors.get("self_similarity", [None])[0])
    if measure == MEASURE and largest is not None and own is not None:
        values = float(largest[0]) - rdms.get_matrices()[0]
        np.fill_diagonal(values, np.asarray(own, dtype=np.float64))
        values = values.astype(str(rdms.rdm_descriptors.get("dtype", ["float64"])[0]))
    else:
        from simdims.construct import from_dissimilarity

        values = from_dissimilarity(rdms.get_matrices()[0]).values
        info["method"] = "max"
        logger.info("as_similarity: an RDM became similarities by 1 - d / max(d).")
    return Parts(values, labels, named_by="the patterns of the RDM", info=info)


def _descriptors_of(rdms: Any, labels: tuple[str, ...] | None) -> dict[str, Any]:
    """The descriptors of an RDM, its patterns and its experiment, except those stored elsewhere in the Similarity."""
    ours = ("index", "labels", "self_similarity", "largest_similarity", "dtype")
    patterns = {name: one for name, one in rdms.pattern_descriptors.items() if tuple(map(str, one)) != labels}
    kinds: dict[str, dict[str, Any]] = {
        "descriptors": dict(rdms.descriptors),
        "rdm_descriptors": {name: one[0] for name, one in rdms.rdm_descriptors.items()},
        "pattern_descriptors": {name: np.asarray(one).tolist() for name, one in patterns.items()},
    }
    left = {
        kind: {str(name): plain(one) for name, one in found.items() if name not in ours}
        for kind, found in kinds.items()
    }
    return {kind: found for kind, found in left.items() if found}


def plain(value: Any) -> Any:
    """A NumPy value as a plain Python value, which files can store."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def dense_values(S: Similarity, *, copy: bool = False) -> NDArray[np.floating]:
    """Return the values as a dense array: NaN for missing pairs, 0 for absent pairs treated as zeros."""
    held: Any = S.values if S.factors is None else S.factors
    is_dense = S.factors is None and not sparse.issparse(held)
    if copy or not is_dense:
        require(held.dtype.itemsize * S.n_items**2, f"A dense table of {S.n_items} items", "choose fewer items")
    if is_dense:
        return held.copy() if copy else held
    if S.factors is not None:
        return held @ held.T
    dense = np.full(held.shape, np.nan if S.absent == "missing" else 0.0, dtype=held.dtype)
    np.fill_diagonal(dense, np.nan)  # a diagonal entry that is not stored is always unobserved
    stored = held.tocoo()
    dense[stored.row, stored.col] = stored.data
    return dense


def _observed_entries(S: Similarity) -> tuple[NDArray, NDArray, NDArray, NDArray | None]:
    """Rows, columns, values and weights of the observed entries on and above the diagonal."""
    weights: Any = S.weights
    if S.factors is None and sparse.issparse(S.values):
        stored = S.values.tocoo()
        first, second, values = stored.row, stored.col, stored.data
        weights = None if weights is None else weights.data  # of the stored pairs, in the same order
    else:
        matrix = dense_values(S)
        first, second = np.triu_indices(S.n_items)
        values, weights = matrix[first, second], None if weights is None else weights[first, second]
    observed = ~np.isnan(values) if weights is None else ~np.isnan(values) & (weights > 0)
    left_out = int(np.count_nonzero(~observed & (first < second)))
    if left_out and S.absent not in (None, "missing"):
        rule = "must not have both missing pairs and absent pairs that are zeros, which a graph cannot distinguish"
        raise ParameterError("S", rule, f"{left_out} missing", "save to an .npz file, which keeps them")
    kept = observed & (first <= second)
    return first[kept], second[kept], values[kept], None if weights is None else weights[kept]


def _node_names(graph: Any, nodes: Sequence[Any]) -> tuple[str, ...] | None:
    """The nodes as text, or their labels if the nodes are numbered; None if they are 0, 1, 2, ..."""
    titles = [graph.nodes[node].get("label") for node in nodes]
    if all(isinstance(title, str) for title in titles) and len(set(titles)) == len(titles):
        return tuple(map(str, titles))
    if all(type(node) is int for node in nodes) and nodes == list(range(len(nodes))):
        return None
    return tuple(map(str, nodes))


def _number(value: Any, name: str, where: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(name, "must be a number", f"{value!r} on {where}") from None


def _pair_weights(
    weights: Iterable[Any], rows: NDArray, columns: NDArray, shape: tuple[int, int]
) -> sparse.coo_array | None:
    found = list(weights)
    n_without = sum(weight is None for weight in found)
    if n_without == len(found):
        return None
    if n_without:
        rule = "must be on every edge, and self_weight on every node with self_similarity, or on none"
        raise ParameterError("pair_weight", rule, f"{len(found) - n_without} of {len(found)} entries with one")
    numbers = [_number(weight, "pair_weight", "an edge or a node") for weight in found]
    return sparse.coo_array((np.array(numbers), (rows, columns)), shape=shape)


def _pattern_names(patterns: Any, n_items: int) -> tuple[str, ...] | None:
    """The item names among the descriptors: one with a usual name, or else the only one with distinct texts."""
    lists = {
        str(key): tuple(item.decode() if isinstance(item, bytes) else str(item) for item in descriptor)
        for key, descriptor in patterns.items()
        if key not in ("index", "self_similarity")
    }
    lists = {key: names for key, names in lists.items() if len(set(names)) == n_items}
    for key in NAME_DESCRIPTORS:
        if key in lists and lists[key] != tuple(map(str, range(n_items))):
            return lists[key]
    texts = [names for key, names in lists.items() if all(isinstance(item, (str, bytes)) for item in patterns[key])]
    return texts[0] if len(texts) == 1 else None
