// The panel over the page that shows one dimension or one item.

import { byId, element, say } from "./dom.js";
import { facts, label } from "./data.js";
import { clearAddress, openedBy } from "./address.js";
import { headingOf } from "./names.js";
import { dimensionView } from "./dimension.js";
import { itemView } from "./item.js";

export function startPanel() {
  const panel = byId("panel");
  window.addEventListener("hashchange", follow);
  panel.addEventListener("close", () => {
    if (openedBy(location.hash, facts.n_components, facts.n_items)) clearAddress();
    document.documentElement.classList.remove("panel-open");
  });
  panel.addEventListener("click", (event) => {
    if (event.target === panel) panel.close();
  });
  follow();
}

function follow() {
  const panel = byId("panel");
  const opened = openedBy(location.hash, facts.n_components, facts.n_items);
  if (!opened) {
    if (panel.open) panel.close();
    return;
  }
  const close = element(
    "button.quiet.close",
    { type: "button", "aria-label": "Close", click: () => panel.close() },
    "Close",
  );
  const view = opened.kind === "dimension" ? dimensionView(opened.place) : itemView(opened.place);
  panel.replaceChildren(element("div.panel-inner", {}, close, view));
  if (!panel.open) panel.showModal();
  document.documentElement.classList.add("panel-open");
  panel.scrollTop = 0;
  byId("panel-title").focus({ preventScroll: true });
  const title = opened.kind === "dimension" ? headingOf(opened.place) : label(opened.place);
  panel.setAttribute("aria-label", title);
  say(title);
}
