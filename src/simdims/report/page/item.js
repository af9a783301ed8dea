// One item: its fingerprint over the dimensions, and its nearest neighbours with what they share.

import { count, drawnToWidth, element, percent, short, svg } from "./dom.js";
import { facts, label, neighbours, observed, reasons, row } from "./data.js";
import { addressOf } from "./address.js";
import { picture } from "./cards.js";
import { headingOf, nameOf } from "./names.js";
import { saveButton } from "./picture.js";

const N_NEIGHBOURS = 12;
const N_REASONS = 3;
const N_LISTED = 10;

export function itemView(item) {
  const loadings = row(item);
  const strip = element("div.chart");
  const find = () => strip.querySelector("svg");
  const keep = element("p.buttons", {}, saveButton(find, "the fingerprint", `item${item}_fingerprint`));
  const has = [...loadings].filter((value) => value > 0).length;
  const view = element(
    "div.view",
    {},
    element(
      "header.view-head.item-head",
      {},
      facts.pictured ? picture(item) : null,
      element(
        "div",
        {},
        element("p.kicker", {}, "Item"),
        element("h2.view-title", { id: "panel-title", tabindex: "-1" }, label(item)),
        element(
          "p.note",
          {},
          `Loads on ${has === facts.n_components ? "all" : `${has} of`} ${count(facts.n_components, "dimension")}.`,
        ),
      ),
    ),
    element(
      "div.view-columns",
      {},
      element("section", {}, element("h3", {}, "Fingerprint"), strip, keep, strongest(loadings)),
      element("section", {}, element("h3", {}, "Nearest neighbours"), nearest(item)),
    ),
  );
  drawnToWidth(strip, (width) => fingerprint(loadings, width));
  return view;
}

// A bar for each dimension, in their order.
function fingerprint(loadings, width) {
  const height = 96;
  const base = height - 18;
  const step = width / loadings.length;
  const largest = Math.max(...loadings) || 1;
  const thick = Math.max(Math.min(step * 0.75, 26), 0.6);
  const has = Array.from(loadings.keys()).filter((k) => loadings[k] > 0);
  const bars = has.map((k) => {
    const tall = (base - 4) * (loadings[k] / largest);
    return svg(
      "a",
      { href: addressOf("dimension", k), tabindex: "-1" },
      svg("title", {}, `${headingOf(k)}: ${short(loadings[k])}`),
      svg("rect.hit", { x: k * step, y: 0, width: step, height: base }),
      svg("rect.bar", { x: (k + 0.5) * step - thick / 2, y: base - tall, width: thick, height: tall }),
    );
  });
  const every = [1, 2, 5, 10, 20, 50, 100].find((many) => many * step >= 26) || 200;
  const numbers = Array.from(loadings.keys())
    .filter((k) => (k + 1) % every === 0)
    .map((k) => {
      const x = (k + 0.5) * step;
      return svg("text.tick", { x, y: height - 4, "text-anchor": x > width - 12 ? "end" : "middle" }, String(k + 1));
    });
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Loadings on all dimensions, in their order" },
    svg("line.axis", { x1: 0, x2: width, y1: base, y2: base }),
    bars,
    numbers,
  );
}

function strongest(loadings) {
  const order = Array.from(loadings.keys())
    .filter((k) => loadings[k] > 0)
    .sort((a, b) => loadings[b] - loadings[a]);
  const squares = loadings.reduce((sum, value) => sum + value * value, 0) || 1;
  if (!order.length) return element("p.note", {}, "This item has no loadings.");
  return element(
    "table.plain",
    {},
    element("caption.unseen", {}, "The largest loadings of this item"),
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        element("th", { scope: "col" }, "Dimension"),
        element("th.number", { scope: "col" }, "Loading"),
        element("th.number", { scope: "col", title: "Share of the item's predicted similarity to itself" }, "Share"),
      ),
    ),
    element(
      "tbody",
      {},
      order
        .slice(0, N_LISTED)
        .map((k) =>
          element(
            "tr",
            {},
            element("td", {}, element("a", { href: addressOf("dimension", k) }, headingOf(k))),
            element("td.number", {}, short(loadings[k])),
            element("td.number", {}, percent(loadings[k] ** 2 / squares)),
          ),
        ),
    ),
  );
}

function nearest(item) {
  const near = neighbours(item, N_NEIGHBOURS);
  if (!near.length) return element("p.note", {}, "This item shares no dimension with any other.");
  return element(
    "ol.neighbours",
    {},
    near.map(({ item: other, predicted }) => neighbour(item, other, predicted)),
  );
}

function neighbour(item, other, predicted) {
  const seen = observed(item, other);
  const numbers = [`predicted ${short(predicted)}`];
  if (seen !== undefined) numbers.unshift(seen === null ? "not observed" : `observed ${short(seen)}`);
  return element(
    "li",
    {},
    facts.pictured
      ? element("a", { href: addressOf("item", other), tabindex: "-1", "aria-hidden": "true" }, picture(other))
      : null,
    element(
      "div",
      {},
      element(
        "p.pair",
        {},
        element("a", { href: addressOf("item", other) }, label(other)),
        element("span.note", {}, numbers.join(" · ")),
      ),
      because(item, other),
    ),
  );
}

// "because: animal 61%, farm 22%"
function because(item, other) {
  const all = reasons(item, other);
  const main = all.slice(0, N_REASONS).filter((each, place) => place === 0 || each.share >= 0.05);
  const left = all.length - main.length;
  const rest = 1 - main.reduce((sum, each) => sum + each.share, 0);
  const parts = main.map((each) =>
    element(
      "a.reason",
      { href: addressOf("dimension", each.k) },
      nameOf(each.k),
      " ",
      element("b", {}, percent(each.share)),
    ),
  );
  if (left && rest >= 0.005)
    parts.push(element("span.note", {}, `${left} ${left === 1 ? "other" : "others"} ${percent(rest)}`));
  return element(
    "p.because",
    {},
    element("span.note", {}, "because "),
    parts.flatMap((part, place) => (place ? [", ", part] : [part])),
  );
}
