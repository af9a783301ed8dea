// Similarities of all items in the order of their dimensions: observed below the diagonal, predicted above.

import { byId, drawnToWidth, element, fitted, isolated, short, svg, whole } from "./dom.js";
import { bytesNamed, facts, label, observed, product } from "./data.js";
import { go } from "./address.js";
import { givenName, headingOf, onNames } from "./names.js";
import { saveButton } from "./picture.js";

const NO_PAIR = 255;
// The colour of the style sheet's --heat in the light theme; the dark one turns the picture around.
const INK = [8, 70, 122];
const HATCHED = [170, 177, 186, 70];
const ROOM_FOR_NAMES = 120;
let painted = null;

export function startHeat() {
  const { heat } = facts;
  const means = heat.block > 1 ? ` Each cell is the mean of up to ${heat.block} × ${heat.block} pairs.` : "";
  const shown = facts.is_observed ? "Below the diagonal: observed; above: predicted." : "All similarities are predicted.";
  byId("heat-note").textContent =
    `Items are ordered by their largest dimension, and within it by their loading. ${shown}${means}`;
  byId("heat-chart").dataset.caption =
    `Similarities of all items, ordered by their largest dimension and within it by their loading. ${shown}`;
  const holder = element("div.chart");
  const readout = element("p.note.readout", { "aria-live": "polite" }, "Point at a cell to read it.");
  byId("heat-chart").append(
    holder,
    element("div.below", {}, readout, saveButton(() => holder.querySelector("svg"), "the similarities", "similarities")),
  );
  drawnToWidth(holder, (width) => heatPicture(heat, Math.min(width, 620), readout));
  onNames(() => holder.replaceChildren(heatPicture(heat, Math.min(Math.floor(holder.clientWidth), 620), readout)));
}

function heatPicture(heat, width, readout) {
  const left = width >= 400 && facts.dimensions.some((_, k) => givenName(k)) ? ROOM_FOR_NAMES : 26;
  const side = width - left - 1;
  const height = side + 40;
  const cursor = svg("rect.cursor.cell-cursor", { width: side / heat.side, height: side / heat.side, visibility: "hidden" });
  const at = { row: 0, column: 0 };
  const move = (row, column) => {
    at.row = Math.max(0, Math.min(heat.side - 1, row));
    at.column = Math.max(0, Math.min(heat.side - 1, column));
    cursor.setAttribute("x", left + (side * at.column) / heat.side);
    cursor.setAttribute("y", (side * at.row) / heat.side);
    cursor.setAttribute("visibility", "visible");
    readout.textContent = cellText(heat, at.row, at.column);
  };
  const cellAt = (event) => {
    const box = picture.getBoundingClientRect();
    const place = (offset) => Math.floor((heat.side * offset) / side);
    return [
      place(((event.clientY - box.top) * width) / box.width),
      place(((event.clientX - box.left) * width) / box.width - left),
    ];
  };
  const picture = svg(
    "svg.heat",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      tabindex: "0",
      "aria-label": `Similarities of ${whole(facts.n_items)} items, ordered by dimension; use the arrow keys to read the cells`,
      pointermove: (event) => {
        const [row, column] = cellAt(event);
        if (row >= 0 && column >= 0 && row < heat.side && column < heat.side) move(row, column);
      },
      keydown: (event) => {
        const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
        if (event.key === "Enter" && heat.order) go("item", heat.order[at.row]);
        if (!step) return;
        event.preventDefault();
        move(at.row + step[0], at.column + step[1]);
      },
    },
    svg("image.heat-cells", { x: left, y: 0, width: side, height: side, href: heatImage(heat), preserveAspectRatio: "none" }),
    groups(heat, left, side),
    cursor,
    colourScale(heat, left, side),
  );
  return picture;
}

// The lines between dimensions, and the names that there is room for.
function groups(heat, left, side) {
  const y = (item) => (side * item) / facts.n_items;
  const ends = [...heat.groups.slice(1).map(([, start]) => start), facts.n_items];
  let taken = -Infinity;
  return heat.groups.flatMap(([k, start], place) => {
    const middle = (y(start) + y(ends[place])) / 2 + 4;
    const parts = [];
    if (place && heat.groups.length <= 80)
      parts.push(
        svg("line.group-edge", { x1: left - 5, x2: left + side, y1: y(start), y2: y(start) }),
        svg("line.group-edge", { x1: left + y(start), x2: left + y(start), y1: 0, y2: side }),
      );
    if (middle - taken >= 13) {
      taken = middle;
      const name = k < 0 ? "none" : left > 40 && givenName(k) ? `${k + 1}: ${givenName(k)}` : String(k + 1);
      parts.push(
        svg(
          "text.tick",
          { x: left - 8, y: Math.max(10, middle), "text-anchor": "end" },
          isolated(fitted(name, left - 10)),
          svg("title", {}, k < 0 ? "Items without loadings" : headingOf(k)),
        ),
      );
    }
    return parts;
  });
}

function colourScale(heat, left, side) {
  const stop = (offset, opacity) => svg("stop.heat-stop", { offset, "stop-opacity": opacity });
  const bar = Math.min(110, side / 5);
  const text = (x, anchor, words) => svg("text.tick", { x, y: side + 31, "text-anchor": anchor }, words);
  const missing = left + side - 2;
  return [
    svg("defs", {}, svg("linearGradient", { id: "heat-ramp" }, stop(0, 0.03), stop(1, 1))),
    text(left, "start", short(heat.low)),
    svg("rect.heat-scale", { x: left + 34, y: side + 22, width: bar, height: 9, fill: "url(#heat-ramp)" }),
    text(left + bar + 40, "start", short(heat.high) + (heat.is_cut ? " or more" : "")),
    heat.has_missing ? svg("rect.not-observed", { x: missing - 96, y: side + 21, width: 11, height: 11 }) : null,
    heat.has_missing ? text(missing, "end", "not observed") : null,
  ];
}

function cellText(heat, row, column) {
  const step = bytesNamed("heat")[row * heat.side + column];
  const which = row >= column && facts.is_observed ? "observed" : "predicted";
  const drawn = step === NO_PAIR ? "not observed" : `${which} ${short(heat.low + (step * (heat.high - heat.low)) / (NO_PAIR - 1))}`;
  if (!heat.order) return `Block ${row + 1} ~ block ${column + 1} of ${heat.block} items each: mean ${drawn}`;
  const [one, other] = [heat.order[row], heat.order[column]];
  const seen = row > column ? observed(one, other) : undefined;
  const exact = row < column ? `predicted ${short(product(one, other))}` : seen ? `observed ${short(seen)}` : drawn;
  return `${label(one)} ~ ${label(other)}: ${exact}`;
}

// The cells as a picture that the browser scales.
function heatImage({ side }) {
  if (painted) return painted;
  const canvas = element("canvas", { width: side, height: side });
  const pixels = new ImageData(side, side);
  bytesNamed("heat").forEach((step, place) => {
    const colour = step === NO_PAIR ? HATCHED : [...INK, 255 * (0.03 + (0.97 * step) / (NO_PAIR - 1))];
    pixels.data.set(colour, 4 * place);
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  painted = canvas.toDataURL();
  return painted;
}
