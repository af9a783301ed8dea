// Observed against predicted similarities: a grid of counts made when the page was written.

import { byId, count, drawnToWidth, element, short, svg, ticks, tickText, two, whole } from "./dom.js";
import { facts } from "./data.js";
import { saveButton } from "./picture.js";

export function startFit() {
  const fit = facts.fit;
  byId("fit").hidden = byId("fit-link").hidden = !facts.is_observed;
  if (!fit) {
    byId("fit-words").append(element("p", {}, "No pair of different items is observed."));
    return;
  }
  const n_systems = facts.systems?.names.length || 1;
  const ofSystems =
    n_systems > 1
      ? `Observed similarities are means over ${n_systems} systems. They vary less than the similarities of single systems, for which the in-sample R2 is lower. `
      : "";
  const readout = element("p.note.readout", { "aria-hidden": "true" }, "Point at a cell to read it.");
  byId("fit-words").append(
    element(
      "p",
      {},
      "Each cell counts the pairs of items with this observed and predicted similarity; darker cells hold more pairs. Perfect predictions lie on the line.",
    ),
    fit.correlation === null
      ? ""
      : element("p", {}, `The in-sample correlation of observed and predicted similarities is ${two(fit.correlation)}.`),
    element(
      "p.note",
      {},
      `${fit.sampled ? "A sample of" : "All"} ${count(fit.n_pairs, "pair")}${fit.sampled ? "; counts are scaled to all pairs" : ""}. ${ofSystems}A predicted similarity is the sum over dimensions of the products of both items' loadings, from a fit to these pairs.`,
    ),
    readout,
  );
  const holder = element("div.chart");
  const find = () => holder.querySelector("svg");
  byId("fit-chart").append(holder, element("p.buttons", {}, saveButton(find, "observed against predicted similarities", "fit")));
  drawnToWidth(holder, (width) => chart(fit, Math.min(width, 560), readout));
}

function chart(fit, width, readout) {
  const left = 40;
  const top = 24;
  const bottom = 40;
  const side = width - left - 10;
  const height = side + bottom + top;
  const part = (value) => (side * (value - fit.smallest)) / (fit.largest - fit.smallest);
  const x = (value) => left + part(value);
  const y = (value) => top + side - part(value);
  const cell = side / fit.n_cells;
  const most = Math.log1p(Math.max(...fit.counts));
  const edge = (place) => short(fit.smallest + (place * (fit.largest - fit.smallest)) / fit.n_cells);
  const cells = fit.counts.map((number, place) => {
    const [column, row] = [fit.columns[place], fit.rows[place]];
    return svg("rect.cell", {
      x: left + column * cell,
      y: top + side - (row + 1) * cell,
      width: cell - 0.4,
      height: cell - 0.4,
      "fill-opacity": (0.1 + (0.9 * Math.log1p(number)) / most).toFixed(3),
      pointerenter: () => {
        readout.textContent = `Observed ${edge(row)} to ${edge(row + 1)}, predicted ${edge(column)} to ${edge(column + 1)}: ${whole(number)} ${number === 1 ? "pair" : "pairs"}`;
      },
    });
  });
  const marks = ticks(fit.smallest, fit.largest, width > 400 ? 5 : 4);
  return svg(
    "svg.square",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Observed against predicted similarities of ${count(fit.n_pairs, "pair")}; in-sample correlation ${two(fit.correlation)}.`,
    },
    marks
      .map((value, _, all) => [
        svg("line.guide", { x1: x(value), x2: x(value), y1: top, y2: top + side }),
        svg("line.guide", { x1: left, x2: left + side, y1: y(value), y2: y(value) }),
        svg("text.tick", { x: x(value), y: top + side + 15, "text-anchor": "middle" }, tickText(value, all)),
        svg("text.tick", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, tickText(value, all)),
      ])
      .flat(),
    cells,
    svg("line.identity", { x1: x(fit.smallest), y1: y(fit.smallest), x2: x(fit.largest), y2: y(fit.largest) }),
    svg("text.axis-name", { x: left + side, y: height - 4, "text-anchor": "end" }, "Predicted similarity →"),
    svg("text.axis-name", { x: 0, y: 11 }, "↑ Observed similarity"),
  );
}
