"""The page of a Discovery in a real browser: Debian's Chromium, driven by Playwright."""

import csv
import json
import re
import shutil
import statistics
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from report_examples import HOSTILE, made, resampled, sorted_embedding

from simdims import Similarity, compare_embeddings, dimension_test, discover, lineage, simulate
from simdims.report import write_report

playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright_api.expect
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt-get install chromium)")

# Small, middling, long, and such as try to be more than text.
LABELS = [*HOSTILE, "dog", "a label that is so long that it cannot possibly fit into a card or a list " * 2]
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
#: What a reader takes for "at once".
AT_ONCE_MS = 200


@pytest.fixture(scope="module")
def browser():
    with playwright_api.sync_playwright() as api:
        started = api.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def words_page(tmp_path_factory):
    truth = simulate.dirichlet(60, 4, alpha=0.2, random_state=0)
    S = simulate.add_noise(truth @ truth.T, 0.9, random_state=0)
    S[0, 1] = S[1, 0] = np.nan
    labels = LABELS + [f"item {i}" for i in range(60 - len(LABELS))]
    found = discover(Similarity(S, labels=labels), ranks=[2, 4, 5], n_repeats=1, n_runs=3, random_state=0)
    X = {"first <b>": truth[:, 0], "noise": np.random.default_rng(0).random(60)}
    tests = dimension_test(found.embedding, X, n_permutations=50, random_state=0)
    suggestions = pd.DataFrame(
        [("dimension2", "category: animal", 0.83), ("dimension2", "<b>lives</b> " * 8, -0.79)],
        columns=["dimension", "property", "correlation"],
    )
    tree = lineage(found, ranks=[2, 3, 4, 5], random_state=0)
    target = tmp_path_factory.mktemp("words") / "page.html"
    path = found.report(target, tests=tests, suggestions=suggestions, lineage=tree, title="<i>Words</i>")
    return found, path.as_uri()


@pytest.fixture(scope="module")
def found(words_page):
    return words_page[0]


@pytest.fixture(scope="module")
def address(words_page):
    return words_page[1]


#: Names that turn the writing, close what they did not open, are nothing, or are wide.
ODD = ["\u202egnirts", "a\u2069\u202eb", "", " ", "\u0634\u0627\u0629", "漢字" * 20, "W" * 40, "e\u0301" * 60]


@pytest.fixture(scope="module")
def odd_page(tmp_path_factory):
    W = np.linspace(1, 0.5, len(ODD))[:, None] * [1.0, 0.5]
    return made(W, labels=tuple(ODD)).report(tmp_path_factory.mktemp("odd") / "page.html").as_uri()


@pytest.fixture(scope="module")
def images_page(tmp_path_factory):
    pytest.importorskip("PIL")
    W = sorted_embedding(40, 5)
    images = np.random.default_rng(0).random((40, 8, 8))
    return made(W).report(tmp_path_factory.mktemp("images") / "page.html", images=images).as_uri()


@pytest.fixture(scope="module")
def large_page(tmp_path_factory):
    rng = np.random.default_rng(0)
    W = rng.gamma(0.2, size=(10_000, 300)).astype(np.float32) * (rng.random((10_000, 300)) < 0.2)
    W = W[:, np.argsort(-np.sum(W**2, axis=0))]
    labels = tuple(f"{word} {i}" for i, word in zip(range(10_000), ["dog", "cow", "oak", "car"] * 2500, strict=True))
    found = made(W, Similarity.from_factors(W, labels=labels), labels=labels)
    path = found.report(tmp_path_factory.mktemp("large") / "page.html")
    assert path.stat().st_size < 3e6 + 300 * 10_000 * 2 * 4 / 3 + 20 * 10_000
    return path.as_uri()


@pytest.fixture(scope="module")
def resampled_page(tmp_path_factory):
    W = sorted_embedding(40, 5)
    found = made(W, labels=tuple(f"item {i}" for i in range(40)))
    sure = resampled(W, found.labels)
    other = np.column_stack([W[:, [2, 0]], np.random.default_rng(0).gamma(0.5, size=40)])
    compared = compare_embeddings(found, other, n_permutations=100, random_state=0)
    target = tmp_path_factory.mktemp("resampled") / "page.html"
    return sure, found.report(target, uncertainty=sure, comparison={"a <b>brain</b>": compared}).as_uri()


