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

// A number on an axis, without the digits that arithmetic adds.
export function tickText(value) {
  return Math.abs(value) >= 1e5 ? value.toExponential(0) : String(Number(value.toPrecision(6)));
}

// Draw for the width that there is, again when it changes.
export function drawnToWidth(holder, draw) {
  let drawn = 0;
  const redraw = () => {
    const width = Math.floor(holder.clientWidth);
    if (!width || width === drawn) return;
    drawn = width;
    holder.replaceChildren(draw(width));
  };
  new ResizeObserver(redraw).observe(holder);
  redraw();
}
