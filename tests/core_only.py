"""Use simdims with its core dependencies alone, whatever else is installed; test_release.py runs this.

python core_only.py FOLDER NAME ... imports nothing but the standard library, simdims, and what the distributions called
NAME install. It writes JSON: what works, and, for each feature that needs an extra, the error.
"""

import contextlib
import importlib
import io
import json
import pkgutil
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path


class OnlyThese:
    """A finder that hides every installed package but those of the given distributions."""

    def __init__(self, distributions: set[str]) -> None:
        kept = {"simdims", *distributions}
        self.hidden = {
            module
            for module, owners in packages_distributions().items()
            if kept.isdisjoint(re.sub(r"[-_.]+", "-", owner).lower() for owner in owners)
        }

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in self.hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    folder = Path(sys.argv[1])
    finder = OnlyThese(set(sys.argv[2:]))
    sys.meta_path.insert(0, finder)
    found = {"hidden": sorted(finder.hidden), "works": works(folder), "needs": needs(folder)}
    finder.hidden = {"networkx"}
    found["needs"]["graph layout"] = raised(draw_graph)
    json.dump(found, sys.stdout)


def works(folder: Path) -> dict[str, object]:
    """What needs no extra: the value of each is compared or is enough by itself."""
    import numpy as np

    import simdims
    from simdims import SRF, Discovery, dimension_test, discover, load_similarity, simulate

    modules = [module.name for module in pkgutil.walk_packages(simdims.__path__, "simdims.")]
    for name in modules:
        if name != "simdims.__main__" and not name.endswith("torch"):
            importlib.import_module(name)
    truth = simulate.dirichlet(20, 2, random_state=0)
    np.save(folder / "S.npy", truth @ truth.T)
    S = load_similarity(folder / "S.npy")
    result = discover(S, ranks=[2], n_runs=2, random_state=0)
    result.save(folder / "library")
    again = Discovery.load(folder / "library")
    again.report(folder / "library.html")
    said = command("discover", folder / "S.npy", "-o", folder / "program", "--ranks", "2", "--runs", "2", "--seed", "0")
    return {
        "modules": modules,
        "loaded": bool(np.array_equal(again.embedding, result.embedding)),
        "fitted": list(SRF(2, random_state=0).fit_transform(S).shape),
        "tested": len(dimension_test(result.embedding, truth, n_permutations=19, random_state=0).table),
        "shown": "<table" in result._repr_html_(),
        "page": (folder / "library.html").stat().st_size,
        "program": [said[0], (folder / "program" / "report.html").is_file()],
    }


