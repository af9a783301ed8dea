"""select_rank for a SimilaritySet, and whether weights of its systems improve predictions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from simdims import _memory, _parallel, solvers
from simdims._journal import Journal, Work, working
from simdims._parameters import ParameterError, require_choice, shown
from simdims.joint import JointSRF, fingerprint_of, joint_settings, problem_of_set
from simdims.selection.calibration import check_items, require_share
from simdims.selection.checks import check_design, check_ranks, generous_rank, make_rule, settle_folds, warn_of_edges
from simdims.selection.comparison import SystemsComparison, compare
from simdims.selection.detection import joint_structure_beyond_one
from simdims.selection.fits import BEYOND_ONE, Design
from simdims.selection.joint_fits import (
    draw_folds,
    draw_pairs,
    fit_alone,
    fit_fold,
    most_dimensions,
    score_fits,
    score_mean,
    settle_at,
    shrinkage_at,
    variance_of,
)
from simdims.selection.result import RankSelection, Rule, choose
from simdims.selection.splits import DEFAULT_FOLDS, most_training
from simdims.selection.trials import Trials
from simdims.srf import settings_of
from simdims.systems import SimilaritySet

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
    n_jobs: int | None,
    **running: Any,
) -> RankSelection:
    """Choose the number of dimensions of joint fits by pairs held out within every system; see `working`."""
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
    described = partial(_settings, problem, model, settings)
    with working("select_rank", described, n_jobs=n_jobs, **running) as work:
        design = Design(trained, n_folds, n_repeats, work.root)
        pairs = draw_pairs(problem, work.root)
        check_design(len(pairs.rows), design, partial(draw_folds, pairs, problem.n_systems, design))
        largest = most_dimensions(problem, len(pairs.rows), design)
        generous = generous_rank(candidates, largest, None)
        compared = settle_at(problem, model, generous, work)
        chosen_at = generous if isinstance(model.shrinkage, str) else None
        of_one = shrinkage_at(compared[1], 1, chosen_at)
        has_structure = partial(joint_structure_beyond_one, problem, of_one, _parallel.seed_of(work.root, BEYOND_ONE))
        rule = make_rule("penalised", variance_of(problem, pairs), candidates, has_structure)
        settled = clone(model).set_params(alpha=compared[0], shrinkage=compared[1])
        trials = _trials(problem, design, rule, settled, chosen_at, work)
        tried = trials.search(candidates, largest)
        chosen = choose(trials.scores, trials.rule)[1]
        # If weights do not help with a large number of dimensions, they are not tried again.
        held = np.inf if np.isinf(compared[1]) else None
        final = compared if chosen == generous else settle_at(problem, model, chosen, work, held)
    facts: dict[str, Any] = {"sampling": trained, "calibration": None, "tried": tried, "n_items": systems.n_items}
    facts |= {"largest": largest, "alpha": final[0], "shrinkage": final[1], "names": systems.names}
    drawn = shrinkage_at(compared[1], chosen, chosen_at)
    selection = trials.conclude(score_mean(problem, design), **facts, comparison_shrinkage=drawn)
    warn_of_edges(selection)
    return replace(selection, similarity=systems)


def compare_systems(
    systems: SimilaritySet, selection: RankSelection, *, estimator: JointSRF, **running: Any
) -> SystemsComparison:
    """Compare how well the models of SystemsComparison predict the pairs held out in a selection.

    `estimator` is that of the selection, whose fits at the chosen rank are those with weights.
    """
    shrinkage = selection.comparison_shrinkage
    assert selection.systems is not None and shrinkage is not None and selection.seed is not None  # noqa: PT018
    problem, rank, table = problem_of_set(systems), selection.rank, selection.systems
    weighted, on_line, baseline = (table[name].to_numpy() for name in ("error", "error_on_line", "error_of_mean"))
    settings = {"rank": rank, "alpha": selection.comparison_alpha, "training_share": selection.training_share}
    settings |= {"n_folds": selection.n_folds, "n_repeats": selection.n_repeats}
    described = partial(_settings, problem, estimator, settings)
    with working("compare_systems", described, random_state=selection.seed, **running) as work:
        design = Design(selection.training_share, selection.n_folds, selection.n_repeats, work.root)
        equal = weighted, on_line
        if np.isfinite(shrinkage) and systems.n_systems > 1:
            shared = clone(estimator).set_params(alpha=selection.comparison_alpha, shrinkage=np.inf)
            rule = Rule("penalised", variance_of(problem, draw_pairs(problem, work.root)))
            trials = _trials(problem, design, rule, shared, None, work)
            trials.run([rank])
            of_systems = trials.scores[rank].systems
            assert of_systems is not None
            equal = of_systems[0], of_systems[1]
        alone = _errors_alone(problem, design, estimator, rank, work)
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
        rule = "must be positive or 'auto' for a SimilaritySet, whose numbers of dimensions are compared with a penalty"
        raise ParameterError("alpha", rule, shown(model.alpha))
    return model


def _trials(
    problem: solvers.JointProblem, design: Design, rule: Rule, estimator: JointSRF, chosen_at: int | None, work: Work
) -> Trials:
    """Trials of joint fits with these penalties; see `fit_fold`."""
    fit_tasks = work.runner(fit_fold, (problem, design, estimator, chosen_at), estimator.device)
    return Trials(design, rule, float(estimator.alpha), fit_tasks, partial(score_fits, problem, design), work)


def _errors_alone(
    problem: solvers.JointProblem, design: Design, estimator: JointSRF, rank: int, work: Work
) -> np.ndarray:
    """The errors of systems that are fitted separately."""

    def save(journal: Journal, result: tuple[int, float]) -> None:
        journal.append({"kind": "alone", "system": result[0], "error": result[1]})

    found = {record["system"]: (record["system"], record["error"]) for record in work.records("alone")}
    fit = work.runner(fit_alone, (problem, design, estimator, rank), estimator.device)
    results = work.collect("systems alone", problem.n_systems, fit, found, save)
    return np.array([error for _, error in results])


def _settings(problem: solvers.JointProblem, model: JointSRF, others: dict[str, Any]) -> dict[str, Any]:
    """The settings that a checkpoint must agree on; not the ranks, so that more can be tried later."""
    return {"data": fingerprint_of(problem), **others, "estimator": settings_of(model)}


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
