"""Data at the edge of what numbers can say: finite results or a sentence, whatever solver, storage and precision."""

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from simdims import (
    SRF,
    Discovery,
    Similarity,
    calibrate,
    discover,
    fit_consensus,
    from_dissimilarity,
    from_features,
    metrics,
    parallel_analysis,
    scree_test,
    select_rank,
    simulate,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),  # NumPy's overflow, invalid value and division by zero
]

SCALES = [10.0**power for power in range(-12, 13, 3)]


def dirichlet(n=24, r=3, seed=0):
    W = simulate.dirichlet(n, r, random_state=seed)
    return W @ W.T


def near_duplicates():
    S = dirichlet()
    S[1] = S[0] * (1 + 1e-14)
    S[:, 1] = S[:, 0] * (1 + 1e-14)
    S[1, 1] = S[0, 0]
    return np.maximum(S, S.T)


def indefinite():
    """As judgements are: eigenvalues of both signs, the most negative as large as the largest but one."""
    S = np.triu(np.random.default_rng(0).random((20, 20)), 1)
    eigenvalues = np.linalg.eigvalsh(S + S.T)
    assert eigenvalues[0] < -0.9 * eigenvalues[-2]
    return S + S.T


def denormals():
    S = dirichlet()
    S[np.median(S) > S] *= 1e-300
    return np.minimum(S, S.T)


def one_loud_item():
    loudness = np.where(np.arange(24) == 0, 1e6, 1.0)
    return dirichlet() * loudness[:, None] * loudness


CASES = {
    "constant": lambda: np.full((20, 20), 0.7),
    "rank_one": lambda: np.outer(np.linspace(0.1, 2, 20), np.linspace(0.1, 2, 20)),
    "blocks_with_zeros": lambda: np.kron(np.eye(4), np.ones((6, 6))),
    "near_duplicates": near_duplicates,
    "indefinite": indefinite,
    "two_items": lambda: np.array([[1.0, 0.3], [0.3, 1.0]]),
    "one_loud_item": one_loud_item,
    "denormals": denormals,
    "identity": lambda: np.eye(20),
    # No diagonal to speak of, and nothing within either half: no W W^T is close.
    "bipartite": lambda: np.kron([[0.0, 1.0], [1.0, 0.0]], np.ones((10, 10))),
    "all_but_one_zero": lambda: np.diag((np.arange(11) == 3) * 1.0, 1) + np.diag((np.arange(11) == 3) * 1.0, -1),
}


def stored(S, storage):
    """The same similarities in another storage."""
    n = len(S)
    if storage == "dense":
        return Similarity(S)
    if storage == "missing":
        rng = np.random.default_rng(0)
        gaps = np.triu(rng.random((n, n)) < 0.3, 1)
        return Similarity(np.where(gaps | gaps.T, np.nan, S))
    if storage == "no diagonal":
        return Similarity(np.where(np.eye(n, dtype=bool), np.nan, S))
    if storage == "weighted":
        weights = 10.0 ** np.random.default_rng(0).uniform(-6, 6, size=(n, n))
        return Similarity(S, weights=np.triu(weights) + np.triu(weights, 1).T)
    if storage == "factors":
        eigenvalues, vectors = np.linalg.eigh(S.astype(np.float64))
        factors = np.abs(vectors * np.sqrt(np.maximum(eigenvalues, 0)))
        return Similarity.from_factors(factors.astype(S.dtype))
    listed = sparse.csr_array(np.where(np.eye(n, dtype=bool) | (S > 0), S, 0))
    return Similarity(listed, absent=0.05 if storage == "weight" else storage)


STORAGES = ["dense", "missing", "no diagonal", "weighted", "factors", "zero", "weight"]


def is_finite(srf):
    """Whether all attributes of a fit are finite, and W is non-negative."""
    numbers = [srf.objective_, srf.kkt_residual_, *srf.history_]
    return bool(np.isfinite(srf.embedding_).all() and (srf.embedding_ >= 0).all() and np.isfinite(numbers).all())


def objective_of_nothing(S):
    """1/2 sum Omega S^2, the objective of W = 0."""
    values = S.values if S.factors is None else S.factors @ S.factors.T
    values = values.toarray() if sparse.issparse(values) else values
    return 0.5 * np.nansum(values.astype(np.float64) ** 2 * (1.0 if S.weights is None else S.weights))


