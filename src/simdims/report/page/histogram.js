// How the loadings of a dimension are distributed.

import { count, element, percent, short, svg, ticks, tickText, whole } from "./dom.js";

const N_BINS = 30;

export function histogram(values, width) {
  const height = 130;
  const left = 2;
  const right = 2;
  const base = height - 20;
  const largest = values.reduce((most, value) => Math.max(most, value), 0) || 1;
  const counts = new Array(N_BINS).fill(0);
  let zeros = 0;
  for (const value of values) {
    if (value === 0) zeros++;
    counts[Math.min(N_BINS - 1, Math.floor((N_BINS * value) / largest))]++;
  }
  const most = Math.max(...counts);
  const x = (value) => left + ((width - left - right) * value) / largest;
  const step = (width - left - right) / N_BINS;
  // Heights by square root: the few items that have much of a dimension are the ones to see.
  const tall = (number) => (base - 6) * Math.sqrt(number / most);
  const bars = counts.map((number, bin) =>
    svg(
      "g",
      {},
      svg(
        "title",
        {},
        `${short((bin * largest) / N_BINS)} to ${short(((bin + 1) * largest) / N_BINS)}: ${count(number, "item")}`,
      ),
      svg("rect.hit", { x: left + bin * step, y: 0, width: step, height: base }),
      svg("rect.bar", {
        x: left + bin * step + 0.5,
        y: base - tall(number),
        width: Math.max(step - 1, 0.5),
        height: tall(number),
      }),
    ),
  );
  const axis = ticks(0, largest, width > 320 ? 5 : 3).map((value, _, all) =>
    svg(
      "text.tick",
      { x: x(value), y: base + 14, "text-anchor": value === 0 ? "start" : x(value) > width - 16 ? "end" : "middle" },
      tickText(value, all),
    ),
  );
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Histogram of the loadings of ${count(values.length, "item")}; ${whole(zeros)} are zero.`,
    },
    bars,
    svg("line.axis", { x1: left, x2: width - right, y1: base, y2: base }),
    axis,
  );
  const none = zeros ? `${percent(zeros / values.length)} of the items have no loading. ` : "";
  return element(
    "div",
    {},
    picture,
    element("p.note", {}, `${none}Square-root scale.`),
  );
}
