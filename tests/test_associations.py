"""from_associations: the graph, and PPMI worked out by hand and by dictionaries."""

import itertools
import logging
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from helpers import refused, traced_memory
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from simdims import SRF
from simdims.associations import from_associations


def table_of(*rows):
    return pd.DataFrame(rows, columns=["cue", "response", "count"])


FOUR_WORDS = table_of(
    ("cat", "dog", 3), ("dog", "cat", 1), ("cat", "fur", 2), ("fur", "cat", 1), ("dog", "bone", 4), ("bone", "dog", 2),
    ("bone", "cat", 1), ("fur", "dog", 1),
)  # fmt: skip


def words_that_lead_to_each_other(links):
    """The strongly connected components of a set of directed links, by following links from every word."""

    def reached(word):
        seen, ahead = {word}, [word]
        while ahead:
            ahead = [there for here, there in links if here == ahead[-1] and there not in seen] + ahead[:-1]
            seen |= set(ahead)
        return seen

    words = {word for link in links for word in link}
    there = {word: reached(word) for word in words}
    return [sorted(other for other in words if other in there[word] and word in there[other]) for word in words]


def ppmi_by_dictionary(rows):
    """The kept words and their {(word, word): PPMI}, step by step as the paper says."""
    n = Counter()
    for cue, response, count in rows:
        n[cue, response] += count
    n = {link: count for link, count in n.items() if count > 0 and link[0] != link[1]}
    cues = {cue for cue, _ in n}
    n = {link: count for link, count in n.items() if link[1] in cues}
    components = words_that_lead_to_each_other(set(n))
    largest = max(map(len, components), default=0)
    if largest < 2:
        return None, None
    words = min(component for component in components if len(component) == largest)
    N = {}
    for i, j in itertools.permutations(words, 2):
        both = n.get((i, j), 0) + n.get((j, i), 0)
        if both:
            N[i, j] = both
    total = sum(N.values())
    p = {i: sum(N.get((i, j), 0) for j in words) / total for i in words}
    s = {(i, j): np.log2(N[i, j] / total / (p[i] * p[j])) for i, j in N}
    s = {pair: value for pair, value in s.items() if value > 1e-12}
    return words, {**s, **{(i, i): -np.log2(p[i]) for i in words}}


def as_dictionary(S):
    values = S.values.tocoo()
    return {
        (S.labels[i], S.labels[j]): value
        for i, j, value in zip(values.row, values.col, values.data, strict=True)
    }  # fmt: skip


# Values


def test_four_words_worked_out_by_hand():
    # Both directions added up, N:          bone  cat  dog  fur | sum
    #   bone-cat 1, bone-dog 4 + 2     bone    .    1    6    . |   7     p = 7/30
    #   cat-dog 3 + 1, cat-fur 2 + 1   cat     1    .    4    3 |   8     p = 8/30
    #   dog-fur 1                      dog     6    4    .    1 |  11     p = 11/30
    #                                  fur     .    3    1    . |   4     p = 4/30
    # The sum of all is 30, so that s_ij = log2(N_ij / 30 / (p_i p_j)) = log2(30 N_ij / (sum_i sum_j)):
    #   bone-cat log2(30/56) < 0     bone-dog log2(180/77)    bone-fur never said
    #   cat-dog  log2(120/88)        cat-fur  log2(90/32)     dog-fur  log2(30/44) < 0
    # and s_ii = -log2 p_i.
    S = from_associations(FOUR_WORDS)
    pairs = {("bone", "dog"): np.log2(180 / 77), ("cat", "dog"): np.log2(120 / 88), ("cat", "fur"): np.log2(90 / 32)}
    expected = {**pairs, **{(j, i): value for (i, j), value in pairs.items()}}
    for word, row_sum in {"bone": 7, "cat": 8, "dog": 11, "fur": 4}.items():
        expected[word, word] = np.log2(30 / row_sum)
    assert S.labels == ("bone", "cat", "dog", "fur")
    assert as_dictionary(S) == pytest.approx(expected)
    assert S.absent == 0.03


