// Light, dark, or as the system has it.

import { byId, say } from "./dom.js";

const KEY_OF_THEME = "simdims-theme";
const THEMES = ["auto", "light", "dark"];

export function startTheme() {
  let chosen = "auto";
  try {
    chosen = localStorage.getItem(KEY_OF_THEME) || "auto";
  } catch {
    // a browser that keeps nothing starts as the system has it
  }
  show(THEMES.includes(chosen) ? chosen : "auto");
  byId("theme").addEventListener("click", () => {
    chosen = THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length];
    show(chosen);
    say(`Theme: ${chosen}`);
    try {
      localStorage.setItem(KEY_OF_THEME, chosen);
    } catch {
      // then for this visit only
    }
  });
}

function show(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = byId("theme");
  button.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[theme];
  button.setAttribute("aria-label", `Theme: ${theme}. Change it.`);
}
