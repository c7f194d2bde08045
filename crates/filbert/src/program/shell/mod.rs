//! `filbert sql`: statements for a running member, typed or piped in, over PostgreSQL's protocol.
//!
//! ```text
//!  terminal ── rustyline: history, completion ──┐
//!  pipe, -c ────────────────────────────────────┴─► input ─┬─► commands: backslash commands
//!                                                          └─► connection: statements
//!                                                                └─► output: table, CSV, JSON
//! ```
//!
//! It is an ordinary client: it uses only SQL to learn about the member.

mod commands;
mod complete;
mod connection;
mod input;
mod output;

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args as ClapArgs, ValueEnum};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

use commands::Next;
use complete::Names;
use connection::Connection;
use input::{Input, Piece};

/// The maximum size of a script or of piped input, in bytes.
const SCRIPT_BYTES_MAX: u64 = 1 << 30;
/// The maximum number of lines in the history.
const HISTORY_MAX: usize = 10_000;

/// The address of the member, and the statements to execute.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ShellArgs {
    /// Address of the member's PostgreSQL front door
    #[arg(long, short = 'H', value_name = "HOST[:PORT]", env = "FILBERT_SQL_HOST", default_value = "127.0.0.1:5432")]
    host: String,

    /// User name; PGPASSWORD contains the password, otherwise the shell prompts for it
    #[arg(long, short = 'U', value_name = "NAME", env = "PGUSER", default_value = "filbert")]
    user: String,

    /// Execute this statement and exit; may be repeated
    #[arg(long, short = 'c', value_name = "STATEMENT")]
    command: Vec<String>,

    /// Output format of rows
    #[arg(long, short = 'f', value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Show the duration of each statement
    #[arg(long, short = 't')]
    timing: bool,
}

/// The output format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns side by side
    Table,
    /// Comma-separated values, the names first
    Csv,
    /// One JSON object per row, each on a separate line
    Json,
}

/// The settings that can be changed while the shell runs.
#[derive(Debug, Clone)]
struct Settings {
    format: Format,
    /// One line per value instead of one line per row.
    expanded: bool,
    timing: bool,
}

/// A fatal error of the shell. In interactive mode a failed statement is only reported; in a script
/// it ends the shell.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ShellError {
    /// The member is unreachable or rejects the user.
    #[error("cannot connect to {address}: {reason}")]
    Connect {
        /// The address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// A statement of a script failed.
    #[error("{0}")]
    Statement(String),
    /// The input cannot be read.
    #[error("cannot read the statements")]
    Read(#[source] std::io::Error),
    /// Rows cannot be written.
    #[error("cannot write the rows")]
    Write(#[source] std::io::Error),
    /// The terminal does not work.
    #[error("the terminal cannot be used")]
    Terminal(#[from] ReadlineError),
}

/// A running shell.
struct Shell {
    connection: Connection,
    settings: Settings,
    names: Names,
}

/// Runs the shell until the end of its input.
pub(crate) fn main(args: &ShellArgs) -> Result<(), ShellError> {
    let is_terminal = std::io::stdin().is_terminal();
    let connection = Connection::open(&args.host, &args.user, is_terminal)?;
    let settings = Settings { format: args.format, expanded: false, timing: args.timing };
    let mut shell = Shell { connection, settings, names: Names::default() };
    if !args.command.is_empty() {
        return args.command.iter().try_for_each(|text| shell.script(text));
    }
    if is_terminal { shell.interactive() } else { shell.piped() }
}

impl Shell {
    fn piped(&mut self) -> Result<(), ShellError> {
        let mut text = String::new();
        std::io::stdin().take(SCRIPT_BYTES_MAX).read_to_string(&mut text).map_err(ShellError::Read)?;
        self.script(&text)
    }

    /// Executes a text with any number of statements and commands. The first failure ends it.
    fn script(&mut self, text: &str) -> Result<(), ShellError> {
        let mut input = Input::default();
        input.push(text);
        while let Some(piece) = input.next_of_script() {
            match piece {
                Piece::Statement(statement) => self.statement(&statement)?,
                Piece::Command(command) => {
                    if matches!(self.command(&command)?, Next::End) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn interactive(&mut self) -> Result<(), ShellError> {
        println_to_terminal(&format!(
            "{} at {}. \\? lists the commands, \\q or Ctrl-D ends.",
            self.connection.version(),
            self.connection.address()
        ))?;
        let config = Config::builder().max_history_size(HISTORY_MAX)?.auto_add_history(false).build();
        let mut editor: Editor<Names, FileHistory> = Editor::with_config(config)?;
        let history = history_file();
        if let Some(path) = &history {
            // The file does not exist at the first start.
            let _ = editor.load_history(path);
        }
        self.names.refresh(&self.connection);
        editor.set_helper(Some(self.names.clone()));
        let mut input = Input::default();
        loop {
            match editor.readline(if input.is_empty() { "filbert> " } else { "      -> " }) {
                Ok(line) => {
                    input.push(&line);
                    input.push("\n");
                }
                Err(ReadlineError::Interrupted) => {
                    input = Input::default();
                    continue;
                }
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(error.into()),
            }
            while let Some(piece) = input.next() {
                let _ = editor.add_history_entry(piece.as_typed());
                let done = match piece {
                    Piece::Statement(statement) => self.statement(&statement).map(|()| Next::Line),
                    Piece::Command(command) => self.command(&command),
                };
                match done {
                    Ok(Next::End) => return save(&mut editor, history.as_ref()),
                    Ok(Next::Line) => {}
                    Err(error @ (ShellError::Statement(_) | ShellError::Read(_))) => {
                        let _ = writeln!(std::io::stderr(), "{error}");
                    }
                    Err(error) => return Err(error),
                }
            }
            if self.names.are_old() {
                self.names.refresh(&self.connection);
                editor.set_helper(Some(self.names.clone()));
            }
        }
        save(&mut editor, history.as_ref())
    }

    fn statement(&mut self, statement: &str) -> Result<(), ShellError> {
        let started = Instant::now();
        let stdout = std::io::stdout();
        let mut writer = output::Writer::new(stdout.lock(), &self.settings);
        let count = self.connection.run(statement, self.settings.format == Format::Json, &mut writer)?;
        writer.finish(count).map_err(ShellError::Write)?;
        if self.settings.timing {
            let _ = writeln!(std::io::stderr(), "{:.3} ms", started.elapsed().as_secs_f64() * 1e3);
        }
        let changes_names = ["create", "drop", "alter"]
            .iter()
            .any(|word| statement.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)));
        if changes_names {
            self.names.make_old();
        }
        Ok(())
    }
}

fn save(editor: &mut Editor<Names, FileHistory>, path: Option<&PathBuf>) -> Result<(), ShellError> {
    if let Some(path) = path {
        if let Some(directory) = path.parent() {
            let _ = std::fs::create_dir_all(directory);
        }
        // An error while saving the history is ignored.
        let _ = editor.save_history(path);
    }
    Ok(())
}

fn println_to_terminal(text: &str) -> Result<(), ShellError> {
    writeln!(std::io::stdout(), "{text}").map_err(ShellError::Write)
}

/// The path of the history file: in the directory for program state, which is below the home
/// directory by default.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state")))?;
    Some(state.join("filbert/sql_history"))
}