@pytest.fixture
def open_page(browser):
    """A function that opens a page; whatever the browser complains of fails the test."""
    complaints, contexts = [], []

    def opened(address, **settings):
        context = browser.new_context(**{"viewport": WIDE, "accept_downloads": True, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else 0
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else 0)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(open_page, address):
    return open_page(address)


def name_card(page, name, k=0):
    page.fill(f".card [data-name-of='{k}']", name)
    page.keyboard.press("Enter")


def saved(page, button):
    with page.expect_download() as download:
        page.click(button)
    return download.value.path().read_text(encoding="utf-8-sig")


def test_the_page_opens_and_shows_every_dimension(found, page):
    assert page.title() == "<i>Words</i>"
    expect(page.locator(".card")).to_have_count(found.n_components)
    top = int(np.argmax(found.embedding[:, 0]))
    assert page.locator(".card .word").first.inner_text() == found.labels[top]
    expect(page.locator("#fit-chart rect.cell").nth(10)).to_be_attached()
    expect(page.locator("#number-chart circle")).to_have_count(3)
    expect(page.locator("#tests tbody tr")).to_have_count(2)


def test_no_label_runs(page):
    page.fill("#sought", "alert")
    assert page.locator("#found [role=option]").all_inner_texts() == [HOSTILE[0], HOSTILE[1]]
    for item in range(len(LABELS)):
        page.evaluate(f"location.hash = '#item-{item}'")
        expect(page.locator("#panel-title")).to_have_text(LABELS[item])
    expect(page.locator("img[src=x]")).to_have_count(0)
    page.evaluate("location.hash = ''")
    name_card(page, "<img src=x onerror=alert(4)>")
    page.click(".card-number")
    expect(page.locator("#panel .name")).to_have_value("<img src=x onerror=alert(4)>")
    expect(page.locator("img")).to_have_count(0)


def test_search_finds_an_item_and_shows_why_others_are_near(found, page):
    name_card(page, "animal")
    page.keyboard.press("/")
    page.keyboard.type("DOG")
    page.keyboard.press("Enter")
    expect(page.locator("#panel-title")).to_have_text("dog")
    W, item = found.embedding, LABELS.index("dog")
    products = W @ W[item]
    products[item] = -1
    near = int(np.argmax(products))
    first = page.locator(".neighbours li").first
    assert first.locator(".pair a").inner_text() == " ".join(found.labels[near].split())
    parts = W[item] * W[near] / products[near]
    strongest = int(np.argmax(parts))
    name = "animal" if strongest == 0 else f"dimension {strongest + 1}"
    assert f"because {name} {100 * parts[strongest]:.0f}%" in first.locator(".because").inner_text()
    assert "observed" in first.locator(".pair .note").inner_text()
    page.keyboard.press("Escape")
    expect(page.locator("#panel")).to_be_hidden()


def is_written_from_the_left(page, selector, word):
    """Whether a word in an element's first text runs from left to right on the screen."""
    return page.evaluate(
        """([selector, word]) => {
          const node = document.querySelector(selector).firstChild;
          const start = node.data.lastIndexOf(word);
          const left = (place) => {
            const range = document.createRange();
            range.setStart(node, place);
            range.setEnd(node, place + 1);
            return range.getBoundingClientRect().left;
          };
          return left(start) < left(start + word.length - 1);
        }""",
        [selector, word],
    )


@pytest.mark.parametrize("row", [0, 1, 4])
def test_no_label_turns_the_words_around_it(odd_page, open_page, row):
    page = open_page(odd_page)
    page.goto(f"{odd_page}#dimension-1")
    cell = page.locator("#panel rect.cell").nth(row * len(ODD) + row + 1)
    cell.scroll_into_view_if_needed()
    cell.hover()
    expect(page.locator("#panel .readout")).to_contain_text("observed")
    assert is_written_from_the_left(page, "#panel .readout", "observed")
    title = page.locator(".card .top-words li").nth(row).get_attribute("title")
    assert title.startswith("\u2068")
    assert title.count("\u2069") == 1
    assert title.rpartition("\u2069")[2].startswith(": ")


def test_items_without_a_name_are_shown_by_their_number(odd_page, open_page):
    page = open_page(odd_page)
    shown = page.locator(".card").first.locator(".word").all_inner_texts()
    assert shown[2:4] == ["(item 2, no name)", "(item 3, no name)"]
    page.fill("#sought", "no name")
    assert page.locator("#found [role=option]").all_inner_texts() == shown[2:4]
    assert [row[0] for row in csv.reader(saved(page, "#save-embedding").splitlines())][1:] == ODD


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_names_beside_the_heatmap_are_cut_to_their_room_and_whole_on_hover(odd_page, open_page, size):
    page = open_page(odd_page, viewport=size)
    page.goto(f"{odd_page}#dimension-1")
    names = page.locator("#panel svg:has(rect.cell) text.tick")
    names.first.wait_for()
    left = names.first.evaluate("node => node.ownerSVGElement.getBoundingClientRect().left")
    for place, label in enumerate(ODD):
        name = names.nth(place)
        shown = name.evaluate("node => node.lastChild.data")
        assert name.evaluate("node => node.getBoundingClientRect().left") >= left - 1
        if place >= 5:
            assert shown.endswith("…")
            assert len(shown) > 4
            assert label.startswith(shown[:-1])
            assert name.evaluate("node => node.firstChild.textContent") == label
        else:
            assert "…" not in shown


def test_a_click_opens_a_dimension_with_its_whole_ranking(found, address, page):
    page.locator(".card").nth(1).click(position={"x": 12, "y": 60})
    expect(page.locator("#panel .kicker")).to_contain_text("Dimension 2 of")
    order = np.argsort(-found.embedding[:, 1], kind="stable")
    page.locator("#panel .list").focus()
    page.keyboard.press("End")
    last = page.locator("#panel [role=option][aria-selected=true]")
    expect(last).to_have_attribute("aria-posinset", "60")
    expect(last.locator(".word")).to_have_text(found.labels[order[-1]])
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".neighbours")
    assert page.url.endswith(f"#item-{order[1]}")
    page.go_back()
    n_top = min(16, np.count_nonzero(found.embedding[:, 1]))
    expect(page.locator("#panel rect.cell")).to_have_count(2 * n_top**2)
    page.click("#panel .close")
    expect(page).to_have_url(address)


