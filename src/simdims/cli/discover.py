"""`simdims discover`: from a data file to a page, the main job."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims.cli import sources
from simdims.cli.options import (
    Findings,
    UsageError,
    add_checkpoint,
    add_command,
    add_device,
    add_matrix_options,
    add_overwrite,
    add_running,
    described,
    load_matrix,
    option_of,
    progress_of,
    read_similarity,
    say_changes,
    say_scale,
)
from simdims.cli.outputs import check_place
from simdims.cli.report import add_look, pictures_of
from simdims.cli.selection import ranks
from simdims.cli.terminal import say

if TYPE_CHECKING:
    from simdims.discovery import Discovery
    from simdims.similarity import Similarity

#: Work that takes longer than this, in seconds, should be kept as it goes.
_LONG = 900

#: Dimensions that the last line names, and items of each.
_N_ABOUT, _N_NAMED = 3, 3

_SHARED = ("key", "label_file", "header", "weights", "negative", "low", "high")


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "discover",
        _discover,
        summary="find the dimensions behind a data file, and write a page to explore them",
        details=(
            "FILE may hold similarities (a matrix or a list of pairs), triplets, ratings, word associations, features "
            "or dissimilarities: it is looked at, and --as says it where that does not tell."
        ),
        example="simdims discover animals.csv -o animals --checkpoint animals-work --jobs 2",
    )
    parser.add_argument("source", metavar="FILE", type=Path, help="the data")
    parser.add_argument("-o", "--out", type=Path, metavar="FOLDER", required=True, help="the folder to write")
    parser.add_argument(
        "--as", dest="kind", choices=sources.KINDS, metavar="KIND", help=f"what FILE holds: {', '.join(sources.KINDS)}"
    )
    parser.add_argument(
        "--ranks", type=ranks, default="auto", metavar="RANKS", help="auto (default), one number, or as 2:30 or 5:60:5"
    )
    parser.add_argument("--sampling", type=float, help="share of the pairs to train on (default: calibrated)")
    parser.add_argument("--repeats", type=int, metavar="N", help="repeats of the cross-validation (default by size)")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of the consensus (default by size)")
    add_device(parser)
    add_checkpoint(parser)
    add_running(parser)
    add_look(parser)
    parser.add_argument("--no-report", action="store_true", help="write no page")
    add_overwrite(parser, "an earlier result in FOLDER")
    parser.usage = "%(prog)s FILE -o FOLDER [options]"
    parser.set_defaults(own=_add_data_options(parser))


def _add_data_options(parser: argparse.ArgumentParser) -> dict[str, dict[str, Any]]:
    """Add what may have to be said about the data, in a group for each kind; returns the defaults, by kind."""
    own: dict[str, dict[str, Any]] = {}
    sources.add_shared(parser.add_argument_group("any data"), _SHARED)
    for kind in sources.KINDS:
        group = parser.add_argument_group(f"--as {kind}")
        if kind == "matrix":
            add_matrix_options(group)
        elif kind == "associations":
            sources.add_association_columns(group)
        else:
            sources.SOURCES[kind].add_options(group)
        own[kind] = {}
        for action in group._group_actions:
            own[kind].setdefault(action.dest, action.default)
            # None is "not said", so that what does not go with the data can be refused.
            action.default, action.required = None, False
    own["associations"]["absent"] = 0.03  # an option that it shares with a matrix
    return own


def _discover(options: argparse.Namespace) -> Findings:
    _refuse_unused(options)
    check_folder(options.out, options.overwrite)
    _check_apart(options.out, options.checkpoint)
    S = read_data(options)
    pictures = None if options.images is None else pictures_of(options.images, S.labels, S.n_items)
    found = run(S, options)
    return finish(found, options.out, images=pictures, title=options.title, page=not options.no_report)


def _refuse_unused(options: argparse.Namespace) -> None:
    """Refuse options that would be ignored."""
    for name in ("images", "title"):
        if options.no_report and getattr(options, name) is not None:
            raise UsageError(f"--{name} must be left out with --no-report: it is for the page.")


def check_folder(folder: Path, overwrite: bool) -> None:
    """Refuse before the work a folder that results could not, or should not, be written to."""
    from simdims.discovery import storage
    from simdims.report.writer import check_target

    storage.check_folder(folder)
    if storage.is_saved(folder) and not overwrite:
        raise FileExistsError(
            f"FOLDER must be new or empty, got {str(folder)!r}, which holds an earlier result: choose another name, or "
            "pass --overwrite."
        )
    if (folder / "report.html").exists():
        check_target(folder / "report.html")
    check_place(folder, "FOLDER")


def read_data(options: argparse.Namespace) -> Similarity:
    """Similarities of whatever FILE holds."""
    from simdims.cli import kinds

    said = _said(options)
    found = kinds.guess(options.source, options.key, options.header, _given(options, sources.COLUMNS), said)
    kind = found.kind
    _refuse_strangers(options, kind)
    values = {**options.own[kind], **found.options, **_given(options, options.own[kind])}
    settled = argparse.Namespace(**{**vars(options), **values})
    if kind == "matrix" and not said:
        return _read_matrix(settled, found.why)
    _say_read(options.source, found.why, guessed=not said)
    if kind == "matrix":
        return read_similarity(settled)
    if kind == "ratings" and None in (settled.item1, settled.item2, settled.rating):
        raise UsageError("--as ratings needs the columns: pass --item1, --item2 and --rating.")
    S = sources.SOURCES[kind].build(settled)
    say_scale(S)
    return S


def _said(options: argparse.Namespace) -> str | None:
    """The kind of data that --as says, or that alone has the options which are given."""
    if options.kind is not None:
        return str(options.kind)
    given = _given(options, {name for own in options.own.values() for name in own})
    fitting = [kind for kind in sources.KINDS if set(given) <= set(options.own[kind])]
    return fitting[0] if given and len(fitting) == 1 else None


def _given(options: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def _refuse_strangers(options: argparse.Namespace, kind: str) -> None:
    """Refuse options that say something about other data."""
    everything = {*_SHARED, *(name for own in options.own.values() for name in own)}
    strangers = sorted(name for name in _given(options, everything) if name not in options_of(options, kind))
    if strangers:
        flag = option_of(options.command, strangers[0])
        fitting = [f"--as {one}" for one in sources.KINDS if strangers[0] in options_of(options, one)]
        raise UsageError(f"{flag} does not apply to FILE, which was read as {kind}; it is for {' or '.join(fitting)}.")


def options_of(options: argparse.Namespace, kind: str) -> set[str]:
    """The options that say something about a kind of data."""
    shared = ("key", "label_file", "negative", "low", "high") if kind == "matrix" else sources.SOURCES[kind].shared
    return {*shared, *options.own[kind]}


def _say_read(source: Path, why: str, *, guessed: bool = True) -> None:
    say(f"Read {source.name} as {why}{' (override with --as)' if guessed else ''}.")


def _read_matrix(options: argparse.Namespace, why: str) -> Similarity:
    """Read similarities; or, where it is clear that they are dissimilarities, those; or ask, where it is not."""
    from simdims.similarity.dissimilarity import is_undecided, signs_of_dissimilarity

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="values looks like a dissimilarity matrix", category=UserWarning)
        try:
            S = load_matrix(options)
        except ValueError:
            _say_read(options.source, why)
            raise
    signs = None if S.factors is not None else signs_of_dissimilarity(S.values, S.weights, S.info)
    if not signs:
        _say_read(options.source, why)
        if S.factors is None and is_undecided(S.values, S.weights, S.info):
            say(
                "The diagonal is missing, and the values do not show whether large ones mean similar or dissimilar; "
                "large is taken to mean similar. If it means dissimilar, pass --as dissimilarity."
            )
        say_changes(S)
        return S
    if not signs.are_clear:
        raise ValueError(
            f"{options.source.name}: these could be similarities or dissimilarities: {signs}. Use --as dissimilarity, "
            "or --as matrix for similarities."
        )
    _say_read(options.source, f"dissimilarities d ({signs}), which become similarities 1 - d/max(d)")
    settled = argparse.Namespace(**{**vars(options), **options.own["dissimilarity"]})
    return sources.SOURCES["dissimilarity"].build(settled)


def run(S: Similarity, options: argparse.Namespace) -> Discovery:
    """Discover, after saying how long it will take."""
    from simdims.discovery import discover
    from simdims.discovery.estimate import in_words
    from simdims.discovery.run import expected_seconds

    one = options.ranks[0] if not isinstance(options.ranks, str) and len(options.ranks) == 1 else None
    arguments = {
        "ranks": options.ranks if one is None else one,
        "sampling": options.sampling,
        "n_repeats": options.repeats,
        "n_runs": options.runs,
        "n_jobs": options.jobs,
        "device": options.device,
    }
    seconds = expected_seconds(S, **arguments)
    is_long = seconds > _LONG and options.checkpoint is None
    advice = ". Add --checkpoint DIR to make the run resumable" if is_long else ""
    say(f"{described(S)}{_by_features(S)}: this will take about {in_words(seconds)}{advice}")
    found = discover(
        S,
        **arguments,
        checkpoint=options.checkpoint,
        random_state=options.seed,
        progress=progress_of(options),
    )
    return replace(found, estimated_seconds=seconds)


def _by_features(S: Similarity) -> str:
    """How similarities came of features, which a kernel that was not asked for leaves open."""
    kernels = {"rbf": "an RBF kernel", "linear": "the dot products", "cosine": "the cosines"}
    kernel = kernels.get(str(S.info.get("kernel"))) if S.info.get("source") == "features" else None
    if kernel is None:
        return ""
    signed = "n_values_negative" in S.info and "negative" not in S.info
    n = S.info.get("n_values_negative", 0)
    why = f" because {n:,} {'value is' if n == 1 else 'values are'} negative" if signed else ""
    return f", similar by {kernel} of {S.info['n_features']} features{why}"


def finish(found: Discovery, folder: Path, *, images: Any, title: str | None, page: bool = True) -> Findings:
    """Save everything, write the page beside it, and say what was found."""
    found.save(folder)
    report = found.report(folder / "report.html", images=images, title=title) if page else None
    told = findings(found)
    words = [*told, f"Results: {folder}", *([] if report is None else [f"Report: {report}"])]
    selection = None if found.selection is None else found.selection.to_dict()
    for name in ("scores", "calibration"):
        if selection is not None:
            del selection[name]
    values = {
        "folder": folder,
        "report": report,
        "findings": told,
        "n_items": found.n_items,
        "n_components": found.n_components,
        "evidence_of_structure": found.evidence_of_structure,
        "metrics": found.metrics,
        "dimensions": found.dimensions_frame().reset_index(),
        "selection": selection,
        "settings": found.settings,
    }
    return Findings("\n".join(words), values, found.seed)


def findings(found: Discovery) -> list[str]:
    """What matters: whether there is anything, how many dimensions and why, how good and how stable, what they are."""
    many = found.n_components > 1
    number = f"{found.n_components} {'dimensions' if many else 'dimension'} of {found.n_items:,} items"
    selection = found.selection
    if selection is None:
        number += ", as asked for."
    else:
        number = f"{number}: {selection.choice()}. {selection.edge()}".rstrip()
    reliability = found.consensus.reliability
    figures = [found.held_out_words]
    explained = found.metrics.get("explained_variance")
    if explained is not None:
        share = f"{explained:.1%}" if explained > 0 else "none"
        figures.append(f"in sample, {'they explain' if many else 'it explains'} {share} of the variance")
    figures.append(
        f"mean reliability across random starts {reliability.mean():.2f}, lowest {reliability.min():.2f}, over "
        f"{found.consensus.n_runs} runs"
    )
    frame = found.dimensions_frame().head(_N_ABOUT)
    about = "; ".join(
        f"dimension {k + 1} ({row.share:.0%}): {_some_items(found, k)}" for k, row in enumerate(frame.itertuples())
    )
    verdict = [] if found.held_out is None or found.held_out.is_evidence else [found.held_out.verdict()]
    return [*verdict, number, f"{'; '.join(figures)}.", f"{'Largest first' if many else 'It is'}: {about}."]


def _some_items(found: Discovery, k: int) -> str:
    """The items that have most of a dimension, as one line."""
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
        raise ValueError(f"FOLDER must lie apart from the checkpoint, got {str(out)!r} and {str(checkpoint)!r}.")
