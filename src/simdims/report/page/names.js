// Names of dimensions: those of the result, and what the reader makes of them, which is kept in the browser for these
// data, and read and written as files.

import { isolated } from "./dom.js";
import { facts } from "./data.js";

// One entry a dimension: two tabs that name different dimensions at the same time do not overwrite each other.
const PLAIN_KEY = `simdims-names-${facts.fingerprint}-`;
// With names in the file, changes belong to these names: those of an earlier page do not override them.
const KEY = facts.names ? `${PLAIN_KEY}${facts.names.key}-` : PLAIN_KEY;
const LONGEST = 80;
const listeners = [];
let given = read();
let kept = true;

function read() {
  try {
    const keys = facts.dimensions.map((_, k) => [k, localStorage.getItem(KEY + k) ?? nameBefore(k)]);
    return cleaned(Object.fromEntries(keys));
  } catch {
    return cleaned({ ...facts.names?.given });
  }
}

// What a dimension is called if nobody has named it on this page.
function nameBefore(k) {
  return facts.names?.given[k] || (facts.names && localStorage.getItem(PLAIN_KEY + k)) || "";
}

// Keep what is a name of a dimension of these data; anything else is left out.
function cleaned(names) {
  const good = {};
  for (const [key, name] of Object.entries(names || {})) {
    const k = Number(key);
    if (Number.isInteger(k) && k >= 0 && k < facts.n_components && typeof name === "string" && name.trim())
      good[k] = name === facts.names?.given[k] ? name : name.trim().slice(0, LONGEST);
  }
  return good;
}

export function givenName(k) {
  return given[k] || "";
}

// Whether the reader has named the dimension, rather than the file.
export function isNamedHere(k) {
  return Boolean(given[k]) && given[k] !== facts.names?.given[k];
}

// The name, or the number in words.
export function nameOf(k) {
  return given[k] ? isolated(given[k]) : `dimension ${k + 1}`;
}

export function headingOf(k) {
  return given[k] ? isolated(given[k]) : `Dimension ${k + 1}`;
}

export function allNames() {
  return { ...given };
}

export function setName(k, name) {
  given = cleaned({ ...given, [k]: name });
  keep([k]);
}

export function setNames(names) {
  given = cleaned(names);
  keep(facts.dimensions.keys());
}

function keep(changed) {
  try {
    for (const k of changed) {
      if (given[k] || nameBefore(k)) localStorage.setItem(KEY + k, given[k] || "");
      else localStorage.removeItem(KEY + k);
    }
    kept = true;
  } catch {
    kept = false;
  }
  listeners.forEach((listen) => listen());
}

// Names given to the same data in another tab (no key: everything was cleared).
window.addEventListener("storage", (event) => {
  if (event.key !== null && !event.key.startsWith(KEY)) return;
  given = read();
  listeners.forEach((listen) => listen());
});

// A name that is still being typed when the page is left counts.
window.addEventListener("pagehide", () => {
  if (document.activeElement?.dataset?.nameOf) document.activeElement.blur();
});

// Dimensions that share a name, as numbers from 1: files of results need different ones.
export function sameNames() {
  const numbers = facts.dimensions.map((_, k) => k).filter((k) => given[k]);
  const twin = numbers.find((k) => numbers.some((other) => other > k && given[other] === given[k]));
  return twin === undefined ? [] : numbers.filter((k) => given[k] === given[twin]).map((k) => k + 1);
}

// Whether the browser keeps names when the page is closed.
export function namesAreKept() {
  return kept;
}

export function onNames(listen) {
  listeners.push(listen);
}

// Names out of a file that this page wrote, or of two columns: dimension (1, 2, ... or dimension1, ...) and name.
export function namesFrom(text) {
  const found = text.trim().startsWith("{")
    ? Object.entries(jsonNames(text))
    : csvRows(text).map(([key, name]) => [key, name.replace(/^'(?='*[=+\-@\t\r])/, "")]);
  const names = {};
  for (const [key, name] of found) {
    const match = /^(?:dimension)?\s*(\d+)$/i.exec(String(key).trim());
    if (match) names[Number(match[1]) - 1] = name;
  }
  return cleaned(names);
}

function jsonNames(text) {
  const read = JSON.parse(text);
  return read.names && typeof read.names === "object" ? read.names : read;
}

// Cells of comma-separated text, with quotes as spreadsheets write them.
export function csvRows(text) {
  const rows = [[]];
  const cell = /("(?:[^"]|"")*"|[^,\r\n]*)(,|\r?\n|$)/y;
  for (let match; cell.lastIndex < text.length && (match = cell.exec(text));) {
    const raw = match[1];
    rows[rows.length - 1].push(raw.startsWith('"') ? raw.slice(1, -1).replaceAll('""', '"') : raw);
    if (match[2] && match[2] !== ",") rows.push([]);
  }
  return rows.filter((cells) => cells.length > 1);
}
