"""`simdims report` and `simdims plot`: a page or a figure from a folder written by `simdims discover`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims._dependencies import library
from simdims._parameters import shortlist
from simdims.cli import options as shared
from simdims.cli.inference import read_properties, with_levels
from simdims.cli.options import Findings, UsageError
from simdims.cli.outputs import FIGURES, check_writable, write_figure
from simdims.cli.spelling import option_of
from simdims.cli.steps import ranks
from simdims.cli.systems import add_info, column_of_systems
from simdims.cli.uncertainty import compare_with, plain_comparison, readings

if TYPE_CHECKING:
    from simdims.discovery import Discovery
    from simdims.inference import EmbeddingComparison, HypothesisTests
    from simdims.uncertainty import Bootstrap

#: The figures of `simdims plot`: the function in simdims.plots, and a description.
PLOTS = {
    "dimensions": ("dimension_grid", "the top-loading items of each dimension"),
    "rank-selection": ("rank_selection", "held-out error against the number of dimensions"),
    "calibration": ("calibration", "calibration of the fraction of pairs to train on"),
    "reliability": ("reliability", "how reproducible each dimension is across random starts"),
    "similarities": ("similarity_heatmap", "the similarities as a heatmap"),
    "reconstruction": ("reconstruction", "observed against predicted similarities"),
    "map": ("embedding_map", "a map of the items"),
    "weights": ("system_weights", "the weights of several systems, by group with --by"),
    "uncertainty": ("uncertainty", "intervals of the shares of dimensions, or of the loadings on --dimension"),
    "panel": ("figure_panel", "a figure for a paper: top items, rank selection, reliability, and --tests"),
}
#: The figures that an option applies to.
_APPLIES = {
    "images": ("dimensions", "panel"),
    "page": ("dimensions",),
    "by": ("weights",),
    "info": ("weights",),
    "tests": ("panel",),
    "width": ("panel",),
    "uncertainty": ("uncertainty",),
    "dimension": ("uncertainty",),
}
#: Dimensions per page of the figure `dimensions`.
_PER_PAGE = 12
_N_PERMUTATIONS = 1000


def add(commands: Any) -> None:
    summary = "write an interactive page of a discover result or an embedding: one HTML file that needs no network"
    example = "simdims report animals --images pictures --tests properties.csv --labels name"
    parser = shared.add_command(commands, "report", _report, summary=summary, example=example)
    shared.add_folder(parser, "RESULT", ", or a file with an embedding, one row per item")
    shared.add_key(parser, "embedding")
    out = "output file: .html (default: report.html in the folder RESULT)"
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help=out)
    add_look(parser)
    _add_tests(parser, " for --tests, --lineage and --compare")
    suggestions = "names of dimensions to suggest to the reader: a .csv file written by `simdims label`"
    parser.add_argument("--suggestions", type=Path, metavar="NAMES", help=suggestions)
    names = (
        "name the dimensions, on the page and in the folder RESULT: a file that the page saved (.json or .csv), or a "
        "table with columns dimension and name"
    )
    parser.add_argument("--names", type=Path, metavar="FILE", help=names)
    lineage = (
        "show how dimensions split as their number grows: fits each number in RANKS, such as 2:12 (default: those "
        "that discover tried, up to twice the selected one)"
    )
    parser.add_argument("--lineage", type=ranks, nargs="?", const="auto", metavar="RANKS", help=lineage)
    uncertainty = "show intervals and how often dimensions came back: an .npz file written by `simdims bootstrap`"
    parser.add_argument("--uncertainty", type=Path, metavar="FILE", help=uncertainty)
    compare = "show the dimensions shared with other embeddings: files, or folders written by `simdims discover`"
    parser.add_argument("--compare", type=Path, nargs="+", metavar="OTHER", help=compare)
    item = "the column of OTHER, or of the file RESULT, with the labels (default: item)"
    parser.add_argument("--item", metavar="COLUMN", help=item)
    shared.add_label_file(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace FILE even if it is not an earlier report")
    _add_plot(commands)


def add_look(parser: argparse.ArgumentParser) -> None:
    """Add the options of the report page."""
    _add_images(parser)
    parser.add_argument("--title", metavar="TEXT", help="the heading of the page")


def pictures_of(folder: Path, labels: Sequence[str] | None, n_items: int) -> list[Path]:
    """The picture of each item in a folder: by label, or without labels in alphabetical order."""
    if not folder.is_dir():
        raise FileNotFoundError(f"No such folder: {str(folder)!r}.")
    library("PIL.Image", "--images", '"simdims[report]"')
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if labels is None:
        if len(files) != n_items:
            raise ValueError(f"--images must have one picture for each of the {n_items} items, got {len(files)} files.")
        return files
    by_stem = {path.stem: path for path in files}
    missing = [label for label in labels if label not in by_stem]
    if missing:
        got = f"none of {shortlist([repr(label) for label in missing])} in {str(folder)!r}"
        raise ValueError(f"--images must have a picture of each item, named after its label, got {got}.")
    return [by_stem[label] for label in labels]


def _add_tests(parser: argparse.ArgumentParser, of_seed: str) -> None:
    tests = "test which properties the dimensions encode, and show the results; a table with one row per item"
    parser.add_argument("--tests", type=Path, metavar="PROPERTIES", help=tests)
    shared.add_label_column(parser, "PROPERTIES")
    matching = "how properties are matched with dimensions; see `simdims test --help`"
    parser.add_argument("--matching", choices=["auto", "joint", "separate"], help=matching)
    shared.add_count(parser, "n_permutations", None, f"number of permutations for --tests (default {_N_PERMUTATIONS})")
    shared.add_seed(parser, of=of_seed)


def _add_images(parser: argparse.ArgumentParser) -> None:
    images = (
        "a folder with one picture per item; file names must match the labels (without labels: files are used in "
        "alphabetical order)"
    )
    parser.add_argument("--images", type=Path, metavar="DIR", help=images)


def _add_plot(commands: Any) -> None:
    summary = "draw publication figures from a discover result"
    example = "simdims plot dimensions animals -o dimensions.pdf"
    parser = shared.add_command(commands, "plot", _plot, summary=summary, example=example)
    shown = "; ".join(f"{name}: {what}" for name, (_, what) in PLOTS.items())
    parser.add_argument("picture", metavar="FIGURE", choices=list(PLOTS), help=shown)
    shared.add_folder(parser)
    _add_images(parser)
    shared.add_count(parser, "page", None, "which page of dimensions (FIGURE dimensions)")
    parser.add_argument("--by", metavar="COLUMN", help="groups of the systems: a column of their info (FIGURE weights)")
    add_info(parser, "FOLDER", "; only with --by")
    sure = "an .npz file of FOLDER written by `simdims bootstrap` (FIGURE uncertainty)"
    parser.add_argument("--uncertainty", type=Path, metavar="FILE", help=sure)
    dimension = "the number of a dimension, whose top items are drawn (FIGURE uncertainty)"
    shared.add_count(parser, "dimension", None, dimension)
    width = "columns of a journal (FIGURE panel; default double)"
    parser.add_argument("--width", choices=["single", "double"], help=width)
    _add_tests(parser, " for --tests")
    shared.add_out(parser, ", ".join(FIGURES), required=True)


def _report(options: argparse.Namespace) -> Findings:
    from simdims.consensus import lineage
    from simdims.discovery import Discovery, storage
    from simdims.report import writer

    is_random = _check_idle(options)
    is_file = options.folder.is_file()
    if not options.folder.exists():
        raise FileNotFoundError(f"No such file or folder: {str(options.folder)!r}.")
    if is_file:
        shared.refuse(options, ("lineage", "uncertainty"), "needs a folder written by `simdims discover`, got a file")
        if options.out is None:
            raise UsageError("The page of a file needs a name: pass -o FILE.html.")
    else:
        shared.refuse(options, ("key", "label_file"), "only applies to a file with an embedding")
    target = options.folder / "report.html" if options.out is None else options.out
    if options.out is not None:
        writer.check_target(target, options.overwrite)
        check_writable(target)
    found: Discovery = _given(options) if is_file else Discovery.load(options.folder)
    if options.names is not None:
        if not is_file:
            storage.check_folder(options.folder)
            check_writable(options.folder)
        found = found.rename(options.names)
    if options.out is None:
        check_writable(target)
    sure = None if options.uncertainty is None else _resampled(options.uncertainty)
    images = _images(options, found)
    seed = shared.settled_seed(options) if is_random else None
    tests = None if options.tests is None or seed is None else _tests(options, found, seed)
    candidates = None if options.lineage == "auto" else options.lineage
    tree = None if options.lineage is None else lineage(found, ranks=candidates, random_state=seed)
    suggested = None if options.suggestions is None else _suggestions(options.suggestions)
    compared = None if options.compare is None or seed is None else _compared(options, found, seed)
    shown = {"images": images, "tests": tests, "suggestions": suggested, "lineage": tree, "title": options.title}
    path = found.report(target, overwrite=options.overwrite, uncertainty=sure, comparison=compared, **shown)
    told = [one.summary() for one in (tests, tree, sure, *(compared or {}).values()) if one is not None]
    if options.names is not None and not is_file:
        storage.save(found, options.folder, same_run=True)
        told.append(f"Saved the names of the dimensions in {options.folder}")
    values = {
        "report": path,
        "dimension_names": list(found.dimension_names),
        "tests": None if tests is None else tests.to_dict(),
        "lineage": None if tree is None else tree.table,
        "dimensions": None if sure is None else sure.dimensions_frame(),
        "comparisons": None if compared is None else {name: plain_comparison(one) for name, one in compared.items()},
    }
    return Findings("\n".join([*told, f"Wrote {path}"]), values, seed)


def _check_idle(options: argparse.Namespace) -> bool:
    """Refuse unused options; return whether anything is random."""
    drawn = [name for name in ("tests", "lineage", "compare") if name in options]
    is_random = any(getattr(options, name) is not None for name in drawn)
    for name in ("labels", "table_sheet", "table_na_values", "matching", "n_permutations", "random_state"):
        is_idle = not is_random if name == "random_state" else options.tests is None
        if is_idle and getattr(options, name) is not None:
            also = ", --lineage or --compare" if name == "random_state" and len(drawn) > 1 else ""
            raise UsageError(f"{option_of(options.command, name)} only applies with --tests{also}.")
    if getattr(options, "item", None) is not None and (
        all(path.is_dir() for path in (options.folder, *(options.compare or ())))
    ):
        raise UsageError("--item only applies to files, as RESULT or with --compare.")
    return is_random


def _given(options: argparse.Namespace) -> Discovery:
    """The embedding of a file."""
    from simdims import io
    from simdims.report.given import given_embedding

    (reading,) = readings(options, [options.folder])
    W, labels = shared.read_embedding(reading), shared.read_labels(options)
    with io.named_in_errors(options.folder):
        return given_embedding(W, labels)


def _compared(options: argparse.Namespace, found: Discovery, seed: int) -> dict[str, EmbeddingComparison]:
    """The comparison with each --compare, by name."""
    stems = [path.stem for path in options.compare]
    names = stems if len({*stems}) == len(stems) else [str(path) for path in options.compare]
    given = argparse.Namespace(command=options.command, item=options.item, key=None)
    return {
        name: compare_with(reading, found, None if options.folder.is_file() else found.mean_similarity, seed)
        for name, reading in zip(names, readings(given, options.compare), strict=True)
    }


def _tests(options: argparse.Namespace, found: Discovery, seed: int) -> HypothesisTests:
    from simdims.inference import dimension_test

    table = with_levels(read_properties(options, options.tests))
    n = _N_PERMUTATIONS if options.n_permutations is None else options.n_permutations
    matching = options.matching or "auto"
    return dimension_test(found, table, matching=matching, n_permutations=n, random_state=seed)


def _suggestions(path: Path) -> Any:
    from simdims import io
    from simdims.io import raw
    from simdims.naming import COLUMNS

    table = raw.read_trials(path, ["dimension", "property"], "correlation")
    with io.named_in_errors(path):
        if missing := [name for name in COLUMNS[:3] if name not in table.columns]:
            raise ValueError(f"There must be a column {missing[0]!r}, as in a file written by `simdims label`.")
    return table


def _resampled(path: Path) -> Bootstrap:
    """A saved bootstrap."""
    from simdims.uncertainty import Bootstrap

    if path.exists() and path.suffix.lower() != ".npz":
        raise ValueError(f"--uncertainty must be an .npz file written by `simdims bootstrap`, got {str(path)!r}.")
    return Bootstrap.load(path)


def _plot(options: argparse.Namespace) -> Findings:
    shared.check_out(options, FIGURES)
    from simdims import plots
    from simdims.discovery import Discovery
    from simdims.discovery.result import check_resampled

    for name, figures in _APPLIES.items():
        if getattr(options, name) is not None and options.picture not in figures:
            which = f"the figure{'s' if len(figures) > 1 else ''} {' and '.join(figures)}"
            raise UsageError(f"--{name} only applies to {which}, got {options.picture}.")
    if options.info is not None and options.by is None:
        raise UsageError("--info only applies with --by.")
    if options.picture == "uncertainty" and options.uncertainty is None:
        raise UsageError("The figure uncertainty needs --uncertainty, an .npz file written by `simdims bootstrap`.")
    seed = shared.settled_seed(options) if _check_idle(options) else None
    found = Discovery.load(options.folder)
    arguments: dict[str, Any] = {}
    if options.picture == "dimensions":
        arguments = {"images": _images(options, found), "page": _page(options, found), "per_page": _PER_PAGE}
    if options.picture == "panel":
        tests = None if seed is None else _tests(options, found, seed)
        arguments = {"tests": tests, "images": _images(options, found), "width": options.width or "double"}
    if options.by is not None:
        arguments = {"by": column_of_systems(options, found, options.by)}
    drawn: Any = found
    if options.uncertainty is not None:
        drawn = _resampled(options.uncertainty)
        check_resampled(found, drawn)
        arguments = {} if options.dimension is None else {"of": "loadings", "dimension": options.dimension}
    axes = getattr(plots, PLOTS[options.picture][0])(drawn, **arguments)
    write_figure(options.out, axes)
    return Findings(f"Wrote {options.out}", {"written": options.out}, seed)


def _page(options: argparse.Namespace, found: Discovery) -> int:
    n_pages = -(-found.n_components // _PER_PAGE)
    page = 1 if options.page is None else int(options.page)
    if not 1 <= page <= n_pages:
        pages = "1" if n_pages == 1 else f"between 1 and {n_pages}"
        n, shown = found.n_components, f"{_PER_PAGE} per page"
        raise ValueError(f"--page must be {pages} for {n} dimensions ({shown}), got {page}.")
    return page


def _images(options: argparse.Namespace, found: Discovery) -> list[Path] | None:
    return None if options.images is None else pictures_of(options.images, found.labels, found.n_items)
