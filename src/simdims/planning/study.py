"""plan_study: learning curves of simulated studies, from a pilot or from given dimensions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims import _threads
from simdims._journal import Work, fingerprint, working
from simdims._parallel import check_n_jobs, seed_of
from simdims._parameters import ParameterError, require_between, require_choice, require_count, require_number, shown
from simdims._progress import Callback
from simdims.joint import fingerprint_of, problem_of_set
from simdims.metrics import factor_alignment, triplet_accuracy
from simdims.metrics._embedding import as_embedding, below_one, embedding_table
from simdims.metrics._pairs import pair_products
from simdims.metrics.choices import is_embedding
from simdims.planning.result import METRICS, StudyPlan, learning_curves
from simdims.planning.world import STUDY, Pilot, World, designed, estimated, fitted, pilot_of, r_squared
from simdims.similarity import Similarity, as_similarity
from simdims.similarity.arrays import arrays_of
from simdims.systems import SimilaritySet

#: Share of the pairs that is held out if a study judges nearly all of them.
_HELD_OUT = 0.1
#: Number of triplets for evaluating an embedding.
_N_TRIPLETS = 20_000


class Study(NamedTuple):
    """One simulated study: the share of pairs, answers per pair, people (None: each answers once), and repeat."""

    pairs: float
    answers: int
    people: int | None
    repeat: int


class Source(NamedTuple):
    """What a plan starts from: the true embedding of a design, or a pilot and its number of dimensions, if given."""

    W: NDArray[np.float64] | None
    pilot: Similarity | SimilaritySet | None
    n_components: int | None


def plan_study(
    source: Any,
    *,
    pairs: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0),
    answers: int | Sequence[int] = (1, 2, 5),
    people: int | Sequence[int] | None = None,
    target: float = 0.9,
    metric: str = "alignment",
    n_components: int | None = None,
    snr: float | None = None,
    spread: float | None = None,
    n_repeats: int = 5,
    checkpoint: str | os.PathLike[str] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: bool | Callback | None = None,
) -> StudyPlan:
    """Estimate how many pairs, answers and people a study needs, by simulating studies of different sizes.

    Each simulated study collects a given number of answers for each of a random subset of the pairs. SRF is fitted to
    the mean answers, with the true number of dimensions and a penalty chosen by cross-validation, and compared with the
    truth.

    Parameters
    ----------
    source : similarities, SimilaritySet, Discovery, or embedding of shape (n_items, n_components)
        A pilot or a design. From a pilot (Similarity or anything `as_similarity` takes; SimilaritySet with one system
        per person; Discovery) the dimensions, the noise of an answer and the differences between people are estimated.
        Weights of pairs are taken as numbers of answers; without weights, a value counts as one answer. An embedding,
        such as from `simdims.simulate`, is taken as the truth and must not be square.
    pairs : sequence of float, default=(0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
        Shares of all pairs to ask about. Every item is in at least one pair, so a share must allow for n_items / 2
        pairs; smaller default ones are omitted.
    answers : int or sequence of int, default=(1, 2, 5)
        Answers per pair, each from a different person.
    people : int or sequence of int, optional
        Number of people who share the answers. By default each person answers once. Only for `spread` > 0: if people do
        not differ, only the number of answers matters.
    target : float, default=0.9
        Value of `metric` to reach.
    metric : {"alignment", "held_out_r2", "reported_r2", "triplet_accuracy"}, default="alignment"
        The measure to which the target applies; the table has all of them.
    n_components : int, optional
        Number of dimensions of a pilot; by default it is selected by cross-validation.
    snr : float, optional
        Signal-to-noise ratio of one answer: the share of the signal in its variance, above 0, at most 1. By default it
        is estimated from a pilot, and 0.5 for a design.
    spread : float, optional
        Standard deviation of people's weights on dimensions, with mean 1 (see `JointSRF`). By default it is estimated
        from a SimilaritySet, and otherwise 0.
    n_repeats : int, default=5
        Simulated studies per size.
    checkpoint : path, optional
        A folder in which every finished study is saved. An interrupted call resumes from it, with the same result; more
        sizes and repeats can be added later.
    random_state : int, RandomState or None, default=None
        Random seed; None draws one, or takes that of the checkpoint.
    n_jobs, progress
        As in `simdims.dimension_test`.

    Returns
    -------
    StudyPlan
        ``table`` has the learning curves, ``needed()`` the sizes that reach the target.

    See Also
    --------
    simdims.plots.study_plan : the learning curves as a figure.
    simdims.simulate.power_study : the power of tests of hypotheses.

    Notes
    -----
    From a pilot, the noise is chosen such that simulated pilots predict their held-out pairs as well as the real one
    does. A pilot shows only the dimensions that it can detect; if a larger study would find more of them, it needs more
    pairs than planned.

    Examples
    --------
    >>> from simdims import plan_study, simulate
    >>> W = simulate.dirichlet(40, 3, alpha=0.3, random_state=0)
    >>> plan = plan_study(W, pairs=[0.1, 0.3, 1.0], answers=1, n_repeats=2, random_state=0)
    >>> plan.table[["n_pairs", "answers"]].to_numpy().tolist()
    [[78, 1], [234, 1], [780, 1]]
    >>> bool(plan.table["alignment"].iloc[-1] > 0.9)
    True
    """
    require_choice("metric", metric, tuple(METRICS))
    require_between("target", target, 0, 1, strictly=True)
    require_count("n_repeats", n_repeats)
    check_n_jobs(n_jobs)
    if snr is not None:
        require_between("snr", snr, 0, 1)
        if snr == 0:
            raise ParameterError("snr", "must be above 0", "0")
    if spread is not None:
        require_number("spread", spread, "at least 0")
    snr, spread = (None if value is None else float(value) for value in (snr, spread))
    given = _source(source, n_components)
    described = partial(_settings, given, snr, spread)
    with working("plan_study", described, checkpoint, random_state, n_jobs, progress) as work:
        world, pilot = _world(given, snr, spread, work)
        sizes = _sizes(pairs, answers, people, len(world.W), world.spread)
        studies = [Study(*size, repeat) for repeat in range(int(n_repeats)) for size in sizes]
        rows = {Study(*(one[name] for name in Study._fields)): one["found"] for one in work.records("study")}
        missing = [study for study in studies if study not in rows]
        work.reporter.begin("studies", len(studies), done=len(studies) - len(missing))
        for study, found in work.runner(_simulate, (world, work.root))(missing):
            rows[study] = found
            if work.journal is not None:
                work.journal.append({"kind": "study", **study._asdict(), "found": found})
            work.reporter.step(f"{study.pairs:.0%} of the pairs")
    n_items, n_components = world.W.shape
    table = learning_curves([{**study._asdict(), **rows[study]} for study in studies], n_items)
    facts: dict[str, Any] = {"n_items": n_items, "n_components": n_components, "snr": world.snr, "spread": world.spread}
    asked: dict[str, Any] = {"metric": metric, "target": float(target), "n_repeats": int(n_repeats), "seed": work.seed}
    return StudyPlan(table=table, pilot=pilot, **asked, **facts)


def _source(source: Any, n_components: Any) -> Source:
    """The design or the pilot, checked."""
    given = source
    if hasattr(source, "consensus"):  # a Discovery
        n_components = source.n_components if n_components is None else n_components
        given = source.similarity
    elif not isinstance(source, Similarity | SimilaritySet) and is_embedding(embedding_table(source), "source"):
        if n_components is not None:
            raise ParameterError("n_components", "must be None where {source} is an embedding", shown(n_components))
        W, _ = as_embedding(source, "source")
        if len(W) < 4 or (W < 0).any():
            rule = "must be a non-negative embedding of at least 4 items"
            raise ParameterError("source", rule, f"shape {W.shape}, smallest loading {W.min():g}")
        is_constant = np.ptp(W, axis=0) <= 1e-12 * W.max(axis=0)
        if is_constant.any():
            place = int(np.argmax(is_constant))
            got = f"{W[0, place]:g} for every item in column {place}"
            raise ParameterError("source", "must have dimensions that vary over the items", got, "leave it out")
        return Source(below_one(W), None, None)
    similarity = given if isinstance(given, SimilaritySet) else as_similarity(given, copy=False)
    if n_components is not None:
        require_count("n_components", n_components, at_most=similarity.n_items)
    return Source(None, similarity, None if n_components is None else int(n_components))


def _settings(source: Source, snr: float | None, spread: float | None) -> dict[str, Any]:
    """The settings that a checkpoint must agree on; not the sizes and repeats, so that more can be added."""
    if isinstance(source.pilot, SimilaritySet):
        data = fingerprint_of(problem_of_set(source.pilot))
    else:
        data = fingerprint(source.W) if source.pilot is None else fingerprint(*arrays_of(source.pilot))
    return {"data": data, "n_components": source.n_components, "snr": snr, "spread": spread}


def _world(
    source: Source, snr: float | None, spread: float | None, work: Work
) -> tuple[World, dict[str, float] | None]:
    """The model to simulate studies from, and information about the pilot: from the checkpoint, or estimated now."""
    if source.W is not None:
        return designed(source.W, 0.5 if snr is None else snr, spread or 0.0), None
    assert source.pilot is not None
    for record in work.records("pilot"):
        if (W := work.kept("dimensions")) is not None:
            return World(W, record["noise"], record["spread"]), record["facts"]
    judged = pilot_of(source.pilot)
    world, found = estimated(source.pilot, judged, source.n_components, spread, work.root)
    if snr is not None:
        world = designed(world.W, snr, world.spread)
    pilot = {"pairs": judged.share, "answers": float(judged.answers.mean()), "held_out_r2": found}
    if work.journal is not None:
        work.journal.keep("dimensions", world.W)
        work.journal.append({"kind": "pilot", "noise": world.noise, "spread": world.spread, "facts": pilot})
    return world, pilot


def _sizes(pairs: Any, answers: Any, people: Any, n_items: int, spread: float) -> list[tuple[float, int, int | None]]:
    """All study sizes, checked."""
    least = np.ceil(n_items / 2) / (n_items * (n_items - 1) / 2)
    shares = _values("pairs", pairs, whole=False)
    is_default = list(shares) == [0.05, 0.1, 0.2, 0.4, 0.7, 1.0]
    shares = [share for share in shares if share >= least] if is_default else shares
    for share in shares:
        require_between("pairs", share, 0, 1)
        if share < least:
            rule = f"must allow for every item to be in a pair, that is be at least {least:.3g} for {n_items} items"
            raise ParameterError("pairs", rule, f"{share:g}")
    per_pair = _values("answers", answers, whole=True)
    groups: list[Any] = [None] if people is None else _values("people", people, whole=True)
    if people is not None and spread == 0:
        rule = "has no effect if people do not differ: only the number of answers counts"
        raise ParameterError("people", rule, shown(people), "pass {spread}, or a SimilaritySet of several people")
    if people is not None and min(groups) < max(per_pair):
        rule = f"must be at least the largest number of answers per pair, {max(per_pair)}"
        raise ParameterError("people", rule, f"{min(groups)}")
    return [(float(share), int(m), who) for who in groups for m in per_pair for share in shares]


def _values(name: str, values: Any, *, whole: bool) -> list[Any]:
    """One or several positive numbers as a sorted list."""
    is_one = not isinstance(values, Iterable) or isinstance(values, str | bytes) or getattr(values, "ndim", 1) == 0
    listed: list[Any] = [values] if is_one else list(values)
    if not listed:
        raise ParameterError(name, "must hold at least one number", "none")
    for value in listed:
        if whole:
            require_count(name, value)
        else:
            require_number(name, value, "positive")
    return sorted(set(listed))


def _simulate(world: World, root: int, study: Study) -> tuple[Study, dict[str, float]]:
    """Draw the answers of one study, fit them and compare with the truth, with one BLAS thread."""
    n_items, n_components = world.W.shape
    # Within a repeat, the pairs of a smaller study are a subset of those of a larger one.
    order = pair_order(n_items, np.random.default_rng(seed_of(root, STUDY, study.repeat)))
    n_judged = round(study.pairs * len(order[0]))
    key = (STUDY, study.repeat, n_judged, study.answers, study.people or 0)
    values = world.judgements(order, study.answers, study.people, np.random.default_rng(seed_of(root, *key)))
    judged = Pilot(order, values, np.full(len(values), float(study.answers)), n_items)
    n_train = min(n_judged, int(np.floor((1 - _HELD_OUT) * len(values))))
    place, seed = np.arange(len(values)), seed_of(root, *key, 1)
    with _threads.one_blas_thread():
        W = fitted(judged, values, place < n_judged, n_components, seed)
        trained = W if n_train == n_judged else fitted(judged, values, place < n_train, n_components, seed)
    test = (order[0][n_train:], order[1][n_train:])
    predicted = pair_products(trained, *test)
    return study, {
        "alignment": factor_alignment(W, world.W).mean,
        "held_out_r2": r_squared(world.truth(test), predicted),
        "reported_r2": r_squared(values[n_train:], predicted),
        "triplet_accuracy": triplet_accuracy(W, _true_triplets(world.W, seed_of(root, STUDY, study.repeat, 1))),
    }


def pair_order(n_items: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All pairs in random order, except that the first ones cover every item."""
    rows, columns = np.triu_indices(n_items, 1)
    items = rng.permutation(n_items)
    items = np.append(items, items[: n_items % 2])
    one, other = np.sort(items.reshape(-1, 2), axis=1).T
    is_first = np.zeros((n_items, n_items), dtype=bool)
    is_first[one, other] = True
    others = rng.permutation(np.flatnonzero(~is_first[rows, columns]))
    return np.concatenate([one, rows[others]]), np.concatenate([other, columns[others]])


def _true_triplets(W: NDArray[np.float64], seed: int) -> NDArray[np.intp]:
    """Random triplets with their true odd one out last; ties are excluded."""
    items = np.random.default_rng(seed).integers(len(W), size=(_N_TRIPLETS, 3))
    a, b, c = items.T
    items = items[(a != b) & (a != c) & (b != c)]
    a, b, c = items.T
    support = np.stack([pair_products(W, b, c), pair_products(W, a, c), pair_products(W, a, b)], axis=1)
    is_clear = np.sort(support, axis=1)[:, 2] > np.sort(support, axis=1)[:, 1] * (1 + 1e-9)
    order = np.array([[1, 2, 0], [0, 2, 1], [0, 1, 2]])[support.argmax(axis=1)]
    return np.take_along_axis(items, order, axis=1)[is_clear]
