// The embedded data: facts at once, arrays when they are asked for, each decoded once.

import { byId, fitted, isolated, textWidth } from "./dom.js";

export const facts = JSON.parse(textOf("facts"));
const labels = JSON.parse(textOf("labels"));
const MISSING = 65535;
const TRIANGLE_ORDER = facts.n_items;

const columns = [];
const orders = [];
let lines = null;
let images = null;
let blocks = null;
let pairs = null;
let lowered = null;
let sorted = null;

function textOf(name) {
  return byId(`data-${name}`).textContent;
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

const bytes = {};

// The bytes of a data element.
export function bytesNamed(name) {
  bytes[name] = bytes[name] || bytesOf(textOf(name));
  return bytes[name];
}

// What the page calls an item, in a form that can stand within any text.
export function label(item) {
  return isolated(plainLabel(item));
}

// The same as it is: to be measured, cut or sought.
export function plainLabel(item) {
  if (!facts.labelled) return `item ${item}`;
  return labels[item].trim() ? labels[item] : `(item ${item}, no name)`;
}

// The label of an item, cut to a width where it is longer; labels that begin alike keep what tells them apart.
export function shortLabel(item, room) {
  return isolated(cut(plainLabel(item), room));
}

// The labels of some items, as many as there is room for, but at least the first.
export function shortList(texts, room) {
  for (let many = texts.length; many > 0; many--) {
    const text = texts.slice(0, many).map(isolated).join(", ") + (many < texts.length ? ", …" : "");
    if (textWidth(text) <= room) return text;
  }
  return texts.length ? isolated(cut(texts[0], room)) : "";
}

function cut(text, room) {
  return textWidth(text) <= room ? text : fitted(text, room, sharedStart(text));
}

// How many characters at its start a label shares with another one: with a neighbour in alphabetical order.
function sharedStart(text) {
  sorted = sorted || Array.from(new Set(Array.from({ length: facts.n_items }, (_, item) => plainLabel(item)))).sort();
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < text) low = middle + 1;
    else high = middle;
  }
  const alike = (other) => {
    let many = 0;
    while (other && many < text.length && other[many] === text[many]) many++;
    return many;
  };
  return Math.max(alike(sorted[low - 1]), alike(sorted[sorted[low] === text ? low + 1 : low]));
}

// What a file calls an item: its label, or its number.
export function fileLabel(item) {
  return facts.labelled ? labels[item] : String(item);
}

export function image(item) {
  if (!facts.pictured) return null;
  images = images || textOf("images").split("\n");
  return images[item];
}

// The loadings of all items on one dimension.
export function column(k) {
  if (columns[k]) return columns[k];
  lines = lines || textOf("loadings").split("\n");
  const { buffer } = bytesOf(lines[k]);
  columns[k] = facts.loadings.kind === "float32" ? new Float32Array(buffer) : scaled(new Uint16Array(buffer), k);
  return columns[k];
}

function scaled(steps, k) {
  const scale = facts.loadings.scales[k];
  const values = new Float32Array(steps.length);
  for (let i = 0; i < steps.length; i++) values[i] = steps[i] * scale;
  return values;
}

// Decode the rest while nobody waits, so that the first item opens as fast as the next.
export function decodeWhenIdle() {
  if (!window.requestIdleCallback) return;
  let k = 0;
  const some = (deadline) => {
    while (k < facts.n_components && deadline.timeRemaining() > 4) column(k++);
    if (k < facts.n_components) requestIdleCallback(some);
  };
  requestIdleCallback(some);
}

// The loadings of one item on all dimensions.
export function row(item) {
  return Float64Array.from({ length: facts.n_components }, (_, k) => column(k)[item]);
}

// All items, the one with most of a dimension first; equal ones in their own order.
export function ranking(k) {
  if (!orders[k]) {
    const values = column(k);
    orders[k] = Uint32Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b);
  }
  return orders[k];
}

export function product(one, other) {
  let sum = 0;
  for (let k = 0; k < facts.n_components; k++) sum += column(k)[one] * column(k)[other];
  return sum;
}

// The items that are predicted to be most similar to one: [{item, predicted}], the nearest first.
export function neighbours(item, wanted) {
  const own = row(item);
  const sums = new Float64Array(facts.n_items);
  for (let k = 0; k < facts.n_components; k++) {
    if (own[k] === 0) continue;
    const values = column(k);
    for (let j = 0; j < sums.length; j++) sums[j] += own[k] * values[j];
  }
  const nearest = [];
  for (let j = 0; j < sums.length; j++) {
    if (j === item || sums[j] <= 0) continue;
    if (nearest.length === wanted && sums[j] <= nearest[wanted - 1].predicted) continue;
    let place = nearest.length;
    while (place > 0 && nearest[place - 1].predicted < sums[j]) place--;
    nearest.splice(place, 0, { item: j, predicted: sums[j] });
    if (nearest.length > wanted) nearest.pop();
  }
  return nearest;
}

// Which dimensions make two items similar: the share of w_ik w_jk in w_i . w_j, the largest first.
export function reasons(one, other) {
  const first = row(one);
  const second = row(other);
  const parts = Array.from(first, (value, k) => ({ k, part: value * second[k] })).filter((each) => each.part > 0);
  const total = parts.reduce((sum, each) => sum + each.part, 0);
  return parts.map((each) => ({ k: each.k, share: each.part / total })).sort((a, b) => b.share - a.share);
}

// Observed similarity of two items: a number, null where it is missing, undefined where the page does not hold it.
export function observed(one, other) {
  if (!facts.has_all_pairs || one === other) return undefined;
  pairs = pairs || new Uint16Array(bytesOf(textOf("observed")).buffer);
  const [i, j] = one < other ? [one, other] : [other, one];
  return similarityOf(pairs[i * TRIANGLE_ORDER - (i * (i + 1)) / 2 + (j - i - 1)]);
}

// Observed similarities of a dimension's top items, as rows.
export function block(k) {
  blocks = blocks || new Uint16Array(bytesOf(textOf("blocks")).buffer);
  const n = facts.n_top;
  const m = facts.dimensions[k].items.length;
  return Array.from({ length: m }, (_, i) =>
    Array.from({ length: m }, (_, j) => similarityOf(blocks[(k * n + i) * n + j])),
  );
}

function similarityOf(step) {
  return step === MISSING ? null : (step * facts.largest_similarity) / (MISSING - 1);
}

// Items whose labels hold a text, those that begin with it first.
export function itemsNamed(text, wanted) {
  lowered = lowered || Array.from({ length: facts.n_items }, (_, item) => plainLabel(item).toLowerCase());
  const sought = text.trim().toLowerCase();
  const begins = [];
  const holds = [];
  for (let item = 0; item < lowered.length; item++) {
    const place = lowered[item].indexOf(sought);
    if (place === 0) begins.push(item);
    else if (place > 0) holds.push(item);
  }
  const exact = (item) => (lowered[item] === sought ? 0 : 1);
  begins.sort((a, b) => exact(a) - exact(b));
  return { items: [...begins, ...holds].slice(0, wanted), total: begins.length + holds.length };
}
