// Tests of hypotheses, if there are any.

import { byId, element, fitted, isolated, pText, svg, two } from "./dom.js";
import { facts } from "./data.js";
import { addressOf } from "./address.js";
import { headingOf, onNames } from "./names.js";
import { saveButton } from "./picture.js";

export function startTests() {
  if (!facts.tests) return;
  byId("tests").hidden = false;
  byId("tests-link").hidden = false;
  const draw = () => byId("tests-body").replaceChildren(...content(facts.tests));
  onNames(draw);
  draw();
}

function content(tests) {
  const combined = tests.test === "combined";
  const heads = combined
    ? ["Hypothesis", "r, dimension", "r, similarities", "p", "p adjusted", "Dimension", "Significant"]
    : ["Hypothesis", "r", "95% null interval", "p", "p adjusted", "Dimension", "Significant"];
  if (tests.test === "regression") heads[1] = "Unique R²";
  if (ofSimilarities(tests)) heads.splice(5, 1);
  // Only there to be saved: on the page, each row of the table has its own picture.
  const drawn = tests.test === "combined" ? null : element("div.unseen", { "aria-hidden": "true" }, testsPicture(tests, heads[1]));
  return [
    ...tests.said.map((text, place) => element(place ? "p.note" : "p", {}, text)),
    element(
      "div.wide",
      { tabindex: "0", role: "region", "aria-label": "Table of tests" },
      element(
        "table.plain.tests",
        {},
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            heads.map((text, place) =>
              element(place > 0 && (combined || place !== 2) && place < 5 ? "th.number" : "th", { scope: "col" }, text),
            ),
          ),
        ),
        element(
          "tbody",
          {},
          tests.rows.map((row) => line(row, tests)),
        ),
      ),
    ),
    element("p.note", {}, conventions(tests)),
    drawn && element("p.buttons", {}, saveButton(() => drawn.firstChild, "the tests", "hypotheses"), drawn),
  ].filter(Boolean);
}

function conventions(tests) {
  const sided = tests.alternative === "greater" ? "One-sided p-values: the share of permutations with a statistic at least as large" : "Two-sided p-values: the share of permutations with a statistic at least as far from zero";
  const interval = tests.test === "combined" ? "" : " Null intervals hold the middle 95% of the permutations.";
  return `${sided}; adjusted p-values control the false discovery rate.${interval}`;
}

// All rows as one picture: names, statistics on their null intervals, and adjusted p-values.
function testsPicture(tests, statistic) {
  const [left, width, row] = [180, 560, 22];
  const height = row * (tests.rows.length + 1) + 8;
  const rows = tests.rows.map((one, place) => {
    const marks = interval(one);
    const y = row * (place + 1);
    for (const [name, value] of Object.entries({ x: left, y, "aria-label": null, role: null }))
      if (value === null) marks.removeAttribute(name);
      else marks.setAttribute(name, value);
    return [
      svg("text.tick", { x: left - 10, y: y + 14, "text-anchor": "end" }, isolated(fitted(one.hypothesis, left - 14))),
      marks,
      svg("text.tick", { x: left + 200, y: y + 14 }, `${two(one.statistic)}, p adjusted ${pText(one.adjusted)}`),
    ];
  });
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, "aria-label": "Tests of hypotheses: statistics on their 95% null intervals" },
    svg("text.axis-name", { x: left, y: 12 }, `${statistic} and 95% null interval`),
    rows.flat(),
  );
}

// Tests without dimensions.
function ofSimilarities(tests) {
  return tests.test === "rsa" || tests.test === "regression";
}

function line(row, tests) {
  const numbers =
    tests.test === "combined"
      ? [element("td.number", {}, two(row.statistic_dimension)), element("td.number", {}, two(row.statistic_rsa))]
      : [element("td.number", {}, two(row.statistic)), element("td", {}, interval(row))];
  const dimension =
    row.place === null
      ? row.dimension || "–"
      : element("a", { href: addressOf("dimension", row.place) }, headingOf(row.place));
  const found = { dimension: "in a dimension", rsa: "in the similarities", both: "in both" }[row.decided_by] || "yes";
  return element(
    row.significant ? "tr.found" : "tr",
    {},
    element("th", { scope: "row" }, row.hypothesis),
    numbers,
    element("td.number", {}, pText(row.pvalue)),
    element("td.number", {}, pText(row.adjusted)),
    ofSimilarities(tests) ? null : element("td", {}, dimension),
    element("td", {}, row.significant ? found : "no"),
  );
}

// The statistic as a dot, on the middle 95% of its null distribution, if there is one.
function interval(row) {
  const [low, high] = row.null;
  const width = 180;
  const x = (value) => 6 + ((width - 12) * (Math.max(-1, Math.min(1, value)) + 1)) / 2;
  return svg(
    "svg.interval",
    {
      viewBox: `0 0 ${width} 20`,
      width,
      height: 20,
      role: "img",
      "aria-label":
        `r ${two(row.statistic)}` + (low === null ? "" : `; 95% null interval ${two(low)} to ${two(high)}`),
    },
    svg("line.guide", { x1: x(-1), x2: x(1), y1: 10, y2: 10 }),
    svg("line.axis", { x1: x(0), x2: x(0), y1: 4, y2: 16 }),
    low === null
      ? null
      : svg("rect.null", { x: x(low), y: 6, width: Math.max(x(high) - x(low), 1), height: 8, rx: 2 }),
    svg(row.significant ? "circle.dot.chosen" : "circle.dot", { cx: x(row.statistic), cy: 10, r: 4.5 }),
  );
}
