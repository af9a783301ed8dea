"""SRF, the scikit-learn estimator: check, initialise, call one solver, store the results."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from simdims import _memory, _threads, solvers
from simdims._journal import Work
from simdims._parallel import generator_of, workers_here
from simdims._parameters import (
    ParameterError,
    ParameterTypeError,
    SimdimsWarning,
    as_range,
    plural,
    require_choice,
    require_components,
    require_count,
    require_device,
    require_number,
    shortlist,
    shown,
    warn,
)
from simdims.metrics import explained_variance
from simdims.similarity import Similarity, as_similarity
from simdims.similarity.arrays import Arrays, arrays_of, problem_of
from simdims.similarity.labels import name_of
from simdims.similarity.new_items import as_rows, check_rows, held_out_variance, holds_new_items
from simdims.solvers import path

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("simdims")

_DEFAULT_INNER_ITER = 10
_DEFAULT_RHO = 3.0

#: Nothing is left of similarities if the squares of all loadings sum to less than this share of their norm.
_NOTHING = 1e-6


class UnconvergedWarning(SimdimsWarning, ConvergenceWarning):
    """A fit that stopped before it converged; also a scikit-learn ConvergenceWarning."""


class SRF(TransformerMixin, BaseEstimator):
    """Similarity-Based Representation Factorization: S ~ W W^T with W >= 0, fitted to the observed pairs.

    Minimises f(W) = 1/2 sum_ij Omega_ij (S_ij - w_i . w_j)^2, where the weight Omega_ij of a missing pair is zero, plus
    a penalty on the loadings if `alpha` is given. The columns of W are the dimensions, sorted by their share of the
    reconstruction, largest first.

    Parameters
    ----------
    n_components : int, default=10
        Number of dimensions, between 1 and the number of items.
    solver : {"auto", "bcd", "admm"}, default="auto"
        "bcd" is block coordinate descent on f itself; it never raises f and is the default. "admm" is the paper's
        Algorithm 1, the reference, and the only solver that keeps its auxiliary matrix inside `bounds`.
    bounds : {"auto", "data"}, (low, high) or None, default="auto"
        Range for predictions. "data" is the observed range, None is no range, and "auto" is "data" for admm with
        missing pairs and None otherwise. With admm the auxiliary matrix Z, which W W^T approaches, stays inside. With
        bcd it is a soft constraint on the missing pairs of a dense matrix: each adds 1/2 (distance of its prediction to
        the range)^2, times the largest weight, to f. An error is raised if no pair is missing or S is sparse.
    init : {"random", "spectral"} or array of shape (n_items, n_components), default="random"
        Initial W: uniform random numbers, or the non-negative parts of the leading eigenvectors, both scaled so that
        the first reconstruction has the data's mean; or an array, used as is.
    max_iter : int, default=500
        Maximum number of sweeps over the items (bcd) or outer iterations (admm). With up to a few hundred items, up to
        100 of the sweeps, 200 with pairs missing, move all of them at once.
    inner_iter : int, default=10
        Sweeps per outer iteration; admm only.
    tol : float, default=1e-4
        Relative tolerance. bcd stops when ten sweeps (25 of those that move all items at once, followed by three
        others) lower f by less than this fraction; admm when an outer iteration changes f by less than this fraction
        and |Z - W W^T| is less than `tol` |Z|.
    rho : float, default=3.0
        Penalty of the augmented Lagrangian; admm only. The paper's guarantee requires at least sqrt(2).
    alpha : float or "auto", default=0.0
        Penalty on the loadings: F(W) = f(W) + lambda [(1 - l1_ratio)/2 |W|_F^2 + l1_ratio s sum_ik W_ik] is minimised,
        with lambda/2 = alpha * 2 sqrt(mean_i sum_{j != i} Omega_ij^2 (S_ij - m)^2), m the weighted mean and s the
        square root of the weighted standard deviation of the similarities of different items. 0 is the paper's
        objective; 1 removes what shuffled similarities would show beyond their mean; useful values for few or noisy
        pairs lie in between. The scale of S and of its weights does not matter. "auto" chooses it by held-out pairs.
    l1_ratio : float, default=0.0
        Share of the l1 part of the penalty (a sum of loadings), which sets small ones to zero, as opposed to the ridge
        part (a sum of squares), which shrinks the weakest directions of W W^T. Between 0 and 1.
    device : {"cpu", "cuda", "cuda:0", ..., "mps", "torch-cpu"}, default="cpu"
        Where to compute. All except "cpu" need PyTorch: "cuda" is an NVIDIA (or AMD) GPU, "mps" the GPU of a Mac, and
        "torch-cpu" runs the same code on the CPU. Fits use float32 and a separate algorithm that updates all rows at
        once (`solver` must be "auto", `bounds` "auto" or None). With "cuda", functions that fit repeatedly use as many
        GPUs as their `n_jobs`, one by default; "cuda:1" names one of them.
    random_state : int, RandomState or None, default=None
        Seed of the start; None uses fresh entropy.
    verbose : int, default=0
        With 1 or more, progress is logged to the logger "simdims".

    Attributes
    ----------
    embedding_ : ndarray of shape (n_items, n_components)
        W; float32 if S is, float64 otherwise.
    n_iter_ : int
        Number of sweeps (bcd) or outer iterations (admm).
    converged_ : bool
        Whether `tol` was met within `max_iter`, or nothing is left to explain: the objective is at most 1e-8 `tol` of
        that of W = 0, or at the rounding error of the data.
    alpha_ : float
        The penalty that was used.
    objective_ : float
        F(W), in the units of S squared times the weights (with bounds and bcd, the soft constraint included).
    data_objective_ : float
        f(W), the objective without the penalty.
    history_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after each iteration, as measured. With bcd it never rises by more than rounding
        error: 1e-13 (float64) or 1e-6 (float32) of the objective of W = 0; on a PyTorch device, which computes in
        float32, 2e-6 of the objective and 6e-8 of that of W = 0.
    kkt_residual_ : float
        Norm of the projected gradient relative to that of its data part: 0 at a KKT point, usually below 1e-3 at
        convergence.
    solver_ : str
        The solver that was used: "bcd", "admm", or "torch" on a PyTorch device.
    n_features_in_ : int
        Number of items.
    feature_names_in_ : ndarray of str
        The items' labels, if S has any.

    References
    ----------
    SRF, Methods and Supplement "Optimization and convergence of SRF".

    Examples
    --------
    >>> from simdims import SRF, simulate
    >>> W = simulate.dirichlet(60, 3, random_state=0)
    >>> srf = SRF(n_components=3, random_state=0).fit(W @ W.T)
    >>> srf.embedding_.shape
    (60, 3)
    >>> srf.score(W @ W.T) > 0.999
    True
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        solver: str = "auto",
        bounds: str | tuple[float, float] | None = "auto",
        init: str | ArrayLike = "random",
        max_iter: int = 500,
        inner_iter: int = _DEFAULT_INNER_ITER,
        tol: float = 1e-4,
        rho: float = _DEFAULT_RHO,
        alpha: float | str = 0.0,
        l1_ratio: float = 0.0,
        device: str = "cpu",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.bounds = bounds
        self.init = init
        self.max_iter = max_iter
        self.inner_iter = inner_iter
        self.tol = tol
        self.rho = rho
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, S: Any, y: None = None) -> SRF:
        """Fit the embedding to similarities.

        Parameters
        ----------
        S : Similarity, or array-like or DataFrame of shape (n_items, n_items)
            The similarities, with NaN for missing pairs. For a sparse matrix, specify what an absent pair means:
            ``Similarity(matrix, absent=...)``.
        y : None
            Ignored; present by scikit-learn convention.

        Returns
        -------
        SRF
            The estimator itself.

        Warns
        -----
        ConvergenceWarning
            If `tol` was not met within `max_iter`.
        UserWarning
            If the observed pairs do not determine the loadings: fewer pairs than loadings, items with fewer pairs than
            dimensions, or, if the diagonal is missing, self-similarities far beyond the observed range and loadings at
            their limit, ten times the root of the largest similarity (the only bound without a penalty); or if the
            penalty is so strong that all loadings are zero.
        """
        self._check_parameters()
        similarity = as_similarity(S, copy=False)
        require_components(self.n_components, similarity.n_items)
        problem = problem_of(arrays_of(similarity))
        rng = generator_of(self.random_state)
        start = self._start(problem, rng)
        self.alpha_, found = self._resolve_alpha(problem, start, rng)
        problem = solvers.penalised(problem, self.alpha_, self.l1_ratio)
        if self.alpha == "auto" and isinstance(self.init, str) and path.has_many_minima(problem, self.alpha_):
            # The end of the path competes with two approaches to the penalty.
            starts = [start, self._start(problem, rng)]
            starts = [*path.approach([problem] * 2, starts, self.alpha_, self._step), found]
            solution = self._finish([problem], [path.best_start(problem, starts, self._step)])[0]
        else:
            solution = self._solve([problem], [start], self.alpha_)[0]
        shares = np.square(solution.W, dtype=np.float64).sum(axis=0)
        self.embedding_ = solution.W.take(np.argsort(-shares, kind="stable"), axis=1)
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        self.objective_ = solution.objective
        self.data_objective_ = solution.data_objective
        self.history_ = solution.history
        self.kkt_residual_ = solution.kkt_residual
        self.solver_ = self._resolved_solver()
        self._penalty = solvers.penalty_of_rows(problem, self.alpha_, self.l1_ratio)
        self.n_features_in_ = similarity.n_items
        remember_labels(self, similarity.labels)
        if not self.converged_:
            self._warn_of_slow_convergence()
        warn_of_underdetermined(problem, self.embedding_, similarity.labels)
        warn_of_nothing_left(self.embedding_, self.alpha_, 2.0 * solvers.size(problem))
        return self

    def fit_transform(self, S: Any, y: None = None) -> NDArray[np.floating]:
        """Fit to similarities and return the embedding of the items.

        Parameters
        ----------
        S : Similarity, or array-like or DataFrame of shape (n_items, n_items)
            The similarities; see `fit`.
        y : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_items, n_components)
            The embedding.
        """
        return self.fit(S, y).embedding_.copy()

    def transform(self, S: Any) -> NDArray[np.floating]:
        """Embed items from their similarities to the fitted items.

        Each row is the non-negative least-squares solution of s ~ W w over its observed entries, all with equal weight,
        with the fitted W and the penalty of the fit (for the same `alpha_`, without weights).

        Parameters
        ----------
        S : array-like or DataFrame of shape (n_new, n_items)
            Similarities of new items to the fitted ones, in the fitted order; NaN where a pair is missing.

        Returns
        -------
        ndarray of shape (n_new, n_components)
            One row per new item.

        Examples
        --------
        >>> from simdims import SRF, simulate
        >>> W = simulate.dirichlet(60, 3, random_state=0)
        >>> srf = SRF(n_components=3, random_state=0).fit(W[:50] @ W[:50].T)
        >>> srf.transform(W[50:] @ W[:50].T).shape
        (10, 3)
        """
        check_is_fitted(self)
        rows = self._check_rows(S)
        new = solvers.embed(rows, self.embedding_, self._penalty)
        if not np.isfinite(new).all():
            got = f"values up to {np.nanmax(rows):.3g}, whose embedding overflows {new.dtype}"
            raise ParameterError("S", "must be on the scale of the similarities that were fitted", got)
        return new

    def reconstruct(self) -> NDArray[np.floating]:
        """Predict the similarities of every pair, W W^T.

        Returns
        -------
        ndarray of shape (n_items, n_items)
        """
        check_is_fitted(self)
        _require_square(self.embedding_, "The similarities that W W^T predicts")
        return self.embedding_ @ self.embedding_.T

    def score(self, S: Any, y: None = None) -> float:
        """Return the share of the variance of similarities that the embedding explains (R2).

        For the fitted items, W W^T predicts the observed off-diagonal pairs. For new items, each similarity to a fitted
        item is predicted from others of the same row, which embed the new item as `transform` does: the columns are
        split into five parts, and each part is predicted from the other four. scikit-learn's `cross_val_score` and
        `GridSearchCV` use this with held-out items; `select_rank`, which holds out pairs, compares numbers of
        dimensions with more power.

        Parameters
        ----------
        S : Similarity, or array-like or DataFrame of shape (n_items, n_items) or (n_new, n_items)
            Similarities between the fitted items (for example held-out pairs), or of new items to the fitted ones. An
            array with as many rows as fitted items is taken for new items if it is not symmetric.
        y : None
            Ignored.

        Returns
        -------
        float
            R2; see `simdims.metrics.explained_variance`.
        """
        check_is_fitted(self)
        self._check_n_columns(S)
        self._check_names(S)
        if holds_new_items(S):
            return held_out_variance(self._check_rows(S, allow_empty=True), self.embedding_, self._penalty)
        similarity = as_similarity(S, copy=False)
        self._check_labels(similarity.labels)
        return explained_variance(similarity, self.embedding_)

    def embedding_frame(self) -> pd.DataFrame:
        """Return the embedding with a row per item, indexed by label if S had labels, and a named column per dimension.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        check_is_fitted(self)
        items = getattr(self, "feature_names_in_", None)
        return pd.DataFrame(self.embedding_, index=items, columns=self.get_feature_names_out())

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the dimensions: dimension1, the largest, dimension2, ...

        Parameters
        ----------
        input_features : None
            Ignored; present by scikit-learn convention.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        n_components = self.embedding_.shape[1]
        return np.array([f"dimension{k + 1}" for k in range(n_components)], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_parameters(self) -> None:
        require_choice("solver", self.solver, ("auto", "bcd", "admm"))
        require_device(self.device)
        require_count("n_components", self.n_components)
        require_count("max_iter", self.max_iter, at_most=10**7)
        require_count("inner_iter", self.inner_iter)
        require_number("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, "at least 0")
        require_number("tol", self.tol, "at least 0")
        require_number("rho", self.rho, "positive")
        check_alpha(self.alpha)
        require_number("l1_ratio", self.l1_ratio, "at least 0")
        if self.l1_ratio > 1:
            raise ParameterError("l1_ratio", "must be between 0 and 1", shown(self.l1_ratio))
        if isinstance(self.init, str):
            require_choice("init", self.init, ("random", "spectral"))
        if self.device != "cpu":
            self._check_device()
        if self.solver != "admm":
            for name, default in (("rho", _DEFAULT_RHO), ("inner_iter", _DEFAULT_INNER_ITER)):
                if getattr(self, name) != default:
                    rule = f"must be {default} unless {{solver=admm}}, which alone uses it"
                    raise ParameterError(name, rule, f"{getattr(self, name)} with solver={self.solver!r}")

    def _check_device(self) -> None:
        for name, allowed in (("solver", ("auto",)), ("bounds", ("auto", None))):
            value = getattr(self, name)
            if not any(value is one or (isinstance(value, str) and value == one) for one in allowed):
                rule = f"must be {' or '.join(map(repr, allowed))} unless {{device=cpu}}"
                raise ParameterError(name, rule, f"{value!r} with device={self.device!r}")

    def _check_rows(self, S: Any, *, allow_empty: bool = False) -> NDArray[np.floating]:
        self._check_names(S)
        if isinstance(S, Similarity):
            self._check_labels(S.labels)
            S = _known_values(S)
        rows = as_rows(S, self)
        self._check_n_columns(rows)
        check_rows(rows, getattr(S, "index", np.arange(len(rows))), allow_empty=allow_empty)
        return rows

    def _check_names(self, S: Any) -> None:
        """Check the columns of a DataFrame against the fitted items, by scikit-learn's check if all names are text."""
        if not hasattr(S, "columns") or type(S.columns).__name__ == "RangeIndex":
            return
        if not S.columns.is_unique:
            raise ParameterError("S", "must have a column for each fitted item", "columns of the same name")
        if all(isinstance(name, str) for name in S.columns):
            validate_data(self, S, reset=False, skip_check_array=True)
        else:
            self._check_labels(tuple(map(str, S.columns)))

    def _check_labels(self, labels: Sequence[str] | None) -> None:
        fitted = getattr(self, "feature_names_in_", None)
        if labels is None or fitted is None or len(labels) != len(fitted):
            return
        for place, (one, other) in enumerate(zip(fitted, labels, strict=True)):
            if one != other:
                got = f"{other!r} instead of {one!r} in place {place}"
                raise ParameterError("S", "must name the fitted items in the fitted order", got)

    def _check_n_columns(self, S: Any) -> None:
        if isinstance(S, Similarity):
            n_columns = S.n_items
        else:
            try:
                shape = S.shape if hasattr(S, "shape") else np.shape(S)
            except ValueError:
                raise ParameterError("S", "must have rows of one length", "lists of different lengths") from None
            n_columns = shape[-1] if shape else 0
        if n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {n_columns} features, but SRF is expecting {self.n_features_in_} features as input: one "
                "similarity to each fitted item."
            )

    def _resolve_alpha(
        self, problem: solvers.Problem, start: NDArray, rng: np.random.RandomState
    ) -> tuple[float, NDArray]:
        """The penalty, and the embedding found where it was chosen."""
        if not isinstance(self.alpha, str):
            return float(self.alpha), start
        return path.choose_alpha(problem, start, self.l1_ratio, self._step, rng)

    def _solve(
        self, problems: Sequence[solvers.Problem], starts: Sequence[NDArray], alpha: float
    ) -> list[solvers.Solution]:
        """Fit problems, which include their penalty, with the current parameters; on a device all at once."""
        if isinstance(self.init, str):
            starts = path.approach(problems, starts, alpha, self._step)
        return self._finish(problems, starts)

    def _finish(self, problems: Sequence[solvers.Problem], starts: Sequence[NDArray]) -> list[solvers.Solution]:
        """Fit problems from the given starts."""
        report = self._report if self.verbose else None
        how: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "report": report}
        if self.device != "cpu":
            return solvers.solve_on(self.device, problems, starts, **how)
        solver = self._resolved_solver()
        how |= {"solver": solver, "inner_iter": self.inner_iter, "rho": self.rho}
        return [
            solvers.solve(problem, start, bounds=self._resolve_bounds(problem, solver), **how)
            for problem, start in zip(problems, starts, strict=True)
        ]

    def _step(self, problems: Sequence[solvers.Problem], starts: Sequence[NDArray]) -> list[NDArray]:
        """Fit problems with the accuracy of a step on a path of penalties."""
        max_iter, tol = min(self.max_iter, path.STEP_SWEEPS), max(self.tol, path.STEP_TOL)
        if self.device != "cpu":
            found = solvers.solve_on(self.device, problems, starts, max_iter=max_iter, tol=tol)
        else:
            pairs = zip(problems, starts, strict=True)
            found = [solvers.solve(problem, start, max_iter=max_iter, tol=tol) for problem, start in pairs]
        return [solution.W for solution in found]

    def _resolved_solver(self) -> str:
        if self.device != "cpu":
            return "torch"
        return "bcd" if self.solver == "auto" else self.solver

    def _start(self, problem: solvers.Problem, rng: np.random.RandomState) -> NDArray[np.floating]:
        if isinstance(self.init, Similarity):
            rule = "must be 'random', 'spectral' or an array of loadings"
            raise ParameterTypeError("init", rule, "a Similarity")
        if not isinstance(self.init, str):
            return solvers.given_start(self.init, (problem.n_items, self.n_components), problem.dtype)
        start = solvers.random_start if self.init == "random" else solvers.spectral_start
        return start(problem, self.n_components, rng)

    def _resolve_bounds(self, problem: solvers.Problem, solver: str) -> tuple[float, float] | None:
        bounds = self.bounds
        if isinstance(bounds, str):
            require_choice("bounds", bounds, ("auto", "data"))
            if bounds == "auto" and not (solver == "admm" and solvers.has_missing(problem)):
                return None
            resolved = solvers.observed_range(problem)
        elif bounds is None:
            return None
        else:
            resolved = as_range(bounds)
        if solver == "bcd" and not solvers.can_fill(problem):
            rule = "must be None unless {solver=admm}, or S is dense and misses pairs, whose predictions are bounded"
            raise ParameterError("bounds", rule, f"{bounds!r} with solver='bcd'")
        return resolved

    def _report(self, iteration: int, objective: float) -> None:
        if not logger.hasHandlers():  # verbose, but no handler shows it
            logger.addHandler(logging.StreamHandler())
        if not logger.isEnabledFor(logging.INFO):
            logger.setLevel(logging.INFO)
        logger.info("iteration %d: objective %.6g", iteration, objective)

    def _warn_of_slow_convergence(self) -> None:
        gained = 1 - self.history_[-1] / self.history_[max(0, self.n_iter_ - 10)] if self.history_[0] > 0 else 0.0
        warn(
            f"SRF did not converge in max_iter={self.max_iter} iterations: the last "
            f"{min(10, self.n_iter_)} changed the objective by {gained:.2g} of it (tol={float(self.tol):g}, KKT "
            f"residual {self.kkt_residual_:.2g}).",
            "Raise {max_iter}, or raise {tol} if that is precise enough.",
            UnconvergedWarning,
        )


