"""The page with resamples and comparisons: intervals of bootstrap, and pairs of compare_embeddings from its side."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_examples import HOSTILE, made, resampled, sorted_embedding

from simdims import compare_embeddings

N_ITEMS, N_DIMENSIONS = 30, 4


def facts_of(found, path, **shown):
    text = Path(found.report(path / "page.html", **shown)).read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data-facts">(.*?)</script>', text, flags=re.DOTALL)[1]), text


@pytest.fixture
def found():
    return made(sorted_embedding(N_ITEMS, N_DIMENSIONS), labels=tuple(f"item {i}" for i in range(N_ITEMS)))


def test_cards_have_the_intervals_of_the_bootstrap(found, tmp_path):
    sure = resampled(found.embedding, found.labels)
    facts, text = facts_of(found, tmp_path, uncertainty=sure)
    low, high = sure.interval("loadings")
    for k, one in enumerate(facts["uncertainty"]["dimensions"]):
        items = facts["dimensions"][k]["items"]
        np.testing.assert_allclose([one["low"], one["high"]], [low[items, k], high[items, k]], rtol=1e-4)
        assert one["at_zero"] == sure.at_zero[items, k].tolist()
        np.testing.assert_allclose(one["share"], sure.interval("shares")[:, k], rtol=1e-4)
        assert one["words"] == sure.words(k)
    assert facts["uncertainty"]["dimensions"][3]["came_back"] == 0.75
    assert "came back (r &gt;= 0.8) in 75% to 100% of the resamples. Less often than in 80%: dimension 4 (75%)." in text
    assert "resampled groups of systems" in facts["uncertainty"]["said"]


def test_the_page_says_why_a_dimension_has_no_intervals(found, tmp_path):
    sure = resampled(found.embedding, found.labels)
    correlations = sure.correlations.copy()
    correlations[5:, 1] = 0.5
    said = facts_of(found, tmp_path, uncertainty=replace(sure, correlations=correlations))[0]["uncertainty"]["said"]
    assert "95% intervals" in said
    assert "came back in fewer than 20 resamples" in said
    assert "fewer than" not in facts_of(found, tmp_path, uncertainty=sure)[0]["uncertainty"]["said"]


def test_without_resamples_the_page_is_as_before(found, tmp_path):
    facts, text = facts_of(found, tmp_path)
    assert facts["uncertainty"] is None
    assert facts["comparisons"] == []
    assert "came back (r" not in text


def test_a_dimension_that_a_stricter_tolerance_changed_is_reported(found):
    W = found.embedding.copy()
    W[:, 2] += 1.2 * np.linalg.norm(W[:, 2]) / np.sqrt(N_ITEMS)
    cosine = W[:, 2] @ found.embedding[:, 2] / np.linalg.norm(W[:, 2]) / np.linalg.norm(found.embedding[:, 2])
    assert 0.5 < cosine < 0.9
    with pytest.warns(UserWarning, match=rf"tolerance .* changed dimension 3 \(cosine {cosine:.2f}\);"):
        found.dimensions_frame(resampled(W, found.labels))


def test_resamples_of_another_result_are_refused(found, tmp_path):
    W = found.embedding
    for other, got in (
        (resampled(W[:, :3], found.labels), "30 items and 3 dimensions"),
        (resampled(W[:, [1, 0, 2, 3]], found.labels), "dimension 1 differs"),
    ):
        with pytest.raises(ValueError, match=f"uncertainty must be of this result.*{got}"):
            found.report(tmp_path / "page.html", uncertainty=other)
        with pytest.raises(ValueError, match="uncertainty must be of this result"):
            found.dimensions_frame(other)
    with pytest.raises(TypeError, match="uncertainty"):
        found.report(tmp_path / "page.html", uncertainty="sure.npz")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("own", [0, 1])
def test_a_comparison_is_told_from_the_side_of_the_page(found, tmp_path, own):
    W = found.embedding
    other = np.column_stack([W[:, [2, 0]], np.random.default_rng(0).gamma(0.5, size=N_ITEMS)])
    similarity = found.mean_similarity
    arguments = (found, other) if own == 0 else (other, found)
    given = {f"S{own + 1}": similarity, "n_permutations": 200, "random_state": 0}
    compared = compare_embeddings(*arguments, **given)
    facts, _ = facts_of(found, tmp_path, comparison={"a brain": compared})
    (told,) = facts["comparisons"]
    assert {(pair["own"], pair["other"][:2]) for pair in told["shared"]} == {(0, "2:"), (2, "1:")}
    assert told["only_own"] == [1, 3]
    assert [text[:2] for text in told["only_other"]] == ["3:"]
    np.testing.assert_allclose([pair["p"] for pair in told["shared"]], compared.pvalue[compared.is_shared], rtol=1e-4)
    assert "2 of the 4 dimensions here and the 3 of a brain are shared" in told["said"]
    assert "the similarities here, their own dimensions explain" in told["explained"][0]
    alone = facts_of(found, tmp_path, comparison=compared)[0]["comparisons"]
    assert alone[0]["name"] == "the other embedding"


def test_a_comparison_of_some_items_in_another_order_is_of_this_result(found, tmp_path):
    frame = found.embedding_frame().sample(frac=0.8, random_state=0)
    with pytest.warns(UserWarning, match="left out"):
        compared = compare_embeddings(frame * 2, found, n_permutations=50, random_state=0)
    facts, _ = facts_of(found, tmp_path, comparison=compared)
    assert sorted(pair["own"] for pair in facts["comparisons"][0]["shared"]) == [0, 1, 2, 3]


def test_a_bootstrap_that_changed_a_dimension_is_reported_once(found, tmp_path):
    changed = np.array(found.embedding)
    changed[::3, 1] = 0.0
    sure = resampled(changed, found.labels)
    with pytest.warns(UserWarning, match="stricter tolerance") as caught:
        found.report(tmp_path / "page.html", uncertainty=sure)
    assert len(caught) == 1


def test_comparisons_of_other_results_are_refused(found, tmp_path):
    W = sorted_embedding(N_ITEMS, 3, seed=5)
    compared = compare_embeddings(W, W, n_permutations=20, random_state=0)
    with pytest.raises(ValueError, match="comparison must be of this result"):
        found.report(tmp_path / "page.html", comparison=compared)
    for wrong in ("text", {"name": 3}, [compared]):
        with pytest.raises(TypeError, match="what compare_embeddings returned"):
            found.report(tmp_path / "page.html", comparison=wrong)


def test_names_of_others_break_nothing(tmp_path):
    labels = (*HOSTILE, *(f"item {i}" for i in range(N_ITEMS - len(HOSTILE))))
    found = made(sorted_embedding(N_ITEMS, N_DIMENSIONS), labels=labels)
    compared = compare_embeddings(found, found, n_permutations=50, random_state=0)
    facts, text = facts_of(found, tmp_path, comparison=dict.fromkeys(HOSTILE, compared))
    assert [one["name"] for one in facts["comparisons"]] == HOSTILE
    assert "onerror" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)


def test_dimensions_without_intervals_have_none_on_the_page(found, tmp_path):
    sure = resampled(found.embedding, found.labels)
    correlations = np.array(sure.correlations)
    correlations[:, 1] = np.nan  # never found
    sure = replace(sure, correlations=correlations)
    assert "came back in 0% (fewer than 20 resamples: no intervals)" in sure.summary()
    facts, _ = facts_of(found, tmp_path, uncertainty=sure)
    assert "The dimension that came back in fewer than 20 resamples has no intervals" in facts["uncertainty"]["said"]
    never = facts["uncertainty"]["dimensions"][1]
    assert never["came_back"] == 0
    assert never["share"] == [None, None]
    assert set(never["low"]) == {None}
