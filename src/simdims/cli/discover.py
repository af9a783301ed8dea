"""`simdims discover`: from a data file to dimensions and an interactive report."""

from __future__ import annotations

import argparse
import hashlib
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from simdims._parameters import ParameterError, plural
from simdims.cli import config, sources, systems
from simdims.cli import options as shared
from simdims.cli.options import Findings, UsageError
from simdims.cli.outputs import check_writable
from simdims.cli.report import add_look, pictures_of
from simdims.cli.spelling import option_of
from simdims.cli.steps import add_ranks
from simdims.cli.terminal import say

if TYPE_CHECKING:
    from simdims.discovery import Discovery
    from simdims.discovery.run import Plan
    from simdims.io.tables import Table
    from simdims.similarity import Similarity
    from simdims.systems import SimilaritySet

#: Runs longer than this, in seconds, should use a checkpoint.
_LONG = 900

#: Added to the estimated time of a search for the number of dimensions.
_LONGER = ", or several times as long if the search goes beyond the numbers of dimensions that it tries first"

#: Number of dimensions in the summary, and of items per dimension.
_N_ABOUT, _N_NAMED = 3, 3

_SHARED = (
    "key", "sheet", "na_values", "label_file", "header", "weights", "diagonal", "by", "n_items", "smoothing",
    "negative", "low", "high",
)  # fmt: skip


def add(commands: Any) -> None:
    summary = "find the dimensions behind the data in a file, and write a page to explore them"
    details = (
        "FILE may contain similarities (a matrix or a list of pairs), triplets, comparisons, ratings, word "
        "associations, features or dissimilarities. This is detected automatically; use --as to set it explicitly. "
        "A folder with one file per person or other system, and --by, keep these apart: all are fitted jointly, "
        "with weights."
    )
    example = "simdims discover animals.csv -o animals --checkpoint animals-work --jobs 2"
    parser = shared.add_command(commands, "discover", _discover, summary=summary, details=details, example=example)
    add_source(parser)
    parser.add_argument("-o", "--out", type=Path, metavar="FOLDER", help="output folder")
    add_settings(parser)
    shared.add_checkpoint(parser)
    shared.add_running(parser)
    add_look(parser)
    parser.add_argument("--no-report", action="store_true", help="write no page")
    shared.add_overwrite(parser, "an earlier result in FOLDER")
    shared.add_dry_run(parser)
    parser.usage = "%(prog)s FILE -o FOLDER [options]"
    parser.set_defaults(own=add_data_options(parser))
    config.add_config(parser)


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add FILE and --as."""
    parser.add_argument("source", metavar="FILE", type=Path, help="the data: a file, or a folder of files")
    content = f"content of FILE: {', '.join(sources.KINDS)}"
    parser.add_argument("--as", dest="kind", choices=sources.KINDS, metavar="KIND", help=content)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options that determine the number of fits and their duration."""
    add_ranks(parser)
    shared.add_alpha(parser, "auto")
    shared.add_count(parser, "n_repeats", None, "repeats of the cross-validation (default: depends on the size)")
    shared.add_count(parser, "n_runs", None, "random starts of the consensus (default: depends on the size)")
    shared.add_device(parser)


def add_data_options(parser: argparse.ArgumentParser) -> dict[str, dict[str, Any]]:
    """Add the options of each kind of data, and return their defaults by kind."""
    own: dict[str, dict[str, Any]] = {}
    sources.add_shared(parser.add_argument_group("any data"), _SHARED)
    for kind in sources.KINDS:
        group = parser.add_argument_group(f"--as {kind}")
        if kind == "matrix":
            shared.add_matrix_options(group)
        elif kind == "associations":
            sources.add_association_columns(group)
        elif kind == "dissimilarity":
            sources.add_distances(group)
        else:
            sources.SOURCES[kind].add_options(group)
        own[kind] = {}
        for action in group._group_actions:
            own[kind].setdefault(action.dest, action.default)
            # None means "not given", so that options that do not apply to the data can be refused.
            action.default, action.required = None, False
    own["associations"]["absent"] = 0.03  # shared with matrices
    own["dissimilarity"] |= dict.fromkeys(("item1", "item2", "participant"))  # shared with ratings
    return own


