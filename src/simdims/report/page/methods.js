// The Methods paragraph goes to the clipboard.

import { byId, say } from "./dom.js";

export function startMethods() {
  byId("copy-methods").addEventListener("click", async () => {
    const references = [...byId("methods-references").children].map((line) => line.textContent);
    const copied = await copyText(`${byId("methods-text").textContent}\n\n${references.join("\n")}`);
    byId("copy-methods").textContent = copied ? "Copied" : "Select the text to copy it";
    say(copied ? "Copied the Methods paragraph" : "The browser does not allow to copy; select the text");
    setTimeout(() => (byId("copy-methods").textContent = "Copy paragraph and references"), 3000);
  });
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
