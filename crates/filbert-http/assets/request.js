// Sends statements to `POST /_sql` and reads the answer row by row, so that a result of any size can be cut off.

import { locate, tokens } from "./tokens.js";

const TYPES = {
  0: "null", 2: "char", 3: "boolean", 4: "text", 5: "ip", 6: "double", 7: "real", 8: "smallint", 9: "integer", 10: "bigint",
  11: "timestamptz", 12: "object", 13: "geo_point", 14: "geo_shape", 15: "timestamp", 16: "object", 17: "interval", 18: "row",
  19: "regproc", 20: "timetz", 21: "oidvector", 22: "numeric", 23: "regclass", 24: "date", 25: "bit", 26: "json", 27: "char",
  28: "float_vector",
};

/** The name of a type as `col_types` has it: a number, or [100, the type of items]. */
export function typeName(type) {
  if (Array.isArray(type)) return typeName(type[1]) + "[]";
  return TYPES[type] ?? "unknown";
}

/** A number that JavaScript's cannot hold, or would write with fewer digits: its text as it came. */
export class Exact {
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }

  toJSON() {
    return JSON.rawJSON ? JSON.rawJSON(this.text) : this.text;
  }
}

/** Why a statement failed: `place` is where in its text, as {from, to}, and `help` a statement that would help, if that can be told. */
export class SqlFailure extends Error {
  constructor(message, code = null, place = null, help = null) {
    super(message);
    this.code = code;
    this.place = place;
    this.help = help;
  }
}

/**
 * Runs a statement: {cols, types, rows, rowcount, durationMs, bytes, isCut}. Reads at most `rowsMax` rows; a result with more is
 * cut off there, which ends the statement. `onRows` hears how many rows are there.
 */
export async function run(statement, { rowsMax = 1000, signal = null, onRows = null } = {}) {
  const stop = new AbortController();
  signal?.addEventListener("abort", () => stop.abort());
  const started = performance.now();
  const answer = await fetch("/_sql?types&error_trace=true", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ stmt: statement }),
    signal: stop.signal,
  });
  if (!answer.ok) throw await failureOf(answer, statement);
  const reader = new RowReader(rowsMax);
  const decoder = new TextDecoder();
  const body = answer.body.getReader();
  let bytes = 0;
  for (;;) {
    const { done, value } = await body.read();
    bytes += value?.length ?? 0;
    reader.push(decoder.decode(value ?? new Uint8Array(), { stream: !done }));
    onRows?.(reader.rows.length);
    if (done) break;
    if (reader.isFull) {
      stop.abort();
      break;
    }
  }
  const { cols = [], col_types: types = [], rowcount, duration } = reader.finish();
  const waitedMs = performance.now() - started;
  return { cols, types, rows: reader.rows, rowcount, durationMs: duration ?? waitedMs, bytes, isCut: reader.isFull };
}

/** By this the console's own questions are known in the log of statements. */
export const OWN = "-- filbert console";

/** Rows as objects by column name, for the console's own questions. */
export async function ask(statement, rowsMax = 10_000) {
  const { cols, rows } = await run(`${statement} ${OWN}`, { rowsMax });
  return rows.map((row) => Object.fromEntries(cols.map((name, at) => [name, row[at]])));
}

async function failureOf(answer, statement) {
  const text = await answer.text();
  try {
    const { error, error_trace: trace } = JSON.parse(text);
    const help = /this may help: ([\s\S]+)/.exec(trace ?? "")?.[1] ?? null;
    return new SqlFailure(error.message, error.code, placeOf(error, trace ?? "", statement), help);
  } catch {
    return new SqlFailure(text || `the member answered ${answer.status}`, answer.status);
  }
}

