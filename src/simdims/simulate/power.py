"""power_study: the power of tests on data that are simulated and fitted."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from simdims._journal import Journal, as_folder, fingerprint
from simdims._parallel import root_seed, run_tasks, seed_of
from simdims._parameters import ParameterError, require_between, require_choice, require_count, require_flag
from simdims._progress import Callback, reporting
from simdims.metrics._embedding import as_numbers, require_table
from simdims.simulate.noise import add_feature_noise, add_noise

NOISES = ("features", "similarities")

Design = ArrayLike | Callable[..., ArrayLike]

#: "found": per test, the shares of hypotheses that are significant after and before adjustment. "variance": of each
#: column. "columns": per test, the p-value of each column and whether it is significant after adjustment.
Finding = dict[str, Any]


class Task(NamedTuple):
    """One simulated data set."""

    noise: str
    snr: float
    repeat: int


def power_study(
    design: Design,
    snrs: Sequence[float] = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7),
    n_repeats: int = 100,
    n_permutations: int = 1000,
    *,
    noise: str | Sequence[str] = ("features", "similarities"),
    alternative: str = "greater",
    matching: str = "joint",
    method: str = "pearson",
    weighting: str = "fit",
    alpha: float = 0.05,
    by_column: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> pd.DataFrame:
    """Measure the power of RSA, of the test of SRF's dimensions, and of both combined.

    For each repeat, kind of noise and signal-to-noise ratio: draw features X, add noise, fit SRF to the similarities
    with as many dimensions as X has columns, and test every column of X.

    Parameters
    ----------
    design : array-like of shape (n_items, n_features), or function
        X itself, or a function that draws one, called as ``design(random_state=seed)``:
        ``functools.partial(from_embedding, W, 50, 5)``.
    snrs : sequence of float, default=(0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
        Signal-to-noise ratios. At 0 all null hypotheses hold, and the unadjusted power is the level of a test.
    n_repeats : int, default=100
        Data sets per ratio and kind of noise.
    n_permutations : int, default=1000
        Permutations per test.
    noise : {"features", "similarities"} or list of both, default=both
        Where the noise is added: see `add_feature_noise` and `add_noise`.
    alternative, matching, method, weighting, alpha
        As in `simdims.inference.combined_test`, but with "joint" as the default of `matching`, as in the paper.
    by_column : bool, default=False
        Whether to return one row per column of X, to see which columns are found.
    checkpoint : path, optional
        A folder in which every finished data set is saved. An interrupted run resumes from it with the same result;
        more repeats, ratios or kinds of noise can be added later.
    random_state : int, RandomState or None, default=None
        Seed of all random numbers; None uses that of the checkpoint, or fresh entropy.
    n_jobs, progress
        As in `simdims.dimension_test`; a function is called after every data set.

    Returns
    -------
    pandas.DataFrame
        One row per data set and test: noise, snr, repeat, test ("dimension", "rsa", "combined"), power (the share of
        the columns of X that are significant after Benjamini-Hochberg adjustment) and power_unadjusted (the share with
        a p-value of at most alpha). With `by_column`, one row per data set, test and column of X: noise, snr, repeat,
        test, column (from 0), variance (of the column over the items), pvalue, and significant (after adjustment).

    References
    ----------
    SRF, Methods, "Statistical power comparison".

    Examples
    --------
    >>> from simdims.simulate import factorial, power_study
    >>> study = power_study(
    ...     factorial([2, 3, 3]), [0.3], n_repeats=2, n_permutations=99, noise="features", random_state=0
    ... )
    >>> list(study.columns)
    ['noise', 'snr', 'repeat', 'test', 'power', 'power_unadjusted']
    >>> len(study)
    6
    """
    from simdims.inference.permutations import check_settings

    check_settings(n_permutations, alternative, alpha, n_jobs, matching=matching, method=method, weighting=weighting)
    require_count("n_repeats", n_repeats)
    require_flag("by_column", by_column)
    noises = _as_list("noise", noise, lambda kind: require_choice("noise", kind, NOISES))
    ratios = _as_list("snrs", snrs, lambda snr: require_between("snrs", snr, 0, 1))
    options = {"n_permutations": int(n_permutations), "alternative": alternative, "matching": matching}
    options |= {"method": method, "weighting": weighting, "alpha": float(alpha)}
    X = _draw(design, 0)
    require_table(X, "design", "feature")
    is_begun = checkpoint is not None and (as_folder(checkpoint, "checkpoint") / "settings.json").exists()
    seed = None if random_state is None and is_begun else root_seed(random_state)
    settings: dict[str, Any] = {"design": fingerprint(X), **options, "seed": seed}
    tasks = [Task(kind, float(snr), repeat) for repeat in range(n_repeats) for kind in noises for snr in ratios]
    done: dict[Task, Finding] = {}
    with ExitStack() as stack:
        report = stack.enter_context(reporting(progress))
        journal = None if checkpoint is None else stack.enter_context(Journal(checkpoint, settings))
        if journal is not None:
            settings = journal.settings
            # Old folders do not hold columns.
            records = [record for record in journal.records if not by_column or "columns" in record]
            done = {Task(record["noise"], record["snr"], record["repeat"]): record for record in records}
        missing = [task for task in tasks if task not in done]
        report.begin("data sets", len(tasks), done=len(tasks) - len(missing))
        shared = (design, options, settings["seed"])
        for task, finding in run_tasks(_simulate, shared, missing, n_jobs=n_jobs, one_by_one=True):
            done[task] = finding
            if journal is not None:
                journal.append({**task._asdict(), **finding})
            report.step(f"snr {task.snr:g}")
    rows = [{**task._asdict(), **row} for task in tasks for row in _rows(done[task], by_column)]
    return pd.DataFrame(rows).sort_values(["noise", "snr", "repeat"], kind="stable", ignore_index=True)


def _simulate(design: Design, options: dict[str, Any], root: int, task: Task) -> tuple[Task, Finding]:
    """Simulate, fit and test one data set."""
    from simdims.inference import combined_test
    from simdims.srf import SRF

    X = _draw(design, seed_of(root, task.repeat, 0))
    # With the same seed for all ratios, only the scale of the noise differs.
    seed = seed_of(root, task.repeat, 1)
    if task.noise == "features":
        noisy = add_feature_noise(X, task.snr, random_state=seed)
        S: NDArray = noisy @ noisy.T
    else:
        S = add_noise(X @ X.T, task.snr, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Users cannot change what the columns of a drawn design share by chance.
        warnings.filterwarnings("ignore", 'matching="joint" is not exact|.*hypothes', UserWarning)
        W = SRF(X.shape[1], random_state=seed_of(root, task.repeat, 2)).fit(S).embedding_
        combined = combined_test(S, W, X, random_state=seed_of(root, task.repeat, 3), progress=False, **options)
    tests = {**combined.parts, "combined": combined}
    found, columns = {}, {}
    for name, test in tests.items():
        found[name] = [float(test.significant.mean()), float((test.pvalue <= options["alpha"]).mean())]
        columns[name] = {"pvalue": test.pvalue.tolist(), "significant": test.significant.tolist()}
    return task, {"found": found, "variance": X.var(axis=0).tolist(), "columns": columns}


def _draw(design: Design, seed: int) -> NDArray[np.float64]:
    X = design(random_state=seed) if callable(design) else design
    return as_numbers(X, "design")


def _rows(finding: Finding, by_column: bool) -> list[dict[str, Any]]:
    if not by_column:
        return [
            {"test": test, "power": adjusted, "power_unadjusted": unadjusted}
            for test, (adjusted, unadjusted) in finding["found"].items()
        ]
    return [
        {"test": test, "column": column, "variance": variance, **{name: found[name][column] for name in found}}
        for test, found in finding["columns"].items()
        for column, variance in enumerate(finding["variance"])
    ]


def _as_list(name: str, values: Any, check: Callable[[Any], None]) -> list[Any]:
    """One or several distinct, checked values as a list; texts and arrays without a dimension are one."""
    is_one = isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0
    found = [values] if is_one else list(values)
    for place, value in enumerate(found):
        check(value)
        if value in found[:place]:
            raise ParameterError(name, "must be distinct", f"{value!r} more than once")
    if not found:
        raise ParameterError(name, "must hold at least one value", "none")
    return found