def fit(S, **settings):
    """A fit, or None where it refuses the data in a sentence."""
    try:
        return SRF(**{"n_components": min(3, S.n_items), "max_iter": 60, "random_state": 0, **settings}).fit(S)
    except ValueError as error:
        refusal = str(error)
    assert "squared and summed" in refusal, refusal
    return None


# --- fits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", ["auto", "bcd", "admm"])
@pytest.mark.parametrize("case", CASES)
def test_every_case_is_fitted_in_every_storage(case, solver, dtype):
    S = CASES[case]().astype(dtype)
    for storage in STORAGES:
        similarity = stored(S, storage)
        for init in ("random", "spectral"):
            srf = fit(similarity, solver=solver, init=init)
            assert srf is not None, storage
            assert is_finite(srf), storage
            assert srf.embedding_.dtype == dtype, storage
            # ADMM comes down later where weights differ by twelve orders of magnitude.
            slack = 0.1 if solver == "admm" else 1e-6
            assert srf.objective_ <= objective_of_nothing(similarity) * (1 + slack), storage


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("solver", ["bcd", "admm"])
def test_scales_from_tiny_to_huge_change_nothing_but_the_scale(solver, storage, dtype):
    """sqrt(c) W is the fit of c S; the number of sweeps may differ by rounding, hence the tolerance."""
    S = simulate.add_noise(dirichlet(), 0.7, random_state=0)
    reference = fit(stored(S.astype(dtype), storage), solver=solver)
    for scale in SCALES:
        similarity = stored((S * scale).astype(dtype), storage)
        srf = fit(similarity, solver=solver)
        assert srf is not None
        assert is_finite(srf)
        assert srf.objective_ == pytest.approx(reference.objective_ * scale**2, rel=0.02)
        np.testing.assert_allclose(srf.embedding_ / np.sqrt(scale), reference.embedding_, rtol=0.05, atol=0.02)


#: Powers of ten at which squares, or their sum, leave the range of the type. Far below, float32 has nothing but zeros.
BEYOND = {np.float32: {-40, -30, 30, 38}, np.float64: {-320, -300, -200, -160, -100, 150, 200, 300, 308}}


@pytest.mark.parametrize("power", [-320, -300, -200, -160, -100, -50, -40, -30, 30, 38, 60, 100, 150, 200, 300, 308])
@pytest.mark.parametrize("storage", ["dense", "missing", "factors", "zero"])
def test_scales_beyond_reason_are_refused_and_all_others_fitted(storage, power):
    for dtype in (np.float32, np.float64):
        with np.errstate(all="ignore"):
            S = (dirichlet() * 10.0**power).astype(dtype)
        if not np.isfinite(S).all() or (storage == "factors" and power == 308):
            continue
        with np.errstate(all="ignore"):
            similarity = stored(S, storage)
        srf = fit(similarity)
        assert (srf is None) == (power in BEYOND[dtype])
        assert srf is None or is_finite(srf)


@pytest.mark.parametrize("solver", ["bcd", "admm"])
def test_what_has_an_exact_answer_gets_it(solver):
    settings = {"solver": solver, "random_state": 0, "tol": 1e-10, "max_iter": 3000}
    W = SRF(1, **settings).fit(CASES["constant"]()).embedding_
    np.testing.assert_allclose(W, np.sqrt(0.7), rtol=1e-4)
    W = SRF(1, **settings).fit(CASES["rank_one"]()).embedding_
    np.testing.assert_allclose(W[:, 0], np.linspace(0.1, 2, 20), rtol=1e-3)
    srf = SRF(4, **settings).fit(CASES["blocks_with_zeros"]())
    np.testing.assert_allclose(srf.reconstruct(), CASES["blocks_with_zeros"](), atol=1e-3)
    assert SRF(2, **settings).fit(CASES["two_items"]()).objective_ < 1e-8


@pytest.mark.parametrize("n_components", [1, 2])
def test_two_items_are_enough_for_a_fit_and_too_few_for_more(n_components):
    S = CASES["two_items"]()
    srf = SRF(n_components, random_state=0).fit(S)
    assert is_finite(srf)
    assert np.isfinite(srf.transform(S)).all()
    for refused in (
        lambda: discover(S, ranks=1, n_runs=2),
        lambda: select_rank(S, [1], sampling=0.5),
        lambda: calibrate(S),
        lambda: scree_test(S),
        lambda: parallel_analysis(S),
        lambda: fit_consensus(S, 1, n_runs=2),
    ):
        with pytest.raises(ValueError, match=r" at (least|most) "):
            refused()


