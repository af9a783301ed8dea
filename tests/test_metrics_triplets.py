"""Odd-one-out choices against brute force, and the noise ceiling against tables made by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from simdims import ParameterError, Similarity
from simdims.metrics import noise_ceiling, triplet_accuracy, triplet_probabilities


def all_triplets(n):
    """Every set of three items, each item being the odd one out once, and in the last place."""
    return np.array([(i, j, k) for k in range(n) for i, j in itertools.combinations(set(range(n)) - {k}, 2)])


def by_brute_force(S, triplets):
    """Credit for each answer, by comparing the three similarities one triplet at a time."""
    total = 0.0
    for i, j, k in triplets:
        if np.isnan([S[i, j], S[i, k], S[j, k]]).any():
            total += 1 / 3
        elif S[i, j] == max(S[i, j], S[i, k], S[j, k]):
            total += 1 / [S[i, j], S[i, k], S[j, k]].count(S[i, j])
    return total / len(triplets)


def case(n=12, seed=0):
    """An embedding of small whole numbers, whose products tie often and without rounding, and random answers."""
    rng = np.random.default_rng(seed)
    return rng.integers(3, size=(n, 4)).astype(float), rng.permutation(all_triplets(n))[:200]


@pytest.mark.parametrize("seed", range(5))
def test_accuracy_of_an_embedding_is_brute_force(seed):
    W, triplets = case(seed=seed)
    assert triplet_accuracy(W, triplets) == pytest.approx(by_brute_force(W @ W.T, triplets), abs=1e-12)


def test_looking_up_all_pairs_or_only_those_asked_for_is_the_same():
    W, triplets = case(n=40)
    assert 3 * len(triplets[:100]) < 40**2
    many = np.tile(triplets[:100], (10, 1))
    assert triplet_accuracy(W, many) == pytest.approx(triplet_accuracy(W, triplets[:100]), abs=1e-12)


def test_chunks_change_nothing(monkeypatch):
    W, triplets = case()
    expected = triplet_accuracy(W, triplets), triplet_probabilities(W, triplets)
    monkeypatch.setattr("simdims.metrics.choices._CHUNK", 7)
    monkeypatch.setattr("simdims.metrics._pairs.BLOCK", 9)
    assert triplet_accuracy(W, triplets) == pytest.approx(expected[0], abs=1e-12)
    np.testing.assert_allclose(triplet_probabilities(W, triplets), expected[1], atol=1e-12)


def test_over_all_answers_to_all_triplets_accuracy_is_exactly_chance():
    for W in (case()[0], np.ones((12, 2)), np.zeros((12, 1))):
        assert triplet_accuracy(W, all_triplets(12)) == pytest.approx(1 / 3, abs=1e-12)


@pytest.mark.parametrize(("third", "credit"), [(0.5, 1.0), (0.9, 0.5), (1.0, 0.0)])
def test_a_tie_of_two_counts_half(third, credit):
    S = np.array([[1.0, 0.9, third], [0.9, 1.0, 0.2], [third, 0.2, 1.0]])
    assert triplet_accuracy(S, [[0, 1, 2]]) == credit


def test_rounding_makes_no_ties_into_decisions():
    W = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2], [0.7, 0.1, 0.1], [0.1, 0.1, 0.7]])
    tied = [[2, 0, 1]]  # w_2 . w_0 = w_2 . w_1 = 0.12 > w_0 . w_1 = 0.1
    for scale in (1.0, 1 / 3, 1e-9):
        assert triplet_accuracy(W * scale, tied) == 0.5


@pytest.mark.parametrize("storage", ["dense", "frame", "sparse", "implicit", "list"])
def test_similarities_are_taken_as_they_are(storage):
    W, triplets = case()
    W[:, 0] += 1  # no row of zeros
    S = W @ W.T
    given = {
        "dense": Similarity(S),
        "frame": pd.DataFrame(S),
        "sparse": Similarity(sparse.csr_array(S), absent="zero"),
        "implicit": Similarity.from_factors(W.astype(np.float32)),
        "list": S.tolist(),
    }[storage]
    assert triplet_accuracy(given, triplets) == pytest.approx(by_brute_force(S, triplets), abs=1e-12)
    np.testing.assert_allclose(triplet_probabilities(given, triplets), triplet_probabilities(W, triplets), atol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "weights", "sparse", "sparse weights"])
def test_a_triplet_with_a_missing_pair_is_a_guess(storage):
    W, triplets = case()
    S = W @ W.T + 1
    gaps = np.triu(np.random.default_rng(0).uniform(size=S.shape) < 0.2, 1)
    gaps |= gaps.T
    weights = np.where(gaps, 0.0, 1.0)
    given = {
        "dense": Similarity(np.where(gaps, np.nan, S)),
        "weights": Similarity(S, weights=weights),
        "sparse": Similarity(sparse.csr_array(np.where(gaps, 0.0, S)), absent="missing"),
        "sparse weights": Similarity(
            sparse.csr_array(S),
            weights=sparse.csr_array((weights.ravel(), np.nonzero(S)), shape=S.shape),
            absent="zero",
        ),
    }[storage]
    holed = np.where(gaps, np.nan, S)
    unknown = np.array([np.isnan([holed[i, j], holed[i, k], holed[j, k]]).any() for i, j, k in triplets])
    with pytest.warns(UserWarning, match=f"{unknown.sum()} of 200 triplets"):
        accuracy = triplet_accuracy(given, triplets)
    assert accuracy == pytest.approx(by_brute_force(holed, triplets), abs=1e-12)
    probabilities = triplet_probabilities(given, triplets)
    np.testing.assert_array_equal(np.isnan(probabilities).any(axis=1), unknown)


def test_an_absent_pair_that_is_a_zero_of_any_weight_is_a_zero():
    S = sparse.csr_array(np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    assert triplet_accuracy(Similarity(S, absent=0.03), [[0, 1, 2], [0, 2, 1]]) == 0.5


@pytest.mark.parametrize("odd", [0, 1, 2, -1, -2, -3, "odd"])
def test_odd_names_the_column(odd):
    W, triplets = case()
    column = 2 if odd == "odd" else odd % 3
    order = [0, 1]
    order.insert(column, 2)
    frame = pd.DataFrame(triplets[:, order], columns=["a", "b", "odd"])
    given = frame if odd == "odd" else frame.to_numpy()
    assert triplet_accuracy(W, given, odd=odd) == triplet_accuracy(W, triplets)


def test_items_may_be_named():
    W, triplets = case()
    names = [f"object {i}" for i in range(12)][::-1]
    named = [[names[item] for item in row] for row in triplets]
    expected = triplet_accuracy(W, triplets)
    assert triplet_accuracy(W, named, labels=names) == expected
    assert triplet_accuracy(pd.DataFrame(W, index=names), named) == expected
    assert triplet_accuracy(Similarity(W @ W.T, labels=names), named) == expected
    square = pd.DataFrame(np.hstack([W, np.zeros((12, 8))]), index=names)  # 12 x 12, and columns that are no items
    square.columns = [f"dimension{k}" for k in range(12)]
    assert triplet_accuracy(square, named) == expected


def test_cosines_do_not_depend_on_the_lengths_of_rows():
    W, triplets = case()
    W[0] = 0.0
    lengths = np.linalg.norm(W, axis=1)
    unit = W / np.where(lengths > 0, lengths, 1)[:, None]
    stretched = W * np.random.default_rng(0).uniform(0.1, 9, size=(12, 1))
    cosines = np.round(unit @ unit.T, 12)
    assert triplet_accuracy(stretched, triplets, similarity="cosine") == pytest.approx(
        by_brute_force(cosines, triplets), abs=1e-12
    )
    np.testing.assert_allclose(
        triplet_probabilities(stretched, triplets, similarity="cosine"),
        triplet_probabilities(unit, triplets),
        atol=1e-12,
    )


@pytest.mark.parametrize("temperature", [0.1, 1.0, 3.0])
def test_probabilities_are_the_softmax_of_the_other_twos_similarity(temperature):
    W, triplets = case()
    expected = []
    for i, j, k in triplets:
        powers = np.exp(np.array([W[j] @ W[k], W[i] @ W[k], W[i] @ W[j]]) / temperature)
        expected.append(powers / powers.sum())
    np.testing.assert_allclose(triplet_probabilities(W, triplets, temperature=temperature), expected, atol=1e-12)


def test_huge_similarities_do_not_overflow():
    W = np.array([[30.0, 0.0], [40.0, 0.0], [0.0, 50.0]])
    np.testing.assert_allclose(triplet_probabilities(W * 100, [[0, 1, 2]] * 2)[0], [0, 0, 1], atol=1e-12)


W42, TRIPLET = np.ones((4, 2)), [[0, 1, 2]]


@pytest.mark.parametrize(
    ("W", "triplets", "keywords", "words"),
    [
        (W42, [[0, 1, 4]], {}, "triplets .* = 3, got 4 in row 0"),
        (W42, [[0, 1, 1]], {}, "triplets .*three different"),
        (W42, [[0, 1, 0.5]], {}, "triplets .*0.5"),
        (W42, [[0, 1]], {}, "triplets .*3 columns"),
        (W42, [["a", "b", "c"]], {}, "triplets .*'a'"),
        (W42, [["a", "b", "x"]], {"labels": "abcd"}, "labels .*'abcd'"),
        (W42, [["a", "b", "x"]], {"labels": list("abcd")}, "triplets .*labels.*'x'"),
        (W42, TRIPLET, {"odd": 3}, "odd .*3"),
        (W42, TRIPLET, {"similarity": "rbf"}, "similarity .*'rbf'"),
        (np.ones((4, 4)), TRIPLET, {"similarity": "cosine"}, "similarity .*'cosine'"),
        (np.tri(4), TRIPLET, {}, r"W .*symmetric.*\(4, 4\)"),
        ([[1.0], [np.inf], [1.0]], TRIPLET, {}, "W .*inf for item 1, column 0"),
        (-np.ones((3, 3)), TRIPLET, {}, "values .*non-negative"),
        (sparse.csr_array(np.eye(3)), TRIPLET, {}, "absent "),
    ],
)
def test_triplet_accuracy_refuses_bad_arguments(W, triplets, keywords, words):
    with pytest.raises((ValueError, TypeError), match=words):
        triplet_accuracy(W, triplets, **keywords)


@pytest.mark.parametrize("temperature", [0, -1.0, np.inf, np.nan, "hot", True])
def test_temperature_must_be_a_positive_number(temperature):
    with pytest.raises(ParameterError, match=f"temperature .*{temperature}"):
        triplet_probabilities(np.ones((3, 2)), TRIPLET, temperature=temperature)


def test_inputs_are_never_changed():
    W, triplets = case()
    copies = W.copy(), triplets.copy()
    triplet_accuracy(W, triplets, odd=0, similarity="cosine")
    triplet_probabilities(W, triplets)
    noise_ceiling(np.tile(triplets, (10, 1)))
    np.testing.assert_array_equal(W, copies[0])
    np.testing.assert_array_equal(triplets, copies[1])


def answers(*counts_of_sets):
    """Answers to sets of three items, where each item of a set was the odd one out so often; rows shuffled."""
    rows = []
    for number, counts in enumerate(counts_of_sets):
        a, b, c = 10 * number, 10 * number + 4, 10 * number + 7
        for odd, count in zip((a, b, c), counts, strict=True):
            others = [item for item in (a, b, c) if item != odd]
            rows += [[*others[:: (-1) ** k], odd] for k in range(count)]
    return np.random.default_rng(0).permutation(rows)


def left_out_by_hand(counts):
    """Each answer predicted by the most frequent of the others, one at a time."""
    given = [k for k in range(3) for _ in range(counts[k])]
    credit = 0.0
    for place, answer in enumerate(given):
        others = given[:place] + given[place + 1 :]
        tally = [others.count(k) for k in range(3)]
        if tally[answer] == max(tally):
            credit += 1 / tally.count(max(tally))
    return credit / len(given)


def test_the_ceiling_is_that_of_a_table_made_by_hand():
    table = (10, 0, 0), (6, 3, 1), (4, 4, 4), (0, 2, 18)
    ceiling = noise_ceiling(answers(*table))
    shares = np.array([1.0, 0.6, 1 / 3, 0.9])
    assert ceiling.ceiling == pytest.approx(shares.mean())
    assert ceiling.standard_error == pytest.approx(shares.std(ddof=1) / 2)
    assert ceiling.confidence_interval == pytest.approx(
        (shares.mean() - 1.96 * ceiling.standard_error, shares.mean() + 1.96 * ceiling.standard_error)
    )
    lower = np.array([left_out_by_hand(counts) for counts in table])
    np.testing.assert_allclose(lower, [1.0, 0.6, 0.0, 0.9])
    assert ceiling.lower == pytest.approx(lower.mean())
    assert ceiling.lower_standard_error == pytest.approx(lower.std(ddof=1) / 2)
    assert (ceiling.n_triplets, ceiling.n_answers, ceiling.n_left_out) == (4, 52, 0)


@pytest.mark.filterwarnings("ignore:With few answers")
@pytest.mark.parametrize("counts", [c for c in itertools.product(range(4), repeat=3) if sum(c) >= 2])
def test_the_lower_estimate_leaves_one_answer_out_at_a_time(counts):
    ceiling = noise_ceiling(answers(counts))
    assert ceiling.lower == pytest.approx(left_out_by_hand(counts), abs=1e-12)
    assert ceiling.ceiling == pytest.approx(max(counts) / sum(counts))
    assert np.isnan(ceiling.standard_error)


def test_the_two_estimates_enclose_the_true_ceiling_and_close_in_on_it():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], size=1500)
    widths = []
    for n in (12, 60):
        ceiling = noise_ceiling(answers(*(rng.multinomial(n, q) for q in p)))
        assert ceiling.lower < p.max(axis=1).mean() < ceiling.ceiling
        widths.append(ceiling.ceiling - ceiling.lower)
    assert widths[1] < 0.6 * widths[0]


def test_the_standard_error_is_the_spread_of_ceilings_over_samples_of_triplets():
    rng = np.random.default_rng(0)
    ceilings = [
        noise_ceiling(answers(*(rng.multinomial(15, q) for q in rng.dirichlet([1, 1, 1], size=60)))) for _ in range(150)
    ]
    spread = np.std([ceiling.ceiling for ceiling in ceilings], ddof=1)
    assert np.mean([ceiling.standard_error for ceiling in ceilings]) == pytest.approx(spread, rel=0.15)


def test_few_answers_per_triplet_are_a_warning():
    with pytest.warns(UserWarning, match=r"median 2\b"):
        noise_ceiling(answers((1, 1, 0), (2, 0, 0), (3, 0, 0)))


def test_triplets_with_too_few_answers_are_left_out_and_counted():
    many = answers((9, 1, 0), (1, 0, 0), (2, 2, 0))
    ceiling = noise_ceiling(many, min_answers=5)
    assert (ceiling.ceiling, ceiling.n_triplets, ceiling.n_answers, ceiling.n_left_out) == (0.9, 1, 10, 5)


def test_names_and_columns_change_nothing():
    table = answers((9, 1, 2), (0, 12, 3))
    names = np.array([f"item {i}" for i in range(20)])
    frame = pd.DataFrame(names[table][:, [2, 0, 1]], columns=["odd", "one", "two"])
    assert noise_ceiling(frame, odd="odd") == noise_ceiling(table)
    assert noise_ceiling(table, odd=0) != noise_ceiling(table)


def test_the_fraction_is_corrected_for_chance():
    ceiling = noise_ceiling(answers((15, 5, 0)))
    assert ceiling.fraction(0.75) == pytest.approx(1)
    assert ceiling.fraction(1 / 3) == pytest.approx(0, abs=1e-12)
    assert ceiling.fraction(0.5) == pytest.approx((0.5 - 1 / 3) / (0.75 - 1 / 3))
    assert ceiling.fraction(0.1) < 0


@pytest.mark.parametrize("accuracy", [63.97, -0.1, np.nan, "0.5", True])
def test_an_accuracy_in_percent_is_refused(accuracy):
    with pytest.raises(ParameterError) as caught:
        noise_ceiling(answers((15, 5, 0))).fraction(accuracy)
    assert (caught.value.name, caught.value.got) == ("accuracy", repr(accuracy))


@pytest.mark.parametrize(
    ("triplets", "min_answers", "words"),
    [
        ([[0, 1, 2], [0, 1, 3]], 2, "triplets .*at most 1"),
        ([[0, 1, 2]] * 2, 1, "min_answers .*1"),
        ([[0, 1, 1]] * 2, 2, "triplets .*three different"),
        (np.empty((0, 3)), 2, "triplets .*none"),
    ],
)
def test_noise_ceiling_refuses_bad_arguments(triplets, min_answers, words):
    with pytest.raises(ValueError, match=words):
        noise_ceiling(triplets, min_answers=min_answers)


def test_without_agreement_there_is_no_fraction_of_the_ceiling():
    with pytest.raises(ValueError, match="above chance"):
        noise_ceiling(answers((4, 4, 4))).fraction(0.5)
