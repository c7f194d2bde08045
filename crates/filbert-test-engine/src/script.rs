//! The reading of statements, and their descriptions.

use std::sync::Arc;

use filbert_data::FieldType;
use filbert_grid::query::{ColumnMeta, Command, CopyFormat, CopyKind, TransactionState};

use crate::rows;

/// The reaction of the engine to a statement. The table in the documentation of the crate explains
/// each one.
#[derive(Debug, PartialEq)]
pub(crate) enum Script<'a> {
    SelectNow(usize),
    SelectLater(usize, End),
    SelectTexts { rows: usize, bytes: usize },
    SelectHang { is_later: bool },
    SelectEcho,
    SelectTimestamp,
    Who,
    Insert(u64),
    InsertLater(u64),
    InsertWarned(u64),
    InsertRows,
    Update,
    Transaction(&'static str, TransactionState),
    Set { name: &'a str, value: &'a str },
    CopyIn { arrays: bool, format: CopyFormat },
    CopyOut(usize, CopyFormat),
    Fail,
}

/// The end of a result of `select later n`, after its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Last,
    Fail,
    Hang,
}

impl Script<'_> {
    /// Reads a statement; `None` if it is unknown.
    pub(crate) fn of(text: &str) -> Option<Script<'_>> {
        if let Some((name, value)) = text.strip_prefix("set ").and_then(|setting| setting.split_once(' ')) {
            return Some(Script::Set { name, value });
        }
        let words: Vec<&str> = text.split(' ').collect();
        Some(match *words.as_slice() {
            ["select", "now", rows] => Script::SelectNow(rows.parse().ok()?),
            ["select", "later", rows] => Script::SelectLater(rows.parse().ok()?, End::Last),
            ["select", "later", rows, "then", "fail"] => Script::SelectLater(rows.parse().ok()?, End::Fail),
            ["select", "later", rows, "then", "hang"] => Script::SelectLater(rows.parse().ok()?, End::Hang),
            ["select", "texts", rows, "of", bytes] => {
                Script::SelectTexts { rows: rows.parse().ok()?, bytes: bytes.parse().ok()? }
            }
            ["select", "hang"] => Script::SelectHang { is_later: false },
            ["select", "hang", "later"] => Script::SelectHang { is_later: true },
            ["select", "echo", ..] => Script::SelectEcho,
            ["select", "timestamp", "$1"] => Script::SelectTimestamp,
            ["who"] => Script::Who,
            ["insert"] => Script::InsertRows,
            ["insert", rows] => Script::Insert(rows.parse().ok()?),
            ["insert", "later", rows] => Script::InsertLater(rows.parse().ok()?),
            ["insert", "warned", rows] => Script::InsertWarned(rows.parse().ok()?),
            ["update", "$1"] => Script::Update,
            ["begin" | "BEGIN"] | ["START", "TRANSACTION"] => Script::Transaction("BEGIN", TransactionState::Open),
            ["commit" | "COMMIT"] => Script::Transaction("COMMIT", TransactionState::Idle),
            ["rollback" | "ROLLBACK"] => Script::Transaction("ROLLBACK", TransactionState::Idle),
            ["copy", table, "from", "stdin", ref options @ ..] => {
                Script::CopyIn { arrays: table == "arrays", format: copy_format(options) }
            }
            ["copy", rows, "to", "stdout", ref options @ ..] => {
                Script::CopyOut(rows.parse().ok()?, copy_format(options))
            }
            ["fail"] => Script::Fail,
            _ => return None,
        })
    }

    /// The kind of the statement, and the columns of its rows; `None` if it has no description.
    pub(crate) fn description(self) -> Option<(Command, Option<Arc<[ColumnMeta]>>)> {
        Some(match self {
            Script::SelectNow(_) | Script::SelectLater(..) | Script::SelectTexts { .. } | Script::SelectHang { .. } => {
                (Command::Select, Some(rows::numbers()))
            }
            Script::SelectEcho | Script::SelectTimestamp | Script::Who => (Command::Select, Some(rows::one_text())),
            Script::Insert(_) | Script::InsertLater(_) | Script::InsertWarned(_) | Script::InsertRows => {
                (Command::Insert, None)
            }
            Script::Update => (Command::Update, None),
            Script::Transaction(tag, _) => (Command::Other(tag), None),
            Script::Set { .. } => (Command::Other("SET"), None),
            Script::CopyIn { format, .. } => (Command::CopyIn(format), Some(rows::numbers())),
            Script::CopyOut(_, format) => (Command::CopyOut(format), Some(rows::numbers())),
            Script::Fail => return None,
        })
    }

    /// The type of a parameter for which the client has declared none.
    pub(crate) fn parameter_type(&self) -> FieldType {
        match self {
            Script::SelectTimestamp => FieldType::Timestamp,
            Script::Update => FieldType::BigInt,
            _ => FieldType::Varchar,
        }
    }
}

fn copy_format(options: &[&str]) -> CopyFormat {
    let kind = match options.first() {
        Some(&"csv") => CopyKind::Csv,
        Some(&"binary") => CopyKind::Binary,
        _ => CopyKind::Text,
    };
    CopyFormat { header: options.contains(&"header"), ..CopyFormat::of(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_of_the_table_is_read() {
        let head = include_str!("lib.rs");
        let table = head.split("# ").find(|section| section.starts_with("Statements")).unwrap();
        let mut count = 0;
        // Statements stand in the first column, in backquotes. The options of COPY are none.
        let rows = table.lines().filter_map(|line| line.strip_prefix("//! | `"));
        for row in rows.filter(|row| !row.starts_with("copy ..")) {
            let (statements, _) = row.split_once("` | ").unwrap();
            for text in statements.split("`, `") {
                let number = |word| if matches!(word, "n" | "b") { "7" } else { word };
                let text = text.split(' ').map(number).collect::<Vec<_>>().join(" ");
                assert!(Script::of(&text).is_some(), "{text}");
                count += 1;
            }
        }
        assert_eq!(count, 23);
    }

    #[test]
    fn numbers_and_options_are_read() {
        assert_eq!(Script::of("select later 5 then hang"), Some(Script::SelectLater(5, End::Hang)));
        assert_eq!(Script::of("set a b c"), Some(Script::Set { name: "a", value: "b c" }));
        let Some(Script::CopyIn { arrays: true, format }) = Script::of("copy arrays from stdin csv header") else {
            panic!("no COPY")
        };
        assert_eq!((format.kind, format.header), (CopyKind::Csv, true));
        for unknown in ["", "select", "select now", "select now many", "insert 1 2", "SELECT 1"] {
            assert_eq!(Script::of(unknown), None, "{unknown}");
        }
    }
}
