"""power_study: how often true properties are found in data that are simulated, fitted and tested."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from simdims._journal import Journal, as_folder, fingerprint
from simdims._parallel import root_seed, run_tasks, seed_of
from simdims._parameters import require_count, require_flag, require_real, shown
from simdims._progress import Callback, reporting
from simdims.metrics._embedding import as_numbers
from simdims.simulate.noise import add_feature_noise, add_noise

if TYPE_CHECKING:
    import pandas as pd

NOISES = ("features", "similarities")

Design = ArrayLike | Callable[..., ArrayLike]

# "found": for each test the share of hypotheses found, after and before adjustment. "variance": that of each column.
# "columns": for each test the p-value of each column, and whether it is found after adjustment.
Finding = dict[str, Any]


@dataclass(frozen=True)
class Task:
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
    """Measure how often true properties are found by RSA, by the dimensions of SRF, and by both combined.

    For each repeat, kind of noise and ratio: draw features X, add noise, fit SRF to the similarities with as many
    dimensions as X has columns, and test every column of X.

    Parameters
    ----------
    design : array-like of shape (n_items, n_features), or function
        X itself, or a function that draws one, called as ``design(random_state=seed)``:
        ``functools.partial(from_embedding, W, 50, 5)``.
    snrs : sequence of float, default=(0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
        Signal-to-noise ratios. At 0 nothing is true, and the share found before adjustment is the level of a test.
    n_repeats : int, default=100
        Data sets for each ratio and kind of noise.
    n_permutations : int, default=1000
        Permutations of each test.
    noise : {"features", "similarities"} or list of both, default=both
        Where the noise is: see `add_feature_noise` and `add_noise`.
    alternative, matching, method, weighting, alpha
        As in `simdims.inference.combined_test`, but for the default of `matching`, "joint", as in the paper.
    by_column : bool, default=False
        Whether the table has a row for each column of X too, to see which columns are found.
    checkpoint : path, optional
        A folder to which every finished data set is added at once. A run that was stopped continues from there and ends
        with the same result; more repeats, ratios or kinds of noise are added to what it holds.
    random_state : int, RandomState or None, default=None
        Seed of everything; None is fresh entropy, or what the checkpoint was begun with.
    n_jobs : int or None, default=None
        How many processes share the data sets; the result does not depend on it.
    progress : bool, function or None, default=None
        Whether to show a progress bar; None shows one where a person is likely to be looking. A function is called with
        a `Progress` after every data set.

    Returns
    -------
    pandas.DataFrame
        A row for each data set and test: noise, snr, repeat, test ("dimension", "rsa", "combined"), power (the share of
        the columns of X that are significant after Benjamini-Hochberg adjustment) and power_unadjusted (the share whose
        own p-value is at most alpha). With `by_column` a row for each data set, test and column of X: noise, snr,
        repeat, test, column (from 0), variance (of the column over the items), pvalue, and significant (after
        adjustment).

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
    >>> study = power_study(factorial([2, 3, 3]), [0.3], 2, 99, noise="features", by_column=True, random_state=0)
    >>> list(study.columns)
    ['noise', 'snr', 'repeat', 'test', 'column', 'variance', 'pvalue', 'significant']
    >>> len(study)
    48
    """
    from simdims.inference.permutations import check_settings

    check_settings(n_permutations, alternative, alpha, n_jobs, matching=matching, method=method, weighting=weighting)
    require_count("n_repeats", n_repeats)
    require_flag("by_column", by_column)
    kinds, ratios = _as_kinds(noise), _as_ratios(snrs)
    options = {
        "n_permutations": int(n_permutations),
        "alternative": alternative,
        "matching": matching,
        "method": method,
        "weighting": weighting,
        "alpha": float(alpha),
    }
    is_begun = checkpoint is not None and (as_folder(checkpoint, "checkpoint") / "settings.json").exists()
    seed = None if random_state is None and is_begun else root_seed(random_state)
    settings: dict[str, Any] = {"design": _fingerprint(design), **options, "seed": seed}
    tasks = [Task(kind, snr, repeat) for repeat in range(n_repeats) for kind in kinds for snr in ratios]
    done: dict[Task, Finding] = {}
    with ExitStack() as stack:
        report = stack.enter_context(reporting(progress))
        journal = None if checkpoint is None else stack.enter_context(Journal(checkpoint, settings))
        if journal is not None:
            settings = journal.settings
            # A folder from before columns were kept lacks them.
            records = [record for record in journal.records if not by_column or "columns" in record]
            done = {Task(record["noise"], record["snr"], record["repeat"]): record for record in records}
        missing = [task for task in tasks if task not in done]
        report.begin("data sets", len(tasks), done=len(tasks) - len(missing))
        shared = (design, options, settings["seed"])
        for task, finding in run_tasks(_simulate, shared, missing, n_jobs=n_jobs, one_by_one=True):
            done[task] = finding
            if journal is not None:
                journal.append({**asdict(task), **finding})
            report.step(f"snr {task.snr:g}")
    rows = _rows_by_column(tasks, done) if by_column else _rows(tasks, done)
    return _as_frame(rows)


def _simulate(design: Design, options: dict[str, Any], root: int, task: Task) -> tuple[Task, Finding]:
    """Make, fit and test one data set."""
    from simdims.inference import combined_test
    from simdims.srf import SRF

    X = _draw(design, seed_of(root, task.repeat, 0))
    # The same seed for all ratios: they differ in the scale of the noise only.
    seed = seed_of(root, task.repeat, 1)
    if task.noise == "features":
        noisy = add_feature_noise(X, task.snr, random_state=seed)
        S: NDArray = noisy @ noisy.T
    else:
        S = add_noise(X @ X.T, task.snr, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # A design is drawn anew for every data set: what its columns share by chance is not for the user to mend.
        warnings.filterwarnings("ignore", 'matching="joint" is not exact|.*hypothes', UserWarning)
        W = SRF(X.shape[1], random_state=seed_of(root, task.repeat, 2)).fit(S).embedding_
        combined = combined_test(S, W, X, random_state=seed_of(root, task.repeat, 3), progress=False, **options)
    tests = {**combined.parts, "combined": combined}
    alpha = options["alpha"]
    return task, {
        "found": {
            name: [float(test.significant.mean()), float((test.pvalue <= alpha).mean())] for name, test in tests.items()
        },
        "variance": X.var(axis=0).tolist(),
        "columns": {
            name: {"pvalue": test.pvalue.tolist(), "significant": test.significant.tolist()}
            for name, test in tests.items()
        },
    }


def _draw(design: Design, seed: int) -> NDArray[np.float64]:
    X = design(random_state=seed) if callable(design) else design
    try:
        return as_numbers(X, "design")
    except TypeError:
        raise ValueError(f"design must give a table of numbers, got {shown(X)}.") from None


def _fingerprint(design: Design) -> str:
    X = _draw(design, 0)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"design must give a row of features for every item, got shape {X.shape}.")
    return fingerprint(X)


def _rows(tasks: list[Task], done: dict[Task, Finding]) -> list[dict[str, Any]]:
    return [
        {**asdict(task), "test": test, "power": adjusted, "power_unadjusted": unadjusted}
        for task in tasks
        for test, (adjusted, unadjusted) in done[task]["found"].items()
    ]


def _rows_by_column(tasks: list[Task], done: dict[Task, Finding]) -> list[dict[str, Any]]:
    return [
        {
            **asdict(task),
            "test": test,
            "column": column,
            "variance": variance,
            "pvalue": of_test["pvalue"][column],
            "significant": of_test["significant"][column],
        }
        for task in tasks
        for test, of_test in done[task]["columns"].items()
        for column, variance in enumerate(done[task]["variance"])
    ]


def _as_frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows).sort_values(["noise", "snr", "repeat"], kind="stable", ignore_index=True)


def _as_kinds(noise: Any) -> list[str]:
    kinds = _as_list(noise)
    unknown = [kind for kind in kinds if not isinstance(kind, str) or kind not in NOISES]
    if unknown or not kinds:
        got = shown(unknown[0]) if unknown else "none"
        raise ValueError(f'noise must be "features", "similarities" or a list of them, got {got}.')
    _require_distinct("noise", kinds)
    return kinds


def _as_ratios(snrs: Any) -> list[float]:
    ratios = _as_list(snrs)
    for snr in ratios:
        require_real("snrs", snr)
    wrong = [snr for snr in ratios if not 0 <= snr <= 1]
    if wrong or not ratios:
        raise ValueError(f"snrs must be between 0 and 1, got {wrong[0] if wrong else 'none'}.")
    _require_distinct("snrs", ratios)
    return [float(snr) for snr in ratios]


def _as_list(values: Any) -> list[Any]:
    """One or several, as a list; texts and arrays without a dimension are one."""
    is_one = isinstance(values, str | bytes) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0
    return [values] if is_one else list(values)


def _require_distinct(name: str, values: list[Any]) -> None:
    repeated = [value for place, value in enumerate(values) if value in values[:place]]
    if repeated:
        raise ValueError(f"{name} must be distinct, got {repeated[0]!r} more than once.")
