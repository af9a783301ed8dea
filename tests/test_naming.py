"""label_dimensions: properties that describe dimensions, cross-validated, distinct and significant."""

import json
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_examples import HOSTILE, made, sorted_embedding

from simdims import Discovery, label_dimensions, simulate
from simdims.cli import main
from simdims.naming import cross_validated_correlations, suggested_names

THINGS = Path(os.environ.get("SIMDIMS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"), "things")


def one_fold_at_a_time(y, x, fold):
    """The definition: predict each fold by a line through the other items."""
    known = ~np.isnan(x)
    predicted = np.full(len(y), np.nan)
    for one in np.unique(fold):
        training = known & (fold != one)
        slope, level = np.polyfit(x[training], y[training], 1)
        held = known & (fold == one)
        predicted[held] = level + slope * x[held]
    return np.corrcoef(predicted[known], y[known])[0, 1]


@pytest.mark.parametrize("share_missing", [0.0, 0.3])
def test_correlations_are_those_of_lines_fitted_to_the_other_folds(share_missing):
    rng = np.random.default_rng(0)
    Y, X = rng.normal(size=(60, 3)), rng.normal(size=(60, 4)) + 5
    X[rng.random(X.shape) < share_missing] = np.nan
    fold = rng.permutation(60) % 5
    r, slope = cross_validated_correlations(Y, np.nan_to_num(X), ~np.isnan(X), fold)
    for j in range(4):
        known = ~np.isnan(X[:, j])
        for k in range(3):
            assert r[j, k] == pytest.approx(one_fold_at_a_time(Y[:, k], X[:, j], fold), abs=1e-9)
            assert slope[j, k] == pytest.approx(np.polyfit(X[known, j], Y[known, k], 1)[0], abs=1e-9)


def test_properties_of_all_kinds_are_found_for_their_dimensions():
    rng = np.random.default_rng(1)
    W = rng.gamma(0.3, size=(200, 5))
    properties = pd.DataFrame(
        {
            "animal": W[:, 0] > 0.4,
            "weight": -W[:, 1] + 0.1 * rng.normal(size=200),
            "kind": np.where(W[:, 2] > 0.4, "tool", np.where(W[:, 3] > 0.4, "food", "other")),
            "noise": rng.normal(size=200),
        }
    )
    properties.loc[rng.random(200) < 0.2, "weight"] = np.nan
    properties.loc[rng.random(200) < 0.2, "kind"] = None
    table = label_dimensions(W, properties, random_state=0)
    first = table.groupby("dimension")["property"].first().to_dict()
    assert first == {
        "dimension1": "animal",
        "dimension2": "weight",
        "dimension3": "kind: tool",
        "dimension4": "kind: food",
    }
    assert table.loc[table["property"] == "weight", "correlation"].iloc[0] < -0.5
    names = suggested_names(table)
    assert re.fullmatch(r"animal \(0\.\d\d\)", names["dimension1"])
    assert names["dimension2"].startswith("low weight (0.")
    assert names["dimension3"].startswith("tool (0.")
    assert list(table.columns) == ["dimension", "property", "correlation", "unique", "pvalue", "pvalue_adjusted"]
    assert (table["pvalue_adjusted"] <= 0.05).all()


def test_a_property_that_says_the_same_as_another_is_not_suggested():
    rng = np.random.default_rng(2)
    W = simulate.dirichlet(300, 4, alpha=0.3, random_state=2)
    property_ = W[:, 0] + 0.2 * rng.normal(size=300)
    copy = property_ + 0.2 * rng.normal(size=300)  # knows nothing more of the dimension
    other = W[:, 0] + 0.3 * rng.normal(size=300)  # has its own errors
    table = label_dimensions(W, {"one": property_, "copy": copy, "other": other}, random_state=0)
    assert list(table.loc[table["dimension"] == "dimension1", "property"]) == ["one", "other"]
    second = table[table["property"] == "other"].iloc[0]
    assert 0 < second["unique"] < second["correlation"]


def test_combinations_of_properties_are_not_suggested_for_their_rounding_errors():
    n_suggested = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        W = rng.gamma(0.3, size=(60, 1))
        one, other = W.T + [[0.5], [0.7]] * rng.normal(size=(2, 60))
        copies = {"one": one, "copy": 3 * one + 1, "low": -one}
        settings = {"n_permutations": 39, "random_state": seed}
        n_suggested += len(label_dimensions(W, copies, **settings)) > 1
        table = label_dimensions(W, {"one": one, "other": other, "sum": one + 2 * other}, **settings)
        n_suggested += len(table) > 2
    assert n_suggested == 0


