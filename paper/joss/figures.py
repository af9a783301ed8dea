"""Make the figure of paper.md from a gallery program: python paper/joss/figures.py."""

import runpy
from pathlib import Path

from matplotlib import pyplot

HERE = Path(__file__).resolve().parent
PROGRAM = HERE.parents[1] / "docs" / "gallery" / "plot_start_ratings.py"


def main() -> None:
    """Run the program and save its figure."""
    pyplot.switch_backend("agg")
    made = runpy.run_path(str(PROGRAM))
    made["figure"].savefig(HERE / "ratings.png", dpi=200, metadata={"Software": None})


if __name__ == "__main__":
    main()
