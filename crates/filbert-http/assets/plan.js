// A plan: its lines read into a tree, and the tree drawn with rows and times of each step.

import { h } from "./dom.js";
import { count, micros, percent } from "./format.js";

const MICROS = { ns: 0.001, "µs": 1, us: 1, ms: 1000, s: 1_000_000, m: 60_000_000 };
const THOUSANDS = { "": 1, K: 1e3, M: 1e6, B: 1e9, T: 1e12 };

/** What is said of DataFusion's steps in words that people use. */
const WORDS = {
  Aggregate: "Aggregate", CoalesceBatches: "Gather batches", CoalescePartitions: "Gather partitions", CrossJoin: "Cross join", Empty: "Nothing",
  Filter: "Filter", GlobalLimit: "Limit", HashJoin: "Hash join", LocalLimit: "Limit each", MapScan: "Scan", NestedLoopJoin: "Nested loop join",
  PlaceholderRow: "One row", Projection: "Columns", Repartition: "Repartition", Sort: "Sort", SortMergeJoin: "Merge join",
  SortPreservingMerge: "Merge sorted", Union: "Union", BoundedWindowAgg: "Window", WindowAgg: "Window", Unnest: "Unnest",
};

function microsOf(text) {
  const parts = [...(text ?? "").matchAll(/([\d.]+)\s*(ns|µs|us|ms|s|m)(?![a-z])/g)];
  return parts.length > 0 ? parts.reduce((sum, [, number, unit]) => sum + Number(number) * MICROS[unit], 0) : null;
}

function countOf(text) {
  const parts = /^([\d.,]+)\s*([KMBT]?)$/.exec((text ?? "").trim());
  return parts ? Math.round(Number(parts[1].replaceAll(",", "")) * THOUSANDS[parts[2]]) : null;
}

/** Divides at commas outside of brackets. */
function divide(text) {
  const parts = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at <= text.length; at += 1) {
    const sign = text[at];
    if ("([{".includes(sign ?? " ")) depth += 1;
    else if (")]}".includes(sign ?? " ")) depth -= 1;
    if (at === text.length || (sign === "," && depth === 0)) {
      parts.push(text.slice(from, at).trim());
      from = at + 1;
    }
  }
  return parts.filter((part) => part !== "");
}

function stepOf(line) {
  const found = /,?\s*metrics=\[(.*)\]\s*$/.exec(line);
  const told = found ? line.slice(0, found.index) : line;
  const metrics = new Map(divide(found?.[1] ?? "").map((part) => {
    const at = part.lastIndexOf("=");
    return [part.slice(0, at), part.slice(at + 1)];
  }));
  const [, name, detail] = /^\s*([\w ]+?)(?::\s*(.*))?$/s.exec(told) ?? [null, told.trim(), ""];
  const timed = [...metrics].find(([metric]) => metric === "elapsed_compute" || metric === "elapsed");
  return {
    name: name ?? told.trim(), detail: detail ?? "", metrics, children: [],
    rows: countOf(metrics.get("output_rows")), micros: microsOf(timed?.[1]), read: countOf(metrics.get("rows_read")),
  };
}

/** Reads the lines of EXPLAIN: {total: {rows, micros} or null, roots}. */
export function readPlan(lines) {
  const plan = { total: null, roots: [] };
  const open = [];
  for (const line of lines.join("\n").split("\n")) {
    if (line.trim() === "") continue;
    const total = /^(\d+) rows? in (.+)$/.exec(line);
    if (total && plan.roots.length === 0) {
      plan.total = { rows: Number(total[1]), micros: microsOf(total[2]) };
      continue;
    }
    const depth = /^ */.exec(line)[0].length;
    const step = stepOf(line);
    while (open.length > 0 && open.at(-1).depth >= depth) open.pop();
    (open.at(-1)?.step.children ?? plan.roots).push(step);
    open.push({ depth, step });
  }
  return plan;
}

function all(steps) {
  return steps.flatMap((step) => [step, ...all(step.children)]);
}

/** A plan as a tree. */
export function drawPlan(lines, isAnalyzed) {
  const plan = readPlan(lines);
  const steps = all(plan.roots);
  const busy = steps.reduce((sum, step) => sum + (step.micros ?? 0), 0);
  const most = Math.max(0, ...steps.map((step) => step.micros ?? 0));
  const list = (children, depth) => h("ul", depth === 0 ? { class: "plan", "aria-label": "Plan" } : {}, children.map((step) => h("li", {}, draw(step), step.children.length > 0 && list(step.children, depth + 1))));

  function draw(step) {
    const short = step.name.replace(/Exec$/, "");
    const share = most > 0 && step.micros !== null ? step.micros / most : 0;
    const others = [...step.metrics].filter(([name]) => !["output_rows", "elapsed_compute", "elapsed"].includes(name));
    const fill = h("span", {});
    fill.style.width = `${Math.max(share * 100, step.micros > 0 ? 1.5 : 0)}%`;
    const isHot = share === 1 && steps.length > 1 && busy > 0;
    return h("div", { class: `step${isHot ? " hot" : ""}` },
      h("div", { class: "step-name" }, h("strong", {}, WORDS[short] ?? short), WORDS[short] && WORDS[short] !== short && h("span", { class: "note" }, short), isHot && h("span", { class: "tag" }, "most time")),
      isAnalyzed && h("div", { class: "step-rows" }, step.rows !== null && [h("b", {}, count(step.rows)), step.rows === 1 ? " row" : " rows"],
        step.read !== null && h("span", { class: "note" }, ` of ${count(step.read)} read`)),
      isAnalyzed && h("div", { class: "step-time" }, step.micros !== null && [h("b", {}, micros(step.micros)), steps.length > 1 && h("span", { class: "note" }, ` ${percent(step.micros, busy)}`), h("div", { class: "bar", "aria-hidden": "true" }, fill)]),
      step.detail !== "" && h("code", { class: "step-detail" }, step.detail),
      others.length > 0 && h("details", { class: "step-more" }, h("summary", {}, `${others.length} more ${others.length === 1 ? "figure" : "figures"}`),
        h("dl", {}, others.map(([name, value]) => [h("dt", {}, name.replaceAll("_", " ")), h("dd", {}, value)]))));
  }

  const told = plan.total && `${count(plan.total.rows)} ${plan.total.rows === 1 ? "row" : "rows"} in ${micros(plan.total.micros)}`;
  return h("div", { class: "plan-view" },
    h("p", { class: "plan-total" }, told ? h("strong", {}, told) : "Not run: the statement would change something, or was only explained.",
      isAnalyzed && steps.length > 1 && h("span", { class: "note" }, " Times of steps are summed over threads, so they may be more than the time that passed.")),
    list(plan.roots, 0));
}