def test_names_survive_a_reload_and_go_out_and_in(found, address, page, open_page, tmp_path):
    name_card(page, 'animal, "tame"')
    page.reload()
    assert page.locator(".card .name").first.input_value() == 'animal, "tame"'
    rows = list(csv.DictReader(saved(page, "#save-names-csv").splitlines()))
    assert [row["name"] for row in rows] == ['animal, "tame"'] + [""] * (found.n_components - 1)
    assert float(rows[0]["share"]) == pytest.approx(found.dimensions_frame()["share"].iloc[0])
    kept = saved(page, "#save-names-json")
    assert json.loads(kept)["names"] == {"dimension1": 'animal, "tame"'}
    (tmp_path / "names.json").write_text(kept)
    (tmp_path / "names.csv").write_text('dimension,name\n2,"a ""b"", c"\ndimension1,plant\n99,none\n')

    other = open_page(address)  # a browser that has never seen it
    assert other.locator(".card .name").first.input_value() == ""
    other.set_input_files("#names-file", tmp_path / "names.json")
    expect(other.locator(".card .name").first).to_have_value('animal, "tame"')
    other.set_input_files("#names-file", tmp_path / "names.csv")
    expect(other.locator(".card .name").first).to_have_value("plant")
    assert other.locator(".card .name").nth(1).input_value() == 'a "b", c'


