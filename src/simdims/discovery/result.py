"""Discovery: the complete result of discover, which can be saved and loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simdims._parameters import ParameterError, plural, require_type, shortlist, warn
from simdims.consensus import Consensus
from simdims.consensus.result import numbered_names
from simdims.selection import DetectableDimensions, RankSelection, SystemsComparison
from simdims.selection.comparison import MODELS
from simdims.selection.result import NOT_RECORDED, HeldOut, held_out_words
from simdims.similarity import Similarity
from simdims.systems import SimilaritySet
from simdims.uncertainty import Bootstrap
from simdims.uncertainty.fits import shares_of
from simdims.uncertainty.result import SAME, cosines

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from simdims.consensus import Lineage
    from simdims.encoder import DimensionEncoder
    from simdims.inference import EmbeddingComparison, HypothesisTests

#: Top items per dimension in a summary, and dimensions listed.
_N_ITEMS, _N_DIMENSIONS = 5, 12


class CeilingR2(NamedTuple):
    """R2 over all systems of the mean of the other systems (`lower`), and of the mean of all (`upper`)."""

    lower: float
    upper: float


@dataclass(frozen=True, eq=False, repr=False)
class Discovery:
    """The result of `discover`.

    Attributes
    ----------
    similarity : Similarity or SimilaritySet
        The similarities of one or several systems.
    selection : RankSelection or None
        How the number of dimensions was chosen; None if it was given.
    consensus : Consensus
        The dimensions: the most central of many runs, and the agreement between runs.
    metrics : dict of str to float
        held_out_r2 and held_out_r2_standard_error (cross-validated, see `RankSelection`; not of the final fits, which
        use all pairs), mean_reliability (across random starts), explained_variance (in-sample R2 over the observed
        pairs; for several systems over the pairs of all, relative to the mean of each), hoyer_sparsity, entropy, and
        link_auc (in sample) if absent pairs are zeros; for several systems also noise_ceiling_lower and
        noise_ceiling_upper (see `noise_ceiling`). Metrics that are undefined for the data are omitted, such as the
        entropy of one dimension.
    settings : dict
        The settings, the versions of the libraries, and the seed. held_out says how the held-out R2 was computed, or
        why it was not.
    seed : int or None
        ``settings["seed"]``: with the same versions, data and settings, ``random_state=seed`` reproduces this result.
        None if the folder or checkpoint is from an earlier version that did not record it.
    estimated_seconds : float or None
        Estimated run time, if it was estimated, as the command line does.
    detectable : DetectableDimensions or None
        How many dimensions can be distinguished from noise, whether or not they improve predictions; the search stops
        at twice the selected number plus 10. None if the number of dimensions was given, if memory is insufficient, and
        in folders of earlier versions.
    encoder : DimensionEncoder or None
        Predicts the dimensions of new items from features, if `with_encoder` fitted one.
    evidence_of_structure : bool or None
        Whether held-out similarities are predicted better than by their mean, by more than two standard errors; None if
        unknown. If False, the dimensions describe noise.
    systems : SystemsComparison or None
        For a SimilaritySet: how well held-out pairs are predicted by the average, with weights, and by each system
        alone. None for one system.
    weights : ndarray of shape (n_systems, n_components) or None
        For a SimilaritySet: how much each system uses each dimension, in the most central run. None for one system.
    embedding : ndarray of shape (n_items, n_components)
    labels : tuple of str or None
    n_items, n_components : int
    """

    similarity: Similarity | SimilaritySet
    selection: RankSelection | None
    consensus: Consensus
    metrics: dict[str, float]
    settings: dict[str, Any]
    estimated_seconds: float | None = None
    detectable: DetectableDimensions | None = None
    systems: SystemsComparison | None = None
    encoder: DimensionEncoder | None = None

    @property
    def seed(self) -> int | None:
        """The `random_state` that reproduces this result; None if it was not recorded."""
        # Earlier versions recorded a derived seed, and nothing about held-out pairs.
        return self.settings.get("seed") if "held_out" in self.settings else None

    @property
    def held_out(self) -> HeldOut | None:
        """R2 of held-out similarities, if it is known."""
        return HeldOut.of(self.metrics.get("held_out_r2"), self.metrics.get("held_out_r2_standard_error"))

    @property
    def held_out_words(self) -> str:
        """The held-out R2 as text, or why it is unknown."""
        return held_out_words(self.held_out, self.settings.get("held_out", {}).get("reason", NOT_RECORDED))

    @property
    def noise_ceiling(self) -> CeilingR2 | None:
        """R2 of the mean of the other systems and of the mean of all, over all systems; None if unknown.

        Squared correlations of `metrics.noise_ceiling`, weighted by the variance of each system's similarities. They
        are those of a line fitted to each system, which makes them comparable with `common_r2`, and bound predictions
        common to all systems; a fit with weights can exceed them.
        """
        bounds = [self.metrics.get(f"noise_ceiling_{name}") for name in CeilingR2._fields]
        return None if bounds[0] is None or bounds[1] is None else CeilingR2(bounds[0], bounds[1])

    @property
    def noise_ceiling_words(self) -> str:
        """The noise ceiling, and the R2 of the average as a share of it; empty if unknown."""
        if self.noise_ceiling is None:
            return ""
        (lower, upper), common = self.noise_ceiling, self.common_r2
        text = (
            f"Noise ceiling: the mean of the other systems explains {lower:.1%} of the variance of a system's "
            f"similarities, and the mean of all systems {upper:.1%}."
        )
        if common is None or self.share_of_ceiling is None:
            return text
        of_lower = f"{common / lower:.0%} of the lower and " if lower > 0 else ""
        text += f" {MODELS['scale'].capitalize()} reaches {of_lower}{self.share_of_ceiling:.0%} of the upper bound."
        if self.held_out is not None and self.held_out.r2 > upper:
            text += " Weights predict a system beyond what it has in common with the others."
        return text

    @property
    def common_r2(self) -> float | None:
        """Held-out R2 of the same weights for all systems, on a line for each system; None where not known."""
        return None if self.systems is None else float(self.systems.comparison["r2"]["scale"])

    @property
    def share_of_ceiling(self) -> float | None:
        """`common_r2` as a share of the upper bound of the noise ceiling; None if either is unknown or not positive."""
        common, ceiling = self.common_r2, self.noise_ceiling
        if common is None or ceiling is None or common <= 0 or ceiling.upper <= 0:
            return None
        return common / ceiling.upper

    def detected(self) -> str:
        """A sentence on the numbers of selected and of detectable dimensions; empty if unknown."""
        if self.detectable is None:
            return ""
        return f"Cross-validation supports {self.n_components}; {self.detectable.words()}."

    @property
    def evidence_of_structure(self) -> bool | None:
        """Whether held-out similarities are predicted better than by their mean, by more than two standard errors."""
        return None if self.held_out is None else self.held_out.is_evidence

    @property
    def embedding(self) -> NDArray[np.floating]:
        """The embedding of the items."""
        return self.consensus.embedding

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """The weights of the systems in the most central run; None for one system."""
        return None if self.consensus.weights is None else self.consensus.weights[self.consensus.selected]

    @property
    def mean_similarity(self) -> Similarity:
        """The similarities; for several systems, their average."""
        return self.similarity.mean() if isinstance(self.similarity, SimilaritySet) else self.similarity

    @property
    def dimension_names(self) -> tuple[str, ...]:
        """Names of the dimensions: dimension1, dimension2, ... unless changed by `rename`."""
        return self.consensus.dimension_names

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Names of the items."""
        return None if self.similarity.labels is None else tuple(self.similarity.labels)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.consensus.n_items

    @property
    def n_components(self) -> int:
        """Number of dimensions."""
        return self.consensus.n_components

    def embedding_frame(self) -> pd.DataFrame:
        """The embedding with one row per item, by label if there are labels, and one column per dimension.

        Returns
        -------
        pandas.DataFrame
        """
        return self.consensus.embedding_frame()

    def weights_frame(self) -> pd.DataFrame:
        """The weights with one row per system and one column per dimension; only for a SimilaritySet.

        Returns
        -------
        pandas.DataFrame
        """
        return self.consensus.weights_frame()

    def dimensions_frame(self, uncertainty: Bootstrap | None = None) -> pd.DataFrame:
        """One row per dimension: its share of the reconstruction, its reliability and its top-loading items.

        The first column is `name` if any dimension has a name; see `rename`.

        Parameters
        ----------
        uncertainty : Bootstrap, optional
            Resamples of this result; adds share_low, share_high and came_back.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        W = self.embedding.astype(np.float64)
        names = self.labels or tuple(str(item) for item in range(self.n_items))
        top = [
            ", ".join(names[item] for item in np.argsort(-column, kind="stable")[:_N_ITEMS] if column[item] > 0)
            for column in W.T
        ]
        resampled: dict[str, Any] = {}
        if uncertainty is not None:
            check_resampled(self, uncertainty)
            low, high = uncertainty.interval("shares")
            resampled = {"share_low": low, "share_high": high, "came_back": uncertainty.came_back}
        given = custom_names(self)
        return pd.DataFrame(
            {
                **({"name": given} if any(given) else {}),
                "share": shares_of(W),
                **resampled,
                "reliability": self.consensus.reliability,
                "top_items": top,
            },
            index=pd.Index(numbered_names(self.n_components), name="dimension"),
        )

    def rename(self, names: Mapping[Any, str | None] | str | os.PathLike[str]) -> Discovery:
        """Return this result with named dimensions, for use in tables, figures, tests and reports.

        Parameters
        ----------
        names : mapping or path
            Names of dimensions, keyed by number (from 1) or current name; None removes a name, and dimensions that are
            not listed are unchanged. Or a file with names saved from the report page of this result: .json, or a table
            with columns dimension and name.

        Returns
        -------
        Discovery

        Examples
        --------
        >>> from simdims import discover, simulate
        >>> W = simulate.dirichlet(40, 2, alpha=0.3, random_state=0)
        >>> found = discover(W @ W.T, ranks=2, n_runs=3, random_state=0)
        >>> found.rename({1: "animal", 2: "food"}).dimension_names
        ('animal', 'food')
        """
        from simdims.discovery.names import renamed

        return renamed(self, names)

    def with_encoder(self, X: Any, encoder: DimensionEncoder | None = None) -> Discovery:
        """Return this result with an encoder that predicts the dimensions of new items from features.

        The encoder is saved with the result, so `Discovery.load(folder).encode(X_new)` needs no fit.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_items, n_features)
            Features of the items; rows are matched by name if both sides name the items.
        encoder : DimensionEncoder, optional
            Encoder settings.

        Returns
        -------
        Discovery

        Examples
        --------
        >>> found = found.with_encoder(features)  # doctest: +SKIP
        >>> found.encoder.scores_frame()  # doctest: +SKIP
        """
        from simdims.encoder import fitted_encoder

        return replace(self, encoder=fitted_encoder(X, self.embedding_frame(), encoder))

    def encode(self, X: Any) -> pd.DataFrame:
        """Predict the dimensions of items from features, with the encoder of `with_encoder`.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_items, n_features)
            The features that the encoder was fitted to, for any items.

        Returns
        -------
        pandas.DataFrame
            One row per item, named by the index of X if it has one, and one column per dimension.

        Examples
        --------
        >>> Discovery.load("animals").encode(features_of_new_animals)  # doctest: +SKIP
        """
        import pandas as pd

        if self.encoder is None:
            raise ParameterError("encode", "needs an encoder", "none", "call found = found.with_encoder(X) first")
        predicted = self.encoder.predict(X)
        if isinstance(predicted, pd.DataFrame):
            return predicted
        return pd.DataFrame(predicted, columns=self.encoder.dimension_names_)

    def summary(self) -> str:
        """The findings as text."""
        if self.selection is not None:
            lines = [self.selection.summary(), self.detected()]
        else:
            verdict = "" if self.held_out is None or self.held_out.is_evidence else self.held_out.verdict()
            lines = [verdict, f"{self.held_out_words}."]
        lines += ["" if self.systems is None else self.systems.summary(), self.noise_ceiling_words]
        lines = [*filter(None, lines), self.consensus.summary()]
        beside = "" if self.held_out is None else f" ({self.held_out.figures()})"
        if "explained_variance" in self.metrics:
            they = "they explain" if self.n_components > 1 else "it explains"
            explained = self.metrics["explained_variance"]
            share = f"{explained:.1%}" if explained > 0 else f"none (R2 {explained:.2f})"
            lines.append(f"In sample, {they} {share} of the variance of the similarities{beside}.")
        if "link_auc" in self.metrics:
            they = "they tell" if self.n_components > 1 else "it tells"
            auc = self.metrics["link_auc"]
            lines.append(f"In sample, {they} linked pairs from others with an AUC of {auc:.3f}{beside}.")
        frame = self.dimensions_frame()
        rows = zip(frame.head(_N_DIMENSIONS).itertuples(), custom_names(self), strict=False)
        for k, (row, name) in enumerate(rows, start=1):
            items = " ".join(str(row.top_items).split())
            lines.append(f"  {k:3d}. {row.share:5.1%}  {name and f'{name}: '}{items}")
        if len(frame) > _N_DIMENSIONS:
            lines.append(f"  ... and {len(frame) - _N_DIMENSIONS} more (embedding_frame() has them all)")
        return "\n".join(lines)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the result in a folder for `Discovery.load`; an earlier Discovery there is replaced.

        Other files in the folder of an earlier Discovery, such as a report, are kept.

        embedding.csv (one row per item), dimensions.csv and, for several systems, weights.csv and systems.csv (one row
        per system) open in a spreadsheet; methods.txt is `methods_text`; arrays are .npz without pickle, tables .csv,
        and settings .json. The folder appears only once it is complete.

        Parameters
        ----------
        folder : path
            A new or empty folder, or an earlier Discovery.

        Examples
        --------
        >>> discovery.save("animals")  # doctest: +SKIP
        """
        from simdims.discovery.storage import save

        save(self, folder)

    def to_bids(self, folder: str | os.PathLike[str]) -> Path:
        """Write the tables as a BIDS derivative: embedding.tsv, dimensions.tsv and, for several systems, weights.tsv.

        Each table has a .json file of the same name that describes its columns. dataset_description.json records the
        version of simdims, and README holds `methods_text`. Missing values are n/a.

        Parameters
        ----------
        folder : path
            A new or empty folder, or an earlier export, which is replaced.

        Returns
        -------
        pathlib.Path
            The folder.

        Examples
        --------
        >>> discovery.to_bids("derivatives/simdims")  # doctest: +SKIP
        """
        from simdims.discovery.bids import export

        return export(self, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Discovery:
        """Load a result written by `save`; a damaged or incomplete folder is an error.

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
        suggestions: pd.DataFrame | None = None,
        lineage: Lineage | None = None,
        uncertainty: Bootstrap | None = None,
        comparison: EmbeddingComparison | Mapping[str, EmbeddingComparison] | None = None,
        title: str | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write an interactive report: one HTML file that opens from disk and needs no network.

        Parameters
        ----------
        path : path
            The file to write, ending in .html; an earlier report is replaced.
        images : sequence of ndarray, path or PIL image, optional
            A picture of each item; see `simdims.report.write_report`. Needs Pillow.
        tests : HypothesisTests, optional
            Tests of hypotheses to show.
        suggestions : DataFrame, optional
            A table of `label_dimensions`: suggested names, which the reader can accept.
        lineage : Lineage, optional
            How dimensions split as their number grows; see `simdims.lineage`.
        uncertainty : Bootstrap, optional
            Resamples of this result; adds intervals and how often each dimension came back.
        comparison : EmbeddingComparison or mapping of names to EmbeddingComparison, optional
            Comparisons of this result with other embeddings; the keys of a mapping name them.
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

        shown: dict[str, Any] = {"images": images, "tests": tests, "suggestions": suggestions, "lineage": lineage}
        shown |= {"uncertainty": uncertainty, "comparison": comparison}
        return write_report(self, path, title=title, overwrite=overwrite, **shown)

    def methods_text(self, tests: HypothesisTests | None = None, uncertainty: Bootstrap | None = None) -> str:
        """Describe this run in a Methods paragraph for a paper, with citations.

        Parameters
        ----------
        tests : HypothesisTests, optional
            Tests of hypotheses to describe as well.
        uncertainty : Bootstrap, optional
            Resamples of this result to describe as well.

        Returns
        -------
        str
            The paragraph, followed by an empty line and the works that it cites.

        Examples
        --------
        >>> from simdims import discover, simulate
        >>> W = simulate.dirichlet(40, 2, alpha=0.3, random_state=0)
        >>> found = discover(W @ W.T, ranks=2, n_runs=3, random_state=0)
        >>> print(found.methods_text())
        We factorised the similarities with Similarity-Based Representation Factorization (SRF) [SRF], ...
        """
        from simdims.discovery.methods import methods_text

        return methods_text(self, tests, uncertainty)

    def __repr__(self) -> str:
        explained, held = self.metrics.get("explained_variance"), self.held_out
        verdict = "no evidence of structure; " if self.evidence_of_structure is False else ""
        shown = "held-out R2 not known" if held is None else held.figures()
        in_sample = "" if explained is None else f", in-sample R2 {explained:.3f}"
        n_systems = 0 if self.weights is None else len(self.weights)
        of_systems = f" in {n_systems} {plural('system', n_systems)}" if n_systems else ""
        return (
            f"Discovery({verdict}{self.n_components} {plural('dimension', self.n_components)} of {self.n_items} items"
            f"{of_systems}, {shown}{in_sample}, mean reliability across random starts "
            f"{self.consensus.mean_reliability:.3f})"
        )

    def _repr_html_(self) -> str:
        from simdims.plots._html import of_discovery

        return of_discovery(self)

    def __str__(self) -> str:
        return self.summary()


def custom_names(found: Discovery) -> list[str]:
    """The name that each dimension was given; empty without one."""
    numbers = numbered_names(found.n_components)
    return ["" if name == number else name for name, number in zip(found.dimension_names, numbers, strict=True)]


def check_resampled(found: Discovery, uncertainty: Any) -> None:
    """Refuse anything but a bootstrap of this result."""
    require_type("uncertainty", uncertainty, Bootstrap, "a Bootstrap of this result")
    wanted, given = found.embedding.shape, uncertainty.embedding.shape
    if given != wanted or uncertainty.labels != found.labels:
        got = f"one of {given[0]} items and {given[1]} dimensions"
        raise ParameterError("uncertainty", "must be of this result", got, "pass this result to {bootstrap()}")
    found_again = cosines(found.embedding, uncertainty.embedding)
    least = int(found_again.argmin())
    if np.median(found_again) < SAME or found_again[least] < SAME / 2:
        got = f"one whose dimension {least + 1} differs (cosine {found_again[least]:.2f})"
        remedy = "pass this result to {bootstrap()}; if its fit has not converged, repeat that first"
        raise ParameterError("uncertainty", "must be of this result", got, remedy)
    if (moved := np.flatnonzero(found_again < SAME)).size:
        listed = shortlist([f"dimension {k + 1} (cosine {found_again[k]:.2f})" for k in moved])
        warn(f"The stricter tolerance of the bootstrap changed {listed}; its intervals may not include the loadings.")
