"""bootstrap: resamples from their definitions, intervals, resuming, and coverage on simulated people."""

import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy import stats

from simdims import (
    SRF,
    Bootstrap,
    JointSRF,
    Similarity,
    SimilaritySet,
    bootstrap,
    discover,
    plots,
    select_rank,
    simulate,
    solvers,
)
from simdims._journal import Work
from simdims._parallel import root_seed
from simdims.joint import problem_of_set
from simdims.solvers import joint_resampling
from simdims.uncertainty.fits import draw_systems, draw_weights, fit_resample
from simdims.uncertainty.intervals import interval_of
from simdims.uncertainty.run import _reference, _source, resampled_set

pytestmark = pytest.mark.filterwarnings("ignore:.*too few for 95% intervals")

FREE = JointSRF(3, alpha=0.0, shrinkage=0.0, max_iter=2000)


def people(seed=0, n_items=24, rank=3, n_systems=12, sigma=0.03, *, diagonal=False):
    """True loadings and weights of mean 1, and noisy similarities."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.ones(rank), size=n_items)
    a = rng.gamma(4, 1 / 4, size=(n_systems, rank))
    W, a = W * np.sqrt(a.mean(axis=0)), a / a.mean(axis=0)
    noise = np.triu(rng.normal(0, sigma, (n_systems, n_items, n_items)), 1)
    S = np.maximum(np.einsum("ik,mk,jk->mij", W, a, W) + noise + noise.transpose(0, 2, 1), 0.0)
    if not diagonal:
        S[:, np.arange(n_items), np.arange(n_items)] = np.nan
    return W, a, S


@pytest.fixture(scope="module")
def sure():
    _, _, S = people()
    return bootstrap(SimilaritySet(S), estimator=FREE, n_resamples=40, random_state=0, progress=False)


def test_dimensions_of_the_model_come_back_and_intervals_are_around_them(sure):
    assert (sure.came_back > 0.95).all()
    for what in ("loadings", "shares", "weights"):
        low, high = sure.interval(what)
        estimate = {"loadings": sure.embedding, "shares": sure.shares, "weights": sure.weights}[what]
        assert (low <= high).all()
        assert np.mean((low <= estimate) & (estimate <= high)) > 0.95
    assert sure.weights.mean(axis=0) == pytest.approx(1.0)
    assert "came back in 100%" in str(sure)
    assert f"mean of {len(sure.systems)} systems" in str(sure)
    assert len(sure.loadings_frame()) == sure.embedding.size
    assert len(sure.weights_frame()) == sure.weights.size
    assert list(sure.dimensions_frame()["came_back"]) == sure.came_back.tolist()


def test_a_resample_of_systems_is_a_fit_to_copies_of_them():
    _, _, S = people()
    source = _source(SimilaritySet(S), None, FREE)
    reference, _ = _reference(source, 0.8, 20, Work.unsaved(0, None))
    found = fit_resample(reference, "systems", 5, 3)
    chosen = draw_systems(12, np.random.default_rng(np.random.SeedSequence(5, spawn_key=(3,))))
    slow = JointSRF(3, alpha=0.0, shrinkage=0.0, init=reference.W, tol=1e-9, max_iter=5000).fit(S[chosen])
    order = np.argmax(np.corrcoef(slow.embedding_.T, reference.W.T)[:3, 3:], axis=0)
    expected = slow.embedding_[:, order] / np.sqrt(reference.weights[chosen].mean(axis=0))
    scale = np.linalg.norm(found.W, axis=0) / np.linalg.norm(expected, axis=0)  # noise in the pairs of all systems
    np.testing.assert_allclose(found.W / scale, expected, atol=2e-3)
    np.testing.assert_allclose(scale, 1.0, atol=0.05)
    np.testing.assert_allclose(found.weights.mean(axis=0), 1.0)


def test_the_scale_of_a_dimension_varies_with_the_noise_in_the_pairs():
    """With one known dimension, its strength in the mean of all systems is a regression on the products of loadings."""
    rng = np.random.default_rng(0)
    w = np.linspace(0.5, 1.5, 24)
    noise = np.triu(rng.normal(0, 0.2, (12, 24, 24)), 1)
    S = np.maximum(np.outer(w, w) + noise + noise.transpose(0, 2, 1), 0.0)
    S[:, np.arange(24), np.arange(24)] = np.nan
    model = JointSRF(1, alpha=0.0, shrinkage=0.0, max_iter=2000)
    sure = bootstrap(SimilaritySet(S), estimator=model, n_resamples=200, random_state=0, progress=False)
    assert (sure.came_back == 1).all()
    products = np.outer(w, w)[np.triu_indices(24, 1)]
    strength = np.sum(sure.embeddings**2, axis=(1, 2)) / np.sum(w**2)
    assert strength.std() == pytest.approx(0.2 / np.sqrt(12 * np.sum(products**2)), rel=0.3)


def test_two_copies_of_an_item_are_no_pair():
    """A fit with copies of items as items of their own, whose pairs with each other are missing."""
    _, _, S = people(diagonal=True)
    source = _source(SimilaritySet(S), None, FREE)
    reference, _ = _reference(source, 0.8, 20, Work.unsaved(0, None))
    found = fit_resample(reference, "items", 5, 1)
    rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(1,)))
    counts = rng.multinomial(24, np.full(24, 1 / 24))
    items = np.repeat(np.arange(24), counts)
    copies = S[:, items][:, :, items]
    twins = (items[:, None] == items) & ~np.eye(24, dtype=bool)
    copies[:, twins] = np.nan
    slow = JointSRF(3, alpha=0.0, shrinkage=0.0, init=reference.W[items] + 1e-3, tol=1e-9, max_iter=5000).fit(copies)
    order = np.argmax(np.corrcoef(slow.embedding_.T, reference.W[items].T)[:3, 3:], axis=0)
    np.testing.assert_allclose(found.W[items], slow.embedding_[:, order], atol=5e-3)
    np.testing.assert_allclose(found.weights, slow.weights_[:, order], atol=2e-2)
    squares = np.sum(slow.embedding_[:, order] ** 2, axis=0)
    np.testing.assert_allclose(found.shares, squares / squares.sum(), atol=5e-3)
    absent = counts == 0
    assert np.corrcoef(found.W[absent].ravel(), reference.W[absent].ravel())[0, 1] > 0.95


@pytest.mark.parametrize("over", ["items", "pairs"])
def test_resampled_similarities_pose_the_problem_that_is_fitted(over):
    _, _, S = people(n_systems=3)
    S[0, 2, 5] = S[0, 5, 2] = np.nan
    systems = SimilaritySet(S)
    drawn = resampled_set(systems, over, np.random.default_rng(7))
    lists = solvers.as_lists(problem_of_set(systems), np.arange(24))
    counts, factor = draw_weights(lists, over, np.random.default_rng(7))
    problem = joint_resampling.reweighted(lists, factor, counts)
    kept = np.arange(24) if counts is None else np.flatnonzero(counts)
    W = np.random.default_rng(0).uniform(size=(24, 3))
    a = np.ones((3, 3))
    other = problem_of_set(drawn)
    np.testing.assert_allclose(
        joint_resampling.variance_explained_jointly(solvers.as_lists(other, np.arange(len(kept))), W[kept], a),
        joint_resampling.variance_explained_jointly(problem, W, a),
    )


def test_each_system_draws_as_many_pairs_as_it_has():
    _, _, S = people(n_systems=3)
    S[0, :10, 10:] = S[0, 10:, :10] = np.nan
    lists = solvers.as_lists(problem_of_set(SimilaritySet(S)), np.arange(24))
    counts = joint_resampling.pair_counts(lists, np.random.default_rng(0))
    known = np.sum(~np.isnan(S[:, *np.triu_indices(24, 1)]), axis=1)
    drawn = np.bincount(lists.listed.systems, weights=counts)
    np.testing.assert_array_equal(drawn, 2 * known)
    rows = np.repeat(np.arange(24), np.diff(lists.listed.starts))
    dense = np.zeros((3, 24, 24))
    dense[lists.listed.systems, rows, lists.listed.partners] = counts
    np.testing.assert_array_equal(dense, dense.transpose(0, 2, 1))


def test_percentile_intervals_of_a_mean_are_those_of_t():
    """Exact for normal resamples: the point of widened tails."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=10)
    means = np.array([rng.choice(x, 10).mean() for _ in range(100_000)])
    low, high = interval_of(np.asarray(x.mean()), means, 0.95, "percentile", 10)
    half = stats.t.ppf(0.975, 9) * x.std(ddof=1) / np.sqrt(10)
    assert [low, high] == pytest.approx([x.mean() - half, x.mean() + half], abs=0.12 * half)


