// What can follow at the caret: tables, columns, keywords. Names come from information_schema and from the maps that are there.

import { ask } from "./request.js";
import { store } from "./status.js";
import { keywords, quoted, statementAt, tokens } from "./tokens.js";

const FUNCTIONS = `abs array_agg avg ceil char_length coalesce concat count current_date date_trunc extract floor greatest json_query json_value least
length lower max min now nullif position power regexp_like replace round row_number sqrt string_agg substring sum trim upper`.split(/\s+/);
const AFTER_TABLE_WORD = new Set(["FROM", "JOIN", "INTO", "UPDATE", "TABLE", "MAPPING", "VIEW"]);
const SHOWN_MAX = 60;
const STALE_MS = 15_000;

/** What is known of tables: by name {schema, columns: [{name, type}]}. */
export const names = { tables: new Map(), readAt: 0 };

let reading = null;

/** Reads names again if they may be old; what fails leaves what is known. */
export function refreshNames(force = false) {
  if (!force && Date.now() - names.readAt < STALE_MS) return Promise.resolve();
  reading ??= read().finally(() => {
    reading = null;
  });
  return reading;
}

async function read() {
  names.readAt = Date.now();
  try {
    const rows = await ask("SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns ORDER BY table_schema, table_name, ordinal_position", 50_000);
    const tables = new Map();
    for (const row of rows) {
      const schema = row.table_schema ?? "";
      const isOwn = !["information_schema", "pg_catalog", "sys"].includes(schema);
      const name = isOwn ? row.table_name : `${schema}.${row.table_name}`;
      if (!tables.has(name)) tables.set(name, { schema, name: row.table_name, isOwn, columns: [] });
      tables.get(name).columns.push({ name: row.column_name, type: row.data_type });
    }
    names.tables = tables;
  } catch {
    // Completion goes on with what it knows.
  }
}

/** The name of a map as a table, for SQL: the table of that name, or the map itself. */
export function tableOf(map) {
  if (names.tables.has(map)) return quoted(map);
  const dot = map.indexOf(".");
  const [schema, table] = [map.slice(0, dot), map.slice(dot + 1)];
  if (dot > 0 && names.tables.get(table)?.schema === schema) return `${quoted(schema)}.${quoted(table)}`;
  return quoted(map);
}

export function columnsOf(map) {
  const known = names.tables.get(map) ?? names.tables.get(map.slice(map.indexOf(".") + 1));
  return known?.columns ?? [];
}

/** Candidates at a place of a text: {from, items: [{label, insert, kind, detail}]}; none where nothing is to be said. */
export function complete(text, place, isAsked) {
  const before = /(?:([\p{L}_][\p{L}\p{N}_]*)\.)?("?[\p{L}_][\p{L}\p{N}_]*|)$/u.exec(text.slice(0, place));
  const [, owner, typed] = before;
  const from = place - typed.length;
  const prefix = typed.replace(/^"/, "").toLowerCase();
  if (!isAsked && prefix === "" && !owner) return { from, items: [] };
  const statement = statementAt(text, place);
  const words = tokens(statement?.text ?? "").filter(({ kind }) => kind !== "space" && kind !== "comment");
  const inside = words.find((token) => token.from + statement.from < place && token.from + statement.from + token.text.length >= place);
  if (inside && (inside.kind === "string" || inside.kind === "number")) return { from, items: [] };
  const at = words.findLastIndex((token) => token.from + (statement?.from ?? 0) + token.text.length < from + (owner ? 0 : 1));
  const last = words[at]?.text.toUpperCase();
  const items = owner ? ofOwner(owner, words) : anywhere(words, AFTER_TABLE_WORD.has(last));
  const fitting = items.filter(({ label }) => label.toLowerCase().startsWith(prefix));
  const within = prefix.length > 1 ? items.filter(({ label, kind }) => kind !== "keyword" && !label.toLowerCase().startsWith(prefix) && label.toLowerCase().includes(prefix)) : [];
  const found = [...fitting, ...within].slice(0, SHOWN_MAX);
  const isComplete = found.length === 1 && found[0].label.toLowerCase() === prefix;
  return { from, items: isComplete ? [] : found };
}

function ofOwner(owner, words) {
  const schema = [...names.tables.values()].filter((table) => table.schema === owner);
  if (schema.length > 0) return schema.map((table) => ({ label: table.name, insert: quoted(table.name), kind: "table", detail: owner }));
  const at = words.findIndex((word, index) => word.text === owner && index > 0 && isTable(words[index - 1].text));
  const table = at > 0 ? words[at - 1].text : words[at - 1]?.text.toUpperCase() === "AS" ? words[at - 2].text : owner;
  return columnsOf(plain(table)).map(column);
}

function anywhere(words, afterTableWord) {
  const used = words.map(({ text }) => plain(text)).filter(isTable);
  const columns = [...new Set(used)].flatMap((table) => columnsOf(table)).map(column);
  const shown = new Set();
  const tables = [];
  for (const [label, table] of names.tables) {
    shown.add(label);
    tables.push({ label, insert: table.isOwn ? quoted(label) : label, kind: "table", detail: `${table.columns.length} columns`, isOwn: table.isOwn });
  }
  for (const map of store.status?.maps ?? []) {
    if (!shown.has(map.name) && !shown.has(map.name.slice(map.name.indexOf(".") + 1))) {
      tables.push({ label: map.name, insert: quoted(map.name), kind: "map", detail: "map", isOwn: true });
    }
  }
  tables.sort((a, b) => Number(b.isOwn) - Number(a.isOwn));
  if (afterTableWord) return tables;
  const words_ = keywords.map((label) => ({ label, insert: label, kind: "keyword", detail: "" }));
  const functions = FUNCTIONS.map((label) => ({ label, insert: label + "(", kind: "function", detail: "function" }));
  return [...columns, ...words_, ...tables, ...functions];
}

function isTable(text) {
  const name = plain(text);
  return names.tables.has(name) || (store.status?.maps.some((map) => map.name === name) ?? false);
}

function plain(text) {
  return text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
}

function column({ name, type }) {
  return { label: name, insert: quoted(name), kind: "column", detail: String(type).toLowerCase() };
}
