"""JointSRF, the estimator for several systems: one embedding, and each system's weights on its dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from simdims import _threads, solvers
from simdims._journal import Work, fingerprint
from simdims._parallel import generator_of
from simdims._parameters import (
    ParameterError,
    ParameterTypeError,
    is_whole,
    plural,
    require_choice,
    require_components,
    require_count,
    require_device,
    require_number,
    require_real,
    shortlist,
    shown,
    warn,
)
from simdims.metrics.variance import share_explained
from simdims.similarity.arrays import arrays_of, problem_of
from simdims.srf import (
    SRF,
    UnconvergedWarning,
    check_alpha,
    remember_labels,
    undetermined_remedy,
    undetermined_words,
    warn_of_nothing_left,
)
from simdims.systems import SimilaritySet, usual_scale, warn_of_scales

if TYPE_CHECKING:
    import pandas as pd


class JointSRF(BaseEstimator):
    """Dimensions of several systems at once: S_m ~ W diag(a_m) W^T with W >= 0 and weights a_m >= 0.

    All systems (people, brain regions, models, moments) share the dimensions W, and each weights them differently: a_mk
    is the weight of dimension k in system m, as in INDSCAL but with non-negative dimensions and missing pairs. The mean
    weight of each dimension is 1, so W is in the units of the average similarities, a weight of 1 is average, and a
    weight of 0 means that the system does not have the dimension. Minimises

        sum_m 1/2 sum_ij Omega_mij (S_mij - sum_k a_mk w_ik w_jk)^2 + penalty(W) + mu/2 sum_mk (a_mk - 1)^2

    under a_mk >= 0 and sum_m a_mk = M. With one system the weights are 1, and the fit is that of SRF.

    Parameters
    ----------
    n_components : int, default=10
        Number of dimensions, between 1 and the number of items.
    alpha : float or "auto", default="auto"
        Penalty on the loadings W, as in SRF. Its scale is the edge of the spectrum of shuffled similarities; over
        systems, edges add up in squares. "auto" chooses it by pairs held out within every system.
    shrinkage : float or "auto", default="auto"
        Strength of the penalty that pulls weights towards 1: mu = shrinkage * sum Omega S^2 / (M n_components). With 0
        the weights are free, 1 has about as much influence as the pairs of one system, and infinity gives all systems
        the same weights: the fit to their average. "auto" chooses it by held-out pairs, and takes infinity if weights
        do not help to predict them.
    l1_ratio : float, default=0.0
        Share of the l1 part of the penalty (a sum of loadings) as opposed to the ridge part (their squares); 0 to 1.
    init : "random" or array of shape (n_items, n_components), default="random"
        Initial W. Weights start at 1.
    max_iter : int, default=500
        Maximum number of sweeps over the items and the weights.
    tol : float, default=1e-4
        The fit stops when ten sweeps lower the objective by less than this fraction.
    device : {"cpu", "cuda", "cuda:0", ..., "mps", "torch-cpu"}, default="cpu"
        Where to compute. All except "cpu" need PyTorch (``pip install "simdims[gpu]"``) and compute in float32, with
        each system as a matrix in device memory. "auto" penalties are chosen on the CPU.
    random_state : int, RandomState or None, default=None
        Seed of the start and of the held-out pairs.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_items, n_components)
        W, with the dimensions sorted by their share of the average reconstruction, the largest first.
    weights_ : ndarray of shape (n_systems, n_components)
        a, in the order of `names_`; each column has mean 1.
    names_ : tuple of str
        The systems.
    alpha_, shrinkage_ : float
        The values that were used.
    objective_ : float
        The minimum found, penalties included.
    data_objective_ : float
        Its part that depends on the similarities.
    history_ : ndarray of shape (n_iter_ + 1,)
        The objective at the start and after each sweep. It never increases by more than rounding error, which is 2e-6
        of it on a PyTorch device.
    n_iter_ : int
        Number of sweeps.
    converged_ : bool
        Whether `tol` was met within `max_iter`.
    kkt_residual_ : float
        The larger of two norms of projected gradients, in W and in the weights, each relative to the norm of its data
        part; 0 at a KKT point.
    solver_ : str
        "bcd", or "torch" on a PyTorch device.
    n_features_in_ : int
        Number of items.
    feature_names_in_ : ndarray of str
        The labels of the items, if they have any.

    References
    ----------
    Carroll, J. D. and Chang, J.-J. (1970). Analysis of individual differences in multidimensional scaling via an n-way
    generalization of "Eckart-Young" decomposition. Psychometrika 35, 283-319.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import JointSRF, simulate
    >>> W = simulate.dirichlet(40, 3, random_state=0)
    >>> a = np.array([[2.0, 1.0, 0.5], [0.0, 1.0, 1.5]])
    >>> joint = JointSRF(3, random_state=0).fit(np.stack([(W * a_m) @ W.T for a_m in a]))
    >>> np.sort(joint.weights_.round(1), axis=1)
    array([[0.5, 1. , 2. ],
           [0. , 1. , 1.5]])
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        alpha: float | str = "auto",
        shrinkage: float | str = "auto",
        l1_ratio: float = 0.0,
        init: str | ArrayLike = "random",
        max_iter: int = 500,
        tol: float = 1e-4,
        device: str = "cpu",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.shrinkage = shrinkage
        self.l1_ratio = l1_ratio
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.device = device
        self.random_state = random_state

    def fit(self, S: Any, y: None = None) -> JointSRF:
        """Fit dimensions and weights to the similarities of several systems.

        Parameters
        ----------
        S : SimilaritySet, or list, mapping or array of shape (n_systems, n_items, n_items)
            The similarities.
        y : None
            Ignored; present by scikit-learn convention.

        Returns
        -------
        JointSRF
            The estimator itself.

        Warns
        -----
        ConvergenceWarning
            If `tol` was not met within `max_iter`.
        UserWarning
            If the observed pairs do not determine the loadings, as in SRF, or, without shrinkage, the weights of
            systems with fewer pairs than dimensions; or if the penalty is so strong that all loadings are zero.
        """
        self._check_parameters()
        systems = as_systems(S)
        require_components(self.n_components, systems.n_items)
        self._remember(systems)
        if systems.n_systems == 1 and len(systems.positions[0]) == systems.n_items:
            return self._fit_one(systems)
        problem = problem_of_set(systems)
        rng = generator_of(self.random_state)
        start = self._start(problem, rng)
        alpha, shrinkage = (None if isinstance(given, str) else float(given) for given in (self.alpha, self.shrinkage))
        self.alpha_, self.shrinkage_ = solvers.choose_jointly(problem, start, alpha, shrinkage, self.l1_ratio, rng)
        problem = self._penalised(problem)
        if isinstance(self.init, str):
            start = solvers.approach_jointly(problem, start, self.alpha_, self.device)
        limits: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "device": self.device}
        solution = solvers.solve_jointly(problem, start, **limits)
        order = np.argsort(-np.square(solution.W).sum(axis=0), kind="stable")
        self.embedding_, self.weights_ = solution.W[:, order], solution.weights[:, order]
        self.n_iter_, self.converged_ = solution.n_iter, solution.converged
        self.objective_, self.data_objective_ = solution.objective, solution.data_objective
        self.history_, self.kkt_residual_ = solution.history, solution.kkt_residual
        self.solver_ = "bcd" if self.device == "cpu" else "torch"
        self._mu = problem.mu * problem.scale
        if not self.converged_:
            warn(
                f"JointSRF did not converge in max_iter={self.max_iter} sweeps (tol={self.tol:g}, KKT residual "
                f"{self.kkt_residual_:.2g}).",
                "Raise {max_iter}, or raise {tol} if that is precise enough.",
                UnconvergedWarning,
            )
        warn_of_underdetermined_jointly(problem, self.embedding_, self.shrinkage_, systems.names, systems.labels)
        warn_of_nothing_left(self.embedding_, self.alpha_, problem.squares)
        return self

    def weights_for(self, S: Any) -> NDArray[np.float64]:
        """Compute the weights of new systems with the dimensions held fixed.

        Each system's weights minimise its own part of the objective, with the same shrinkage towards 1 as in the fit;
        the mean over new systems is not constrained.

        Parameters
        ----------
        S : similarities of one system, as `as_similarity` takes them, or a SimilaritySet
            Its items must be among the fitted ones, matched by label, or all of them in the same order if unlabelled.

        Returns
        -------
        ndarray of shape (n_components,), or (n_systems, n_components) for a SimilaritySet

        Warns
        -----
        UserWarning
            If a system seems to be on another scale than the fitted ones.

        Examples
        --------
        >>> import numpy as np
        >>> from simdims import JointSRF, simulate
        >>> W = simulate.dirichlet(40, 2, random_state=0)
        >>> systems = np.stack([(W * a) @ W.T for a in ([1.5, 0.5], [0.5, 1.5])])
        >>> joint = JointSRF(2, alpha=0.0, shrinkage=0.0, random_state=0).fit(systems)
        >>> joint.weights_for(W @ W.T).round(2)
        array([1., 1.])
        """
        check_is_fitted(self)
        systems = S if isinstance(S, SimilaritySet) else SimilaritySet.of_new(S)
        warn_of_scales(systems, self._scale, " of the fitted ones")
        problem = problem_of_set(systems, self._places(systems), self.n_features_in_)
        found = solvers.weights_of(replace(problem, mu=self._mu / problem.scale), self.embedding_)
        return found if isinstance(S, SimilaritySet) else found[0]

    def reconstruct(self, system: int | str) -> NDArray[np.float64]:
        """Predict the similarities of a fitted system, W diag(a_m) W^T, for every pair.

        Parameters
        ----------
        system : int or str
            Its position or name.

        Returns
        -------
        ndarray of shape (n_items, n_items)
        """
        check_is_fitted(self)
        return (self.embedding_ * self.weights_[self._number(system)]) @ self.embedding_.T

    def score(self, S: Any, y: None = None) -> NDArray[np.float64]:
        """Share of the variance of each system's similarities that the model explains (R2).

        Parameters
        ----------
        S : SimilaritySet, or anything that can be converted to one
            Systems of the fit, matched by name: the fitted similarities, or held-out pairs.
        y : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_systems,)
            R2 over the observed pairs of two different items; see `simdims.metrics.explained_variance`. NaN for a
            system whose similarities do not vary, such as one with a single pair.
        """
        check_is_fitted(self)
        systems = as_systems(S)
        unknown = [repr(name) for name in systems.names if name not in self.names_]
        if unknown:
            rule = "must hold systems of the fit"
            raise ParameterError("S", rule, shortlist(unknown), "see weights_for() for the weights of others")
        scores = []
        for name, similarity, at in zip(systems.names, systems, self._places(systems), strict=True):
            a = self.weights_[self._number(name)]
            scores.append(share_explained(similarity, self.embedding_[at] * np.sqrt(a)))
        return np.array(scores)

    def embedding_frame(self) -> pd.DataFrame:
        """Return the embedding with a row per item and a named column per dimension."""
        import pandas as pd

        check_is_fitted(self)
        items = getattr(self, "feature_names_in_", None)
        return pd.DataFrame(self.embedding_, index=items, columns=self._dimensions())

    def weights_frame(self) -> pd.DataFrame:
        """Return the weights with a row per system and a named column per dimension."""
        import pandas as pd

        check_is_fitted(self)
        return pd.DataFrame(self.weights_, index=list(self.names_), columns=self._dimensions())

    def _dimensions(self) -> list[str]:
        return [f"dimension{k + 1}" for k in range(self.embedding_.shape[1])]

    def _number(self, system: int | str) -> int:
        if isinstance(system, str):
            if system not in self.names_:
                raise KeyError(f"no system is called {system!r}: there are {shortlist(list(map(repr, self.names_)))}")
            return self.names_.index(system)
        n = len(self.names_)
        if not is_whole(system):
            raise ParameterTypeError("system", "must be the place or the name of a system", shown(system))
        if not -n <= system < n:
            raise IndexError(f"system {system} does not exist: there are {n}")
        return int(system) % n

    def _check_parameters(self) -> None:
        require_count("n_components", self.n_components)
        require_count("max_iter", self.max_iter, at_most=10**7)
        require_number("tol", self.tol, "at least 0")
        require_device(self.device)
        check_alpha(self.alpha)
        if isinstance(self.shrinkage, str):
            if self.shrinkage != "auto":
                raise ParameterError("shrinkage", "must be a number or 'auto'", shown(self.shrinkage))
        else:
            require_real("shrinkage", self.shrinkage)
            if not self.shrinkage >= 0:
                raise ParameterError("shrinkage", "must be at least 0", shown(self.shrinkage))
        require_number("l1_ratio", self.l1_ratio, "at least 0")
        if self.l1_ratio > 1:
            raise ParameterError("l1_ratio", "must be between 0 and 1", shown(self.l1_ratio))
        if isinstance(self.init, str):
            require_choice("init", self.init, ("random",))

    def _remember(self, systems: SimilaritySet) -> None:
        self.names_, self.info_ = systems.names, systems.info
        self.n_features_in_, self._scale = systems.n_items, usual_scale(systems)
        remember_labels(self, systems.labels)

    def _fit_one(self, systems: SimilaritySet) -> JointSRF:
        """One system: its weights are 1, and the fit is that of SRF."""
        names = ("alpha", "l1_ratio", "init", "max_iter", "tol", "device", "random_state")
        given = {name: getattr(self, name) for name in names}
        fitted = SRF(self.n_components, **given).fit(systems[0])
        self.embedding_, self.weights_ = fitted.embedding_, np.ones((1, self.n_components))
        self.alpha_, self.shrinkage_ = fitted.alpha_, np.inf if isinstance(self.shrinkage, str) else self.shrinkage
        for name in ("n_iter_", "converged_", "objective_", "data_objective_", "history_", "kkt_residual_", "solver_"):
            setattr(self, name, getattr(fitted, name))
        problem = self._penalised(problem_of_set(systems))
        self._mu = problem.mu * problem.scale
        return self

    def _penalised(self, problem: solvers.JointProblem) -> solvers.JointProblem:
        return solvers.penalised_jointly(problem, self.n_components, self.alpha_, self.l1_ratio, self.shrinkage_)

    def _start(self, problem: solvers.JointProblem, rng: np.random.RandomState) -> NDArray[np.float64]:
        if isinstance(self.init, str):
            return solvers.joint_start(problem, self.n_components, rng)
        return solvers.given_start(self.init, (problem.n_items, self.n_components), np.float64, "'random'")

    def _places(self, systems: SimilaritySet) -> list[NDArray[np.intp]]:
        """The positions of each system's items among the fitted ones."""
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is None or systems.labels is None:
            if systems.n_items != self.n_features_in_:
                rule = f"must have the {self.n_features_in_} fitted items, or their labels"
                raise ParameterError("S", rule, f"{systems.n_items} items")
            return list(systems.positions)
        place = {label: at for at, label in enumerate(fitted)}
        unknown = [repr(label) for label in systems.labels if label not in place]
        if unknown:
            raise ParameterError("S", "must have items of the fit", shortlist(unknown))
        among = np.array([place[label] for label in systems.labels])
        return [among[at] for at in systems.positions]