def test_a_counted_pair_exactly_as_frequent_as_chance_is_absent():
    # All sums are 4 and their total is 16, so that a pair said once has 16 x 1 / (4 x 4) = 1, whose logarithm is 0.
    S = from_associations(table_of(("a", "b", 1), ("b", "d", 3), ("d", "c", 1), ("c", "a", 3)))
    pairs = {("a", "c"), ("c", "a"), ("b", "d"), ("d", "b")}
    assert as_dictionary(S) == pytest.approx(
        {**dict.fromkeys(pairs, np.log2(3)), **{(word, word): 2.0 for word in "abcd"}}
    )
    assert (S.info["n_pairs_counted"], S.info["n_pairs_positive"]) == (4, 2)


@given(data=st.data(), n_words=st.integers(2, 7), n_rows=st.integers(1, 30))
def test_values_are_those_of_dictionaries(data, n_words, n_rows):
    words = st.integers(0, n_words - 1).map(lambda number: f"word {number}")
    rows = data.draw(st.lists(st.tuples(words, words, st.integers(0, 5)), min_size=n_rows, max_size=n_rows))
    kept, expected = ppmi_by_dictionary(rows)
    if kept is None:
        with refused("table", "none among"):
            from_associations(table_of(*rows))
        return
    S = from_associations(table_of(*rows))
    assert S.labels == tuple(kept)
    found = as_dictionary(S)
    assert set(found) == set(expected)
    assert found == pytest.approx(expected)
    assert (S.values != S.values.T).nnz == 0
    assert (S.values.data > 0).all()
    assert np.isfinite(S.values.diagonal()).all()
    info = S.info
    rows_removed = ["rows_with_count_zero", "rows_of_self_loops", "rows_to_words_without_responses"]
    assert (
        info["rows_read"]
        == n_rows
        == sum(info[step] for step in [*rows_removed, "rows_outside_component", "rows_kept"])
    )
    assert info["words_read"] == info["words_without_responses"] + info["words_outside_component"] + info["n_items"]
    assert info["n_pairs_positive"] == (S.values.nnz - S.n_items) // 2 <= info["n_pairs_counted"]


@given(seed=st.integers(0, 500))
def test_shuffled_and_split_rows_change_nothing(seed):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(6, size=(25, 2))
    table = table_of(*((f"word {i}", f"word {j}", int(rng.integers(1, 5))) for i, j in pairs))
    assume(ppmi_by_dictionary(table.to_numpy().tolist())[0] is not None)
    expected = from_associations(table)
    split = table.loc[table.index.repeat(table["count"])].assign(count=1).sample(frac=1, random_state=seed)
    for other in (table.sample(frac=1, random_state=seed), split):
        S = from_associations(other)
        assert S.labels == expected.labels
        np.testing.assert_array_equal(S.values.toarray(), expected.values.toarray())
    np.testing.assert_array_equal(from_associations(split, count=None).values.toarray(), expected.values.toarray())


# The graph


def test_each_step_reports_what_it_removed(caplog):
    rows = [
        ("a", "b", 2), ("b", "c", 1), ("c", "a", 1),  # three words in a ring
        ("a", "b", 1),                                # a row again
        ("a", "a", 7), ("d", "d", 3),                 # self-loops, one of a word that has no other response
        ("b", "c", 0), ("e", "a", 0),                 # nobody said these
        ("a", "f", 4), ("b", "f", 1),                 # f is no cue
        ("x", "y", 5), ("y", "x", 5),                 # two words of their own
        ("g", "a", 2),                                # g leads in, nothing leads to it
    ]  # fmt: skip
    with caplog.at_level(logging.INFO, "simdims"):
        S = from_associations(table_of(*rows))
    assert S.labels == ("a", "b", "c")
    assert list(S.info.items()) == [
        ("source", "associations"), ("rows_read", 13), ("words_read", 9), ("rows_with_count_zero", 2),
        ("rows_of_self_loops", 2), ("words_without_responses", 3), ("rows_to_words_without_responses", 2),
        ("words_outside_component", 3), ("rows_outside_component", 3), ("rows_kept", 4), ("n_items", 3),
        ("n_pairs_counted", 3), ("n_pairs_positive", 3),
    ]  # fmt: skip
    assert "from_associations: source = associations, rows_read = 13, words_read = 9" in caplog.text


def test_of_equally_large_components_the_one_with_the_first_word_stays():
    rows = [("z", "b", 1), ("b", "z", 1), ("y", "c", 9), ("c", "y", 9), ("d", "a", 1), ("A", "d", 1)]
    assert from_associations(table_of(*rows)).labels == ("b", "z")
    assert from_associations(table_of(*rows[::-1])).labels == ("b", "z")


