"""select_rank for a SimilaritySet, and whether weights of its systems improve predictions."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from simdims import __version__, _memory, _parallel, solvers
from simdims._journal import Journal, open_journal
from simdims._parameters import ParameterError, require_choice, shown
from simdims._progress import Callback, Reporter, reporting
from simdims.joint import JointSRF, fingerprint_of, joint_settings, problem_of_set
from simdims.selection.calibration import check_items, require_share
from simdims.selection.checks import check_design, check_ranks, generous_rank, settle_folds, warn_of_edges
from simdims.selection.comparison import SystemsComparison, compare
from simdims.selection.detection import joint_structure_beyond_one
from simdims.selection.fits import BEYOND_ONE, Design, Fit, Task
from simdims.selection.joint_fits import (
    JointPairs,
    about_means,
    draw_folds,
    draw_pairs,
    fit_alone,
    fit_fold,
    most_dimensions,
    score_fits,
    score_mean,
    settle_penalties,
    shrinkage_at,
)
from simdims.selection.result import RankSelection, Rule, choose
from simdims.selection.splits import DEFAULT_FOLDS, most_training
from simdims.selection.trials import Trials
from simdims.srf import settings_of
from simdims.systems import SimilaritySet

logger = logging.getLogger("simdims")

#: As for fits of one system.
_DEFAULT_TOL, _DEFAULT_MAX_ITER = 1e-2, 300

#: Bytes that a fit needs per listed pair, in both orders, in addition to those of matrices.
_BYTES_PER_PAIR = 120


def select_set(
    systems: SimilaritySet,
    ranks: Any,
    *,
    sampling: Any,
    n_folds: Any,
    n_repeats: Any,
    protocol: Any,
    alpha: Any,
    estimator: Any,
    checkpoint: str | os.PathLike[str] | None,
    random_state: Any,
    n_jobs: int | None,
    progress: bool | Callback | None,
) -> RankSelection:
    """Choose the number of dimensions of joint fits by pairs held out within every system."""
    check_items(systems.n_items)
    candidates = check_ranks(ranks, systems.n_items)
    n_folds, n_repeats = settle_folds(n_folds, n_repeats, DEFAULT_FOLDS, 5)
    if sampling is not None:
        require_share("sampling", sampling)
    model = joint_fold_estimator(estimator, alpha, protocol)
    _parallel.check_n_jobs(n_jobs)
    problem = problem_of_set(systems)
    _require_memory(problem, n_jobs)
    trained = most_training(n_folds) if sampling is None else float(sampling)
    settings = {"sampling": sampling, "n_folds": n_folds, "n_repeats": n_repeats}
    with ExitStack() as stack:
        reporter = stack.enter_context(reporting(progress))
        described = {} if checkpoint is None else _settings("select_rank", problem, model, settings)
        journal, seed, root = open_journal(stack, checkpoint, described, random_state)
        design = Design(trained, n_folds, n_repeats, root)
        pairs = draw_pairs(problem, root)
        check_design(len(pairs.rows), design, partial(draw_folds, pairs, problem.n_systems, design))
        largest = most_dimensions(problem, len(pairs.rows), design)
        generous = generous_rank(candidates, largest, None)
        compared = _settle(problem, model, generous, None, root, journal)
        chosen_at = generous if isinstance(model.shrinkage, str) else None
        rule = _rule(problem, pairs, candidates, shrinkage_at(compared[1], 1, chosen_at), root)
        trials = _trials(problem, design, rule, _settled(model, *compared), chosen_at, n_jobs, journal, reporter)
        tried = trials.search(candidates, largest)
        chosen = choose(trials.scores, trials.rule)[1]
        # If weights do not help with a large number of dimensions, they are not tried again.
        held = np.inf if np.isinf(compared[1]) else None
        final = compared if chosen == generous else _settle(problem, model, chosen, held, root, journal)
    selection = trials.conclude(
        score_mean(problem, design),
        sampling=trained,
        calibration=None,
        tried=tried,
        n_items=systems.n_items,
        largest=largest,
        seed=seed,
        alpha=final[0],
        shrinkage=final[1],
        comparison_shrinkage=shrinkage_at(compared[1], chosen, chosen_at),
        names=systems.names,
    )
    warn_of_edges(selection)
    return replace(selection, similarity=systems)


def compare_systems(
    systems: SimilaritySet,
    selection: RankSelection,
    *,
    estimator: JointSRF,
    checkpoint: str | os.PathLike[str] | None,
    n_jobs: int | None,
    progress: bool | Callback | None,
) -> SystemsComparison:
    """Compare how well the models of SystemsComparison predict the pairs held out in a selection.

    `estimator` is that of the selection, whose fits at the chosen rank are those with weights.
    """
    shrinkage = selection.comparison_shrinkage
    assert selection.systems is not None and shrinkage is not None and selection.seed is not None  # noqa: PT018
    problem = problem_of_set(systems)
    rank = selection.rank
    weighted, on_line, baseline = (
        selection.systems[name].to_numpy() for name in ("error", "error_on_line", "error_of_mean")
    )
    with ExitStack() as stack:
        reporter = stack.enter_context(reporting(progress))
        settings = {"rank": rank, "alpha": selection.comparison_alpha, "training_share": selection.training_share}
        settings |= {"n_folds": selection.n_folds, "n_repeats": selection.n_repeats}
        described = {} if checkpoint is None else _settings("compare_systems", problem, estimator, settings)
        journal, _, root = open_journal(stack, checkpoint, described, selection.seed)
        design = Design(selection.training_share, selection.n_folds, selection.n_repeats, root)
        equal = weighted, on_line
        if np.isfinite(shrinkage) and systems.n_systems > 1:
            shared = _settled(estimator, selection.comparison_alpha, np.inf)
            rule = _rule(problem, draw_pairs(problem, root), [rank], np.inf, root)
            trials = _trials(problem, design, rule, shared, None, n_jobs, journal, reporter)
            trials.run([rank])
            of_systems = trials.scores[rank].systems
            assert of_systems is not None
            equal = of_systems[0], of_systems[1]
        alone = _errors_alone(problem, design, estimator, rank, n_jobs, journal, reporter)
    errors = {"average": equal[0], "scale": equal[1], "weights": weighted, "alone": alone, "weights on line": on_line}
    return compare(errors, baseline, systems.names, rank, shrinkage)


def joint_fold_estimator(estimator: Any, alpha: Any, protocol: Any = None, device: str = "cpu") -> JointSRF:
    """The settings of joint fits in cross-validation: those of an estimator, including its penalty, or defaults."""
    require_choice("protocol", protocol, (None, "penalised", "averaged", "paper"))
    if protocol not in (None, "penalised"):
        raise ParameterError("protocol", "must be 'penalised' for a SimilaritySet", shown(protocol))
    fallback = JointSRF(tol=_DEFAULT_TOL, max_iter=_DEFAULT_MAX_ITER)
    model = joint_settings(estimator, alpha, "auto", fallback, device, "because the number of dimensions varies")
    if model.alpha == 0.0:
        raise ParameterError(
            "alpha",
            "must be positive or 'auto' for a SimilaritySet, whose numbers of dimensions are compared with a penalty",
            shown(model.alpha),
        )
    return model


def _settled(model: JointSRF, alpha: float, shrinkage: float) -> JointSRF:
    return clone(model).set_params(alpha=alpha, shrinkage=shrinkage)


def _rule(
    problem: solvers.JointProblem, pairs: JointPairs, candidates: list[int] | None, shrinkage: float, root: int
) -> Rule:
    """How ranks are chosen; if one of them is 1, the residuals of one dimension are tested first."""
    variance = float(np.average(about_means(pairs, problem.n_systems), weights=pairs.weights))
    structure = None
    if candidates is None or (1 in candidates and len(candidates) > 1):
        try:
            structure = joint_structure_beyond_one(problem, shrinkage, _parallel.seed_of(root, BEYOND_ONE))
        except MemoryError:
            logger.info("select_rank: not enough memory to compare the residuals of one dimension with noise")
    return Rule("penalised", variance, structure)


def _trials(
    problem: solvers.JointProblem,
    design: Design,
    rule: Rule,
    estimator: JointSRF,
    chosen_at: int | None,
    n_jobs: int | None,
    journal: Journal | None,
    reporter: Reporter,
) -> Trials:
    """Trials of joint fits with these penalties; see `fit_fold`."""

    def fit_tasks(tasks: list[Task]) -> Generator[Fit, None, None]:
        shared, one_by_one = (problem, design, estimator, chosen_at), journal is not None
        yield from _parallel.run_tasks(fit_fold, shared, tasks, n_jobs=_jobs(estimator, n_jobs), one_by_one=one_by_one)

    score = partial(score_fits, problem, design)
    return Trials(design, rule, float(estimator.alpha), fit_tasks, score, journal, reporter)


def _errors_alone(
    problem: solvers.JointProblem,
    design: Design,
    estimator: JointSRF,
    rank: int,
    n_jobs: int | None,
    journal: Journal | None,
    reporter: Reporter,
) -> np.ndarray:
    """The errors of systems that are fitted separately."""
    records = journal.records if journal else []
    found = {record["system"]: record["error"] for record in records if record["kind"] == "alone"}
    reporter.begin("systems alone", problem.n_systems, done=len(found))
    tasks = [m for m in range(problem.n_systems) if m not in found]
    shared, n_jobs = (problem, design, estimator, rank), _jobs(estimator, n_jobs)
    results = _parallel.run_tasks(fit_alone, shared, tasks, n_jobs=n_jobs, one_by_one=journal is not None)
    with closing(results):
        for m, error in results:
            found[m] = error
            if journal is not None:
                journal.append({"kind": "alone", "system": m, "error": error})
            reporter.step()
    return np.array([found[m] for m in range(problem.n_systems)])


def _jobs(estimator: JointSRF, n_jobs: int | None) -> int | None:
    """One process if fits run on a device."""
    return n_jobs if estimator.device == "cpu" else 1


def _settle(
    problem: solvers.JointProblem,
    model: JointSRF,
    rank: int,
    shrinkage: float | None,
    root: int,
    journal: Journal | None,
) -> tuple[float, float]:
    """The penalty and the shrinkage at a rank: those of the checkpoint, or chosen now."""
    for record in journal.records if journal else []:
        if record["kind"] == "penalties" and record["rank"] == rank:
            return float(record["alpha"]), float(record["shrinkage"])
    found = settle_penalties(problem, model, rank, root, shrinkage)
    if journal is not None:
        alpha, drawn = found
        journal.append({"kind": "penalties", "rank": rank, "alpha": alpha, "shrinkage": repr(float(drawn))})
    return found


def _settings(work: str, problem: solvers.JointProblem, model: JointSRF, others: dict[str, Any]) -> dict[str, Any]:
    """The settings that a checkpoint must agree on; not the ranks, so that more can be tried later."""
    return {
        "work": work,
        "version": __version__,
        "data": fingerprint_of(problem),
        **others,
        "estimator": settings_of(model),
    }


def _require_memory(problem: solvers.JointProblem, n_jobs: int | None) -> None:
    """Refuse fits that exceed the memory: each needs lists and matrices without its held-out pairs."""
    dense = sum(S.nbytes for S in problem.dense.values())
    n_listed = len(problem.listed.values) + sum(S.size // 4 for S in problem.dense.values())
    _memory.require_for_workers(
        dense + _BYTES_PER_PAIR * n_listed,
        _parallel.workers_here(n_jobs),
        f"A joint fit of {problem.n_systems} systems with pairs held out",
        "select the number of dimensions of fewer items or systems",
    )
