"""select_rank: what a fit may know, how ranks are judged, and that nothing but data and seed decides."""

import itertools
import json
import re
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import similarity_examples
from scipy import sparse
from similarity_examples import half_stored as as_sparse

from simdims import SRF, ParameterError, RankSelection, Similarity, _parallel, calibrate, select_rank, simulate, solvers
from simdims.selection import crossvalidation, splits, trials
from simdims.selection import fits as fitting
from simdims.selection.fits import (
    Design,
    Splits,
    Task,
    Training,
    draw_candidates,
    draw_folds,
    fit_fold,
    fit_folds,
    fit_trainings,
)
from simdims.selection.rank_search import coarse_grid, search_ranks
from simdims.selection.result import Rule, Score, choose, difference, held_out
from simdims.srf import solve_many

QUICK = {"sampling": 0.6, "n_folds": 3, "n_repeats": 2, "random_state": 0}
EDGE = "ignore:(The lowest held-out error|A fit to)"


similarities = partial(similarity_examples.similarities, n=40, r=3, snr=0.8)
STORAGES = {
    "dense": lambda: Similarity(similarities()),
    "dense gaps": lambda: Similarity(similarities(observed=0.7)),
    "sparse missing": lambda: as_sparse(similarities(), "missing"),
    "sparse zero": lambda: as_sparse(similarities(), "zero"),
    "sparse light zeros": lambda: as_sparse(similarities(), 0.1),
}


def same(one, other):
    """Whether two selections are the same to the last bit, but for the time they took."""
    pd.testing.assert_frame_equal(
        one.scores.drop(columns="seconds"), other.scores.drop(columns="seconds"), check_exact=True
    )
    pd.testing.assert_frame_equal(one.curve, other.curve, check_exact=True)
    left, right = one.to_dict(), other.to_dict()
    for name in ("scores", "curve"):
        left.pop(name), right.pop(name)
    assert left == right


# --- held-out values never reach a fit ---------------------------------------------------------------------------


def fit_training(matrix, pairs, trains, estimator, root, task):
    problem = splits.training_problem(matrix, pairs, trains)
    training = Training(problem, *solvers.observed_range(problem))
    return fit_trainings(matrix, [training], estimator, root, [task])[0], training.low, training.high


def poisoned(matrix, pairs, held, poison):
    """The matrix with other values for the held-out pairs, in the caller's own storage."""
    values = matrix.values.copy()
    rows, columns = pairs.rows[held], pairs.columns[held]
    if matrix.starts is None:
        values[rows, columns] = values[columns, rows] = poison
    else:
        keys = set(zip(rows.tolist(), columns.tolist(), strict=True))
        for i in range(matrix.n_items):
            for e in range(matrix.starts[i], matrix.starts[i + 1]):
                j = int(matrix.indices[e])
                if (min(i, j), max(i, j)) in keys:
                    values[e] = poison
    return matrix._replace(values=values)


@pytest.mark.parametrize("init", ["random", "spectral"])
@pytest.mark.parametrize("solver", ["bcd", "admm"])
@pytest.mark.parametrize("storage", STORAGES)
def test_held_out_values_never_reach_a_fit(storage, solver, init):
    matrix = splits.plain(STORAGES[storage]())
    design = Design(0.6, 4, 1, 7)
    estimator = SRF(solver=solver, init=init, max_iter=30)
    pairs = draw_candidates(matrix, design.root)
    folds = draw_folds(len(pairs.rows), design, 0)
    for rank in (2, 9):  # few dimensions are fitted from lists of pairs, many by filling
        task = Task(rank, 0, 1)
        trains = (folds >= 0) & (folds != task.fold)
        clean, *clean_range = fit_training(matrix, pairs, trains, estimator, design.root, task)
        for poison in (1e9, 0.0):
            spoilt = poisoned(matrix, pairs, ~trains, poison)
            assert not np.array_equal(spoilt.values, matrix.values, equal_nan=True)
            found, *found_range = fit_training(spoilt, pairs, trains, estimator, design.root, task)
            np.testing.assert_array_equal(found.W, clean.W)
            assert found_range == clean_range
            # The whole way, from the matrix alone: the pairs are drawn again, of the places and not of the values.
            whole = fit_fold(*spoilt, design, estimator, task)
            np.testing.assert_array_equal(whole.W, clean.W)
            assert [whole.low, whole.high] == clean_range


@pytest.mark.parametrize("solver", ["bcd", "admm"])
@pytest.mark.parametrize("storage", STORAGES)
def test_a_held_out_pair_is_a_missing_pair(storage, solver):
    matrix = splits.plain(STORAGES[storage]())
    design, task = Design(0.6, 4, 1, 7), Task(3, 0, 1)
    pairs = draw_candidates(matrix, design.root)
    folds = draw_folds(len(pairs.rows), design, 0)
    trains = (folds >= 0) & (folds != task.fold)
    estimator = SRF(solver=solver, max_iter=30)
    clean, *_ = fit_training(matrix, pairs, trains, estimator, design.root, task)
    # The same fit to similarities in which the user has marked those pairs as missing.
    rows, columns = pairs.rows[~trains], pairs.columns[~trains]
    S = splits.zero_filled(matrix)
    if matrix.starts is None:
        S[np.isnan(matrix.values)] = np.nan
        S[rows, columns] = S[columns, rows] = np.nan
    else:
        S = S.tolil()
        S[rows, columns] = np.nan
        S[columns, rows] = np.nan
        S = sparse.csr_array(S.tocsr())
    problem = solvers.as_problem(S, None, matrix.absent_weight)
    seed = _parallel.seed_of(design.root, fitting._FIT, *task)
    marked = solve_many(estimator, [problem], task.rank, [seed])[0]
    # Pairs listed with weight zero are summed in other groups than pairs that are not listed: equal up to rounding.
    np.testing.assert_allclose(marked.W, clean.W, rtol=1e-9, atol=1e-12)


# --- scores ------------------------------------------------------------------------------------------------------


def fits_of(matrix, design, rank, estimator=None):
    estimator = estimator or SRF(max_iter=20)
    return [
        fit_fold(*matrix, design, estimator, Task(rank, repeat, fold))
        for repeat in range(design.n_repeats)
        for fold in range(design.n_folds)
    ]


