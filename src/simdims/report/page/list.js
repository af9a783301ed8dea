// A list of any length that only ever holds the rows in view; arrows move in it, Enter opens.

import { element } from "./dom.js";

const SPARE = 6;
let made = 0;

// {label, height (of a row), length, row(place) -> children, open(place)}
export function virtualList({ label, height, length, row, open }) {
  const id = `list-${++made}`;
  const space = element("div.list-space", { role: "presentation" });
  const box = element("div.list", { role: "listbox", tabindex: "0", "aria-label": label }, space);
  let active = 0;
  let from = -1;
  let to = -1;
  space.style.height = `${length * height}px`;

  function option(place) {
    const node = element(
      "div.list-row",
      {
        role: "option",
        id: `${id}-${place}`,
        "aria-posinset": place + 1,
        "aria-setsize": length,
        "aria-selected": place === active ? "true" : "false",
        click: () => {
          active = place;
          open(place);
        },
      },
      row(place),
    );
    node.style.top = `${place * height}px`;
    node.style.height = `${height}px`;
    return node;
  }

  function render(anew) {
    const first = Math.max(0, Math.floor(box.scrollTop / height) - SPARE);
    const last = Math.min(length, Math.ceil((box.scrollTop + box.clientHeight) / height) + SPARE);
    if (!anew && first === from && last === to) return;
    [from, to] = [first, last];
    space.replaceChildren(...Array.from({ length: last - first }, (_, i) => option(first + i)));
    if (length) box.setAttribute("aria-activedescendant", `${id}-${active}`);
  }

  function move(place) {
    active = Math.max(0, Math.min(length - 1, place));
    const top = active * height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight;
    render(true);
  }

  const page = () => Math.max(1, Math.floor(box.clientHeight / height) - 1);
  const steps = {
    ArrowDown: () => active + 1,
    ArrowUp: () => active - 1,
    PageDown: () => active + page(),
    PageUp: () => active - page(),
    Home: () => 0,
    End: () => length - 1,
  };
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && length) open(active);
    else if (steps[event.key]) move(steps[event.key]());
    else return;
    event.preventDefault();
  });
  box.addEventListener("scroll", () => render(false), { passive: true });
  new ResizeObserver(() => render(true)).observe(box);
  return { box, moveTo: move };
}
