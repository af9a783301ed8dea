// The page starts here.

import { byId } from "./dom.js";
import { decodeWhenIdle, facts } from "./data.js";
import { startTheme } from "./theme.js";
import { startSearch } from "./search.js";
import { startCards } from "./cards.js";
import { startHeat } from "./overview.js";
import { startMap } from "./map.js";
import { startMethods } from "./methods.js";
import { startFit } from "./fit.js";
import { startCurve } from "./curve.js";
import { startTree } from "./tree.js";
import { startSystems } from "./systems.js";
import { startComparisons } from "./comparisons.js";
import { startTests } from "./tests.js";
import { startDownloads } from "./downloads.js";
import { startPanel } from "./panel.js";

startTheme();
startSearch();
startCards();
startHeat();
startMap();
startFit();
startCurve();
startTree();
startSystems();
startComparisons();
startTests();
startMethods();
startDownloads();
startPanel();
decodeWhenIdle();
byId("footer").textContent =
  `Written by simdims ${facts.version}. This page is one self-contained file: it loads nothing and sends nothing.`;
