"""write_report: write a Discovery as one HTML file."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simdims._journal import replacing_file
from simdims._parameters import ParameterError, require_flag, require_type
from simdims.consensus import Lineage
from simdims.discovery.result import Discovery
from simdims.inference import EmbeddingComparison, HypothesisTests
from simdims.plots._sources import Loadings, loadings_of
from simdims.report import bundle, pairs, pictures, words
from simdims.report.data import N_TOP, as_base64, facts, pack_loadings, pack_similarities, script_json, suggestion_facts
from simdims.report.given import GivenEmbedding, given_embedding
from simdims.report.overview import item_map, similarity_image
from simdims.report.resampled import comparison_facts, uncertainty_facts
from simdims.report.systems import systems_facts
from simdims.similarity import refuse_other_names

if TYPE_CHECKING:
    import pandas as pd

    from simdims.uncertainty import Bootstrap

#: First line of every report, which identifies earlier ones.
FIRST_LINE = "<!doctype html><!-- simdims report -->"

#: Up to this many items, the page contains all observed similarities; beyond, only those of the top items.
ALL_PAIRS_UP_TO = 600


def write_report(
    found: Any,
    path: str | os.PathLike[str],
    *,
    images: Any = None,
    tests: HypothesisTests | None = None,
    suggestions: pd.DataFrame | None = None,
    lineage: Lineage | None = None,
    uncertainty: Bootstrap | None = None,
    comparison: EmbeddingComparison | Mapping[str, EmbeddingComparison] | None = None,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write an interactive report of a `discover` result: one HTML file that opens from disk and needs no network.

    Parameters
    ----------
    found : Discovery, Consensus, fitted SRF, ndarray or DataFrame
        The result to show. The page of an embedding that is not a Discovery shows its dimensions, items and predicted
        similarities; there are no observed similarities, and no statistics of a fit. The index of a DataFrame names the
        items, and its columns name the dimensions.
    path : path
        The file to write, ending in .html or .htm. It is replaced only once the new one is complete.
    images : sequence of ndarray, path or PIL image, optional
        One image per item, shown as a thumbnail. Arrays are height x width (grey) or height x width x 3 or 4 (colour):
        8-bit, or other numbers from 0 (black) to 1 (white). If any are outside that range, black is the smallest number
        of all images (or 0) and white the largest. Needs Pillow.
    tests : HypothesisTests, optional
        Tests of hypotheses to show.
    suggestions : DataFrame, optional
        A table of `label_dimensions`: suggested names, which the reader can accept.
    lineage : Lineage, optional
        How dimensions split as their number grows, as `simdims.lineage` returns it.
    uncertainty : Bootstrap, optional
        Resamples of this result from `simdims.bootstrap`; adds intervals and how often each dimension came back.
    comparison : EmbeddingComparison or mapping of names to EmbeddingComparison, optional
        Comparisons of this result with other embeddings from `simdims.compare_embeddings`; a mapping names them, as in
        ``{"Monkey IT": compared}``.
    title : str, optional
        The heading; by default the numbers of dimensions and items.
    overwrite : bool, default=False
        Whether to replace any file at `path`. An earlier report is always replaced.

    Returns
    -------
    pathlib.Path
        The file.

    Examples
    --------
    >>> write_report(found, "animals.html", images=pictures)  # doctest: +SKIP
    >>> write_report(pd.read_csv("embedding.csv", index_col=0), "embedding.html")  # doctest: +SKIP
    """
    found = found if isinstance(found, Discovery) else given_embedding(found)
    require_type("tests", tests, HypothesisTests | None, "HypothesisTests, as dimension_test returns them")
    require_type("lineage", lineage, Lineage | None, "a Lineage")
    if lineage is not None and len(lineage.embeddings[0]) != found.n_items:
        rule = f"must be about the {found.n_items} items of found"
        raise ParameterError("lineage", rule, f"{len(lineage.embeddings[0])} items")
    if lineage is not None and lineage.labels is not None and found.labels is not None:
        refuse_other_names("found", found.labels, "lineage", lineage.labels)
    require_type("title", title, str | None, "a text")
    require_flag("overwrite", overwrite)
    target = check_target(path, overwrite)
    heading = title or words.heading(found)
    parts = _parts(found, tests, uncertainty)
    loadings = loadings_of(found)
    tops = [loadings.top(k, N_TOP) for k in range(found.n_components)]
    shown = facts(found, tests, lineage, tops, heading)
    shown |= {"systems": systems_facts(found), "uncertainty": uncertainty_facts(found, uncertainty, tops)}
    shown |= {"comparisons": comparison_facts(found, comparison)}
    if suggestions is not None:
        shown["suggestions"] = suggestion_facts(suggestions, found.dimension_names)
    thumbnails = None if images is None else pictures.thumbnails(images, found.n_items)
    data = _data(found, loadings, shown, tops, thumbnails)
    text = bundle.page(title=heading, parts=parts, data=data)
    with replacing_file(target) as file:
        file.write(f"{FIRST_LINE}\n{text}".encode(errors="replace"))
    return target


