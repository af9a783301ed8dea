"""A Methods paragraph for a paper, filled with the numbers of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from simdims import __version__
from simdims._parameters import ParameterTypeError, plural, shown
from simdims.discovery.result import Discovery, check_resampled, custom_names
from simdims.inference.result import HypothesisTests
from simdims.selection.result import CLEARLY, LEAST_SHARE, MOST_WORSE, NEGLIGIBLE
from simdims.similarity.entries import value_range
from simdims.systems import SimilaritySet

if TYPE_CHECKING:
    from simdims.selection import RankSelection
    from simdims.selection.result import HeldOut
    from simdims.similarity import Similarity
    from simdims.uncertainty import Bootstrap

#: How held-out pairs are predicted; those of several systems as by "paper".
_PREDICTED = {
    "averaged": "by the mean prediction of all fits not trained on it",
    "penalised": "by the fit of its fold, rescaled by a regression on the held-out pairs of the other folds",
    "paper": "by the fit of its fold",
}

#: Numbers of answers in `info`, which are added up over systems.
_COUNTED = ("n_triplets", "n_comparisons")

_SRF = (
    "[SRF] F. P. Mahner, K. C. Lam, F. Pereira and M. N. Hebart (2026). Revealing the core dimensions underlying "
    "representations in brains, behavior and AI. arXiv:2605.26921."
)
SIMDIMS = "[simdims] The simdims developers. simdims {version}: the dimensions behind similarities."


def methods_text(found: Discovery, tests: HypothesisTests | None = None, uncertainty: Bootstrap | None = None) -> str:
    """The paragraph and its citations."""
    if uncertainty is not None:
        check_resampled(found, uncertainty)
    if not isinstance(tests, HypothesisTests | None):
        raise ParameterTypeError("tests", "must be the result of a hypothesis test, or None", shown(tests))
    version = str(found.settings.get("versions", {}).get("simdims", __version__))
    held = found.held_out
    sentences = [
        *([] if held is None or held.is_evidence else [_verdict(held)]),
        "We factorised the similarities with Similarity-Based Representation Factorization (SRF) [SRF], as "
        f"implemented in simdims {version} [simdims].",
        *describe_data(found.similarity),
        *_fit(found),
        *_weights(found),
        *_selection(found),
        *_stability(found),
        *(() if uncertainty is None else [uncertainty.methods_text()]),
        *_quality(found),
        *_names(found),
        *(() if tests is None else describe_tests(tests)),
        *([] if found.seed is None else [f"The random seed was {found.seed}."]),
    ]
    return " ".join(sentences) + f"\n\n{_SRF}\n{SIMDIMS.format(version=version)}"


def _verdict(held: HeldOut) -> str:
    return (
        "We found no evidence of structure: held-out similarities were not predicted better than by their mean "
        f"({held.figures()}: at most two standard errors above zero)."
    )


def describe_data(S: Similarity | SimilaritySet) -> list[str]:
    """Sentences on how the similarities were made (all systems, if alike), and on the numbers of items and pairs."""
    if isinstance(S, SimilaritySet):
        totals: Counter[str] = Counter()
        for one in S:
            totals.update({key: one.info[key] for key in _COUNTED if key in one.info})
        made_of_distances = all(one.info.get("source") == "dissimilarity" for one in S)
        has_medians = made_of_distances and len({one.info.get("sigma") for one in S}) > 1
        in_common = {**totals, **({"sigma": None} if has_medians else {})}
        ways = {(_origin({**one.info, **in_common}, " of each system"), _negatives(one.info)) for one in S}
        made = [sentence for sentence in next(iter(ways)) if sentence] if len(ways) == 1 else []
        pairs = "all pairs" if S.density == 1 else f"{_percent(S.density)} of the pairs"
        counted = f"{S.n_systems:,} {plural('system', S.n_systems)}"
        return [*made, f"The data were {S.n_items:,} items in {counted}, with {pairs} observed."]
    made = [sentence for sentence in (_origin(S.info) or _scale(S), _diagonal(S), _negatives(S.info)) if sentence]
    return [*made, f"The data were {S.n_items:,} items, {_coverage(S)}."]


def _origin(info: Mapping[str, Any], of_each: str = "") -> str:
    """How the similarities were made, if one of the package's constructors made them."""
    source = info.get("source")
    if source == "triplets":
        return (
            f"Similarities were estimated from {info['n_triplets']:,} odd-one-out judgements: of the times that a "
            "pair was shown, the share in which its two items were kept together, with Laplace smoothing of "
            f"{info['smoothing']:g}."
        )
    if source == "comparisons":
        return (
            f"Similarities were estimated from {info['n_comparisons']:,} comparisons of two items with a third one: of "
            "the times that a pair was compared with another pair of the same item, the share in which it was judged "
            f"more similar, with Laplace smoothing of {info['smoothing']:g}."
        )
    if source == "ratings":
        people = f" of {info['n_participants']:,} participants" if "n_participants" in info else ""
        return (
            f"Similarities were mean ratings{people}, rescaled from the scale {info['low']:g} to {info['high']:g} to "
            "the range 0 to 1."
        )
    if source == "associations":
        return (
            "Similarities were positive pointwise mutual information of symmetrised association counts, in the largest "
            "strongly connected component of the association graph."
        )
    if source == "dissimilarity":
        width = f"the median{of_each}" if info.get("sigma") is None else f"{info['sigma']:.3g}"
        gaussian = f"exp(-d^2 / (2 sigma^2)) of dissimilarities d, with sigma = {width}"
        largest = f"1 minus dissimilarities divided by the largest{of_each}"
        plain = {"max": largest, "correlation": "1 minus dissimilarities"}
        how = plain.get(info["method"], gaussian)
        people = f", averaged over {info['n_people']} matrices" if info["n_people"] > 1 else ""
        return f"Similarities were {how}{people}."
    if source == "features":
        rbf = f"Gaussian kernels (bandwidth sigma = {info.get('sigma', 0):.3g})"
        kernels = {"linear": "dot products", "cosine": "cosines", "rbf": rbf}
        kernel = kernels.get(info["kernel"], f"{info['kernel']} kernels")
        landmarks = f", approximated from {info['n_landmarks']:,} landmarks" if "n_landmarks" in info else ""
        return f"Similarities were {kernel} of {info['n_features']:,} features{landmarks}."
    return f"Similarities were averaged over {info['n_people']} matrices." if "n_people" in info else ""


