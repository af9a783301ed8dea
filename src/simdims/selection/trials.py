"""Trials: fit and score ranks, store both, and resume from a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from simdims import _parallel
from simdims._journal import Work
from simdims.selection.fits import RESAMPLES, Design, Fit, Task
from simdims.selection.rank_search import search_ranks
from simdims.selection.resampling import resample_choice
from simdims.selection.result import RankSelection, Rule, Score, choose, conclude
from simdims.selection.splits import pool_sampling

#: With a penalty, no rank beyond this multiple of the chosen one is tried because errors still decrease.
_FAR_BEYOND = 1.6

#: Fits of tasks, in the order of completion.
FitTasks = Callable[[list[Task]], Generator[Fit, None, None]]

ScoreFits = Callable[[Sequence[Fit]], Score]


class Trials:
    """Fits ranks with `fit_tasks`, scores those of a rank with `score_fits`, and stores both.

    `alpha` is the penalty of all fits: those in a checkpoint with another penalty cannot be compared with them.
    """

    def __init__(
        self, design: Design, rule: Rule, alpha: float, fit_tasks: FitTasks, score_fits: ScoreFits, work: Work
    ) -> None:
        self.design, self.rule, self.alpha = design, rule, alpha
        self.rescaled = rule.protocol == "penalised"
        self.fit_tasks, self.score_fits = fit_tasks, score_fits
        self.work, self.journal, self.reporter = work, work.journal, work.reporter
        self.scores: dict[int, Score] = {}
        ended = [one for one in work.records("rank") if one.get("rescaled", False) == self.rescaled]
        self._ended = {one["rank"]: Score.from_dict(one) for one in ended if one.get("alpha", 0.0) == alpha}
        self._fits = {Task(*one["task"]): one for one in work.records("fit") if one.get("alpha", 0.0) == alpha}
        self.reporter.begin("select rank", 0)

    def search(self, candidates: list[int] | None, largest: int, n_stable: int | None = None) -> tuple[int, ...]:
        """Try the given ranks, or as many as the choice needs; return them in the order tried."""
        if candidates is not None:
            self.run(candidates)
            return tuple(candidates)
        tried: list[int] = []
        for ranks in search_ranks(self.judge, largest, n_stable):
            self.run(ranks)
            tried += ranks
        return tuple(tried)

    def run(self, ranks: Sequence[int]) -> None:
        """Fit and score ranks, the largest first, so that the longest fit is not left to one worker at the end."""
        ranks = [rank for rank in dict.fromkeys(ranks) if rank not in self.scores]
        per_rank = self.design.n_folds * self.design.n_repeats
        fits = {rank: self._earlier_fits(rank) for rank in ranks if rank not in self._ended}
        n_earlier = sum(map(len, fits.values())) + per_rank * (len(ranks) - len(fits))
        self.reporter.extend(per_rank * len(ranks), done=n_earlier)
        for rank in ranks:
            if rank in self._ended:
                self.scores[rank] = self._ended[rank]
                self._drop_arrays(rank)  # a kill may have come between the score and this
            elif len(fits[rank]) == per_rank:
                self._end(rank, fits.pop(rank))
        tasks = [task for rank in sorted(fits, reverse=True) for task in self._tasks(rank) if task not in fits[rank]]
        with closing(self.fit_tasks(tasks)) as results:
            for fit in results:
                self._keep(fit)
                self.reporter.step(f"rank {fit.task.rank}")
                of_rank = fits[fit.task.rank]
                of_rank[fit.task] = fit
                if len(of_rank) == per_rank:
                    self._end(fit.task.rank, fits.pop(fit.task.rank))

    def judge(self) -> tuple[int, int]:
        """The rank with the smallest error, and the chosen one; the chosen one twice if the smallest is far beyond it.

        A penalised error may decrease with every dimension, by less than a dimension must explain.
        """
        minimum, chosen = choose(self.scores, self.rule)
        return chosen if self.rescaled and minimum > _FAR_BEYOND * chosen else minimum, chosen

    def conclude(self, of_mean: Score, **known: Any) -> RankSelection:
        """The result, from the scores, the score of the mean and further values."""
        rng = np.random.default_rng(_parallel.seed_of(self.design.root, RESAMPLES))
        n_folds = self.design.n_folds
        return conclude(
            self.scores,
            of_mean,
            self.rule,
            training_share=pool_sampling(self.design.sampling, n_folds) * (n_folds - 1) / n_folds,
            n_folds=n_folds,
            n_repeats=self.design.n_repeats,
            comparison_alpha=self.alpha,
            seed=self.work.seed,
            resampled=resample_choice(self.scores, self.rule, rng),
            **known,
        )

    def _tasks(self, rank: int) -> list[Task]:
        folds, repeats = range(self.design.n_folds), range(self.design.n_repeats)
        return [Task(rank, repeat, fold) for repeat in repeats for fold in folds]

    def _earlier_fits(self, rank: int) -> dict[Task, Fit]:
        found = {}
        for task in self._tasks(rank):
            W = self.work.kept(task.name) if task in self._fits else None
            if W is not None:
                no_field = ("kind", "task", "alpha")
                record = {name: value for name, value in self._fits[task].items() if name not in no_field}
                found[task] = Fit(task, W, **record)
        return found

    def _keep(self, fit: Fit) -> None:
        if self.journal is None:
            return
        self.journal.keep(fit.task.name, fit.W)
        record = {name: getattr(fit, name) for name in ("low", "high", "iterations", "converged", "seconds")}
        self.journal.append({"kind": "fit", "task": fit.task, **record, **self._penalty()})

    def _end(self, rank: int, fits: Mapping[Task, Fit]) -> None:
        """Score a rank once all its fits are complete, in an order that does not depend on which finished first."""
        ordered = [fits[task] for task in self._tasks(rank)]
        self.scores[rank] = self.score_fits(ordered)
        if self.journal is not None:
            judged = {"rescaled": True} if self.rescaled else {}
            score = {**self.scores[rank].to_dict(), **judged, **self._penalty()}
            self.journal.append({"kind": "rank", "rank": rank, **score})
            self._drop_arrays(rank)

    def _penalty(self) -> dict[str, float | str]:
        """What records store about the penalty; nothing without one, as in checkpoints of versions that had none."""
        return {"alpha": self.alpha} if self.alpha else {}

    def _drop_arrays(self, rank: int) -> None:
        if self.journal is not None:
            for task in self._tasks(rank):
                self.journal.drop(task.name)
