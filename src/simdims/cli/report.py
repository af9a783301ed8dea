"""`simdims report` and `simdims plot`: a page or a picture, out of a folder that `simdims discover` wrote."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims._dependencies import library
from simdims.cli.options import Findings, UsageError, add_command, add_overwrite, settled_seed
from simdims.cli.outputs import check_place, check_target

if TYPE_CHECKING:
    from simdims.discovery import Discovery
    from simdims.inference import HypothesisTests

#: What `simdims plot` draws: the function of simdims.plots, and what it shows.
PLOTS = {
    "dimensions": ("dimension_grid", "the items that have most of each dimension"),
    "rank-selection": ("rank_selection", "the error of held-out similarities against the number of dimensions"),
    "calibration": ("calibration", "how many pairs a fit may see"),
    "reliability": ("reliability", "how reproducible each dimension is across random starts"),
    "similarities": ("similarity_heatmap", "the similarities as a heatmap"),
    "reconstruction": ("reconstruction", "observed against predicted similarities"),
    "map": ("embedding_map", "a map of the items"),
}
#: Dimensions on a page of PICTURE dimensions.
_PER_PAGE = 12
_N_PERMUTATIONS = 1000
_PICTURES = (".pdf", ".svg", ".png", ".eps", ".jpg")


def add(commands: Any) -> None:
    """Add both commands."""
    parser = add_command(
        commands,
        "report",
        _report,
        summary="write a page to explore what discover found: one HTML file that needs no network",
        example="simdims report animals --images pictures --tests properties.csv --labels name",
    )
    _add_folder(parser)
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE", help="the file to write: .html (default report.html in FOLDER)"
    )
    add_look(parser)
    parser.add_argument(
        "--tests",
        type=Path,
        metavar="PROPERTIES",
        help="a table with one row per item: test which of its properties the dimensions encode, and show it",
    )
    parser.add_argument("--labels", metavar="COLUMN", help="the column of PROPERTIES that names the items")
    parser.add_argument(
        "--matching",
        choices=["auto", "joint", "separate"],
        help="how properties are matched with dimensions; see `simdims test --help`",
    )
    parser.add_argument(
        "--permutations", type=int, metavar="N", help=f"permutations of --tests (default {_N_PERMUTATIONS})"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="random seed of --tests (default: drawn afresh and printed)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace FILE even if it is not an earlier report")

    parser = add_command(
        commands,
        "plot",
        _plot,
        summary="draw a picture for a paper of what discover found",
        example="simdims plot dimensions animals -o dimensions.pdf",
    )
    shown = "; ".join(f"{name}: {what}" for name, (_, what) in PLOTS.items())
    parser.add_argument("picture", metavar="PICTURE", choices=list(PLOTS), help=shown)
    _add_folder(parser)
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="OUT", help=f"the file to write: {', '.join(_PICTURES)}"
    )
    _add_images(parser)
    parser.add_argument("--page", type=int, metavar="N", help="which page of many dimensions (PICTURE dimensions)")
    add_overwrite(parser)


def add_look(parser: argparse.ArgumentParser) -> None:
    """Add what a page may show beside the results."""
    _add_images(parser)
    parser.add_argument("--title", metavar="TEXT", help="the heading of the page")


def pictures_of(folder: Path, labels: Sequence[str] | None, n_items: int) -> list[Path]:
    """The picture of each item in a folder: by label where there are labels, else in the order of the names."""
    if not folder.is_dir():
        raise FileNotFoundError(f"--images must be a folder of pictures, got {str(folder)!r}.")
    library("PIL.Image", "--images", '"simdims[report]"')
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if labels is None:
        if len(files) != n_items:
            raise ValueError(f"--images must hold a picture of each of the {n_items} items, got {len(files)} files.")
        return files
    by_stem = {path.stem: path for path in files}
    missing = [label for label in labels if label not in by_stem]
    if missing:
        raise ValueError(
            f"--images must hold a picture of each item, named as its label, got none of {missing[0]!r}"
            f"{f' and {len(missing) - 1} others' if len(missing) > 1 else ''} in {str(folder)!r}."
        )
    return [by_stem[label] for label in labels]


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a folder that `simdims discover` wrote")


def _add_images(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--images",
        type=Path,
        metavar="DIR",
        help="a folder with a picture of each item, named as its label (without labels: in the order of the names)",
    )


def _report(options: argparse.Namespace) -> Findings:
    from simdims.discovery import Discovery
    from simdims.report import writer

    for name in ("labels", "matching", "permutations", "seed"):
        if options.tests is None and getattr(options, name) is not None:
            raise UsageError(f"--{name} must be left out without --tests, which it is for.")
    target = options.folder / "report.html" if options.out is None else options.out
    if options.out is not None:
        writer.check_target(target, options.overwrite)
        check_place(target, "FILE")
    found = Discovery.load(options.folder)
    if options.out is None:
        check_place(target, "FOLDER")
    images = _images(options, found)
    seed = None if options.tests is None else settled_seed(options)
    tests = None if seed is None else _tests(options, found, seed)
    path = found.report(target, images=images, tests=tests, title=options.title, overwrite=options.overwrite)
    said = [] if tests is None else tests.summary().splitlines()
    values = {"report": path, "tests": None if tests is None else tests.to_dict()}
    return Findings("\n".join([*said, f"Wrote {path}"]), values, seed)


def _tests(options: argparse.Namespace, found: Discovery, seed: int) -> HypothesisTests:
    """The dimension test of the properties."""
    from simdims import _inputs
    from simdims.inference import dimension_test

    return dimension_test(
        found,
        _inputs.read_features(options.tests, options.labels, None, None),
        matching=options.matching or "auto",
        n_permutations=_N_PERMUTATIONS if options.permutations is None else options.permutations,
        random_state=seed,
    )


def _plot(options: argparse.Namespace) -> Findings:
    check_target(options.out, _PICTURES, overwrite=options.overwrite)
    from simdims import plots
    from simdims.discovery import Discovery

    given = [name for name in ("images", "page") if getattr(options, name) is not None]
    if given and options.picture != "dimensions":
        raise UsageError(f"--{given[0]} must be left out for {options.picture}: it is for dimensions.")
    found = Discovery.load(options.folder)
    arguments: dict[str, Any] = {}
    if options.picture == "dimensions":
        arguments = {"images": _images(options, found), "page": _page(options, found), "per_page": _PER_PAGE}
    draw: Callable[..., Any] = getattr(plots, PLOTS[options.picture][0])
    _save(draw(found, **arguments), options.out)
    return Findings(f"Wrote {options.out}", {"written": options.out})


def _page(options: argparse.Namespace, found: Discovery) -> int:
    n, n_pages = found.n_components, -(-found.n_components // _PER_PAGE)
    page = 1 if options.page is None else int(options.page)
    if not 1 <= page <= n_pages:
        there = "1" if n_pages == 1 else f"between 1 and {n_pages}"
        dimensions = "1 dimension takes" if n == 1 else f"{n} dimensions take"
        pages = "1 page" if n_pages == 1 else f"{n_pages} pages of {_PER_PAGE}"
        raise ValueError(f"--page must be {there}, as {dimensions} {pages}, got {page}.")
    return page


def _save(axes: Any, target: Path) -> None:
    """Write a picture; an existing file is replaced once the new one is whole."""
    from simdims import plots
    from simdims._journal import replacing

    with replacing(target, ending=f"part{target.suffix}") as part:  # which says the format
        plots.save_figure(axes, part)


def _images(options: argparse.Namespace, found: Discovery) -> list[Path] | None:
    return None if options.images is None else pictures_of(options.images, found.labels, found.n_items)
