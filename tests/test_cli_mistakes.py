"""Mistakes on the command line: one line on stderr, the right exit status, and nothing is written."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_examples import made, sorted_embedding
from scipy import sparse
from scipy.io import savemat

from simdims import Similarity
from simdims.cli import main, parser
from simdims.cli.contents import subcommands

N = 30
LABELS = [f"item {i}" for i in range(N)]
RATED = "--item1 left --item2 right --rating rating"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every kind, good and bad, and two results of 3 and of 30 dimensions."""
    place = tmp_path_factory.mktemp("mistakes")
    rng = np.random.default_rng(0)
    W = sorted_embedding(N, 3)
    S = W @ W.T
    Similarity(S, labels=LABELS).save(place / "S.npz")
    pd.DataFrame(S, index=LABELS, columns=LABELS).to_csv(place / "S.csv")
    np.save(place / "D.npy", (1 - S) * (1 - np.eye(N)))
    np.save(place / "graph.npy", (S > 0.3) * (1.0 - np.eye(N)))
    np.save(place / "asymmetric.npy", rng.random((N, N)))
    pd.DataFrame(rng.random((60, 60))).to_csv(place / "wide.csv", index=False, header=False)
    negative = S.copy()
    negative[0, 1] = negative[1, 0] = -0.5
    np.save(place / "negative.npy", negative)
    sparse.save_npz(place / "sparse.npz", sparse.csr_array(np.where(S > 0.3, S, 0)))
    savemat(place / "two.mat", {"A": S, "B": S})
    answers = np.array([rng.choice(N, 3, replace=False) for _ in range(40)])
    np.save(place / "answers.npy", answers)
    pd.DataFrame([[LABELS[i] for i in row] for row in answers], columns=["a", "b", "odd"]).to_csv(
        place / "answers.csv", index=False
    )
    np.save(place / "twice.npy", np.array([[0, 1, 2], [3, 3, 4]]))
    (place / "mixed.csv").write_text("a,b,c\ncat,0.5,1\ndog,0.25,2\n")
    pairs = [(LABELS[i], LABELS[j], 1 + (i * j) % 7, "x") for i in range(N) for j in range(i)]
    pd.DataFrame(pairs, columns=["left", "right", "rating", "subject"]).to_csv(place / "ratings.csv", index=False)
    counts = pd.DataFrame(pairs, columns=["cue", "response", "count", "who"]).drop(columns="who")
    counts.to_csv(place / "associations.csv", index=False)
    pd.DataFrame(rng.normal(size=(N, 4)), index=LABELS, columns=list("wxyz")).rename_axis("name").to_csv(
        place / "features.csv"
    )
    pd.DataFrame({"name": LABELS, "first": W[:, 0], "same": 1.0}).to_csv(place / "properties.csv", index=False)
    others = pd.DataFrame({"name": [*LABELS[1:], "stranger"], "first": W[:, 0]})
    others.to_csv(place / "others.csv", index=False)
    pd.DataFrame(W, columns=["k1", "k2", "k3"]).assign(item=LABELS).to_csv(place / "W.csv", index=False)
    np.save(place / "W.npy", W)
    np.save(place / "X.npy", rng.normal(size=(N, 4)))
    made(W, labels=tuple(LABELS)).save(place / "found")
    made(sorted_embedding(40, 30)).save(place / "many")
    (place / "ten.txt").write_text("\n".join(LABELS[:10]))
    (place / "empty.csv").write_text("")
    (place / "blank.csv").write_text("\n \n")
    (place / "bytes.csv").write_bytes(bytes(range(256)))
    (place / "notes.doc").write_text("notes")
    (place / "words.csv").write_text("name,size,speed\ncat,0.5,2\ndog,1.5,1\n7,9,3\n")
    (place / "text.csv").write_text("item,cat,dog\ncat,1,much\ndog,0.5,1\n")
    (place / "ragged.csv").write_text("a,b\n1,2\n3,4,5\n")
    (place / "hole.csv").write_text("a,b\n1,2\n,4\n")
    (place / "weighted.csv").write_text("item1,item2,value,weight\ncat,dog,0.5,1\ncat,car,0.7,2\n")
    (place / "damaged.npz").write_bytes(b"PK\x03\x04 and so on")
    (place / "cut.npy").write_bytes((place / "W.npy").read_bytes()[:-9])
    np.save(place / "objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    np.save(place / "negative-rdm.npy", (0.5 - S) * (1 - np.eye(N)))
    asymmetric = pd.DataFrame(np.triu(S) + 0.5 * np.tril(S, -1), index=LABELS, columns=LABELS)
    asymmetric.to_csv(place / "asymmetric.csv")
    (place / "folder.npz").mkdir()
    (place / "folder").mkdir()
    (place / "folder" / "mine.txt").write_text("mine")
    (place / "名前.csv").write_text("")
    return place


@pytest.fixture(autouse=True)
def _here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def everything():
    return {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()}


#: What is typed, the exit status, and what the error says: the name of the option or file, and what was found.
MISTAKES = [
    # Files that cannot be read
    ("discover nothing.csv -o out", 1, "No such file: 'nothing.csv'"),
    ("calibrate nothing.npz", 1, "No such file: 'nothing.npz'"),
    ("fit nothing.npz -n 2 -o o.csv", 1, "No such file: 'nothing.npz'"),
    ("similarity features nothing.npy s.npz", 1, "No such file: 'nothing.npy'"),
    ("evaluate triplets nothing.csv answers.csv", 1, "No such file: 'nothing.csv'"),
    ("evaluate pairs W.csv nothing.csv --item1 a --item2 b --rating r", 1, "No such file: 'nothing.csv'"),
    ("evaluate readout W.csv nothing.csv", 1, "No such file: 'nothing.csv'"),
    ("test W.csv nothing.csv", 1, "No such file: 'nothing.csv'"),
    ("rsa S.npz nothing.csv", 1, "No such file: 'nothing.csv'"),
    ("encode W.csv nothing.csv", 1, "No such file: 'nothing.csv'"),
    ("encode W.csv properties.csv --labels name -o new.csv", 1, "no items that EMBEDDING does not have"),
    ("encode W.csv properties.csv --labels name --folds 1", 1, "--folds.*1"),
    ("encode W.csv properties.csv --labels name -o properties.csv", 1, "OUT must be another file than FEATURES"),
    ("label W.csv nothing.csv", 1, "No such file: 'nothing.csv'"),
    ("label W.csv properties.csv --labels name --permutations 0", 1, "--permutations.*0"),
    ("label W.csv properties.csv --labels name -o properties.csv", 1, "OUT must be another file than PROPERTIES"),
    ("report found --suggestions properties.csv", 1, "properties.csv.*'dimension'"),
    ("report nofolder", 1, "'nofolder'"),
    ("report folder", 1, "'folder'.*discovery.json"),
    ("plot dimensions nofolder -o a.png", 1, "'nofolder'"),
    ("evaluate readout folder properties.csv", 1, "'folder'"),
    ("discover folder -o out", 1, "mine.txt"),
    ("discover found -o out", 1, "'found'.*result"),
    ("export nofolder -o out", 1, "'nofolder'"),
    ("export found -o folder", 1, "'folder' is not an earlier export"),
    ("export found -o S.csv", 1, "'S.csv' is not an earlier export"),
    ("weights nofolder", 1, "'nofolder'"),
    ("weights found --by group", 1, "RESULT must be of several systems, got 'found'"),
    ("rsa S.npz folder", 1, "'folder'.*folder"),
    ("similarity features folder s.npz", 1, "'folder'.*folder"),
    ("discover empty.csv -o out", 1, "'empty.csv'.*empty"),
    ("discover 名前.csv -o out", 1, "'名前.csv'.*empty"),
    ("similarity triplets empty.csv s.npz", 1, "'empty.csv'.*empty"),
    ("discover blank.csv -o out", 1, "blank.csv.*blank lines"),
    ("discover bytes.csv -o out", 1, "bytes.csv.*NUL"),
    ("discover notes.doc -o out", 1, "'notes.doc'.*'.doc'"),
    ("similarity ratings W.npy s.npz --item1 a --item2 b --rating c", 1, "'W.npy'.*.csv"),
    ("similarity features damaged.npz s.npz", 1, "damaged.npz: .*damaged"),
    ("similarity features cut.npy s.npz", 1, "cut.npy: .*damaged"),
    ("similarity features objects.npy s.npz", 1, "objects.npy: .*objects"),
    ("similarity features ragged.csv s.npz", 1, "ragged.csv: .*line 3"),
    # Data that do not fit
    ("discover asymmetric.npy -o out", 1, "30 rows and 30 columns .*symmetric.*--as features"),
    ("discover wide.csv -o out", 1, "60 rows and 60 columns .*symmetric.*--as features"),
    ("discover asymmetric.npy -o out --as matrix", 1, "asymmetric.npy: .*symmetr.*symmetrize"),
    ("calibrate asymmetric.csv", 1, "asymmetric.csv: .*symmetr"),
    ("discover negative.npy -o out", 1, "negative.npy: .*negative.*shift"),
    ("fit negative.npy -n 2 -o o.csv", 1, "negative.npy: .*negative.*shift"),
    ("discover features.csv -o out --kernel linear", 1, "kernel.*rbf.*negative.*clip"),
    ("similarity features hole.csv s.npz", 1, "missing value in row 1, column 'a'"),
    ("similarity features words.csv s.npz", 1, "words.csv: Column 'name' .*'cat' in row 2; 'dog' in row 3.*2 of 3"),
    ("discover text.csv -o out --as matrix", 1, "text.csv: .*'much'"),
    ("discover graph.npy -o out", 1, "--as dissimilarity.*--as matrix"),
    ("similarity dissimilarity S.csv s.npz", 1, "diagonal"),
    ("similarity dissimilarity negative-rdm.npy s.npz", 1, "negative"),
    ("similarity dissimilarity X.npy s.npz", 1, "square"),
    ("similarity dissimilarity weighted.csv s.npz", 1, "weighted.csv: .*weights"),
    ("discover sparse.npz -o out", 1, "absent.*missing.*zero"),
    ("discover two.mat -o out", 1, "two.mat: .*key.*A .*B "),
    ("fit two.mat -n 2 -o o.csv --key C", 1, "two.mat: .*key.*'C'.*A "),
    ("similarity triplets X.npy s.npz", 1, r"3 columns.*\(30, 4\)"),
    ("evaluate triplets W.csv mixed.csv", 1, "0.5.*row 2, column 'b'"),
    ("evaluate triplets W.npy answers.csv", 1, "name"),
    ("evaluate triplets W.csv twice.npy", 1, r"three different items.*\[3, 3, 4\]"),
    ("similarity triplets twice.npy s.npz", 1, r"three different items.*\[3, 3, 4\]"),
    ("evaluate triplets asymmetric.npy answers.npy", 1, "EMBEDDING .*30 rows.*not symmetric"),
    ("evaluate triplets features.csv answers.csv", 1, "features.csv: .*pass its name as --item"),
    ("evaluate pairs W.csv ratings.csv --item1 left --item2 right --rating subject", 1, "Column 'subject'"),
    ("evaluate pairs W.csv properties.csv --item1 name --item2 name --rating first", 1, "PAIRS must differ"),
    ("test W.csv others.csv --labels name", 1, "'item 0'"),
    ("report found --tests others.csv --labels name", 1, "'item 0'"),
    ("report found --tests properties.csv --labels name", 1, "got 1 for every item"),
    ("plot calibration found -o p.svg", 1, "rank"),
    # Columns and labels
    (f"discover ratings.csv -o out {RATED.replace('left', 'up')}", 1, "item1.*'up'"),
    ("similarity associations ratings.csv s.npz", 1, "cue"),
    (f"similarity ratings ratings.csv s.npz {RATED.replace('right', 'left')}", 1, "item2.*item1|item1.*item2"),
    ("similarity ratings ratings.csv s.npz --item1 left", 2, "--item2, --rating"),
    ("similarity triplets words.csv s.npz --columns name size weight", 1, "columns.*'weight'.*'name', 'size', 'speed'"),
    ("similarity triplets words.csv s.npz --odd colour", 1, "odd.*'colour'"),
    ("similarity triplets answers.csv s.npz --label-file ten.txt", 1, "'item"),
    ("similarity triplets answers.csv s.npz --n-items 5", 1, "5"),
    ("evaluate readout W.csv properties.csv --labels nam", 1, "--labels.*'nam'.*'name'"),
    ("test W.csv properties.csv --labels name --item nam", 1, "--item.*'nam'"),
    ("similarity features W.npy s.npz --labels name", 1, "--labels.*.npy"),
    ("similarity features words.csv s.npz --labels name --label-file ten.txt", 2, "--labels and --label-file"),
    ("similarity features W.npy s.npz --label-file ten.txt", 1, "30 items.*10"),
    # Numbers and choices
    ("discover S.npz -o out --seed -1", 1, "--seed must be at least 0, got -1"),
    ("fit S.npz -n 3 -o o.csv --seed -1", 1, "--seed must be at least 0, got -1"),
    ("calibrate S.npz --seed 4294967296", 1, "--seed must be at most 4294967295, got 4294967296"),
    ("calibrate S.npz --jobs 0", 1, "jobs must be .*0"),
    ("consensus S.npz -n 3 -o o.csv --splits 99999999999999999999", 1, "--splits must be at most 1000000000, got"),
    ("consensus S.npz -n 2 --runs 1 -o o.csv", 1, "runs must be at least 2.*got 1"),
    ("demo --items 0", 1, "--items must lie between 40 and 1797, got 0"),
    (f"discover ratings.csv -o out {RATED} --low 9 --high 1", 1, "low.*high.*9.*1"),
    (f"similarity ratings ratings.csv s.npz {RATED} --low 1 --high 3", 1, "low.*1.*high.*3"),
    (f"similarity ratings ratings.csv s.npz {RATED} --low -1e3 --high -1e2", 1, "low.*-1000"),
    (f"similarity ratings ratings.csv s.npz {RATED} --low nan", 1, "low.*nan"),
    ("similarity associations associations.csv s.npz --absent perhaps", 1, "absent.*'perhaps'"),
    ("similarity associations associations.csv s.npz --absent 2", 1, "absent.*2"),
    ("similarity dissimilarity D.npy s.npz --sigma 2", 1, "sigma.*gaussian"),
    ("similarity features features.csv s.npz --labels name --bandwidth 1e-320", 1, "too large or too small"),
    ("similarity features W.npy s.npz --bandwidth 0", 1, "bandwidth.*0"),
    ("similarity features W.npy s.npz --bandwidth wide", 2, "--bandwidth: must be a number, got 'wide'"),
    ("similarity features W.npy s.npz --kernel cubic", 2, "--kernel: invalid choice: 'cubic'"),
    ("discovr S.csv -o out", 2, "COMMAND: invalid choice: 'discovr'; did you mean 'discover'"),
    ("fit S.npz -n 0 -o o.csv", 1, "--components must be at least 1, got 0"),
    ("fit S.npz -n 31 -o o.csv", 1, "31"),
    ("fit S.npz -n three -o o.csv", 2, r"--components: must be an integer, got 'three' \(see simdims fit --help\)"),
    ("select-rank S.npz --ranks 2:40", 1, "ranks.*30"),
    ("select-rank S.npz --ranks 0:3", 1, "ranks.*0"),
    ("select-rank S.npz --ranks 2:x", 2, "--ranks: .*'2:x'"),
    ("select-rank S.npz --ranks 5:2", 2, "--ranks: .*'5:2'"),
    ("select-rank S.npz --ranks 2:5:0", 2, "--ranks: .*'2:5:0'"),
    ("select-rank S.npz --ranks 5:2:-1", 2, "--ranks: .*'5:2:-1'"),
    ("select-rank S.npz --ranks 1:2:3:4", 2, "--ranks: .*'1:2:3:4'"),
    ("select-rank S.npz --ranks 2:9999999999999", 2, "--ranks: must be at most 10,000 numbers"),
    ("select-rank S.npz --sampling half", 2, "--sampling: must be a number, got 'half'"),
    ("select-rank S.npz --sampling 1.5", 1, "sampling.*1.5"),
    ("select-rank S.npz --folds 1", 1, "folds must be at least 2, got 1"),
    ("calibrate S.npz --tolerance 2", 1, "tolerance.*2"),
    ("discover S.npz -o out --device abacus", 1, "--device must be .*'abacus'"),
    ("test W.csv properties.csv --labels name --fdr 2", 1, "fdr.*2"),
    ("rsa S.npz properties.csv --labels name --permutations 0", 1, "permutations.*0"),
    ("plot dimensions found -o p.svg --page 9", 1, "--page must be 1 for 3 dimensions .*got 9"),
    ("plot dimensions many -o p.svg --page 0", 1, "--page must be between 1 and 3 for 30 dimensions .*got 0"),
    ("plot clocks found -o p.svg", 2, "'clocks'"),
    ("completion tcsh", 2, "'tcsh'"),
    # Options that do not apply
    ("discover S.csv -o out --key S", 1, "key.*.csv"),
    ("discover S.csv -o out --absent zero", 1, "absent.*dense"),
    ("discover S.npz -o out --absent zero", 1, "--absent does not apply to a file written by simdims"),
    ("fit S.npz -n 2 -o o.csv --label-file ten.txt", 1, "--label-file does not apply to a file written by simdims"),
    ("calibrate S.npz --form long", 1, "form.*.npz"),
    ("similarity dissimilarity D.npy s.npz --negative clip", 1, "negative.*correlation"),
    ("similarity dissimilarity D.npy s.npz --key a", 1, "key.*.npy"),
    ("similarity features features.csv s.npz --labels name --landmarks 5", 1, "landmarks.*implicit"),
    ("similarity features features.csv s.npz --labels name --implicit --kernel cosine", 1, "implicit.*cosine|kernel"),
    (
        "discover S.csv -o out --as matrix --odd 1",
        2,
        "--odd does not apply to FILE, .* read as matrix, .*--as triplets",
    ),
    ("discover S.csv -o out --header", 2, "--header does not apply to FILE, .* read as matrix"),
    ("discover S.csv -o out --odd 1 --cue a", 2, "does not apply to FILE, .* read as matrix"),
    ("discover S.csv -o out --as ratings", 2, "--item1, --item2 and --rating"),
    ("discover ratings.csv -o out --as ratings --item1 left", 2, "pass --item2 and --rating"),
    ("discover ratings.csv -o out --item1 lift --item2 right", 1, "--item1 .* 'lift'; did you mean 'left'?"),
    ("evaluate comparisons found ratings.csv", 1, "--head must be given, .*the columns '.*left"),
    ("discover ratings.csv -o out --by Subject", 1, "--by .* 'Subject'; did you mean 'subject'?"),
    ("discover ratings.csv -o out --labels left --by subject", 2, "--by .*read as features because of --labels"),
    ("discover ratings.csv -o out --low 7 --high 1", 1, "--low must be less than --high"),
    ("rsa found properties.csv --labels name", 1, "got a folder: pass 'found/similarity.npz'"),
    ("test W.csv hole.csv", 1, "missing value in row 1, column 'a'.*: fill in"),
    ("discover S.csv -o out --no-report --title Mine", 2, "--title does not apply with --no-report"),
    ("report found --labels name", 2, "--labels only applies with --tests"),
    ("report found --permutations 5", 2, "--permutations only applies with --tests"),
    ("evaluate triplets found answers.csv --item name", 2, "--item does not apply if EMBEDDING is a folder"),
    (
        "plot map found -o p.svg --images folder",
        2,
        "--images .* the figures dimensions and panel, got map",
    ),
    ("plot panel found -o p.svg --labels name", 2, "--labels only applies with --tests"),
    ("plot map found -o p.svg --tests p.csv", 2, "--tests only applies to the figure panel, got map"),
    ("plot map found -o p.svg --page 2", 2, "--page only applies to the figure dimensions, got map"),
    ("fit S.npz -n 2 -o o.csv --solver admm --device torch-cpu", 2, "--solver admm .*--device cpu.*torch-cpu"),
    ("demo --full --items 50", 2, "--items does not apply with --words or --full"),
    ("demo poems -o out", 2, "unrecognized arguments: poems"),
    ("discover W.csv -o out --rnaks 5", 2, r"unrecognized arguments: --rnaks 5; did you mean --ranks\?"),
    ("plot dimension found -o p.svg", 2, r"invalid choice: 'dimension'; did you mean 'dimensions'\?"),
    (
        "report found -o p.html --uncertainty S.csv",
        1,
        "--uncertainty must be an .npz file written by `simdims bootstrap`",
    ),
    ("plot map found -o p.svg --title Mine", 2, r"unrecognized arguments: --title Mine \(see simdims plot --help\)"),
    ("discover S.csv", 2, r"required: -o/--out \(see simdims discover --help\)"),
    ("fit S.csv", 2, "required: -n/--components, -o/--out"),
    ("evaluate nothing", 2, "'nothing'"),
    ("similarity", 2, "SOURCE"),
    ("frobnicate", 2, "'frobnicate'"),
    # Where results should go
    ("discover S.csv -o folder", 1, "folder'.*other files"),
    ("discover S.csv -o S.npz", 1, "S.npz'.*file"),
    ("discover S.csv -o found", 1, "'found' holds an earlier result: .*--overwrite"),
    ("check nothing.csv", 1, "No such file: 'nothing.csv'"),
    ("check words.csv", 1, "FILE must have at least 4 items"),
    ("check S.npz --low 1", 1, "--low does not apply"),
    ("check S.npz --ranks 40", 1, "--ranks must"),
    ("check S.npz --alpha -1", 1, "--alpha must"),
    ("discover S.csv -o out --config nothing.toml", 1, "No such file: 'nothing.toml'"),
    ("discover S.npz -o out --dry-run --runs 1", 1, "--runs must"),
    ("select-rank S.npz --dry-run --folds 1", 1, "--folds must"),
    ("consensus S.npz -n 40 -o o.csv --dry-run", 1, "--components must"),
    ("discover S.csv -o S.npz/out", 1, "S.npz/out'"),
    ("discover S.csv -o out --checkpoint S.npz", 1, "Cannot write to 'S.npz'"),
    ("discover S.csv -o out --checkpoint folder", 1, "checkpoint.*'mine.txt'"),
    ("discover S.npz -o out --checkpoint out", 1, "FOLDER and --checkpoint"),
    ("discover S.npz -o out --checkpoint out/work", 1, "FOLDER and --checkpoint"),
    ("fit S.npz -n 2 -o nowhere/o.csv", 1, "No such folder: 'nowhere'"),
    ("fit S.npz -n 2 -o W.csv", 1, "'W.csv' already exists: .*--overwrite"),
    ("fit S.npz -n 2 -o W.txt", 1, "OUT must end in .csv, got 'W.txt'"),
    ("similarity features W.npy s.doc", 1, "OUT must end in .npz or .csv, got 's.doc'"),
    ("similarity features W.npy folder.npz", 1, "OUT must be a file, got the folder 'folder.npz'"),
    ("similarity features words.csv ./words.csv --labels name", 1, "OUT must be another file than IN"),
    ("plan", 2, "PILOT.*--items"),
    ("plan S.npz --items 3", 2, "--items does not apply"),
    ("plan --items 20 --dimensions 3 --people 5", 1, "--people .*5"),
    ("plan --items 20 --dimensions 3 --snr 2", 1, "--snr .*2"),
    ("plan --items 20 --dimensions 3 -o plan.doc", 1, "OUT must end in"),
    ("similarity comparisons answers.csv s.npz --head left", 1, "--head must name a column.*'left'"),
    (
        "similarity comparisons words.csv s.npz --head name --winner name --loser size",
        1,
        "--winner and --head .*'name'",
    ),
    ("evaluate comparisons W.csv answers.csv --winner best", 1, "'best'|'head'"),
    ("similarity triplets answers.csv s.csv --weights counts", 1, "OUT must end in .npz with --weights counts"),
    ("similarity features W.npy s.csv --implicit", 1, "OUT must end in .npz with --implicit"),
    ("similarity associations associations.csv s.csv", 1, "OUT must end in .npz with --absent 0.03"),
    ("evaluate readout W.csv properties.csv -o ./properties.csv", 1, "OUT must be another file than RATINGS"),
    ("rsa S.npz properties.csv -o properties.csv", 1, "OUT must be another file than PROPERTIES"),
    ("test W.csv properties.csv -o ./properties.csv", 1, "OUT must be another file than PROPERTIES"),
    ("select-rank S.npz -o ranks.txt", 1, "OUT must end in .json or .csv"),
    ("plot dimensions found -o p.doc", 1, "OUT must end in .pdf, .svg"),
    ("bootstrap found --over systems", 1, "must hold at least 4 systems.*--over items"),
    ("bootstrap found --resamples 5", 1, "--resamples must be at least 20, got 5"),
    ("bootstrap found --threshold 2", 1, "--threshold must be between 0 and 1"),
    ("bootstrap found --ranks auto", 1, "--ranks must be whole numbers"),
    ("bootstrap nothing", 1, "No such folder: 'nothing'"),
    ("bootstrap found -o sure.txt", 1, "OUT must end in .npz, .json or .csv"),
    ("compare found nothing.csv", 1, "No such file: 'nothing.csv'"),
    ("compare found found --fdr 3", 1, "--fdr must be"),
    ("compare found found --item name", 2, "--item does not apply if EMBEDDING is a folder"),
    ("report found -o p.html --uncertainty S.npz", 1, "must be a file that Bootstrap.save wrote"),
    ("report found -o p.html --seed 1", 2, "--seed only applies with --tests, --lineage or --compare"),
]


@pytest.mark.parametrize(("typed", "status", "pattern"), MISTAKES, ids=[row[0] for row in MISTAKES])
def test_a_mistake_is_one_line_and_writes_nothing(capsys, typed, status, pattern):
    before = everything()
    assert main(typed.split()) == status
    said = capsys.readouterr()
    *remarks, error = said.err.splitlines()
    assert said.out == ""
    assert error.startswith("simdims: error: ")
    assert re.search(pattern, error), error
    assert all(line.startswith("simdims: ") and "error" not in line for line in remarks)
    assert everything() == before


def test_every_command_is_in_the_table():
    commands = {" ".join(path) for path in paths(parser())}
    assert commands == {command for command in commands for row in MISTAKES if f"{row[0]} ".startswith(f"{command} ")}


def paths(command, path=()):
    """The words that lead to each command."""
    below = subcommands(command)
    return [found for name, (_, inner) in below.items() for found in paths(inner, (*path, name))] if below else [path]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc, in which nobody can write, here")
@pytest.mark.parametrize(
    "typed",
    [
        "discover S.csv -o /proc/x",
        "discover S.csv -o /proc/x/y",
        "discover S.csv -o out --checkpoint /proc/x",
        "demo -o /proc/x",
        "report found -o /proc/x.html",
        "plot map found -o /proc/x.svg",
        "export found -o /proc/x",
        "similarity features features.csv /proc/x.npz --labels name",
        "calibrate S.npz -o /proc/x.json",
        "select-rank S.npz -o /proc/x.csv",
        "fit S.npz -n 2 -o /proc/x.csv",
        "consensus S.npz -n 2 -o /proc/x.csv",
        "evaluate readout W.csv properties.csv --labels name -o /proc/x.csv",
        "test W.csv properties.csv --labels name -o /proc/x.csv",
        "rsa S.npz properties.csv --labels name -o /proc/x.json",
        "encode W.csv properties.csv --labels name -o /proc/x.csv",
        "label W.csv properties.csv --labels name -o /proc/x.csv",
        "plan S.npz --checkpoint /proc/x",
    ],
)
def test_a_place_that_cannot_be_written_to_is_refused_before_anything_is_read(capsys, monkeypatch, typed):
    def read(*arguments, **options):
        raise AssertionError("this comes after the check")

    for reader in (
        "io.load_similarity",
        "io.raw.read_features",
        "io.sniffing.guess",
        "datasets.load_digits_similarity",
    ):
        monkeypatch.setattr(f"simdims.{reader}", read)
    before = everything()
    assert main(typed.split()) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert re.search("'/proc/x", error)
    assert everything() == before


def test_the_check_of_a_place_leaves_no_folder_behind(capsys):
    before = set(Path().rglob("*"))
    assert main(["discover", "nothing.csv", "-o", "new/newer/out", "--checkpoint", "some/work"]) == 1
    assert set(Path().rglob("*")) == before


@pytest.mark.parametrize(
    ("typed", "function"),
    [
        ("discover S.csv -o out --ranks 2", "simdims.discovery.discover"),
        ("fit S.npz -n 2 -o o.csv", "simdims.srf.SRF.fit"),
        ("consensus S.npz -n 2 -o o.csv", "simdims.consensus.fit_consensus"),
        ("select-rank S.npz -o r.json", "simdims.selection.select_rank"),
        ("calibrate S.npz -o c.json", "simdims.selection.calibrate"),
        ("evaluate readout W.csv properties.csv --labels name -o r.csv", "simdims.metrics.readout"),
        ("test W.csv properties.csv --labels name -o t.csv", "simdims.inference.dimension_test"),
        ("rsa S.npz properties.csv --labels name -o t.csv", "simdims.inference.rsa_test"),
        ("plot map found -o p.svg", "simdims.plots.save_figure"),
        ("report found -o r.html", "simdims.report.writer.replacing_file"),
    ],
)
def test_an_interrupt_leaves_nothing_and_no_traceback(capsys, monkeypatch, typed, function):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    if function.startswith("simdims.plots"):
        pytest.importorskip("matplotlib")
    monkeypatch.setattr(function, interrupt)
    before = everything()
    assert main(typed.split()) == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    assert everything() == before


def test_what_the_system_refuses_is_said_without_its_numbers(capsys, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device", "o.csv")

    monkeypatch.setattr("simdims.cli.steps.write_result", full)
    assert main(["fit", "S.npz", "-n", "2", "-o", "o.csv", "--seed", "0"]) == 1
    assert capsys.readouterr().err == "simdims: error: No space left on device: 'o.csv'.\n"


def test_too_little_memory_without_a_word_of_it_is_still_a_sentence(capsys, monkeypatch):
    def exhausted(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("simdims.io.load_similarity", exhausted)
    assert main(["fit", "S.npz", "-n", "2", "-o", "o.csv"]) == 1
    assert capsys.readouterr().err == "simdims: error: Not enough memory.\n"


def test_an_interrupt_that_compiled_code_turned_into_an_error_is_an_interrupt(monkeypatch, capsys):
    """Importing NumPy's C interface, for one, answers an interrupt with an ImportError."""
    import signal

    from simdims.cli import evaluate

    def swallow(options):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("numpy._core.multiarray failed to import") from None

    monkeypatch.setattr(evaluate, "_triplets", swallow)
    assert main(["evaluate", "triplets", "W.csv", "answers.csv"]) == 130
    assert capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
