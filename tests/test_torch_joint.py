"""Joint fits on a device of torch: the same problems, the same answers; on a GPU too where there is one."""

import sys
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from test_joint import definition, of_kinds, simulated  # noqa: E402

from simdims import JointSRF, Similarity, SimilaritySet, discover, fit_consensus, select_rank  # noqa: E402
from simdims.joint import problem_of_set  # noqa: E402
from simdims.solvers import joint_torch, penalised_jointly  # noqa: E402
from simdims.solvers.joint import evaluate_jointly, gradient, weight_equations  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Systems seem to be on different scales")

DEVICES = ["torch-cpu", *(["cuda"] if torch.cuda.is_available() else [])]
devices = pytest.mark.parametrize("device", DEVICES)

PENALTIES = [(0.0, 0.0, 0.0), (0.1, 0.4, 0.2), (0.1, 0.0, np.inf)]


def weighted():
    stack, *_ = simulated(4, 24, 3, observed=0.6, diagonal=True)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, size=stack.shape)
    pairs = zip(stack, weights + weights.transpose(0, 2, 1), strict=True)
    return SimilaritySet([Similarity(S, weights=np.where(np.isnan(S), 0.0, omega)) for S, omega in pairs])


def parts(systems):
    """Each system's matrix of similarities, NaN where unknown, and of weights."""
    found = []
    for one in systems:
        if sparse.issparse(one.values):  # absent pairs are zeros; the diagonal is known where it is stored
            values, omega = one.values.toarray(), np.ones((one.n_items, one.n_items))
            np.fill_diagonal(omega, one.values.diagonal() > 0)
        else:
            values = one.values
            omega = np.ones_like(values) if one.weights is None else one.weights
        found.append((values, omega))
    return tuple(np.stack(column) for column in zip(*found, strict=True))


STORAGES = {
    "complete": lambda: SimilaritySet(simulated(4, 24, 3, observed=1.0, diagonal=True)[0]),
    "without diagonal": lambda: SimilaritySet(simulated(4, 24, 3, observed=1.0, diagonal=False)[0]),
    "missing": lambda: SimilaritySet(simulated(4, 24, 3, observed=0.5, diagonal=False)[0]),
    "weighted": weighted,
    "of all kinds": of_kinds,
}
storages = pytest.mark.parametrize("storage", STORAGES)


