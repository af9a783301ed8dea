// All items on a plane: neighbours are alike. Coloured by their largest dimension, or by their loadings on one.

import { byId, drawnToWidth, element, fitted, isolated, short, svg, textWidth, whole } from "./dom.js";
import { bytesNamed, column, facts, label, plainLabel, shortLabel, shortList } from "./data.js";
import { addressOf, go } from "./address.js";
import { picture } from "./cards.js";
import { givenName, headingOf, nameOf, onNames } from "./names.js";
import { saveButton } from "./picture.js";

const LEVELS = 6;
const MOST_NAMES = 40;
// Widths of names: the second where the first does not fit.
const WIDTHS = [220, 110];
const NEAR = 14;

export function startMap() {
  const { map } = facts;
  const n = map.places;
  byId("map-note").textContent =
    `Items with similar dimensions are close together (t-SNE); distances between groups mean little.` +
    (map.items ? ` The ${whole(n)} items with the largest loadings are shown.` : "") +
    (map.n_between ? ` ${whole(map.n_between)} items were placed by their nearest neighbours among the others.` : "");
  const state = { by: "largest", xy: null };
  const holder = element("div.chart");
  const readout = element("p.note.readout.map-readout", { "aria-hidden": "true" }, "Point at an item to read it.");
  const select = element("select", { id: "map-colours" });
  const options = () =>
    select.replaceChildren(
      element("option", { value: "largest" }, "largest dimension"),
      ...facts.dimensions.map((_, k) => element("option", { value: k }, headingOf(k))),
    );
  const redraw = () => holder.replaceChildren(mapPicture(map, Math.floor(holder.clientWidth), state, readout));
  select.addEventListener("change", () => {
    state.by = select.value === "largest" ? "largest" : Number(select.value);
    redraw();
  });
  onNames(() => {
    options();
    select.value = String(state.by);
    redraw();
  });
  options();
  byId("map-chart").append(
    element("label.sort", {}, "Colour by ", select),
    holder,
    element("div.below", {}, readout, saveButton(() => holder.querySelector("svg"), "the map of the items", "map")),
  );
  drawnToWidth(holder, (width) => mapPicture(map, width, state, readout));
}

function itemAt(map, place) {
  return map.items ? map.items[place] : place;
}

function mapPicture(map, width, state, readout) {
  const margin = 12;
  const tall = Math.max(240, Math.min(width, width * map.aspect));
  const legend = state.by === "largest" ? mapLegend(map, width, tall) : { rows: 0, parts: [] };
  const height = tall + 12 + 18 * legend.rows;
  const places = new Uint16Array(bytesNamed("map").buffer);
  const x = (place) => margin + ((width - 2 * margin) * places[2 * place]) / 65535;
  const y = (place) => margin + ((tall - 2 * margin) * places[2 * place + 1]) / 65535;
  const size = Math.max(1.6, Math.min(7, Math.sqrt((width * tall) / map.places) / 4));
  const dots = dotsByColour(map, state.by).map(([kind, opacity, some]) =>
    svg(`path.dots.${kind}`, {
      d: some.map((place) => `M${x(place).toFixed(1)} ${y(place).toFixed(1)}h0`).join(""),
      "stroke-width": size.toFixed(1),
      "stroke-opacity": opacity,
    }),
  );
  const ring = svg("circle.cursor.ring", { r: size / 2 + 3, visibility: "hidden" });
  let active = -1;
  const find = (event) => {
    const box = drawn.getBoundingClientRect();
    const scale = width / box.width;
    const [px, py] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    let [best, least] = [-1, NEAR * NEAR];
    for (let place = 0; place < map.places; place++) {
      const far = (x(place) - px) ** 2 + (y(place) - py) ** 2;
      if (far < least) [best, least] = [place, far];
    }
    return best;
  };
  const point = (event) => {
    const place = find(event);
    if (place === active || place < 0) return;
    active = place;
    ring.setAttribute("cx", x(place));
    ring.setAttribute("cy", y(place));
    ring.setAttribute("visibility", "visible");
    tellItem(map, place, state.by, readout);
  };
  const drawn = svg(
    "svg.map",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": `Map of ${whole(map.places)} items, coloured by ${state.by === "largest" ? "their largest dimension" : headingOf(state.by)}`,
      pointermove: point,
      click: (event) => {
        const place = event.target.closest("a") ? -1 : find(event);
        if (place >= 0) go("item", itemAt(map, place));
      },
    },
    dots,
    mapNames(map, state.by, x, y, width, tall),
    ring,
    legend.parts,
  );
  return drawn;
}