def slow_errors(matrix, design, fits):
    """Error of each fold by plain loops: `averaged`, `alone`, and the squared error and share of each scored pair."""
    pairs = draw_candidates(matrix, design.root)
    folds = [draw_folds(len(pairs.rows), design, repeat) for repeat in range(design.n_repeats)]

    def prediction(fit, e):
        product = float(sum(a * b for a, b in zip(fit.W[pairs.rows[e]], fit.W[pairs.columns[e]], strict=True)))
        return min(max(product, fit.low), fit.high)

    averaged, alone, terms = [], [], []
    for fit in fits:
        total = np.zeros(2)
        weight = 0.0
        scored = []
        for e in range(len(pairs.rows)):
            if folds[fit.task.repeat][e] != fit.task.fold:
                continue
            blind = [f for f in fits if folds[f.task.repeat][e] in (splits.OUTSIDE_POOL, f.task.fold)]
            mean = np.mean([prediction(f, e) for f in blind])
            squares = np.array([(mean - pairs.values[e]) ** 2, (prediction(fit, e) - pairs.values[e]) ** 2])
            total += pairs.weights[e] * squares
            weight += pairs.weights[e]
            scored.append((pairs.rows[e], pairs.columns[e], pairs.weights[e], *squares))
        averaged.append(total[0] / weight)
        alone.append(total[1] / weight)
        terms.append([(i, j, w / weight, a, b) for i, j, w, a, b in scored])
    return averaged, alone, terms


def weighted():
    weights = 1.0 + 3.0 * (np.add.outer(np.arange(20), np.arange(20)) % 3 == 0)
    return Similarity(similarities(n=20), weights=weights)


@pytest.mark.parametrize("make", [*STORAGES.values(), weighted], ids=[*STORAGES, "weighted"])
def test_errors_are_those_of_the_obvious_loops(make):
    matrix = splits.plain(make())
    design = Design(0.5, 3, 2, 3)
    fits = fits_of(matrix, design, 3)
    score = fitting.score_fits(Splits(matrix, design), fits)
    averaged, alone, _ = slow_errors(matrix, design, fits)
    np.testing.assert_allclose(score.errors("averaged"), averaged, rtol=1e-10)
    np.testing.assert_allclose(score.errors("paper"), alone, rtol=1e-10)


@pytest.mark.parametrize("make", [*STORAGES.values(), weighted], ids=[*STORAGES, "weighted"])
def test_rescaled_predictions_are_on_the_line_of_the_other_folds(make):
    matrix, design = splits.plain(make()), Design(0.5, 3, 2, 3)
    fits = fits_of(matrix, design, 3)
    pairs = draw_candidates(matrix, design.root)
    folds = [draw_folds(len(pairs.rows), design, repeat) for repeat in range(design.n_repeats)]
    held = {fit.task: np.flatnonzero(folds[fit.task.repeat] == fit.task.fold) for fit in fits}
    predicted = {
        fit.task: (fit.W @ fit.W.T)[pairs.rows[those], pairs.columns[those]].clip(fit.low, fit.high)
        for fit, those in zip(fits, held.values(), strict=True)
    }
    expected = []
    for task in held:
        others = [one for one in held if one.repeat == task.repeat and one.fold != task.fold]
        x = np.concatenate([predicted[one] for one in others])
        e = np.concatenate([held[one] for one in others])
        slope, intercept = np.polyfit(x, pairs.values[e], 1, w=np.sqrt(pairs.weights[e]))
        if slope < 0:
            slope, intercept = 0.0, np.average(pairs.values[e], weights=pairs.weights[e])
        those = held[task]
        squares = (intercept + slope * predicted[task] - pairs.values[those]) ** 2
        expected.append(np.average(squares, weights=pairs.weights[those]))
    score = fitting.score_fits(Splits(matrix, design), fits, rescaled=True)
    np.testing.assert_allclose(score.errors("penalised"), expected, rtol=1e-9)
    np.testing.assert_allclose(score.errors("paper"), fitting.score_fits(Splits(matrix, design), fits).errors("paper"))


def test_predictions_without_spread_or_of_the_wrong_sign_become_the_mean():
    pairs = draw_candidates(splits.plain(Similarity(similarities(n=12))), 0)
    held = np.array_split(np.arange(60), 3)
    others = [np.concatenate([held[j] for j in range(3) if j != i]) for i in range(3)]
    means = [pairs.values[e].mean() for e in others]
    for predicted in ([np.full(20, 0.3)] * 3, [-pairs.values[e] for e in held]):
        folds = [fitting._Held(e, x, pairs.values[e], pairs.weights[e]) for e, x in zip(held, predicted, strict=True)]
        lines = fitting._lines(folds, np.zeros(3), 1)
        for (mean_y, slope, mean_x), x, mean in zip(lines, predicted, means, strict=True):
            np.testing.assert_allclose(mean_y + slope * (x - mean_x), mean)


@pytest.mark.parametrize(("structure", "least"), [(True, 1.0), (None, 2.5), (False, 4.0)])
def test_one_dimension_is_enough_unless_more_are_clearly_better(structure, least):
    rule = Rule("penalised", 1.0, structure)
    ranks, standard_errors = np.array([1, 2, 3]), np.array([0.01, 0.001, 0.0])
    for above, expected in ((0.9, 0), (1.1, 2)):
        assert rule.choose(ranks, np.array([0.5 + above * least * 0.01, 0.51, 0.5]), standard_errors) == expected
    without = rule.choose(ranks[1:], np.array([0.5001, 0.5]), standard_errors[1:])
    assert without == 0  # 1 was not tried, and a third dimension explains less than 0.3%


@pytest.mark.parametrize(("gain", "expected"), [(0.0029, 3), (0.0031, 5)])
def test_dimensions_must_explain_their_share(gain, expected):
    """Two more dimensions that explain more or less than 0.3% each of what is explained."""
    ranks = np.array([2, 3, 5])
    errors = np.array([0.9, 0.4 + 2 * gain * 0.6, 0.4])
    assert ranks[Rule("penalised", 1.0).choose(ranks, errors, np.ones(3))] == expected


def test_predictions_are_clipped_to_what_the_fit_has_seen():
    W = np.array([[2.0], [3.0], [0.1]])
    rows, columns = np.array([0, 0, 1]), np.array([1, 2, 2])
    np.testing.assert_allclose(fitting.predict(W, rows, columns, 0.25, 5.0), [5.0, 0.25, 0.3])


def test_predictions_do_not_depend_on_how_many_are_made_at_once(monkeypatch):
    W = np.random.default_rng(0).random((30, 7))
    rows, columns = np.random.default_rng(1).integers(30, size=(2, 500))
    whole = fitting.predict(W, rows, columns, 0.0, 10.0)
    monkeypatch.setattr(fitting, "_CHUNK", 50)
    np.testing.assert_array_equal(fitting.predict(W, rows, columns, 0.0, 10.0), whole)


