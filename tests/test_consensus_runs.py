"""fit_consensus: many runs, one of them chosen, whatever the storage, the number of workers and the interruptions."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from simdims import SRF, Similarity, simulate
from simdims.consensus import Consensus, Progress, align, central_run, fit_consensus


def similarities(n_items=40, n_components=4, snr=0.6, seed=0):
    W = simulate.dirichlet(n_items, n_components, random_state=seed)
    return simulate.add_noise(W @ W.T, snr, random_state=seed)


def stored():
    """The same kind of data in every storage that a fit takes."""
    S = similarities()
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random(S.shape) < 0.4, 1)
    listed = sparse.csr_array(np.where(upper | upper.T | np.eye(len(S), dtype=bool), S, 0))
    weights = np.triu(rng.integers(1, 5, S.shape), 1).astype(float)
    weights += weights.T + np.eye(len(S))
    return {
        "dense": Similarity(S),
        "float32": Similarity(S.astype(np.float32)),
        "missing": Similarity(simulate.mask_pairs(S, 0.6, random_state=0)),
        "weighted": Similarity(S, weights=weights),
        "no diagonal": Similarity(np.where(np.eye(len(S), dtype=bool), np.nan, S)),
        "sparse, missing": Similarity(listed, absent="missing"),
        "sparse, zero": Similarity(listed, absent="zero"),
        "sparse, weighted zero": Similarity(listed, absent=0.1),
        "implicit": Similarity.from_factors(simulate.dirichlet(40, 6, random_state=1)),
    }


STORED = stored()
QUICK = SRF(max_iter=30, tol=1e-2)


def assert_equal(one, other):
    np.testing.assert_array_equal(one, other)


def assert_same(one, other):
    for name in ("embeddings", "reliability", "agreement", "objectives", "converged", "n_iter", "seeds"):
        assert_equal(getattr(one, name), getattr(other, name))
    assert one.selected == other.selected


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", STORED)
def test_every_run_is_what_srf_makes_of_its_seed(kind):
    S = STORED[kind]
    consensus = fit_consensus(S, 4, n_runs=4, n_splits=3, estimator=QUICK, random_state=0)
    alone = [SRF(4, max_iter=30, tol=1e-2, random_state=seed).fit(S) for seed in map(int, consensus.seeds)]
    assert_equal(consensus.embedding, alone[consensus.selected].embedding_)
    assert consensus.embedding.dtype == alone[0].embedding_.dtype
    for run, fitted in zip(consensus.embeddings, alone, strict=True):
        assert_equal(run, align(fitted.embedding_, consensus.embedding).embedding)
    assert_equal(consensus.objectives, [fitted.objective_ for fitted in alone])
    assert_equal(consensus.n_iter, [fitted.n_iter_ for fitted in alone])
    assert_equal(consensus.converged, [fitted.converged_ for fitted in alone])
    np.testing.assert_array_equal(consensus.embedding, consensus.embeddings[consensus.selected])
    assert consensus.selected == central_run([fitted.embedding_ for fitted in alone])


def test_the_result_has_what_it_promises():
    S = similarities()
    consensus = fit_consensus(S, 5, n_runs=6, n_splits=8, random_state=0)
    assert isinstance(consensus, Consensus)
    assert (consensus.n_runs, consensus.n_items, consensus.n_components) == (6, 40, 5)
    assert consensus.embeddings.shape == (6, 40, 5)
    assert consensus.reliability.shape == (5,)
    assert consensus.mean_reliability == consensus.reliability.mean()
    shares = (consensus.embedding**2).sum(axis=0)
    assert (np.diff(shares) <= 0).all()
    assert len(set(consensus.seeds.tolist())) == 6
    assert consensus.labels is None
    assert list(consensus.embedding_frame().index) == list(range(40))


def test_agreement_is_the_mean_correlation_of_matched_columns():
    consensus = fit_consensus(similarities(snr=0.3), 6, n_runs=4, n_splits=2, random_state=0)
    expected = np.array([[align(a, b).mean for b in consensus.embeddings] for a in consensus.embeddings])
    np.testing.assert_allclose(consensus.agreement, expected)
    np.testing.assert_array_equal(consensus.agreement, consensus.agreement.T)
    np.testing.assert_array_equal(np.diag(consensus.agreement), 1)


def test_stable_dimensions_are_reliable_and_superfluous_ones_less():
    S = similarities(n_items=80, n_components=4, snr=0.7)
    right = fit_consensus(S, 4, n_runs=8, n_splits=10, random_state=0)
    too_many = fit_consensus(S, 10, n_runs=8, n_splits=10, random_state=0)
    assert right.reliability.min() > 0.99
    assert too_many.mean_reliability < right.mean_reliability - 0.05


@pytest.mark.parametrize("kind", ["frame", "similarity"])
def test_labels_are_kept(kind):
    names = [f"item {i}" for i in range(40)]
    S = similarities()
    labelled = pd.DataFrame(S, names, names) if kind == "frame" else Similarity(S, labels=names)
    consensus = fit_consensus(labelled, 3, n_runs=2, n_splits=2, estimator=QUICK, random_state=0)
    assert consensus.labels == tuple(names)
    frame = consensus.embedding_frame()
    assert list(frame.index) == names
    assert list(frame.columns) == ["dimension1", "dimension2", "dimension3"]
    np.testing.assert_array_equal(frame.to_numpy(), consensus.embedding)


def test_what_was_fitted_cannot_be_changed_in_place():
    consensus = fit_consensus(similarities(), 3, n_runs=2, random_state=0)
    with pytest.raises(ValueError, match="read-only"):
        consensus.embedding[0, 0] = 2.0
    with pytest.raises(ValueError, match="read-only"):
        consensus.reliability[0] = 1.0
    frame = consensus.embedding_frame()
    frame.iloc[0, 0] = -1.0
    assert consensus.embedding.min() >= 0


@pytest.mark.parametrize("kind", ["dense", "missing", "sparse, zero", "implicit", "large"])
def test_the_number_of_workers_changes_nothing(kind):
    S = similarities(400) if kind == "large" else STORED[kind]  # joblib maps a file for arrays of more than 1 MB
    options = {"n_runs": 5, "n_splits": 4, "estimator": QUICK, "random_state": 0}
    assert_same(fit_consensus(S, 4, n_jobs=2, **options), fit_consensus(S, 4, **options))


def test_a_seed_fixes_the_result_and_none_does_not():
    S = similarities()
    options = {"n_runs": 3, "n_splits": 2, "estimator": QUICK}
    assert_same(fit_consensus(S, 3, random_state=1, **options), fit_consensus(S, 3, random_state=1, **options))
    fresh = [fit_consensus(S, 3, **options).seeds for _ in range(2)]
    assert (fresh[0] != fresh[1]).any()
    state = np.random.RandomState(0)
    drawn = [fit_consensus(S, 3, random_state=state, **options).seeds for _ in range(2)]
    assert (drawn[0] != drawn[1]).any()


def stop_after(n_fits):
    """A progress function that ends the call as a Ctrl-C would."""

    def progress(so_far):
        if so_far.done == n_fits:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("random_state", [3, None])
def test_a_call_that_was_stopped_continues_and_ends_the_same(tmp_path, n_jobs, random_state):
    S = similarities()
    options = {"n_runs": 6, "n_splits": 3, "estimator": QUICK, "n_jobs": n_jobs, "random_state": random_state}
    with pytest.raises(KeyboardInterrupt):
        fit_consensus(S, 4, checkpoint=tmp_path / "runs", progress=stop_after(3), **options)
    fits = []
    resumed = fit_consensus(S, 4, checkpoint=tmp_path / "runs", progress=fits.append, **options)
    assert [step.done for step in fits if step.stage == "consensus"] == [4, 5, 6]
    whole = fit_consensus(S, 4, checkpoint=tmp_path / "runs", **options)
    assert_same(resumed, whole)
    if random_state is not None:
        assert_same(resumed, fit_consensus(S, 4, **options))


def test_runs_can_be_added_to_a_checkpoint(tmp_path):
    S = similarities()
    options = {"n_splits": 3, "estimator": QUICK, "random_state": 0}
    few = fit_consensus(S, 4, n_runs=3, checkpoint=tmp_path, **options)
    fits = []
    more = fit_consensus(S, 4, n_runs=5, checkpoint=tmp_path, progress=fits.append, **options)
    assert [step.done for step in fits if step.stage == "consensus"] == [4, 5]
    assert_same(more, fit_consensus(S, 4, n_runs=5, **options))
    assert_same(fit_consensus(S, 4, n_runs=3, checkpoint=tmp_path, **options), few)


def test_a_run_whose_file_is_lost_is_fitted_again(tmp_path):
    S = similarities()
    options = {"n_runs": 4, "n_splits": 3, "estimator": QUICK, "random_state": 0, "checkpoint": tmp_path}
    before = fit_consensus(S, 4, **options)
    (tmp_path / "run-2.npy").unlink()
    fits = []
    assert_same(fit_consensus(S, 4, progress=fits.append, **options), before)
    assert sum(step.stage == "consensus" for step in fits) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"S": similarities(seed=1)}, "similarities"),
        ({"n_components": 3}, "n_components .*4.*3"),
        ({"random_state": 1}, "random_state|seed"),
        ({"estimator": SRF(max_iter=31, tol=1e-2)}, "max_iter .*30.*31"),
        ("the folder of another work", "select_rank"),
    ],
)
def test_a_checkpoint_of_other_work_is_refused(tmp_path, change, words):
    call = {"S": similarities(), "n_components": 4, "random_state": 0, "estimator": QUICK, "n_runs": 2, "n_splits": 1}
    if isinstance(change, str):
        (tmp_path / "settings.json").write_text(json.dumps({"work": "select_rank"}))
    else:
        fit_consensus(**call, checkpoint=tmp_path)
        call |= change
    with pytest.raises(ValueError, match=words):
        fit_consensus(**call, checkpoint=tmp_path)


def test_progress_counts_runs_and_then_splits():
    steps = []
    fit_consensus(similarities(), 3, n_runs=3, n_splits=2, estimator=QUICK, random_state=0, progress=steps.append)
    assert all(isinstance(step, Progress) for step in steps)
    counted = [("consensus", done, 3) for done in (1, 2, 3)] + [("reliability", done, 2) for done in (1, 2)]
    assert [(step.stage, step.done, step.total) for step in steps] == counted
    assert steps[0].detail == "run 1"


@pytest.mark.parametrize("kind", ["dense", "missing", "weighted"])
def test_nothing_of_the_callers_is_changed(kind):
    S = STORED[kind]
    values, estimator = S.values.copy(), SRF(7, max_iter=30, tol=1e-2, random_state=5)
    fit_consensus(S, 3, n_runs=2, n_splits=2, estimator=estimator, random_state=0)
    np.testing.assert_array_equal(S.values, values)
    assert (estimator.n_components, estimator.random_state) == (7, 5)
    assert not hasattr(estimator, "embedding_")


def test_runs_that_did_not_converge_are_a_warning_and_a_word():
    with pytest.warns(ConvergenceWarning, match="3 of 3 runs did not converge in max_iter=2 iterations") as caught:
        consensus = fit_consensus(similarities(), 4, n_runs=3, n_splits=2, estimator=SRF(max_iter=2), random_state=0)
    assert caught[0].filename == __file__
    assert "3 of 3 runs did not converge" in consensus.summary()


def result(reliability, n_runs=2, selected=0, **changes):
    ones = np.ones(n_runs)
    arrays = {"agreement": np.ones((n_runs, n_runs)), "objectives": ones, "converged": ones > 0, "n_iter": ones}
    arrays |= {
        "reliability": np.array(reliability),
        "seeds": ones,
        "embeddings": np.ones((n_runs, 5, len(reliability))),
    }
    return Consensus(**{**arrays, **changes}, selected=selected, n_splits=10)


def test_the_summary_says_what_was_found():
    text = result([0.99, 0.5, 0.91], n_runs=4, selected=2, objectives=np.array([3.0, 1.0, 2.0, 4.0])).summary()
    for words in ("3 dimensions of 5 items", "run 3 of 4", "mean 0.80, from 0.50 to 0.99", "dimension2 (0.50)"):
        assert words in text
    assert "Objective 2 (2nd lowest of 4 runs; range 1 to 4)" in text


@pytest.mark.parametrize("value", [0.7999999, 0.7951, 0.796, 0.795])
def test_a_low_reliability_is_shown_with_enough_digits(value):
    below = result([0.8, value]).summary().partition("Below 0.8: ")[2].splitlines()[0]
    shown = re.fullmatch(r"dimension2 \((0\.\d+)\)\.", below)
    assert shown, below
    assert float(shown[1]) < 0.8


def test_the_seed_of_a_consensus_gives_it_again(tmp_path):
    S, options = similarities(), {"n_runs": 2, "n_splits": 2, "estimator": QUICK}
    for given in (7, None, np.random.RandomState(3), np.random.default_rng(3)):
        found = fit_consensus(S, 3, random_state=given, **options)
        again = fit_consensus(S, 3, random_state=found.seed, **options)
        assert_same(found, again)
        assert found.seed == again.seed == (7 if given == 7 else found.seed)
    kept = fit_consensus(S, 3, checkpoint=tmp_path, **options)
    assert fit_consensus(S, 3, checkpoint=tmp_path, **options).seed == kept.seed
    assert_same(kept, fit_consensus(S, 3, random_state=kept.seed, **options))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("n_runs", {"n_runs": 1}),
        ("n_splits", {"n_splits": 0}),
        ("S", {"S": np.eye(3)}),
        ("estimator", {"estimator": "SRF"}),
        ("estimator", {"estimator": SRF(init="spectral")}),
        ("estimator", {"estimator": SRF(init=np.ones((40, 3)))}),
        ("tol", {"estimator": SRF(tol=-1)}),
        ("bounds", {"estimator": SRF(bounds=(0, 1))}),
    ],
)
def test_bad_input_is_named(name, arguments):
    with pytest.raises((ValueError, TypeError), match=f"^{name}"):
        fit_consensus(**{"S": similarities(), "n_components": 3, "n_runs": 2, "n_splits": 2, **arguments})


def test_too_many_runs_for_this_machine_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("simdims._memory.available_bytes", lambda: 2**30)
    with pytest.raises(MemoryError, match=r"1000000 runs of 40 x 3 loadings would need .* fewer runs"):
        fit_consensus(similarities(), 3, n_runs=1_000_000)


def test_one_dimension_and_as_many_as_items_can_be_fitted():
    S = similarities(n_items=6)
    for n_components in (1, 6):
        consensus = fit_consensus(S, n_components, n_runs=3, n_splits=5, estimator=QUICK, random_state=0)
        assert consensus.embedding.shape == (6, n_components)
        assert np.isfinite(consensus.reliability).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_reference_solver_runs_too():
    estimator = SRF(solver="admm", max_iter=5, inner_iter=2, bounds=(0.0, 2.0))
    S = Similarity(simulate.mask_pairs(similarities(), 0.8, random_state=0))
    consensus = fit_consensus(S, 3, n_runs=3, n_splits=2, estimator=estimator, random_state=0)
    assert consensus.embedding.shape == (40, 3)
