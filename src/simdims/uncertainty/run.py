"""bootstrap: resample systems, items or pairs, fit each resample, and summarise how much the dimensions vary."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from simdims import _memory, _parallel, _threads, solvers
from simdims._journal import Journal, Work, fingerprint, working
from simdims._parameters import (
    ParameterError,
    ParameterTypeError,
    require_between,
    require_choice,
    require_components,
    require_count,
    shown,
    warn,
)
from simdims._progress import Callback
from simdims.joint import JointSRF, fingerprint_of, joint_settings, problem_of_set
from simdims.selection import select_rank
from simdims.selection.crossvalidation import default_estimator
from simdims.selection.systems import joint_fold_estimator
from simdims.similarity import Similarity, as_similarity
from simdims.similarity.ownership import frozen
from simdims.solvers.joint_resampling import variance_explained_jointly
from simdims.srf import SRF
from simdims.systems import SimilaritySet, dense_parts
from simdims.uncertainty.fits import (
    TOL,
    Reference,
    Resample,
    draw_systems,
    draw_weights,
    fit_resample,
    mean_of_known,
)
from simdims.uncertainty.result import SAME, Bootstrap, cosines

#: First word of the name of the tasks that select ranks, which determines their seeds.
_RANKS = 1

#: As in fits from many starts.
_MAX_ITER = 2000

#: With fewer resamples, the limits of 95% intervals are close to the smallest and largest resampled values.
_FEW_RESAMPLES = 100

#: Fewer systems or items than this cannot be resampled.
_FEWEST = 4


class Source(NamedTuple):
    """The data to resample, and the fit to start from, if any.

    `penalties` (alpha, l1_ratio, shrinkage) are those asked for, to which the selection of ranks applies.
    """

    systems: SimilaritySet
    model: JointSRF
    penalties: tuple[float | str, float, float | str]
    W: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    dimension_names: tuple[str, ...] = ()


def bootstrap(
    found: Any,
    over: str = "systems",
    *,
    n_components: int | None = None,
    n_resamples: int = 200,
    threshold: float = 0.8,
    ranks: Iterable[int] | None = None,
    estimator: JointSRF | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> Bootstrap:
    """Estimate how much dimensions would vary with other systems, items or pairs.

    Draws systems (people, brains, models), items or pairs with replacement, fits each resample with the penalties of
    the reference, and matches its dimensions with those of the reference. The results are intervals for loadings,
    shares, weights and R2, and the share of resamples in which each dimension came back.

    Parameters
    ----------
    found : Discovery, SimilaritySet, or Similarity or anything `as_similarity` takes
        A result, whose dimensions are the reference; or similarities, to which the reference is fitted first.
    over : {"systems", "items", "pairs"}, default="systems"
        What is drawn. "systems" shows whether other people of the same population would have these dimensions;
        "items" whether other items would yield them; "pairs" how much they depend on noise in single similarities.
    n_components : int, optional
        Number of dimensions; required with similarities, unless `estimator` has it.
    n_resamples : int, default=200
        Number of resamples, at least 20.
    threshold : float, default=0.8
        The correlation over items from which a dimension of a resample matches one of the reference. Dimensions below
        it count as not found, and are excluded from the intervals.
    ranks : iterable of int, optional
        Candidates for the number of dimensions. If given, `select_rank` chooses among them in each resample, with the
        penalty of the result or estimator ("auto" is chosen again), which takes much longer.
    estimator : JointSRF, optional
        The settings of the fits to similarities; by default ``JointSRF(max_iter=2000)``, which chooses both penalties
        by held-out pairs, once.
    checkpoint : path, optional
        A folder for finished resamples. An interrupted call resumes from there if it is repeated with the same data and
        settings, and a larger `n_resamples` adds resamples.
    random_state : int, RandomState or None, default=None
        Seed of the reference and of all resamples; None draws one, or takes that of the checkpoint.
    n_jobs : int, optional
        Number of processes, as in joblib. Results do not depend on it.
    progress : bool or callable, optional
        Whether to show a progress bar; None shows one in terminals and notebooks. A function is called with a
        `Progress` after each resample.

    Returns
    -------
    Bootstrap

    Warns
    -----
    UserWarning
        If there are fewer than 100 resamples, or if the dimensions of a result change while its fit converges further.

    Notes
    -----
    Each resample is fitted twice, from the reference and from a random start, and the fit with the lower objective is
    kept.

    Systems: loadings are kept on the scale of the reference, on which the mean weight of each dimension over all
    systems is 1. All systems, drawn or not, get weights for the dimensions of the resample, from resampled pairs of
    their own, because resampling people does not capture noise in the similarities of one person. This assumes that the
    errors of different pairs are independent. Items without a pair in any drawn system are placed by the pairs of the
    other systems; intervals of items that few systems have are too short.

    Items: two copies of an item do not form a pair. Items that were not drawn are placed by their similarities with the
    others.

    Intervals are percentiles of the resampled values with tails widened for the number of units n, to the normal
    probabilities of t_(n-1) sqrt(n / (n-1)). Intervals of loadings and weights at zero are not calibrated; `at_zero`
    marks them.

    References
    ----------
    T. C. Hesterberg (2015), What teachers should know about the bootstrap, The American Statistician 69; B. Efron
    (1981), Nonparametric standard errors and confidence intervals, Canadian Journal of Statistics 9.

    Examples
    --------
    >>> import numpy as np
    >>> from simdims import SimilaritySet, bootstrap, simulate
    >>> rng = np.random.default_rng(0)
    >>> W = simulate.dirichlet(20, 2, random_state=0)
    >>> people = [(W * a) @ W.T + 0.1 + rng.normal(0, 0.01, (20, 20)) for a in rng.uniform(0.5, 1.5, (8, 2))]
    >>> people = SimilaritySet([(S + S.T) / 2 for S in people])
    >>> sure = bootstrap(people, n_components=2, n_resamples=20, random_state=0)
    >>> sure.came_back
    array([1., 1.])
    >>> low, high = sure.interval("loadings")
    >>> bool(np.all(low <= high))
    True
    """
    require_choice("over", over, ("systems", "items", "pairs"))
    require_count("n_resamples", n_resamples, at_least=20)
    require_between("threshold", threshold, 0, 1)
    _parallel.check_n_jobs(n_jobs)
    if n_resamples < _FEW_RESAMPLES:
        warn(f"{n_resamples} resamples are too few for 95% intervals, which will be too short or absent.",
             f"Use {{n_resamples={2 * _FEW_RESAMPLES}}} or more.")  # fmt: skip
    source = _source(found, n_components, estimator)
    candidates = None if ranks is None else _candidates(ranks, source.systems.n_items)
    selection = None if ranks is None else _selection_estimator(source)
    _check_units(source.systems, over)
    described = partial(_settings, source, over, threshold, candidates)
    with working("bootstrap", described, checkpoint, random_state, n_jobs, progress) as work:
        assert work.seed is not None
        reference, model = _reference(source, threshold, n_resamples, work)
        fit = partial(_parallel.run_tasks, fit_resample, (reference, over, work.root), n_jobs=n_jobs)
        earlier = _earlier(work, reference, n_resamples)
        resamples: list[Resample] = work.collect("bootstrap", n_resamples, fit, earlier, _keep, "resample")
        drawn = (source.systems, over, candidates, selection, work.root)
        chosen = None if candidates is None else _select_all(drawn, n_resamples, work)
    return _result(source, reference, model, resamples, over, work.seed, chosen)


def _check_units(systems: SimilaritySet, over: str) -> None:
    """Refuse to draw from too few systems or items."""
    n_units, others = {
        "systems": (systems.n_systems, "use {over=items} or {over=pairs}"),
        "items": (systems.n_items, "use {over=pairs}"),
        "pairs": (_FEWEST, None),
    }[over]
    if n_units < _FEWEST:
        raise ParameterError("found", f"must hold at least {_FEWEST} {over} to resample them", f"{n_units}", others)


def _source(found: Any, n_components: int | None, estimator: JointSRF | None) -> Source:
    """The data to resample: those of a result with its fit, or similarities and settings."""
    if isinstance(found, SRF | JointSRF) or (hasattr(found, "embeddings") and not hasattr(found, "similarity")):
        remedy = "pass the similarities and {n_components}, or the result of discover"
        raise ParameterTypeError("found", "must hold similarities", type(found).__name__, remedy)
    consensus = getattr(found, "consensus", None)
    if consensus is None:
        systems = found if isinstance(found, SimilaritySet) else SimilaritySet([as_similarity(found)])
        model = joint_settings(estimator, "auto", "auto", _fallback(), "cpu", "as resamples have")
        if model.device != "cpu":
            raise ParameterError("estimator", "must have device='cpu'", f"{model.device!r}")
        if n_components is None and estimator is None:
            raise ParameterError("n_components", "must be given with similarities", "None")
        if n_components is not None:
            model.set_params(n_components=n_components)
        model._check_parameters()
        require_components(model.n_components, systems.n_items)
        return Source(systems, model, (model.alpha, model.l1_ratio, model.shrinkage))
    for name, given in (("n_components", n_components), ("estimator", estimator)):
        if given is not None:
            raise ParameterError(name, "must be None where found is a result, which has its own", shown(given))
    if found.settings.get("bounded"):
        remedy = "repeat discover without bounds, or pass the similarities and {n_components}"
        raise ParameterError("found", "must be a result without bounds", "one with bounds", remedy)
    data = found.similarity
    systems = data if isinstance(data, SimilaritySet) else SimilaritySet([data])
    weights = np.ones((1, consensus.n_components))
    if consensus.weights is not None:
        weights = consensus.weights[consensus.selected]
    settings = {"alpha": consensus.alpha, "l1_ratio": found.settings.get("l1_ratio", 0.0)}
    settings["shrinkage"] = np.inf if consensus.shrinkage is None else consensus.shrinkage
    model = _fallback().set_params(n_components=consensus.n_components, **settings)
    asked = found.settings  # without penalties in folders of earlier versions
    penalties = (asked.get("alpha", "auto"), settings["l1_ratio"], asked.get("shrinkage", "auto"))
    W = consensus.embedding.astype(np.float64)
    return Source(systems, model, penalties, W, np.array(weights, dtype=np.float64), consensus.dimension_names)


def _fallback() -> JointSRF:
    return JointSRF(max_iter=_MAX_ITER)


def _candidates(ranks: Iterable[int], n_items: int) -> list[int]:
    if isinstance(ranks, str):
        raise ParameterTypeError("ranks", "must be whole numbers", shown(ranks))
    try:
        candidates = sorted({*ranks})
    except TypeError:
        raise ParameterTypeError("ranks", "must be whole numbers", shown(ranks)) from None
    for rank in candidates:
        require_count("ranks", rank, at_most=n_items)
    if not candidates:
        raise ParameterError("ranks", "must hold at least one number", "none")
    return [int(rank) for rank in candidates]


def _reference(source: Source, threshold: float, n_resamples: int, work: Work) -> tuple[Reference, JointSRF]:
    """The fit that is resampled, with tighter convergence; its penalties are chosen once."""
    systems, model = source.systems, clone(source.model)
    n, n_systems, rank = systems.n_items, systems.n_systems, model.n_components
    size = n_resamples * (n + n_systems) * rank
    _memory.require(6 * 8 * size, f"{n_resamples} resamples of {n} x {rank} loadings", "ask for fewer resamples")
    problem = problem_of_set(systems)
    _memory.require(4 * 28 * problem.n_known, f"Lists of the {problem.n_known // 2} pairs", "resample fewer items")
    W, weights = source.W, source.weights
    kept = work.kept("reference")
    with _threads.one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of this fit, which is continued below
        if kept is not None:
            model.set_params(alpha=float(kept[0]), shrinkage=float(kept[1]))
            W, weights = kept[2:].reshape(-1, rank)[:n], kept[2:].reshape(-1, rank)[n:]
        elif W is None:
            fitted = clone(model).set_params(random_state=_parallel.seed_of(work.root, 0, 0)).fit(systems)
            model.set_params(alpha=fitted.alpha_, shrinkage=fitted.shrinkage_)
            W, weights = fitted.embedding_, fitted.weights_
        assert W is not None
        assert weights is not None
        if work.journal is not None and kept is None:
            work.journal.keep("reference", np.concatenate([[model.alpha, model.shrinkage], W.ravel(), weights.ravel()]))
        problem = solvers.penalised_jointly(problem, rank, model.alpha, model.l1_ratio, model.shrinkage)
        solution = solvers.solve_jointly(problem, W, weights, max_iter=model.max_iter, tol=TOL)
    if source.W is not None:
        _warn_of_changes(source.W, solution.W)
    order = np.argsort(-np.square(solution.W).sum(axis=0), kind="stable") if source.W is None else np.arange(rank)
    lists = solvers.as_lists(problem, np.arange(n)) if problem.zeros.any() else problem
    W, weights = (np.ascontiguousarray(part[:, order]) for part in (solution.W, solution.weights))
    return Reference(problem, lists, W, weights, float(model.alpha), int(model.max_iter), float(threshold)), model


def _warn_of_changes(W: NDArray[np.float64], reference: NDArray[np.float64]) -> None:
    """Warn if the dimensions of a result change when bcd continues its fit to a stricter tolerance."""
    found_again = cosines(W, reference)
    changed = np.flatnonzero(found_again < SAME)
    if len(changed):
        verb, first = "changes" if len(changed) == 1 else "change", changed[0]
        warn(
            f"The fit of this result has not converged: with a stricter tolerance, {len(changed)} of its {W.shape[1]} "
            f"dimensions {verb} (dimension {first + 1}: cosine {found_again[first]:.2f}). The intervals are of the "
            "changed dimensions.",
            "Repeat {discover()} with a penalty, with solver='auto', or with an estimator that has a smaller tol.",
        )


def _keep(journal: Journal, one: Resample) -> None:
    parts = [np.ravel(part) for part in (one.W, one.weights, one.shares, one.correlations)]
    journal.keep(f"resample-{one.number}", np.concatenate([*parts, [one.r2]]))
    journal.append({"kind": "resample", "number": one.number, "converged": one.converged})


def _earlier(work: Work, reference: Reference, n_resamples: int) -> dict[int, Resample]:
    """The resamples in the checkpoint, as `_keep` stored them."""
    found = {}
    n, rank = reference.W.shape
    ends = np.cumsum([n * rank, reference.weights.size, rank, rank])
    for record in work.records("resample"):
        kept = work.kept(f"resample-{record['number']}") if record["number"] < n_resamples else None
        if kept is not None:
            W, weights, shares, correlations, r2 = np.split(kept, ends)
            parts = (W.reshape(n, rank), weights.reshape(-1, rank), shares, correlations, float(r2[0]))
            found[record["number"]] = Resample(record["number"], *parts, record["converged"])
    return found


def _selection_estimator(source: Source) -> SRF | JointSRF:
    """The settings of the selection of ranks: its defaults, with the penalties asked for."""
    alpha, l1_ratio, shrinkage = source.penalties
    if source.systems.n_systems == 1:
        return default_estimator().set_params(alpha=alpha, l1_ratio=l1_ratio)
    return joint_fold_estimator(None, alpha).set_params(l1_ratio=l1_ratio, shrinkage=shrinkage)


def _select_all(drawn: tuple[Any, ...], n_resamples: int, work: Work) -> NDArray[np.intp]:
    """The number of dimensions that each resample selects."""

    def save(journal: Journal, result: tuple[int, int]) -> None:
        journal.append({"kind": "rank", "number": result[0], "rank": result[1]})

    found = {one["number"]: (one["number"], one["rank"]) for one in work.records("rank") if one["number"] < n_resamples}
    select = partial(_parallel.run_tasks, selected_rank, drawn, n_jobs=work.n_jobs)
    chosen = work.collect("ranks of resamples", n_resamples, select, found, save, "resample")
    return np.array([rank for _, rank in chosen], dtype=np.intp)


def selected_rank(
    systems: SimilaritySet, over: str, ranks: list[int], estimator: SRF | JointSRF, root: int, number: int
) -> tuple[int, int]:
    """The number of dimensions selected for the same draw as in `fit_resample`."""
    rng = np.random.default_rng(np.random.SeedSequence(root, spawn_key=(number,)))
    data = resampled_set(systems, over, rng)
    seed = _parallel.seed_of(root, number, _RANKS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        S = data[0] if data.n_systems == 1 else data
        chosen = select_rank(S, ranks, estimator=estimator, random_state=seed, progress=False)
    return number, int(chosen.rank)


def resampled_set(systems: SimilaritySet, over: str, rng: np.random.Generator) -> SimilaritySet:
    """The similarities of a resample; items that were not drawn are left out."""
    if over == "systems":
        chosen = draw_systems(systems.n_systems, rng)
        copies = [int(np.sum(chosen[:place] == m)) + 1 for place, m in enumerate(chosen)]
        names = [f"{systems.names[m]} ({copy})" for m, copy in zip(chosen, copies, strict=True)]
        similarities, positions = list(systems), systems.positions
        drawn, places = [similarities[m] for m in chosen], [positions[m] for m in chosen]
        return SimilaritySet.of_parts(drawn, places, names, None, systems.labels, systems.n_items)
    lists = solvers.as_lists(problem_of_set(systems), np.arange(systems.n_items))
    counts, factor = draw_weights(lists, over, rng)
    n, listed, rows = systems.n_items, lists.listed, lists.listed.rows
    kept = np.arange(n) if counts is None else np.flatnonzero(counts)
    names = [str(i) for i in kept] if systems.labels is None else [systems.labels[i] for i in kept]
    similarities, places = [], []
    for m, (one, at) in enumerate(zip(systems, systems.positions, strict=True)):
        values, omega = np.full((n, n), np.nan), np.zeros((n, n))
        own = dense_parts(one)
        values[np.ix_(at, at)] = np.where(own[1] > 0, own[0], np.nan)
        omega[at, at] = own[1].diagonal() * (1.0 if counts is None else counts[at])
        mine = listed.systems == m
        omega[rows[mine], listed.partners[mine]] = (listed.weights * factor)[mine]
        values[omega == 0] = np.nan
        has_pair = np.count_nonzero(omega[np.ix_(kept, kept)], axis=0) > (omega[kept, kept] > 0)
        place = np.flatnonzero(has_pair)
        part = np.ix_(kept[place], kept[place])
        similarities.append(Similarity(frozen(values[part]), [names[i] for i in place], frozen(omega[part])))
        places.append(place)
    return SimilaritySet.of_parts(similarities, places, systems.names, None, names, len(kept))


def _settings(source: Source, over: str, threshold: float, ranks: list[int] | None) -> dict[str, Any]:
    """The settings that a checkpoint must agree on; not the number of resamples, so that more can be added."""
    model = source.model
    names = ("n_components", "alpha", "shrinkage", "l1_ratio", "max_iter", "tol")
    reference = "" if source.W is None else fingerprint(source.W, source.weights)
    return {
        "data": fingerprint_of(problem_of_set(source.systems)) + reference,
        "over": over,
        "threshold": float(threshold),
        "estimator": {name: str(getattr(model, name)) for name in names},
        "ranks": ranks,
    }


def _result(
    source: Source,
    reference: Reference,
    model: JointSRF,
    resamples: list[Resample],
    over: str,
    seed: int,
    chosen: NDArray[np.intp] | None,
) -> Bootstrap:
    systems = source.systems
    units = {"systems": systems.n_systems, "items": systems.n_items, "pairs": reference.problem.n_known // 2}
    r2 = variance_explained_jointly(reference.lists, reference.W, reference.weights)
    _, W, weights, shares, correlations, resampled_r2, converged = map(np.stack, zip(*resamples, strict=True))
    return Bootstrap(
        over=over,
        embedding=reference.W,
        weights=reference.weights,
        r2=mean_of_known(r2),
        embeddings=W,
        resampled_weights=weights,
        resampled_shares=shares,
        resampled_r2=resampled_r2,
        correlations=correlations,
        threshold=reference.threshold,
        alpha=float(model.alpha),
        shrinkage=float(model.shrinkage),
        n_units=units[over],
        pairs_per_system=int(np.median(solvers.pairs_per_system(reference.problem))),
        converged=converged,
        seed=seed,
        labels=systems.labels,
        systems=systems.names if systems.n_systems > 1 else None,
        selected_ranks=chosen,
        dimension_names=source.dimension_names,
    )