def _discover(options: argparse.Namespace) -> Findings:
    if options.no_report:
        shared.refuse(options, ("images", "title"), "does not apply with --no-report")
    check_folder(options.out, options.overwrite)
    _check_apart(options.out, options.checkpoint)
    S, data = read_data(options).similarity, described_file(options.source)
    pictures = None if options.images is None else pictures_of(options.images, S.labels, S.n_items)
    if options.dry_run:
        planned = plan(S, options)
        return Findings(plan_in_words(planned, options), plan_values(planned, S))
    found = run(S, options)
    found = replace(found, settings={**found.settings, "data": data})
    run_file = config.run_file(options, found.seed)
    page = not options.no_report
    return finish(found, options.out, images=pictures, title=options.title, page=page, run_file=run_file)


def check_folder(folder: Path, overwrite: bool) -> None:
    """Check before the run that results can be written to a folder and that none are overwritten."""
    from simdims.discovery import storage
    from simdims.report.writer import check_target

    storage.check_folder(folder)
    if storage.is_saved(folder) and not overwrite:
        raise FileExistsError(f"{str(folder)!r} holds an earlier result: choose another name, or pass --overwrite.")
    page = folder / "report.html"
    if page.exists():
        try:
            check_target(page)
        except (FileExistsError, ParameterError):
            other = f"{str(page)!r} is not an earlier report: move it, or choose another FOLDER."
            raise FileExistsError(other) from None
    check_writable(folder)


