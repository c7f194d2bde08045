//! Patterns of PostgreSQL's dialect: every plan returns the same rows as a plain matcher.

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::Dialect;
use proptest::prelude::*;

/// Whether a text matches a pattern; `None` if the pattern ends with its escape character.
fn is_like(text: &[char], pattern: &[char], escape: Option<char>) -> Option<bool> {
    let Some((first, rest)) = pattern.split_first() else { return Some(text.is_empty()) };
    if Some(*first) == escape {
        let (literal, rest) = rest.split_first()?;
        return match text.split_first() {
            Some((found, text)) if found == literal => is_like(text, rest, escape),
            // An invalid pattern is an error for every text.
            _ => is_like(&[], rest, escape).map(|_| false),
        };
    }
    match (first, text.split_first()) {
        ('%', _) => {
            let mut found = false;
            for start in 0..=text.len() {
                found |= is_like(&text[start..], rest, escape)?;
            }
            Some(found)
        }
        ('_', Some((_, text))) => is_like(text, rest, escape),
        (char, Some((found, text))) if char == found => is_like(text, rest, escape),
        _ => is_like(&[], rest, escape).map(|_| false),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

const LETTERS: &str = r"[ab%_\\é!A]{0,5}";

#[test]
fn like_finds_the_same_by_literals_parameters_columns_and_indexes() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE plain (id INT PRIMARY KEY, s TEXT)");
    member.change("CREATE TABLE indexed (id INT PRIMARY KEY, s TEXT)");
    member.change("CREATE INDEX indexed_s ON indexed (s)");
    member.change("CREATE TABLE keyed (s TEXT PRIMARY KEY)");
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(40));
    let texts = prop::collection::btree_set(LETTERS, 1..12);
    let cases = (texts, LETTERS, prop_oneof![Just(None), Just(Some('!')), Just(Some('\0'))]);
    runner
        .run(&cases, |(texts, pattern, escape)| {
            for table in ["plain", "indexed", "keyed"] {
                member.change(&format!("DELETE FROM {table}"));
            }
            for (id, text) in texts.iter().enumerate() {
                for table in ["plain", "indexed"] {
                    member.change(&format!("INSERT INTO {table} VALUES ({id}, {})", quoted(text)));
                }
                member.change(&format!("INSERT INTO keyed VALUES ({})", quoted(text)));
            }
            // An empty text means that there is no escape character.
            let (clause, escape) = match escape {
                None => (String::new(), Some('\\')),
                Some('\0') => (" ESCAPE ''".to_owned(), None),
                Some(escape) => (format!(" ESCAPE '{escape}'"), Some(escape)),
            };
            let characters: Vec<char> = pattern.chars().collect();
            let like = |text: &String| is_like(&text.chars().collect::<Vec<_>>(), &characters, escape);
            let found = |text| match like(text) {
                Some(true) => Some(Some(text)),
                Some(false) => None,
                None => Some(None),
            };
            let expected: Option<Vec<&String>> = texts.iter().filter_map(found).collect();
            let expected = is_like(&[], &characters, escape).and(expected);
            for table in ["plain", "indexed", "keyed"] {
                let literal = format!("SELECT s FROM {table} WHERE s LIKE {}{clause} ORDER BY s", quoted(&pattern));
                let parameter = format!("SELECT s FROM {table} WHERE s LIKE $1{clause} ORDER BY s");
                let column = format!(
                    "SELECT s FROM {table}, (SELECT {}::text AS p) x WHERE s LIKE p{clause} ORDER BY s",
                    quoted(&pattern)
                );
                let parameters = [Value::text(&pattern)];
                let found = [
                    member.try_rows(&literal, &[]),
                    member.try_rows(&parameter, &parameters),
                    member.try_rows(&column, &[]),
                ];
                for (found, text) in found.into_iter().zip([literal, parameter, column]) {
                    match (&expected, found) {
                        (Some(expected), Ok(found)) => {
                            let expected: Vec<&str> = expected.iter().map(|text| text.as_str()).collect();
                            prop_assert_eq!(&found, &expected, "{}", text);
                        }
                        (None, Err(error)) => prop_assert_eq!(error.sqlstate(), "22025", "{}", text),
                        (expected, found) => prop_assert!(false, "{}: {:?} {:?}", text, expected, found.is_ok()),
                    }
                }
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn similar_patterns_and_regular_expressions_agree_with_like() {
    let member = Member::of(Dialect::Postgres);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(200));
    runner
        .run(&("[ab%_é]{0,5}", "[abé]{0,5}"), |(pattern, text)| {
            let regular: String = pattern
                .chars()
                .map(|char| match char {
                    '%' => ".*".to_owned(),
                    '_' => ".".to_owned(),
                    other => other.to_string(),
                })
                .collect();
            let rows = member.rows(&format!(
                "SELECT (t LIKE {0}) = (t SIMILAR TO {0}), (t LIKE {0}) = (t ~ {1}), (t LIKE {0}) = (NOT (t !~~ {0})) \
                 FROM (SELECT {2}::text AS t) x",
                quoted(&pattern),
                quoted(&format!("^(?:{regular})$")),
                quoted(&text)
            ));
            prop_assert_eq!(&rows, &["true|true|true"], "{} {}", pattern, text);
            Ok(())
        })
        .unwrap();
}
