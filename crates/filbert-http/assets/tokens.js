// SQL cut into tokens, for its colours, its completion and its statements. It understands no grammar: any text has tokens.

const KEYWORDS = new Set(`ADD ALL ALTER ANALYZE AND ANY AS ASC BEGIN BETWEEN BY CASE CAST CHECK CLUSTERED COLUMN COMMIT CONFLICT CONSTRAINT COPY
CREATE CROSS CURRENT_DATE CURRENT_TIMESTAMP DEFAULT DELETE DESC DISTINCT DO DROP ELSE END ESCAPE EXCEPT EXISTS EXPLAIN EXTERNAL FALSE FETCH FILTER
FIRST FOLLOWING FROM FULL GENERATED GRANT GROUP HAVING ILIKE IN INDEX INNER INSERT INTERSECT INTERVAL INTO IS JOIN KEY LAST LATERAL LEFT LIKE
LIMIT MAPPING MATERIALIZED NATURAL NOT NOTHING NULL NULLS OFFSET ON OPTIONS OR ORDER OUTER OVER PARTITION PARTITIONED PRECEDING PRIMARY RANGE
RECURSIVE REFRESH RENAME REPLACE RETURNING RIGHT ROLLBACK ROW ROWS SELECT SET SHARDS SHOW SINK SIMILAR SOME TABLE TABLES THEN TO TRUE TRUNCATE TYPE
UNBOUNDED UNION UNIQUE UPDATE USING VALUES VIEW WHEN WHERE WINDOW WITH`.split(/\s+/));
const TYPE_NAMES = new Set(`ARRAY BIGINT BOOLEAN BYTEA CHAR CHARACTER DATE DECIMAL DOUBLE GEO_POINT INT INTEGER IP JSON JSONB NUMERIC OBJECT PRECISION
REAL SMALLINT STRING TEXT TIME TIMESTAMP TIMESTAMPTZ TINYINT UUID VARCHAR ZONE`.split(/\s+/));
const SIGN = /(--[^\n]*)|(\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|("(?:[^"]|"")*(?:"|$))|(\$\$[\s\S]*?(?:\$\$|$))|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(\$\d+|\?)|([\p{L}_][\p{L}\p{N}_$]*)|(\s+)|([\s\S])/gu;
const KINDS = ["comment", "comment", "string", "quoted", "string", "number", "parameter", "word", "space", "sign"];

export const keywords = [...KEYWORDS];

/** The tokens of a text: {kind, text, from}. Together they are the text. */
export function tokens(text) {
  const found = [];
  for (const match of text.matchAll(SIGN)) {
    let kind = KINDS[match.slice(1).findIndex((part) => part !== undefined)];
    if (kind === "word") {
      const word = match[0].toUpperCase();
      if (KEYWORDS.has(word)) kind = "keyword";
      else if (TYPE_NAMES.has(word)) kind = "type";
    }
    found.push({ kind, text: match[0], from: match.index });
  }
  for (const [at, token] of found.entries()) {
    if ((token.kind === "word" || token.kind === "type") && found[at + 1]?.text === "(") token.kind = token.kind === "word" ? "function" : "type";
  }
  return found;
}

/** Where the token at a place is: {from, to}. */
export function locate(text, at) {
  const place = Math.max(0, Math.min(at, text.length));
  const token = tokens(text).find(({ from, text: part, kind }) => kind !== "space" && from + part.length > place);
  return token ? { from: token.from, to: token.from + token.text.length } : { from: Math.max(0, text.length - 1), to: text.length };
}

/** The statements of a text, divided by semicolons: [{text, from, to}], without empty ones. */
export function statements(text) {
  const parts = [];
  let from = 0;
  const all = tokens(text);
  for (const token of [...all, { kind: "sign", text: ";", from: text.length }]) {
    if (token.kind !== "sign" || token.text !== ";") continue;
    const within = all.filter((other) => other.from >= from && other.from < token.from && !["space", "comment"].includes(other.kind));
    if (within.length > 0) {
      const last = within.at(-1);
      parts.push({ from: within[0].from, to: last.from + last.text.length, until: token.from });
    }
    from = token.from + 1;
  }
  return parts.map(({ from: start, to, until }) => ({ text: text.slice(start, to), from: start, to, until }));
}

/** The statement at a place, or the one before it. */
export function statementAt(text, place) {
  const all = statements(text);
  return all.find(({ until }) => place <= until) ?? all.at(-1) ?? null;
}

/** A name as SQL must have it. */
export function quoted(name) {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !KEYWORDS.has(name.toUpperCase()) && !TYPE_NAMES.has(name.toUpperCase())
    ? name
    : `"${name.replaceAll('"', '""')}"`;
}