def test_bias_corrected_intervals_follow_the_definition():
    rng = np.random.default_rng(1)
    values, estimate, n = rng.gamma(2, size=999), 2.5, 10**9
    low, high = interval_of(np.asarray(estimate), values, 0.95, "bias-corrected", n)
    z0 = stats.norm.ppf(np.mean(values < estimate))
    expected = np.quantile(values, stats.norm.cdf(2 * z0 + np.array([-1.96, 1.96])), method="weibull")
    np.testing.assert_allclose([low, high], expected, rtol=0.02)
    shifted = interval_of(np.asarray(np.median(values)), values, 0.95, "bias-corrected", n)
    np.testing.assert_allclose(shifted, interval_of(np.asarray(0.0), values, 0.95, "percentile", n), rtol=0.01)


def test_what_is_not_found_is_in_no_interval():
    values = np.concatenate([np.linspace(0, 1, 50), np.full(50, np.nan)])
    both = np.stack([values, np.where(np.arange(100) < 10, 1.0, np.nan)], axis=1)
    low, high = interval_of(np.zeros(2), both, 0.9, "percentile", 1000)
    assert 0.0 < low[0] < 0.06
    assert 0.94 < high[0] < 1.0
    assert np.isnan([low[1], high[1]]).all()


def test_results_do_not_depend_on_the_number_of_processes(sure):
    _, _, S = people()
    again = bootstrap(SimilaritySet(S), estimator=FREE, n_resamples=40, random_state=0, n_jobs=2, progress=False)
    np.testing.assert_array_equal(again.embeddings, sure.embeddings)
    np.testing.assert_array_equal(again.resampled_weights, sure.resampled_weights)
    assert again.seed == sure.seed == 0
    assert root_seed(again.seed) == root_seed(0)


