"""The page's section on systems: weights as they are, tests of weight_test, and unusual systems by their definition."""

import json
import re
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_examples import HOSTILE, made, sorted_embedding

from simdims import SimilaritySet, discover, simulate, weight_test
from simdims.cli.discover import findings
from simdims.report.systems import unusual_systems
from simdims.report.words import percent, provenance

N_SYSTEMS, N_DIMENSIONS = 12, 3


def of_systems(weights, names=None, info=None):
    """A Discovery with given weights, without the fits."""
    W = sorted_embedding(20, weights.shape[1])
    names = [f"p{m}" for m in range(len(weights))] if names is None else names
    systems = SimilaritySet([(W * a) @ W.T + 1e-3 for a in weights], names=names, info=info)
    found = made(W)
    consensus = replace(
        found.consensus, weights=weights[None], systems=systems.names, system_info=systems.info, shrinkage=0.1
    )
    return replace(found, consensus=consensus, similarity=systems)


def some_weights(seed=0):
    weights = np.random.default_rng(seed).gamma(20.0, 0.05, size=(N_SYSTEMS, N_DIMENSIONS))
    return weights / weights.mean(axis=0)


def facts_of(found, path):
    text = Path(found.report(path / "page.html")).read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data-facts">(.*?)</script>', text, flags=re.DOTALL)[1]), text


