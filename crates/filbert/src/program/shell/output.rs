//! Writes rows for people and programs: as a table, CSV or JSON.

use std::io::{self, StdoutLock, Write};

use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{Cell, CellAlignment, Table};

use super::{Format, Settings};

/// The number of rows per table. Column widths are computed for these rows, and the number bounds
/// the memory.
const TABLE_ROWS: usize = 1_000;
/// The text for null in a table.
const NULL: &str = "∅";

/// The kind of a column for JSON output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Boolean,
    Json,
}

/// Writes the rows of one statement.
pub(super) struct Writer<'o> {
    out: io::BufWriter<StdoutLock<'o>>,
    format: Format,
    expanded: bool,
    names: Option<Vec<String>>,
    kinds: Vec<Kind>,
    waiting: Vec<Vec<Option<String>>>,
    rows: u64,
}

impl<'o> Writer<'o> {
    pub(super) fn new(out: StdoutLock<'o>, settings: &Settings) -> Writer<'o> {
        Writer {
            out: io::BufWriter::new(out),
            format: settings.format,
            expanded: settings.expanded,
            names: None,
            kinds: Vec::new(),
            waiting: Vec::new(),
            rows: 0,
        }
    }

    /// Sets the kinds of the columns. Columns without a kind are texts.
    pub(super) fn kinds(&mut self, kinds: Vec<Kind>) {
        self.kinds = kinds;
    }

    /// Sets the columns of the following rows.
    pub(super) fn columns(&mut self, names: Vec<String>) -> io::Result<()> {
        if self.format == Format::Csv {
            write_csv(&mut self.out, names.iter().map(|name| Some(name.as_str())))?;
        }
        self.names = Some(names);
        Ok(())
    }

    /// Writes one row.
    pub(super) fn row<'v>(&mut self, values: impl Iterator<Item = Option<&'v str>>) -> io::Result<()> {
        self.rows += 1;
        match self.format {
            Format::Csv => write_csv(&mut self.out, values),
            Format::Json => {
                let names = self.names.as_deref().unwrap_or_default();
                let kinds = self.kinds.iter().copied().chain(std::iter::repeat(Kind::Text));
                let mut separator = '{';
                for ((name, kind), value) in names.iter().zip(kinds).zip(values) {
                    write!(self.out, "{separator}{}:{}", serde_json::Value::from(name.as_str()), json(kind, value))?;
                    separator = ',';
                }
                writeln!(self.out, "{}}}", if separator == '{' { "{" } else { "" })
            }
            Format::Table => {
                self.waiting.push(values.map(|value| value.map(str::to_owned)).collect());
                if self.waiting.len() >= TABLE_ROWS { self.write_table() } else { Ok(()) }
            }
        }
    }

    /// Ends the output of a statement with `count` changed or returned rows.
    pub(super) fn finish(mut self, count: u64) -> io::Result<()> {
        if self.format == Format::Table {
            let has_rows = self.names.is_some();
            if has_rows && (self.rows == 0 || !self.waiting.is_empty()) {
                self.write_table()?;
            }
            let count = if has_rows { self.rows } else { count };
            match (has_rows, count) {
                (false, 0) => writeln!(self.out, "OK")?,
                (_, 1) => writeln!(self.out, "1 row")?,
                _ => writeln!(self.out, "{count} rows")?,
            }
        }
        self.out.flush()
    }

    fn write_table(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        let names = self.names.as_deref().unwrap_or_default();
        if self.expanded {
            return write_expanded(&mut self.out, names, &rows, self.rows - rows.len() as u64);
        }
        let mut table = Table::new();
        table.load_preset(UTF8_BORDERS_ONLY).set_header(names);
        for row in rows {
            table.add_row(row.iter().map(|value| match value {
                None => Cell::new(NULL),
                Some(text) if text.parse::<f64>().is_ok() => Cell::new(text).set_alignment(CellAlignment::Right),
                Some(text) => Cell::new(text),
            }));
        }
        writeln!(self.out, "{table}")
    }
}

fn write_expanded(out: &mut impl Write, names: &[String], rows: &[Vec<Option<String>>], before: u64) -> io::Result<()> {
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (number, row) in (before + 1..).zip(rows) {
        writeln!(out, "── row {number} ──")?;
        for (name, value) in names.iter().zip(row) {
            writeln!(out, "{name:width$} │ {}", value.as_deref().unwrap_or(NULL))?;
        }
    }
    Ok(())
}

/// Writes a line of CSV (RFC 4180). Null is an empty field, an empty text is two quotes.
fn write_csv<'v>(out: &mut impl Write, values: impl Iterator<Item = Option<&'v str>>) -> io::Result<()> {
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        match value {
            None => {}
            Some(text) if text.is_empty() || text.contains(['"', ',', '\n', '\r']) => {
                write!(out, "\"{}\"", text.replace('"', "\"\""))?;
            }
            Some(text) => out.write_all(text.as_bytes())?,
        }
    }
    out.write_all(b"\n")
}

fn json(kind: Kind, value: Option<&str>) -> String {
    let Some(text) = value else { return "null".to_owned() };
    match (kind, text) {
        (Kind::Boolean, "t") => "true".to_owned(),
        (Kind::Boolean, "f") => "false".to_owned(),
        // JSON has no NaN or infinity: they are written as texts.
        (Kind::Number, number) if number.bytes().any(|byte| byte.is_ascii_digit()) => number.to_owned(),
        (Kind::Json, document) => document.to_owned(),
        _ => serde_json::Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_tells_nulls_from_empty_texts() {
        let mut out = Vec::new();
        write_csv(&mut out, [Some("a"), None, Some(""), Some("x, \"y\"")].into_iter()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a,,\"\",\"x, \"\"y\"\"\"\n");
    }

    #[test]
    fn json_values_are_of_their_kind() {
        for (kind, text, expected) in [
            (Kind::Number, "1.5", "1.5"),
            (Kind::Number, "NaN", "\"NaN\""),
            (Kind::Boolean, "t", "true"),
            (Kind::Json, "{\"a\": 1}", "{\"a\": 1}"),
            (Kind::Text, "5", "\"5\""),
        ] {
            assert_eq!(json(kind, Some(text)), expected);
        }
        assert_eq!(json(Kind::Number, None), "null");
    }
}
