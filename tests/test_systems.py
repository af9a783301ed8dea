"""SimilaritySet: what it takes, how items are matched, what is kept, and what comes back from a file."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from simdims import ParameterError, Similarity, SimilaritySet, load_similarity
from simdims.systems import dense_parts, identical_systems, warn_of_identical


def random_similarities(n_systems=3, n_items=6, seed=0):
    rng = np.random.default_rng(seed)
    stack = rng.uniform(size=(n_systems, n_items, n_items))
    stack = (stack + stack.transpose(0, 2, 1)) / 2
    for S in stack:
        np.fill_diagonal(S, 1.0)
    return stack


def random_sparse(absent, seed, n_items=6, weighted=False):
    rng = np.random.default_rng(seed)
    chosen = np.triu(rng.uniform(size=(n_items, n_items)) < 0.5, 1)
    chosen[0, 1:] = True
    rows, columns = np.nonzero(chosen)
    values = sparse.csr_array((rng.uniform(size=len(rows)), (rows, columns)), shape=(n_items, n_items))
    weights = (
        sparse.csr_array((rng.uniform(0.5, 3, len(rows)), (rows, columns)), shape=values.shape) if weighted else None
    )
    return Similarity(values, weights=weights, absent=absent)


def test_an_array_a_list_and_a_mapping_make_the_same_set():
    stack = random_similarities()
    for given in (stack, list(stack), dict(zip("abc", stack, strict=True)), SimilaritySet(stack)):
        made = SimilaritySet(given, names=["a", "b", "c"])
        assert made.names == ("a", "b", "c")
        assert (made.n_systems, made.n_items, len(made)) == (3, 6, 3)
        for one, S in zip(made, stack, strict=True):
            np.testing.assert_array_equal(one.values, S)
    assert SimilaritySet(dict(zip("abc", stack, strict=True))).names == ("a", "b", "c")
    assert SimilaritySet(stack).names == ("system1", "system2", "system3")


def test_what_the_caller_changes_later_does_not_change_the_set():
    stack = random_similarities()
    made = SimilaritySet(stack)
    first = stack[0].copy()
    stack[:] = 0.5
    np.testing.assert_array_equal(made[0].values, first)
    assert not made[0].values.flags.writeable


def test_items_are_matched_by_label_whatever_their_order_and_number():
    one = pd.DataFrame([[1, 0.8, 0.1], [0.8, 1, 0.2], [0.1, 0.2, 1]], index=list("abc"), columns=list("abc"))
    two = pd.DataFrame([[1, 0.7], [0.7, 1]], index=list("ca"), columns=list("ca"))
    three = pd.DataFrame([[1, 0.3], [0.3, 1]], index=list("bd"), columns=list("bd"))
    made = SimilaritySet([one, two, three])
    assert made.labels == tuple("abcd")
    assert [at.tolist() for at in made.positions] == [[0, 1, 2], [2, 0], [1, 3]]
    mean = made.mean().to_frame()
    assert mean.loc["a", "c"] == pytest.approx((0.1 + 0.7) / 2)
    assert mean.loc["b", "d"] == pytest.approx(0.3)
    assert np.isnan(mean.loc["a", "d"])


def test_an_item_without_values_is_one_that_the_system_lacks_and_no_warning():
    stack = random_similarities()
    stack[1, 2, :] = stack[1, :, 2] = np.nan
    stack[2, 0, 1:] = stack[2, 1:, 0] = np.nan  # known on the diagonal only
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = SimilaritySet(stack)
    assert made[1].labels == ("0", "1", "3", "4", "5")
    assert made.positions[1].tolist() == [0, 1, 3, 4, 5]
    assert made[2].values[0, 0] == 1.0
    np.testing.assert_allclose(made.mean().values, np.nanmean(stack, axis=0))


def test_masked_pairs_are_missing():
    stack = random_similarities()
    mask = np.zeros(stack.shape, dtype=bool)
    mask[1, 0, 2] = mask[1, 2, 0] = True
    expected = SimilaritySet(np.where(mask, np.nan, stack))
    for given in (np.ma.masked_array(stack, mask), list(np.ma.masked_array(stack, mask))):
        made = SimilaritySet(given)
        for own, one in zip(made, expected, strict=True):
            np.testing.assert_array_equal(own.values, one.values)


def test_rdms_of_rsatoolbox_keep_their_descriptors():
    rsatoolbox = pytest.importorskip("rsatoolbox")
    points = np.random.default_rng(0).normal(size=(3, 6, 2))
    stack = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
    descriptors = {"rdm_descriptors": {"subject": list("abc")}, "pattern_descriptors": {"labels": list("uvwxyz")}}
    made = SimilaritySet(rsatoolbox.rdm.RDMs(stack, **descriptors))
    assert made.labels == tuple("uvwxyz")
    assert made.info["subject"].tolist() == ["a", "b", "c"]
    for one, D in zip(made, stack, strict=True):
        np.testing.assert_allclose(one.values, 1 - D / D.max())


def test_slices_lists_masks_and_names_choose_systems_and_their_info():
    made = SimilaritySet(random_similarities(4), names=list("abcd"), info={"age": [1, 2, 3, 4]})
    for key in (slice(1, 3), ["b", "c"], [1, 2], [1, -2], [False, True, True, False], made.info["age"].between(2, 3)):
        chosen = made[key]
        assert chosen.names == ("b", "c")
        assert chosen.info["age"].tolist() == [2, 3]
        assert chosen[0].values is made[1].values
    assert made["d"].values is made[-1].values
    assert made[made.info["age"].iloc[::-1] > 2].names == ("c", "d")  # a Series is matched by name
    with pytest.raises(KeyError, match="'e'"):
        made["e"]
    with pytest.raises(IndexError):
        made[4]
    with pytest.raises(TypeError, match="mask"):
        made[1.5]


def test_systems_that_only_others_relate_cannot_be_chosen_without_these():
    values = random_similarities(1, 2)[0]
    chain = {name: Similarity(values, list(items)) for name, items in (("x", "ab"), ("y", "bc"), ("z", "cd"))}
    made = SimilaritySet(chain)
    assert made[["x", "y"]].labels == ("a", "b", "c")
    with pytest.raises(ParameterError, match="none in common between 'x' and 'z'"):
        made[["x", "z"]]


def test_info_is_matched_by_name():
    info = pd.DataFrame({"group": ["x", "y", "z"]}, index=["c", "a", "b"])
    assert SimilaritySet(random_similarities(), names=list("abc"), info=info).info["group"].tolist() == ["y", "z", "x"]
    assert SimilaritySet(random_similarities(), info=info).names == ("c", "a", "b")
    columns = {"group": info["group"], "age": [1, 2, 3]}
    mixed = SimilaritySet(random_similarities(), names=list("abc"), info=columns).info
    assert mixed.to_dict("list") == {"group": ["y", "z", "x"], "age": [1, 2, 3]}


def test_the_mean_of_a_sparse_and_of_an_implicit_system():
    F = np.random.default_rng(0).random((4, 2))
    stored = sparse.csr_array(np.ones((4, 4)))
    mean = SimilaritySet([Similarity.from_factors(F), Similarity(stored, absent="zero")]).mean()
    np.testing.assert_allclose(mean.values, (F @ F.T + 1) / 2)


def test_absent_zeros_of_a_system_are_no_zeros_of_the_items_that_it_lacks():
    names = list("abcd")
    whole = sparse.csr_array(([0.6, 0.6, 0.4, 0.4], ([0, 1, 2, 3], [1, 0, 3, 2])), shape=(4, 4))
    one = Similarity(whole, names, absent="zero")
    other = Similarity(whole[:3, :3][[1, 0, 2]][:, [1, 0, 2]], list("bac"), absent="zero")
    values, weights = dense_parts(SimilaritySet([one, other]).mean())
    np.testing.assert_allclose(values, whole.toarray())
    np.testing.assert_allclose(weights[3], [0.5, 0.5, 0.5, 0])
    np.testing.assert_allclose(weights[:3, :3], 1 - np.eye(3))


@pytest.mark.parametrize("absents", [("missing",) * 3, ("zero",) * 3, ("missing", 0.3, "zero")])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_of_sparse_systems_is_the_mean_of_their_matrices_and_stays_sparse(absents, weighted):
    systems = [random_sparse(absent, seed, weighted=weighted) for seed, absent in enumerate(absents)]
    mean = SimilaritySet(systems).mean()
    assert sparse.issparse(mean.values)
    parts = [dense_parts(one) for one in systems]
    weight = sum(omega for _, omega in parts)
    total = sum(omega * values for values, omega in parts)
    values, omega = dense_parts(mean)
    known = weight > 0
    np.testing.assert_allclose(values[known], total[known] / weight[known])
    if mean.weights is not None or mean.absent != "missing":
        np.testing.assert_allclose(omega, weight / 3)
    else:
        np.testing.assert_array_equal(omega > 0, known)


def test_sparse_systems_stay_sparse():
    made = SimilaritySet([random_sparse("missing", seed) for seed in range(3)])
    assert all(sparse.issparse(one.values) for one in made)
    assert all(sparse.issparse(one.values) for one in made[1:])


def test_a_saved_set_comes_back_with_everything(tmp_path):
    labels = list("abcdef")
    dense = Similarity(random_similarities(1)[0].astype(np.float32), labels, np.full((6, 6), 2.0), info={"from": "lab"})
    loose = random_sparse(0.2, 1, weighted=True)
    loose = Similarity(loose.values, labels, loose.weights, 0.2)
    few = Similarity(random_similarities(1, 3, seed=3)[0], ["f", "a", "x"])
    implicit = Similarity.from_factors(np.random.default_rng(0).uniform(size=(6, 2)), labels)
    info = pd.DataFrame({"age": [1, 2, 3, 4], "x": [0.1, np.nan, 3, 4], "group": list("uvuv"), "ok": [True, False] * 2})
    info["group"] = info["group"].astype("category")
    made = SimilaritySet({"p": dense, "q": loose, "r": few, "s": implicit}, info=info)
    made.save(tmp_path / "set.npz")
    back = SimilaritySet.load(tmp_path / "set.npz")
    assert (back.names, back.labels, back.n_items) == (made.names, made.labels, 7)
    pd.testing.assert_frame_equal(back.info, made.info)
    for one, other, at, there in zip(made, back, made.positions, back.positions, strict=True):
        assert (one.labels, one.absent, dict(one.info)) == (other.labels, other.absent, dict(other.info))
        np.testing.assert_array_equal(at, there)
        for part in ("factors",) if one.factors is not None else ("values", "weights"):
            mine, its = getattr(one, part), getattr(other, part)
            assert (mine is None) == (its is None)
            if mine is not None:
                assert mine.dtype == its.dtype
                assert sparse.issparse(mine) == sparse.issparse(its)
                mine, its = (one.toarray() if sparse.issparse(one) else one for one in (mine, its))
                np.testing.assert_array_equal(mine, its)
    with np.load(tmp_path / "set.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file)


def test_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(ParameterError, match=r"SimilaritySet\.save"):
        SimilaritySet.load(tmp_path / "other.npz")
    with pytest.raises(ParameterError, match=r"\.npz"):
        SimilaritySet(random_similarities()).save(tmp_path / "set.csv")


def test_a_saved_set_is_no_similarity_and_its_items_have_places(tmp_path):
    SimilaritySet(random_similarities()).save(tmp_path / "set.npz")
    with pytest.raises(ValueError, match=r"a saved SimilaritySet: read it with SimilaritySet\.load"):
        load_similarity(tmp_path / "set.npz")
    with np.load(tmp_path / "set.npz") as file:
        arrays = {name: file[name] for name in file}
    arrays["positions"][-1] += 100
    np.savez(tmp_path / "damaged.npz", **arrays)
    with pytest.raises(ValueError, match="damaged"):
        SimilaritySet.load(tmp_path / "damaged.npz")


def test_a_system_on_another_scale_is_named_in_a_warning():
    stack = random_similarities(4)
    stack[2] *= 100
    with pytest.warns(UserWarning, match="different scales.*'third'"):
        SimilaritySet(stack, names=["first", "second", "third", "fourth"])


def test_a_system_of_zeros_that_are_not_stored_has_no_scale():
    links = sparse.csr_array(random_similarities(1)[0])
    nothing = sparse.csr_array(links.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        systems = SimilaritySet([Similarity(one, absent="zero") for one in (links, nothing, links)])
    assert systems.density == 1.0


def test_dissimilarities_are_told_once():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3, 12, 2))
    stack = np.linalg.norm(points[:, :, None] - points[:, None], axis=-1)
    with pytest.warns(UserWarning, match="look like dissimilarities: system1") as caught:
        SimilaritySet(stack)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        (lambda: [], {}, "at least one system, got none"),
        (lambda: np.ones((3, 3)), {}, r"\(n_systems, n_items, n_items\), got an array of shape \(3, 3\)"),
        (lambda: 5, {}, "similarities must be a list"),
        (lambda: random_similarities(), {"names": ["a", "b", "a"]}, "names must be distinct, got 'a' more than once"),
        (lambda: random_similarities(), {"names": ["a"]}, "names must have one name for each of the 3 systems, got 1"),
        (lambda: random_similarities(), {"info": {"age": [1, 2]}}, "info must have one row .* got 2 in 'age'"),
        (lambda: random_similarities(), {"names": ["a", None, "b"]}, "names must name every system, got a missing"),
        (lambda: random_similarities(), {"names": ["a", " ", "b"]}, "names must name every system, got a missing"),
        (
            lambda: random_similarities(),
            {"info": pd.DataFrame(np.ones((3, 2)), columns=["age", "age"])},
            "info must have columns with distinct names, got 'age' more than once",
        ),
        (lambda: [[[1.0, 0.5], [0.5]]] * 2, {}, "system 'system1': values must have rows of one length"),
        (lambda: random_similarities(), {"info": [1, 2, 3]}, "info must be a DataFrame"),
        (
            lambda: random_similarities(),
            {"names": list("abc"), "info": pd.DataFrame({"x": [1, 2, 3]}, index=list("abd"))},
            "info must be indexed by the names of the systems, got 'd'",
        ),
        (lambda: [random_similarities(1, 4)[0], random_similarities(1, 5)[0]], {}, "4 in 'system1' and 5 in 'system2'"),
        (
            lambda: [Similarity(random_similarities(1, 3)[0], list("abc")), random_similarities(1, 3)[0]],
            {},
            "must all have labels, or none",
        ),
        (
            lambda: [Similarity(random_similarities(1, 3)[0], list(names)) for names in ("abc", "def")],
            {"names": ["one", "two"]},
            "must share items.* none in common between 'one' and 'two'",
        ),
        (lambda: [np.full((3, 3), 0.5), np.full((3, 3), np.nan)], {}, "in each system, got none in 'system2'"),
        (
            lambda: [np.full((3, 3), 0.5), np.where(np.eye(3, dtype=bool), 1.0, np.nan)],
            {},
            "a pair of two different items in each system, got none in 'system2'",
        ),
        (
            lambda: np.where(np.arange(9).reshape(3, 3) % 4 == 8 % 4, 1.0, np.nan)[None].repeat(2, axis=0),
            {},
            "got none in 'system1'",
        ),
    ],
)
def test_bad_input_is_refused(given, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        SimilaritySet(given(), **options)


def test_an_item_without_a_pair_in_any_system_is_refused():
    stack = random_similarities()
    stack[:, 2, :] = stack[:, :, 2] = np.nan
    with pytest.raises(ParameterError, match="none for 1 item: 2"):
        SimilaritySet(stack)


def test_the_system_with_the_error_is_named():
    stack = random_similarities()
    stack[1, 0, 1] = stack[1, 1, 0] = -1
    with pytest.raises(ValueError, match=r"^system 'system2': .*non-negative"):
        SimilaritySet(stack)


def test_copies_of_a_system_are_found_whether_stored_as_matrices_or_lists():
    stack = random_similarities(4)
    stack[3] = stack[1]
    lists = [random_sparse("missing", seed) for seed in (0, 1, 0)]
    assert identical_systems(SimilaritySet(stack, names=list("abcd"))) == [("b", "d")]
    assert identical_systems(SimilaritySet(lists, names=list("abc"))) == [("a", "c")]
    assert identical_systems(SimilaritySet(stack[:3])) == []
    with pytest.warns(UserWarning, match="identical similarities: 'b', 'd'"):
        warn_of_identical(SimilaritySet(stack, names=list("abcd")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_identical(SimilaritySet(stack[:3]))


def test_items_with_the_same_few_values_are_not_enough_to_be_copies():
    pair = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert identical_systems(SimilaritySet([pair, pair])) == []