def test_a_suggested_name_is_accepted_by_a_click(page):
    suggestion = page.locator(".card .suggestion")
    expect(suggestion).to_have_count(1)
    expect(suggestion).to_contain_text("animal (0.83), low <b>lives</b>")
    suggestion.click()
    field = page.locator(".card [data-name-of='1']")
    assert field.input_value().startswith("animal, low <b>lives</b>")
    expect(suggestion).to_be_hidden()
    page.reload()
    assert page.locator(".card [data-name-of='1']").input_value().startswith("animal")
    name_card(page, "", 1)  # the suggestion comes back with the name gone
    expect(page.locator(".card .suggestion")).to_be_visible()
    page.evaluate("location.hash = '#dimension-2'")
    page.locator("#panel .suggestion").click()
    assert page.locator("#panel [data-name-of='1']").input_value().startswith("animal")


def test_a_suggestion_is_shown_beside_a_name_from_the_file(browser, tmp_path):
    W = pd.DataFrame(np.eye(6, 2) + 0.1, index=list("abcdef"), columns=["d0", "d1"])
    table = pd.DataFrame([("d1", "category: animal", 0.8)], columns=["dimension", "property", "correlation"])
    page = browser.new_page()
    page.goto(write_report(W, tmp_path / "page.html", suggestions=table).as_uri())
    expect(page.locator(".card [data-name-of='1']")).to_have_value("d1")
    page.locator(".card .suggestion").click()
    expect(page.locator(".card [data-name-of='1']")).to_have_value("animal")
    expect(page.locator(".card .suggestion")).to_be_hidden()
    page.close()


def test_the_tab_key_is_not_lost_on_a_suggestion_that_goes_away(page):
    page.locator(".card [data-name-of='1']").click()
    page.keyboard.type("zeta")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "suggestion"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")
    expect(page.locator(".card .suggestion")).to_be_hidden()


def test_names_keep_the_focus_where_cards_are_ordered_by_them(page):
    page.select_option("#order", "name")
    page.locator(".card .name").nth(0).click()
    page.keyboard.type("zeta")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "card-number"
    page.locator(".card .name").nth(1).click()
    page.keyboard.type("alpha")
    page.keyboard.press("Enter")
    expect(page.locator(".card .name").first).to_have_value("alpha")


def test_names_of_two_tabs_and_a_name_half_typed_are_kept(address, page):
    other = page.context.new_page()
    other.goto(address)
    name_card(other, "plant", 1)
    expect(page.locator(".card .name").nth(1)).to_have_value("plant", timeout=30_000)
    name_card(page, "animal")
    page.locator(".card [data-name-of='2']").click()
    page.keyboard.type("half")
    page.reload()
    for k, name in enumerate(["animal", "plant", "half"]):
        expect(page.locator(".card .name").nth(k)).to_have_value(name)


def test_the_embedding_is_saved_under_distinct_names(found, page):
    name_card(page, "dimension2")
    name_card(page, "item", 2)
    header = saved(page, "#save-embedding").splitlines()[0].split(",")
    assert len(set(header)) == len(header)
    name_card(page, "animal")
    header, *rows = csv.reader(saved(page, "#save-embedding").splitlines())
    assert header[:3] == ["item", "animal", "dimension2"]
    assert [row[0] for row in rows] == list(found.labels)
    np.testing.assert_allclose(np.array([row[1:] for row in rows], float), found.embedding, rtol=1e-5)


def test_the_curve_tells_each_number_by_keys(page):
    page.locator("#number-chart svg").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#number-words .readout")).to_contain_text("2 dimensions: error")


def test_the_curve_shows_resamples_and_where_noise_begins(found, page):
    expect(page.locator("#number-words")).to_contain_text(found.selection.resampled.words())
    expect(page.locator("#number-words")).to_contain_text(found.detectable.words())
    chart = page.locator("#number-chart")
    expect(chart.locator("rect.resampled")).to_have_count(1)
    line, chosen = chart.locator("line.noise"), chart.locator("circle.chosen")
    assert found.detectable.rank == found.selection.rank
    assert float(line.get_attribute("x1")) == pytest.approx(float(chosen.get_attribute("cx")))
    expect(chart.locator("rect.noise")).to_have_count(1)


def test_the_tree_has_a_mark_per_dimension_and_opens_those_of_this_result(found, page):
    expect(page.locator("#lineage-chart circle")).to_have_count(2 + 3 + 4 + 5)
    expect(page.locator("#lineage-chart a")).to_have_count(found.n_components)
    page.locator("#lineage-chart a").first.click()
    expect(page.locator("#panel")).to_be_visible()


