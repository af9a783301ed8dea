"""write_report: a Discovery becomes one HTML file."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any

import numpy as np

from simdims._journal import replacing_file
from simdims.discovery.result import Discovery
from simdims.inference import HypothesisTests
from simdims.report import bundle, pairs, pictures, words
from simdims.report.encoding import pack_loadings, pack_similarities, script_json
from simdims.report.facts import N_TOP, facts

#: The first line of every report, by which an earlier one is known.
FIRST_LINE = "<!doctype html><!-- simdims report -->"

#: Up to this many items the page holds all observed similarities, beyond only those of each dimension's top items.
ALL_PAIRS_UP_TO = 600


def write_report(
    found: Discovery,
    path: str | os.PathLike[str],
    *,
    images: Any = None,
    tests: HypothesisTests | None = None,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a page to explore what `discover` found: one HTML file that opens from disk and needs no network.

    Parameters
    ----------
    found : Discovery
        What to show.
    path : path
        The file to write, ending in .html or .htm. It appears when all of it is written.
    images : sequence of ndarray, path or PIL image, optional
        A picture of each item, kept as a thumbnail. Arrays are height x width (grey) or height x width x 3 or 4
        (colour): 8-bit, or other numbers from 0 (black) to 1 (white); where any are beyond that, black is the smallest
        number of all pictures (or 0) and white the largest. Needs Pillow.
    tests : HypothesisTests, optional
        Tests of hypotheses to show.
    title : str, optional
        The heading; by default the numbers of dimensions and items.
    overwrite : bool, default=False
        Whether to replace any file at `path`. An earlier report there is replaced in any case.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> write_report(found, "animals.html", images=pictures)  # doctest: +SKIP
    """
    target = _checked(found, path, tests, title, overwrite)
    heading = title or words.heading(found)
    tops = pairs.top_items(found.embedding, N_TOP)
    shown = facts(found, tests, tops, heading)
    data = _data(found, shown, tops, None if images is None else pictures.thumbnails(images, found.n_items))
    text = bundle.page(title=heading, parts=_parts(found, tests), data=data)
    with replacing_file(target) as file:
        file.write(f"{FIRST_LINE}\n{text}".encode(errors="replace"))
    return target


def check_target(path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """The file to write, unless something speaks against it."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise TypeError(f"path must be a path, got {path!r}.")
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"path must end in .html or .htm, got {str(target)!r}.")
    if target.is_dir():
        raise ValueError(f"path must be a file, got {str(target)!r}, which is a folder.")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"path must lie in a folder that is there, got {str(target)!r}.")
    if not os.access(target.absolute().parent, os.W_OK | os.X_OK):
        raise ValueError(f"path must lie where files may be written, got {str(target)!r}.")
    if target.exists() and not overwrite and not _is_report(target):
        raise FileExistsError(
            f"path must be new or an earlier report, got {str(target)!r}, which is another file: choose another name, "
            "or pass overwrite=True."
        )
    return target


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(FIRST_LINE)) == FIRST_LINE.encode()


def _checked(found: Any, path: Any, tests: Any, title: Any, overwrite: Any) -> Path:
    if not isinstance(found, Discovery):
        raise TypeError(f"found must be a Discovery, got {type(found).__name__}.")
    if tests is not None and not isinstance(tests, HypothesisTests):
        raise TypeError(f"tests must be HypothesisTests, as dimension_test returns them, got {type(tests).__name__}.")
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title must be a text, got {title!r}.")
    if not isinstance(overwrite, bool | np.bool_):
        raise TypeError(f"overwrite must be True or False, got {overwrite!r}.")
    return check_target(path, bool(overwrite))


def _data(found: Discovery, shown: dict[str, Any], tops: list[Any], images: list[str] | None) -> dict[str, str]:
    """What the scripts read: a text for each of the page's data elements."""
    similarity = found.similarity
    loadings = pack_loadings(found.embedding)
    blocks = pairs.blocks(similarity, tops, N_TOP)
    observed = pairs.all_pairs(similarity) if 1 < found.n_items <= ALL_PAIRS_UP_TO else np.full(0, np.nan)
    largest = max((float(values.max()) for values in (_known(blocks), _known(observed)) if values.size), default=0.0)
    shown |= {
        "loadings": {"kind": loadings.kind, "scales": loadings.scales, "precision": loadings.precision},
        "largest_similarity": largest or 1.0,
        "has_all_pairs": bool(observed.size),
        "labelled": found.labels is not None,
        "pictured": images is not None,
        "fit": pairs.observed_against_predicted(similarity, found.embedding),
    }
    return {
        "facts": script_json(shown),
        "labels": script_json(list(found.labels or ())),
        "loadings": loadings.lines,
        "blocks": pack_similarities(blocks, largest),
        "observed": pack_similarities(observed, largest) if observed.size else "",
        "images": "\n".join(images or ()),
    }


def _known(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _parts(found: Discovery, tests: HypothesisTests | None) -> dict[str, str]:
    """The words of the page that stand in its HTML, so that they are there without a script."""
    lead, *rest = words.paragraphs(found, tests)
    figures = "".join(
        f'<div class="figure"><dt>{html.escape(what)}</dt><dd>{html.escape(value)}</dd></div>'
        for value, what in words.figures(found)
    )
    return {
        "lead": html.escape(lead),
        "summary": "".join(f"<p>{html.escape(text)}</p>" for text in rest),
        "figures": figures,
    }