def warn_of_underdetermined_jointly(
    problem: solvers.JointProblem,
    W: NDArray[np.floating],
    shrinkage: float,
    names: Sequence[str],
    labels: Sequence[str] | None,
) -> None:
    """Warn of loadings and weights that the observed pairs do not determine, with their numbers."""
    rank = W.shape[1]
    n_weights = 0 if np.isinf(shrinkage) or problem.n_systems == 1 else problem.n_systems * rank
    unknowns = "loadings and weights" if n_weights else "loadings"
    said = undetermined_words(solvers.determinacy_jointly(problem, W, n_weights), rank, labels, unknowns)
    could_be_penalised = not any(problem.penalty) and problem.noise[0] > 0
    remedies = [undetermined_remedy(could_be_penalised)] if said else []
    counts = solvers.pairs_per_system(problem)
    few = [f"{name} ({count})" for name, count in zip(names, counts, strict=True) if count < rank]
    if few and n_weights and shrinkage == 0:
        said.append(
            f"Fewer observed pairs than the {rank} dimensions in {len(few)} {plural('system', len(few))}: "
            f"{shortlist(few)}. The data do not determine their weights."
        )
        remedies.append("Use {shrinkage=auto} or leave these systems out.")
    if said:
        warn(" ".join(said), " ".join(remedies))