def test_cards_show_how_sure_they_are(resampled_page, open_page):
    sure, address = resampled_page
    page = open_page(address)
    card = page.locator(".card").nth(4)
    assert "75%" in card.locator(".meter", has_text="Came back").text_content()
    low, high = sure.interval("loadings")[:, :, 4]
    item = int(np.argmax(sure.embedding[:, 4]))
    where = card.locator("li").first.evaluate(
        """(li) => [".word-bar", ".whisker"].map((name) => {
          const box = (which) => li.querySelector(which).getBoundingClientRect();
          const [own, all] = [box(name), box(".word-track")];
          return [(own.left - all.left) / all.width, own.width / all.width];
        })"""
    )
    scale = sure.embedding[item, 4] / where[0][1]  # the loading at the right end
    assert np.multiply(where[1], scale) == pytest.approx([low[item], high[item] - low[item]], abs=0.01 * scale)
    assert "95% interval" in card.locator("li").first.get_attribute("title")
    page.evaluate("location.hash = '#dimension-5'")
    expect(page.locator("#panel")).to_contain_text(f"It {sure.words(4)}.")
    expect(page.locator("#panel .whisker").nth(5)).to_be_attached()


def test_shared_dimensions_stand_side_by_side_and_others_below(resampled_page, open_page):
    page = open_page(resampled_page[1])
    rows = page.locator("#comparisons tbody tr").all_inner_texts()
    assert len(rows) == 2 + 1 + 3
    assert "only here (3 dimensions)" in rows[2]
    assert "only in a <b>brain</b> (1 dimension)" in rows[2]
    page.locator(".card input").first.fill("animal")
    page.keyboard.press("Enter")
    assert any("animal" in row for row in page.locator("#comparisons tbody tr").all_inner_texts())
    page.locator("#comparisons tbody a").first.click()
    expect(page.locator("#panel")).to_be_visible()


def test_the_theme_changes_and_is_kept(words_page, open_page):
    page = open_page(words_page[1], color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.click("#theme")
    page.click("#theme")
    dark = page.evaluate(colour)
    page.reload()
    assert page.evaluate(colour) == dark != light


def test_ten_thousand_items_by_300_dimensions_answer_at_once(large_page, open_page):
    page = open_page(large_page)

    def takes_ms(act, steps):
        """Milliseconds from an act to the frame that shows what it did: a median, of the quietest of three rounds."""
        for _ in range(3):
            took = statistics.median(measured(act, steps))
            if took < AT_ONCE_MS:
                break
        return took

    def measured(act, steps):
        return page.evaluate(
            """async ([act, steps]) => {
              const run = new Function("step", act);
              const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
              const took = [];
              for (const step of steps) {
                const start = performance.now();
                run(step);
                await frame();
                took.push(performance.now() - start);
              }
              return took;
            }""",
            [act, steps],
        )

    typing = (
        "const field = document.getElementById('sought'); field.value = step; field.dispatchEvent(new Event('input'));"
    )
    assert takes_ms(typing, ["d", "do", "dog", "dog 99", "9", "oak 7"]) < AT_ONCE_MS
    expect(page.locator("#found [role=option]").nth(0)).to_be_attached()
    assert takes_ms("location.hash = '#dimension-' + step;", [1, 50, 299, 300, 7]) < AT_ONCE_MS
    page.wait_for_selector("#panel .list-row")
    assert page.locator("#panel .list-row").count() < 100
    scrolling = "document.querySelector('#panel .list').scrollTop = step;"
    assert takes_ms(scrolling, [500, 5000, 50_000, 150_000, 299_000, 0]) < AT_ONCE_MS
    assert takes_ms("location.hash = '#item-' + step;", [1, 9999, 5000, 17, 4]) < AT_ONCE_MS
    page.wait_for_selector(".neighbours li")


def test_300_dimensions_come_in_parts_and_print_whole(large_page, open_page):
    page = open_page(large_page)
    first = page.locator(".card").count()
    page.click("#more-cards button")
    expect(page.locator(".card")).not_to_have_count(first)
    assert first < page.locator(".card").count() < 300
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".card")).to_have_count(300)
    assert not page.locator("#more-cards").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("kind", ["words", "images", "resampled"])