def fit(systems, device, **parameters):
    start = np.random.RandomState(0).uniform(0.1, 0.7, size=(24, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        settings = {"alpha": 0.05, "shrinkage": 0.1, "init": start, "max_iter": 3000, **parameters}
        return JointSRF(3, device=device, **settings).fit(systems)


@devices
@storages
@pytest.mark.parametrize(("alpha", "l1_ratio", "shrinkage"), PENALTIES)
def test_the_objective_is_its_definition_and_begins_and_ends_the_history(storage, device, alpha, l1_ratio, shrinkage):
    systems = STORAGES[storage]()
    joint = fit(systems, device, max_iter=12, alpha=alpha, l1_ratio=l1_ratio, shrinkage=shrinkage)
    drawn = 0.0 if np.isinf(shrinkage) else shrinkage
    problem = penalised_jointly(problem_of_set(systems), 3, alpha, l1_ratio, drawn)
    values, weights = parts(systems)
    # The definition has the problem's weights, which are relative to the largest; the objective has the caller's.
    expected = definition(values, joint.embedding_, joint.weights_, problem, weights / problem.scale) * problem.scale
    assert joint.objective_ == pytest.approx(expected, rel=1e-9)
    assert joint.history_[-1] == joint.objective_
    start = definition(values, joint.init, np.ones((4, 3)), problem, weights / problem.scale) * problem.scale
    assert joint.history_[0] == pytest.approx(start, rel=1e-5)
    assert len(joint.history_) == joint.n_iter_ + 1
    assert joint.solver_ == "torch"


@devices
@storages
def test_no_iteration_raises_the_objective_beyond_rounding_and_the_history_is_the_truth(storage, device):
    systems = STORAGES[storage]()
    longest = fit(systems, device, max_iter=40, tol=0.0)
    problem = penalised_jointly(problem_of_set(systems), 3, 0.05, 0.0, 0.1)
    fits = [fit(systems, device, max_iter=t, tol=0.0) for t in range(1, longest.n_iter_ + 1)]
    computed = [evaluate_jointly(problem, one.embedding_, one.weights_).objective * problem.scale for one in fits]
    np.testing.assert_allclose(longest.history_[1:], computed, rtol=1e-5)
    np.testing.assert_array_less(np.diff(longest.history_), 4e-6 * longest.history_[1:])
    np.testing.assert_allclose(longest.weights_.mean(axis=0), 1.0, rtol=1e-6)
    assert min(longest.weights_.min(), longest.embedding_.min()) >= 0


@devices
@storages
@pytest.mark.parametrize(("alpha", "l1_ratio", "shrinkage"), PENALTIES)
def test_it_ends_where_coordinate_descent_ends(storage, device, alpha, l1_ratio, shrinkage):
    systems = STORAGES[storage]()
    settings = {"alpha": alpha, "l1_ratio": l1_ratio, "shrinkage": shrinkage}
    ours, reference = fit(systems, device, tol=1e-6, **settings), fit(systems, "cpu", tol=1e-9, **settings)
    assert ours.converged_
    assert ours.kkt_residual_ < 2e-3
    assert ours.objective_ == pytest.approx(reference.objective_, rel=1e-3)
    for m in range(4):
        np.testing.assert_allclose(ours.reconstruct(m), reference.reconstruct(m), atol=0.05)


@devices
@storages
def test_gradient_and_equations_are_those_of_the_cpu(storage, device):
    systems = STORAGES[storage]()
    problem = penalised_jointly(problem_of_set(systems), 3, 0.1, 0.3, 0.2)
    rng = np.random.default_rng(1)
    W, a = rng.uniform(size=(24, 3)), rng.uniform(0.2, 2.0, size=(4, 3))
    data = joint_torch._upload(problem, 4.0, joint_torch.check_device(device))
    there = joint_torch._Descent(data, problem, W, a, 4.0)
    value, slope, _ = gradient(problem, W, a)
    slope += 2.0 * problem.penalty.ridge * W + 2.0 * problem.penalty.lasso
    assert float(there.state.f[0]) * 16.0 == pytest.approx(value + problem.penalty.of(W), rel=1e-5)
    np.testing.assert_allclose(there.state.G[0].cpu().numpy() * 8.0, slope, rtol=1e-3, atol=1e-4 * np.abs(slope).max())
    for ours, expected in zip(there._weight_equations(), weight_equations(problem, W), strict=True):
        np.testing.assert_allclose(ours * 16.0, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@devices
def test_systems_in_several_blocks_are_fitted_as_in_one(device, monkeypatch):
    systems = STORAGES["missing"]()
    whole = fit(systems, device, max_iter=30)
    monkeypatch.setattr(joint_torch, "_BLOCK_BYTES", 4 * 24 * 24)
    np.testing.assert_allclose(fit(systems, device, max_iter=30).embedding_, whole.embedding_, atol=1e-4)


@devices
def test_one_system_is_srf_on_the_device(device):
    joint = fit(SimilaritySet(STORAGES["missing"]()[[0]]), device)
    assert joint.solver_ == "torch"
    np.testing.assert_array_equal(joint.weights_, 1.0)


@devices
def test_many_fits_run_on_the_device(device):
    systems = STORAGES["without diagonal"]()
    settings = {"n_repeats": 1, "random_state": 0, "progress": False}
    model = JointSRF(tol=1e-2, max_iter=300, device=device)
    ours = select_rank(systems, [2, 3], estimator=model, n_jobs=2, **settings)
    reference = select_rank(systems, [2, 3], **settings)
    np.testing.assert_allclose(ours.curve["error"], reference.curve["error"], rtol=0.05)
    assert ours.rank == reference.rank
    consensus = fit_consensus(systems, 3, n_runs=2, n_splits=2, estimator=model, random_state=0, progress=False)
    assert consensus.weights.shape == (2, 4, 3)
    found = discover(systems, ranks=3, n_runs=2, device=device, **settings)
    assert found.settings["device"] == device
    here = discover(systems, ranks=3, n_runs=2, **settings)
    np.testing.assert_allclose(found.systems.comparison["r2"], here.systems.comparison["r2"], atol=0.03)


def test_a_device_other_than_the_estimators_is_refused():
    with pytest.raises(ValueError, match="device must be that of the estimator, 'cpu'"):
        discover(STORAGES["missing"](), ranks=2, estimator=JointSRF(), device="torch-cpu")


@devices
def test_too_little_memory_is_an_error(device, monkeypatch):
    monkeypatch.setattr(joint_torch, "free_bytes", lambda device: 10_000)
    with pytest.raises(MemoryError, match="A joint fit of 4 systems and 24 items needs"):
        fit(STORAGES["missing"](), device)


def test_without_torch_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "simdims.solvers.joint_torch", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "simdims.solvers.joint_torch")
    with pytest.raises(ModuleNotFoundError, match="device='cuda' needs PyTorch"):
        fit(STORAGES["missing"](), "cuda")
