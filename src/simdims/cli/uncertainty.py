"""`simdims bootstrap` and `simdims compare`: stability of dimensions, and dimensions that two embeddings share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims.cli import options as shared
from simdims.cli.options import Findings
from simdims.cli.outputs import write_result
from simdims.cli.steps import ranks

if TYPE_CHECKING:
    from simdims.inference import EmbeddingComparison
    from simdims.uncertainty import Bootstrap

_FIGURES = (".pdf", ".svg", ".png")


def add(commands: Any) -> None:
    summary = "estimate how dimensions vary with other people, items or pairs: intervals, how often they come back"
    details = "`simdims report --uncertainty` shows an .npz file on the page."
    example = "simdims bootstrap people --over systems --jobs -1 --seed 0 -o people-sure.npz"
    parser = shared.add_command(commands, "bootstrap", _bootstrap, summary=summary, details=details, example=example)
    shared.add_folder(parser)
    over = "what is resampled (default: systems, or items if there is one system)"
    parser.add_argument("--over", choices=["systems", "items", "pairs"], help=over)
    shared.add_count(parser, "n_resamples", 200, "number of resamples")
    threshold = "correlation from which a dimension has come back (default 0.8)"
    parser.add_argument("--threshold", type=float, default=0.8, metavar="R", help=threshold)
    selected = "choose the number of dimensions among these in every resample, such as 2:12; takes much longer"
    parser.add_argument("--ranks", type=ranks, metavar="RANKS", help=selected)
    shared.add_checkpoint(parser)
    shared.add_running(parser)
    shared.add_out(parser, ".npz (all resamples), .json (all intervals) or .csv (one row per dimension)")

    summary = "find the dimensions that two embeddings of the same items share, and those that only one has"
    details = (
        "Of folders written by `simdims discover`, it also shows how much of the similarities of each the "
        "shared dimensions explain. `simdims report --compare` shows a comparison on the page."
    )
    example = "simdims compare human monkey --seed 0 -o shared.pdf"
    parser = shared.add_command(commands, "compare", _compare, summary=summary, details=details, example=example)
    shared.add_embedding(parser, "EMBEDDING or OTHER")
    parser.add_argument("other", metavar="OTHER", type=Path, help="another embedding of the same items, as EMBEDDING")
    shared.add_count(parser, "n_permutations", 1000, "number of permutations")
    shared.add_fdr(parser, "false discovery rate at which dimensions are shared")
    shared.add_seed(parser)
    shared.add_out(parser, ".json (everything), .csv (the matched pairs), or .pdf, .svg or .png (a figure)")


def compare_with(reading: argparse.Namespace, W: Any, S: Any, seed: int, **given: Any) -> Any:
    """Compare an embedding with the one in a file or folder."""
    from simdims.inference import compare_embeddings

    W2, S2 = _read(reading)
    return compare_embeddings(W, W2, S1=S, S2=S2, random_state=seed, **given)


def readings(options: argparse.Namespace, sources: Sequence[Path]) -> list[argparse.Namespace]:
    """How to read each of several embeddings: --item and --key apply to files, --item to those with such a column."""
    from simdims.io import raw

    files = [path for path in sources if not path.is_dir()] or sources
    named = [path for path in files if options.item is not None and raw.has_column(path, options.item)] or files
    return [
        argparse.Namespace(
            command=options.command,
            source=path,
            item=options.item if path in named else None,
            key=options.key if path in files else None,
        )
        for path in sources
    ]


def _bootstrap(options: argparse.Namespace) -> Findings:
    shared.check_out(options, (".npz", ".json", ".csv"))
    from simdims.discovery import Discovery
    from simdims.uncertainty import bootstrap

    found = Discovery.load(options.folder)
    over = options.over or ("items" if found.weights is None else "systems")
    names = ("n_resamples", "threshold", "ranks", "checkpoint", "random_state", "n_jobs", "progress")
    sure = bootstrap(found, over, **shared.arguments(options, *names))
    told = Findings(sure.summary(), _plain(sure), sure.seed)
    if options.out is not None and options.out.suffix.lower() == ".npz":
        sure.save(options.out)
    else:
        write_result(options.out, told.plain(), sure.dimensions_frame())
    return told


def _plain(sure: Bootstrap) -> dict[str, Any]:
    low, high = sure.interval("r2")
    values = {name: getattr(sure, name) for name in ("over", "n_resamples", "threshold", "alpha", "shrinkage")}
    values |= {"r2": {"r2": sure.r2, "low": low, "high": high}}
    values |= {"dimensions": sure.dimensions_frame(), "loadings": sure.loadings_frame()}
    values["weights"] = None if sure.systems is None else sure.weights_frame()
    return {**values, "selected_ranks": sure.rank_counts, "n_not_converged": int((~sure.converged).sum())}


def _compare(options: argparse.Namespace) -> Findings:
    shared.check_out(options, (".json", ".csv", *_FIGURES), "source", "other")
    seed = shared.settled_seed(options)
    first, second = readings(options, (options.source, options.other))
    W, S = _read(first)
    compared = compare_with(second, W, S, seed, **shared.arguments(options, "n_permutations", "alpha"))
    told = Findings(compared.summary(), plain_comparison(compared), seed)
    if options.out is not None and options.out.suffix.lower() in _FIGURES:
        from simdims import plots

        axes = plots.embedding_comparison(compared, names=(options.source.stem, options.other.stem))
        plots.save_figure(axes, options.out)
    else:
        write_result(options.out, told.plain(), compared.table)
    return told


def plain_comparison(compared: EmbeddingComparison) -> dict[str, Any]:
    """A comparison as values for --json."""
    explained = compared.explained
    return {
        "n_items": len(compared.embedding1),
        "n_shared": compared.n_shared,
        "pairs": compared.table.assign(shared=compared.is_shared),
        "only1": list(compared.only1),
        "only2": list(compared.only2),
        "explained": None if explained is None else explained.rename_axis("similarities").reset_index(),
    }


def _read(reading: argparse.Namespace) -> tuple[Any, Any]:
    """An embedding and, if it is from a folder, its similarities."""
    W = shared.read_embedding(reading)
    if not reading.source.is_dir():
        return W, None
    from simdims.discovery import Discovery

    return W, Discovery.load(reading.source).mean_similarity
