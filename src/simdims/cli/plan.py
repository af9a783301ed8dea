"""`simdims plan`: how many pairs, answers and people a study needs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simdims.cli import options as shared
from simdims.cli.options import Findings, UsageError
from simdims.cli.outputs import write_result
from simdims.cli.systems import holds_set

if TYPE_CHECKING:
    import numpy as np

    from simdims.similarity import Similarity
    from simdims.systems import SimilaritySet

_FIGURES = (".pdf", ".svg", ".png")


def add(commands: Any) -> None:
    summary = "plan a study: how many pairs and answers are needed to find the dimensions"
    details = (
        "Simulates studies of different sizes, from the similarities of a pilot (PILOT) or from random dimensions "
        "(--items and --dimensions)."
    )
    example = "simdims plan pilot.npz --answers 1 2 5 --target 0.9 -o plan.pdf"
    parser = shared.add_command(commands, "plan", _plan, summary=summary, details=details, example=example)
    pilot = "similarities of a pilot, or a saved set with one system per person; weights are numbers of answers"
    parser.add_argument("source", metavar="PILOT", type=Path, nargs="?", help=pilot)
    design = parser.add_argument_group("without a pilot")
    design.add_argument("--items", type=int, metavar="N", help="number of items")
    design.add_argument("--dimensions", type=int, metavar="N", help="number of dimensions (of a pilot: selected)")
    snr = "signal-to-noise ratio of one answer, above 0, at most 1 (default: 0.5; of a pilot: estimated)"
    parser.add_argument("--snr", type=float, help=snr)
    spread = "standard deviation of people's weights, which have mean 1 (default: 0; of a set: estimated)"
    parser.add_argument("--spread", type=float, help=spread)
    shares = "shares of all pairs to ask about (default: 0.05 0.1 0.2 0.4 0.7 1)"
    parser.add_argument("--pairs", type=float, nargs="+", metavar="SHARE", help=shares)
    parser.add_argument("--answers", type=int, nargs="+", default=[1, 2, 5], metavar="N", help="answers per pair")
    people = "number of people who share the answers (default: one answer per person); requires --spread or a set"
    parser.add_argument("--people", type=int, nargs="+", metavar="N", help=people)
    parser.add_argument("--target", type=float, default=0.9, help="target value of the measure (default 0.9)")
    measures = ["alignment", "held_out_r2", "reported_r2", "triplet_accuracy"]
    metric = (
        "the measure: alignment with the true dimensions (default), R2 of pairs not judged or of held-out judgements, "
        "or triplets predicted"
    )
    parser.add_argument("--metric", choices=measures, default="alignment", help=metric)
    shared.add_count(parser, "n_repeats", 5, "simulated studies of each size")
    shared.add_checkpoint(parser)
    shared.add_running(parser)
    shared.add_out(parser, ".json (everything), .csv (the learning curves), or .pdf, .svg or .png (a figure of them)")


def _plan(options: argparse.Namespace) -> Findings:
    shared.check_out(options, (".json", ".csv", *_FIGURES), "source")
    is_figure = options.out is not None and options.out.suffix.lower() in _FIGURES
    sizes = {"pairs": options.pairs, "answers": options.answers, "people": options.people}
    varied = [axis for axis, given in sizes.items() if len(set(given or ())) > 1 or (axis == "pairs" and not given)]
    if is_figure and not varied:
        raise UsageError("A figure needs several sizes of a study: pass several numbers as --pairs or --answers.")
    from simdims._journal import seed_of_earlier

    if options.checkpoint is not None and options.random_state is None:
        options.random_state = seed_of_earlier(options.checkpoint)
    seed = shared.settled_seed(options)
    source = _source(options, seed)
    from simdims.planning import plan_study

    names = ("answers", "people", "target", "metric", "snr", "spread", "n_repeats", "checkpoint", "n_jobs", "progress")
    given = shared.arguments(options, *names)
    if options.pairs is not None:
        given["pairs"] = options.pairs
    if options.source is not None:
        given["n_components"] = options.dimensions
    plan = plan_study(source, random_state=seed, **given)
    values = {"table": plan.table, "needed": plan.needed(), "snr": plan.snr, "spread": plan.spread, "pilot": plan.pilot}
    values |= {"n_items": plan.n_items, "n_components": plan.n_components, "seed": seed}
    if is_figure:
        from simdims import plots

        plots.save_figure(plots.study_plan(plan, against=varied[0]), options.out)
    else:
        write_result(options.out, values, plan.table)
    return Findings(plan.summary(), values, seed)


def _source(options: argparse.Namespace, seed: int) -> Similarity | SimilaritySet | np.ndarray:
    """The pilot, or a random embedding."""
    if options.source is not None:
        if options.items is not None:
            raise UsageError("--items does not apply with PILOT, which has its own.")
        if options.source.is_file() and holds_set(options.source):
            from simdims.systems import SimilaritySet

            return SimilaritySet.load(options.source)
        from simdims.io import load_similarity

        return load_similarity(options.source)
    if options.items is None or options.dimensions is None:
        raise UsageError("Pass PILOT, a file of similarities, or --items and --dimensions for a simulated design.")
    from simdims._parameters import require_count
    from simdims.simulate import dirichlet

    require_count("items", options.items, at_least=4)
    return dirichlet(options.items, options.dimensions, alpha=0.3, random_state=seed)