def _diagonal(S: Similarity) -> str:
    """The treatment of the diagonal, if nobody judged it."""
    if S.info.get("source") not in ("triplets", "comparisons", "ratings", "dissimilarity"):
        return ""
    own = S.values.diagonal()
    if np.isnan(own).all():
        return "Similarities of items with themselves were left out."
    return "Similarities of items with themselves were set to 1." if (own == 1).all() else ""


def _negatives(info: Mapping[str, Any]) -> str:
    """The treatment of negative values, if any."""
    if info.get("negative") == "shift":
        return "Similarities were correlations r, rescaled as (1 + r) / 2."
    if info.get("negative") != "clip":
        return ""
    values = "n_values_negative" in info
    n = info["n_values_negative" if values else "n_pairs_negative"]
    what = "feature values" if values else "similarities"
    return f"Negative {what} ({n:,}, {_percent(info['share_negative'])}) were set to 0."


def _scale(S: Similarity) -> str:
    """The scale of similarities given as a matrix."""
    if "low" in S.info:
        return f"Ratings on a scale from {S.info['low']:g} to {S.info['high']:g} were rescaled to the range 0 to 1."
    ends = None if S.factors is not None else value_range(S.values)
    return "" if ends is None else f"Similarities ranged from {ends[0]:.3g} to {ends[1]:.3g} and were not rescaled."