def test_weights_groups_and_tests_are_those_of_the_library(tmp_path):
    group = ["b", "a", None, *"abababab", "b"]
    info = {"group": group, "age": np.arange(20, 32), "name": [f"n{m}" for m in range(12)], "same": ["x"] * 12}
    found = of_systems(some_weights(), info=info)
    systems = facts_of(found, tmp_path)[0]["systems"]
    np.testing.assert_allclose(systems["weights"], found.weights, rtol=1e-4)
    columns = {column["name"]: column for column in systems["columns"]}
    assert set(columns) == {"group", "age"}  # one value, and as many groups as systems, say nothing
    assert columns["age"]["groups"] is None
    assert columns["age"]["scores"] == list(range(20, 32))
    assert columns["group"]["scores"] is None
    codes = columns["group"]["groups"]["codes"]
    assert codes == [None if one is None else "ab".index(one) for one in group]
    for number, level in enumerate(columns["group"]["groups"]["levels"]):
        own = found.weights[[code == number for code in codes]]
        np.testing.assert_allclose(level["mean"], own.mean(axis=0), rtol=1e-4)
        assert level["n"] == len(own)
    for name in ("age", "group"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a system without a group, which the page mentions
            expected = weight_test(found, name, n_permutations=10_000, random_state=0)
        rows = columns[name]["tests"]["rows"]
        np.testing.assert_allclose([row["pvalue"] for row in rows], expected.pvalue, rtol=1e-4)
        np.testing.assert_allclose([row["effect"] for row in rows], expected.effect, rtol=1e-3)
    assert any("Left out 1 system" in note for note in columns["group"]["tests"]["notes"])


def test_scores_may_be_missing_and_dates_are_not_scores(tmp_path):
    scores = [1.5, np.nan, *np.arange(10.0)]
    info = {"score": scores, "date": pd.date_range("2026-01-01", periods=12)}
    columns = facts_of(of_systems(some_weights(), info=info), tmp_path)[0]["systems"]["columns"]
    score, date = columns
    assert score["scores"] == [1.5, None, *range(10)]
    assert date["tests"] is not None
    assert date["scores"] is None


def test_missing_pairs_of_systems_are_counted_although_their_average_has_all(tmp_path):
    found = of_systems(some_weights())
    values = np.stack([one.values for one in found.similarity])
    values[0, 0, 1] = values[0, 1, 0] = np.nan
    found = replace(found, similarity=SimilaritySet(values))
    assert found.mean_similarity.density == 1
    assert f"{percent(found.similarity.density)} of the pairs observed" in dict(provenance(found))["Data"]


def test_typical_and_unusual_systems_are_named(tmp_path):
    weights = some_weights()
    weights[4] = 1.0
    weights[7] = [3.0, 0.1, 0.0]
    found = of_systems(weights)
    table = unusual_systems(found)
    expected = [np.sqrt(np.mean((row - 1) ** 2)) for row in weights]
    np.testing.assert_allclose(table["distance"], expected)
    assert table.index[table["unusual"]].tolist() == ["p7"]
    said = " ".join(facts_of(found, tmp_path)[0]["systems"]["said"])
    assert "most typical system is p4" in said
    assert "most unusual one is p7" in said
    assert "Outliers in their weights: p7." in said
    assert "Outliers in their weights: p7." in " ".join(findings(found))
    usual = of_systems(some_weights())
    assert not unusual_systems(usual)["unusual"].any()


def test_few_systems_have_no_outliers():
    weights = some_weights()[:5]
    weights[0] = 5.0
    assert not unusual_systems(of_systems(weights))["unusual"].any()


def test_names_of_systems_and_groups_break_nothing(tmp_path):
    names = HOSTILE + [f"p{m}" for m in range(N_SYSTEMS - len(HOSTILE))]
    info = {HOSTILE[0]: np.resize([HOSTILE[1], "b"], N_SYSTEMS)}
    facts, text = facts_of(of_systems(some_weights(), names, info), tmp_path)
    assert facts["systems"]["names"] == names
    assert len(re.findall(r"<script", text)) == 9
    assert "onerror" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


def test_equal_weights_are_said_and_not_drawn(tmp_path):
    systems = facts_of(of_systems(np.ones((5, 2)), info={"group": list("aabbb")}), tmp_path)[0]["systems"]
    assert systems["differ"] is False
    assert systems["columns"] == []


def test_one_system_has_no_section(tmp_path):
    assert facts_of(made(sorted_embedding(20, 2)), tmp_path)[0]["systems"] is None


def test_a_discovery_of_people_says_what_weights_are_worth(tmp_path):
    W = simulate.dirichlet(14, 2, alpha=0.3, random_state=0)
    rng = np.random.default_rng(0)
    stack = [simulate.add_noise((W * a) @ W.T, 0.9, random_state=m) for m, a in enumerate(rng.uniform(0, 2, (8, 2)))]
    found = discover(SimilaritySet(stack), ranks=2, n_runs=2, n_repeats=1, random_state=0)
    facts, text = facts_of(found, tmp_path)
    assert facts["systems"]["said"][0] == found.systems.headline()
    assert facts["systems"]["models"] == [list(row) for row in found.systems.rows()]
    np.testing.assert_allclose(facts["systems"]["r2"], found.systems.r2["weights"], rtol=1e-4)
    assert "2 dimensions of 14 items in 8 systems" in text
    summary, data = text.split('<section id="dimensions"')[0], text.split('id="data-facts"')[1]
    assert "predictions." in summary
    assert found.noise_ceiling_words not in summary
    assert found.noise_ceiling_words in data


def test_the_section_works_in_a_browser(tmp_path):
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next((path for name in ("chromium", "google-chrome") if (path := shutil.which(name))), None)
    if chromium is None:
        pytest.skip("no Chromium here")
    rng = np.random.default_rng(0)
    weights = rng.gamma(4.0, 0.25, size=(60, N_DIMENSIONS))
    info = pd.DataFrame({"group": np.resize(["a", "b"], 60), "age": rng.integers(20, 80, 60)})
    path = of_systems(weights / weights.mean(axis=0), info=info).report(tmp_path / "page.html")
    errors = []
    with api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text))
        page.goto(path.as_uri())
        section = page.locator("#systems")
        api.expect(section.locator("circle.mark")).to_have_count(60 * N_DIMENSIONS)
        api.expect(section.locator("#systems-tests tbody tr:visible")).to_have_count(N_DIMENSIONS)
        api.expect(section.locator("table.weights tbody tr")).to_have_count(25)
        section.get_by_role("button", name="Show all 60 systems").click()
        api.expect(section.locator("table.weights tbody tr")).to_have_count(60)
        assert section.locator("table.weights thead th").all_inner_texts()[:3] == ["System", "group", "age"]
        shown = dict(row.split("\t")[:2] for row in section.locator("table.weights tbody tr").all_inner_texts())
        assert shown == {f"p{m}": "ab"[m % 2] for m in range(60)}
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        headings = section.locator("#systems-tests h3:visible").all_inner_texts()
        assert headings == ["Do weights differ by group?", "Do weights differ by age?"]
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.emulate_media(media="screen")
        section.locator("select").select_option(label="age")
        api.expect(section.locator("#systems-tests h3:visible")).to_have_text("Do weights differ by age?")
        api.expect(section.locator("circle.mark")).to_have_count(60 * N_DIMENSIONS)
        api.expect(section.locator("line.mean")).to_have_count(N_DIMENSIONS)
        api.expect(section.locator(".systems-legend")).to_have_text("Lines: slopes of the tests below.")
        browser.close()
    assert errors == []
