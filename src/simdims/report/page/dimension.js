// One dimension: its ranking, its distribution, and the similarities of its top items.

import { breakable, drawnToWidth, element, percent, short, two, whole } from "./dom.js";
import { column, facts, label, ranking, shortLabel } from "./data.js";
import { cameBack, hasReliability, intervalTitle, meter, nameField, picture, suggestion, whisker } from "./cards.js";
import { addressOf, go } from "./address.js";
import { histogram } from "./histogram.js";
import { similarityBlocks } from "./heatmap.js";
import { saveButton } from "./picture.js";
import { virtualList } from "./list.js";

// Width of labels that surely fit on two lines of the list.
const LIST_ROOM = 190;

export function dimensionView(k) {
  const { share, reliability } = facts.dimensions[k];
  const spread = element("div.chart");
  const blocks = element("div.chart");
  const keep = (holder, what, name) =>
    element("p.buttons", {}, saveButton(() => holder.querySelector("svg"), what, `dimension${k + 1}_${name}`));
  const view = element(
    "div.view",
    {},
    element(
      "header.view-head",
      {},
      element("p.kicker", {}, `Dimension ${k + 1} of ${facts.n_components}`),
      element("h2.view-title", { id: "panel-title", tabindex: "-1" }, nameField(k)),
      suggestion(k),
      element(
        "div.meters",
        {},
        meter("Share of the reconstruction", share, percent(share), 1),
        hasReliability ? meter("Reliability across random starts", reliability, two(reliability), 1) : null,
        cameBack(k, "Came back in resamples"),
      ),
      uncertaintyWords(k),
      turning(k),
    ),
    element(
      "div.view-columns",
      {},
      element("section", {}, element("h3", {}, "All items"), rankingList(k)),
      element(
        "div",
        {},
        element("section", {}, element("h3", {}, "Distribution"), spread, keep(spread, "the distribution", "distribution")),
        element("section", {}, element("h3", {}, "Similarity of its top items"), blocks, keep(blocks, "the similarities", "similarities")),
      ),
    ),
  );
  drawnToWidth(spread, (width) => histogram(column(k), width));
  drawnToWidth(blocks, (width) => similarityBlocks(k, width));
  return view;
}

function rankingList(k) {
  const order = ranking(k);
  const values = column(k);
  const largest = Math.max(values[order[0]], ...(facts.uncertainty?.dimensions[k].high || [])) || 1;
  const { box } = virtualList({
    label: `Items by their loading on dimension ${k + 1}`,
    height: facts.pictured ? 48 : 34,
    length: order.length,
    open: (place) => go("item", order[place]),
    row: (place) => {
      const item = order[place];
      const bar = element("span.word-bar", { "aria-hidden": "true" });
      bar.style.width = `${(100 * values[item]) / largest}%`;
      return [
        element("span.rank", {}, whole(place + 1)),
        facts.pictured ? picture(item) : null,
        element("span.word", { title: label(item) }, breakable(shortLabel(item, LIST_ROOM))),
        element("span.word-track", {}, bar, whisker(k, place, largest)),
        element("span.value", { title: intervalTitle(k, place) }, short(values[item])),
      ];
    },
  });
  return box;
}

// How sure the dimension is, if that is known.
function uncertaintyWords(k) {
  const resampled = facts.uncertainty?.dimensions[k];
  if (!resampled) return null;
  const [low, high] = resampled.share;
  const share = low === null ? "" : ` 95% interval of its share: ${percent(low)} to ${percent(high)}.`;
  return element("p.note", {}, `It ${resampled.words}.${share} Lines on the bars of the top items are 95% intervals.`);
}

// To the dimension before and the one after.
function turning(k) {
  const link = (to, text, name) =>
    to >= 0 && to < facts.n_components
      ? element("a.quiet", { href: addressOf("dimension", to), "aria-label": `${name} dimension` }, text)
      : element("span.quiet.off", { "aria-hidden": "true" }, text);
  return element(
    "nav.turning",
    { "aria-label": "Other dimensions" },
    link(k - 1, "← Previous", "Previous"),
    link(k + 1, "Next →", "Next"),
  );
}