def _coverage(S: Similarity) -> str:
    weighted = ", weighted by how often they were measured" if S.weights is not None else ""
    if S.absent_weight:
        listed = (S.values.nnz - np.count_nonzero(S.values.diagonal())) / (S.n_items * (S.n_items - 1))
        zeros = "observed zeros" if S.absent_weight == 1 else f"zeros of weight {S.absent_weight:g}"
        return f"of whose pairs {_percent(listed)} had a similarity{weighted}, and all others were treated as {zeros}"
    if S.density == 1:
        return f"with all pairs observed{weighted}"
    return f"with {_percent(S.density)} of their pairs observed{weighted}; no other pair entered the fit"


def _fit(found: Discovery) -> list[str]:
    chosen = found.settings.get("estimator")
    how = "block coordinate descent" if chosen is None else f"the settings {chosen}"
    if found.consensus.systems is not None:
        seeks = "All systems were fitted jointly: non-negative dimensions W and weights a_m with S_m ~ W diag(a_m) W^T"
    else:
        seeks = "SRF seeks a non-negative embedding W with S ~ W W^T"
    sentences = [f"{seeks} by least squares over the observed pairs (here by {how})."]
    if found.consensus.alpha > 0:
        sentences.append(
            f"The loadings were penalised with alpha = {found.consensus.alpha:.3g}{_chosen(found, 'alpha')}, scaled "
            "such that a ridge penalty of 1 removes the structure that shuffled similarities show beyond their mean."
        )
    return sentences


def _chosen(found: Discovery, name: str) -> str:
    """How a penalty was chosen, if it was not given."""
    return ", chosen by held-out pairs" if found.settings.get(name) == "auto" else ""


def _weights(found: Discovery) -> list[str]:
    """The weights of systems, and how much they improve predictions."""
    shrinkage, compared = found.consensus.shrinkage, found.systems
    if shrinkage is None:
        return []
    chosen = _chosen(found, "shrinkage")
    if np.isinf(shrinkage):
        said = [f"All weights were 1{chosen or ' by design'}."]
    else:
        drawn = f", and weights were shrunk towards 1 with a shrinkage of {shrinkage:.3g}{chosen}" if shrinkage else ""
        said = [f"The mean weight of each dimension over systems was 1{drawn}."]
    if compared is None or compared.n_systems == 1:
        return said
    r2, errors = compared.comparison["r2"], compared.comparison["standard_error"]
    return [
        *said,
        f"With {compared.n_components} {plural('dimension', compared.n_components)}, held-out R2 was "
        f"{r2['average']:.3f} with the same weights for all systems, {r2['scale']:.3f} if these predictions were "
        f"adjusted to each system by a line fitted to the other folds, {r2['weights']:.3f} with weights of their own, "
        f"and {r2['alone']:.3f} with each system fitted alone (standard errors of the differences to weights over "
        f"systems {errors['average']:.3f}, {errors['scale']:.3f} with the same adjustment, and {errors['alone']:.3f}).",
    ]


def _selection(found: Discovery) -> list[str]:
    selection = found.selection
    if selection is None:
        return [f"The number of dimensions was set to {found.n_components} in advance.", *_validation(found)]
    return [*_sampling(selection), *_folds(selection), _choice(selection), *_resampled(selection), *_detectable(found)]


def _validation(found: Discovery) -> list[str]:
    """How a given number of dimensions was cross-validated."""
    how = found.settings.get("held_out", {})
    if "n_folds" not in how:
        return []
    items = f" of {how['n_items']:,} items drawn at random" if how["n_items"] < found.n_items else ""
    predicted = _PREDICTED["paper" if found.consensus.systems is not None else how.get("protocol", "averaged")]
    return [
        f"It was evaluated by {how['n_folds']}-fold cross-validation over pairs{items} with {how['n_repeats']} "
        f"{plural('repeat', how['n_repeats'])}; every fit trained on {_percent(how['training_share'])} of the "
        f"observed pairs, and each held-out pair was predicted {predicted}."
    ]