def described_file(path: Path) -> dict[str, str]:
    """The name and checksum of a file; the name of a folder."""
    if path.is_dir():
        return {"file": path.name}
    with path.open("rb") as file:
        return {"file": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


class Read(NamedTuple):
    """Similarities, the kind of data and how it was determined, the cells of a table, and options."""

    similarity: Similarity | SimilaritySet
    kind: str
    why: str
    table: Table | None
    options: argparse.Namespace


def read_data(options: argparse.Namespace) -> Read:
    """Read similarities of any kind from FILE; of several systems with --by, from a folder or from a saved set."""
    from simdims.io.sniffing import guess

    if systems.holds_set(options.source):
        return Read(systems.read_set(options), "set", "several systems", None, options)
    how = shared.reading(options)
    said = _said(options) or systems.kind_of_list(options.source, options.by, how)
    found = guess(options.source, how, options.header, _given(options, sources.COLUMNS), said)
    kind = found.kind
    is_open = kind == "matrix" and not said  # similarities or dissimilarities, to which --by applies
    _refuse_others(options, kind, {"by"} if is_open else set())
    values = {**options.own[kind], **found.options, **_given(options, options.own[kind])}
    settled = argparse.Namespace(**{**vars(options), **values})
    if is_open:
        return _read_matrix(settled, found.why)._replace(table=found.table)
    _say_read(options.source, found.why, guessed=not said)
    if kind == "matrix":
        return Read(shared.read_similarity(settled), kind, found.why, found.table, settled)
    if kind == "ratings":
        _require_columns(settled)
    S: Any = sources.SOURCES[kind].build(settled)
    shared.say_scale(S if options.by is None else next(iter(S)))  # all systems have the same scale
    _say_averaged(S, getattr(settled, "participant", None))
    return Read(S, kind, found.why, found.table, settled)


def _require_columns(options: argparse.Namespace) -> None:
    """Refuse ratings without a column for each role."""
    *most, last = [f"--{role}" for role in ("item1", "item2", "rating") if getattr(options, role) is None] or [""]
    if last:
        listed = f"{', '.join(most)} and {last}" if most else last
        raise UsageError(f"Cannot tell which columns hold the items and the ratings: pass {listed}.")


def _said(options: argparse.Namespace) -> str | None:
    """The kind of data from --as, or the only kind to which the given options apply."""
    if options.kind is not None:
        return str(options.kind)
    given = _given(options, {name for own in options.own.values() for name in own})
    fitting = [kind for kind in sources.KINDS if set(given) <= set(options.own[kind])]
    return fitting[0] if given and len(fitting) == 1 else None


def _given(options: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def _refuse_others(options: argparse.Namespace, kind: str, kept: Collection[str] = ()) -> None:
    """Refuse options that apply only to other data, except those `kept`."""
    everything = {*_SHARED, *(name for own in options.own.values() for name in own)}
    others = sorted(name for name in _given(options, everything) if name not in {*_options_of(options, kind), *kept})
    if others:
        flag = option_of(options.command, others[0])
        *most, last = (f"--as {one}" for one in sources.KINDS if others[0] in _options_of(options, one))
        fitting = f"{', '.join(most)} and {last}" if most else last
        because = "" if options.kind is not None else _because_of(options, kind)
        raise UsageError(f"{flag} does not apply to FILE, which was read as {kind}{because}, but to {fitting}.")


def _because_of(options: argparse.Namespace, kind: str) -> str:
    """The options that apply to no other kind of data, if there are any."""
    others = {name for own in (options.own[one] for one in options.own if one != kind) for name in own}
    flags = [str(option_of(options.command, name)) for name in _given(options, set(options.own[kind]) - others)]
    return f" because of {' and '.join(sorted(flags))}" if flags else ""


def _options_of(options: argparse.Namespace, kind: str) -> set[str]:
    of_matrices = ("key", "sheet", "na_values", "label_file", "negative", "low", "high")
    return {*(of_matrices if kind == "matrix" else sources.SOURCES[kind].shared), *options.own[kind]}


def _say_read(source: Path, why: str, *, guessed: bool = True) -> None:
    say(f"Read {source.name} as {why}{' (override with --as)' if guessed else ''}.")


def _read_matrix(options: argparse.Namespace, why: str) -> Read:
    """Read similarities, or dissimilarities if they clearly are; raise an error if that is unclear."""
    from simdims.similarity.dissimilarity import is_undecided, signs_of_dissimilarity

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*dissimilar", category=UserWarning)  # decided below
        try:
            S = shared.load_matrix(options)
        except ValueError as error:
            if getattr(error, "name", None) != "labels":  # wrong labels do not depend on what the values are
                _say_read(options.source, why)
            raise
    signs = None if S.factors is not None else signs_of_dissimilarity(S.values, S.weights, S.info)
    if not signs:
        _refuse_others(options, "matrix")
        _say_read(options.source, why)
        if S.factors is None and is_undecided(S.values, S.weights, S.info):
            say(
                "The diagonal is missing, and the values do not show whether large means similar or dissimilar. Large "
                "is taken to mean similar. If it means dissimilar, pass --as dissimilarity."
            )
        shared.say_changes(S)
        return Read(S, "matrix", why, None, options)
    if not signs.are_clear:
        unclear = f"these could be similarities or dissimilarities: {signs}"
        raise ValueError(f"{options.source.name}: {unclear}. Use --as dissimilarity, or --as matrix for similarities.")
    why = f"dissimilarities d ({signs}), which become similarities 1 - d/max(d)"
    _say_read(options.source, why)
    settled = argparse.Namespace(**{**vars(options), **options.own["dissimilarity"]})
    converted = sources.SOURCES["dissimilarity"].build(settled)
    _say_averaged(converted)
    return Read(converted, "dissimilarity", why, None, settled)


def _say_averaged(S: Similarity | SimilaritySet, people: str | None = None) -> None:
    n_matrices = getattr(S, "info", {}).get("n_people", 1)
    if isinstance(n_matrices, int) and n_matrices > 1:
        say(f"Averaged {n_matrices} matrices. Pass --by {people or 'person'} to keep them apart.")


def run(S: Similarity | SimilaritySet, options: argparse.Namespace) -> Discovery:
    """Run discover, after estimating the time."""
    from simdims.discovery import discover
    from simdims.discovery.estimate import in_words
    from simdims.discovery.run import expected_seconds

    settings = _settings(options)
    seconds = expected_seconds(S, **settings, **shared.arguments(options, "alpha"))
    is_long = seconds > _LONG and options.checkpoint is None
    more = _LONGER if options.ranks == "auto" else ""
    advice = " Add --checkpoint DIR to make the run resumable." if is_long else ""
    say(f"{shared.described(S)}{_by_features(S)}. Estimated time: {in_words(seconds)}{more}.{advice}")
    found = discover(S, **settings, **shared.arguments(options, "alpha", "checkpoint", "random_state", "progress"))
    return replace(found, estimated_seconds=seconds)


def plan(S: Similarity | SimilaritySet, options: argparse.Namespace) -> Plan:
    """Check the arguments as `run` does, and return what it would do."""
    from simdims.discovery.run import plan_discovery

    return plan_discovery(S, **_settings(options), alpha=options.alpha)


def plan_in_words(planned: Plan, options: argparse.Namespace) -> str:
    """The numbers of dimensions, folds and random starts, and the time, as text."""
    from simdims.discovery.estimate import in_words

    listed = ", ".join(map(str, planned.candidates))
    many = len(planned.candidates) > 1
    tried = f"fit {listed} {plural('dimension', planned.candidates[0])}"
    if many:
        tried = f"try {len(planned.candidates)} numbers of dimensions ({listed})"
    if planned.is_search:
        most = "" if planned.largest is None else f", at most {planned.largest:,}"
        tried = f"search for the number of dimensions (first {listed}, then others{most})"
    folds = f"{planned.n_repeats} x {planned.n_folds} folds{' each' if many else ''}"
    validated = f"cross-validate by {folds}" if planned.n_folds else f"not cross-validate ({planned.reason})"
    penalties = {"auto": "choose a penalty by held-out pairs", 0: "use no penalty"}
    penalty = penalties.get(options.alpha, f"use the penalty alpha = {options.alpha}")
    more = " or more" if planned.is_search else ""
    longer = _LONGER if planned.is_search else ""
    estimate = f"Estimated time: {in_words(planned.seconds)}{longer}."
    return (
        f"discover would {tried}, {validated}, {penalty}, and start the final fit from {planned.n_runs} random starts: "
        f"{planned.n_fits:,} fits{more}. {estimate}"
    )


def plan_values(planned: Plan, S: Similarity | SimilaritySet) -> dict[str, Any]:
    """The same as values for --json."""
    values = {"n_items": S.n_items, **planned._asdict(), "n_fits": planned.n_fits}
    return {**values, "estimated_seconds": values.pop("seconds")}


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Arguments of discover that affect the time; a single number of dimensions is given, not chosen."""
    settings = shared.arguments(options, "ranks", "sampling", "n_repeats", "n_runs", "n_jobs", "device")
    if not isinstance(options.ranks, str) and len(options.ranks) == 1:
        settings["ranks"] = options.ranks[0]
    return settings


def _by_features(S: Similarity | SimilaritySet) -> str:
    """The kernel that made similarities from features, as text; empty for other similarities."""
    kernels = {"rbf": "an RBF kernel", "linear": "the dot products", "cosine": "the cosines"}
    is_made = isinstance(S.info, Mapping) and S.info.get("source") == "features"  # the info of a set is a table
    kernel = kernels.get(str(S.info.get("kernel"))) if is_made else None
    if kernel is None:
        return ""
    signed = "n_values_negative" in S.info and "negative" not in S.info
    n = S.info.get("n_values_negative", 0)
    why = f" because {n:,} {'value is' if n == 1 else 'values are'} negative" if signed else ""
    return f", similar by {kernel} of {S.info['n_features']} features{why}"


def finish(
    found: Discovery, folder: Path, *, images: Any, title: str | None, page: bool = True, run_file: str | None = None
) -> Findings:
    """Save the results and the options of the run, write the report, and summarise both."""
    from simdims._journal import replacing
    from simdims.discovery.storage import RUN_FILE

    found.save(folder)
    if run_file is not None:
        with replacing(folder / RUN_FILE) as part:
            part.write_text(run_file, encoding="utf-8")
    try:
        report = found.report(folder / "report.html", images=images, title=title) if page else None
    except Exception:
        say(f"Results: {folder}. The page was not written; `simdims report {folder}` writes it again.")
        raise
    told = findings(found)
    words = [*told, f"Results: {folder}", *([] if report is None else [f"Report: {report}"])]
    selection = None
    if found.selection is not None:
        every = found.selection.to_dict().items()
        selection = {name: value for name, value in every if name not in ("scores", "calibration")}
    values: dict[str, Any] = {"folder": folder, "report": report, "findings": told}
    values |= {name: getattr(found, name) for name in ("n_items", "n_components", "evidence_of_structure", "metrics")}
    values |= {"alpha": found.consensus.alpha, "dimensions": found.dimensions_frame().reset_index()}
    detectable = None if found.detectable is None else found.detectable.rank
    values |= {"selection": selection, "detectable_dimensions": detectable, "settings": found.settings}
    if found.weights is not None:
        values["systems"] = None if found.systems is None else found.systems.to_dict()
        values["noise_ceiling"] = _ceiling(found)
        values["weights"] = found.weights_frame().rename_axis("system").reset_index()
    return Findings("\n".join(words), values, found.seed)


def _ceiling(found: Discovery) -> dict[str, float | None] | None:
    """The noise ceiling in R2, and the share of its upper bound that the same weights for all systems reach."""
    if found.noise_ceiling is None:
        return None
    lower, upper = found.noise_ceiling
    return {"lower": lower, "upper": upper, "share": found.share_of_ceiling}


def findings(found: Discovery) -> list[str]:
    """The main results: evidence of structure, number of dimensions, fit, reliability, and top-loading items."""
    from simdims.consensus.result import penalty_words
    from simdims.report.systems import outliers_in_words, unusual_systems

    many = found.n_components > 1
    number = f"{found.n_components} {'dimensions' if many else 'dimension'} of {found.n_items:,} items"
    if found.weights is not None:
        number += f" in {len(found.weights):,} {plural('system', len(found.weights))}"
    selection = found.selection
    if selection is None:
        number += ", as asked for."
    else:
        sentences = [f"{number}{selection.resamples()}: {selection.choice()}.", selection.edge(), found.detected()]
        number = " ".join(sentence for sentence in sentences if sentence)
    reliability = found.consensus.reliability
    figures = [found.held_out_words]
    if (explained := found.metrics.get("explained_variance")) is not None:
        share = f"{explained:.1%}" if explained > 0 else "none"
        figures.append(f"in sample, {'they explain' if many else 'it explains'} {share} of the variance")
    figures.append(
        f"mean reliability across random starts {reliability.mean():.2f}, lowest {reliability.min():.2f}, over "
        f"{found.consensus.n_runs} runs{penalty_words(found.consensus.alpha)}"
    )
    shares = enumerate(found.dimensions_frame().head(_N_ABOUT)["share"])
    about = "; ".join(f"dimension {k + 1} ({share:.0%}): {_some_items(found, k)}" for k, share in shares)
    verdict = [] if found.held_out is None or found.held_out.is_evidence else [found.held_out.verdict()]
    of_systems = [] if found.systems is None else [found.systems.summary()]
    of_systems += [] if found.noise_ceiling is None else [found.noise_ceiling_words]
    of_systems += [] if found.weights is None else [" ".join(outliers_in_words(unusual_systems(found)))]
    return [
        *verdict,
        number,
        f"{'; '.join(figures)}.",
        *filter(None, of_systems),
        f"{'Largest first: ' if many else ''}{about if many else about.capitalize()}.",
    ]


def _some_items(found: Discovery, k: int) -> str:
    """The top-loading items of a dimension."""
    column = found.embedding[:, k]
    top = [item for item in (-column).argsort(kind="stable")[:_N_NAMED] if column[item] > 0]
    if found.labels is None:
        return ", ".join(f"item {item}" for item in top)
    return ", ".join(" ".join(found.labels[item].split()) or f"(item {item}, no name)" for item in top)


def _check_apart(out: Path, checkpoint: Path | None) -> None:
    if checkpoint is None:
        return
    one, other = out.resolve(), checkpoint.resolve()
    if one == other or one in other.parents or other in one.parents:
        raise ValueError(f"FOLDER and --checkpoint must be separate folders, got {str(out)!r} and {str(checkpoint)!r}.")
