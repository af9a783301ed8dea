// The grid of dimensions: one card each, with its top items, its name, its share and its reliability.

import { breakable, byId, count, element, percent, short, two } from "./dom.js";
import { facts, image, label, shortLabel } from "./data.js";
import { givenName, headingOf, isNamedHere, nameOf, onNames, setName } from "./names.js";
import { addressOf } from "./address.js";

const N_WORDS = 7;
// Widths of labels that surely fit: on two lines of a card, and on four below a picture.
const ROOM = { word: 190, caption: 110 };
const N_IMAGES = 10;
const AT_ONCE = facts.pictured ? 36 : 60;
// Reliabilities below this are worth a look.
const LOW = 0.795;
export const hasReliability = facts.is_observed || facts.dimensions.some((one) => one.reliability !== null);
let shown = AT_ONCE;

export function startCards() {
  if (facts.uncertainty) {
    byId("uncertainty-note").hidden = false;
    byId("uncertainty-note").textContent = facts.uncertainty.said;
  }
  if (!facts.is_observed) byId("order").options[0].textContent = "by number";
  byId("reliability-note").hidden = byId("by-reliability").hidden = !hasReliability;
  byId("order").addEventListener("change", () => showCards());
  byId("cards").addEventListener("keydown", moveBetweenCards);
  byId("captions-choice").hidden = !facts.pictured;
  byId("captions").addEventListener("change", (event) => byId("cards").classList.toggle("captioned", event.target.checked));
  onNames(() => refreshNames());
  window.addEventListener("beforeprint", () => {
    shown = facts.n_components;
    addCards();
  });
  showCards();
}

function showCards() {
  byId("cards").replaceChildren();
  addCards();
}

// Those cards that should be shown and are not there yet.
function addCards() {
  const there = byId("cards").children.length;
  byId("cards").append(...orderOfCards().slice(there, shown).map(card));
  const left = facts.n_components - byId("cards").children.length;
  const more = byId("more-cards");
  more.hidden = left <= 0;
  more.replaceChildren(
    element("button", { type: "button", click: () => showMore() }, `Show ${Math.min(left, AT_ONCE)} more`),
    element("span.note", {}, ` ${count(left, "dimension")} not shown yet`),
  );
}

function showMore() {
  const first = shown;
  shown += AT_ONCE;
  addCards();
  byId("cards").children[first]?.querySelector("a").focus();
}

function orderOfCards() {
  const order = byId("order").value;
  const all = Array.from({ length: facts.n_components }, (_, k) => k);
  if (order === "reliability")
    all.sort((a, b) => facts.dimensions[b].reliability - facts.dimensions[a].reliability || a - b);
  if (order === "name")
    all.sort((a, b) => !givenName(a) - !givenName(b) || givenName(a).localeCompare(givenName(b)) || a - b);
  return all;
}

function card(k) {
  const { share, reliability } = facts.dimensions[k];
  const link = element("a.card-number", { href: addressOf("dimension", k) }, String(k + 1));
  describe(link, k);
  return element(
    "article.card",
    { "data-dimension": k },
    element("header.card-head", {}, link, nameField(k)),
    suggestion(k),
    facts.pictured ? topImages(k) : topWords(k),
    element(
      "footer.card-foot",
      {},
      meter("Share", share, percent(share), largestShare(), `of the reconstruction${shareInterval(k)}`),
      hasReliability
        ? meter("Reliability", reliability, two(reliability), 1, "Across random starts; 1 means that all fits found the same dimension")
        : null,
      cameBack(k, "Came back"),
    ),
  );
}

// The field in which a dimension gets its name.
export function nameField(k) {
  const field = element("input.name", {
    type: "text",
    value: givenName(k),
    placeholder: "Name this dimension",
    maxlength: 80,
    spellcheck: "false",
    autocomplete: "off",
    "data-name-of": k,
    "aria-label": `Name of dimension ${k + 1}`,
  });
  field.addEventListener("change", () => setName(k, field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") field.blur();
    if (event.key === "Escape") {
      field.value = givenName(k);
      field.blur();
      event.stopPropagation();
      event.preventDefault();
    }
  });
  return field;
}

// A suggested name: a click gives it to the dimension. It disappears once the reader has named the dimension.
export function suggestion(k) {
  const suggested = facts.suggestions?.[k];
  if (!suggested) return null;
  const accept = element(
    "button.suggestion",
    { type: "button", "data-suggestion-of": k, title: "Use as the name of this dimension", hidden: isNamedHere(k) },
    element("span.lead-in", {}, "Suggested: "),
    element("bdi", {}, suggested.words),
  );
  accept.addEventListener("click", () => {
    setName(k, suggested.name);
    accept.parentElement.querySelector(`[data-name-of="${k}"]`)?.focus();
  });
  return accept;
}

// Hidden only once the focus has left it: the Tab key may be on its way to it from the name.
function refreshSuggestion(accept) {
  setTimeout(() => {
    if (accept === document.activeElement) accept.addEventListener("blur", () => refreshSuggestion(accept), { once: true });
    else accept.hidden = isNamedHere(Number(accept.dataset.suggestionOf));
  });
}

