//! SQLite's public tests (public domain, from its sqllogictest repository; the first queries of
//! each file, in `tests/slt-sqlite`), as far as the dialect supports them. A table becomes a
//! mapping with numbered keys and a view without the keys. Queries are unchanged. The test prints
//! the share of queries that return SQLite's rows; the share must not fall. The SQL reference lists
//! the reasons for other results.
//!
//! Rows are compared in the format of SQLite's own runner: `I` without a fraction, `R` with three
//! fractional digits, one value per line, or the MD5 of all lines.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use filbert::Value;
use md5::{Digest, Md5};

use crate::database::{Answer, Database, Embedded};
use crate::values::text_of;

/// The minimum share of queries that return SQLite's rows, in tenths of a percent. It is the
/// highest share reached so far.
const PASSED_PER_MILLE_MIN: u64 = 996;

/// One query or statement of a file.
struct Record<'t> {
    sql: String,
    /// The expected rows of a query, with the letters of the columns, or the expected success of a
    /// statement.
    expected: Expected<'t>,
}

enum Expected<'t> {
    Success(bool),
    Rows { kinds: &'t str, sort: &'t str, lines: Vec<&'t str> },
}

fn records(text: &str) -> Vec<Record<'_>> {
    text.split("\n\n").filter_map(record).collect()
}

fn record(text: &str) -> Option<Record<'_>> {
    let mut lines = text.lines().skip_while(|line| line.is_empty() || line.starts_with('#')).peekable();
    // Filbert is none of the named engines: `onlyif` records are skipped, `skipif` records are run.
    while let Some(line) = lines.next_if(|line| line.starts_with("skipif") || line.starts_with("onlyif")) {
        if line.starts_with("onlyif") {
            return None;
        }
    }
    let head: Vec<&str> = lines.next()?.split_whitespace().collect();
    match head.as_slice() {
        ["statement", outcome, ..] => {
            let sql = lines.collect::<Vec<_>>().join("\n");
            Some(Record { sql, expected: Expected::Success(*outcome == "ok") })
        }
        ["query", kinds, rest @ ..] => {
            let sql: Vec<&str> = lines.by_ref().take_while(|line| *line != "----").collect();
            let sort = rest.first().copied().unwrap_or("nosort");
            Some(Record { sql: sql.join("\n"), expected: Expected::Rows { kinds, sort, lines: lines.collect() } })
        }
        _ => None,
    }
}

/// Rewrites statements on tables to statements on mappings.
#[derive(Default)]
struct Rewriter {
    /// The columns of each table.
    tables: HashMap<String, Vec<String>>,
    /// The table of each index.
    indexes: HashMap<String, String>,
    keys: u64,
}

impl Rewriter {
    /// Returns the replacement statements, in order.
    fn statements(&mut self, sql: &str) -> Vec<String> {
        let words: Vec<&str> = sql.split_whitespace().collect();
        match words.as_slice() {
            ["CREATE", "TABLE", ..] => self.create_table(sql),
            ["DROP", "TABLE", table, ..] => self.drop_table(table),
            _ => vec![self.statement(sql, &words)],
        }
    }

    fn statement(&mut self, sql: &str, words: &[&str]) -> String {
        match words {
            ["CREATE", "UNIQUE" | "INDEX", ..] => self.create_index(sql),
            ["DROP", "INDEX", index, ..] => {
                format!("DROP INDEX {index} ON {}_rows", self.indexes.remove(*index).unwrap_or_default())
            }
            ["INSERT", "INTO", ..] => self.insert(sql),
            ["UPDATE", table, ..] if self.tables.contains_key(*table) => {
                sql.replacen(&format!("UPDATE {table}"), &format!("UPDATE {table}_rows"), 1)
            }
            ["DELETE", "FROM", table, ..] => {
                sql.replacen(&format!("DELETE FROM {table}"), &format!("DELETE FROM {table}_rows"), 1)
            }
            _ => sql.to_owned(),
        }
    }