def test_nothing_overlaps_or_hangs_over_the_edge(
    words_page, images_page, resampled_page, open_page, scheme, size, kind
):
    address = {"words": words_page[1], "images": images_page, "resampled": resampled_page[1]}[kind]
    page = open_page(address, viewport=size, color_scheme=scheme)
    for place in ("", "#dimension-1", "#item-7"):
        page.evaluate(f"location.hash = '{place}'")
        root = "#panel" if place else "html"
        if place:
            expect(page.locator("#panel .chart svg").last).to_be_visible()
        else:
            expect(page.locator("#panel")).to_be_hidden()
        assert page.evaluate(
            f"(({{scrollWidth, clientWidth}}) => scrollWidth <= clientWidth)(document.querySelector('{root}'))"
        )
        assert page.evaluate(OVERLAPS, root) == []


# Texts and controls of the same parent that cover each other, and what reaches beyond the window.
OVERLAPS = """(root) => {
  const wrong = [];
  const box = (node) => node.getBoundingClientRect();
  const seen = [...document.querySelector(root).querySelectorAll(
    ".card, .card-head > *, .meter > *, .top-words li > *, .list-row > *, .section-head > *, .bar-inner > *, " +
    ".figure, .view-head > *, .view-columns > *, .beside > *, .pair > *, .buttons > button, h1, h2, h3, .close, " +
    ".turning > *"
  )].filter((node) => node.offsetParent && !node.closest("[hidden]") && !node.closest(".unseen"));
  for (const node of seen) {
    const { left, right } = box(node);
    if ((left < -1 || right > innerWidth + 1) && !node.closest(".wide")) wrong.push("beyond: " + node.className);
  }
  const touching = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  for (let i = 0; i < seen.length; i++)
    for (let j = i + 1; j < seen.length; j++)
      if (seen[i].parentNode === seen[j].parentNode && touching(box(seen[i]), box(seen[j])))
        wrong.push(seen[i].className + " over " + seen[j].className);
  const title = document.querySelector(root + " .view-title");
  const close = document.querySelector(root + " .close");
  if (title && close && touching(box(title), box(close))) wrong.push("title over close");
  return wrong;
}"""


def test_every_control_has_a_name_and_can_be_reached(page):
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("a, button, input, select, [role=listbox], svg[role], dialog")].filter(
          (node) => !node.closest("label") && !(node.getAttribute("aria-label") || node.textContent.trim() ||
            node.getAttribute("aria-labelledby"))).map((node) => node.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.getAttribute('class')"))
    assert {"skip", "sought", "theme", "order", "card-number", "name"} <= reached


@pytest.mark.parametrize("size", [WIDE, {"width": 700, "height": 900}, NARROW])
@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("face_neutral_male_{:02d}", r"face_neutral_male_\d\d"),
        ("an animal called number {:02d} (seen from the side)", r"an animal called number \d\d.*…"),
        ("a stimulus of the set with natural images, item {:02d}", r"a stimulus.+….*item \d\d"),
    ],
)
def test_labels_keep_what_tells_them_apart_and_fit_on_two_lines(open_page, tmp_path, form, shown, size):
    labels = tuple(form.format(i) for i in range(40))
    path = made(sorted_embedding(40, 4), labels=labels).report(tmp_path / "page.html")
    page = open_page(path.as_uri(), viewport=size)
    words = page.locator(".card a.word")
    assert all(re.fullmatch(shown, text) for text in words.all_inner_texts())
    assert words.first.get_attribute("aria-label") in labels
    assert not words.evaluate_all("all => all.some((word) => word.scrollHeight > word.clientHeight + 1)")
    names = page.locator("#map-chart .map-name").evaluate_all("all => all.map((name) => name.firstChild.data)")
    assert len(set(names)) == len(names) > 0
    assert page.locator("#map-chart .map-name title").first.text_content() in labels


def test_a_print_has_all_cards_and_no_controls(images_page, open_page):
    page = open_page(images_page)
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator(".bar").is_visible()
    assert not page.locator("#data").is_visible()
    expect(page.locator(".card")).to_have_count(5)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