@pytest.mark.parametrize("make", [*STORAGES.values(), weighted], ids=[*STORAGES, "weighted"])
def test_splits_that_are_kept_and_threads_change_no_digit(make, monkeypatch):
    matrix, design = splits.plain(make()), Design(0.5, 3, 2, 3)
    tasks = [Task(3, repeat, fold) for repeat in range(2) for fold in range(3)]
    together = Splits(matrix, design, 3)
    fits = fit_folds(together, SRF(max_iter=20), tasks)
    scores = [fitting.score_fits(together, fits, rescaled=rescaled) for rescaled in (False, True)]
    kept = fit_folds(together, SRF(max_iter=20), tasks)
    monkeypatch.setattr(fitting, "_MOST_KEPT", 0)
    drawn_again = Splits(matrix, design)
    for fit, again in zip(fits, kept, strict=True):
        np.testing.assert_array_equal(fit.W, again.W)
    for fit, alone in zip(fits, fits_of(matrix, design, 3), strict=True):
        np.testing.assert_array_equal(fit.W, alone.W)
        assert (fit.low, fit.high) == (alone.low, alone.high)
    for score, rescaled in zip(scores, (False, True), strict=True):
        again = fitting.score_fits(drawn_again, fits, rescaled=rescaled)
        assert [row["error"] for row in again.fits] == [row["error"] for row in score.fits]
        np.testing.assert_array_equal(again.items, score.items)
        np.testing.assert_array_equal(again.sample, score.sample)


@pytest.mark.parametrize(("most", "n_prepared"), [(2**30, 6), (0, 12)])
def test_training_data_are_prepared_once_for_all_ranks_if_they_can_be_kept(most, n_prepared, monkeypatch):
    matrix, prepared = splits.plain(Similarity(similarities())), []

    def counted(*arguments):
        prepared.append(arguments)
        return splits.training_problem(*arguments)

    monkeypatch.setattr(fitting, "training_problem", counted)
    monkeypatch.setattr(fitting, "_MOST_KEPT_FOR_RANKS", most)
    drawn = Splits(matrix, Design(0.5, 3, 2, 3))
    for rank in (2, 3):
        fit_folds(
            drawn, SRF(max_iter=5, alpha=0.1), [Task(rank, repeat, fold) for repeat in (0, 1) for fold in range(3)]
        )
    assert len(prepared) == n_prepared


def test_with_one_repeat_a_pair_has_no_other_fit_to_be_predicted_by():
    selection = select_rank(similarities(), [2, 3, 5], alpha=0.0, **{**QUICK, "n_repeats": 1})
    np.testing.assert_array_equal(selection.scores["error"], selection.scores["error_alone"])


def test_averaging_fits_lowers_the_error_of_noisy_ones():
    selection = select_rank(similarities(snr=0.5), [8], alpha=0.0, **{**QUICK, "n_repeats": 5})
    assert selection.scores["error"].mean() < 0.9 * selection.scores["error_alone"].mean()


def clustered_error(parts):
    """The standard error of a sum over pairs, where pairs that share an item are dependent."""
    dependent = sum(parts[e] * parts[f] for e in parts for f in parts if set(e) & set(f))
    return np.sqrt(max(dependent, sum(part**2 for part in parts.values())))


@pytest.mark.parametrize("protocol", ["averaged", "paper"])
def test_standard_errors_count_all_pairs_that_share_an_item_as_dependent(protocol):
    matrix = splits.plain(Similarity(similarities(n=20)))
    design = Design(0.5, 3, 2, 3)
    fits = {rank: fits_of(matrix, design, rank) for rank in (2, 5)}
    scores = {rank: fitting.score_fits(Splits(matrix, design), fits[rank]) for rank in fits}
    gap, error = difference(scores[2], scores[5], protocol)
    column = 3 if protocol == "averaged" else 4
    terms = {rank: slow_errors(matrix, design, fits[rank])[2] for rank in fits}
    # The share of every pair in the mean over folds, and its part in the difference; a pair may be scored twice.
    shares, parts = {}, {}
    for one, other in zip(terms[2], terms[5], strict=True):
        for a, b in zip(one, other, strict=True):
            assert a[:3] == b[:3]
            pair, share = (a[0], a[1]), a[2] / len(terms[2])
            shares[pair] = shares.get(pair, 0.0) + share
            parts[pair] = parts.get(pair, 0.0) + share * (a[column] - b[column])
    mean = sum(parts.values())
    assert sum(shares.values()) == pytest.approx(1.0)
    assert gap == pytest.approx(mean, rel=1e-10)
    beyond = {pair: parts[pair] - mean * shares[pair] for pair in parts}
    assert error == pytest.approx(clustered_error(beyond), rel=1e-10)


def test_a_sample_of_pairs_gives_about_the_same_standard_error(monkeypatch):
    matrix = splits.plain(Similarity(similarities(n=80)))
    design = Design(0.5, 3, 2, 3)
    fits = {rank: fits_of(matrix, design, rank) for rank in (2, 5)}

    def standard_error():
        scores = [fitting.score_fits(Splits(matrix, design), fits[rank]) for rank in (2, 5)]
        return difference(*scores, "averaged")[1]

    exact = standard_error()
    monkeypatch.setattr(fitting, "_MOST_SAMPLED", 800)  # of 3160
    assert standard_error() == pytest.approx(exact, rel=0.1)
    assert standard_error() != exact


@pytest.mark.parametrize("protocol", ["averaged", "paper"])
@pytest.mark.parametrize(
    "make",
    [weighted, lambda: Similarity(similarities(n=20, observed=0.7)), lambda: as_sparse(similarities(n=20), 0.1)],
    ids=["weighted", "gaps", "sparse light zeros"],
)
def test_held_out_r2_compares_with_the_mean_over_the_same_pairs(make, protocol):
    matrix = splits.plain(make())
    design = Design(0.5, 3, 2, 3)
    fits = fits_of(matrix, design, 2)
    found = held_out(
        fitting.score_fits(Splits(matrix, design), fits), fitting.score_mean(Splits(matrix, design)), protocol
    )
    pairs = draw_candidates(matrix, design.root)
    mean = sum(w * s for w, s in zip(pairs.weights, pairs.values, strict=True)) / sum(pairs.weights)
    value = {(i, j): s for i, j, s in zip(pairs.rows, pairs.columns, pairs.values, strict=True)}
    terms = slow_errors(matrix, design, fits)[2]
    errors, baselines = {}, {}
    for i, j, share, averaged, alone in [term for of_fit in terms for term in of_fit]:
        square = averaged if protocol == "averaged" else alone
        errors[i, j] = errors.get((i, j), 0.0) + share * square
        baselines[i, j] = baselines.get((i, j), 0.0) + share * (value[i, j] - mean) ** 2
    E, B = sum(errors.values()), sum(baselines.values())
    assert found.r2 == pytest.approx(1 - E / B, rel=1e-10)
    parts = {pair: (E / B * baselines[pair] - errors[pair]) / B for pair in errors}
    assert found.standard_error == pytest.approx(clustered_error(parts), rel=1e-10)


