"""Fits on a device of torch: the same problems, the same answers; on a GPU too where there is one."""

import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from test_invariants import (  # noqa: E402
    N_COMPONENTS,
    N_ITEMS,
    STORAGES,
    as_dense,
    counts,
    listed,
    masked,
    noisy,
    objective,
    start,
)

from simdims import SRF, Similarity, fit_consensus, select_rank, simulate, solvers  # noqa: E402
from simdims.similarity.arrays import arrays_of, problem_of  # noqa: E402
from simdims.solvers import listed_torch  # noqa: E402
from simdims.solvers import torch as on_device  # noqa: E402
from simdims.srf import solve_many  # noqa: E402

DEVICES = ["torch-cpu", *(["cuda"] if torch.cuda.is_available() else [])]

devices = pytest.mark.parametrize("device", DEVICES)
storages = pytest.mark.parametrize("storage", STORAGES)


def fit(S, device, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return SRF(N_COMPONENTS, device=device, **{"init": start(), "max_iter": 2000, **parameters}).fit(S)


@devices
@storages
def test_the_objective_is_its_definition_and_begins_and_ends_the_history(storage, device):
    S = STORAGES[storage]()
    srf = fit(S, device, max_iter=30)
    assert srf.objective_ == pytest.approx(objective(*as_dense(S), srf.embedding_), rel=1e-5)
    assert srf.history_[-1] == srf.objective_
    assert srf.history_[0] == pytest.approx(objective(*as_dense(S), start()), rel=1e-5)
    assert len(srf.history_) == srf.n_iter_ + 1
    assert srf.solver_ == "torch"


@devices
@storages
def test_no_iteration_raises_the_objective_beyond_rounding_and_the_history_is_the_truth(storage, device):
    """What float32 may add: 2e-6 of f and 6e-8 of f(0), as the docstring of SRF says."""
    S = STORAGES[storage]()
    values, weights = as_dense(S)
    size = objective(values, weights, np.zeros((N_ITEMS, 1)))
    longest = fit(S, device, max_iter=40, tol=0.0)
    fits = [fit(S, device, max_iter=t, tol=0.0) for t in range(1, longest.n_iter_ + 1)]
    computed = np.array([objective(values, weights, srf.embedding_) for srf in fits])
    assert computed[-1] < 0.5 * size
    np.testing.assert_array_less(np.diff(computed), 2e-6 * computed[1:] + 3e-7 * size)
    np.testing.assert_array_less(np.diff(longest.history_), 2e-6 * longest.history_[1:] + 6e-8 * size + 1e-12)
    np.testing.assert_allclose(longest.history_[1:], computed, rtol=1e-6, atol=3e-7 * size)


@devices
@storages
def test_it_ends_where_coordinate_descent_ends(storage, device):
    S = STORAGES[storage]()
    ours, reference = fit(S, device, tol=1e-6), fit(S, "cpu", tol=1e-8)
    assert ours.converged_
    assert ours.kkt_residual_ < 1e-3
    assert ours.objective_ == pytest.approx(reference.objective_, rel=2e-3)
    np.testing.assert_allclose(ours.reconstruct(), reference.reconstruct(), atol=0.03)


@devices
@storages
def test_the_kkt_residual_is_that_of_the_definition(storage, device):
    S = STORAGES[storage]()
    srf = fit(S, device, max_iter=25)
    problem = problem_of(arrays_of(S))
    expected = solvers.criterion.evaluate(problem, srf.embedding_).kkt_residual
    assert srf.kkt_residual_ == pytest.approx(expected, rel=1e-3)


@devices
def test_factors_are_fitted_as_their_matrix_is(device):
    F = np.random.default_rng(0).gamma(0.5, size=(N_ITEMS, 7))
    implicit = fit(Similarity.from_factors(F), device, init=start(scale=1.0), tol=1e-7)
    dense = fit(F @ F.T, device, init=start(scale=1.0), tol=1e-7)
    assert implicit.objective_ == pytest.approx(dense.objective_, rel=1e-4)
    assert implicit.objective_ == pytest.approx(objective(F @ F.T, 1.0, implicit.embedding_), rel=1e-4)
    assert implicit.kkt_residual_ < 1e-3


@devices
@pytest.mark.parametrize("size", [1e-60, 1e-12, 1e12, 1e60])
def test_the_size_of_the_similarities_does_not_matter(size, device):
    one = fit(masked(), device, random_state=0, init="random")
    other = fit(masked() * size, device, random_state=0, init="random")
    np.testing.assert_allclose(other.embedding_ / np.sqrt(size), one.embedding_, rtol=1e-2, atol=1e-3)
    assert other.objective_ / size**2 == pytest.approx(one.objective_, rel=1e-4)


@devices
def test_an_item_without_a_diagonal_cannot_run_away(device):
    S = np.full((12, 12), np.nan)
    S[0, 1:] = S[1:, 0] = 1.0  # a hub and its spokes fit best at infinity
    srf = SRF(1, device=device, random_state=0, max_iter=3000, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        srf.fit(S)
    assert srf.embedding_.max() <= 10.0 * (1 + 1e-6)


@devices
def test_a_perfect_fit_ends(device):
    W = simulate.dirichlet(60, 3, random_state=0)
    srf = SRF(3, device=device, random_state=0, max_iter=3000, tol=0.0).fit(W @ W.T)
    assert srf.converged_
    assert srf.score(W @ W.T) > 0.99999


@devices
def test_too_few_iterations_are_a_warning(device):
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        srf = SRF(3, device=device, random_state=0, max_iter=2).fit(noisy())
    assert not srf.converged_
    assert srf.n_iter_ == 2


def check_together(problems, seeds, device):
    """Fits made together are those made alone; returns both."""
    estimator = SRF(device=device, max_iter=500)
    alone = [solve_many(estimator, [p], N_COMPONENTS, [s])[0] for p, s in zip(problems, seeds, strict=True)]
    together = solve_many(estimator, problems, N_COMPONENTS, seeds)
    for one, other in zip(alone, together, strict=True):
        assert other.objective == pytest.approx(one.objective, rel=1e-4)
        np.testing.assert_allclose(other.W, one.W, atol=0.02)
    return alone, together


@devices
@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_fits_together_are_the_fits_alone(at_once, device, monkeypatch):
    monkeypatch.setattr(on_device, "_how_many", lambda *args, **kwargs: at_once)
    alone, together = check_together([solvers.as_problem(masked(seed)) for seed in range(5)], range(11, 16), device)
    assert all(one.converged for one in alone)
    assert all(abs(one.n_iter - other.n_iter) <= 3 for one, other in zip(alone, together, strict=True))


@devices
@pytest.mark.parametrize("first", [0, 1])
def test_a_fold_without_the_one_pair_that_counts_more_is_fitted_with_those_that_have_it(first, device):
    values, weights = masked(0), np.ones((N_ITEMS, N_ITEMS))
    i, j = np.argwhere(np.triu(~np.isnan(values), 1))[0]
    weights[i, j] = weights[j, i] = 50.0
    held_out = values.copy()
    held_out[i, j] = held_out[j, i] = np.nan
    problems = [solvers.as_problem(each, weights) for each in (values, held_out)]
    assert [problem.weights.size > 0 for problem in problems] == [True, False]
    check_together(problems[first:] + problems[:first], [1, 1], device)


@devices
@pytest.mark.parametrize("size", [1e-9, 1e-3])
def test_a_start_with_a_dimension_near_zero_does_not_pass_for_an_end(size, device):
    W0 = start() * np.r_[np.ones(N_COMPONENTS - 1), size]
    srf, reference = fit(noisy(), device, init=W0), fit(noisy(), "cpu", init=W0)
    assert srf.converged_
    assert srf.kkt_residual_ < 0.01
    assert srf.objective_ < 1.2 * reference.objective_


@devices
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_objective_of_a_close_fit_to_factors_has_its_digits_and_the_loadings_their_dtype(dtype, device):
    rng = np.random.default_rng(0)
    F = (rng.dirichlet(np.ones(N_COMPONENTS), N_ITEMS) + 0.01 * rng.random((N_ITEMS, N_COMPONENTS))).astype(dtype)
    srf = fit(Similarity.from_factors(F), device)
    assert fit(noisy().astype(dtype), device).embedding_.dtype == dtype
    S, W = F.astype(np.float64) @ F.T.astype(np.float64), srf.embedding_.astype(np.float64)
    residual = S - W @ W.T
    assert srf.objective_ == pytest.approx(0.5 * np.sum(residual**2), rel=1e-3, abs=1e-10 * np.sum(S**2))


@devices
@pytest.mark.parametrize("storage", ["complete", "counts as weights", "sparse, missing"])
def test_runs_of_one_problem_share_it(storage, device):
    check_together([problem_of(arrays_of(STORAGES[storage]()))] * 4, range(4), device)


@devices
def test_rank_selection_uses_the_device(device, monkeypatch):
    batches = []
    fit_together = on_device.fit_together

    def counted(problems, *args, **kwargs):
        batches.append(len(problems))
        return fit_together(problems, *args, **kwargs)

    monkeypatch.setattr(on_device, "fit_together", counted)
    settings = {"sampling": 0.7, "n_repeats": 2, "random_state": 0, "progress": False}
    there = select_rank(noisy(n=60), range(2, 7), estimator=SRF(device=device, tol=1e-2, max_iter=300), **settings)
    assert batches == [10] * 5  # all fits of a rank at once
    here = select_rank(noisy(n=60), range(2, 7), alpha=0.0, **settings)
    assert there.rank == here.rank
    np.testing.assert_allclose(there.curve["error"], here.curve["error"], rtol=0.05)


@pytest.fixture(name="two_gpus")
def fixture_two_gpus(monkeypatch):
    """A machine with two GPUs, which are its processor; returns the names of those that fits used."""
    used = []

    def named(device):
        used.append(device)
        return torch.device("cpu")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    for module in (on_device, listed_torch):
        monkeypatch.setattr(module, "check_device", named)
    return used


@pytest.mark.parametrize(
    ("device", "n_jobs", "expected"),
    [
        ("cuda", None, ["cuda"]),
        ("cuda", 2, ["cuda:0", "cuda:1"]),
        ("cuda", 8, ["cuda:0", "cuda:1"]),
        ("cuda:1", 2, ["cuda:1"]),
    ],
)
@pytest.mark.parametrize("storage", ["masked, filled", "sparse, 0.03"])
@pytest.mark.filterwarnings("ignore:The lowest held-out error")
def test_fits_are_divided_among_as_many_gpus_as_jobs(storage, device, n_jobs, expected, two_gpus):
    S = STORAGES[storage]()
    settings = {"sampling": 0.6, "n_folds": 3, "n_repeats": 1, "random_state": 0, "progress": False}
    estimator = SRF(device=device, tol=1e-2, max_iter=100)
    ours = select_rank(S, [2, 3], estimator=estimator, n_jobs=n_jobs, **settings)
    assert sorted(set(two_gpus)) == expected
    reference = select_rank(S, [2, 3], estimator=estimator.set_params(device="torch-cpu"), **settings)
    np.testing.assert_allclose(ours.curve["error"], reference.curve["error"], rtol=0.05)
    two_gpus.clear()
    runs = {"n_runs": 5, "random_state": 0, "progress": False}
    ours = fit_consensus(S, 3, estimator=SRF(device=device), n_jobs=n_jobs, **runs)
    assert sorted(set(two_gpus)) == expected
    reference = fit_consensus(S, 3, estimator=SRF(device="torch-cpu"), **runs)
    np.testing.assert_allclose(ours.objectives, reference.objectives, rtol=1e-3)


@devices
def test_a_selection_on_a_device_resumes(device, tmp_path, monkeypatch):
    settings = {"sampling": 0.7, "n_repeats": 1, "random_state": 0, "progress": False}
    estimator = SRF(device=device, tol=1e-2, max_iter=300)
    whole = select_rank(masked(), [2, 3, 4], estimator=estimator, **settings)
    select_rank(masked(), [4], estimator=estimator, checkpoint=tmp_path, **settings)
    resumed = select_rank(masked(), [2, 3, 4], estimator=estimator, checkpoint=tmp_path, **settings)
    np.testing.assert_allclose(resumed.curve["error"], whole.curve["error"], rtol=1e-6)


@devices
def test_consensus_uses_the_device(device):
    consensus = fit_consensus(
        noisy(), N_COMPONENTS, n_runs=6, n_splits=5, estimator=SRF(device=device), random_state=0, progress=False
    )
    here = fit_consensus(noisy(), N_COMPONENTS, n_runs=6, n_splits=5, random_state=0, progress=False)
    assert consensus.converged.all()
    np.testing.assert_allclose(consensus.objectives, here.objectives, rtol=2e-3)
    assert consensus.mean_reliability > 0.9


@devices
@pytest.mark.parametrize(
    ("name", "value"), [("solver", "admm"), ("solver", "bcd"), ("bounds", (0.0, 1.0)), ("bounds", "data")]
)
def test_what_does_not_run_there_is_refused(name, value, device):
    with pytest.raises(ValueError, match=f"^{name} must"):
        SRF(2, device=device, **{name: value}).fit(noisy())


@pytest.mark.parametrize("device", ["gpu", "cuda:", "CPU", 0, None, "torch"])
def test_a_device_that_does_not_exist_is_refused(device):
    with pytest.raises(ValueError, match="device must be"):
        SRF(2, device=device).fit(noisy())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_a_missing_gpu_is_an_error(device):
    with pytest.raises(ValueError, match=f"{device}.*GPU"):
        SRF(2, device=device).fit(noisy())


def test_without_torch_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "simdims.solvers.torch")
    with pytest.raises(ModuleNotFoundError, match=r"simdims\[gpu\]"):
        SRF(2, device="cuda").fit(noisy())


def uneven(absent_weight, n=N_ITEMS):
    """Lists of few to nearly all partners, as dense S and Omega and as a problem.

    As in folds, item 0 has only its self-similarity, and item 1 no value at all.
    """
    share = np.linspace(0.05, 1, n)
    known = np.triu(np.random.default_rng(0).uniform(size=(n, n)) < np.sqrt(np.outer(share, share)), 1)
    known |= known.T
    known[:2] = known[:, :2] = False
    np.fill_diagonal(known, np.arange(n) != 1)
    S, weights = np.where(known, noisy(n=n), 0.0), np.where(known, counts(n) / 50, absent_weight)
    weights[:2, 2:] = weights[2:, :2] = weights[0, 1] = weights[1, 0] = weights[1, 1] = 0.0
    listed = known.copy()
    listed[:2] = listed[:, :2] = bool(absent_weight)  # without a weight, or they would count as zeros
    listed[0, 0] = True
    where = np.nonzero(listed)
    stored = [sparse.csr_array((part[where], where), shape=S.shape) for part in (S, weights)]
    return S, weights, solvers.as_problem(*stored, absent_weight)


@devices
@pytest.mark.parametrize("absent_weight", [0.0, 0.3])
@pytest.mark.parametrize(("block_bytes", "n_blocks"), [(1, [N_ITEMS]), (5000, range(8, N_ITEMS)), (2**29, range(8))])
def test_lists_are_fitted_alike_in_blocks_of_any_size(block_bytes, n_blocks, absent_weight, device, monkeypatch):
    S, weights, problem = uneven(absent_weight)
    estimator = SRF(device=device, max_iter=300, tol=1e-6)
    whole = solve_many(estimator, [problem], N_COMPONENTS, [0])[0]
    monkeypatch.setattr(listed_torch, "_BLOCK_BYTES", block_bytes)
    assert len(listed_torch._row_slices(np.sort(np.diff(problem.starts)), N_COMPONENTS)) in n_blocks
    parts = solve_many(estimator, [problem], N_COMPONENTS, [0])[0]
    assert parts.converged
    assert parts.kkt_residual < 1e-3
    assert parts.objective == pytest.approx(objective(S, weights, parts.W), rel=1e-6)
    np.testing.assert_allclose(parts.history[:10], whole.history[:10], rtol=1e-4)  # float32, summed in another order
    assert parts.objective == pytest.approx(whole.objective, rel=1e-4)
    reference = solve_many(SRF(max_iter=3000, tol=1e-9).set_params(init=parts.W), [problem], N_COMPONENTS, [0])[0]
    assert parts.objective == pytest.approx(reference.objective, rel=1e-4)


@devices
@pytest.mark.parametrize("absent", ["missing", 0.2])
def test_the_size_of_listed_similarities_does_not_matter(absent, device):
    S = listed(masked(), absent).values
    one, other = (fit(Similarity(S * size, absent=absent), device, random_state=0, init="random") for size in (1, 1e40))
    np.testing.assert_allclose(other.embedding_ / 1e20, one.embedding_, rtol=1e-2, atol=1e-3)
    assert other.objective_ / 1e80 == pytest.approx(one.objective_, rel=1e-4)


@devices
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_listed_hub_stays_within_its_limit_and_loadings_keep_their_dtype(dtype, device):
    spokes = np.arange(1, 201)
    S = sparse.coo_array((np.ones(200, dtype), (0 * spokes, spokes)), shape=(201, 201))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zeros between the spokes fit best with a hub at infinity
        srf = SRF(1, device=device, random_state=0, max_iter=3000, tol=0.0).fit(Similarity(S, absent="zero"))
    assert 9.99 < srf.embedding_.max() <= 10.0 * (1 + 1e-6)
    assert srf.embedding_.dtype == dtype


@devices
@pytest.mark.parametrize("absent", ["missing", "zero"])
def test_selection_and_consensus_of_lists_use_the_device(absent, device):
    W = simulate.dirichlet(80, 3, alpha=0.1, random_state=0)
    S = listed(np.where(W @ W.T > 0.02, W @ W.T, np.nan), absent)
    settings = {"sampling": 0.7, "n_repeats": 2, "random_state": 0, "progress": False}
    ours, reference = (
        select_rank(S, [2, 3, 4], estimator=SRF(device=place, tol=1e-3, max_iter=500), **settings)
        for place in (device, "cpu")
    )
    assert ours.rank == reference.rank == 3
    np.testing.assert_allclose(ours.curve["error"], reference.curve["error"], rtol=0.1, atol=1e-4)
    runs = {"n_runs": 5, "random_state": 0, "progress": False}
    ours, reference = (fit_consensus(S, 3, estimator=SRF(device=place), **runs) for place in (device, "cpu"))
    np.testing.assert_allclose(min(ours.objectives), min(reference.objectives), rtol=1e-2, atol=1e-4)


def test_lists_that_do_not_fit_into_memory_are_an_error(monkeypatch):
    S = STORAGES["sparse, missing"]()
    monkeypatch.setattr(listed_torch, "free_bytes", lambda device: 10_000)
    with pytest.raises(MemoryError, match=r"48 items with \d+ pairs and 4 dimensions needs .* GiB"):
        fit(S, "torch-cpu")
    monkeypatch.undo()

    def full(*args, **kwargs):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(listed_torch, "descend", full)
    with pytest.raises(MemoryError, match="48 items"):
        fit(S, "torch-cpu")


def test_too_little_memory_is_an_error_with_the_size_that_would_fit(monkeypatch):
    free = 6 * on_device._BLOCK_BYTES / on_device._USABLE + 10_000
    monkeypatch.setattr(on_device, "free_bytes", lambda device: int(free))
    with pytest.raises(MemoryError, match=r"48 items and 4 dimensions needs .* about \d+ items would fit") as caught:
        fit(masked(), "torch-cpu")
    fitting = int(str(caught.value).split("about ")[1].split()[0])
    assert 0 < fitting < N_ITEMS
    few = masked()[:fitting, :fitting]
    SRF(N_COMPONENTS, device="torch-cpu", random_state=0).fit(few)  # and it does


def test_fits_that_do_not_fit_together_are_done_one_after_the_other(monkeypatch):
    problem = solvers.as_problem(masked())
    data, work = on_device._bytes_of(problem, N_COMPONENTS)
    monkeypatch.setattr(
        on_device, "free_bytes", lambda device: int((6 * on_device._BLOCK_BYTES + data + 2.5 * work) / 0.85)
    )
    assert on_device._how_many([problem] * 5, N_COMPONENTS, torch.device("cpu"), shared=True) == 2
    found = solve_many(SRF(device="torch-cpu"), [problem] * 5, N_COMPONENTS, range(5))
    assert len(found) == 5


def test_a_device_that_runs_out_of_memory_is_an_error(monkeypatch):
    def full(*args, **kwargs):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(on_device, "_fit_batch", full)
    with pytest.raises(MemoryError, match="A fit of 48 items and 4 dimensions needs"):
        fit(masked(), "torch-cpu")


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    "kind",
    ["complete", "no diagonal", "half", "half, no diagonal", "counts", "factors"]
    + ["listed", "zeros of a weight", "zeros"],
)
def test_a_penalised_fit_ends_where_that_of_the_processor_ends(kind, l1_ratio):
    from test_penalty import PROBLEMS, dense, slow_objective

    similarity = PROBLEMS[kind]()
    S, omega = dense(similarity)
    settings = {"alpha": 0.2, "l1_ratio": l1_ratio, "random_state": 0, "max_iter": 3000}
    there = SRF(3, device="torch-cpu", tol=1e-7, **settings).fit(similarity)
    here = SRF(3, tol=1e-9, init=there.embedding_, **{**settings, "random_state": None}).fit(similarity)
    data, whole = slow_objective(there.embedding_.astype(float), S, omega, 0.2, l1_ratio)
    assert there.objective_ == pytest.approx(whole, rel=1e-5)
    assert there.data_objective_ == pytest.approx(data, rel=1e-4)
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-4)
    assert there.kkt_residual_ < 5e-3


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_penalty_is_chosen_on_a_device_too():
    from test_penalty import example, masked

    S = masked(example(), 0.5, diagonal=False)
    srf = SRF(3, alpha="auto", device="torch-cpu", random_state=0).fit(S)
    assert 0 < srf.alpha_ <= 1
    assert srf.score(S) > 0.5
