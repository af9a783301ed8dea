"""The dimensions behind the similarities of handwritten digits, in Python; `simdims demo` does it on the command line.

Two images of 8 x 8 pixels are similar where their pixels are. Which digit an image shows is not used, and yet the
dimensions are ways of writing one: a slanted 1, a crossed 7, a closed 4.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from simdims import discover, from_features


def main() -> None:
    """Find dimensions of 300 images and write a page that shows them."""
    digits = load_digits()
    rows = np.sort(np.random.default_rng(0).permutation(len(digits.data))[:300])
    labels = [f"{digits.target[row]} (image {row})" for row in rows]
    S = from_features(digits.data[rows], kernel="rbf", labels=labels)

    found = discover(S, ranks=[10, 15, 20, 25, 30], n_repeats=1, n_runs=5, random_state=0, n_jobs=-1)
    print(found)

    folder = Path("demo_output")
    folder.mkdir(exist_ok=True)
    print("Report:", found.report(folder / "digits.html", images=16 - digits.images[rows]))


if __name__ == "__main__":
    main()