def test_held_out_r2_is_that_of_the_chosen_rank_and_of_the_curve():
    selection = select_rank(similarities(), range(1, 6), **QUICK)
    curve = selection.curve.set_index("rank")
    assert selection.held_out_r2 == pytest.approx(curve.loc[selection.rank, "explained_variance"])
    assert selection.evidence_of_structure is True
    assert "o evidence" not in selection.summary() + repr(selection)
    variance = np.var(similarities()[np.triu_indices(40, 1)])  # of all pairs, where the curve has those held out
    np.testing.assert_allclose(curve["explained_variance"], 1 - curve["error"] / variance, atol=0.05)


def test_similarities_that_do_not_vary_have_no_held_out_r2():
    selection = select_rank(0.3 + 0.7 * np.eye(20), [1, 2], **QUICK)
    assert selection.held_out_r2 is None
    assert selection.evidence_of_structure is None
    assert "Held-out R2 is not known: the similarities do not vary" in selection.summary()


def pure_noise(kind, n, seed):
    """Similarities in which no pair says anything about another."""
    rng = np.random.default_rng(seed)
    values = rng.random((n, n)) if kind == "uniform" else rng.exponential(size=(n, n)) ** 2
    S = np.triu(values, 1)
    S += S.T
    np.fill_diagonal(S, S.max())
    if kind == "gaps":
        S[np.triu(rng.random((n, n)) < 0.7, 1)] = np.nan
        S = np.where(np.isnan(S.T), np.nan, S)
    return S


def share_without_evidence(kind, n, n_sets, **options):
    """Of data sets of pure noise, the share in which no evidence of structure is found."""
    found = [select_rank(pure_noise(kind, n, seed), random_state=seed, **options) for seed in range(n_sets)]
    for one in found:
        assert ("No evidence of structure" in one.summary().splitlines()[0]) is not one.held_out.is_evidence
    return np.mean([one.evidence_of_structure is False for one in found])


@pytest.mark.filterwarnings(EDGE)
def test_noise_is_no_evidence_of_structure():
    options = {"sampling": 0.6, "n_repeats": 1, "progress": False}
    assert share_without_evidence("uniform", 25, 20, ranks=[1, 2, 4], **options) >= 0.95
    assert share_without_evidence("skewed", 25, 20, ranks=[1, 2, 4], **options) >= 0.95


@pytest.mark.slow
@pytest.mark.filterwarnings(EDGE)
@pytest.mark.parametrize("n", [12, 40])
@pytest.mark.parametrize("kind", ["uniform", "skewed", "gaps"])
def test_noise_is_no_evidence_of_structure_in_200_data_sets(kind, n):
    options = {"ranks": [1, 2, 4, 8], "sampling": 0.6, "n_repeats": 2, "progress": False}
    assert share_without_evidence(kind, n, 200, **options) >= 0.95


@pytest.mark.slow
def test_shuffled_animals_are_no_evidence_of_structure_and_the_animals_are(data_path):
    S = np.load(data_path("peterson_animals/animals_similarity.npy"))
    upper = np.triu_indices(len(S), 1)
    quick = {"ranks": [1, 3, 10], "sampling": 0.6, "n_repeats": 1, "progress": False}
    verdicts = []
    for seed in range(200):
        shuffled = np.diag(np.diag(S))
        shuffled[upper] = np.random.default_rng(seed).permutation(S[upper])
        shuffled = np.maximum(shuffled, shuffled.T)
        verdicts.append(select_rank(shuffled, random_state=seed, **quick).evidence_of_structure)
    assert np.mean([verdict is False for verdict in verdicts]) >= 0.95
    assert select_rank(S, random_state=0, **quick).evidence_of_structure is True


@pytest.mark.filterwarnings(EDGE)
def test_structure_is_found_where_there_is_some():
    options = {"sampling": 0.6, "n_repeats": 2, "progress": False}
    found = [select_rank(similarities(snr=0.5, seed=s), [3], random_state=s, **options) for s in range(10)]
    assert np.mean([one.evidence_of_structure is True for one in found]) >= 0.9
    # The standard error is about the spread over data sets, rather too large than too small.
    spread = np.std([one.held_out_r2 for one in found], ddof=1)
    assert 0.5 * spread < np.mean([one.held_out_r2_standard_error for one in found]) < 4 * spread


@pytest.mark.parametrize(("alpha", "clearly"), [("auto", 0.25), (0.0, 2.0)])
def test_the_smallest_rank_that_is_not_clearly_worse_is_chosen(alpha, clearly):
    S = similarities(snr=0.6)
    selection = select_rank(S, range(1, 9), alpha=alpha, **{**QUICK, "n_repeats": 3})
    curve = selection.curve.set_index("rank")
    assert selection.minimum == curve["error"].idxmin()
    variance = np.var(S[np.triu_indices(len(S), 1)])
    # No more than a tenth of the error; less than a thousandth of the variance never counts.
    by_error = clearly * curve["standard_error_of_difference"]
    allowed = np.minimum(by_error, 0.1 * curve["error"].min()).clip(1e-3 * variance)
    assert selection.rank == min(curve.index[curve["difference"] <= allowed])
    assert selection.valley == tuple(curve.index[curve["difference"] <= curve["standard_error_of_difference"]])
    assert selection.one_standard_error_rank == min(selection.valley)
    assert selection.minimum in selection.valley
    np.testing.assert_allclose(curve["error"], selection.scores.groupby("rank")["error"].mean())
    np.testing.assert_allclose(curve["standard_error"], selection.scores.groupby("rank")["error"].sem())
    np.testing.assert_allclose(curve["difference"], curve["error"] - curve["error"].min(), atol=1e-15)


def test_the_papers_protocol_scores_each_fit_alone_and_takes_the_minimum():
    averaged = select_rank(similarities(), range(1, 7), alpha=0.0, **QUICK)
    paper = select_rank(similarities(), range(1, 7), protocol="paper", **QUICK)
    np.testing.assert_array_equal(paper.scores["error"], averaged.scores["error_alone"])
    means = averaged.scores.groupby("rank")["error_alone"].mean()
    assert paper.rank == paper.minimum == means.idxmin()


