"""Similarities from word associations: a graph of cues and responses, and positive pointwise mutual information."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from simdims._parameters import ParameterError
from simdims._tables import as_frame, read_items, read_numbers, report, row_name
from simdims.similarity import Similarity
from simdims.similarity.ownership import frozen
from simdims.similarity.validation import clean_absent


def from_associations(
    table: Any,
    *,
    cue: Hashable = "cue",
    response: Hashable = "response",
    count: Hashable | None = "count",
    absent: str | float = 0.03,
) -> Similarity:
    """Similarities between words from free associations: positive pointwise mutual information.

    Counts define a directed graph from cues to responses. Self-loops and words that were never cues are removed, and
    only the largest strongly connected component is kept. With the counts N_ij = n_ij + n_ji, p_ij = N_ij / sum(N) and
    p_i = sum_j p_ij, the similarity is s_ij = log2(p_ij / (p_i p_j)) if that is positive, and s_ii = -log2(p_i).

    Parameters
    ----------
    table : DataFrame, dictionary of columns or list of dictionaries
        One cue, one response and its count per row; counts of repeated pairs are added. Words are compared exactly.
    cue, response : column name, default="cue", "response"
        The columns of the words.
    count : column name or None, default="count"
        The column of counts: non-negative numbers; a row with 0 is no association. None counts every row once.
    absent : {"missing", "zero"} or float, default=0.03
        How to treat pairs without a positive s_ij; see Similarity. Most pairs are absent because nobody made the
        association, not because nobody was asked. If they are ignored ("missing"), the fit learns nothing about
        unrelated words; as zeros of full weight ("zero") they far outnumber the associations. A small weight is better.

    Returns
    -------
    Similarity
        Sparse, with the sorted words as labels. `info` holds the numbers of rows and words read, those removed in each
        step, and the numbers of pairs counted and of positive pairs.

    Notes
    -----
    If the largest components are equally large, the one with the first word in sorted order is kept.

    References
    ----------
    SRF, Methods, "Constructing similarity matrices".

    Examples
    --------
    >>> from simdims.associations import from_associations
    >>> S = from_associations(
    ...     {
    ...         "cue": ["cat", "dog", "dog", "bone", "cat"],
    ...         "response": ["dog", "cat", "bone", "dog", "fur"],
    ...         "count": [3, 2, 1, 2, 9],
    ...     }
    ... )
    >>> S
    Similarity(3 items, sparse float64, absent=0.03, 100.0% of pairs observed, labelled)
    >>> S.labels
    ('bone', 'cat', 'dog')
    >>> S.values.toarray().round(3)
    array([[2.415, 0.   , 1.   ],
           [0.   , 1.678, 1.   ],
           [1.   , 1.   , 1.   ]])
    """
    clean_absent(absent, sparse.csr_array((1, 1)))
    frame = as_frame(table, cue=cue, response=response, **({} if count is None else {"count": count}))
    (cues, responses), words = read_items(frame, [cue, response])
    counts = np.ones(len(frame)) if count is None else read_numbers(frame, count)
    no_count = ~(counts >= 0)
    if no_count.any():
        row = int(np.argmax(no_count))
        got = "a missing cell" if np.isnan(counts[row]) else f"{counts[row]:g}"
        where = row_name(row, frame.index)
        raise ParameterError(f"Column {count!r}", "must hold non-negative numbers", f"{got} in {where}")

    info: dict[str, Any] = {"source": "associations", "rows_read": len(frame), "words_read": len(words)}
    rows, kept_words = _connected_rows(cues, responses, counts > 0, len(words), info)
    place = np.full(len(words), -1)
    place[kept_words] = np.arange(len(kept_words))
    n = len(kept_words)
    directed = sparse.coo_array((counts[rows], (place[cues[rows]], place[responses[rows]])), shape=(n, n)).tocsr()
    values = _positive_pmi(directed + directed.T, info)
    report("from_associations", info)
    return Similarity(frozen(values), [words[word] for word in kept_words], absent=absent, info=info)


def _connected_rows(
    cues: NDArray[np.intp],
    responses: NDArray[np.intp],
    is_counted: NDArray[np.bool_],
    n_words: int,
    info: dict[str, Any],
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """The rows within the largest strongly connected component, and its words; `info` counts what is removed."""
    rows = is_counted & (cues != responses)
    info["rows_with_count_zero"] = int(np.count_nonzero(~is_counted))
    info["rows_of_self_loops"] = int(np.count_nonzero(is_counted & (cues == responses)))

    has_response = np.bincount(cues[rows], minlength=n_words) > 0
    leads_on = rows & has_response[responses]
    info["words_without_responses"] = int(np.count_nonzero(~has_response))
    info["rows_to_words_without_responses"] = int(np.count_nonzero(rows & ~leads_on))

    links = (np.ones(np.count_nonzero(leads_on)), (cues[leads_on], responses[leads_on]))
    graph = sparse.coo_array(links, shape=(n_words, n_words)).tocsr()
    _, component = connected_components(graph, directed=True, connection="strong")
    sizes = np.bincount(component)
    if sizes.max() < 2:
        rule = "must contain a cycle of associations, such as cat - dog - cat"
        raise ParameterError("table", rule, f"none among {n_words} words", "check that responses are also cues")
    # Words are sorted, so among the largest components this one has the first word.
    inside = component == component[np.argmax(sizes[component] == sizes.max())]
    kept = leads_on & inside[cues] & inside[responses]
    info["words_outside_component"] = int(np.count_nonzero(has_response & ~inside))
    info["rows_outside_component"] = int(np.count_nonzero(leads_on & ~kept))
    info["rows_kept"] = int(np.count_nonzero(kept))
    info["n_items"] = int(np.count_nonzero(inside))
    return kept, np.flatnonzero(inside)


def _positive_pmi(symmetric: sparse.csr_array, info: dict[str, Any]) -> sparse.csr_array:
    """log2(p_ij / (p_i p_j)) if positive, and -log2 p_i on the diagonal, from counts N with an empty diagonal."""
    pairs = symmetric.tocoo()
    of_word = np.asarray(symmetric.sum(axis=1)).ravel()
    total = of_word.sum()
    # Products of integer counts are exact, so that p_ij = p_i p_j gives exactly 0.
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        information = np.log2(pairs.data * total / (of_word[pairs.row] * of_word[pairs.col]))
    if not np.isfinite(information).all():
        got = f"{pairs.data.min():g} to {pairs.data.max():g}"
        raise ParameterError("counts", "must be of a size that can be multiplied", got, "divide them by the largest")
    positive = information > 0
    info["n_pairs_counted"] = pairs.nnz // 2
    info["n_pairs_positive"] = int(np.count_nonzero(positive)) // 2
    words = np.arange(len(of_word))
    rows, columns = (np.concatenate([side[positive], words]) for side in (pairs.row, pairs.col))
    values = np.concatenate([information[positive], -np.log2(of_word / total)])
    return sparse.coo_array((values, (rows, columns)), shape=symmetric.shape).tocsr()