def _sampling(selection: RankSelection) -> list[str]:
    calibration = selection.calibration
    if calibration is None:
        return []
    return [
        f"The share of pairs for training was calibrated on the similarities alone ({calibration.n_bootstraps} "
        f"bootstraps), chosen to retain {_percent(1 - calibration.tolerance)} of the spectral mass of the "
        f"{calibration.cutoff} stable {plural('eigenvector', calibration.cutoff)}: p* = {selection.sampling:.2f}."
    ]


def _folds(selection: RankSelection) -> list[str]:
    penalty = f", with a penalty of alpha = {selection.comparison_alpha:.3g}" if selection.comparison_alpha else ""
    judged = _PREDICTED["paper" if selection.systems is not None else selection.protocol] + penalty
    one = len(selection.tried) == 1
    return [
        f"The number of dimensions was {'evaluated' if one else 'chosen'} by {selection.n_folds}-fold cross-validation "
        f"over pairs with {selection.n_repeats} {plural('repeat', selection.n_repeats)}, with a "
        "pool of pairs redrawn for each repeat so that every fit trained on "
        f"{_percent(selection.training_share)} of the observed pairs; each held-out pair was predicted {judged}, and "
        "the error was the mean squared error.",
        *([] if one else [f"Candidates were {_ranks(selection.tried)} dimensions."]),
    ]


def _choice(selection: RankSelection) -> str:
    n = f"{selection.rank} {plural('dimension', selection.rank)}"
    if len(selection.tried) == 1:
        return f"The number of dimensions, {selection.rank}, was {selection.choice()}."
    valley = f"within one standard error of the smallest error: {_ranks(selection.valley)}"
    if selection.protocol == "paper":
        return f"The smallest error belonged to {n} ({valley})."
    where = f"(smallest error at {selection.minimum}; {valley})"
    if selection.protocol == "penalised" and selection.rank == 1:
        return f"More dimensions did not lower the error clearly: we took 1 dimension {where}."
    if selection.protocol == "penalised":
        return (
            f"We took the number with the smallest error after adding {LEAST_SHARE:.1%} of the explained variance for "
            f"each dimension: {n} {where}."
        )
    return (
        "We took the smallest number whose error was not clearly larger than the smallest (by no more than "
        f"{CLEARLY:g} standard errors of the paired difference and {MOST_WORSE:.0%} of the error, or by less than "
        f"{NEGLIGIBLE:.1%} of the variance of the similarities): {n} {where}."
    )


def _resampled(selection: RankSelection) -> list[str]:
    """The numbers of dimensions selected in resamples of the items."""
    if selection.resampled is None or len(selection.tried) == 1:
        return []
    low, high = selection.resampled.interval()
    chosen = f"{low}" if low == high else f"{low} to {high}"
    return [
        f"With the items resampled ({selection.resampled.n_resamples:,} times, without refitting), the same rule chose "
        f"{chosen} {plural('dimension', high)} in at least 90% of the resamples."
    ]


def _detectable(found: Discovery) -> list[str]:
    """The test against residuals with random signs."""
    detected = found.detectable
    if detected is None:
        return []
    how = (
        "by comparing the largest eigenvalue of the residuals with those of residuals with random signs "
        f"({detected.n_flips} draws, level {detected.level:g} per test)"
    )
    found_many = "No more than one dimension" if detected.rank == 1 else f"At least {detected.rank} dimensions"
    return [f"{found_many} could be told from noise {how}."]


def _stability(found: Discovery) -> list[str]:
    consensus = found.consensus
    low, high = consensus.reliability.min(), consensus.reliability.max()
    return [
        f"The final model was fitted from {consensus.n_runs} random initialisations, whose dimensions were matched "
        "by the Hungarian algorithm; the most central run (closest to the element-wise median of all) is reported.",
        "Split-half reliability of the dimensions across random starts (matched between runs on one half of the "
        f"items, correlated on the other; mean over pairs of runs and {consensus.n_splits} "
        f"{plural('split', consensus.n_splits)}, "
        f"Spearman-Brown corrected) was {consensus.mean_reliability:.2f} on average (range {low:.2f} to {high:.2f}).",
    ]