# --- all the rest ------------------------------------------------------------------------------------------------


def finite_or_sentence(call):
    """What a function returns, or None where it refuses the data in a sentence of its own."""
    try:
        return call()
    except ValueError as error:
        refusal = str(error)
    assert " must " in refusal, refusal
    assert refusal.endswith("."), refusal
    return None


@pytest.mark.parametrize("case", [case for case in CASES if case != "two_items"])
def test_ranks_are_selected_but_where_all_pairs_are_zeros(case):
    S = CASES[case]()
    for storage in ("dense", "missing", "zero"):
        similarity = stored(S, storage)
        selection = finite_or_sentence(
            lambda similarity=similarity: select_rank(
                similarity, [1, 2, 3], sampling=0.6, n_folds=2, n_repeats=2, random_state=0
            )
        )
        if case in ("identity", "all_but_one_zero") and storage == "zero":
            assert selection is None
        else:
            assert selection.rank in (1, 2, 3)
            assert np.isfinite(selection.curve.select_dtypes("number").to_numpy()[:, :2]).all()


@pytest.mark.parametrize("case", [case for case in CASES if case != "two_items"])
def test_spectra_and_calibrations_are_finite(case):
    for storage in ("dense", "missing", "zero"):
        similarity = stored(CASES[case](), storage)
        n = similarity.n_items
        found = calibrate(similarity, n_bootstraps=3, random_state=0)
        assert 0 < found.sampling < 1
        assert np.isfinite(found.signal_loss).all()
        assert 1 <= scree_test(similarity) <= n
        assert 1 <= parallel_analysis(similarity, n_samples=5, random_state=0) <= n


@pytest.mark.parametrize("case", [case for case in CASES if case != "two_items"])
def test_discoveries_are_finite(case, tmp_path):
    found = discover(Similarity(CASES[case]()), ranks=2, n_runs=2, random_state=0, progress=False)
    assert np.isfinite(found.embedding).all()
    assert found.metrics
    assert all(np.isfinite(value) for value in found.metrics.values())
    assert found.summary()
    found.save(tmp_path / "folder")
    np.testing.assert_array_equal(Discovery.load(tmp_path / "folder").embedding, found.embedding)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_a_whole_discovery_at_both_ends_of_the_scale(scale):
    one, other = (
        discover(dirichlet() * by, ranks=[1, 2, 3], sampling=0.6, n_repeats=1, n_runs=2, random_state=0, progress=False)
        for by in (1.0, scale)
    )
    assert one.n_components == other.n_components
    assert one.metrics["explained_variance"] == pytest.approx(other.metrics["explained_variance"], rel=1e-3)


#: What a metric has no number for: equal similarities have no variance, embeddings of zeros no shape, and graphs that
#: are complete or have no links nothing to tell apart.
UNDEFINED = {
    "explained_variance": {"constant", "two_items", "identity"},
    "hoyer_sparsity": {"all_but_one_zero"},
    "entropy": {"all_but_one_zero"},
    "factor_alignment": set(),
    "link_auc": {
        "constant", "rank_one", "near_duplicates", "indefinite", "two_items", "one_loud_item", "denormals", "identity",
    },
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_metrics_of_odd_embeddings_are_finite_or_undefined(case):
    S = CASES[case]()
    W = np.ascontiguousarray(S[:, :2])
    values = {
        "explained_variance": lambda: metrics.explained_variance(S, W),
        "hoyer_sparsity": lambda: metrics.hoyer_sparsity(W),
        "entropy": lambda: metrics.entropy(W),
        "factor_alignment": lambda: metrics.factor_alignment(W, W[::-1]).correlations.sum(),
        "link_auc": lambda: metrics.link_auc(stored(S, "zero"), W, random_state=0),
    }
    for name, metric in values.items():
        value = finite_or_sentence(metric)
        assert (value is None) == (case in UNDEFINED[name]), name
        assert value is None or np.isfinite(value), name


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e-12, 1e12, 1e150, 1e300])
def test_features_and_distances_of_any_scale_become_similarities(scale):
    X = np.random.default_rng(0).random((12, 3)) * scale
    D = np.abs(X[:, :1] - X[:, 0])
    if scale in (1e-300, 1e300):  # squares leave the range of numbers
        assert finite_or_sentence(lambda: from_features(X, kernel="linear")) is None
    for make in (
        *(lambda kernel=kernel: from_features(X, kernel=kernel) for kernel in ("rbf", "cosine")),
        *([] if scale in (1e-300, 1e300) else [lambda: from_features(X, kernel="linear")]),
        lambda: from_features(X, kernel="rbf", implicit=True, n_landmarks=4),
        *(lambda method=method: from_dissimilarity(D, method=method) for method in ("max", "gaussian")),
    ):
        S = make()
        values = S.factors if S.factors is not None else S.values
        assert np.isfinite(values).all()
        assert len(np.unique(values)) > 12  # a scale is no information, but nothing of it is lost