@pytest.mark.parametrize(
    ("gap", "standard_error", "variance", "is_close"),
    [
        (0.05, 0.03, 1.0, True),  # less than two standard errors
        (0.05, 0.02, 1.0, False),  # more
        (0.15, 0.30, 1.0, False),  # less, but more than a tenth of the error
        (0.05, 0.00, 60.0, True),  # more, but less than a thousandth of the variance
        (0.15, 0.00, 200.0, True),
    ],
)
def test_clearly_worse_is_by_two_standard_errors_or_a_tenth_but_not_by_next_to_nothing(
    gap, standard_error, variance, is_close
):
    def score(error, deviation):
        items, sample = np.zeros((3, 4)), np.zeros((3, 6))
        items[0, 1] = deviation
        return Score([{"error": error, "error_alone": error}], items, sample, 1.0)

    scores = {3: score(1.0 + gap, standard_error), 5: score(1.0, 0.0), 8: score(1.001, standard_error)}
    assert difference(scores[3], scores[5], "averaged") == pytest.approx((gap, standard_error))
    assert choose(scores, Rule("averaged", variance)) == (5, 3 if is_close else 5)
    assert choose(scores, Rule("paper", variance)) == (5, 5)


def test_ties_go_to_the_smaller_rank():
    fit = {"error": 1.0, "error_alone": 1.0}
    score = Score([fit], np.zeros((3, 5)), np.zeros((3, 10)), 1.0)
    for protocol in ("averaged", "paper"):
        assert choose({4: score, 2: score, 9: score}, Rule(protocol, 1.0)) == (2, 2)


# --- what decides, and what does not -----------------------------------------------------------------------------


@pytest.mark.filterwarnings(EDGE)
def test_the_same_seed_gives_the_same_numbers():
    S = similarities(observed=0.8)
    same(select_rank(S, [2, 4], **QUICK), select_rank(S, [2, 4], **QUICK))
    other = select_rank(S, [2, 4], **{**QUICK, "random_state": 1})
    assert not np.array_equal(other.scores["error"], select_rank(S, [2, 4], **QUICK).scores["error"])


def test_without_a_seed_every_run_is_another_and_a_random_state_is_a_seed():
    def twice(make_state):
        return [select_rank(similarities(), [3], **{**QUICK, "random_state": make_state()}) for _ in range(2)]

    one, other = twice(lambda: None)
    assert not np.array_equal(one.scores["error"], other.scores["error"])
    same(*twice(lambda: np.random.RandomState(4)))


@pytest.mark.parametrize("storage", ["dense", "sparse light zeros", "large"])
@pytest.mark.filterwarnings(EDGE)
def test_results_do_not_depend_on_n_jobs(storage):
    S = similarities(n=420) if storage == "large" else STORAGES[storage]()  # workers map arrays above a megabyte
    options = {**QUICK, "n_repeats": 1}
    same(select_rank(S, [2, 8], **options), select_rank(S, [2, 8], n_jobs=2, **options))


@pytest.mark.filterwarnings(EDGE)
def test_results_do_not_depend_on_the_order_of_ranks_or_on_the_others():
    S = similarities()
    all_of_them = select_rank(S, [2, 3, 5, 7], **QUICK)
    same(all_of_them, select_rank(S, [7, 3, 2, 5, 3], **QUICK))
    few = select_rank(S, [7, 3], **QUICK)
    kept = all_of_them.scores[all_of_them.scores["rank"].isin([3, 7])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept.drop(columns="seconds"), few.scores.drop(columns="seconds"), check_exact=True)


@pytest.mark.filterwarnings(EDGE)
def test_all_ranks_share_their_splits():
    scored = select_rank(similarities(), [2, 5], **QUICK).scores
    assert sorted(zip(scored["rank"], scored["repeat"], scored["fold"], strict=True)) == [
        (rank, repeat, fold) for rank in (2, 5) for repeat in range(2) for fold in range(3)
    ]
    design = Design(0.6, 3, 2, 11)
    assert not np.array_equal(draw_folds(500, design, 0), draw_folds(500, design, 1))
    np.testing.assert_array_equal(draw_folds(500, design, 1), draw_folds(500, design, 1))


@pytest.mark.filterwarnings(EDGE)
def test_neither_the_input_nor_the_estimator_is_changed():
    S, stored = similarities(observed=0.8), as_sparse(similarities(), 0.1)
    before, data = S.copy(), stored.values.data.copy()
    estimator = SRF(n_components=17, random_state=5, max_iter=20)
    parameters = estimator.get_params()
    for given in (S, stored):
        select_rank(given, [2, 3], estimator=estimator, **QUICK)
    np.testing.assert_array_equal(S, before)
    np.testing.assert_array_equal(stored.values.data, data)
    assert estimator.get_params() == parameters
    assert not hasattr(estimator, "embedding_")


# --- the right number --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("r", [1, 2, 4, 6])
def test_the_rank_of_clean_similarities_is_found_and_noise_has_one_dimension(r):
    W = simulate.dirichlet(60, r, alpha=0.2, random_state=r)
    noise = np.random.default_rng(0).uniform(0.2, 0.8, (60, 60))
    S = W @ W.T if r > 1 else (noise + noise.T) / 2
    assert select_rank(S, range(1, 10), sampling=0.6, n_repeats=2, random_state=0).rank == r


@pytest.mark.parametrize("absent", ["zero", 0.1])
def test_the_blocks_of_a_sparse_matrix_are_counted(absent):
    blocks = sparse.block_diag([np.ones((12, 12))] * 4, format="csr")
    selection = select_rank(Similarity(sparse.csr_array(blocks), absent=absent), range(1, 8), **QUICK)
    assert selection.rank == 4


@pytest.mark.filterwarnings("error::UserWarning")
def test_auto_finds_the_rank_and_says_what_it_tried():
    W = simulate.dirichlet(60, 5, alpha=0.2, random_state=1)
    selection = select_rank(W @ W.T, n_repeats=1, n_folds=3, random_state=0)
    assert selection.rank == 5
    assert set(selection.tried) >= {1, 4, 5, 6}
    assert set(selection.tried) == set(selection.curve["rank"])


def test_calibration_is_that_of_calibrate_with_the_same_seed():
    S = similarities()
    selection = select_rank(S, [3], n_repeats=1, n_folds=5, alpha=0.0, random_state=3)
    found = calibrate(S, random_state=3)
    assert selection.sampling == found.sampling
    np.testing.assert_array_equal(selection.calibration.signal_loss, found.signal_loss)


