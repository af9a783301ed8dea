// Search for an item by its label, or for a dimension by its name.

import { byId, count, element, say, whole } from "./dom.js";
import { facts, itemsNamed, label } from "./data.js";
import { go } from "./address.js";
import { allNames, headingOf } from "./names.js";
import { picture } from "./cards.js";

const N_ITEMS = 40;
const N_DIMENSIONS = 5;

export function startSearch() {
  const list = element("ul", { id: "found", role: "listbox", "aria-label": "Found", hidden: true });
  const field = element("input", {
    type: "search",
    id: "sought",
    role: "combobox",
    placeholder: `Search ${whole(facts.n_items)} items`,
    "aria-label": "Search for an item or a named dimension",
    "aria-expanded": "false",
    "aria-controls": "found",
    "aria-autocomplete": "list",
    autocomplete: "off",
    spellcheck: "false",
  });
  let results = [];
  let active = -1;

  function close() {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  function search() {
    if (!field.value.trim()) return close();
    const { found, total } = sought(field.value);
    results = found;
    active = found.length ? 0 : -1;
    list.replaceChildren(...found.map((one, place) => option(one, place, choose)));
    if (total > found.length || !found.length)
      list.append(
        element(
          "li.note",
          { role: "presentation" },
          found.length ? `${whole(found.length)} of ${whole(total)}: type to narrow down` : "Nothing found",
        ),
      );
    list.hidden = false;
    list.scrollTop = 0;
    field.setAttribute("aria-expanded", "true");
    say(count(total, "result"));
    mark();
  }

  function mark() {
    results.forEach((_, place) =>
      list.children[place].setAttribute("aria-selected", place === active ? "true" : "false"),
    );
    if (active < 0) return;
    field.setAttribute("aria-activedescendant", `found-${active}`);
    list.children[active].scrollIntoView({ block: "nearest" });
  }

  function choose(place) {
    const { kind, place: where } = results[place];
    close();
    field.value = "";
    go(kind, where);
  }

  field.addEventListener("input", search);
  field.addEventListener("focus", search);
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && results.length && !list.hidden) {
      active = (active + step + results.length) % results.length;
      mark();
    } else if (event.key === "Enter" && active >= 0 && !list.hidden) choose(active);
    else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, select, textarea, dialog")) return;
    event.preventDefault();
    field.focus();
  });
  byId("search").append(field, list);
}

function sought(text) {
  const wanted = text.trim().toLowerCase();
  const dimensions = Object.entries(allNames())
    .filter(([, name]) => name.toLowerCase().includes(wanted))
    .slice(0, N_DIMENSIONS)
    .map(([k]) => ({ kind: "dimension", place: Number(k) }));
  const { items, total } = itemsNamed(text, N_ITEMS);
  return {
    found: [...dimensions, ...items.map((place) => ({ kind: "item", place }))],
    total: total + dimensions.length,
  };
}

function option({ kind, place }, at, choose) {
  // A press, not a click: the field must not lose its focus, which closes the list.
  const press = (event) => {
    event.preventDefault();
    choose(at);
  };
  return element(
    "li",
    { role: "option", id: `found-${at}`, mousedown: press },
    kind === "item" && facts.pictured ? picture(place) : null,
    element("span", {}, kind === "item" ? label(place) : headingOf(place)),
    kind === "dimension" ? element("span.note", {}, ` dimension ${place + 1}`) : null,
  );
}
