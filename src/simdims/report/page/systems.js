// The weights of several systems, if there are several: marks by group or score, tests, and all weights.

import { breakable, byId, count, drawnToWidth, element, pText, short, svg, ticks, tickText, two } from "./dom.js";
import { facts } from "./data.js";
import { addressOf } from "./address.js";
import { headingOf, onNames } from "./names.js";
import { saveButton } from "./picture.js";

const MOST_MARKS = 8000;
const BAND = 54;
const SCORE_PANEL = 170;
// Longer tables begin with the first 25 systems.
const [ALL_SYSTEMS, SHOWN_SYSTEMS] = [40, 25];

export function startSystems() {
  const systems = facts.systems;
  if (!systems) return;
  byId("systems").hidden = false;
  byId("systems-link").hidden = false;
  const [first, ...others] = systems.said.map((text) => element("p", {}, text));
  byId("systems-words").append(...(first ? [first] : []), modelTable(systems.models), ...others);
  if (!systems.differ) return;
  byId("systems-words").append(
    element(
      "p.note",
      {},
      "A weight of 1 is average; 0 means that the system does not have the dimension. Weights of systems with few pairs are shrunk towards 1.",
    ),
  );
  const grouped = systems.columns.filter((column) => column.groups);
  const chosen = { column: grouped[0] ?? systems.columns[0] ?? null, all: false };
  const draw = () => {
    const holder = element("div.wide", { tabindex: "0", role: "region", "aria-label": "Chart of weights" });
    const find = () => holder.querySelector("svg");
    const keep = element("p.buttons", {}, saveButton(find, "the weights of the systems", "weights"));
    byId("systems-chart").replaceChildren(choice(systems, chosen, draw), holder, legend(chosen.column), keep);
    drawnToWidth(holder, (width) => weightChart(systems, chosen.column, width));
    byId("systems-tests").replaceChildren(
      ...differences(chosen.column),
      ...systems.columns
        .filter((column) => column !== chosen.column)
        .map((column) => element("div.on-paper", {}, differences(column))),
    );
    byId("systems-table").replaceChildren(...weightTable(systems, chosen, draw));
  };
  onNames(draw);
  draw();
}

function choice(systems, chosen, draw) {
  if (!systems.columns.length) return "";
  const select = element(
    "select",
    {
      change: (event) => {
        chosen.column = systems.columns[Number(event.target.value)];
        draw();
        byId("systems-chart").querySelector("select").focus();
      },
    },
    systems.columns.map((column, place) =>
      element("option", { value: place, selected: column === chosen.column }, column.name),
    ),
  );
  return element("label.sort", {}, "By ", select);
}

function weightChart(systems, column, width) {
  return column?.scores ? againstScores(systems, column, width) : strip(systems, column?.groups, width);
}

// Weights against a score, one panel per dimension, with the slope of the test.
function againstScores(systems, column, width) {
  const n = systems.weights[0].length;
  const across = Math.max(1, Math.min(n, Math.floor(width / SCORE_PANEL)));
  const [left, top, bottom, height] = [34, 44, 34, 176];
  const panel = Math.min(width / across, 240);
  const known = systems.names.map((_, m) => m).filter((m) => column.scores[m] !== null);
  const scores = known.map((m) => column.scores[m]);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const most = Math.max(2, ...systems.weights.flat());
  const middle = scores.reduce((sum, one) => sum + one, 0) / scores.length;
  const parts = Array.from({ length: n }, (_, k) => {
    const [x0, y0] = [panel * (k % across) + left, height * Math.floor(k / across) + top];
    const x = (score) => x0 + 6 + ((panel - left - 22) * (score - low)) / (high - low);
    const y = (weight) => y0 + (height - top - bottom) * (1 - Math.min(Math.max(weight, 0), most) / most);
    const ends = { x1: x0, x2: x0 + panel - left - 10 };
    const guides = ticks(0, most, 3).map((value, _, all) => [
      svg(value === 1 ? "line.axis" : "line.guide", { ...ends, y1: y(value), y2: y(value) }),
      svg("text.tick", { x: x0 - 6, y: y(value) + 4, "text-anchor": "end" }, tickText(value, all)),
    ]);
    const places = ticks(low, high, 3).map((value, _, all) =>
      svg("text.tick", { x: x(value), y: y(0) + 16, "text-anchor": "middle" }, tickText(value, all)),
    );
    const marks = known.map((m) =>
      svg(
        "circle.mark.g0",
        { cx: x(column.scores[m]), cy: y(systems.weights[m][k]), r: 2.6 },
        svg("title", {}, `${systems.names[m]}: ${two(systems.weights[m][k])} on dimension ${k + 1}`),
      ),
    );
    const mean = known.reduce((sum, m) => sum + systems.weights[m][k], 0) / known.length;
    const fitted = (score) => mean + column.tests.rows[k].effect * (score - middle);
    const slope = { x1: x(low), x2: x(high), y1: y(fitted(low)), y2: y(fitted(high)) };
    const name = svg("text.tick", { x: x0, y: y0 - 12 }, `Dimension ${k + 1}`);
    const link = svg("a", { href: addressOf("dimension", k), "aria-label": headingOf(k) }, name);
    return [guides.flat(), places, marks, svg("line.mean.g0", slope), link].flat();
  });
  const size = { width: panel * across, height: height * Math.ceil(n / across) + 14 };
  return svg(
    "svg.strip",
    {
      viewBox: `0 0 ${size.width} ${size.height}`,
      ...size,
      role: "img",
      "aria-label": `Weights of ${count(known.length, "system")} on ${count(n, "dimension")}, against ${column.name}.`,
    },
    parts.flat(),
    svg("text.axis-name", { x: 0, y: 11 }, "↑ Weight"),
    svg("text.axis-name", { x: left, y: size.height - 4 }, `${column.name} →`),
  );
}