def check_target(path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Return the file to write, after checking that it is writable and not some other file."""
    require_type("path", path, str | os.PathLike, "a path")
    target = Path(os.fsdecode(path))
    if target.suffix.lower() not in (".html", ".htm"):
        raise ParameterError("path", "must end in .html or .htm", repr(str(target)))
    if target.is_dir():
        raise ParameterError("path", "must be a file", f"{str(target)!r}, which is a folder")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"No such folder: {str(target.parent)!r}.")
    if not os.access(target.absolute().parent, os.W_OK | os.X_OK):
        raise ParameterError("path", "must lie where files may be written", repr(str(target)))
    if target.exists() and not overwrite and not _is_report(target):
        raise FileExistsError(
            f"{str(target)!r} exists and is not an earlier report. Choose another name, or set overwrite to replace it."
        )
    return target


def _is_report(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(FIRST_LINE)) == FIRST_LINE.encode()


def _data(
    found: Discovery, loadings: Loadings, shown: dict[str, Any], tops: list[Any], images: list[str] | None
) -> dict[str, str]:
    """The text of each data element that the scripts read."""
    similarity = found.mean_similarity
    lines, about_loadings = pack_loadings(found.embedding)
    about_heat, cells = similarity_image(similarity, loadings)
    about_map, places = item_map(loadings)
    is_observed = not isinstance(found, GivenEmbedding)
    blocks = pairs.blocks(similarity, tops, N_TOP)
    has_all_pairs = is_observed and 1 < found.n_items <= ALL_PAIRS_UP_TO
    observed = pairs.all_pairs(similarity) if has_all_pairs else np.full(0, np.nan)
    largest = float(np.fmax.reduce(np.concatenate([blocks.ravel(), observed]), initial=0.0))
    shown |= {
        "loadings": about_loadings,
        "largest_similarity": largest or 1.0,
        "is_observed": is_observed,
        "has_all_pairs": bool(observed.size),
        "labelled": found.labels is not None,
        "pictured": images is not None,
        "fit": pairs.observed_against_predicted(similarity, found.embedding) if is_observed else None,
        "heat": about_heat,
        "map": about_map,
    }
    return {
        "facts": script_json(shown),
        "labels": script_json(list(found.labels or ())),
        "loadings": lines,
        "blocks": pack_similarities(blocks, largest),
        "observed": pack_similarities(observed, largest) if observed.size else "",
        "images": "\n".join(images or ()),
        "heat": as_base64(cells),
        "map": as_base64(places),
    }


def _parts(found: Discovery, tests: HypothesisTests | None, uncertainty: Bootstrap | None) -> dict[str, str]:
    """The static text of the page."""
    paragraph, references = found.methods_text(tests, uncertainty).split("\n\n")  # checks the bootstrap
    lead, *rest = words.paragraphs(found, tests, uncertainty)
    figures = "".join(
        f'<div class="figure"><dt>{html.escape(what)}</dt><dd>{html.escape(value)}</dd></div>'
        for value, what in words.figures(found)
    )
    summary = "".join(f"<p>{html.escape(text)}</p>" for text in rest)
    sources = "".join(f"<li>{html.escape(line)}</li>" for line in references.splitlines())
    rows = words.provenance(found)
    origin = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(text)}</dd>" for name, text in rows)
    return {
        "lead": html.escape(lead),
        "summary": summary,
        "figures": figures,
        "methods": html.escape(paragraph),
        "references": sources,
        "provenance": origin,
    }