def test_truth_values_and_numbers_with_gaps_are_not_categories():
    """As pandas reads them from files and lists, with None or NaN among them."""
    W = np.random.default_rng(4).gamma(0.3, size=(100, 3))
    gap = np.arange(100) % 7 == 0
    animal = [None if missing else bool(w > 0.4) for w, missing in zip(W[:, 0], gap, strict=True)]
    size = [None if missing else float(w) for w, missing in zip(W[:, 1], gap, strict=True)]
    properties = pd.DataFrame({"animal": animal, "size": pd.Series(size, dtype=object), "tool": W[:, 2] > 0.4})
    properties["tool"] = np.where(properties["tool"], "yes", "no")
    names = suggested_names(label_dimensions(W, properties, random_state=0, n_permutations=99), numbers=False)
    assert names == {"dimension1": "animal", "dimension2": "size", "dimension3": "tool: yes"}
    with pytest.raises(TypeError, match="properties must be real numbers or words, got complex ones in 'size'"):
        label_dimensions(W, {"size": W[:, 1] + 1j})


def test_numbers_that_are_read_as_categories_are_worth_a_warning():
    W = np.random.default_rng(4).gamma(0.3, size=(100, 3))
    size = (4 * W[:, 1]).round().clip(max=3).astype(int)
    with pytest.warns(UserWarning, match="'size' holds numbers stored as text"):
        label_dimensions(W, {"size": size.astype(str)}, n_permutations=39)
    with pytest.warns(UserWarning, match="'size' holds numbers and words such as 'unknown'"):
        label_dimensions(W, {"size": ["unknown", *size[1:].astype(str)]}, n_permutations=39)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        label_dimensions(W, {"size": pd.Categorical(size.astype(str))}, n_permutations=39)
        label_dimensions(W, {"size": np.array(["small", "1", "large"])[size.clip(max=2)]}, n_permutations=39)


def test_a_table_without_numbers_suggests_nothing():
    for value in ("high", np.nan):
        with pytest.raises(TypeError, match="table must have numbers in its column correlation"):
            suggested_names(pd.DataFrame({"dimension": ["d"], "property": ["p"], "correlation": [value]}))


def test_noise_gets_no_names(tmp_path):
    rng = np.random.default_rng(0)
    table = label_dimensions(rng.gamma(0.3, size=(40, 2)), {"size": rng.normal(size=40)}, n_permutations=39)
    assert table.empty
    assert all(pd.api.types.is_float_dtype(kind) for kind in table.dtypes.iloc[2:])
    table.to_csv(tmp_path / "table.csv", index=False)
    for same in (table, pd.read_csv(tmp_path / "table.csv")):
        assert suggested_names(same) == {}


def test_units_do_not_matter():
    W = np.random.default_rng(5).gamma(0.3, size=(80, 3))
    properties = pd.DataFrame({"a": W[:, 0], "b": W[:, 1] > 0.3, "c": 1000 + W[:, 2]})
    expected = label_dimensions(W, properties, n_permutations=39, random_state=0)
    assert len(expected) == 3
    for scale in (1e-200, 1e200):
        scaled = properties.assign(a=scale * properties["a"], c=scale * properties["c"])
        found = label_dimensions(scale * W, scaled, n_permutations=39, random_state=0)
        pd.testing.assert_frame_equal(found, expected)


def test_an_index_that_numbers_the_items_in_another_order_is_refused():
    W = np.random.default_rng(6).gamma(0.3, size=(40, 2))
    properties = pd.DataFrame({"x": W[:, 1]})
    with pytest.raises(ValueError, match=r"properties must list the items in order.*sort_index"):
        label_dimensions(W, properties.sample(frac=1, random_state=0))
    with pytest.raises(ValueError, match="W must list the items in order"):
        label_dimensions(pd.DataFrame(W).sample(frac=1, random_state=0), properties)


