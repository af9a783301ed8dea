// Files that the reader saves.

import { element, say } from "./dom.js";

export function save(name, parts, type) {
  // The mark at the start tells spreadsheets that the text is UTF-8.
  const blob = new Blob(type === "text/csv" ? ["\ufeff", ...parts] : parts, { type });
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  say(`Saved ${name}`);
}