// Groups of items of one colour: [class, opacity, places].
function dotsByColour(map, by) {
  const all = Array.from({ length: map.places }, (_, place) => place);
  if (by !== "largest") {
    const values = column(by);
    const largest = values.reduce((most, value) => Math.max(most, value), 0) || 1;
    const level = (place) => Math.ceil((LEVELS * values[itemAt(map, place)]) / largest);
    const steps = Array.from({ length: LEVELS + 1 }, (_, one) => all.filter((place) => level(place) === one));
    return steps.map((some, one) => (one ? ["loaded", (0.15 + (0.85 * one) / LEVELS).toFixed(2), some] : ["other", 0.35, some]));
  }
  const others = all.filter((place) => !map.coloured.includes(map.largest[place]));
  const coloured = map.coloured.map((k, group) => [`g${group}`, 0.85, all.filter((place) => map.largest[place] === k)]);
  return [["other", 0.6, others], ...coloured];
}

// Labels of the items with the largest loadings, where there is room.
function mapNames(map, by, x, y, width, tall) {
  const weight = by === "largest" ? (place) => map.strength[place] : (place) => column(by)[itemAt(map, place)];
  const order = Array.from({ length: map.places }, (_, place) => place)
    .filter((place) => weight(place) > 0)
    .sort((a, b) => weight(b) - weight(a))
    .slice(0, 5 * MOST_NAMES);
  const taken = [];
  const names = [];
  const isFree = ([left, top, right, bottom]) => {
    if (left < 0 || right > width || top < 0 || bottom > tall) return false;
    if (taken.some((other) => left < other[2] && other[0] < right && top < other[3] && other[1] < bottom)) return false;
    for (let place = 0; place < map.places; place++)
      if (x(place) > left && x(place) < right && y(place) > top && y(place) < bottom) return false;
    return true;
  };
  const placed = (place, text) => {
    const wide = textWidth(text);
    const boxes = [x(place) + 5, x(place) - 5 - wide].map((left) => [left, y(place) - 6, left + wide, y(place) + 6]);
    const box = boxes.find(isFree);
    if (box) taken.push(box);
    return box;
  };
  for (const place of order) {
    if (names.length === MOST_NAMES) break;
    const item = itemAt(map, place);
    const name = WIDTHS.map((most) => shortLabel(item, most)).find((text) => placed(place, text));
    if (name) names.push(svg("text.map-name", { x: taken.at(-1)[0], y: y(place) + 4 }, name, svg("title", {}, label(item))));
  }
  return names;
}

function mapLegend(map, width, top) {
  const across = width > 460 ? 2 : 1;
  const wide = width / across;
  const said = (k) => {
    const room = wide - 30 - textWidth(`${k + 1}: `);
    const tops = facts.dimensions[k].items.slice(0, 3).map(plainLabel);
    return `${k + 1}: ${givenName(k) ? isolated(fitted(givenName(k), room)) : shortList(tops, room)}`;
  };
  const hasOthers = map.largest.some((k) => !map.coloured.includes(k));
  const texts = [...map.coloured.map(said), ...(hasOthers ? ["other dimensions"] : [])];
  const parts = texts.map((text, place) => {
    const [left, y] = [wide * (place % across), top + 18 + 18 * Math.floor(place / across)];
    const group = map.coloured[place] === undefined ? "other" : `g${place}`;
    const title = place < map.coloured.length && facts.dimensions[map.coloured[place]].items.map(plainLabel).join(", ");
    const entry = [
      title ? svg("title", {}, title) : null,
      svg(`rect.swatch-of.${group}`, { x: left + 2, y: y - 9, width: 10, height: 10, rx: 5 }),
      svg("text.tick", { x: left + 18, y }, text),
    ];
    return group === "other"
      ? svg("g", {}, entry)
      : svg("a", { href: addressOf("dimension", map.coloured[place]), "aria-label": headingOf(map.coloured[place]) }, entry);
  });
  return { rows: Math.ceil(texts.length / across), parts };
}

function tellItem(map, place, by, readout) {
  const item = itemAt(map, place);
  const k = by === "largest" ? map.largest[place] : by;
  readout.replaceChildren(
    facts.pictured ? picture(item) : "",
    element("span", {}, element("b", {}, label(item)), k < 0 ? ": no loadings" : `: ${short(column(k)[item])} on ${nameOf(k)}`),
  );
}