def noise_properties(n, rng):
    """Correlated numbers and categories, some of them rare, some unknown."""
    shared = rng.normal(size=(n, 1))
    X = 0.7 * shared + 0.7 * rng.normal(size=(n, 8))
    frame = pd.DataFrame(X, columns=[f"number {j}" for j in range(8)])
    for j, share in enumerate((0.08, 0.2, 0.5)):
        frame[f"category {j}"] = (X[:, j] > np.quantile(X[:, j], 1 - share)).astype(float)
    frame["skewed"] = np.exp(2 * rng.normal(size=n))
    frame.iloc[: n // 4, 0] = np.nan
    return frame


def share_of_noise_named(n_sets, n_items, n_permutations, first_seed):
    named = []
    for seed in range(first_seed, first_seed + n_sets):
        rng = np.random.default_rng(seed)
        noise = rng.exponential(size=(n_items, 4)) * (rng.random((n_items, 4)) < 0.3)
        properties = noise_properties(n_items, rng)
        signal = properties["number 1"].to_numpy()[:, None] + 0.5 * rng.normal(size=(n_items, 2))
        table = label_dimensions(
            np.hstack([noise, signal]),
            properties,
            min_correlation=0.0,
            n_permutations=n_permutations,
            random_state=seed,
        )
        found = set(table["dimension"])
        assert {"dimension5", "dimension6"} <= found
        named += [f"dimension{k}" in found for k in range(1, 5)]
    return np.mean(named)


def test_noise_is_rarely_given_a_name():
    assert share_of_noise_named(25, 60, 99, 0) <= 0.1  # 5% expected at most, of 100


@pytest.mark.slow
def test_at_most_five_percent_of_noise_dimensions_are_given_a_name():
    assert share_of_noise_named(500, 60, 199, 1000) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("missing", "most"), [("none", 0.06), ("random", 0.06), ("high", 0.11)])
def test_pvalues_are_slightly_too_small_if_a_property_is_unknown_where_loadings_are_high(missing, most):
    small = 0
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        y = np.exp(1.5 * rng.normal(size=60))
        x = rng.normal(size=60)
        unknown = {"none": y < 0, "random": rng.random(60) < 0.5, "high": y > np.quantile(y, 0.4)}[missing]
        settings = {"min_correlation": 0.0, "n_permutations": 99, "random_state": seed}
        small += len(label_dimensions(y[:, None], {"x": np.where(unknown, np.nan, x)}, **settings))
    assert small / 2000 <= most


def test_items_are_looked_up_by_name():
    W = np.random.default_rng(3).gamma(0.3, size=(80, 3))
    items = [f"item {i}" for i in range(80)]
    frame = pd.DataFrame(W, index=items, columns=["a", "b", "c"])
    properties = pd.DataFrame({"x": W[:, 1]}, index=items).iloc[10:].sample(frac=1, random_state=0)
    with pytest.warns(UserWarning, match=r"10 of 80 items .* 'item 0'"):
        table = label_dimensions(frame, properties, random_state=0)
    assert table.iloc[0]["dimension"] == "b"
    assert table.iloc[0]["correlation"] > 0.99


def test_names_keep_their_prefix_where_they_would_be_the_same():
    columns = ["dimension", "property", "correlation"]
    table = pd.DataFrame([("d1", "shape: round", 0.5), ("d2", "taste: round", 0.4), ("d2", "taste: sweet", 0.4)],
                         columns=columns)  # fmt: skip
    expected = {"d1": "shape: round", "d2": "taste: round, sweet"}
    assert suggested_names(table, numbers=False) == expected


@pytest.mark.parametrize(
    ("property_", "name"),
    [("category: animal", "animal"), ("sex: W", "sex: W"), ("mood: HO", "mood: HO"), ("size: 7", "size: 7"),
     ("alive: yes", "alive: yes"), ("kind: ox", "ox"), ("kind: \u7269", "\u7269")],
)  # fmt: skip
def test_names_keep_their_prefix_where_the_rest_is_a_code(property_, name):
    table = pd.DataFrame([("d1", property_, 0.5)], columns=["dimension", "property", "correlation"])
    assert suggested_names(table, numbers=False) == {"d1": name}


def test_names_without_correlations_differ_so_that_all_can_be_accepted():
    columns = ["dimension", "property", "correlation"]
    rows = [(f"dimension{k}", name, 0.5) for k, name in enumerate(("food", "food", "food 2", "tool", "food"), start=1)]
    table = pd.DataFrame(rows, columns=columns)
    assert list(suggested_names(table, numbers=False).values()) == ["food", "food 3", "food 2", "tool", "food 4"]
    assert list(suggested_names(table).values())[:2] == ["food (0.50)", "food (0.50)"]


