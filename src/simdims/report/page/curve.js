// The choice of the number of dimensions: the held-out error of each candidate with its standard error, the range that
// resampled items choose, and where noise begins.

import { byId, count, drawnToWidth, element, short, svg, ticks, tickText, two, withError } from "./dom.js";
import { facts } from "./data.js";
import { saveButton } from "./picture.js";

// How far a range of numbers is drawn beyond its ends.
const HALF = 0.35;

export function startCurve() {
  const selection = facts.selection;
  const words = byId("number-words");
  byId("number").hidden = byId("number-link").hidden = !facts.is_observed;
  if (!selection) {
    words.append(
      element(
        "p",
        {},
        `The number of dimensions, ${facts.n_components}, was given. To choose it by cross-validation, omit `,
        element("code", {}, "ranks"),
        " (on the command line, ",
        element("code", {}, "--ranks"),
        ") or pass several.",
      ),
    );
    byId("number-chart").hidden = true;
    return;
  }
  const readout = element("p.readout", { role: "status" });
  words.append(
    element(
      "p",
      {},
      `Cross-validation: each number of dimensions was fitted ${count(selection.n_fits, "time")} to a part of the pairs and evaluated on the held-out pairs.`,
    ),
    selection.ranks.length > 1
      ? element(
          "p",
          {},
          "Too few dimensions miss structure; too many fit noise. Candidates close to the lowest error differ from it by at most one standard error of the difference.",
        )
      : "",
    element("p.legend", {}, element("span.dot.chosen", { "aria-hidden": "true" }), ` chosen: ${selection.rank}`),
    element(
      "p.legend",
      {},
      element("span.dot.valley", { "aria-hidden": "true" }),
      " close to the lowest error",
    ),
    element("p.legend", {}, element("span.band-swatch", { "aria-hidden": "true" }), " ± one standard error"),
    selection.resampled
      ? element("p.legend", {}, element("span.range-swatch", { "aria-hidden": "true" }), ` ${selection.resampled.words}`)
      : "",
    selection.detectable
      ? element(
          "p.legend",
          {},
          element("span.noise-swatch", { "aria-hidden": "true" }),
          ` ${selection.detectable.words}${selection.detectable.at_edge ? "" : "; beyond: grey"}`,
        )
      : "",
    readout,
  );
  const closest = closeUp(selection);
  const active = selection.ranks.indexOf(selection.rank);
  // If the largest number tried was chosen, the course of the errors says more than the end.
  const state = { active, highest: active === selection.ranks.length - 1 ? Infinity : closest };
  const holder = element("div.chart");
  const scale = element("button.quiet", { type: "button", id: "curve-scale", hidden: closest === Infinity });
  const label = () => (scale.textContent = state.highest === Infinity ? "Enlarge the choice" : "Show all errors");
  label();
  const draw = () => {
    label();
    holder.replaceChildren(curve(selection, Math.floor(holder.clientWidth), state, readout));
  };
  scale.addEventListener("click", () => {
    state.highest = state.highest === Infinity ? closest : Infinity;
    draw();
  });
  byId("number-chart").append(
    holder,
    element("p.buttons", {}, scale, saveButton(() => holder.querySelector("svg"), "the curve", "number_of_dimensions")),
  );
  tell(selection, state.active, readout);
  drawnToWidth(holder, (width) => curve(selection, width, state, readout));
}

// The largest error to draw so that the choice can be seen: those of the ranks around it, where others are far larger.
function closeUp({ ranks, errors, standard_errors, rank }) {
  const chosen = ranks.indexOf(rank);
  const upper = errors.map((error, i) => error + (standard_errors[i] || 0));
  const low = Math.min(...errors);
  const near = upper.filter((_, i) => Math.abs(i - chosen) <= 1 || (ranks[i] > rank && ranks[i] <= 2 * rank));
  const highest = low + 1.5 * (Math.max(...near) - low);
  return Math.max(...upper) - low > 2.5 * (highest - low) ? highest : Infinity;
}

function tell(selection, place, readout) {
  const verdict = selection.ranks[place] === selection.rank ? " (chosen)" : "";
  const explained = selection.explained[place];
  readout.replaceChildren(
    element("b", {}, count(selection.ranks[place], "dimension")),
    `${verdict}: error ${withError(selection.errors[place], selection.standard_errors[place])}` +
      (explained === null ? "" : `, held-out R2 ${two(explained)}`),
  );
}