def joint_settings(
    estimator: Any, alpha: Any, default: float | str, fallback: JointSRF, device: str, reason: str
) -> JointSRF:
    """The checked settings of many joint fits: those of an estimator, including its penalty, or `fallback`.

    `default` is the alpha used if none is given, and `reason` says why the start must be random.
    """
    check_alpha(alpha)
    if estimator is None:
        model = fallback.set_params(alpha=alpha, device=device)
    elif not isinstance(estimator, JointSRF):
        raise ParameterTypeError("estimator", "must be a JointSRF for a SimilaritySet", shown(estimator))
    elif alpha != default:
        raise ParameterError("alpha", "cannot be given beside an {estimator}, whose own alpha is used", shown(alpha))
    elif device not in ("cpu", estimator.device):
        raise ParameterError("device", f"must be that of the estimator, {estimator.device!r}", shown(device))
    else:
        model = clone(estimator)
    if not isinstance(model.init, str):
        raise ParameterError("estimator", f"must have init='random', {reason}", "one with an array")
    model._check_parameters()
    return model


def fit_from_seed(model: JointSRF, problem: solvers.JointProblem, rank: int, seed: int) -> solvers.JointSolution:
    """Fit a problem with its penalties from a random start, with the other settings of `model`."""
    start = solvers.joint_start(problem, rank, generator_of(seed))
    start = solvers.approach_jointly(problem, start, float(model.alpha), model.device)
    return solvers.solve_jointly(problem, start, max_iter=model.max_iter, tol=model.tol, device=model.device)


