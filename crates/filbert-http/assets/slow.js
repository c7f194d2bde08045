// Statements that took long, from `sys.jobs_log`: each by itself, or together where they differ in their values only.

import { copy, h } from "./dom.js";
import { ago, count, millis, moment } from "./format.js";
import { OWN, ask } from "./request.js";
import { store } from "./status.js";
import { tokens } from "./tokens.js";

const SHOWN_MAX = 200;
/** Statements read from the log: shapes need many to be told apart. */
const READ_MAX = { each: 1_000, shape: 10_000 };
const REFRESH_MS = 10_000;

export function view(route, go) {
  const state = { by: route.params.get("by") === "shape" ? "shape" : "each", find: route.params.get("q") ?? "", open: new Set() };
  let jobs = null;
  let problem = null;
  let readAt = 0;
  let isReading = false;

  const find = h("input", { class: "field grow", type: "search", placeholder: "Find in statements", "aria-label": "Find in statements", value: state.find });
  const by = Object.fromEntries([["each", "Each run"], ["shape", "By shape"]].map(([name, label]) => [name, h("button", { type: "button", onclick: () => {
    state.by = name;
    remember();
    draw();
    read();
  } }, label)]));
  const refresh = h("button", { type: "button", class: "button", onclick: () => read() }, "Refresh");
  const body = h("div", {});
  const note = h("p", {}, "");
  const node = h("div", { class: "view" },
    h("div", { class: "view-head" }, h("div", {}, h("h1", { tabindex: "-1" }, "Slow queries"), note),
      h("div", { class: "tools" }, find, h("div", { class: "segments", role: "group", "aria-label": "Grouping" }, Object.values(by)), refresh)),
    h("section", { class: "panel", "aria-label": "Statements" }, body));
  find.addEventListener("input", () => {
    state.find = find.value;
    remember();
    draw();
  });

  function remember() {
    const params = new URLSearchParams();
    if (state.by !== "each") params.set("by", state.by);
    if (state.find) params.set("q", state.find);
    go.replace(`#/slow${params.size > 0 ? "?" + params : ""}`);
  }

  async function read() {
    if (isReading) return;
    isReading = true;
    readAt = Date.now();
    try {
      const rows = await ask(`SELECT id, stmt, started, ended, error, username FROM sys.jobs_log ORDER BY ended - started DESC LIMIT ${READ_MAX[state.by]}`);
      jobs = rows.map((row) => ({ ...row, started: Number(row.started), ms: Math.max(0, Number(row.ended) - Number(row.started)) })).filter((job) => !job.stmt.endsWith(OWN));
      problem = null;
    } catch (error) {
      problem = error.name === "TypeError" ? "the member does not answer" : error.message;
    }
    isReading = false;
    draw();
  }

  function draw() {
    for (const [name, button] of Object.entries(by)) button.setAttribute("aria-pressed", String(state.by === name));
    if (jobs === null) {
      body.replaceChildren(problem ? h("p", { class: "problem" }, `The log of statements cannot be read: ${problem}`) : h("p", { class: "empty" }, "Reading the log …"));
      return;
    }
    const wanted = state.find.toLowerCase();
    const found = jobs.filter((job) => wanted === "" || job.stmt.toLowerCase().includes(wanted));
    const items = (state.by === "shape" ? shapes(found) : found).sort((a, b) => b.ms - a.ms).slice(0, SHOWN_MAX);
    note.textContent = problem ? `The log cannot be read now: ${problem}` : `${state.by === "shape" ? `${count(items.length)} shapes` : `The ${count(items.length)} longest`} of ${count(jobs.length)} statements in the log, read ${ago(readAt, Date.now())}`;
    if (items.length === 0) {
      body.replaceChildren(h("div", { class: "empty" }, h("strong", {}, wanted ? "No statement has this in it" : "No statements yet"), h("span", {}, wanted ? "" : "Statements are listed here once they have run.")));
      return;
    }
    const focused = document.activeElement?.dataset?.key;
    const most = items[0].ms || 1;
    const heads = state.by === "shape"
      ? [["Longest", "number"], ["Statement", ""], ["Runs", "number count"], ["Mean", "number when"]]
      : [["Took", "number"], ["Statement", ""], ["User", "who"], ["Started", "when"]];
    body.replaceChildren(h("div", { class: "scroll" }, h("table", { class: "slow-list stack" },
      h("thead", {}, h("tr", {}, heads.map(([label, kind]) => h("th", { scope: "col", class: kind || null }, label)))),
      h("tbody", {}, items.map((job) => row(job, most))))));
    if (focused) body.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  function row(job, most) {
    const key = job.key ?? String(job.id);
    const isOpen = state.open.has(key);
    const fill = h("span", {});
    fill.style.width = `${Math.max(1, (100 * job.ms) / most)}%`;
    const expand = h("button", { type: "button", class: "expand", "data-key": key, "aria-expanded": String(isOpen), onclick: () => {
      if (!state.open.delete(key)) state.open.add(key);
      draw();
    } }, h("pre", {}, job.stmt));
    const put = (how) => () => {
      location.hash = `#/sql?q=${encodeURIComponent(job.example ?? job.stmt)}${how}`;
    };
    const more = isOpen && h("div", { class: "row-tools" },
      h("button", { type: "button", class: "button small", onclick: put("") }, "Open in SQL"),
      h("button", { type: "button", class: "button small", onclick: put("&explain=1") }, "Explain"),
      h("button", { type: "button", class: "button small", onclick: () => copy(job.example ?? job.stmt, "Statement") }, "Copy"));
    return h("tr", { "data-open": isOpen },
      h("td", { class: "number" }, h("span", { class: "took" }, millis(job.ms)), h("div", { class: "bar", "aria-hidden": "true" }, fill)),
      h("td", {}, expand, job.error && h("p", { class: "error" }, job.error), more),
      job.runs === undefined
        ? [h("td", { class: `dim${job.username ? "" : " none"}` }, job.username ?? ""), h("td", { class: "dim", title: moment(job.started) }, ago(job.started, store.status?.now_ms ?? Date.now()))]
        : [h("td", { class: "number", "data-label": "runs" }, count(job.runs)), h("td", { class: "number", "data-label": "mean" }, millis(job.total / job.runs))]);
  }

  draw();
  read();
  return {
    node,
    title: "Slow queries",
    update() {
      if (Date.now() - readAt > REFRESH_MS) read();
    },
  };
}

/** Statements that differ in values only, together. */
function shapes(jobs) {
  const found = new Map();
  for (const job of jobs) {
    const key = tokens(job.stmt).filter(({ kind }) => kind !== "comment").map(({ kind, text }) => (kind === "string" || kind === "number" ? "?" : kind === "space" ? " " : text)).join("").trim();
    const shape = found.get(key) ?? { key, stmt: key, example: job.stmt, ms: 0, total: 0, runs: 0, error: null };
    shape.runs += 1;
    shape.total += job.ms;
    if (job.ms >= shape.ms) Object.assign(shape, { ms: job.ms, example: job.stmt });
    shape.error ??= job.error;
    found.set(key, shape);
  }
  return [...found.values()];
}
