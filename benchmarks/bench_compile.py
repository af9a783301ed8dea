"""How long kernels take to compile on first use, in processor time, for each kind of data.

    python benchmarks/bench_compile.py

Starts with an empty cache. Kernels that an earlier kind of data has compiled are not counted again.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings

os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp()

import numpy as np
from numba.core import event
from scipy import sparse

from simdims import SRF, Similarity, simulate


class Clock(event.Listener):
    """Processor time of compilations, those inside others included once."""

    def __init__(self) -> None:
        self.depth, self.began, self.seconds = 0, 0.0, 0.0

    def on_start(self, event: event.Event) -> None:
        """Begin a compilation."""
        if self.depth == 0:
            self.began = time.process_time()
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        """End it."""
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.process_time() - self.began


def main() -> None:
    warnings.simplefilter("ignore")
    clock = Clock()
    event.register("numba:compile", clock)
    W = simulate.dirichlet(60, 3, alpha=0.3, random_state=0)
    S = W @ W.T
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.1, 1, S.shape)
    W = simulate.dirichlet(1200, 3, alpha=0.3, random_state=0)
    fitted = SRF(3, random_state=0)
    kinds = {
        "complete": lambda: fitted.fit(S),
        "70% observed": lambda: fitted.fit(simulate.mask_pairs(S, 0.7, random_state=0)),
        "20% observed": lambda: fitted.fit(simulate.mask_pairs(S, 0.2, random_state=0)),
        "weights": lambda: fitted.fit(Similarity(S, weights=weights + weights.T)),
        "sparse": lambda: fitted.fit(Similarity(sparse.csr_array(np.where(S > 0.5, S, 0)), absent="zero")),
        "penalty": lambda: SRF(3, alpha="auto", random_state=0).fit(simulate.mask_pairs(S, 0.7, random_state=0)),
        "ADMM": lambda: SRF(3, solver="admm", random_state=0).fit(simulate.mask_pairs(S, 0.7, random_state=0)),
        "new items": lambda: fitted.fit(S).transform(S[:5]),
        "1,200 items": lambda: SRF(3, max_iter=5, random_state=0).fit(W @ W.T),
    }
    print("| data | compilation (s) |\n|---|---|")
    for name, fit in kinds.items():
        before = clock.seconds
        fit()
        print(f"| {name} | {clock.seconds - before:.2f} |")
    print(f"| all | {clock.seconds:.2f} |")


if __name__ == "__main__":
    main()