# --- threads and processes ---------------------------------------------------------------------------------------

JOBS = [
    {"n_components": 3, "random_state": 1},
    {"n_components": 3, "random_state": 2, "solver": "admm", "max_iter": 20},
    {"n_components": 5, "random_state": 3, "init": "spectral"},
]


def embedding_of(number):
    """The result of one of some different fits: complete, with gaps, and sparse."""
    S = stored(dirichlet(60, seed=number), ["dense", "missing", "zero"][number % 3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SRF(**JOBS[number % 3]).fit(S).embedding_


def test_fits_in_threads_give_what_they_give_alone():
    """More threads than cores, of different problems, several times over, and selections beside them."""
    alone = [embedding_of(number) for number in range(6)]
    S = dirichlet(30)

    def select():
        return select_rank(S, [1, 2], sampling=0.6, n_folds=2, n_repeats=1, random_state=0).scores["error"].to_numpy()

    selected = select()
    gate = threading.Barrier(7)

    def work(number):
        gate.wait()
        for _ in range(3):
            np.testing.assert_array_equal(embedding_of(number), alone[number])

    def work_selection():
        gate.wait()
        np.testing.assert_array_equal(select(), selected)

    with ThreadPoolExecutor(7) as pool:
        tasks = [pool.submit(work, number) for number in range(6)] + [pool.submit(work_selection)]
        for task in tasks:
            task.result(timeout=120)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_started_after_a_fit_give_the_same(method):
    if method == "fork" and sys.platform != "linux":
        pytest.skip("a process that has computed can be forked safely on Linux only")
    alone = [embedding_of(number) for number in range(3)]
    with multiprocessing.get_context(method).Pool(1 if method == "spawn" else 2) as pool:
        there = pool.map_async(embedding_of, range(3)).get(timeout=120)
    for one, other in zip(alone, there, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(sys.platform != "linux", reason="a process with threads can be forked safely on Linux only")
def test_a_process_that_is_forked_in_the_middle_of_fits_can_fit():
    """Threads do not follow into a forked process, but what they hold does: locks, and counts of those inside."""
    expected = embedding_of(0)
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            embedding_of(0)

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(8):
            pid = os.fork()
            if pid == 0:
                signal.alarm(30)  # a deadlock ends with a signal
                try:
                    os._exit(0 if np.array_equal(embedding_of(0), expected) else 1)
                except BaseException:
                    os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


# --- a long day --------------------------------------------------------------------------------------------------


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is looked up in /proc, which is missing")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_two_thousand_fits_leave_no_memory_behind():
    """What is allocated on first use is allocated in the first 200; from there on nothing may grow."""
    storages = ["dense", "missing", "zero", "factors", "weighted"]
    problems = [stored(dirichlet(40, seed=seed), storages[seed % 5]) for seed in range(10)]
    readings = []
    for number in range(2000):
        solver = "admm" if number % 10 == 9 else "auto"
        SRF(4, solver=solver, max_iter=20, random_state=number).fit(problems[number % 10])
        if number >= 200 and number % 100 == 0:
            readings.append(resident_bytes())
    # One matrix a fit, 40 x 40 in float64, would be 23 MB over the 1,800.
    assert readings[-1] - readings[0] < 4 * 2**20
    assert max(readings) - readings[0] < 8 * 2**20


@pytest.mark.parametrize("weight", [1e300, 1e-50])
def test_sparse_float32_takes_weights_beyond_float32(weight):
    W = np.random.default_rng(0).uniform(size=(30, 2)).astype(np.float32)
    S = sparse.csr_array(W @ W.T)
    weights = sparse.csr_array(np.full((30, 30), weight))
    srf = SRF(2, random_state=0).fit(Similarity(S, weights=weights, absent="missing"))
    plain = SRF(2, random_state=0).fit(Similarity(S, absent="missing"))
    np.testing.assert_array_equal(srf.embedding_, plain.embedding_)