function curve(selection, width, state, readout) {
  const { ranks, errors } = selection;
  const spread = selection.standard_errors.map((value) => value || 0);
  const height = Math.max(240, Math.min(340, width * 0.6));
  const box = { left: 48, right: 16, top: 28, bottom: 42 };
  const low = Math.min(...errors.map((error, i) => error - spread[i]));
  const high = Math.min(state.highest, Math.max(...errors.map((error, i) => error + spread[i])));
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  const bottom = Math.max(0, low - room);
  const beyond = ranks.filter((_, i) => errors[i] > high + room);
  const noise = selection.detectable;
  const first = ranks[0];
  const last = ranks[ranks.length - 1];
  const end = noise ? Math.max(last, noise.rank) : last;
  const x = (rank) =>
    first === end
      ? width / 2
      : box.left + 10 + ((width - box.left - box.right - 20) * (rank - first)) / (end - first);
  const y = (value) =>
    height - box.bottom - ((height - box.top - box.bottom) * (value - bottom)) / (high + room - bottom);
  const line = (values) => values.map((value, i) => `${x(ranks[i]).toFixed(1)},${y(value).toFixed(1)}`);
  const upper = line(errors.map((error, i) => error + spread[i]));
  const lower = line(errors.map((error, i) => error - spread[i])).reverse();
  const cursor = svg("line.cursor", { y1: box.top, y2: height - box.bottom });
  const move = (place) => {
    state.active = Math.max(0, Math.min(ranks.length - 1, place));
    cursor.setAttribute("x1", x(ranks[state.active]));
    cursor.setAttribute("x2", x(ranks[state.active]));
    tell(selection, state.active, readout);
  };
  const dots = ranks.map((rank, i) =>
    errors[i] > high + room ? svg("path.off-scale", { d: `M${x(rank) - 4.5},${box.top + 9}l4.5,-7l4.5,7z` }, svg("title", {}, `${rank}: ${short(errors[i])}`)) :
    svg(rank === selection.rank ? "circle.dot.chosen" : selection.in_valley[i] ? "circle.dot.valley" : "circle.dot", {
      cx: x(rank),
      cy: y(errors[i]),
      r: rank === selection.rank ? 6.5 : 4.5,
    }),
  );
  const point = (event) => {
    const at = ((event.clientX - picture.getBoundingClientRect().left) * width) / picture.getBoundingClientRect().width;
    move(ranks.reduce((best, rank, i) => (Math.abs(x(rank) - at) < Math.abs(x(ranks[best]) - at) ? i : best), 0));
  };
  const between = (kind, from, to) => {
    const [one, other] = [from, to].map((rank) => Math.max(box.left, Math.min(width - box.right, x(rank))));
    return svg(kind, { x: one, width: Math.max(0, other - one), y: box.top, height: height - box.top - box.bottom });
  };
  const marks = [];
  if (selection.resampled) marks.push(between("rect.resampled", selection.resampled.low - HALF, selection.resampled.high + HALF));
  if (noise && !noise.at_edge && noise.rank < end) marks.push(between("rect.noise", noise.rank + HALF, end + 1));
  if (noise)
    marks.push(svg("line.noise", { x1: x(noise.rank), x2: x(noise.rank), y1: box.top, y2: height - box.bottom }));
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      role: "slider",
      tabindex: "0",
      "aria-label": "Held-out error by number of dimensions; use the arrow keys to read the values",
      "aria-valuemin": first,
      "aria-valuemax": last,
      "aria-valuenow": ranks[state.active],
      pointermove: point,
      pointerdown: point,
      keydown: (event) => {
        const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        move(state.active + step);
        picture.setAttribute("aria-valuenow", ranks[state.active]);
      },
    },
    ticks(bottom, high + room, 5)
      .map((value, _, all) => [
        svg("line.guide", { x1: box.left, x2: width - box.right, y1: y(value), y2: y(value) }),
        svg("text.tick", { x: box.left - 8, y: y(value) + 4, "text-anchor": "end" }, tickText(value, all)),
      ])
      .flat(),
    rankTicks(ranks, x, width).map((rank) =>
      svg("text.tick", { x: x(rank), y: height - box.bottom + 18, "text-anchor": "middle" }, String(rank)),
    ),
    marks,
    svg("clipPath", { id: "curve-room" }, svg("rect", { x: 0, y: box.top, width, height: height - box.top - box.bottom })),
    svg("polygon.band", { points: [...upper, ...lower].join(" "), "clip-path": "url(#curve-room)" }),
    svg("polyline.curve", { points: line(errors).join(" "), "clip-path": "url(#curve-room)" }),
    cursor,
    dots,
    svg("text.axis-name", { x: width - box.right, y: height - 5, "text-anchor": "end" }, "Number of dimensions →"),
    svg("text.axis-name", { x: 0, y: 11 }, "↑ Mean squared error on held-out pairs"),
    beyond.length
      ? svg("text.tick", { x: width - box.right, y: 11, "text-anchor": "end" }, `▲ larger error: ${spans(beyond)}`)
      : null,
  );
  move(state.active);
  return picture;
}

// Numbers in a line, neighbours as first to last.
function spans(numbers) {
  const [first, last] = [numbers[0], numbers[numbers.length - 1]];
  return numbers.length > 2 && last - first === numbers.length - 1 ? `${first} to ${last}` : numbers.join(", ");
}

// Those numbers that were tried for which there is room.
function rankTicks(ranks, x, width) {
  const shown = [];
  for (const rank of ranks)
    if (!shown.length || x(rank) - x(shown[shown.length - 1]) > (width > 400 ? 24 : 30)) shown.push(rank);
  return shown;
}
