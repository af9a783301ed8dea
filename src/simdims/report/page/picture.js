// Pictures as SVG files, in the light theme, with styles as attributes that every program understands.

import { element } from "./dom.js";
import { save } from "./files.js";

const LINE = ["stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin"];
const LETTERS = ["font-family", "font-size", "font-weight", "text-anchor"];
const SHAPES = ["rect", "circle", "line", "path", "polygon", "polyline"];

// A button that saves a picture: `find` returns it, `what` says what it shows.
export function saveButton(find, what, name) {
  return element(
    "button.quiet.save-picture",
    { type: "button", "aria-label": `Save ${what} as SVG`, click: () => saveSvg(find(), name) },
    "Save SVG",
  );
}

// Save a picture that is in the page.
export function saveSvg(picture, name) {
  save(`${name}.svg`, [svgText(picture)], "image/svg+xml");
}

function svgText(picture) {
  const root = document.documentElement;
  const theme = root.dataset.theme;
  root.dataset.theme = "light";
  const copy = picture.cloneNode(true);
  const nodes = copy.querySelectorAll("*");
  picture.querySelectorAll("*").forEach((node, place) => settle(node, nodes[place]));
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  copy.querySelectorAll(".hit, .cursor").forEach((node) => node.remove());
  const [, , width, height] = picture.getAttribute("viewBox").split(" ");
  const about = copy.getAttribute("aria-label");
  for (const name of copy.getAttributeNames()) if (name !== "viewBox") copy.removeAttribute(name);
  for (const [name, value] of Object.entries({ xmlns: "http://www.w3.org/2000/svg", width, height }))
    copy.setAttribute(name, value);
  const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
  title.textContent = about;
  copy.prepend(title);
  return new XMLSerializer().serializeToString(copy);
}

// What the style sheet says of a node, as attributes of its copy.
function settle(node, copy) {
  const style = getComputedStyle(node);
  const set = (name) => copy.setAttribute(name, style.getPropertyValue(name).replaceAll('"', ""));
  for (const name of ["href", "tabindex", "style"]) if (node.tagName !== "image" || name !== "href") copy.removeAttribute(name);
  if (node.tagName === "text") ["fill", ...LETTERS].forEach(set);
  if (node.tagName === "image") set("image-rendering");
  if (node.tagName === "stop") ["stop-color", "stop-opacity"].forEach(set);
  if (SHAPES.includes(node.tagName)) {
    ["fill", "stroke"].forEach(set);
    if (style.stroke !== "none") LINE.forEach(set);
    for (const name of ["opacity", "fill-opacity"]) if (style.getPropertyValue(name) !== "1") set(name);
  }
  if (!copy.classList.contains("hit") && !copy.classList.contains("cursor")) copy.removeAttribute("class");
}
