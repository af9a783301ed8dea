// Similarities between the top items of a dimension: observed beside predicted, one scale for both.

import { element, short, svg, textWidth } from "./dom.js";
import { block, facts, image, label, plainLabel, product, shortLabel } from "./data.js";

const WIDEST_NAME = 150;
const BESIDE_NAME = 8;
// Height that a name needs.
const NAME_HEIGHT = 12;

export function similarityBlocks(k, width) {
  const items = facts.dimensions[k].items;
  if (items.length < 2) return element("p.note", {}, "Fewer than two items have a loading on this dimension.");
  const observed = block(k);
  const predicted = items.map((one) => items.map((other) => product(one, other)));
  const apart = (rows) => rows.flatMap((cells, i) => cells.filter((value, j) => i !== j && value !== null));
  const values = [...apart(observed), ...apart(predicted)];
  const range = { low: Math.min(...values), high: Math.max(...values) };
  if (range.high === range.low) range.low = 0;
  const widths = items.map((item) => Math.min(textWidth(plainLabel(item)), WIDEST_NAME));
  const names = facts.pictured ? 22 : Math.max(...widths) + BESIDE_NAME;
  const beside = (width - names - 14) / 2;
  const stacked = width < 430 || !facts.is_observed || (!facts.pictured && beside < NAME_HEIGHT * items.length);
  const side = stacked ? Math.min(width - names, 300) : beside;
  const readout = element("p.note.readout", { "aria-live": "off" }, "Point at a cell to read it.");
  const read = (i, j) => {
    const seen = observed[i][j] === null ? "missing" : short(observed[i][j]);
    const words = `predicted ${short(predicted[i][j])}`;
    readout.textContent = `${label(items[i])} ~ ${label(items[j])}: ${facts.is_observed ? `observed ${seen}, ` : ""}${words}`;
  };
  const cell = side / items.length;
  const first = names;
  const second = stacked ? names : names + side + 14;
  const below = stacked && facts.is_observed ? side + 26 : 0;
  const height = 20 + side + below;
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": facts.is_observed
        ? "Two grids of similarities between the top items, observed and predicted."
        : "A grid of predicted similarities between the top items.",
    },
    svg(
      "defs",
      {},
      svg(
        "pattern",
        { id: "missing", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        svg("line.hatch", { x1: 0, y1: 0, x2: 0, y2: 5 }),
      ),
    ),
    facts.is_observed ? svg("text.axis-name", { x: first, y: 12 }, "Observed") : null,
    svg("text.axis-name", { x: second, y: 12 + below }, "Predicted"),
    rowNames(items, names, cell, 20),
    below ? rowNames(items, names, cell, 20 + below) : null,
    facts.is_observed ? grid(observed, first, 20, cell, range, read) : null,
    grid(predicted, second, 20 + below, cell, range, read),
  );
  return element("div", {}, picture, scale(range, observed), readout);
}

function rowNames(items, width, cell, top) {
  return items.map((item, i) =>
    facts.pictured
      ? svg(
          "image.row-picture",
          {
            href: image(item),
            x: width - Math.min(width, cell) - 2,
            y: top + i * cell,
            width: Math.min(width, cell) - 1,
            height: cell - 1,
          },
          svg("title", {}, label(item)),
        )
      : svg(
          "text.tick",
          { x: width - 6, y: top + (i + 0.5) * cell + 3.5, "text-anchor": "end" },
          svg("title", {}, label(item)),
          shortLabel(item, width - BESIDE_NAME),
        ),
  );
}

function grid(rows, left, top, cell, range, read) {
  const group = svg("g", {});
  rows.forEach((cells, i) =>
    cells.forEach((value, j) => {
      const node = svg(value === null ? "rect.cell.missing" : "rect.cell", {
        x: left + j * cell,
        y: top + i * cell,
        width: Math.max(cell - 0.75, 0.5),
        height: Math.max(cell - 0.75, 0.5),
        pointerenter: () => read(i, j),
      });
      if (value !== null) node.setAttribute("fill-opacity", strength(value, range).toFixed(3));
      group.append(node);
    }),
  );
  return group;
}

function scale(range, observed) {
  const missing = observed.some((cells, i) => cells.some((value, j) => i !== j && value === null));
  return element(
    "p.scale",
    {},
    element("span.note", {}, short(range.low)),
    element("span.ramp", { "aria-hidden": "true" }),
    element("span.note", {}, short(range.high)),
    missing ? element("span.note", {}, element("span.swatch", { "aria-hidden": "true" }), " not observed") : null,
  );
}

function strength(value, { low, high }) {
  return 0.04 + 0.96 * Math.max(0, Math.min(1, (value - low) / (high - low || 1)));
}
