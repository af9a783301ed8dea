"""Discovery: everything that discover found, in one object that saves and loads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simdims.consensus import Consensus
from simdims.selection import RankSelection
from simdims.similarity import Similarity

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from simdims.inference import HypothesisTests

#: Items named for each dimension in a summary, and dimensions listed.
_N_ITEMS, _N_DIMENSIONS = 5, 12


@dataclass(frozen=True, eq=False, repr=False)
class Discovery:
    """What `discover` found.

    Attributes
    ----------
    similarity : Similarity
        The similarities.
    selection : RankSelection or None
        How the number of dimensions was chosen; None where it was given.
    consensus : Consensus
        The dimensions: the most central of many runs, and how far the runs agree.
    metrics : dict of str to float
        mean_reliability, explained_variance (R2 over the observed pairs), hoyer_sparsity, entropy, and link_auc where
        absent pairs are zeros; those that the data do not allow are left out, as the entropy of one dimension.
    settings : dict
        What was asked for, the seed, and the versions of the libraries.
    estimated_seconds : float
        How long it was expected to take.
    embedding : ndarray of shape (n_items, n_components)
    labels : tuple of str or None
    n_items, n_components : int
    """

    similarity: Similarity
    selection: RankSelection | None
    consensus: Consensus
    metrics: dict[str, float]
    settings: dict[str, Any]
    estimated_seconds: float

    @property
    def embedding(self) -> NDArray[np.floating]:
        """The embedding of the items."""
        return self.consensus.embedding

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The names of the items."""
        return None if self.similarity.labels is None else tuple(self.similarity.labels)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return self.consensus.n_items

    @property
    def n_components(self) -> int:
        """The number of dimensions."""
        return self.consensus.n_components

    def embedding_frame(self) -> pd.DataFrame:
        """The embedding with a row for each item, by label where there are labels, and dimension1, dimension2, ...

        Returns
        -------
        pandas.DataFrame
        """
        return self.consensus.embedding_frame()

    def dimensions_frame(self) -> pd.DataFrame:
        """One row a dimension: its share of the reconstruction, its reliability, and the items that have most of it.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        W = self.embedding.astype(np.float64)
        squares = np.sum(W**2, axis=0)
        names = self.labels or tuple(str(item) for item in range(self.n_items))
        top = [
            ", ".join(names[item] for item in np.argsort(-column, kind="stable")[:_N_ITEMS] if column[item] > 0)
            for column in W.T
        ]
        return pd.DataFrame(
            {
                "share": squares / (squares.sum() or 1.0),
                "reliability": self.consensus.reliability,
                "top_items": top,
            },
            index=pd.Index([f"dimension{k + 1}" for k in range(self.n_components)], name="dimension"),
        )

    def summary(self) -> str:
        """What was found, in words."""
        lines = []
        if self.selection is not None:
            lines.append(self.selection.summary())
        lines.append(self.consensus.summary())
        if "explained_variance" in self.metrics:
            they = "They explain" if self.n_components > 1 else "It explains"
            explained = self.metrics["explained_variance"]
            share = f"{explained:.1%}" if explained > 0 else f"none (R2 {explained:.2f})"
            lines.append(f"{they} {share} of the variance of the similarities.")
        if "link_auc" in self.metrics:
            they = "They tell" if self.n_components > 1 else "It tells"
            lines.append(f"{they} linked pairs from others with an AUC of {self.metrics['link_auc']:.3f}.")
        frame = self.dimensions_frame()
        lines += [
            f"  {k + 1:3d}. {row.share:5.1%}  {' '.join(str(row.top_items).split())}"
            for k, row in enumerate(frame.head(_N_DIMENSIONS).itertuples())
        ]
        if len(frame) > _N_DIMENSIONS:
            lines.append(f"  ... and {len(frame) - _N_DIMENSIONS} more (embedding_frame() has them all)")
        return "\n".join(lines)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything into a folder that `Discovery.load` reads; an earlier Discovery there is replaced.

        Other files in the folder of an earlier Discovery, such as a report, stay.

        embedding.csv (a row for each item) and dimensions.csv open in a spreadsheet; methods.txt is `methods_text`;
        arrays are .npz without pickle, tables .csv, and settings .json. The folder appears at once, when all of it is
        written.

        Parameters
        ----------
        folder : path
            New, empty, or of an earlier Discovery.

        Examples
        --------
        >>> discovery.save("animals")  # doctest: +SKIP
        """
        from simdims.discovery.storage import save

        save(self, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Discovery:
        """Read what `save` wrote; a folder that is damaged or half-written is refused.

        Parameters
        ----------
        folder : path

        Returns
        -------
        Discovery

        Examples
        --------
        >>> Discovery.load("animals")  # doctest: +SKIP
        """
        from simdims.discovery.storage import load

        return load(folder)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        images: Any = None,
        tests: HypothesisTests | None = None,
        title: str | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write a page to explore all this: one HTML file that opens from disk and needs no network.

        Parameters
        ----------
        path : path
            The file to write, ending in .html; an earlier report there is replaced.
        images : sequence of ndarray, path or PIL image, optional
            A picture of each item; see `simdims.report.write_report`. Needs Pillow.
        tests : HypothesisTests, optional
            Tests of hypotheses to show.
        title : str, optional
            The heading.
        overwrite : bool, default=False
            Whether to replace a file that is not a report.

        Returns
        -------
        pathlib.Path
            The file.

        Examples
        --------
        >>> discovery.report("animals.html")  # doctest: +SKIP
        """
        from simdims.report import write_report

        return write_report(self, path, images=images, tests=tests, title=title, overwrite=overwrite)

    def methods_text(self, tests: HypothesisTests | None = None) -> str:
        """A Methods paragraph for a paper with the numbers of this run, and what to cite.

        Parameters
        ----------
        tests : HypothesisTests, optional
            Tests of hypotheses to describe as well.

        Returns
        -------
        str
            The paragraph; after an empty line the works that it cites.

        Examples
        --------
        >>> from simdims import discover, simulate
        >>> W = simulate.dirichlet(40, 2, alpha=0.3, random_state=0)
        >>> found = discover(W @ W.T, ranks=2, n_runs=3, random_state=0)
        >>> print(found.methods_text())
        We factorized the similarities with Similarity-Based Representation Factorization (SRF) [SRF], ...
        """
        from simdims.discovery.methods import methods_text

        return methods_text(self, tests)

    def __repr__(self) -> str:
        explained = self.metrics.get("explained_variance")
        shown = "" if explained is None else f", R2 {explained:.3f}"
        return (
            f"Discovery({self.n_components} {'dimension' if self.n_components == 1 else 'dimensions'} of "
            f"{self.n_items} items, mean reliability "
            f"{self.consensus.mean_reliability:.3f}{shown})"
        )

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_discovery

        return of_discovery(self)

    def __str__(self) -> str:
        return self.summary()