def solve_many(
    estimator: SRF, problems: Sequence[solvers.Problem], rank: int, seeds: Sequence[int]
) -> list[solvers.Solution]:
    """Fit problems with the settings of `estimator`, each from its seed; shared by all functions that fit repeatedly.

    On a device they are fitted together, and must be of one kind and size.
    """
    model = clone(estimator).set_params(n_components=rank)
    distinct = {id(problem): problem for problem in problems}  # identical objects are stored on a device once
    penalised = {key: solvers.penalised(one, model.alpha, model.l1_ratio) for key, one in distinct.items()}
    starts = [model._start(problem, generator_of(seed)) for problem, seed in zip(problems, seeds, strict=True)]
    return model._solve([penalised[id(problem)] for problem in problems], starts, model.alpha)


def on_devices(estimator: SRF, n_jobs: int | None) -> list[SRF]:
    """The settings for each device that fits are divided among: with "cuda", as many GPUs as `n_jobs`."""
    devices = solvers.devices_for(estimator.device, workers_here(n_jobs))
    return [clone(estimator).set_params(device=device) for device in devices]


def remember_labels(estimator: Any, labels: Sequence[str] | None) -> None:
    """Set or remove the attribute that scikit-learn compares with the names of columns."""
    if labels is not None:
        estimator.feature_names_in_ = np.array(labels, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def settle_alpha(estimator: SRF, matrix: Arrays, rank: int, seed: int, work: Work, record: dict[str, Any]) -> float:
    """The penalty for fits at a rank: that of `estimator`, that of the record in the checkpoint, or one chosen now."""
    if not isinstance(estimator.alpha, str):
        return float(estimator.alpha)
    model, rng = clone(estimator).set_params(n_components=rank), generator_of(seed)

    def choose() -> dict[str, float]:
        with _threads.one_blas_thread():
            problem = problem_of(matrix)
            return {"alpha": model._resolve_alpha(problem, model._start(problem, rng), rng)[0]}

    return float(work.remembered(record, choose)["alpha"])


def settings_of(estimator: SRF) -> dict[str, str]:
    """The parameters that checkpoints must agree on, except those set for each fit, and a penalty of zero."""
    parameters = estimator.get_params()
    left_out = {"n_components", "random_state", "verbose"}
    if estimator.alpha == 0.0:  # as in checkpoints of versions without a penalty
        left_out |= {"alpha", "l1_ratio"}
    numbers = {name: float(parameters[name]) for name in ("alpha", "l1_ratio") if not isinstance(parameters[name], str)}
    return {name: repr(value) for name, value in {**parameters, **numbers}.items() if name not in left_out}


def with_alpha(estimator: SRF | None, alpha: Any, default: float | str, fallback: SRF) -> SRF:
    """The settings of fits: those of an estimator, including its penalty, or `fallback` with the given penalty."""
    check_alpha(alpha)
    if estimator is None:
        return fallback.set_params(alpha=alpha)
    if alpha != default:
        raise ParameterError("alpha", "cannot be given beside an {estimator}, whose own alpha is used", shown(alpha))
    return estimator


def check_alpha(alpha: Any) -> None:
    """Refuse invalid penalties."""
    if isinstance(alpha, str):
        if alpha != "auto":
            raise ParameterError("alpha", "must be a number or 'auto'", shown(alpha))
    else:
        require_number("alpha", alpha, "at least 0")


def warn_of_underdetermined(problem: solvers.Problem, W: NDArray[np.floating], labels: Sequence[str] | None) -> None:
    """Warn of loadings that the observed pairs do not determine, with their numbers."""
    said = undetermined_words(solvers.determinacy(problem, W), W.shape[1], labels)
    if said:
        # Similarities that are all the same have no penalty.
        could_be_penalised = not any(problem.penalty) and solvers.noise_scale(problem)[0] > 0
        warn(" ".join(said), undetermined_remedy(could_be_penalised))


def undetermined_words(
    found: solvers.Determinacy, n_components: int, labels: Sequence[str] | None, unknowns: str = "loadings"
) -> list[str]:
    """Sentences on loadings that the observed pairs do not determine, with their numbers."""
    n_short, n_excessive = found.short.size, found.excessive.size
    said = []
    if found.n_values < found.n_free:
        said.append(
            f"The fit is underdetermined: {found.n_free:,} {unknowns} from {found.n_values:,} observed similarities. "
            "In-sample figures say nothing about other pairs."
        )
    if n_short:
        listed = [f"{name_of(i, labels)} ({count})" for i, count in zip(found.short, found.counts, strict=True)]
        said.append(
            f"{n_short:,} {'item has' if n_short == 1 else 'items have'} fewer observed similarities than the "
            f"{n_components} dimensions: {shortlist(listed)}. "
            f"The data do not determine {'its' if n_short == 1 else 'their'} loadings."
        )
    if n_excessive:
        order = np.argsort(-found.excess, kind="stable")
        listed = [f"{name_of(found.excessive[at], labels)} ({found.excess[at]:.0f} times)" for at in order]
        said.append(
            f"For {n_excessive:,} {plural('item', n_excessive)} without an observed self-similarity the predicted one "
            f"is more than three times the largest observed similarity, {found.largest:.3g}: {shortlist(listed)}. "
            f"Predictions for {'its' if n_excessive == 1 else 'their'} unobserved pairs are not reliable."
        )
    if found.capped.size:
        n_capped, limit = found.capped.size, found.limit
        listed = [name_of(i, labels) for i in found.capped]
        said.append(
            f"Loadings of {n_capped:,} {plural('item', n_capped)} are at their limit of {limit:.3g}, ten times the "
            f"root of the largest similarity: {shortlist(listed)}."
        )
    return said


def undetermined_remedy(could_be_penalised: bool) -> str:
    """What to do about loadings that the observed pairs do not determine."""
    penalise = "Penalise the loadings ({alpha=auto}). " if could_be_penalised else ""
    return penalise + "Use fewer dimensions, or observe more pairs or the diagonal."


def warn_of_nothing_left(W: NDArray[np.floating], alpha: float, squares: float) -> None:
    """Warn if the penalty leaves nothing of similarities with this sum of squares.

    A ridge penalty shrinks loadings to zero by a factor per sweep, and a fit may stop before they underflow.
    """
    if alpha > 0 and float(np.vdot(W, W)) <= _NOTHING * np.sqrt(squares):
        found = f"All loadings are zero: the penalty, alpha = {alpha:.3g}, is stronger than the similarities."
        remedy = "Lower {alpha}, or choose it from the data with {alpha=auto}."
        warn(found, f"{remedy} If it was chosen so, no dimensions help to predict held-out pairs.")


def _known_values(similarity: Similarity) -> NDArray[np.floating] | sparse.csr_array:
    """The matrix of a Similarity for transform, which gives all known pairs equal weight."""
    if similarity.factors is not None:
        _require_square(similarity.factors, "The similarities that the factors stand for")
        return similarity.factors @ similarity.factors.T
    if similarity.weights is None or sparse.issparse(similarity.values):
        return similarity.values
    positive = similarity.weights[similarity.weights > 0]
    if positive.size and positive.min() != positive.max():
        rule = "must have weights of one size, or zero, for transform"
        raise ParameterError("S", rule, f"{positive.min():g} to {positive.max():g}")
    return np.where(similarity.weights > 0, similarity.values, np.nan)


def _require_square(rows: NDArray[np.floating], what: str) -> None:
    n = len(rows)
    ways_out = "take a block of rows at a time, W[rows] @ W.T, or float32"
    _memory.require(n * n * rows.dtype.itemsize, f"{what}, {n} x {n},", ways_out)