def settle_penalties(
    problem: solvers.JointProblem,
    model: JointSRF,
    rank: int,
    seed: int,
    work: Work,
    record: dict[str, Any],
    shrinkage: float | None = None,
) -> tuple[float, float]:
    """The penalty and the shrinkage at a rank: those of the record in the checkpoint, given, or chosen now."""

    def choose() -> dict[str, Any]:
        rng = generator_of(seed)
        alpha, own = (None if isinstance(one, str) else float(one) for one in (model.alpha, model.shrinkage))
        known = own if shrinkage is None else shrinkage
        with _threads.one_blas_thread():
            start = solvers.joint_start(problem, rank, rng)
            alpha, known = solvers.choose_jointly(problem, start, alpha, known, model.l1_ratio, rng)
        return {"alpha": alpha, "shrinkage": repr(float(known))}

    found = work.remembered(record, choose)
    return float(found["alpha"]), float(found["shrinkage"])


def as_systems(S: Any) -> SimilaritySet:
    """A SimilaritySet, or one made from `S`."""
    return S if isinstance(S, SimilaritySet) else SimilaritySet(S)


def problem_of_set(
    systems: SimilaritySet, places: list[NDArray[np.intp]] | None = None, n_items: int | None = None
) -> solvers.JointProblem:
    """The problem of a joint fit of a set, with its items at `places` among `n_items`."""
    problems = [problem_of(arrays_of(one)) for one in systems]
    return solvers.joint_problem(problems, places or systems.positions, n_items or systems.n_items)


def fingerprint_of(problem: solvers.JointProblem) -> str:
    """A text that changes with the similarities or weights of the systems."""
    own = (problem.zeros, problem.diagonal, problem.diagonal_weights, problem.scale)
    return fingerprint(*problem.listed, *own, np.array(list(problem.dense)), *problem.dense.values())