function strip(systems, grouping, width) {
  const n = systems.weights[0].length;
  const groups = grouping ? grouping.levels : [null];
  const band = Math.max(BAND, Math.min(140, (width - 50) / n), 22 * groups.length);
  const [left, top, bottom, height] = [40, 22, 40, 300];
  const most = Math.max(2, ...systems.weights.flat());
  const y = (weight) => height - bottom - ((height - bottom - top) * weight) / most;
  const step = (0.86 * band) / groups.length;
  const centre = (k, group) => left + band * k + 0.07 * band + step * (group + 0.5);
  const parts = ticks(0, most, 5).map((value, _, all) => [
    svg(value === 1 ? "line.axis" : "line.guide", { x1: left, x2: left + n * band, y1: y(value), y2: y(value) }),
    svg("text.tick", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, tickText(value, all)),
  ]);
  if (systems.names.length * n <= MOST_MARKS) {
    systems.weights.forEach((row, m) => {
      const group = grouping ? grouping.codes[m] : 0;
      if (group === null) return;
      const aside = (((m * 7) % 11) / 11 - 0.5) * 0.5 * step - 0.14 * step;
      row.forEach((weight, k) =>
        parts.push(
          svg(
            `circle.mark.g${group}`,
            { cx: centre(k, group) + aside, cy: y(weight), r: 2.6 },
            svg("title", {}, `${systems.names[m]}: ${two(weight)} on dimension ${k + 1}`),
          ),
        ),
      );
    });
  }
  groups.forEach((level, group) => {
    if (!level) return;
    level.mean.forEach((mean, k) => {
      const x = centre(k, group) + 0.3 * step;
      if (level.low) {
        const [low, high] = [Math.max(level.low[k], 0), Math.min(level.high[k], most)];
        parts.push(svg(`line.mean.g${group}`, { x1: x, x2: x, y1: y(low), y2: y(high) }));
      }
      parts.push(svg(`line.mean.g${group}`, { x1: x - 5, x2: x + 5, y1: y(mean), y2: y(mean) }));
    });
  });
  for (let k = 0; k < n; k++) {
    const name = svg("text.tick", { x: left + band * (k + 0.5), y: height - bottom + 17, "text-anchor": "middle" }, k + 1);
    parts.push(svg("a", { href: addressOf("dimension", k), "aria-label": headingOf(k) }, name));
  }
  const shape = { viewBox: `0 0 ${left + n * band} ${height}`, width: left + n * band, height, role: "img" };
  return svg(
    "svg.strip",
    { ...shape, "aria-label": `Weights of ${count(systems.names.length, "system")} on ${count(n, "dimension")}.` },
    parts.flat(),
    svg("text.axis-name", { x: 0, y: 11 }, "↑ Weight"),
    svg("text.axis-name", { x: left, y: height - 4 }, "Dimension →"),
  );
}

function legend(column) {
  if (column?.scores) return element("div.systems-legend", {}, element("span.note", {}, "Lines: slopes of the tests below."));
  if (!column?.groups) return "";
  const levels = column.groups.levels.map((level, group) =>
    element("span.legend", {}, element(`span.dot.g${group}`), `${level.level} (${level.n})`),
  );
  const about = "Bars: group means, with 95% confidence intervals for three or more systems.";
  return element("div.systems-legend", {}, levels, element("span.note", {}, about));
}