    /// Dropping a mapping keeps its map, so the rows are deleted first.
    fn drop_table(&mut self, table: &str) -> Vec<String> {
        let indexes: Vec<String> =
            self.indexes.iter().filter(|(_, of)| *of == table).map(|(index, _)| index.clone()).collect();
        let mut statements = vec![format!("DROP VIEW {table}"), format!("DELETE FROM {table}_rows")];
        for index in indexes {
            self.indexes.remove(&index);
            statements.push(format!("DROP INDEX {index} ON {table}_rows"));
        }
        self.tables.remove(table);
        statements.push(format!("DROP MAPPING {table}_rows"));
        statements
    }

    fn create_table(&mut self, sql: &str) -> Vec<String> {
        let Some((head, rest)) = sql.split_once('(') else { return vec![sql.to_owned()] };
        let name = head.split_whitespace().last().unwrap_or_default();
        let body = rest.trim().trim_end_matches(')');
        let mut columns = Vec::new();
        let mut declared = Vec::new();
        // A split at commas is safe: in these files no type has a scale, such as `(10,2)`.
        for column in body.split(',') {
            let mut words = column.split_whitespace();
            let (Some(column), kind) = (words.next(), words.next().unwrap_or("INTEGER").to_uppercase()) else {
                continue;
            };
            let kind = match kind.as_str() {
                "INTEGER" | "INT" => "BIGINT",
                "FLOAT" | "REAL" | "DOUBLE" => "DOUBLE",
                _ => "VARCHAR",
            };
            columns.push(column.to_owned());
            declared.push(format!("{column} {kind}"));
        }
        let names = columns.join(", ");
        self.tables.insert(name.to_owned(), columns);
        let mapping = format!(
            "CREATE MAPPING {name}_rows ({}) TYPE IMap OPTIONS ('keyFormat'='bigint', 'valueFormat'='compact', \
             'valueCompactTypeName'='{name}')",
            declared.join(", ")
        );
        vec![mapping, format!("CREATE VIEW {name} AS SELECT {names} FROM {name}_rows")]
    }

    fn create_index(&mut self, sql: &str) -> String {
        let sql = sql.replace("UNIQUE ", "").replace(" DESC", "").replace(" ASC", "").replace(" on ", " ON ");
        let words: Vec<&str> = sql.split(|letter: char| letter.is_whitespace() || letter == '(').collect();
        if let ["CREATE", "INDEX", index, "ON", table, ..] = words.as_slice() {
            self.indexes.insert((*index).to_owned(), (*table).to_owned());
            return sql.replacen(&format!(" ON {table}"), &format!(" ON {table}_rows"), 1);
        }
        sql
    }

    fn insert(&mut self, sql: &str) -> String {
        let upper = sql.to_uppercase();
        let after = sql.get("INSERT INTO".len()..).unwrap_or_default().trim_start();
        let name: String = after.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        let rest = after.get(name.len()..).unwrap_or_default().trim_start();
        let mut columns = self.tables.get(&name).cloned().unwrap_or_default().join(", ");
        let mut source = rest;
        if let Some((written, values)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            columns = written.to_owned();
            source = values.trim_start();
        }
        if !upper.contains("VALUES") {
            // The gap to the next key is larger than the number of rows of any source.
            let first = self.keys + 1_000_000;
            self.keys = first + 1_000_000;
            return format!(
                "INSERT INTO {name}_rows (__key, {columns}) SELECT {} + row_number() OVER (), s.* FROM ({source}) AS s",
                first
            );
        }
        let Some((_, rows)) = source.split_once('(') else { return sql.to_owned() };
        self.keys += 1;
        let mut rewritten = format!("INSERT INTO {name}_rows (__key, {columns}) VALUES ({}, ", self.keys);
        // Further rows start with `),(`.
        for (at, row) in rows.split("),(").enumerate() {
            if at > 0 {
                self.keys += 1;
                rewritten.push_str(&format!("), ({}, ", self.keys));
            }
            rewritten.push_str(row);
        }
        rewritten
    }
}

/// Formats a value as SQLite's runner does.
fn written(value: &Value<'_>, kind: char) -> String {
    let text = match value {
        Value::Boolean(value) => u8::from(*value).to_string(),
        other => text_of(other),
    };
    match (kind, text.as_str()) {
        (_, "NULL") => text,
        ('I', _) => text
            .parse::<f64>()
            .map_or_else(|_| "0".to_owned(), |number| text.parse::<i64>().unwrap_or(number.trunc() as i64).to_string()),
        ('R', _) => text.parse::<f64>().map_or_else(|_| "0.000".to_owned(), |number| format!("{number:.3}")),
        _ => text,
    }
}