function refreshNames() {
  for (const accept of document.querySelectorAll("[data-suggestion-of]")) refreshSuggestion(accept);
  for (const field of document.querySelectorAll("[data-name-of]"))
    if (field !== document.activeElement) field.value = givenName(Number(field.dataset.nameOf));
  for (const link of document.querySelectorAll(".card-number"))
    describe(link, Number(link.closest(".card").dataset.dimension));
  if (byId("order").value === "name") orderCards();
}

// The cards that are there in their new order, once the reader is done with them: moving a card takes the focus off it.
function orderCards() {
  setTimeout(() => {
    if (byId("cards").contains(document.activeElement)) {
      document.activeElement.addEventListener("blur", orderCards, { once: true });
      return;
    }
    showCards();
  });
}

function describe(link, k) {
  link.setAttribute("aria-label", `Open ${nameOf(k)}`);
  link.title = `Open ${headingOf(k)}`;
}

function largestShare() {
  return Math.max(...facts.dimensions.map((one) => one.share || 0));
}

export function meter(what, value, text, largest, title) {
  const fill = element("span.meter-fill");
  fill.style.width = `${Math.max(0, Math.min(100, (100 * (value || 0)) / (largest || 1)))}%`;
  return element(
    what.startsWith("Reliability") && value < LOW ? "div.meter.low" : "div.meter",
    { title },
    element("span.meter-what", {}, what),
    element("span.meter-track", { "aria-hidden": "true" }, fill),
    element("span.meter-value", {}, text),
  );
}

// How often a dimension came back in resamples, if there are any.
export function cameBack(k, what) {
  const resampled = facts.uncertainty?.dimensions[k];
  if (!resampled) return null;
  const { came_back, words } = resampled;
  return meter(what, came_back, percent(came_back), 1, words[0].toUpperCase() + words.slice(1));
}

function shareInterval(k) {
  const [low, high] = facts.uncertainty?.dimensions[k].share || [null, null];
  return low === null ? "" : `; 95% interval ${percent(low)} to ${percent(high)}`;
}

// The interval of a loading in words, for one of the top items of a dimension.
export function intervalTitle(k, place) {
  const resampled = facts.uncertainty?.dimensions[k];
  if (!resampled || !(place < resampled.low.length) || resampled.low[place] === null) return "";
  const text = `95% interval ${short(resampled.low[place])} to ${short(resampled.high[place])}`;
  return resampled.at_zero[place] ? `${text}, not calibrated` : text;
}

// The same as a line on a bar, if there is one; `largest` is the loading at the right end.
export function whisker(k, place, largest) {
  if (!intervalTitle(k, place)) return null;
  const { low, high, at_zero } = facts.uncertainty.dimensions[k];
  const line = element(at_zero[place] ? "span.whisker.uncalibrated" : "span.whisker", { "aria-hidden": "true" });
  line.style.left = `${(100 * low[place]) / largest}%`;
  line.style.width = `${(100 * (high[place] - low[place])) / largest}%`;
  return line;
}

function topWords(k) {
  const { items, values } = facts.dimensions[k];
  const highs = facts.uncertainty?.dimensions[k].high.slice(0, N_WORDS) || [];
  const largest = Math.max(values[0], ...highs);
  if (!items.length) return element("p.note", {}, "No item has a loading on this dimension.");
  return element(
    "ol.top-words",
    {},
    items.slice(0, N_WORDS).map((item, place) => {
      const bar = element("span.word-bar", { "aria-hidden": "true" });
      bar.style.width = `${(100 * values[place]) / largest}%`;
      return element(
        "li",
        { title: titleOf(k, place) },
        wordOf(item),
        element("span.word-track", {}, bar, whisker(k, place, largest)),
      );
    }),
  );
}

// The label of an item, on up to two lines.
function wordOf(item) {
  return element(
    "a.word",
    { href: addressOf("item", item), tabindex: "-1", "aria-label": label(item) },
    breakable(shortLabel(item, ROOM.word)),
  );
}

// One of the top items, its loading and its interval.
function titleOf(k, place) {
  const { items, values } = facts.dimensions[k];
  const interval = intervalTitle(k, place);
  return `${label(items[place])}: ${short(values[place])}${interval && ` (${interval})`}`;
}

function topImages(k) {
  const { items } = facts.dimensions[k];
  return element(
    "ol.top-images",
    {},
    items
      .slice(0, N_IMAGES)
      .map((item, place) =>
        element(
          "li",
          {},
          element(
            "a",
            { href: addressOf("item", item), tabindex: "-1", title: titleOf(k, place) },
            picture(item),
            // Word joiners: no line consists of an ellipsis.
            element("span.caption", { "aria-hidden": "true" }, shortLabel(item, ROOM.caption).replaceAll("…", "\u2060…\u2060")),
          ),
        ),
      ),
  );
}

export function picture(item) {
  const node = element("img.thumb", { src: image(item), alt: label(item), decoding: "async" });
  node.addEventListener("load", () => node.classList.toggle("coarse", node.naturalWidth <= 32));
  return node;
}

// Arrows go from card to card; fields keep theirs.
function moveBetweenCards(event) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  if (!event.target.matches(".card-number") || !(event.key in steps)) return;
  const links = [...document.querySelectorAll(".card-number")];
  const next = links[links.indexOf(event.target) + steps[event.key]];
  if (next) next.focus();
  event.preventDefault();
}
