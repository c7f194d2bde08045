//! Completion: keywords, and the names of tables and columns.

use std::sync::Arc;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use super::connection::Connection;

const KEYWORDS: &[&str] = &[
    "ALTER TABLE",
    "ANALYZE",
    "AND",
    "AS",
    "ASC",
    "BEGIN",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COMMIT",
    "COPY",
    "CREATE INDEX",
    "CREATE MAPPING",
    "CREATE TABLE",
    "CREATE VIEW",
    "CROSS JOIN",
    "DELETE FROM",
    "DESC",
    "DISTINCT",
    "DROP INDEX",
    "DROP MAPPING",
    "DROP TABLE",
    "DROP VIEW",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "FALSE",
    "FROM",
    "FULL JOIN",
    "GROUP BY",
    "HAVING",
    "IN",
    "INNER JOIN",
    "INSERT INTO",
    "INTERSECT",
    "INTO",
    "IS NOT NULL",
    "IS NULL",
    "JOIN",
    "LEFT JOIN",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OPTIONS",
    "OR",
    "ORDER BY",
    "OVER",
    "PARTITION BY",
    "PRIMARY KEY",
    "RETURNING",
    "RIGHT JOIN",
    "ROLLBACK",
    "SELECT",
    "SET",
    "SHOW MAPPINGS",
    "SINK INTO",
    "TABLE",
    "THEN",
    "TRUE",
    "TRUNCATE",
    "TYPE IMap",
    "UNION",
    "UNION ALL",
    "UPDATE",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITH",
];

/// The names for completion.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Tables and columns, sorted.
    names: Arc<Vec<String>>,
    is_old: bool,
}

impl Names {
    /// Reads the tables and columns from the member.
    pub(super) fn refresh(&mut self, connection: &Connection) {
        let mut names: Vec<String> = connection
            .texts(
                "SELECT table_name FROM information_schema.tables \
                 UNION SELECT column_name FROM information_schema.columns",
            )
            .into_iter()
            .filter_map(|row| row.into_iter().next().flatten())
            .collect();
        names.sort_unstable();
        self.names = Arc::new(names);
        self.is_old = false;
    }

    /// Marks the names as outdated.
    pub(super) fn make_old(&mut self) {
        self.is_old = true;
    }

    /// Whether the names are outdated.
    pub(super) fn are_old(&self) -> bool {
        self.is_old
    }

    fn candidates(&self, word: &str) -> Vec<Pair> {
        let fits = |name: &&str| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        let pair = |text: &str| Pair { display: text.to_owned(), replacement: text.to_owned() };
        let names = self.names.iter().map(String::as_str).filter(fits);
        // Keywords are completed in the case of the typed text.
        let is_lower = word.chars().any(char::is_lowercase);
        let keywords = KEYWORDS.iter().copied().filter(fits);
        let keywords = keywords.map(|keyword| if is_lower { keyword.to_lowercase() } else { keyword.to_owned() });
        names.map(pair).chain(keywords.map(|keyword| pair(&keyword))).collect()
    }
}

impl Completer for Names {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..position).unwrap_or(line);
        let is_part = |char: char| char.is_alphanumeric() || char == '_';
        let start = before
            .rfind(|char| !is_part(char))
            .map_or(0, |at| at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
        let word = before.get(start..).unwrap_or_default();
        if word.is_empty() {
            return Ok((start, Vec::new()));
        }
        Ok((start, self.candidates(word)))
    }
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}

impl Validator for Names {}

impl Helper for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(names: &[&str], word: &str) -> Vec<String> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let names = Names { names: Arc::new(names), is_old: false };
        names.candidates(word).into_iter().map(|pair| pair.replacement).collect()
    }

    #[test]
    fn names_come_before_keywords_in_the_case_that_was_typed() {
        assert_eq!(completed(&["selection", "users"], "sel"), ["selection", "select"]);
        assert_eq!(completed(&[], "INSE"), ["INSERT INTO"]);
        assert_eq!(completed(&["users"], "x"), [""; 0]);
    }
}
