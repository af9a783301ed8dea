"""Small synthetic files in the formats that the paper's analyses read."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.io import savemat

from paper import things
from simdims import simulate

N = 30
N_THINGS = 60


def similarity(n: int = N) -> np.ndarray:
    W = simulate.dirichlet(n, 3, alpha=0.3, random_state=0)
    S = W @ W.T
    return S / S.max()


def write_square(path: Path, scale: float = 1.0) -> None:
    S = similarity()
    np.fill_diagonal(S, 1)
    np.savetxt(path, scale * S, delimiter=",") if path.suffix == ".csv" else np.save(path, scale * S)


def write_features(path: Path) -> None:
    rng = np.random.RandomState(1)
    np.save(path, simulate.dirichlet(N, 3, alpha=0.3, random_state=0) @ rng.normal(size=(3, 8)))


def write_arranged(path: Path) -> None:
    D = 1 - similarity()
    np.fill_diagonal(D, 0)
    savemat(path, {"rdms_behav_92": np.array([(D,), (D**2,)], dtype=[("RDM", object)])})


def write_distances(path: Path) -> None:
    r = np.corrcoef(np.random.RandomState(0).normal(size=(N, 40)))
    D = 1 - (r + r.T) / 2
    np.fill_diagonal(D, 0)
    np.savetxt(path, D, delimiter=",")


def write_turk(path: Path) -> None:
    S = 10 * similarity()
    np.fill_diagonal(S, 10)
    savemat(path, {"simMatrix": S, "simMatrixFirstBatch": S / 2})


def write_recordings(path: Path) -> None:
    """Six channels that respond to the stimuli, and two that do not."""
    rng = np.random.RandomState(0)
    signal = simulate.dirichlet(N, 3, alpha=0.3, random_state=0) @ rng.normal(size=(3, 6))
    repeats = np.concatenate([signal + 0.02 * rng.normal(size=(6, N, 6)), rng.normal(size=(6, N, 2))], axis=2)
    np.savez(path, repeats=repeats) if path.suffix == ".npz" else np.save(path, repeats)


def write_triplets(path: Path) -> None:
    answers = simulate.triplet_answers(3 * simulate.dirichlet(N, 3, alpha=0.2, random_state=0), 4000, random_state=0)
    np.save(path, answers.astype(np.int16)) if path.suffix == ".npy" else np.savetxt(path, answers, fmt="%d")


def write_associations(path: Path) -> None:
    """Six topics of twenty words, in the format of SWOW or of the USF norms; the last two are called null and NA."""
    rng = np.random.default_rng(1)
    names = np.array([f"word{i}" for i in range(118)] + ["null", "NA"])
    alike = np.arange(120)[:, None] % 6 == np.arange(120) % 6
    counts = rng.poisson(np.where(alike, 0.8, 0.05))
    np.fill_diagonal(counts, 0)
    cue, response = np.nonzero(counts)
    if path.name.startswith("strength."):
        table = pd.DataFrame({"cue": names[cue], "response": names[response], "R123": counts[cue, response]})
        table.assign(N=100).to_csv(path, sep="\t", index=False)
    else:
        table = pd.DataFrame({"cue": names[cue], "target": names[response], "P": counts[cue, response]})
        table.assign(G=150, normed="YES").to_csv(path, index=False)


WRITERS = {
    "mur92/similarity.npy": write_square,
    "mur92/similarity.csv": write_square,
    "mur92/responses.npy": write_features,
    "mur92/92_behavRDMs.mat": write_arranged,
    "mur92/rdm_humanIT_2008.csv": write_distances,
    "peterson_animals/turkResults_CogSci2016.mat": write_turk,
    "peterson_animals/animals_similarity.npy": write_square,
    "peterson_various/various_similarity.npy": lambda path: write_square(path, 10.0),
    "peterson_various/various_similarity.csv": write_square,
    "clip/features.npy": write_features,
    "macaque_it/recordings.npz": write_recordings,
    "macaque_it/recordings.npy": write_recordings,
    "things/trainset.txt": write_triplets,
    "things/triplets.npy": write_triplets,
    "things/triplets_100k.npy": write_triplets,
    "words/strength.SWOW-EN.R123.csv": write_associations,
    "words/strength.SWOW-EN.R123.20180827.csv": write_associations,
    "words/usf_appendixA.csv": write_associations,
    "nsd/subj01_responses.npy": write_features,
}


def write(folder: Path, name: str) -> Path:
    """Write the file that a recipe reads."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    WRITERS[name](path)
    return path


def write_things(folder: Path, *, release: bool = False, n: int = 12_000) -> np.ndarray:
    """An embedding in place of SPoSE, answers drawn from it, and ten objects in place of the 48."""
    (folder / "things").mkdir()
    W = 3 * simulate.dirichlet(N_THINGS, 4, alpha=0.2, random_state=0)
    rows = np.arange(0, N_THINGS, 6)
    np.savetxt(folder / "things/spose_embedding_66d_sorted.txt", W)
    np.savetxt(folder / "things/idx48_in_1854.txt", rows, fmt="%d")
    savemat(folder / "things/RDM48_triplet.mat", {"RDM48_triplet": 1 - things.choice_similarity(W[rows])})
    answers = simulate.triplet_answers(W, n, random_state=1)
    if not release:
        np.save(folder / "things/triplets_100k.npy", answers.astype(np.int16))
        return answers
    np.savetxt(folder / "things/trainset.txt", answers[: n // 2], fmt="%d")
    np.savetxt(folder / "things/validationset.txt", answers[n // 2 :], fmt="%d")
    often = np.repeat([[3 * k, 3 * k + 1, 3 * k + 2] for k in range(20)], 12, axis=0)
    often[::6] = often[::6][:, [0, 2, 1]]  # a sixth of the answers to each triplet is another one
    np.savetxt(folder / "things/testset1.txt", often, fmt="%d")
    return answers


def write_words(folder: Path) -> None:
    """Associations with benchmarks and ratings that follow their topics."""
    rng = np.random.default_rng(2)
    write(folder, "words/usf_appendixA.csv")
    one, other = rng.integers(118, size=(2, 60))
    rating = np.round(5.0 * (one % 6 == other % 6) + rng.uniform(size=60), 2)
    names = np.array([f"word{i}" for i in range(118)])
    simlex = {"word1": names[one], "word2": names[other], "POS": "N", "SimLex999": rating}
    pd.DataFrame(simlex).to_csv(folder / "words/SimLex-999.txt", sep="\t", index=False)
    wordsim = {"Word 1": names[one], "Word 2": np.char.capitalize(names[other]), "Human (mean)": rating}
    pd.DataFrame(wordsim).to_csv(folder / "words/wordsim353_combined.csv", index=False)
    glasgow = ["Words,Length,VAL,,,AOA,,", ",,M,SD,N,M,SD,N"]
    for k, name in enumerate(names):
        glasgow.append(f"{name},5,{k % 6 + rng.normal(scale=0.3):.3f},1.1,33,{rng.normal():.3f},0.9,32")
    (folder / "words/GlasgowNorms.csv").write_text("\n".join(glasgow) + "\n")