def needs(folder: Path) -> dict[str, list[str]]:
    """What each feature that needs an extra says: the type of the error and its text."""
    import numpy as np
    import pandas as pd

    from simdims import (
        SRF,
        Similarity,
        bootstrap,
        calibrate,
        compare_embeddings,
        dimension_test,
        discover,
        lineage,
        load_similarity,
        plan_study,
        plots,
    )
    from simdims.datasets import fetch_mur92_behaviour, load_miserables

    (folder / "S.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    (folder / "S.parquet").write_bytes(b"PAR1")
    for suffix in ("xlsx", "feather", "rds", "h5ad"):
        (folder / f"S.{suffix}").write_bytes(b"x")
    (folder / "S.graphml").write_text("<graphml/>")
    (folder / "S.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(128) + b"\x89HDF\r\n\x1a\n")
    pictures = folder / "pictures"
    pictures.mkdir()
    for item in range(20):
        (pictures / f"{item:02d}.png").write_bytes(b"")
    S = load_similarity(folder / "S.npy")
    found = discover(S, ranks=[2, 3], sampling=0.7, n_repeats=2, n_runs=2, random_state=0)
    tests = dimension_test(found.embedding, found.embedding, n_permutations=19, random_state=0)
    compared = compare_embeddings(found.embedding, found.embedding, n_permutations=19, random_state=0)
    sure = bootstrap(S, "pairs", n_components=2, n_resamples=20, random_state=0, progress=False)
    power = {"noise": "features", "snr": 0.5, "test": "rsa", "power": 0.5, "standard_error": 0.1}
    study = pd.DataFrame([power])
    plan = plan_study(found.embedding, pairs=[0.5, 1.0], answers=1, n_repeats=1, random_state=0)
    drawn = {
        "alignment": (found.embedding, found.embedding), "calibration": (calibrate(S, random_state=0),),
        "dimension_grid": (found,), "embedding_map": (found,), "figure_panel": (found,),
        "graph": (S, found.embedding),
        "hypothesis_tests": (tests,), "item_fingerprint": (found, 0), "power_curves": (study,),
        "rank_selection": (found,), "reconstruction": (found,), "reliability": (found,),
        "save_figure": (None, folder / "x.pdf"), "embedding_comparison": (compared,),
        "uncertainty": (sure,),
        "similarity_heatmap": (S,), "word_cloud": (found, 1),
        "lineage": (lineage([found.embedding, found.embedding[:, :1]]),), "study_plan": (plan,),
        "system_weights": ([[1.5, 0.5], [0.5, 1.5]],),
        "weight_courses": ([[1.5, 0.5], [0.5, 1.5]],),
    }  # fmt: skip
    features = {f"plots.{name}": lambda name=name: getattr(plots, name)(*drawn[name]) for name in plots.__all__}
    features |= {
        "plot": lambda: fails("plot", "reliability", folder / "library", "-o", folder / "x.pdf"),
        "device": lambda: SRF(2, device="torch-cpu").fit(S),
        ".h5": lambda: load_similarity(folder / "S.h5"),
        ".mat": lambda: load_similarity(folder / "S.mat"),
        ".parquet": lambda: load_similarity(folder / "S.parquet"),
        "parquet tables": lambda: fails("discover", folder / "S.parquet", "-o", folder / "no", "--as", "ratings"),
        ".xlsx": lambda: load_similarity(folder / "S.xlsx"),
        ".feather": lambda: load_similarity(folder / "S.feather"),
        ".rds": lambda: load_similarity(folder / "S.rds"),
        ".h5ad": lambda: load_similarity(folder / "S.h5ad"),
        "to_xarray": Similarity(np.eye(3)).to_xarray,
        "to_anndata": Similarity(np.eye(3)).to_anndata,
        ".graphml": lambda: load_similarity(folder / "S.graphml"),
        "to_networkx": S.to_networkx,
        "to_rsatoolbox": Similarity(np.eye(3)).to_rsatoolbox,
        "load_miserables": load_miserables,
        "demo --words": lambda: fails("demo", "--words", "-o", folder / "no"),
        "fetch": fetch_mur92_behaviour,
        "completion": lambda: fails("completion", "bash"),
        "report": lambda: found.report(folder / "no.html", images=[np.zeros((4, 4))] * 20),
        "--images": lambda: fails("discover", folder / "S.npy", "-o", folder / "no", "--images", pictures),
    }
    errors = {name: raised(feature) for name, feature in features.items()}
    errors["written"] = sorted(path.name for path in folder.glob("no*"))
    return errors


def draw_graph() -> None:
    import numpy as np

    from simdims import plots

    plots.graph(np.eye(3) + 0.1, np.eye(3))


def command(*words: object) -> tuple[int, str]:
    """Run the program here: its status and what it writes to stderr."""
    from simdims.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        return main([str(word) for word in words]), said.getvalue()


def fails(*words: object) -> None:
    status, said = command(*words)
    if status == 1:
        raise SystemExit(said)


def raised(feature) -> list[str]:
    try:
        feature()
    except (Exception, SystemExit) as error:
        return [type(error).__name__, str(error)]
    return ["nothing", ""]


if __name__ == "__main__":
    main()