# -- names that travel ---------------------------------------------------------------------------------------------


def test_names_of_the_page_become_those_of_the_result_and_of_its_next_page(found, page, tmp_path):
    name_card(page, 'animal, "tame"')
    name_card(page, "=food", 2)
    for button, file in (("#save-names-json", "names.json"), ("#save-names-csv", "names.csv")):
        (tmp_path / file).write_text(saved(page, button), encoding="utf-8")
        named = found.rename(tmp_path / file)
        assert named.dimension_names[:3] == ('animal, "tame"', "dimension2", "=food")
    name_card(page, "never saved", 1)
    page.goto(named.report(tmp_path / "named.html").as_uri())
    values = [page.locator(f".card [data-name-of='{k}']").input_value() for k in range(3)]
    assert values == ['animal, "tame"', "never saved", "=food"]
    expect(page.locator("#heat-chart text", has_text="animal")).to_have_count(1)


def test_names_of_a_result_do_not_give_way_to_those_of_an_earlier_page(found, page, tmp_path):
    name_card(page, "mistaken")
    page.goto(found.rename({1: "animal", 2: "plant"}).report(tmp_path / "named.html").as_uri())
    first = page.locator(".card [data-name-of='0']")
    assert first.input_value() == "animal"
    name_card(page, "beast")
    name_card(page, "", 1)
    page.reload()
    assert first.input_value() == "beast"
    assert page.locator(".card [data-name-of='1']").input_value() == ""


def test_equal_names_are_pointed_out(page):
    for k in (0, 2):
        name_card(page, "animal", k)
    expect(page.locator("#names-told")).to_contain_text("different names for dimensions 1 and 3")


# -- pictures ------------------------------------------------------------------------------------------------------


def pictures_of(page):
    """The SVG files of all pictures of a page, by name."""
    found = {}
    for place in ("", "#dimension-1", "#item-3"):
        page.evaluate(f"location.hash = '{place}'")
        inside = "#panel" if place else "main"
        expect(page.locator(f"{inside} .save-picture").last).to_be_visible()
        for button in page.locator(f"{inside} .save-picture").all():
            with page.expect_download() as download:
                button.click()
            found[download.value.suggested_filename] = download.value.path().read_text(encoding="utf-8")
    return found


def test_every_picture_is_saved_with_its_looks_in_any_theme(address, open_page):
    light = pictures_of(open_page(address, color_scheme="light"))
    assert set(light) == {
        "similarities.svg",
        "map.svg",
        "fit.svg",
        "number_of_dimensions.svg",
        "lineage.svg",
        "hypotheses.svg",
        "dimension1_distribution.svg",
        "dimension1_similarities.svg",
        "item3_fingerprint.svg",
    }
    for name, text in light.items():
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg", name
        nodes = list(root.iter())
        assert len(nodes) > 5, name
        shapes = [node for node in nodes if node.tag.rpartition("}")[2] in ("rect", "circle", "path", "line")]
        assert all("fill" in node.attrib for node in shapes if node not in root.findall(".//{*}clipPath/*")), name
        assert not any("class" in node.attrib or "href" in node.attrib for node in nodes if "image" not in node.tag), (
            name
        )
        assert "var(" not in text, name
    assert pictures_of(open_page(address, color_scheme="dark")) == light


def test_the_similarities_are_read_by_keys(found, page):
    W, S = found.embedding.astype(float), found.similarity.values
    order = np.lexsort((-W.max(axis=1), W.argmax(axis=1)))
    page.locator("svg.heat").focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    told = page.locator("#heat-chart .readout")
    value = S[order[2], order[0]]
    expect(told).to_contain_text("not observed" if np.isnan(value) else f"observed {value:.2g}"[:12])
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(told).to_contain_text(f"predicted {W[order[2]] @ W[order[5]]:.2g}"[:13])