def test_the_command_line_writes_suggestions_that_a_report_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    W = sorted_embedding(60, 3)
    labels = [f"item {i}" for i in range(60)]
    found = made(W, labels=labels)
    found.save("found")
    kind = np.where(W[:, 0] > 0.4, "animal", "thing")
    pd.DataFrame({"name": labels, "kind": kind, "noise": np.arange(60) % 7}).to_csv("properties.csv", index=False)
    typed = ["label", "found", "properties.csv", "--labels", "name", "--seed", "0", "-o", "names.csv"]
    assert main(typed) == 0
    assert "dimension1: animal (0." in capsys.readouterr().out
    expected = label_dimensions(found, pd.DataFrame({"kind": kind, "noise": np.arange(60) % 7}, index=labels),
                                random_state=0)  # fmt: skip
    pd.testing.assert_frame_equal(pd.read_csv("names.csv"), expected)
    assert main(["report", "found", "--suggestions", "names.csv", "-o", "page.html"]) == 0
    suggestions = json.loads(
        re.search(r'<script[^>]*id="data-facts"[^>]*>(.*?)</script>', Path("page.html").read_text())[1]
    )
    assert suggestions["suggestions"][0]["name"] == "animal"
    assert suggestions["suggestions"][0]["words"].startswith("animal (0.")
    assert main([*typed[:3], "--seed", "0"]) == 1
    assert "PROPERTIES must have few categories" in (said := capsys.readouterr().err)
    assert "pass its name as --labels" in said
    Path("bad.csv").write_text("item,words\n1,animal\n")
    assert main(["report", "found", "--suggestions", "bad.csv", "-o", "page.html"]) == 1
    assert "'dimension'" in capsys.readouterr().err


def test_names_in_a_report_cannot_break_out_of_it(tmp_path):
    table = pd.DataFrame([("dimension1", HOSTILE[0], 0.5)], columns=["dimension", "property", "correlation"])
    path = made(sorted_embedding(12, 2)).report(tmp_path / "page.html", suggestions=table)
    assert HOSTILE[0] not in path.read_text()


#: Words that say nothing of what a dimension is about.
EMPTY = {"related", "things", "many", "and", "stereotypical", "item", "items", "equipment", "part"}


def stems(text):
    words = re.findall(r"[a-z]+", text.lower())
    return {word[:4] for word in words if len(word) > 2 and word not in EMPTY}


@pytest.mark.skipif(not THINGS.is_dir(), reason=f"no THINGS data in {THINGS}")
def test_suggestions_for_spose_agree_with_the_published_labels():
    """Agreement: a word of a suggested property and one of the label begin with the same four letters."""
    W = np.loadtxt(THINGS / "spose_embedding_66d_sorted.txt")
    properties = pd.read_csv(THINGS / "properties.csv", index_col=0).reset_index(drop=True)
    labels = (THINGS / "labels_short.txt").read_text().splitlines()
    table = label_dimensions(W, properties, n_permutations=199, random_state=0)
    table = table[table["correlation"] > 0]
    suggested = [" ".join(table.loc[table["dimension"] == f"dimension{k + 1}", "property"]).replace("category", "")
                 .replace("rating", "") for k in range(66)]  # fmt: skip
    agree = [bool(stems(words) & stems(label)) for words, label in zip(suggested, labels, strict=True)]
    by_chance = np.mean([bool(stems(one) & stems(label)) for one in suggested for label in labels]) * 66
    assert sum(agree) >= 20
    assert sum(agree) >= 5 * by_chance


def test_a_discovery_can_be_labelled():
    W = sorted_embedding(60, 3)
    found = made(W)
    assert isinstance(found, Discovery)
    table = label_dimensions(found, {"x": W[:, 2]}, random_state=0)
    assert table.set_index("dimension").loc["dimension3", "correlation"] == pytest.approx(1.0)


def test_an_embedding_without_labels_is_matched_by_order_with_a_warning(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    W = np.random.default_rng(0).gamma(0.3, size=(40, 2))
    np.savetxt("W.txt", W)
    pd.DataFrame({"name": [f"item {i}" for i in range(40)], "x": W[:, 1]}).to_csv("properties.csv", index=False)
    assert main(["label", "W.txt", "properties.csv", "--labels", "name", "--seed", "0"]) == 0
    said = capsys.readouterr()
    assert "dimension2: x" in said.out
    assert "by their order" in said.err
