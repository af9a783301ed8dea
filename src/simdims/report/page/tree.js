// How dimensions split as their number grows: one column per fit, lines from parents to children.

import { byId, drawnToWidth, element, fitted, isolated, percent, svg, textWidth } from "./dom.js";
import { facts, shortList } from "./data.js";
import { addressOf } from "./address.js";
import { givenName, onNames } from "./names.js";
import { saveButton } from "./picture.js";

const ROW = 24;

export function startTree() {
  const tree = facts.lineage;
  if (!tree) return;
  byId("lineage").hidden = false;
  byId("lineage-note").textContent = tree.said;
  const holder = element("div.chart");
  const find = () => holder.querySelector("svg");
  byId("lineage-chart").append(holder, element("p.buttons", {}, saveButton(find, "how dimensions split", "lineage")));
  drawnToWidth(holder, (width) => splits(tree, width));
  onNames(() => holder.replaceChildren(splits(tree, Math.floor(holder.clientWidth))));
}

function splits(tree, width) {
  const names = Math.min(320, width * 0.4);
  const last = tree.ranks.length - 1;
  const height = ROW * (1 + Math.max(...tree.nodes.map((node) => node.place))) + 46;
  const x = (column) => 14 + ((width - names - 28) * column) / Math.max(last, 1);
  const y = (place) => ROW * (place + 0.75);
  const size = (share) => 3 + 9 * Math.sqrt(share || 0);
  const kind = (node) => (node.stable ? "stable" : "passing");
  const lines = tree.nodes
    .filter((node) => node.parent !== null)
    .map((node) => {
      const parent = tree.nodes[node.parent];
      const [x0, y0, x1, y1] = [x(parent.column), y(parent.place), x(node.column), y(node.place)];
      const middle = (x0 + x1) / 2;
      return svg(`path.branch.${kind(node)}${node.same ? ".same" : ""}`, {
        d: `M${x0.toFixed(1)},${y0.toFixed(1)}C${middle.toFixed(1)},${y0.toFixed(1)} ${middle.toFixed(1)},${y1.toFixed(1)} ${x1.toFixed(1)},${y1.toFixed(1)}`,
      });
    });
  const marks = tree.nodes.map((node) => {
    const mark = svg(
      `circle.branch-mark.${kind(node)}`,
      { cx: x(node.column), cy: y(node.place), r: size(node.share) },
      svg("title", {}, told(tree, node)),
    );
    return node.opens === null ? mark : svg("a", { href: addressOf("dimension", node.opens) }, mark);
  });
  const texts = tree.nodes
    .filter((node) => node.column === last)
    .map((node) =>
      svg(
        `text.branch-name.${kind(node)}`,
        { x: x(last) + 16, y: y(node.place) + 4 },
        nameIn(node, names - 20),
        svg("title", {}, told(tree, node)),
      ),
    );
  const base = height - 34;
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": tree.said },
    tree.ranks.map((rank, column) =>
      svg("text.tick", { x: x(column), y: base + 14, "text-anchor": "middle" }, String(rank)),
    ),
    svg("text.axis-name", { x: x(0) - 8, y: height - 4 }, "Number of dimensions →"),
    lines,
    marks,
    texts,
  );
}

// The name that the reader gave, or the number and the top items.
function nameIn(node, width) {
  const given = node.opens === null ? "" : givenName(node.opens);
  const room = width - textWidth(`${node.dimension}: `);
  return `${node.dimension}: ${given ? isolated(fitted(given, room)) : shortList(node.items, room)}`;
}

function told(tree, node) {
  const from = node.parent === null ? "new" : `from ${tree.nodes[node.parent].dimension} of ${tree.nodes[node.parent].rank}, r ${node.correlation.toFixed(2)}`;
  return `Dimension ${node.dimension} of ${node.rank} (${percent(node.share)}; ${from}): ${node.items.map(isolated).join(", ")}`;
}