def test_a_large_component_of_rare_words_beats_a_small_one_of_frequent_words():
    rows = [("x", "y", 900), ("y", "x", 900), ("a", "b", 1), ("b", "c", 1), ("c", "a", 1)]
    assert from_associations(table_of(*rows)).labels == ("a", "b", "c")


def test_words_are_kept_exactly_as_written():
    rows = [("Cat", "cat", 1), ("cat", "cat ", 1), ("cat ", "über", 1), ("über", "Cat", 1)]
    assert from_associations(table_of(*rows)).labels == ("Cat", "cat", "cat ", "über")


# The table


def test_columns_may_have_other_names_and_the_table_other_kinds():
    renamed = FOUR_WORDS.rename(columns={"cue": "CUE", "response": "TARGET", "count": "P"}).assign(FSG=0.5)
    expected = from_associations(FOUR_WORDS)
    for table in (renamed, renamed.to_dict("list"), renamed.to_dict("records"), renamed.astype("category")):
        S = from_associations(table, cue="CUE", response="TARGET", count="P")
        assert S.labels == expected.labels
        np.testing.assert_array_equal(S.values.toarray(), expected.values.toarray())


def test_counts_may_be_shares_or_text():
    expected = from_associations(FOUR_WORDS).values.toarray()
    for counts in (FOUR_WORDS["count"] / 64, FOUR_WORDS["count"].astype(str), FOUR_WORDS["count"].astype("Int64")):
        np.testing.assert_allclose(from_associations(FOUR_WORDS.assign(count=counts)).values.toarray(), expected)


def test_the_table_is_not_changed():
    before = FOUR_WORDS.copy(deep=True)
    from_associations(FOUR_WORDS)
    pd.testing.assert_frame_equal(FOUR_WORDS, before)


@pytest.mark.parametrize("absent", ["missing", 0.03, "zero"])
def test_words_reach_the_embedding_of_a_fit_whatever_absent_means(absent):
    S = from_associations(FOUR_WORDS, absent=absent)
    assert S.absent == absent
    assert sparse.issparse(S.values)
    assert tuple(SRF(2, random_state=0).fit(S).embedding_frame().index) == S.labels


def test_nothing_dense_is_made_on_the_way():
    n_words = 3000
    rng = np.random.default_rng(0)
    ring = np.arange(n_words)
    cues, responses = np.concatenate([ring, ring]), np.concatenate([(ring + 1) % n_words, rng.permutation(n_words)])
    table = pd.DataFrame({"cue": cues, "response": responses, "count": 1})
    with traced_memory() as peak:
        assert from_associations(table).n_items == n_words
        assert peak() < n_words**2 / 2  # bytes: half of a dense matrix of booleans


# Real data


@pytest.fixture(scope="session")
def usf(data_path):
    # NULL is a word here.
    return pd.read_csv(data_path("words/usf_appendixA.csv"), keep_default_na=False)


def test_usf_gives_one_strongly_connected_vocabulary(usf):
    S = from_associations(usf, cue="cue", response="target", count="P")
    assert S.n_items == 4845  # as the project's design measured, with 0.45% of the pairs
    assert S.info["n_pairs_positive"] / (4845 * 4844 / 2) == pytest.approx(0.0045, abs=5e-5)
    words = set(S.labels)
    inside = usf[usf["cue"].isin(words) & usf["target"].isin(words) & (usf["cue"] != usf["target"])]
    assert len(inside) == S.info["rows_kept"]
    place = {word: number for number, word in enumerate(S.labels)}
    links = sparse.csr_array(
        (np.ones(len(inside)), (inside["cue"].map(place), inside["target"].map(place))), shape=(S.n_items, S.n_items)
    )
    n_components, _ = connected_components(links, connection="strong")
    assert n_components == 1


@pytest.mark.parametrize("absent", ["missing", 0.03, "zero"])
def test_usf_is_fitted_sparse_whatever_absent_means(usf, absent):
    S = from_associations(usf, response="target", count="P", absent=absent)
    with pytest.warns(ConvergenceWarning):
        srf = SRF(5, max_iter=3, random_state=0).fit(S)
    assert srf.history_[-1] < srf.history_[0]
    assert tuple(srf.embedding_frame().index) == S.labels
