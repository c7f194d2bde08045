// The page: which view is shown (by the address behind #), shortcuts, colours, and whether the member answers.

import * as cluster from "./cluster.js";
import * as data from "./data.js";
import { dialog, h, setText, toast } from "./dom.js";
import * as overview from "./overview.js";
import * as slow from "./slow.js";
import * as sql from "./sql.js";
import { start, store, subscribe } from "./status.js";

const VIEWS = { overview, cluster, data, sql, slow };
const KEYS = { o: "#/", c: "#/cluster", d: "#/data", s: "#/sql", l: "#/slow" };
const main = document.getElementById("main");
let shown = null;
let shownHash = null;
let awaitsView = 0;

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const name = parts.length === 0 ? "overview" : parts[0];
  return { name: name in VIEWS ? name : "overview", parts, params: new URLSearchParams(query) };
}

const go = {
  /** Changes the address without showing another view. */
  replace(hash) {
    shownHash = hash;
    history.replaceState(null, "", hash);
  },
};

function show() {
  if (shown && location.hash === shownHash) return;
  shownHash = location.hash;
  const to = route();
  const isFirst = shown === null;
  shown = VIEWS[to.name].view(to, go);
  main.replaceChildren(shown.node);
  document.title = `${shown.title} · ${store.status?.cluster.name ?? "Filbert"} · Filbert`;
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.view === to.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!isFirst) {
    scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  }
  shown.arrived?.();
}

function answered() {
  const live = document.getElementById("live");
  live.dataset.state = store.error ? "lost" : "live";
  setText(document.getElementById("live-text"), store.error ? `No connection: ${store.error}` : store.status?.cluster.name ?? "");
  document.getElementById("nav-cluster").hidden = !store.status?.membership;
  shown?.update?.();
}

function help() {
  const rows = [
    ["g then o, c, d, s, l", "Overview, cluster, data, SQL, slow queries"], ["/", "Find; in SQL: the editor"], ["t", "Other colours"], ["?", "This help"],
    ["Ctrl or ⌘ + Enter", "Run the statement at the caret, or what is selected"], ["Ctrl or ⌘ + Shift + Enter", "Explain it"], ["Ctrl + Space", "Complete; arrows choose, Enter accepts; Tab accepts what is offered while typing"],
    ["Ctrl or ⌘ + /", "Comment lines out and in"], ["Esc", "Stop the statement; close what is open"],
    ["Arrows in a result", "Walk through cells; Enter shows a value, Ctrl or ⌘ + C copies it"], ["Arrows in a chart", "Read values of other moments"],
  ];
  dialog("Keyboard", h("dl", { class: "keys" }, rows.map(([keys, what]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, what)])));
}

function colours(isAsked) {
  const order = [null, "dark", "light"];
  // The earliest script reads the bare word, so it is not kept as JSON.
  const read = () => {
    try {
      return localStorage.getItem("filbert.theme");
    } catch {
      return document.documentElement.dataset.theme ?? null;
    }
  };
  let theme = order.includes(read()) ? read() : null;
  if (isAsked) {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    try {
      if (theme) localStorage.setItem("filbert.theme", theme);
      else localStorage.removeItem("filbert.theme");
    } catch {
      // It lasts until the page is left.
    }
  }
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  const label = { dark: "Dark", light: "Light" }[theme] ?? "System";
  document.getElementById("theme-text").textContent = label;
  document.getElementById("theme").setAttribute("aria-label", `Colours: ${label.toLowerCase()}`);
  if (isAsked) toast(`Colours: ${label.toLowerCase()}`);
}

function shortcut(event) {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.getElementById("dialog").open) return;
  if (Date.now() - awaitsView < 1500 && KEYS[event.key]) {
    location.hash = KEYS[event.key];
    show(); // Before the browser tells of the new address, so that the next key already meets the new view.
  } else if (event.key === "?") help();
  else if (event.key === "t") colours(true);
  else if (event.key === "/") {
    const field = main.querySelector("input[type=search], textarea");
    if (!field) return;
    event.preventDefault();
    field.focus();
  } else {
    awaitsView = event.key === "g" ? Date.now() : 0;
    return;
  }
  awaitsView = 0;
}

document.getElementById("skip").addEventListener("click", () => main.focus());
document.getElementById("help").addEventListener("click", help);
document.getElementById("theme").addEventListener("click", () => colours(true));
document.addEventListener("keydown", shortcut);
addEventListener("hashchange", show);
colours(false);
subscribe(answered);
show();
start();
