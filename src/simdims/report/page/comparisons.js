// Comparisons with other embeddings, if there are any: shared pairs, and below them what only one side has.

import { byId, count, element, short, svg, two } from "./dom.js";
import { facts, label } from "./data.js";
import { addressOf } from "./address.js";
import { headingOf, onNames } from "./names.js";

const N_DESCRIBED = 3;

export function startComparisons() {
  if (!facts.comparisons.length) return;
  byId("comparisons").hidden = false;
  byId("comparisons-link").hidden = false;
  const draw = () => byId("comparisons-body").replaceChildren(...facts.comparisons.flatMap(comparison));
  onNames(draw);
  draw();
}

function comparison(one) {
  const rows = [one.shared.map((pair) => sharedRow(pair)), aloneRows(one)];
  const heads = ["Dimension here", "Correlation", `Dimension of ${one.name}`, "p", "p adjusted"];
  return [
    element("h3", {}, `With ${one.name}`),
    element("p", {}, one.said),
    ...one.explained.map((text) => element("p.note", {}, text)),
    element(
      "div.wide",
      { tabindex: "0", role: "region", "aria-label": `Table of dimensions shared with ${one.name}` },
      element(
        "table.plain.tests.comparison",
        {},
        element(
          "thead",
          {},
          element("tr", {}, heads.map((text, place) => element(place > 2 ? "th.number" : "th", { scope: "col" }, text))),
        ),
        element("tbody", {}, rows.flat()),
      ),
    ),
  ];
}

function sharedRow(pair) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, ownDimension(pair.own)),
    element("td", {}, correlationBar(pair.r)),
    element("td", {}, pair.other),
    element("td.number", {}, smallNumber(pair.p)),
    element("td.number", {}, smallNumber(pair.adjusted)),
  );
}

// Dimensions of one side, beside each other.
function aloneRows(one) {
  const [own, other] = [one.only_own, one.only_other];
  if (!own.length && !other.length) return [];
  const only = (side, where) => (side.length ? `only ${where} (${count(side.length, "dimension")})` : "");
  const rows = [element("tr.alone-head", {}, sides(only(own, "here"), only(other, `in ${one.name}`)))];
  for (let place = 0; place < Math.max(own.length, other.length); place++)
    rows.push(element("tr.alone", {}, sides(place < own.length ? ownDimension(own[place]) : "", other[place] || "")));
  return rows;
}

function sides(left, right) {
  return [element("td", {}, left), element("td", {}), element("td", { colspan: 3 }, right)];
}

function ownDimension(k) {
  const items = facts.dimensions[k].items.slice(0, N_DESCRIBED);
  return [
    element("a", { href: addressOf("dimension", k) }, headingOf(k)),
    items.length ? element("span.note", {}, ` ${items.map(label).join(", ")}`) : "",
  ];
}

function correlationBar(r) {
  const width = 120;
  return svg(
    "svg.interval",
    { viewBox: `0 0 ${width + 40} 20`, width: width + 40, height: 20, role: "img", "aria-label": `r ${two(r)}` },
    svg("line.guide", { x1: 0, x2: width, y1: 10, y2: 10 }),
    svg("rect.shared", { x: 0, y: 5, width: Math.max(1, width * Math.max(0, r)), height: 10 }),
    svg("text.tick", { x: width + 6, y: 14 }, two(r)),
  );
}

function smallNumber(value) {
  return value < 0.0005 ? short(value) : value.toFixed(3);
}