def test_with_a_penalty_a_search_begins_at_the_cutoff_of_calibrate(monkeypatch):
    S = similarities()
    began = []
    search = trials.search_ranks
    monkeypatch.setattr(trials, "search_ranks", lambda *given: began.append(given[2]) or search(*given))
    selection = select_rank(S, n_repeats=1, n_folds=5, alpha=0.1, random_state=3)
    assert began == [calibrate(S, random_state=3).cutoff]
    assert selection.calibration is None
    assert selection.sampling == selection.training_share == 0.8


@pytest.mark.slow
@pytest.mark.parametrize("observed", [1.0, 0.5])
@pytest.mark.parametrize("r", [3, 9, 12])
def test_the_rank_of_noisy_similarities_is_found_within_one(r, observed):
    S = similarities(n=150, r=r, alpha=0.3, snr=0.7, observed=observed, seed=r)
    assert abs(select_rank(S, random_state=0).rank - r) <= 1


# --- corner cases ------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("ranks", [[4], 4, np.int64(4)])
def test_one_candidate_is_the_choice(ranks):
    selection = select_rank(similarities(), ranks, **QUICK)
    assert selection.rank == selection.minimum == selection.one_standard_error_rank == 4
    assert selection.valley == selection.tried == (4,)
    assert not selection.at_edge


@pytest.mark.filterwarnings(EDGE)
@pytest.mark.parametrize("storage", STORAGES)
def test_ranks_may_go_up_to_one_less_than_the_items(storage):
    S = STORAGES[storage]()
    selection = select_rank(S, [2, S.n_items - 1], **QUICK)
    assert selection.tried == (2, S.n_items - 1)
    assert np.isfinite(selection.scores["error"]).all()


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("as_pairs", [True, False])
@pytest.mark.filterwarnings(EDGE, "ignore:values looks like")
def test_an_item_with_two_pairs_is_fine_though_a_fit_may_not_see_it(as_pairs, diagonal):
    S = similarities(n=12)
    S[0, 3:] = S[3:, 0] = np.nan
    if not diagonal:
        np.fill_diagonal(S, np.nan)
    data = S
    if as_pairs:
        i, j = np.nonzero(~np.isnan(S))
        data = Similarity(sparse.csr_array((S[i, j], (i, j)), shape=S.shape), absent="missing")
    selection = select_rank(data, [1, 2, 3], sampling=0.5, n_folds=3, n_repeats=4, random_state=0)
    assert np.isfinite(selection.scores["error"]).all()


@pytest.mark.parametrize("rank", [2, 9])
@pytest.mark.parametrize("solver", ["bcd", "admm"])
def test_an_item_that_a_fit_does_not_see_is_not_predicted_by_what_it_started_with(solver, rank):
    S = similarities(n=12)
    np.fill_diagonal(S, np.nan)
    matrix = splits.plain(Similarity(S))
    pairs = draw_candidates(matrix, 0)
    trains = pairs.rows != 0
    solution, *_ = fit_training(matrix, pairs, trains, SRF(solver=solver), 0, Task(rank, 0, 0))
    np.testing.assert_array_equal(solution.W[0], np.zeros(rank))
    assert solution.W[1:].any(axis=1).all()


def no_fits(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a fit was started")

    monkeypatch.setattr(crossvalidation, "fit_fold", refuse)


def test_a_fold_without_pairs_is_an_error_before_any_fit(monkeypatch):
    no_fits(monkeypatch)
    S = np.full((8, 8), np.nan)
    np.fill_diagonal(S, 1.0)
    for i in range(7):
        S[i, i + 1] = S[i + 1, i] = 0.5
    with pytest.raises(ValueError, match=r"one observed pair per fold.* 8 folds"):
        select_rank(S, [1, 2], sampling=0.1, n_repeats=3, random_state=0)


def test_a_pool_at_its_cap_is_a_warning_with_the_share_that_results():
    with pytest.warns(UserWarning, match=r"0\.90.* 5 folds .* 76%") as caught:
        selection = select_rank(similarities(), [2], **{**QUICK, "sampling": 0.9, "n_folds": 5})
    assert selection.sampling == 0.9
    assert selection.training_share == pytest.approx(0.76)
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("error::UserWarning")
def test_below_the_cap_there_is_no_warning():
    selection = select_rank(similarities(), [2], **{**QUICK, "sampling": 0.63})
    assert selection.training_share == pytest.approx(0.63)


def test_a_minimum_at_the_end_of_the_ranks_is_a_warning():
    S = similarities(n=80, r=8, snr=1.0)
    with pytest.warns(UserWarning, match=r"3\. .* 6") as caught:
        selection = select_rank(S, [1, 2, 3], **QUICK)
    assert selection.at_edge
    assert "above 3 were not tried" in selection.summary()
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "ranks",
    [
        (rank for rank in (2, 4)),
        np.array([4, 2]),
        {2, 4},
        [2, 4, 4, 2],
        range(2, 5, 2),
        (np.int32(2), 4),
        pd.Series([2, 4]),
        {2: "two", 4: "four"}.keys(),
    ],
    ids=lambda ranks: type(ranks).__name__,
)
@pytest.mark.filterwarnings(EDGE)
def test_ranks_may_be_any_iterable(ranks):
    assert select_rank(similarities(), ranks, **QUICK).tried == (2, 4)


def test_three_items_are_enough():
    S = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = select_rank(S, [1, 2], sampling=0.6, n_folds=2, n_repeats=1, random_state=1)
    assert selection.rank in (1, 2)


def test_single_precision_gives_the_same_choice():
    S = similarities(observed=0.8)
    single, double = (select_rank(S.astype(dtype), range(1, 7), **QUICK) for dtype in (np.float32, np.float64))
    assert single.rank == double.rank
    np.testing.assert_allclose(single.curve["error"], double.curve["error"], rtol=0.02)


def test_implicit_similarities_are_as_good_as_their_matrix():
    F = simulate.dirichlet(40, 4, alpha=0.3, random_state=0)
    implicit, explicit = (
        select_rank(Similarity.from_factors(F), [2, 4, 6], **QUICK),
        select_rank(Similarity(F @ F.T), [2, 4, 6], **QUICK),
    )
    same(implicit, explicit)


# --- estimator ---------------------------------------------------------------------------------------------------


def test_the_papers_solver_can_be_used():
    S = similarities(n=30)
    admm = select_rank(S, range(1, 6), estimator=SRF(solver="admm", max_iter=50), **QUICK)
    assert admm.rank == select_rank(S, range(1, 6), **QUICK).rank
    assert admm.scores["iterations"].max() <= 50


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("estimator", SRF(init=np.ones((40, 3)))),
        ("estimator", "admm"),
        ("estimator", SRF),
        ("max_iter", SRF(max_iter=0)),
        ("solver", SRF(solver="nmf")),
        ("init", SRF(init="nndsvd")),
    ],
)
def test_an_unsuitable_estimator_is_refused(monkeypatch, name, estimator):
    no_fits(monkeypatch)
    with pytest.raises(ParameterError) as caught:
        select_rank(similarities(), [2], estimator=estimator, **QUICK)
    assert caught.value.name == name