function differences(column) {
  if (!column?.tests) return [];
  const tests = column.tests;
  const heads = ["Dimension", "Compared", "Effect", "95% interval", "p", "p adjusted", "Significant"];
  const lines = tests.rows.map((row, k) => {
    const bounded = row.effect_low !== null && row.effect_high !== null;
    return element(
      row.significant ? "tr.found" : "tr",
      {},
      element("th", { scope: "row" }, element("a", { href: addressOf("dimension", k) }, headingOf(k))),
      element("td", {}, row.contrast),
      element("td.number", {}, short(row.effect)),
      element("td.number", {}, bounded ? `${short(row.effect_low)} to ${short(row.effect_high)}` : "–"),
      element("td.number", {}, pText(row.pvalue)),
      element("td.number", {}, pText(row.pvalue_adjusted)),
      element("td", {}, row.significant ? "yes" : "no"),
    );
  });
  return [
    element("h3", {}, `Do weights differ by ${column.name}?`),
    ...tests.said.map((text, place) => element(place ? "p.note" : "p", {}, text)),
    ...tests.notes.map((text) => element("p.note", {}, text)),
    element(
      "div.wide",
      { tabindex: "0", role: "region", "aria-label": "Table of group differences" },
      element(
        "table.plain.tests",
        {},
        element(
          "thead",
          {},
          element(
            "tr",
            {},
            heads.map((text, place) => element(place > 1 && place < 6 ? "th.number" : "th", { scope: "col" }, text)),
          ),
        ),
        element("tbody", {}, lines),
      ),
    ),
  ];
}

// The held-out R2 of each model, and how weights compare with it.
function modelTable(models) {
  if (!models.length) return "";
  const rows = models.map(([model, r2, against]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, model, against ? element("span.note", {}, against) : ""),
      element("td.number", {}, r2),
    ),
  );
  return element("table.plain.models", {}, element("tbody", {}, rows));
}

function weightTable(systems, chosen, draw) {
  const order = systems.names.map((_, m) => m).sort((a, b) => systems.distances[b] - systems.distances[a]);
  const shown = chosen.all || order.length <= ALL_SYSTEMS ? order : order.slice(0, SHOWN_SYSTEMS);
  const some = shown.length < order.length ? `The first ${shown.length} of ${order.length} systems. ` : "";
  const n = systems.weights[0].length;
  const listed = systems.columns.filter((column) => column.groups || column.scores);
  const before = ["System", ...listed.map((column) => column.name)];
  const heads = [...before, "Distance", ...(systems.r2 ? ["R2"] : []), ...Array.from({ length: n }, (_, k) => k + 1)];
  const rows = shown.map((m) =>
    element(
      "tr",
      {},
      element("th.system", { scope: "row" }, breakable(systems.names[m])),
      listed.map(({ groups, scores }) =>
        element("td.group", {}, (groups ? groups.levels[groups.codes[m]]?.level : scores[m]) ?? "–"),
      ),
      element(systems.unusual[m] ? "td.number.unusual" : "td.number", {}, two(systems.distances[m])),
      systems.r2 ? element("td.number", {}, two(systems.r2[m])) : null,
      systems.weights[m].map((weight) => {
        const cell = element("td.number", {}, two(weight));
        const share = Math.round(Math.min(Math.abs(weight - 1), 1) * 55);
        cell.style.background = `color-mix(in srgb, var(${weight > 1 ? "--warm" : "--mark"}) ${share}%, transparent)`;
        return cell;
      }),
    ),
  );
  const more = { type: "button", click: () => { chosen.all = true; draw(); } };
  return [
    element("h3", {}, "Weights, the most unusual systems first"),
    element(
      "p.note",
      {},
      `${some}Distance: root mean square of the weights minus 1. ${systems.r2 ? "R2: of held-out pairs. " : ""}Orange is more and blue is less than average.`,
    ),
    element(
      "div.wide",
      { tabindex: "0", role: "region", "aria-label": "Table of weights" },
      element(
        "table.plain.weights",
        {},
        element(
          "thead",
          {},
          element("tr", {}, heads.map((text, place) => element(place < before.length ? "th" : "th.number", { scope: "col" }, String(text)))),
        ),
        element("tbody", {}, rows),
      ),
    ),
    shown.length < order.length ? element("p.more", {}, element("button", more, `Show all ${order.length} systems`)) : "",
  ];
}