def test_an_interrupted_bootstrap_resumes_and_can_be_extended(tmp_path, sure):
    _, _, S = people()
    systems, seen = SimilaritySet(S), []

    def stop(progress):
        seen.append(progress)
        if progress.done == 7:
            raise KeyboardInterrupt

    call = {"estimator": FREE, "random_state": 0, "checkpoint": tmp_path / "runs"}
    with pytest.raises(KeyboardInterrupt):
        bootstrap(systems, n_resamples=30, progress=stop, **call)
    assert seen[-1].seconds_left is not None
    steps = []
    bootstrap(systems, n_resamples=30, progress=steps.append, **call)
    assert len(steps) == 23
    more = bootstrap(systems, n_resamples=40, progress=False, **call)
    np.testing.assert_array_equal(more.embeddings, sure.embeddings)
    np.testing.assert_array_equal(more.interval("weights"), sure.interval("weights"))
    with pytest.raises(ValueError, match="same data and settings"):
        bootstrap(systems, "items", n_resamples=30, **call)


def test_a_discovery_is_resampled_with_its_own_penalty():
    truth = simulate.dirichlet(30, 3, random_state=0)
    S = Similarity(simulate.add_noise(truth @ truth.T, 0.8, random_state=0), labels=[f"item {i}" for i in range(30)])
    found = discover(S, ranks=[3], n_repeats=1, n_runs=3, random_state=0, progress=False)
    sure = bootstrap(found, "pairs", n_resamples=20, random_state=0, progress=False)
    assert sure.alpha == found.consensus.alpha
    assert sure.labels == found.labels
    frame = found.dimensions_frame(sure)
    assert frame["came_back"].tolist() == sure.came_back.tolist()
    assert (frame["share_low"] < frame["share_high"]).all()
    assert list(found.dimensions_frame().columns) == ["share", "reliability", "top_items"]
    text = found.methods_text(uncertainty=sure)
    assert "We fitted 20 resampled sets of pairs" in text
    assert f"{sure.came_back.min():.0%}" in text
    axes = plots.dimension_grid(sure)
    assert "back" in axes[0].get_title(loc="right")
    assert axes[0].collections
    other = bootstrap(S, "pairs", n_components=2, n_resamples=20, random_state=0, progress=False)
    with pytest.raises(ValueError, match="uncertainty must be of this result"):
        found.dimensions_frame(other)
    assert sure.systems is None
    np.testing.assert_allclose(sure.embedding, found.embedding, atol=0.05)
    with pytest.raises(ValueError, match="at least 4 systems"):
        bootstrap(found, n_resamples=20)