def _quality(found: Discovery) -> list[str]:
    said = []
    if "explained_variance" in found.metrics:
        said.append(f"R2 = {found.metrics['explained_variance']:.3f} over observed off-diagonal pairs")
    if "link_auc" in found.metrics:
        said.append(
            f"an area under the ROC curve of {found.metrics['link_auc']:.2f} for separating linked from other pairs"
        )
    sentences = [f"In sample, the embedding reproduced the similarities with {' and '.join(said)}."] if said else []
    held = found.held_out
    if held is None:
        return [*sentences, f"{found.held_out_words}."]
    of_its_system = " of its system" if found.consensus.systems is not None else ""
    return [
        *sentences,
        f"Held-out similarities were predicted with R2 = {held.r2:.3f} (standard error {held.standard_error:.3f}), "
        f"compared with predicting every pair by the mean of the observed pairs{of_its_system}.",
        *_ceiling(found, held.r2),
    ]


def _ceiling(found: Discovery, r2: float) -> list[str]:
    """The noise ceiling of several systems, and the share of it reached by a common prediction."""
    ceiling = found.noise_ceiling
    if ceiling is None:
        return []
    sentences = [
        "As a noise ceiling, each system's similarities were regressed on the mean of the other systems (lower bound, "
        f"R2 = {ceiling.lower:.3f}) and on the mean of all (upper bound, R2 = {ceiling.upper:.3f})."
    ]
    if found.common_r2 is not None:
        above = "; weights predicted systems beyond what they have in common" * (r2 > ceiling.upper)
        share = "" if found.share_of_ceiling is None else f", {found.share_of_ceiling:.0%} of the upper bound"
        sentences.append(
            "The same weights for all systems, adjusted to each system by a line as well, reached "
            f"R2 = {found.common_r2:.3f}{share}{above}."
        )
    return sentences


def _names(found: Discovery) -> list[str]:
    """The names given to dimensions, in the order of the dimensions."""
    named = [f"{name} (dimension {k + 1})" for k, name in enumerate(custom_names(found)) if name]
    if not named:
        return []
    listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return [f"Dimensions, numbered by their share of the reconstruction, were named by us: {listed}."]


def describe_tests(tests: HypothesisTests) -> list[str]:
    """Sentences on how hypotheses were tested, and how many were significant."""
    n = len(tests.hypotheses)
    n_permutations = len(tests.null_distribution)
    kind = {
        "dimension": "against its matched dimension, matched again for every permutation",
        "rsa": "against the similarities of the observed pairs (Mantel test)",
        "combined": "against its matching dimension and against the similarities, with the smaller of the two weighted "
        "p-values referred to its own permutation distribution",
        "weights": "against the weights that the systems have on one dimension",
        "regression": "as a predictor of the similarities in addition to the other models, cross-validated over items,",
    }[tests.test]
    known = [", ".join(tests.nuisance)] if tests.nuisance else []
    known += ["the other hypotheses"] if tests.test == "regression" else []
    drawn, given = ("conditional", f" given {' and '.join(known)}") if known else ("joint", "")
    what = "systems" if tests.test == "weights" else "items"
    sided = "one-sided" if tests.alternative == "greater" else "two-sided"
    found = int(tests.significant.sum())
    return [
        f"{'One hypothesis' if n == 1 else f'Each of {n} hypotheses'} was tested {kind} with {n_permutations:,} "
        f"{drawn} permutations of the {what}{given} ({sided}); p-values were adjusted by the Benjamini-Hochberg "
        f"procedure at {tests.alpha:g}, and {found} of {n} {'was' if found == 1 else 'were'} significant.",
        f"The test statistic was the {tests.method}.",
    ]


def _ranks(ranks: tuple[int, ...]) -> str:
    """Integers as text, with ranges as first-last."""
    ascending = np.sort(ranks)
    parts = np.split(ascending, np.flatnonzero(np.diff(ascending) != 1) + 1)
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(map(str, part)) for part in parts)


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
