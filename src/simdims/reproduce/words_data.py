"""What `simdims reproduce words` reads: associations, ratings of pairs of words, ratings of words; or made-up ones.

Files, all under ``words/`` in the data folder:

``strength.SWOW-EN.R123.csv`` (or ``strength.SWOW-EN.R123.20180827.csv``)
    The Small World of Words associations, the paper's data: separated by tabs, with the columns cue, response, R123
    (how often the response was given), N and R123.Strength.
``usf_appendixA.csv``
    The University of South Florida norms, taken where SWOW's file is not there: columns cue, target, normed, G (people
    asked), P (people who gave the response), FSG and BSG.
``SimLex-999.txt``, ``wordsim353_combined.csv``
    Pairs of words and how similar or related people find them, as they are published.
``GlasgowNorms.csv``
    Ratings of words. As published, with two rows of names (Words, Length, AROU, ... and M, SD, N below each scale), of
    which the means, M, are read; or one row of names, the words in the first column and mean ratings in the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from simdims._journal import fingerprint
from simdims.associations import from_associations
from simdims.reproduce.dataset_files import densest_items, swow, usf
from simdims.reproduce.frame import Settings, need_file
from simdims.similarity import Similarity

#: The weight of absent pairs that from_associations takes by default.
SMALL_WEIGHT = 0.03

SWOW_FILES = ("words/strength.SWOW-EN.R123.csv", "words/strength.SWOW-EN.R123.20180827.csv")
USF_FILE = "words/usf_appendixA.csv"
RATINGS_FILE = "words/GlasgowNorms.csv"

#: Name of the benchmark: file, separator, columns of the words and of the rating.
BENCHMARKS = {
    "SimLex-999": ("words/SimLex-999.txt", "\t", ("word1", "word2", "SimLex999")),
    "WordSim-353": ("words/wordsim353_combined.csv", ",", ("Word 1", "Word 2", "Human (mean)")),
}

#: Made-up words and their topics, for each size of a run.
MADE_UP = ((300, 15), (500, 25), (800, 40))

_WHERE_WORDS = (
    "https://smallworldofwords.org/en/project/research (SWOW-EN, association strengths R123), or the USF norms' "
    "Appendix A from http://w3.usf.edu/FreeAssociation"
)
_WHERE_BENCHMARKS = {
    "SimLex-999": "https://fh295.github.io/simlex.html",
    "WordSim-353": "the file combined.csv of WordSim-353",
}
_WHERE_RATINGS = "the supplement of Scott et al. (2019), https://doi.org/10.3758/s13428-018-1099-3"

#: The Glasgow Norms' short names of their scales.
_SCALES = {
    "AROU": "arousal",
    "VAL": "valence",
    "DOM": "dominance",
    "CNC": "concreteness",
    "IMAG": "imageability",
    "FAM": "familiarity",
    "AOA": "age of acquisition",
    "SIZE": "size",
    "GEND": "gender",
}


@dataclass(frozen=True, eq=False)
class Words:
    """Words, how they are associated, and what else people say about them.

    Parameters
    ----------
    source : {"SWOW", "USF", "made up"}
        Where the associations are from.
    similarity : Similarity
        Positive pointwise mutual information, absent pairs as zeros of a small weight.
    benchmarks : dict of DataFrame
        Pairs of words with a rating each, in the columns one, other and rating.
    ratings : DataFrame or None
        Words in rows, scales in columns, NaN where there is no rating.
    missing : list of str
        Sentences that say which files were not there, and where they are from.
    """

    source: str
    similarity: Similarity
    benchmarks: dict[str, pd.DataFrame]
    ratings: pd.DataFrame | None
    missing: list[str] = field(default_factory=list)

    def digest(self) -> str:
        """A name for all of it, so that finished work on other data is not taken for work on these."""
        values = self.similarity.values
        texts = [self.similarity.labels, *(table.to_csv() for table in self.benchmarks.values())]
        texts.append(None if self.ratings is None else self.ratings.to_csv())
        numbers = np.frombuffer(repr(texts).encode(), dtype=np.uint8)
        return fingerprint(values.indptr, values.indices, values.data, numbers)[:12]


def load_words(settings: Settings) -> Words:
    """The words of the data folder, or made-up ones where there is no folder, or none of them in a smoke run."""
    if settings.data is None or (settings.size == "smoke" and _first(settings.data, *SWOW_FILES, USF_FILE) is None):
        return made_up_words(*settings.pick(*MADE_UP), seed=settings.seed)
    path = need_file(
        settings, *SWOW_FILES, USF_FILE, what="free associations of words, SWOW or the USF norms", where=_WHERE_WORDS
    )
    missing = []
    source, similarity = read_associations(path)
    benchmarks = {}
    for name, (file, separator, columns) in BENCHMARKS.items():
        if (settings.data / file).exists():
            benchmarks[name] = read_benchmark(settings.data / file, separator, columns)
        else:
            missing.append(f"{name} was left out: the data folder has no {file} ({_WHERE_BENCHMARKS[name]}).")
    ratings = None
    if (settings.data / RATINGS_FILE).exists():
        ratings = read_ratings(settings.data / RATINGS_FILE)
    else:
        missing.append(f"Ratings were left out: the data folder has no {RATINGS_FILE} ({_WHERE_RATINGS}).")
    words = Words(source, similarity, benchmarks, ratings, missing)
    return replace(words, similarity=densest_items(similarity, 400)) if settings.size == "smoke" else words


def read_associations(path: Path) -> tuple[str, Similarity]:
    """The source and the similarities of a file of SWOW or of the USF norms, told apart by their names."""
    source, read = ("SWOW", swow) if path.name.startswith("strength.") else ("USF", usf)
    S = read(path)
    return source, replace(S, labels=plain_names(S.labels), absent=SMALL_WEIGHT)


def read_benchmark(path: Path, separator: str, columns: Sequence[str]) -> pd.DataFrame:
    """Pairs of words in small letters, and their ratings."""
    table = pd.read_csv(path, sep=separator, keep_default_na=False, encoding="utf-8-sig")
    _require_columns(path, table, columns)
    table = table[list(columns)].set_axis(["one", "other", "rating"], axis=1)
    return table.assign(one=table["one"].str.lower(), other=table["other"].str.lower())


def read_ratings(path: Path) -> pd.DataFrame:
    """Mean ratings of words, in the layout of the Glasgow Norms or with one row of names."""
    cells = pd.read_csv(path, header=None, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    names = cells.iloc[0].str.strip()
    first = 1
    means = [k for k in range(1, cells.shape[1]) if names[k].lower() != "length"]
    if len(cells) > 1 and "M" in set(cells.iloc[1].str.strip()):
        kinds = cells.iloc[1].str.strip()
        names = names.where(names != "").ffill()
        first, means = 2, [k for k in means if kinds[k] == "M"]
    if not means or len(cells) <= first:
        raise ValueError(f"{path.name} must hold words and columns of mean ratings, got {cells.shape[1]} columns.")
    words = plain_names(list(cells.iloc[first:, 0].str.strip()))
    if len(set(words)) < len(words):
        repeated = next(word for k, word in enumerate(words) if word in words[:k])
        raise ValueError(f"{path.name} must hold every word once, got {repeated!r} again.")
    rows = range(first, len(cells))
    ratings = {
        _SCALES.get(names[k], names[k]): [_rating(path, str(cells.iat[row, k]), row, names[k]) for row in rows]
        for k in means
    }
    return pd.DataFrame(ratings, index=words)


def plain_names(names: Iterable[str] | None) -> list[str]:
    """Names in small letters, but for those that would then be the name of another."""
    given = list(names or ())
    times = Counter(name.lower() for name in given)
    return [name.lower() if times[name.lower()] == 1 else name for name in given]


def made_up_words(n_words: int, n_topics: int, *, seed: int) -> Words:
    """Associations of words that do not exist, by topic and popularity, with ratings and pairs that follow the topics.

    Each word is 0.8 of one topic and 0.2 of another (they may be one). To each cue 15 people name a word with a chance
    in proportion to 0.9 times the product of the two words' topics, plus a little for all words, times its popularity:
    its place in a random order to the power -0.8.
    """
    rng = np.random.default_rng(seed)
    topics = np.zeros((n_words, n_topics))
    first = rng.integers(n_topics, size=n_words)
    topics[np.arange(n_words), first] += 0.8
    topics[np.arange(n_words), rng.integers(n_topics, size=n_words)] += 0.2
    popularity = rng.permutation(1.0 / np.arange(1, n_words + 1) ** 0.8)
    chances = (0.9 * topics @ topics.T + 0.1 / n_topics) * popularity
    np.fill_diagonal(chances, 0.0)
    counts = np.stack([rng.multinomial(15, row / row.sum()) for row in chances])
    names = np.array([f"t{topic + 1}.{place + 1}" for place, topic in enumerate(first)])
    cue, response = np.nonzero(counts)
    table = {"cue": names[cue], "response": names[response], "count": counts[cue, response]}
    S = from_associations(table, absent=SMALL_WEIGHT)

    scales = topics @ rng.normal(size=(n_topics, 3)) + rng.normal(scale=0.3, size=(n_words, 3))
    ratings = pd.DataFrame(scales, index=names, columns=["property A", "property B", "property C"])
    one, other = rng.integers(n_words, size=(2, 10 * n_words))
    alike = np.sum(topics[one] * topics[other], axis=1)
    # Most random pairs have no topic in common: as many of the others.
    chosen = np.concatenate([np.flatnonzero((alike > 0) & (one != other)), np.flatnonzero(alike == 0)[:n_words]])
    rating = alike[chosen] + rng.normal(scale=0.2, size=len(chosen))
    pairs = pd.DataFrame({"one": names[one[chosen]], "other": names[other[chosen]], "rating": rating})
    return Words("made up", S, {"made-up pairs": pairs}, ratings, [_made_up_remark()])


def _made_up_remark() -> str:
    return (
        "THESE WORDS ARE MADE UP, with topics planted in their associations, because no data folder with real ones was "
        f"given: nothing here can be held against the paper. Real ones are in {USF_FILE} or {SWOW_FILES[0]} under "
        f"the folder that --data names; get them from {_WHERE_WORDS}."
    )


def _first(folder: Path, *names: str) -> Path | None:
    return next((folder / name for name in names if (folder / name).exists()), None)


def _require_columns(path: Path, table: pd.DataFrame, columns: Sequence[str]) -> None:
    for column in columns:
        if column not in table.columns:
            got = ", ".join(map(str, table.columns[:8]))
            raise ValueError(f"{path.name} must have a column {column!r}, got {got}.")


def _rating(path: Path, cell: str, row: int, column: str) -> float:
    try:
        return float(cell) if cell.strip() not in ("", "NA") else float("nan")
    except ValueError:
        raise ValueError(f"{path.name} must hold numbers, got {cell!r} in row {row + 1}, column {column!r}.") from None
