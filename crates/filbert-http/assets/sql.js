// The view of statements: an editor, and below it the result, the plan and what was run before.

import { refreshNames } from "./complete.js";
import { copy, h, kept, setText } from "./dom.js";
import { editor } from "./editor.js";
import { ago, bytes, count, millis, moment } from "./format.js";
import { grid } from "./grid.js";
import { drawPlan } from "./plan.js";
import { run } from "./request.js";

const HISTORY_MAX = 200;
const TABS = ["result", "plan", "history"];
const NAMES = { result: "Result", plan: "Plan", history: "History" };
const isApple = /Mac|iPhone|iPad/.test(navigator.platform);
const QUERY = /^\s*(select|with|values|table|\()/i;

let instance = null;

/** The view; what it shows survives going elsewhere and coming back. */
export function view(route, go) {
  instance ??= make(go);
  instance.arrive(route);
  return instance;
}

function make(go) {
  const text = kept.get("draft", "SELECT table_schema, table_name\nFROM information_schema.tables\nLIMIT 100;");
  const edit = editor({ text, onChange: (value) => kept.set("draft", value) });
  let running = null;
  let tab = "result";

  const rowsMax = h("select", { class: "field", "aria-label": "Rows to read at most" },
    [1_000, 10_000, 100_000].map((rows) => h("option", { value: String(rows) }, `${count(rows)} rows`)));
  rowsMax.value = String(kept.get("rows", 1_000));
  rowsMax.addEventListener("change", () => kept.set("rows", Number(rowsMax.value)));
  const runButton = h("button", { type: "button", class: "button primary", id: "run", onclick: () => execute() }, "Run", h("kbd", { class: "wide" }, isApple ? "⌘↵" : "Ctrl ↵"));
  const explainButton = h("button", { type: "button", class: "button", id: "explain", onclick: () => explain() }, "Explain", h("kbd", { class: "wide" }, isApple ? "⌘⇧↵" : "Ctrl ⇧ ↵"));
  const stopButton = h("button", { type: "button", class: "button danger", id: "stop", hidden: true, onclick: () => running?.abort() }, "Stop");
  const told = h("p", { class: "sql-told", role: "status", "aria-live": "polite" });

  const tabs = Object.fromEntries(TABS.map((name) => [name, h("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, onclick: () => show(name, true),
  }, NAMES[name])]));
  const panels = Object.fromEntries(TABS.map((name) => [name, h("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, hidden: true })]));
  const tabList = h("div", { class: "tabs", role: "tablist", "aria-label": "Of the statement" }, Object.values(tabs));
  tabList.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length];
    show(next, true);
    tabs[next].focus();
  });

  const share = h("button", { type: "button", class: "button small", onclick: () => {
    const link = `${location.origin}${location.pathname}#/sql?q=${encodeURIComponent(edit.area.value)}`;
    copy(link, "Link");
  } }, "Copy link");
  const node = h("div", { class: "view sql-view" },
    h("div", { class: "view-head" }, h("h1", { tabindex: "-1" }, "SQL"), h("div", { class: "tools" },
      h("span", { class: "note wide", id: "editor-help" }, "Ctrl+Space completes, Ctrl+/ comments out; the statement at the caret runs"), share)),
    h("section", { class: "panel sql-editor", "aria-label": "Statement" }, edit.node,
      h("div", { class: "sql-bar" }, h("div", { class: "tools" }, runButton, explainButton, stopButton, rowsMax), told)),
    h("section", { class: "panel sql-out", "aria-label": "Answer" }, tabList, Object.values(panels)));

  panels.result.append(h("div", { class: "empty" }, h("strong", {}, "Nothing has run yet"), h("span", {}, "Write a statement and press ", h("kbd", {}, isApple ? "⌘ ↵" : "Ctrl ↵"), ".")));
  panels.plan.append(h("div", { class: "empty" }, h("strong", {}, "No plan yet"), h("span", {}, "Explain runs the statement at the caret and shows what took how long.")));
  drawHistory();

  function show(name, isAsked) {
    tab = name;
    for (const other of TABS) {
      tabs[other].setAttribute("aria-selected", String(other === name));
      tabs[other].tabIndex = other === name ? 0 : -1;
      panels[other].hidden = other !== name;
    }
    if (isAsked) go.replace(name === "result" ? "#/sql" : `#/sql/${name}`);
  }

  /** Does something with the statement at the caret that takes a while; one at a time. */
  async function busy(words, work) {
    const statement = edit.current();
    if (running || !statement) {
      setText(told, running ? "A statement is running: stop it first" : "There is no statement to run");
      return;
    }
    running = new AbortController();
    const started = performance.now();
    const tick = setInterval(() => setText(told, `${words} ${millis(performance.now() - started)}`), 100);
    edit.unmark();
    runButton.disabled = explainButton.disabled = true;
    stopButton.hidden = false;
    node.dataset.busy = "";
    try {
      await work(statement, running.signal);
    } catch (error) {
      failed(error, statement, performance.now() - started);
    } finally {
      clearInterval(tick);
      running = null;
      runButton.disabled = explainButton.disabled = false;
      stopButton.hidden = true;
      delete node.dataset.busy;
    }
  }

  function failed(error, statement, tookMs) {
    if (error.name === "AbortError") {
      setText(told, `Stopped after ${millis(tookMs)}`);
      return;
    }
    setText(told, `Failed after ${millis(tookMs)}`);
    const text = error.name === "TypeError" ? "The member does not answer." : error.message;
    const place = error.place && { from: error.place.from + statement.from, to: error.place.to + statement.from };
    const line = place ? edit.area.value.slice(0, place.from).split("\n").length : 0;
    // In the place of the answer before, which would be taken for this one's.
    panels[tab].replaceChildren(h("div", { class: "sql-failure", role: "alert" }, h("div", { class: "problem" },
      h("p", {}, h("strong", {}, error.code ? `Error ${error.code}` : "Error", line > 0 ? ` in line ${line}` : ""), ": ", text),
      error.help && h("div", { class: "help" }, h("pre", { class: "mono" }, error.help),
        h("button", { type: "button", class: "button small", onclick: () => edit.set(error.help) }, "Put into the editor")))));
    if (place) edit.mark(place.from, place.to);
    remember(statement.text, { ms: tookMs, error: text });
  }

  const execute = () => busy("Running", async (statement, signal) => {
    show("result", true);
    const result = await run(statement.text, { rowsMax: Number(rowsMax.value), signal });
    const hasRows = result.cols.length > 0;
    if (hasRows && result.rows.length > 0) panels.result.replaceChildren(grid(result, "Result"));
    else panels.result.replaceChildren(h("div", { class: "empty" }, h("strong", {}, hasRows ? "No rows" : done(result.rowcount)), hasRows && h("span", {}, result.cols.join(", "))));
    const rows = result.isCut ? `first ${count(result.rows.length)} rows, the rest was not read` : hasRows ? `${count(result.rows.length)} ${result.rows.length === 1 ? "row" : "rows"}` : done(result.rowcount);
    setText(told, `${rows} · ${millis(result.durationMs)}${hasRows ? ` · ${bytes(result.bytes)}` : ""}`);
    remember(statement.text, { ms: result.durationMs, rows: hasRows ? result.rows.length : result.rowcount });
    if (!hasRows) refreshNames(true);
  });

  const explain = () => busy("Explaining", async (statement, signal) => {
    show("plan", true);
    const inner = statement.text.replace(/^\s*explain(\s+analyze)?\s+/i, "");
    const isAnalyzed = QUERY.test(inner);
    const prefix = isAnalyzed ? "EXPLAIN ANALYZE " : "EXPLAIN ";
    const skipped = prefix.length - (statement.text.length - inner.length);
    const shifted = (error) => {
      if (error.place) error.place = { from: Math.max(0, error.place.from - skipped), to: Math.max(1, error.place.to - skipped) };
      throw error;
    };
    const result = await run(prefix + inner, { signal, rowsMax: 10_000 }).catch(shifted);
    const lines = result.rows.map((row) => (typeof row[0] === "object" ? JSON.stringify(row[0], null, 2) : String(row.at(-1))));
    panels.plan.replaceChildren(drawPlan(lines, isAnalyzed), h("div", { class: "grid-foot" }, h("span"), h("button", { type: "button", class: "button small", onclick: () => copy(lines.join("\n"), "Plan") }, "Copy as text")));
    setText(told, `${isAnalyzed ? "Analyzed" : "Explained"} · ${millis(result.durationMs)}`);
  });

  function remember(stmt, outcome) {
    const before = kept.get("history", []).filter((item) => item.stmt !== stmt);
    kept.set("history", [{ stmt, at: Date.now(), ...outcome }, ...before].slice(0, HISTORY_MAX));
    drawHistory();
  }

  function drawHistory() {
    const items = kept.get("history", []);
    if (items.length === 0) {
      panels.history.replaceChildren(h("div", { class: "empty" }, h("strong", {}, "No history"), h("span", {}, "What runs here is kept in this browser.")));
      return;
    }
    const list = h("ol", { class: "history" }, items.map((item) => h("li", {}, h("button", { type: "button", onclick: () => {
      edit.set(item.stmt);
      edit.area.focus();
    } }, h("code", {}, item.stmt), h("span", { class: "note", title: moment(item.at) },
      `${ago(item.at, Date.now())} · ${millis(item.ms)} · `, item.error ? h("span", { class: "bad" }, item.error.slice(0, 120)) : `${count(item.rows)} rows`)))));
    const clear = h("button", { type: "button", class: "button small", onclick: () => {
      kept.set("history", []);
      drawHistory();
    } }, "Clear history");
    panels.history.replaceChildren(list, h("div", { class: "grid-foot" }, h("span", { class: "note" }, `${items.length} of at most ${HISTORY_MAX} statements, kept in this browser`), clear));
  }

  // Wherever the focus is, as long as the view is shown.
  document.addEventListener("keydown", (event) => {
    if (!node.isConnected || document.getElementById("dialog").open) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.stopPropagation();
      if (event.shiftKey) explain();
      else execute();
    } else if (event.key === "Escape" && running) running.abort();
  }, true);

  return {
    node,
    title: "SQL",
    arrive(route) {
      refreshNames();
      show(TABS.includes(route.parts[1]) ? route.parts[1] : "result", false);
      const asked = route.params.get("q");
      if (asked === null) return;
      edit.set(asked);
      go.replace("#/sql");
      if (route.params.has("run")) execute();
      else if (route.params.has("explain")) explain();
    },
    arrived() {
      // On a phone the focus would bring up its keyboard.
      if (!matchMedia("(pointer: coarse)").matches) edit.area.focus();
    },
  };
}

function done(rowcount) {
  return rowcount > 0 ? `${count(rowcount)} ${rowcount === 1 ? "row" : "rows"} changed` : "Done";
}
