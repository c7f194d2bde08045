// Rows of a result as a grid: paged, walked through with the arrow keys, copied and downloaded.

import { copy, dialog, download, h } from "./dom.js";
import { count } from "./format.js";
import { Exact, typeName } from "./request.js";

const PAGE_ROWS = 100;
const NUMBERS = new Set(["double", "real", "smallint", "integer", "bigint", "numeric"]);

/** A value as text: moments as ISO 8601, objects as JSON. */
export function textOf(value, type) {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "number" && (type === "timestamptz" || type === "timestamp" || type === "date")) {
    const text = isoOf(value);
    if (text === null) return String(value);
    if (type === "date") return text.slice(0, 10);
    return type === "timestamp" ? text.slice(0, -1) : text;
  }
  if (type === "timetz" && Array.isArray(value)) return timeOf(value[0]);
  return isDocument(value) ? JSON.stringify(value) : String(value);
}

function isDocument(value) {
  return value !== null && typeof value === "object" && !(value instanceof Exact);
}

function timeOf(micros) {
  return new Date(Math.floor(micros / 1000)).toISOString().slice(11, 23).replace(".000", "");
}

function isoOf(ms) {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString().replace("T", " ").replace(".000Z", "Z");
}

/** A value as it fits into a row: the whole of it is shown by Enter. */
function inOneLine(text) {
  const start = text.length > 300 ? text.slice(0, 300) + "…" : text;
  return start.replace(/\r?\n/g, " ↵ ");
}

function csv(cols, types, rows) {
  const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (row) => row.map((value, at) => (value === null ? "" : value === "" ? '""' : cell(textOf(value, types[at])))).join(",");
  return [cols.map(cell).join(","), ...rows.map(line)].join("\r\n") + "\r\n";
}

function tsv(cols, types, rows) {
  const cell = (value, at) => (value === null ? "" : textOf(value, types[at]).replace(/[\t\r\n]+/g, " "));
  return [cols.join("\t"), ...rows.map((row) => row.map(cell).join("\t"))].join("\n");
}

/** A grid of a result ({cols, types, rows}); `label` names it to screen readers. */
export function grid({ cols, types: numbers, rows }, label, { tools = true } = {}) {
  const types = cols.map((_, at) => (numbers[at] === undefined ? "" : typeName(numbers[at])));
  const right = types.map((type, at) => NUMBERS.has(type) || (type === "" && typeof rows[0]?.[at] === "number"));
  const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
  const body = h("tbody");
  const told = h("span", { class: "note", role: "status" });
  let page = 0;
  let active = { row: 0, col: 0 };

  const head = h("tr", { role: "row" }, h("th", { class: "nth", scope: "col", role: "columnheader" }, h("span", { class: "visually-hidden" }, "Row")),
    cols.map((name, at) => h("th", { scope: "col", role: "columnheader", class: right[at] ? "number" : null }, h("span", { class: "col-name" }, name), h("span", { class: "col-type" }, types[at]))));
  const table = h("table", { class: "result", role: "grid", "aria-label": label, "aria-rowcount": String(rows.length + 1), "aria-colcount": String(cols.length + 1) },
    h("thead", {}, head), body);
  const scroll = h("div", { class: "scroll result-scroll" }, table);

  function show(next) {
    page = Math.max(0, Math.min(pages - 1, next));
    const from = page * PAGE_ROWS;
    body.replaceChildren(...rows.slice(from, from + PAGE_ROWS).map((row, at) => h("tr", { role: "row", "aria-rowindex": String(from + at + 2) },
      h("th", { class: "nth", scope: "row", role: "rowheader" }, count(from + at + 1)),
      cols.map((_, col) => {
        const value = row[col];
        const text = textOf(value, types[col]);
        const kind = [right[col] ? "number" : "", value === null ? "null" : "", value === "" ? "blank" : ""].join(" ").trim();
        return h("td", { role: "gridcell", tabindex: "-1", class: kind || null }, inOneLine(text));
      }))));
    told.textContent = pages > 1 ? `${count(from + 1)}–${count(Math.min(rows.length, from + PAGE_ROWS))} of ${count(rows.length)}` : "";
    previous.disabled = page === 0;
    following.disabled = page === pages - 1;
    active = { row: 0, col: Math.min(active.col, cols.length - 1) };
    cellAt(active)?.setAttribute("tabindex", "0");
    scroll.scrollTop = 0;
  }

  function cellAt({ row, col }) {
    return body.rows[row]?.cells[col + 1];
  }

  function go(row, col) {
    const next = { row: Math.max(0, Math.min(body.rows.length - 1, row)), col: Math.max(0, Math.min(cols.length - 1, col)) };
    cellAt(active)?.setAttribute("tabindex", "-1");
    active = next;
    const cell = cellAt(active);
    cell?.setAttribute("tabindex", "0");
    cell?.focus();
  }

  function open() {
    const value = rows[page * PAGE_ROWS + active.row]?.[active.col];
    const type = types[active.col];
    const text = isDocument(value) && type !== "timetz" ? JSON.stringify(value, null, 2) : textOf(value, type);
    dialog(`${cols[active.col]} ${type}`.trim(), h("pre", {}, text),
      h("p", { class: "tools dialog-tools" }, h("button", { type: "button", class: "button small", onclick: () => copy(text, "Value") }, "Copy value")));
  }

  body.addEventListener("keydown", (event) => {
    const { row, col } = active;
    const command = event.ctrlKey || event.metaKey;
    const to = {
      ArrowUp: [row - 1, col], ArrowDown: [row + 1, col], ArrowLeft: [row, col - 1], ArrowRight: [row, col + 1],
      Home: [command ? 0 : row, 0], End: [command ? body.rows.length - 1 : row, cols.length - 1],
    }[event.key];
    if (to) go(...to);
    else if (event.key === "PageDown" || event.key === "PageUp") {
      show(page + (event.key === "PageDown" ? 1 : -1));
      go(0, col);
    } else if (event.key === "Enter") open();
    else if (event.key === "c" && command && String(getSelection()) === "") copy(textOf(rows[page * PAGE_ROWS + row]?.[col], types[col]), "Value");
    else return;
    event.preventDefault();
  });
  const placeOf = (event) => {
    const cell = event.target.closest("td");
    return cell ? { row: cell.parentNode.sectionRowIndex, col: cell.cellIndex - 1 } : null;
  };
  body.addEventListener("click", (event) => {
    const place = placeOf(event);
    if (place && String(getSelection()) === "") go(place.row, place.col);
  });
  body.addEventListener("dblclick", (event) => {
    if (placeOf(event)) open();
  });

  const previous = h("button", { type: "button", class: "button small", onclick: () => show(page - 1) }, "Previous");
  const following = h("button", { type: "button", class: "button small", onclick: () => show(page + 1) }, "Next");
  const foot = h("div", { class: "grid-foot" },
    h("div", { class: "tools" }, pages > 1 && previous, pages > 1 && following, told),
    h("div", { class: "tools" },
      h("button", { type: "button", class: "button small", onclick: () => copy(tsv(cols, types, rows), `${count(rows.length)} rows`) }, "Copy"),
      h("button", { type: "button", class: "button small", onclick: () => download("result.csv", "text/csv;charset=utf-8", csv(cols, types, rows)) }, "Download CSV")));
  show(0);
  return h("div", { class: "grid" }, scroll, tools && foot);
}
