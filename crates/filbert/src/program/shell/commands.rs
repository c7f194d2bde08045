//! Backslash commands.

use std::io::Write;

use super::{Format, Settings, Shell, ShellError};

/// The next step after a command.
pub(super) enum Next {
    /// Read the next line.
    Line,
    /// End the shell.
    End,
}

const HELP: &str = "\
\\d            tables, mappings and views          \\d NAME       columns of one, and its indexes
\\dt \\dv \\dn   tables, views, schemas               \\l            databases
\\x            one line for each value, or not      \\timing       tells how long statements take, or not
\\f FORMAT     table, csv or json                   \\i FILE       runs the statements of a file
\\conninfo     where this is connected              \\q            ends
Statements end with a semicolon. Ctrl-C cancels what runs, Tab completes names, Ctrl-R searches the history.";

const TABLES: &str = "SELECT table_schema AS schema, table_name AS name, lower(table_type) AS type \
                      FROM information_schema.tables \
                      WHERE table_schema NOT IN ('information_schema', 'pg_catalog', 'sys')";
const BY_NAME: &str = " ORDER BY 1, 2";

impl Shell {
    /// Executes a command.
    pub(super) fn command(&mut self, command: &str) -> Result<Next, ShellError> {
        let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let argument = argument.trim().trim_end_matches(';');
        match (name.trim_end_matches(';'), argument) {
            ("\\q" | "\\quit", _) => return Ok(Next::End),
            ("\\?" | "\\h" | "\\help", _) => say(HELP)?,
            ("\\x", _) => {
                self.settings.expanded = !self.settings.expanded;
                say(&format!("expanded: {}", on_off(self.settings.expanded)))?;
            }
            ("\\timing", _) => {
                self.settings.timing = !self.settings.timing;
                say(&format!("timing: {}", on_off(self.settings.timing)))?;
            }
            ("\\f" | "\\format", format) => set_format(&mut self.settings, format)?,
            ("\\conninfo", _) => say(&format!("{} at {}", self.connection.version(), self.connection.address()))?,
            ("\\i", path) => {
                let text = std::fs::read_to_string(path).map_err(ShellError::Read)?;
                self.script(&text)?;
            }
            ("\\d", "") => self.statement(&format!("{TABLES}{BY_NAME}"))?,
            ("\\dt", "") => self.statement(&format!("{TABLES} AND table_type = 'BASE TABLE'{BY_NAME}"))?,
            ("\\dv", "") => self.statement(&format!("{TABLES} AND table_type = 'VIEW'{BY_NAME}"))?,
            ("\\dn", _) => {
                self.statement("SELECT schema_name AS name FROM information_schema.schemata ORDER BY 1")?;
            }
            ("\\l", _) => self.statement("SELECT datname AS name FROM pg_catalog.pg_database ORDER BY 1")?,
            ("\\d" | "\\dt" | "\\dv", relation) => self.describe(relation)?,
            _ => return Err(ShellError::Statement(format!("there is no command {name}, \\? lists those there are"))),
        }
        Ok(Next::Line)
    }

    /// Shows the columns of a table, a mapping or a view, and its indexes.
    fn describe(&mut self, relation: &str) -> Result<(), ShellError> {
        let (schema, name) = match relation.split_once('.') {
            Some((schema, name)) => (format!(" AND table_schema = {}", literal(schema)), name),
            None => (String::new(), relation),
        };
        let name = literal(name.trim_matches('"'));
        self.statement(&format!(
            "SELECT column_name AS column, data_type AS type, is_nullable AS nullable, column_default AS default \
             FROM information_schema.columns WHERE table_name = {name}{schema} ORDER BY ordinal_position"
        ))?;
        let indexes = self.connection.texts(&format!(
            "SELECT indexname, indexdef FROM pg_catalog.pg_indexes WHERE tablename = {name} ORDER BY 1"
        ));
        if self.settings.format == Format::Table {
            for index in indexes {
                let text: Vec<String> = index.into_iter().flatten().collect();
                say(&format!("index {}", text.join(": ")))?;
            }
        }
        Ok(())
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn set_format(settings: &mut Settings, format: &str) -> Result<(), ShellError> {
    settings.format = match format {
        "table" => Format::Table,
        "csv" => Format::Csv,
        "json" => Format::Json,
        other => {
            return Err(ShellError::Statement(format!("the format {other:?} is unknown, expected table, csv or json")));
        }
    };
    say(&format!("format: {format}"))
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn say(text: &str) -> Result<(), ShellError> {
    writeln!(std::io::stdout(), "{text}").map_err(ShellError::Write)
}
