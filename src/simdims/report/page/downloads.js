// Downloads of names and loadings, and uploads of names.

import { byId, count, element, say } from "./dom.js";
import { column, facts, fileLabel } from "./data.js";
import { save } from "./files.js";
import { allNames, givenName, namesAreKept, namesFrom, onNames, sameNames, setNames } from "./names.js";

const ROWS_AT_ONCE = 500;

export function startDownloads() {
  const told = element("p.note", { id: "names-told" });
  const chooser = element("input.unseen", {
    type: "file",
    accept: ".json,.csv,.txt",
    tabindex: "-1",
    "aria-label": "File of names",
    id: "names-file",
  });
  const button = (text, act, id) => element("button", { type: "button", click: act, id }, text);
  byId("data-body").append(
    element(
      "div.beside",
      {},
      element(
        "div",
        {},
        element("h3", {}, "Names of the dimensions"),
        told,
        element(
          "p.buttons",
          {},
          button("Save names (CSV)", () => save("dimension_names.csv", [namesCsv()], "text/csv"), "save-names-csv"),
          button(
            "Save names (JSON)",
            () => save("dimension_names.json", [namesJson()], "application/json"),
            "save-names-json",
          ),
          button("Load names", () => chooser.click(), "read-names"),
          button("Delete names", forget, "forget-names"),
          chooser,
        ),
      ),
      element(
        "div",
        {},
        element("h3", {}, "The embedding"),
        element(
          "p.note",
          {},
          `One row per item and one column per dimension, stored ${facts.loadings.precision}.`,
        ),
        element(
          "p.buttons",
          {},
          button(
            "Save embedding (CSV)",
            async () => save("embedding.csv", await embeddingCsv(), "text/csv"),
            "save-embedding",
          ),
        ),
      ),
    ),
  );
  chooser.addEventListener("change", async () => {
    const file = chooser.files[0];
    chooser.value = "";
    if (file) readNames(await file.text(), told);
  });
  onNames(() => tellNames(told));
  tellNames(told);
}

function tellNames(told) {
  const number = Object.keys(allNames()).length;
  const same = sameNames();
  told.replaceChildren(
    !namesAreKept()
      ? "This browser does not store names after the page is closed: save them to a file."
      : number
        ? `${number} of ${count(facts.n_components, "dimension")} ${number === 1 ? "has a name" : "have names"}. They are stored in this browser; save them to a file to share them. `
        : "Name dimensions on their cards. Names are stored in this browser; save them to a file to share them. ",
    ...(number
      ? [
          "To use them in tables, figures and tests: ",
          element("code", {}, "simdims report FOLDER --names dimension_names.json"),
          " or ",
          element("code", {}, 'found.rename("dimension_names.json")'),
          same.length ? `, which needs different names for dimensions ${same.join(" and ")}.` : ".",
        ]
      : []),
  );
}

function readNames(text, told) {
  let names = {};
  try {
    names = namesFrom(text);
  } catch {
    // told below
  }
  const number = Object.keys(names).length;
  if (number) setNames({ ...allNames(), ...names });
  told.textContent = number
    ? `Loaded ${count(number, "name")}.`
    : "No names found in this file. Expected lines such as 1,animal, or a file from Save names.";
  say(told.textContent);
}

function forget() {
  if (Object.keys(allNames()).length && window.confirm("Delete all names of dimensions?")) setNames({});
}

// A cell of comma-separated text, with an apostrophe before what a spreadsheet would run as a formula.
function csvCell(raw) {
  const isNumber = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(raw);
  const text = /^'*[=+\-@\t\r]/.test(raw) && !isNumber ? `'${raw}` : raw;
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function namesCsv() {
  const rows = Array.from({ length: facts.n_components }, (_, k) => {
    const { share, reliability } = facts.dimensions[k];
    return [`dimension${k + 1}`, csvCell(givenName(k)), share ?? "", reliability ?? ""].join(",");
  });
  return ["dimension,name,share,reliability", ...rows].join("\n") + "\n";
}

function namesJson() {
  const names = Object.fromEntries(Object.entries(allNames()).map(([k, name]) => [`dimension${Number(k) + 1}`, name]));
  return JSON.stringify({ fingerprint: facts.fingerprint, names }, null, 1) + "\n";
}

// Names of columns: the reader's, unless two are the same or one is what another column is called.
function columnNames() {
  const given = Array.from({ length: facts.n_components }, (_, k) => givenName(k));
  const taken = (name) =>
    name === "item" || /^dimension\d+$/.test(name) || given.indexOf(name) !== given.lastIndexOf(name);
  return given.map((name, k) => (name && !taken(name) ? name : `dimension${k + 1}`));
}

// In parts, between which the page can do other things.
async function embeddingCsv() {
  const digits = facts.loadings.kind === "float32" ? 7 : 5;
  const parts = [["item", ...columnNames().map(csvCell)].join(",") + "\n"];
  for (let start = 0; start < facts.n_items; start += ROWS_AT_ONCE) {
    let text = "";
    for (let item = start; item < Math.min(start + ROWS_AT_ONCE, facts.n_items); item++) {
      text += csvCell(fileLabel(item));
      for (let k = 0; k < facts.n_components; k++) text += "," + Number(column(k)[item].toPrecision(digits));
      text += "\n";
    }
    parts.push(text);
    await new Promise((done) => setTimeout(done));
  }
  return parts;
}