/** Where an error is: as the server tells it, else the one place that has the name it complains of. */
function placeOf(error, trace, statement) {
  const character = error.position ?? /at character (\d+)/.exec(trace)?.[1];
  if (character) return locate(statement, indexOfCharacter(statement, Number(character)));
  const line = /line:? (\d+)(?::|,? column:? )(\d+)/i.exec(error.message);
  if (line) {
    const before = statement.split("\n").slice(0, Number(line[1]) - 1).join("\n");
    return locate(statement, before.length + (Number(line[1]) > 1 ? 1 : 0) + Math.max(0, Number(line[2]) - 1));
  }
  const complaint = error.message.split(/did you mean|valid fields|expected/i)[0];
  for (const [, bare, inQuotes] of complaint.matchAll(/(?:named|column|function|table) ([\p{L}_][\p{L}\p{N}_.]*)|["'`]([^"'`\n]{1,80})["'`]/gu)) {
    const place = wordIn(statement, (bare ?? inQuotes).replace(/\.+$/, "").split(".").at(-1));
    if (place) return place;
  }
  return null;
}

function wordIn(statement, name) {
  const token = tokens(statement).find(({ kind, text }) => !["space", "comment", "string"].includes(kind) && text.replaceAll('"', "").toLowerCase() === name.toLowerCase());
  return token ? { from: token.from, to: token.from + token.text.length } : null;
}

/** Servers count characters from 1, JavaScript counts units of 16 bits from 0. */
function indexOfCharacter(text, character) {
  return Array.from(text).slice(0, character - 1).join("").length;
}

/** Reads `{.., "rows": [[..], ..], ..}` from pieces of text; everything but the rows is put together at the end. */
export class RowReader {
  constructor(rowsMax) {
    this.rowsMax = rowsMax;
    this.rows = [];
    this.text = "";
    this.at = 0;
    this.depth = 0;
    this.frame = "";
    this.kept = 0;
    this.rowFrom = -1;
    this.key = "";
    this.isInRows = false;
    this.isFull = false;
  }

  push(piece) {
    if (this.isFull) return;
    this.text += piece;
    const { text } = this;
    while (this.at < text.length && !this.isFull) {
      const sign = text.charCodeAt(this.at);
      if (sign === 34) {
        const end = endOfString(text, this.at);
        if (end < 0) return this.compact();
        if (this.depth === 1) this.key = text.slice(this.at + 1, end);
        this.at = end + 1;
        continue;
      }
      if (sign === 91 || sign === 123) this.open();
      else if (sign === 93 || sign === 125) this.close();
      this.at += 1;
    }
    this.compact();
  }

  open() {
    this.depth += 1;
    if (this.depth === 2 && this.key === "rows") {
      this.isInRows = true;
      this.frame += this.text.slice(this.kept, this.at + 1);
    } else if (this.isInRows && this.depth === 3) {
      if (this.rows.length >= this.rowsMax) this.isFull = true;
      this.rowFrom = this.at;
    }
  }

  close() {
    this.depth -= 1;
    if (this.isInRows && this.depth === 2) {
      this.rows.push(parseRow(this.text.slice(this.rowFrom, this.at + 1)));
      this.rowFrom = -1;
    } else if (this.isInRows && this.depth === 1) {
      this.isInRows = false;
      this.kept = this.at;
    }
  }

  /** Lets go of text that was read. */
  compact() {
    if (!this.isInRows) return;
    const from = this.rowFrom >= 0 ? this.rowFrom : this.at;
    this.text = this.text.slice(from);
    this.at -= from;
    if (this.rowFrom >= 0) this.rowFrom = 0;
  }

  finish() {
    if (this.isFull) return JSON.parse(this.frame + "]}");
    try {
      return JSON.parse(this.frame + this.text.slice(this.isInRows ? this.text.length : this.kept));
    } catch {
      throw new SqlFailure(`the answer broke off after ${this.rows.length} rows: the statement failed on its way`);
    }
  }
}

function endOfString(text, from) {
  let end = from;
  for (;;) {
    end = text.indexOf('"', end + 1);
    if (end < 0) return -1;
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 92) slashes += 1;
    if (slashes % 2 === 0) return end;
  }
}

/** A row; numbers keep their digits where the browser shows them. */
function parseRow(text) {
  if (!/\d{16}|\.\d/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value, context) => {
    const digits = context?.source;
    return typeof value === "number" && digits !== undefined && String(value) !== digits && /^-?\d+(\.\d+)?$/.test(digits) ? new Exact(digits) : value;
  });
}
