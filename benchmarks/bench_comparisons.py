"""Comparisons of faces: held-out accuracy per person and overall, with the ceiling of repeated answers.

    python benchmarks/bench_comparisons.py [--data ../shared/data]

Five folds over the answers of 26 people to "which of two faces is more like the head?". The number of dimensions is
selected on the training answers of each fold. "shared": one embedding for all people. "weights": the same number of
dimensions with weights per person. "counts": the similarities themselves, without dimensions. Ceilings are of all
answers to the same question, and of repeated answers of the same person. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from simdims import SRF, JointSRF, from_comparisons, metrics, select_rank

N_FOLDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("SIMDIMS_DATA", "../shared/data")))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    answers = pd.read_csv(options.data / "faces36" / "answers.csv", dtype={"participant": str})
    warnings.simplefilter("ignore")  # few answers per question; both bounds of the ceiling are shown
    fold = np.random.default_rng(options.seed).integers(N_FOLDS, size=len(answers))
    rows = [_scores(answers[fold != k], answers[fold == k], options.seed) for k in range(N_FOLDS)]
    table = pd.concat([pd.DataFrame(scores) for scores in rows])
    mean = table.groupby("participant")[["counts", "shared", "weights"]].mean()
    print("| participant | counts | shared | weights | ceiling of the person |\n|---|---|---|---|---|")
    own = metrics.comparison_ceiling(answers, by="participant")
    every = metrics.comparison_ceiling(answers)
    repeated = metrics.comparison_ceiling(answers, min_answers=20)
    for name, row in mean.sort_values("weights").iterrows():
        ceiling = metrics.comparison_ceiling(answers[answers["participant"] == name])
        print(f"| {name} | {_shown(row)} | {ceiling.lower:.2f} to {ceiling.ceiling:.2f} ({ceiling.n_triplets}) |")
    print(f"| mean | {_shown(mean.mean())} | {own.lower:.3f} to {own.ceiling:.3f} ({own.n_triplets}) |")
    print(f"\ndimensions: {[scores[0]['rank'] for scores in rows]}")
    print(f"all people, questions with 2 answers or more: {every}")
    print(f"all people, questions with 20 answers or more: {repeated}")
    print(f"one person, repeated: {own}")


def _scores(train: pd.DataFrame, test: pd.DataFrame, seed: int) -> list[dict]:
    S = from_comparisons(train, weights="counts", diagonal="missing")
    chosen = select_rank(S, random_state=seed)
    shared = SRF(chosen.rank, alpha=chosen.alpha, random_state=seed).fit(S)
    people = from_comparisons(train, by="participant", weights="counts")
    joint = JointSRF(chosen.rank, random_state=seed).fit(people)
    rows = []
    for name, own in test.groupby("participant"):
        weighted = joint.embedding_ * np.sqrt(joint.weights_[people.names.index(name)])
        rows.append(
            {
                "participant": name,
                "rank": chosen.rank,
                "counts": metrics.comparison_accuracy(S, own),
                "shared": metrics.comparison_accuracy(shared.embedding_, own, labels=S.labels),
                "weights": metrics.comparison_accuracy(weighted, own, labels=people.labels),
            }
        )
    return rows


def _shown(row: pd.Series) -> str:
    return " | ".join(f"{row[name]:.3f}" for name in ("counts", "shared", "weights"))


if __name__ == "__main__":
    main()
