// Maps and tables: the list of all, and one with its columns, indexes and some of its rows.

import { chart } from "./chart.js";
import { columnsOf, names, refreshNames, tableOf } from "./complete.js";
import { copy, h, setText } from "./dom.js";
import { ago, bytes, count, percent, short } from "./format.js";
import { grid } from "./grid.js";
import { run } from "./request.js";
import { store } from "./status.js";

const PAGE = 200;
const SAMPLE_ROWS = 20;

const COLUMNS = [
  { key: "name", label: "Name", of: (row) => row.name },
  { key: "entries", label: "Entries", of: (row) => row.entries, text: (row) => count(row.entries), short: "entries" },
  { key: "bytes", label: "Size", of: (row) => row.bytes, text: (row) => bytes(row.bytes), short: "size" },
  { key: "reads", label: "Reads/s", of: (row) => row.reads, text: (row) => rate(row.reads), short: "reads/s" },
  { key: "writes", label: "Writes/s", of: (row) => row.writes, text: (row) => rate(row.writes), short: "writes/s" },
  { key: "hits", label: "Found", of: (row) => (row.gets > 0 ? row.hits / row.gets : -1), text: (row) => (row.gets > 0 ? percent(row.hits, row.gets) : ""), short: "found" },
  { key: "columns", label: "Columns", of: (row) => row.columns, text: (row) => (row.columns ? `${row.columns} · ${bytes(row.column_bytes)}` : ""), short: "columns" },
  { key: "indexes", label: "Indexes", of: (row) => row.indexes, text: (row) => (row.indexes ? `${row.indexes} · ${bytes(row.index_bytes)}` : ""), short: "indexes" },
  { key: "updated", label: "Written", of: (row) => row.last_update_ms, text: (row) => (row.last_update_ms ? ago(row.last_update_ms, store.status.now_ms) : ""), short: "written" },
];

function rate(value) {
  return value > 0 ? short(value < 10 ? Math.round(value * 10) / 10 : Math.round(value)) : "";
}

export function view(route, go) {
  return route.parts.length > 1 ? one(route.parts.slice(1).join("/")) : list(route, go);
}

function rowsOf() {
  const maps = store.status?.maps ?? [];
  return maps.map((map) => ({ ...map, ...(store.rates.get(map.name) ?? { reads: 0, writes: 0, removes: 0 }), kind: columnsOf(map.name).length > 0 ? "table" : "map" }));
}

