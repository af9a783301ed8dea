"""The dimensions behind the similarities of 1,797 handwritten digits.

Every image is 8 x 8 pixels. Two images are similar where their strokes overlap: S_ij is the cosine of their
pixel vectors. SRF finds a dozen dimensions behind these similarities without being told which digit an image
shows; what is printed is the strokes that each dimension stands for, and the digits that hold most of it. Run it with
``make demo``.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from simdims import SRF, as_similarity


def main() -> None:
    """Fit, print a summary and save the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--components", type=int, default=12, help="number of dimensions (default: 12)")
    parser.add_argument("--output", type=Path, default=Path("demo_output"), help="folder for the result")
    options = parser.parse_args()

    images, digits = load_digits(return_X_y=True)
    pixels = normalize(images)
    labels = [f"image {number:04d}: {digit}" for number, digit in enumerate(digits)]
    S = as_similarity(pixels @ pixels.T, labels=labels)

    started = time.perf_counter()
    model = SRF(n_components=options.components, max_iter=3000, random_state=0).fit(S)
    seconds = time.perf_counter() - started

    print(f"Similarities of {S.n_items} handwritten digits, {options.components} dimensions\n")
    print(summarise(model.embedding_, digits).to_string(index=False))
    print("\nWhat each dimension looks like: its images minus the average image\n")
    print(draw(model.embedding_, images))
    ending = "converged" if model.converged_ else "stopped before convergence"
    print(f"\nReconstruction of the similarities: R2 = {model.score(S):.3f}")
    print(f"{ending} after {model.n_iter_} sweeps, {seconds:.1f} s (compilation included)")
    print(f"objective {model.objective_:.4g}, KKT residual {model.kkt_residual_:.1e}")
    for path in save(model, labels, digits, options.output):
        print(f"saved {path}")


def summarise(embedding: np.ndarray, digits: np.ndarray) -> pd.DataFrame:
    """One row a dimension: its share of the reconstruction, and the digits that hold most of its weight."""
    share = np.sum(embedding**2, axis=0) / np.sum(embedding**2)
    weight = np.stack([embedding[digits == digit].sum(axis=0) for digit in range(10)])
    weight /= weight.sum(axis=0)
    rows = []
    for k in range(embedding.shape[1]):
        top = np.argsort(weight[:, k])[::-1][:3]
        rows.append(
            {
                "dimension": k + 1,
                "share": f"{share[k]:.1%}",
                "digits (part of its weight)": ", ".join(f"{d} ({weight[d, k]:.0%})" for d in top),
            }
        )
    return pd.DataFrame(rows)


def draw(embedding: np.ndarray, images: np.ndarray, per_line: int = 6) -> str:
    """The strokes of each dimension in letters: the mean image weighted by the dimension, where it exceeds the mean."""
    weights = embedding**2 / np.sum(embedding**2, axis=0)
    excess = np.clip(weights.T @ images - images.mean(axis=0), 0, None)
    shades = np.array(list(" .:-=+*#%@"))
    level = np.minimum(excess / excess.max(axis=1, keepdims=True) * len(shades), len(shades) - 1).astype(int)
    pictures = shades[level].reshape(-1, 8, 8)
    lines = []
    for first in range(0, len(pictures), per_line):
        group = range(first, min(first + per_line, len(pictures)))
        lines.append("   ".join(f"{k + 1:<16d}" for k in group))
        lines += ["   ".join("".join(2 * letter for letter in pictures[k][row]) for k in group) for row in range(8)]
        lines.append("")
    return "\n".join(line.rstrip() for line in lines)


def save(model: SRF, labels: list[str], digits: np.ndarray, folder: Path) -> list[Path]:
    """The embedding as a table with labels, and as arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    table, arrays = folder / "digits_embedding.csv", folder / "digits_embedding.npz"
    model.embedding_frame().to_csv(table, index_label="item")
    np.savez_compressed(arrays, embedding=model.embedding_, labels=np.array(labels), digits=digits)
    return [table, arrays]


if __name__ == "__main__":
    main()