fn agrees(rows: &[Vec<Value<'static>>], kinds: &str, sort: &str, expected: &[&str]) -> bool {
    let row = |row: &Vec<Value<'static>>| -> Vec<String> {
        row.iter().zip(kinds.chars()).map(|(value, kind)| written(value, kind)).collect()
    };
    let mut rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    if sort == "rowsort" {
        rows.sort();
    }
    let mut values: Vec<String> = rows.into_iter().flatten().collect();
    if sort == "valuesort" {
        values.sort();
    }
    if let [only] = expected
        && let Some((count, hash)) = only.split_once(" values hashing to ")
    {
        let mut md5 = Md5::new();
        values.iter().for_each(|value| {
            md5.update(value);
            md5.update("\n");
        });
        let found: String = md5.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        return count == values.len().to_string() && hash == found;
    }
    values == expected
}

/// The number of failures and a first example, by kind.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    reasons: BTreeMap<String, (u64, String)>,
}

impl Tally {
    fn failed(&mut self, reason: &str, example: String) {
        self.failed += 1;
        // Numbers of the statement are not part of the kind.
        let kind: String =
            reason.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).take(60).collect();
        self.reasons.entry(kind).or_insert((0, example)).0 += 1;
    }
}

fn run(text: &str, tally: &mut Tally) {
    let mut database = Embedded::start();
    let mut rewriter = Rewriter::default();
    for record in records(text) {
        let mut answer = Ok(Answer::Count(0));
        let mut sql = String::new();
        for statement in rewriter.statements(&record.sql) {
            if answer.is_ok() {
                answer = database.answer(&statement, &[]);
                sql = statement;
            }
        }
        match (record.expected, answer) {
            (Expected::Rows { kinds, sort, lines }, Ok(Answer::Rows { rows, .. })) => {
                if agrees(&rows, kinds, sort, &lines) {
                    tally.passed += 1;
                } else {
                    let found: Vec<String> = rows.iter().flatten().take(8).map(text_of).collect();
                    tally.failed("other rows", format!("{sql}\n  expected {lines:.8?}\n  found {found:?}"));
                }
            }
            (Expected::Rows { .. }, Ok(Answer::Count(_))) => tally.failed("a count", sql),
            (Expected::Rows { .. }, Err(error)) => tally.failed(&error.to_string(), format!("{sql}\n  {error}")),
            (Expected::Success(true), Err(error)) => {
                tally.failed(&format!("statement: {error}"), format!("{sql}\n  {error}"));
            }
            (Expected::Success(_), _) => {}
        }
    }
}

pub(crate) fn queries_give_the_rows_that_sqlite_gives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt-sqlite");
    let wanted = std::env::var("FILBERT_SQLITE").unwrap_or_default();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "test"));
    files.retain(|path| path.to_string_lossy().contains(&wanted));
    files.sort();
    let mut all = Tally::default();
    for path in &files {
        let before = (all.passed, all.failed);
        run(&std::fs::read_to_string(path).unwrap(), &mut all);
        let name = path.file_stem().unwrap().to_string_lossy();
        eprintln!("{name}: {} passed, {} failed", all.passed - before.0, all.failed - before.1);
    }
    let mut reasons: Vec<_> = all.reasons.iter().collect();
    reasons.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (reason, (count, example)) in reasons {
        eprintln!("{count} x {reason}\n    {example}");
    }
    let per_mille = all.passed * 1000 / (all.passed + all.failed).max(1);
    eprintln!(
        "SQLite's tests: {} of {} passed, {}.{} %",
        all.passed,
        all.passed + all.failed,
        per_mille / 10,
        per_mille % 10
    );
    assert!(
        per_mille >= PASSED_PER_MILLE_MIN,
        "{per_mille} of 1000 queries give SQLite's rows, {PASSED_PER_MILLE_MIN} did"
    );
}
