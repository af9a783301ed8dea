// Elements, numbers and words: what every other script uses. Texts only ever become text nodes, never HTML.

const SVG = "http://www.w3.org/2000/svg";

// element("p.note", {title: "x"}, "text", child): attributes that are functions listen to events.
export function element(kind, attributes, ...children) {
  const [tag, ...classes] = kind.split(".");
  return furnish(document.createElement(tag), classes, attributes, children);
}

export function svg(kind, attributes, ...children) {
  const [tag, ...classes] = kind.split(".");
  return furnish(document.createElementNS(SVG, tag), classes, attributes, children);
}

function furnish(node, classes, attributes, children) {
  if (classes.length) node.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function byId(id) {
  return document.getElementById(id);
}

// Say something to people who listen to the page.
export function say(text) {
  byId("said").textContent = text;
}

// Letters and marks of scripts that run from right to left, and characters that turn the direction of writing.
const DIRECTED = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufeff\ud802\ud803\ud83a\ud83b]/;

// A text that turns nothing around it: isolated where it has a direction of its own.
export function isolated(text) {
  return DIRECTED.test(text) ? `\u2068${text.replace(/[\u2066-\u2069]/g, "")}\u2069` : text;
}

const MOST_LETTERS = 200;
let pen = null;

// How wide a text in a picture is.
export function textWidth(text) {
  if (!pen) {
    pen = element("canvas").getContext("2d");
    pen.font = `11.5px ${getComputedStyle(document.documentElement).getPropertyValue("--sans")}`;
  }
  return pen.measureText(text).width;
}

// As much of a text as a picture has room for, with an ellipsis where that is not all. If another text begins with the
// same `alike` characters and there is no room for more, the cut is in the middle, before what tells the texts apart.
export function fitted(text, room, alike = 0) {
  const letters = lettersOf(text);
  const apart = alike ? lettersOf(text.slice(0, alike)).length : 0;
  const some = (many) => {
    if (many > apart) return letters.slice(0, many).join("").trimEnd() + "…";
    const kept = many >> 1;
    const from = Math.min(letters.length - kept, apart - (kept >> 1));
    const end = letters.slice(from, from + kept).join("").trim();
    return `${letters.slice(0, many - kept).join("").trimEnd()}…${end}${from + kept < letters.length ? "…" : ""}`;
  };
  if (letters.length <= MOST_LETTERS && textWidth(text) <= room) return text;
  let fits = 0;
  let over = letters.length;
  while (over - fits > 1) {
    const middle = (fits + over) >> 1;
    if (textWidth(some(middle)) <= room) fits = middle;
    else over = middle;
  }
  return some(fits);
}

// A text that may break after the marks that join the words of file names.
export function breakable(text) {
  return text.split(/(?<=[_/.-])/).flatMap((part, place) => (place ? [element("wbr"), part] : [part]));
}

// What readers take for letters: a base with its marks, a flag, a family of emoji.
function lettersOf(text) {
  const some = [...text].slice(0, 8 * MOST_LETTERS).join("");
  if (!Intl.Segmenter) return [...some];
  return Array.from(new Intl.Segmenter().segment(some), (one) => one.segment);
}

export function percent(share) {
  if (share === null || !Number.isFinite(share)) return "–";
  const value = 100 * share;
  if (value > 0 && value < 0.05) return "<0.1%";
  return (value >= 9.95 || value === 0 ? value.toFixed(0) : value.toFixed(1)) + "%";
}

// About three digits.
export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

export function two(value) {
  return value === null || !Number.isFinite(value) ? "–" : value.toFixed(2);
}

// A number and its standard error, with two digits of the error.
export function withError(value, error) {
  if (!error) return short(value);
  const digits = Math.max(0, 1 - Math.floor(Math.log10(error)));
  return digits > 8 ? `${short(value)} ± ${short(error)}` : `${value.toFixed(digits)} ± ${error.toFixed(digits)}`;
}

// A p-value, as summaries and figures have it.
export function pText(value) {
  return value < 0.001 ? value.toPrecision(2) : value.toFixed(3);
}

export function whole(value) {
  return value.toLocaleString("en-US");
}

export function count(value, what, many) {
  return `${whole(value)} ${value === 1 ? what : many || what + "s"}`;
}

// Round numbers between low and high, about `wanted` of them.
export function ticks(low, high, wanted) {
  if (!(high > low)) return [low];
  const raw = (high - low) / Math.max(wanted, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
}

// A number on an axis, with as many decimals as the others on it, and without the digits that arithmetic adds.
export function tickText(value, others) {
  const largest = Math.max(...others.map(Math.abs));
  if (largest >= 1e5) return value.toExponential(0);
  if (largest < 1e-4) return String(Number(value.toPrecision(6)));
  const decimals = others.map((one) => (String(Number(one.toPrecision(6))).split(".")[1] || "").length);
  return value.toFixed(Math.max(...decimals));
}

// How wide pictures are drawn for paper: beside something else, and over the whole page.
const ON_PAPER = { half: 400, whole: 700 };

// Draw for the width that there is, again when it changes, and for paper before it is printed.
export function drawnToWidth(holder, draw) {
  let drawn = 0;
  window.addEventListener("beforeprint", () => {
    if (!holder.isConnected) return;
    holder.replaceChildren(draw(holder.closest(".halves, .beside") ? ON_PAPER.half : ON_PAPER.whole));
  });
  window.addEventListener("afterprint", () => {
    drawn = 0;
    redraw();
  });
  const redraw = () => {
    const width = Math.floor(holder.clientWidth);
    if (!width || width === drawn) return;
    drawn = width;
    holder.replaceChildren(draw(width));
  };
  new ResizeObserver(redraw).observe(holder);
  redraw();
}