def test_the_map_opens_items_and_is_coloured_by_a_dimension(found, page):
    expect(page.locator("#map-chart path.dots")).to_have_count(found.n_components + 1)
    page.select_option("#map-colours", "1")
    expect(page.locator("#map-chart path.loaded")).to_have_count(6)
    box = page.locator("svg.map").bounding_box()
    dots = page.evaluate(
        """() => [...document.querySelectorAll("#map-chart path.dots")].at(-1).getAttribute("d").match(/[\\d.]+/g)"""
    )
    drawn = page.evaluate("document.querySelector('svg.map').viewBox.baseVal.width")
    x, y = (float(dots[place]) * box["width"] / drawn for place in (0, 1))
    page.locator("svg.map").click(position={"x": x, "y": y})
    expect(page.locator("#panel .kicker")).to_have_text("Item")
    item = int(page.url.rpartition("-")[2])
    # The darkest level has the items with the largest loadings.
    assert found.embedding[item, 1] > found.embedding[:, 1].max() * 5 / 6


def test_names_of_items_are_shown_on_image_cards_if_asked_for(images_page, address, open_page):
    page = open_page(images_page)
    expect(page.locator(".caption").first).to_be_hidden()
    page.check("#captions")
    expect(page.locator(".caption").first).to_be_visible()
    assert open_page(address).locator("#captions").is_hidden()


def test_the_methods_paragraph_is_copied(found, page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#copy-methods")
    expect(page.locator("#copy-methods")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("We factorised the similarities")
    assert copied.endswith(found.methods_text().splitlines()[-1])


def test_the_curve_is_enlarged_around_the_choice(open_page, tmp_path):
    truth = simulate.dirichlet(60, 4, alpha=0.2, random_state=0)
    S = simulate.add_noise(truth @ truth.T, 0.9, random_state=0)
    steep = discover(S, ranks=range(1, 8), n_repeats=1, n_runs=2, random_state=0)
    page = open_page(steep.report(tmp_path / "page.html").as_uri())
    chart = page.locator("#number-chart")
    assert chart.locator("circle").count() + chart.locator("path.off-scale").count() == 7
    n_beyond = chart.locator("path.off-scale").count()
    assert n_beyond > 0
    page.click("#curve-scale")
    expect(chart.locator("circle")).to_have_count(7)
    page.click("#curve-scale")
    expect(chart.locator("path.off-scale")).to_have_count(n_beyond)


def test_all_errors_are_shown_if_the_largest_number_tried_was_chosen(open_page, tmp_path):
    truth = simulate.dirichlet(60, 8, alpha=0.2, random_state=0)
    S = simulate.add_noise(truth @ truth.T, 0.9, random_state=0)
    falling = discover(S, ranks=range(1, 6), n_repeats=1, n_runs=2, random_state=0)
    assert falling.n_components == 5
    page = open_page(falling.report(tmp_path / "page.html").as_uri())
    expect(page.locator("#number-chart circle")).to_have_count(5)


def test_a_print_has_pictures_of_its_width_with_captions(page):
    width = "document.querySelector('{} svg').viewBox.baseVal.width"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    for chart, expected in (("#heat-chart", 400), ("#map-chart", 400), ("#lineage-chart", 700)):
        assert page.evaluate(width.format(chart)) == expected
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(width.format("#heat-chart")) > 400
    page.emulate_media(media="print")
    caption = "getComputedStyle(document.getElementById('map-chart'), '::after').content"
    assert "Map of the items" in page.evaluate(caption)
    assert page.locator("#methods-text").is_visible()
    assert not page.locator("#copy-methods").is_visible()


def test_the_page_of_an_embedding_shows_predicted_similarities_only(found, page, tmp_path):
    page.goto(write_report(found.embedding_frame(), tmp_path / "page.html").as_uri())
    for hidden in ("#fit", "#fit-link", "#number", "#number-link", "#reliability-note"):
        expect(page.locator(hidden)).to_be_hidden()
    expect(page.locator("#heat-note")).to_contain_text("All similarities are predicted.")
    assert page.locator(".card .meter-what").all_text_contents() == ["Share"] * found.n_components
    page.locator(".card-number").first.click()
    expect(page.locator("#panel svg .axis-name", has_text="Predicted")).to_have_count(1)
    expect(page.locator("#panel svg .axis-name", has_text="Observed")).to_have_count(0)