function list(route, go) {
  const state = { sort: route.params.get("sort") ?? "name", down: route.params.get("down") === "1", find: route.params.get("q") ?? "", shown: PAGE };
  if (!COLUMNS.some(({ key }) => key === state.sort)) state.sort = "name";
  const subtitle = h("p", {}, "");
  const find = h("input", { class: "field grow", type: "search", id: "find", placeholder: "Find by name", "aria-label": "Find maps and tables by name", value: state.find });
  const heads = COLUMNS.map((column, at) => h("th", { scope: "col", class: at > 0 ? "number" : null }, h("button", { type: "button", onclick: () => sortBy(column.key) }, column.label)));
  const sort = h("select", { class: "field phone", "aria-label": "Order", onchange: () => sortBy(sort.value, true) }, COLUMNS.map(({ key, label }) => h("option", { value: key }, `By ${label.toLowerCase()}`)));
  const body = h("tbody");
  const table = h("div", { class: "scroll" }, h("table", { class: "stack data-list" }, h("caption", { class: "visually-hidden" }, "Maps and tables"), h("thead", {}, h("tr", {}, heads)), body));
  const empty = h("div", { class: "empty" });
  const more = h("div", { class: "more" }, h("button", { type: "button", class: "button small", onclick: () => {
    state.shown += PAGE;
    update();
  } }, "Show more"));
  const node = h("div", { class: "view" },
    h("div", { class: "view-head" }, h("div", {}, h("h1", { tabindex: "-1" }, "Data"), subtitle), h("div", { class: "tools" }, find, sort)),
    h("section", { class: "panel", "aria-label": "Maps and tables" }, table, more, empty));
  const lines = new Map();

  // Whether the first name is to be opened as soon as there are names: somebody types faster than the member answers.
  let isAwaited = false;
  const openFirst = () => body.querySelector("a")?.click();
  find.addEventListener("input", () => {
    isAwaited = false;
    state.find = find.value;
    remember();
    update();
  });
  find.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    isAwaited = store.status === null;
    openFirst();
  });

  function sortBy(key, keeps = false) {
    state.down = !keeps && state.sort === key ? !state.down : key !== "name";
    state.sort = key;
    remember();
    update();
  }

  function remember() {
    const params = new URLSearchParams();
    if (state.sort !== "name") params.set("sort", state.sort);
    if (state.down) params.set("down", "1");
    if (state.find) params.set("q", state.find);
    go.replace(`#/data${params.size > 0 ? "?" + params : ""}`);
  }

  function line(row) {
    const link = h("a", { class: "name", href: `#/data/${encodeURIComponent(row.name)}` }, row.name);
    const kind = h("span", { class: "tag" });
    const cells = COLUMNS.slice(1).map((column) => h("td", { class: "number", "data-label": column.short }));
    const tr = h("tr", { class: "goes", onclick: (event) => {
      if (!event.target.closest("a") && String(getSelection()) === "") link.click();
    } }, h("td", {}, link, " ", kind), cells);
    return { tr, kind, cells };
  }

  function update() {
    const all = rowsOf();
    const wanted = state.find.toLowerCase();
    const { of } = COLUMNS.find(({ key }) => key === state.sort);
    const found = all.filter(({ name }) => name.toLowerCase().includes(wanted));
    found.sort((a, b) => {
      const [x, y] = [of(a), of(b)];
      const order = typeof x === "string" ? x.localeCompare(y) : x - y;
      return (state.down ? -order : order) || a.name.localeCompare(b.name);
    });
    for (const [at, head] of heads.entries()) {
      if (COLUMNS[at].key === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    sort.value = state.sort;
    const entries = all.reduce((sum, row) => sum + row.entries, 0);
    const size = all.reduce((sum, row) => sum + row.bytes, 0);
    setText(subtitle, store.status ? `${count(all.length)} ${all.length === 1 ? "map" : "maps and tables"} · ${count(entries)} entries · ${bytes(size)}` : "");
    place(found.slice(0, state.shown));
    if (isAwaited && store.status !== null) {
      isAwaited = false;
      openFirst();
    }
    more.hidden = found.length <= state.shown;
    table.hidden = found.length === 0;
    empty.hidden = found.length > 0;
    if (found.length === 0) {
      empty.replaceChildren(...(store.status === null ? ["Waiting for the member …"] : wanted
        ? [h("strong", {}, "No name has this in it")]
        : [h("strong", {}, "No maps and tables yet"), h("span", {}, "They appear here as soon as a client makes a map or a statement makes a table.")]));
    }
  }

  /** Brings lines into order with as few moves as can be, and keeps the focus. */
  function place(rows) {
    const focused = document.activeElement;
    const nodes = rows.map((row) => {
      const known = lines.get(row.name) ?? line(row);
      lines.set(row.name, known);
      setText(known.kind, row.kind);
      for (const [at, cell] of known.cells.entries()) {
        const text = COLUMNS[at + 1].text(row);
        setText(cell, text);
        cell.classList.toggle("none", text === "");
      }
      return known.tr;
    });
    const same = nodes.length === body.rows.length && nodes.every((tr, at) => tr === body.rows[at]);
    if (same) return;
    body.replaceChildren(...nodes);
    if (focused !== document.activeElement && body.contains(focused)) focused.focus({ preventScroll: true });
  }

  refreshNames().then(update);
  update();
  return { node, title: "Data", update };
}

function one(name) {
  const facts = h("p", {}, "");
  const tiles = h("dl", { class: "panel tiles" });
  const rates = chart({ title: "Operations/s", series: [{ label: "gets" }, { label: "puts" }, { label: "removes" }], format: short, floor: 10, emptyText: "Waiting for the second sample" });
  const split = h("div", { class: "split" });
  const columns = h("div", {});
  const indexes = h("div", {});
  const settings = h("dl", { class: "pairs" });
  const rows = h("div", {});
  const problem = h("p", { class: "problem", hidden: true });
  const sql = () => `SELECT * FROM ${tableOf(name)} LIMIT ${SAMPLE_ROWS}`;
  const node = h("div", { class: "view" },
    h("div", { class: "view-head" }, h("div", {}, h("nav", { class: "path", "aria-label": "Place" }, h("a", { href: "#/data" }, "Data"), h("span", { class: "note", "aria-hidden": "true" }, "/"), h("h1", { tabindex: "-1" }, name)), facts),
      h("div", { class: "tools" }, h("button", { type: "button", class: "button", onclick: () => {
        location.hash = `#/sql?q=${encodeURIComponent(sql())}&run=1`;
      } }, "Query in SQL"))),
    problem, tiles,
    h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, "Some rows"), h("button", { type: "button", class: "button small", onclick: () => readRows() }, "Read again")), rows),
    h("div", { class: "two" },
      h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, "Columns")), columns),
      h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, "Indexes")), indexes)),
    h("div", { class: "two" }, rates.node,
      h("div", { class: "stacked" },
        h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, "Memory")), split),
        h("section", { class: "panel" }, h("div", { class: "panel-head" }, h("h2", {}, "Settings")), settings))));
  let readAt = 0;

  async function readDetails() {
    readAt = Date.now();
    try {
      const answer = await fetch(`/_filbert/map?name=${encodeURIComponent(name)}`);
      if (answer.ok) drawDetails(await answer.json());
      problem.hidden = answer.status !== 404;
      if (answer.status === 404) setText(problem, "This map is not there any more, or not yet.");
    } catch {
      // The state of the connection is told elsewhere.
    }
  }

  async function readRows() {
    try {
      const result = await run(sql(), { rowsMax: SAMPLE_ROWS });
      rows.replaceChildren(result.rows.length > 0 ? grid(result, `Some rows of ${name}`, { tools: false }) : h("p", { class: "empty" }, "No rows"));
    } catch (error) {
      rows.replaceChildren(h("p", { class: "empty" }, error.name === "TypeError" ? "The member does not answer." : error.message));
    }
  }

  function drawDetails(map) {
    const kept = new Map(map.columns_kept.map((column) => [column.field, column]));
    const declared = columnsOf(name);
    const all = declared.map((column) => ({ ...column, kept: kept.get(column.name) }));
    for (const column of map.columns_kept) {
      if (!declared.some((other) => other.name === column.field)) all.push({ name: column.field, type: column.type, kept: column });
    }
    columns.replaceChildren(all.length === 0
      ? h("div", { class: "empty" }, "No columns are declared: they follow from an entry when it is queried.", map.mapping && h("button", { type: "button", class: "button small", onclick: () => copy(map.mapping, "Statement") }, "Copy CREATE MAPPING"))
      : h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Name", "Type", "Kept as column"].map((label) => h("th", { scope: "col" }, label)))),
        h("tbody", {}, all.map((column) => h("tr", {}, h("td", {}, h("strong", {}, column.name)), h("td", { class: "mono" }, String(column.type).toLowerCase()), h("td", { class: "dim" }, column.kept ? (column.kept.ready ? "yes" : "being built") : "")))))));
    indexes.replaceChildren(map.indexes_kept.length === 0 ? h("p", { class: "empty" }, "No indexes")
      : h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Name"), h("th", { scope: "col" }, "Fields"), h("th", { scope: "col", class: "number" }, "Keys"), h("th", { scope: "col", class: "number" }, "Size"))),
        h("tbody", {}, map.indexes_kept.map((index) => h("tr", {}, h("td", {}, h("strong", {}, index.name), " ", h("span", { class: "tag" }, index.ready ? index.kind : "being built")), h("td", { class: "mono" }, index.fields.join(", ")), h("td", { class: "number", title: "At most: each partition counts its own" }, `≤ ${count(index.distinct)}`), h("td", { class: "number" }, bytes(index.bytes))))))));
    settings.replaceChildren(...map.settings.flatMap(({ name: label, value }) => [h("dt", {}, label), h("dd", {}, value)]));
    drawMemory(split, map);
  }

  function update() {
    const map = store.status?.maps.find((other) => other.name === name);
    if (map) {
      const now = store.rates.get(name);
      const tilesOf = [
        ["Entries", count(map.entries), map.locked_keys > 0 ? `${count(map.locked_keys)} locked` : `written ${ago(map.last_update_ms, store.status.now_ms)}`],
        ["Size", bytes(map.bytes), map.entries > 0 ? `${bytes(map.bytes / map.entries)} each` : ""],
        ["Reads", now ? `${short(Math.round(now.reads))}/s` : "–", map.gets > 0 ? `${percent(map.hits, map.gets)} found an entry` : "none yet"],
        ["Writes", now ? `${short(Math.round(now.writes))}/s` : "–", `${count(map.puts)} puts, ${count(map.removes)} removes`],
        ["Expired or evicted", count(map.evictions + map.expirations), `${count(map.expirations)} expired, ${count(map.evictions)} evicted`],
      ];
      const text = JSON.stringify(tilesOf);
      if (tiles.dataset.text !== text) {
        tiles.dataset.text = text;
        tiles.replaceChildren(...tilesOf.map(([label, value, note]) => h("div", { class: "tile" }, h("dt", {}, label), h("dd", {}, value), h("span", { class: "note" }, note))));
      }
      setText(facts, [columnsOf(name).length > 0 ? "Table" : "Map", map.columns > 0 && `${map.columns} ${map.columns === 1 ? "field" : "fields"} kept as columns`, `${map.indexes || "no"} ${map.indexes === 1 ? "index" : "indexes"}`].filter(Boolean).join(" · "));
    }
    rates.update(store.past.get(name) ?? []);
    if (store.status && Date.now() - readAt > 6000) readDetails();
  }

  refreshNames(!names.tables.has(name)).then(() => {
    readDetails();
    readRows();
  });
  readAt = Date.now();
  update();
  return { node, title: name, update };
}

function drawMemory(node, map) {
  const parts = [["Records", map.record_bytes, "b1"], ["Columns", map.column_bytes, "b2"], ["Indexes", map.index_bytes, "b3"]];
  parts.push(["Table, expiry, locks", Math.max(0, map.bytes - parts.reduce((sum, [, size]) => sum + size, 0)), "b4"]);
  const bar = h("div", { class: "bar", "aria-hidden": "true" }, parts.map(([, size, kind]) => {
    const part = h("span", { class: kind });
    part.style.width = `${map.bytes > 0 ? (100 * size) / map.bytes : 0}%`;
    return part;
  }));
  node.replaceChildren(bar, h("ul", { class: "legend" }, parts.filter(([, size]) => size > 0).map(([label, size], at) => h("li", {}, h("span", { class: `swatch s${parts.findIndex(([other]) => other === label) + 1}` }), label, h("b", {}, bytes(size))))));
}