def test_what_is_saved_loads_back(sure, tmp_path):
    names = ["\u00e4", "\ud800", "", *(f"item {i}" for i in range(21))]
    named = replace(sure, labels=tuple(names), selected_ranks=np.arange(40), shrinkage=np.inf)
    named.save(tmp_path / "sure.npz")
    again = Bootstrap.load(tmp_path / "sure.npz")
    for field in fields(Bootstrap):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(named, field.name))
        assert type(getattr(again, field.name)) is type(getattr(named, field.name))
    assert str(again) == str(named)
    with pytest.raises(ValueError, match="must end in"):
        sure.save(tmp_path / "sure.csv")
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    with pytest.raises(ValueError, match="must be a file that Bootstrap"):
        Bootstrap.load(tmp_path / "other.npz")
    whole = (tmp_path / "sure.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="damaged"):
        Bootstrap.load(tmp_path / "half.npz")
    with pytest.raises(FileNotFoundError):
        Bootstrap.load(tmp_path / "none.npz")


def test_the_penalty_of_a_discovery_keeps_its_form():
    truth = simulate.dirichlet(24, 3, alpha=0.3, random_state=0)
    S = simulate.add_noise(truth @ truth.T, 0.8, random_state=0)
    settings = {"n_repeats": 1, "n_runs": 2, "random_state": 0, "progress": False}
    for found in (
        discover(S, ranks=3, estimator=SRF(alpha=0.3, l1_ratio=1.0, max_iter=2000), **settings),
        discover(
            SimilaritySet([S, S]),
            ranks=3,
            estimator=JointSRF(alpha=0.3, l1_ratio=1.0, shrinkage=1.0, max_iter=2000),
            **settings,
        ),
    ):
        sure = bootstrap(found, "pairs", n_resamples=20, random_state=0, progress=False)
        np.testing.assert_allclose(sure.embedding, found.embedding, atol=5e-3)


def test_an_item_of_one_system_is_placed_where_a_resample_lacks_that_system():
    W, _, S = people(sigma=0.0)
    S[1:, 0] = S[1:, :, 0] = np.nan
    sure = bootstrap(SimilaritySet(S), estimator=FREE, n_resamples=20, random_state=0, progress=False)
    order = np.argmax(np.corrcoef(sure.embedding.T, W.T)[:3, 3:], axis=0)
    assert (sure.came_back == 1).all()
    np.testing.assert_allclose(sure.embeddings[:, 0, order], np.tile(W[0], (20, 1)), atol=0.02)


@pytest.mark.parametrize("over", ["systems", "items", "pairs"])
def test_few_items_have_intervals_or_a_refusal(over):
    """With four items, one resample in ten has two different ones or fewer."""
    _, _, S = people(n_systems=4)
    sure = bootstrap(SimilaritySet(S[:, :4, :4]), over, n_components=1, n_resamples=40, random_state=0, progress=False)
    assert np.isfinite(sure.embeddings).all()
    with pytest.raises(ValueError, match="at least 4 items to resample them, got 3"):
        bootstrap(SimilaritySet(S[:, :3, :3]), "items", n_components=1)


def test_equal_similarities_have_no_r2():
    sure = bootstrap(np.ones((8, 8)), "pairs", n_components=1, n_resamples=20, random_state=0, progress=False)
    assert np.isnan(sure.r2)
    assert np.isnan(sure.interval("r2")).all()
    assert "R2 is not defined" in str(sure)


def test_the_selected_number_of_dimensions_is_resampled_where_asked():
    W = simulate.dirichlet(14, 3, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.9, random_state=0)
    sure = bootstrap(S, "pairs", n_components=3, n_resamples=20, ranks=[1, 3], random_state=0, progress=False)
    assert set(sure.rank_counts) <= {1, 3}
    assert sum(sure.rank_counts.values()) == 20
    assert "Selected number" in str(sure)


def test_the_number_of_dimensions_is_selected_with_the_penalties_of_the_result(monkeypatch):
    W = simulate.dirichlet(14, 3, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.9, random_state=0)
    asked = []

    def record(data, ranks, *, estimator, **_):
        asked.append(estimator)
        return select_rank(data, [1], estimator=estimator, n_repeats=1, random_state=0, progress=False)

    monkeypatch.setattr("simdims.uncertainty.run.select_rank", record)
    quick = {"n_resamples": 20, "ranks": [1, 2], "random_state": 0, "progress": False}
    settings = {"ranks": 2, "n_runs": 2, "n_repeats": 1, "random_state": 0, "progress": False}
    bootstrap(discover(S, alpha=0.0, **settings), "pairs", **quick)
    assert {one.alpha for one in asked} == {0.0}
    systems, model = SimilaritySet([S, 2 * S, 3 * S]), JointSRF(2, alpha=0.1, l1_ratio=0.5, shrinkage=0.3)
    for source, given in ((discover(systems, estimator=model, **settings), {}), (systems, {"estimator": model})):
        asked.clear()
        bootstrap(source, "pairs", **given, **quick)
        assert {(one.alpha, one.l1_ratio, one.shrinkage) for one in asked} == {(0.1, 0.5, 0.3)}
    with pytest.raises(ValueError, match=r"^alpha must be positive or 'auto' for a SimilaritySet"):
        bootstrap(systems, "pairs", estimator=JointSRF(2, alpha=0.0), **quick)


def test_a_fit_without_its_similarities_is_refused():
    _, _, S = people(n_systems=4)
    with pytest.raises(TypeError, match="must hold similarities"):
        bootstrap(JointSRF(2, alpha=0.0, shrinkage=0.0).fit(S))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_result_with_bounds_is_refused():
    W = simulate.dirichlet(12, 2, random_state=0)
    S = np.array(simulate.add_noise(W @ W.T, 0.5, random_state=0))
    S[0, 1] = S[1, 0] = np.nan
    options = {"n_repeats": 1, "n_runs": 2, "random_state": 0, "progress": False}
    found = discover(S, ranks=2, estimator=SRF(alpha=0.05, bounds=(0, 0.3)), **options)
    with pytest.raises(ValueError, match="found must be a result without bounds"):
        bootstrap(found, over="pairs", n_resamples=100, progress=False)


def test_a_dimension_of_few_people_does_not_always_come_back():
    rng = np.random.default_rng(0)
    _, _, S = people(n_systems=10, sigma=0.02)
    own = (rng.uniform(size=24) < 0.25).astype(float)
    S[0] += 0.8 * np.outer(own, own)
    sure = bootstrap(SimilaritySet(S), estimator=JointSRF(4, alpha=0.0, shrinkage=0.0), n_resamples=60, random_state=0)
    rare = int(np.argmax([np.corrcoef(own, w)[0, 1] for w in sure.embedding.T]))
    others = np.delete(sure.came_back, rare)
    # A resample lacks the first person with probability 0.9**10 = 0.35.
    assert 0.4 < sure.came_back[rare] < 0.9
    assert others.min() > sure.came_back[rare]


def test_loadings_at_zero_are_marked():
    W = np.zeros((24, 2))
    W[:12, 0] = W[12:, 1] = 1.0
    W[0] = 0.5
    rng = np.random.default_rng(0)
    noise = np.triu(rng.normal(0, 0.05, (8, 24, 24)), 1)
    S = W @ W.T * (1.0 + noise + noise.transpose(0, 2, 1))
    sure = bootstrap(SimilaritySet(S), n_components=2, n_resamples=20, random_state=0, progress=False)
    marked = sure.at_zero
    large = sure.embedding > 0.3
    assert not marked[large].any()
    assert marked[~large].mean() > 0.9


def test_pictures_show_the_intervals(sure):
    ax = plots.uncertainty(sure)
    assert [text.get_text() for text in ax.texts][:3] == ["100%"] * 3
    low, high = sure.interval("loadings")
    ax = plots.uncertainty(sure, "loadings", dimension=2, n_rows=5)
    segments = ax.collections[0].get_segments()
    top = np.argsort(-sure.embedding[:, 1])[:5]
    np.testing.assert_allclose([part[:, 0] for part in segments], np.stack([low, high], axis=-1)[top, 1])
    assert plots.uncertainty(sure, "weights", dimension="dimension1").get_xlabel() == "Weight on dimension 1"
    with pytest.raises(ValueError, match="dimension must be None"):
        plots.uncertainty(sure, "shares", dimension=1)


def coverage(seed, n_resamples=100):
    W, a, S = people(seed, n_items=30, n_systems=30, sigma=0.05)
    sure = bootstrap(SimilaritySet(S), n_components=3, n_resamples=n_resamples, random_state=seed, progress=False)
    order = np.argmax(np.corrcoef(sure.embedding.T, W.T)[:3, 3:], axis=0)
    truths = {"loadings": W, "shares": np.sum(W**2, axis=0) / np.sum(W**2), "weights": a}
    found = {}
    for what, truth in truths.items():
        low, high = sure.interval(what)[..., order]
        inside = (low <= truth) & (truth <= high)
        found[what] = inside[truth > 0.1].mean() if what == "loadings" else inside.mean()
    return found


def test_intervals_contain_the_truth():
    found = [coverage(seed) for seed in range(3)]
    assert np.mean([one["loadings"] for one in found]) > 0.88
    assert np.mean([one["weights"] for one in found]) > 0.88


@pytest.mark.slow
def test_intervals_have_their_nominal_coverage():
    """The long version, over other designs, is benchmarks/bench_uncertainty.py."""
    found = [coverage(seed, 200) for seed in range(1000, 1060)]
    for what in ("loadings", "shares", "weights"):
        assert 0.92 < np.mean([one[what] for one in found]) < 0.98, what


def test_a_discovery_of_people_is_resampled_with_its_weights():
    _, _, S = people(n_items=16, n_systems=6)
    found = discover(SimilaritySet(S), ranks=[3], n_runs=2, random_state=0, progress=False)
    sure = bootstrap(found, n_resamples=20, random_state=0, progress=False)
    np.testing.assert_allclose(sure.weights, found.consensus.weights[found.consensus.selected], atol=0.1)
    assert sure.systems == found.similarity.names
    assert sure.shrinkage == found.consensus.shrinkage


def test_a_result_whose_dimensions_change_with_convergence_is_reported():
    """Without a penalty and with half of the pairs, dimensions are poorly determined."""
    W = simulate.dirichlet(40, 5, alpha=1, random_state=0)
    S = simulate.add_noise(W @ W.T, 0.15, random_state=0)
    left_out = np.triu(np.random.default_rng(0).random((40, 40)) < 0.5)
    S[left_out | left_out.T] = np.nan
    rough = SRF(6, alpha=0.0, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = discover(S, ranks=6, estimator=rough, n_runs=2, n_repeats=1, random_state=0, progress=False)
    with pytest.warns(UserWarning, match=r"has not converged: .* of its 6 dimensions change"):
        sure = bootstrap(found, "pairs", n_resamples=20, random_state=0, progress=False)
    with pytest.raises(ValueError, match=r"whose dimension . differs .* if its fit has not converged"):
        found.dimensions_frame(sure)