# --- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("ranks", ranks) for ranks in ("all", [], [0, 1], [40], [2.0], ["2"], [True, 2], [None], None, 2.5)],
        *[("ranks", ranks) for ranks in (np.linspace(1, 3, 3), np.array(3.0))],
        *[("sampling", sampling) for sampling in (0.0, 1, np.nan, "0.5", True)],
        ("n_folds", 5.0),
        ("n_repeats", True),
        ("protocol", "best"),
        ("S", np.ones((2, 2))),
    ],
)
def test_bad_input_is_named_before_any_work(monkeypatch, name, value):
    no_fits(monkeypatch)
    with pytest.raises(ParameterError) as caught:
        select_rank(**{"S": similarities(), "ranks": [2], **QUICK, name: value})
    assert caught.value.name == name


# --- rank search -------------------------------------------------------------------------------------------------


def search(error, largest, n_stable=None, slack=0.0):
    """All ranks that search_ranks yields, given `error`; the smallest within `slack` of the best is chosen."""
    tried = []

    def judge():
        best = min(tried, key=lambda rank: (error(rank), rank))
        return best, min(rank for rank in tried if error(rank) <= error(best) + slack)

    for ranks in search_ranks(judge, largest, n_stable):
        assert ranks
        assert not set(ranks) & set(tried)
        assert all(1 <= rank <= largest for rank in ranks)
        tried += ranks
        assert len(tried) <= largest
    return tried, judge()


@pytest.mark.parametrize("n_stable", [None, 2, 10, 60])
@pytest.mark.parametrize("best", [1, 2, 4, 7, 12, 14])
def test_the_minimum_of_a_convex_curve_is_found(best, n_stable):
    tried, (minimum, _) = search(lambda rank: (rank - best) ** 2, 200, n_stable)
    assert minimum == best
    assert {rank for rank in (best - 1, best, best + 1) if rank >= 1} <= set(tried)


@pytest.mark.parametrize("n_stable", [None, 5, 60])
@pytest.mark.parametrize("best", [23, 47, 100, 180])
def test_a_large_minimum_is_found_to_within_a_tenth_and_in_few_steps(best, n_stable):
    tried, (minimum, _) = search(lambda rank: abs(rank - best), 200, n_stable)
    assert abs(minimum - best) <= max(1, round(0.1 * best))
    assert len(tried) <= 35


@pytest.mark.parametrize("largest", [1, 2, 3, 11, 12, 13, 57, 199])
def test_a_curve_that_falls_ends_at_the_largest_rank_and_one_that_rises_at_one(largest):
    tried, (minimum, _) = search(lambda rank: -rank, largest)
    assert minimum == largest == max(tried)
    assert search(lambda rank: rank, largest)[1] == (1, 1)


def test_the_rank_before_the_chosen_one_is_tried():
    # Flat from 6 to 20, with the minimum at 20: the first that is as good is found between those of the grid.
    tried, (_, chosen) = search(lambda rank: max(6 - rank, 0) + 1e-6 * abs(rank - 20), 100, slack=1e-3)
    assert chosen == 6
    assert {5, 6} <= set(tried)


def test_the_coarse_grid_rises_by_about_the_same_ratio_and_ends_where_it_should():
    grid = np.array(coarse_grid(60))
    assert (grid[0], grid[-1]) == (1, 60)
    assert np.all(np.diff(grid) >= 1)
    assert np.max(grid[1:] / grid[:-1]) <= 2
    assert coarse_grid(1) == [1]


def test_auto_does_not_go_beyond_what_the_pairs_of_a_fit_determine():
    S = similarities(n=30, r=10, snr=1.0, alpha=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = select_rank(S, **{**QUICK, "sampling": 0.2})
    # 0.2 of 435 pairs and 30 similarities of items to themselves give 117 numbers, less than 4 x 30.
    assert selection.largest == 3
    assert max(selection.tried) <= 3


# --- results -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="selection")
def fixture_selection():
    return select_rank(similarities(), range(1, 6), n_folds=3, n_repeats=2, random_state=0)


def test_the_summary_has_the_numbers_of_the_selection(selection):
    text = str(selection)
    assert text == selection.summary()
    assert text.startswith(f"{selection.rank} dimensions")
    for number in (f"R2 {selection.held_out_r2:.3f}", "1-5", "6 fits", f"{selection.training_share:.0%}", "40 items"):
        assert number in text
    assert repr(selection).startswith(f"RankSelection(rank={selection.rank}, ")


TRIED = (1, 2, 3, 5, 8, 13)


def stated(text):
    """All whole numbers that a sentence says are within one standard error."""
    listed = re.search(r"; ([\d, -]+) (?:is|are) within one standard error", text)
    numbers = set()
    for part in listed[1].split(", ") if listed else ():
        low, _, high = part.partition("-")
        numbers |= set(range(int(low), int(high or low) + 1))
    return numbers


@pytest.mark.parametrize("protocol", ["averaged", "penalised"])
@pytest.mark.parametrize("largest", [5, 13, 40])
@pytest.mark.parametrize("minimum", TRIED)
def test_statements_about_the_choice_are_true(selection, minimum, largest, protocol):
    penalised = protocol == "penalised"
    selection = replace(selection, protocol=protocol)
    for rank in [rank for rank in TRIED if rank <= minimum]:
        for size in range(len(TRIED) + 1):
            for others in itertools.combinations([one for one in TRIED if one != minimum], size):
                valley = tuple(sorted({minimum, *others}))
                one = replace(selection, rank=rank, minimum=minimum, valley=valley, tried=TRIED, largest=largest)
                text = f"{one.choice()}. {one.edge()}"
                assert stated(text) == set(others)
                assert ("no other is within" in text) == (not others)
                each = penalised and rank not in (1, minimum)
                assert ("add less than 0.3% each" in text) == each
                assert ("smallest number not clearly worse" in text) == (rank != minimum and not each)
                assert f"lowest held-out error of the {len(TRIED)} numbers tried" in text
                best = rank if penalised else minimum
                assert ("were not tried" in text) == (best == 13 < largest)
                assert ("highest number that the pairs" in text) == (best == 13 == largest)
    assert one.choice() in one.summary()
    assert one.edge() in one.summary()


@pytest.mark.parametrize(("tried", "largest", "most"), [(1, 1, True), (5, 5, True), (5, 30, False), (5, 3, False)])
def test_a_single_number_is_not_called_better_than_any_other(selection, tried, largest, most):
    one = replace(selection, rank=tried, minimum=tried, valley=(tried,), tried=(tried,), largest=largest)
    assert one.choice().startswith("the only number tried")
    assert ("the most that the pairs of one fit can determine" in one.choice()) == most
    assert "lowest" not in one.choice()
    assert one.edge() == ""


def test_no_evidence_comes_first(selection):
    one = replace(selection, held_out_r2=0.019, held_out_r2_standard_error=0.01)
    assert one.evidence_of_structure is False
    headline = one.summary().splitlines()[0]
    assert headline.startswith("No evidence of structure: ")
    assert "0.019" in headline
    assert "no evidence of structure" in repr(one)
    assert replace(one, held_out_r2=0.021).evidence_of_structure is True
    before = replace(one, held_out_r2=None, held_out_r2_standard_error=None)
    assert before.evidence_of_structure is None
    assert "Held-out R2 is not known" in before.summary()


def test_the_recorded_seed_gives_the_selection_again(tmp_path):
    options = {**QUICK, "ranks": [2, 3, 5]}
    for given in (4, None, np.random.RandomState(4), np.random.default_rng(4)):
        found = select_rank(similarities(), **{**options, "random_state": given})
        again = select_rank(similarities(), **{**options, "random_state": found.seed})
        same(found, again)
        assert given != 4 or found.seed == 4
    kept = select_rank(similarities(), **{**options, "random_state": None}, checkpoint=tmp_path)
    same(kept, select_rank(similarities(), **{**options, "random_state": None}, checkpoint=tmp_path))
    same(kept, select_rank(similarities(), **{**options, "random_state": kept.seed}))


@pytest.mark.parametrize("given", [None, 0])
def test_a_checkpoint_without_a_random_state_resumes(tmp_path, given):
    options = {**QUICK, "ranks": [2, 3, 5]}
    whole = select_rank(similarities(), **options, checkpoint=tmp_path)
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings.pop("random_state") == 0
    del settings["format"], settings["checksum"]
    (tmp_path / "settings.json").write_text(json.dumps(settings, indent=1))  # as earlier versions wrote it
    steps = []
    again = select_rank(
        similarities(), **{**options, "random_state": given}, checkpoint=tmp_path, progress=steps.append
    )
    assert not steps
    assert again.seed == given
    same(whole, replace(again, seed=0))
    with pytest.raises(ValueError, match=r"random_state|seed"):
        select_rank(similarities(), **{**options, "random_state": 1}, checkpoint=tmp_path)


@pytest.mark.filterwarnings(EDGE)
def test_the_summary_says_when_fits_did_not_converge():
    selection = select_rank(similarities(), [2, 3], estimator=SRF(max_iter=1), **QUICK)
    assert not selection.scores["converged"].any()
    assert "100% of the fits did not converge: raise max_iter" in selection.summary()


def test_the_scores_have_a_row_for_every_fit(selection):
    assert isinstance(selection, RankSelection)
    with pytest.raises(AttributeError):
        selection.rank = 3
    assert list(selection.scores.columns) == [
        "rank", "repeat", "fold", "error", "error_alone", "iterations", "converged", "seconds"
    ]  # fmt: skip
    assert len(selection.scores) == 5 * 6
    assert (selection.scores["seconds"] > 0).all()
    assert (selection.scores["iterations"] > 0).all()


@pytest.mark.filterwarnings(EDGE)
def test_a_result_is_plain_enough_for_json(selection):
    given = json.loads(json.dumps(selection.to_dict(), allow_nan=False))
    assert given["rank"] == selection.rank
    assert given["calibration"] is None
    assert pd.DataFrame(given["scores"])["error"].tolist() == selection.scores["error"].tolist()
    whole = {"n_folds": np.int64(3), "n_repeats": np.int8(1), "random_state": 0}
    plain = select_rank(similarities(), np.arange(2, 4), sampling=np.float32(0.6), **whole)
    assert json.loads(json.dumps(plain.to_dict()))["calibration"] is None
    calibrated = select_rank(similarities(), np.arange(2, 4), alpha=0.0, **whole)
    assert json.loads(json.dumps(calibrated.to_dict()))["calibration"]["sampling"] == calibrated.sampling


# --- progress ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.filterwarnings(EDGE)
def test_a_callback_is_called_after_every_fit(n_jobs):
    told = []
    select_rank(similarities(), [2, 3, 4], n_jobs=n_jobs, progress=told.append, **{**QUICK, "sampling": None})
    stages = [step.stage for step in told]
    assert stages == ["calibrate"] * 50 + ["select rank"] * 18
    assert [step.done for step in told] == [*range(1, 51), *range(1, 19)]
    assert [step.total for step in told] == [50] * 50 + [18] * 18
    assert {step.detail for step in told[50:]} == {"rank 2", "rank 3", "rank 4"}
    assert all(step.seconds_left >= 0 for step in told)
    assert told[-1].seconds_left == 0


def test_totals_grow_while_auto_searches():
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = select_rank(similarities(), progress=told.append, **QUICK)
    done, total = np.array([(step.done, step.total) for step in told]).T
    assert done.tolist() == list(range(1, len(selection.scores) + 1))
    assert np.all(np.diff(total) >= 0)
    assert np.all(done <= total)
    assert total[-1] == len(selection.scores)


def test_a_progress_bar_is_drawn_on_request_only(capsys):
    select_rank(similarities(), [2], progress=True, **QUICK)
    assert "select rank: 100%" in capsys.readouterr().err
    for progress in (False, None):  # None: standard error is no terminal here
        select_rank(similarities(), [2], progress=progress, **QUICK)
        assert capsys.readouterr() == ("", "")


def test_an_error_in_the_callers_function_is_the_callers():
    def tell(_):
        raise LookupError("the caller's own")

    with pytest.raises(LookupError, match="the caller's own"):
        select_rank(similarities(), [2], progress=tell, **QUICK)


@pytest.mark.parametrize("n_jobs", [1, 2])
# joblib's executor, when it is ended in the middle, may meet a task that it has already dropped.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_in_a_fit_is_raised_and_not_tried_again(n_jobs):
    estimator = SRF(bounds=(0.0, 1.0), solver="bcd")
    data = as_sparse(similarities(n=20), "missing")
    with pytest.raises(ValueError, match=r"bounds.*solver='bcd'"):
        select_rank(data, [2], estimator=estimator, n_jobs=n_jobs, **QUICK)
