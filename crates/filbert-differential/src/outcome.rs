//! The outcome of a statement on a server.

/// A column of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The OID of its type.
    pub(crate) oid: u32,
}

/// A row: its values in the server's text form, `None` for NULL.
pub(crate) type Row = Vec<Option<String>>;

/// The result of a successful statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// The command tag, with the number of rows.
    pub(crate) tag: String,
    pub(crate) notices: Vec<String>,
}

/// The outcome of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answer(Answer),
    /// The statement was rejected or failed.
    Failure {
        sqlstate: String,
        message: String,
        /// Detail, hint and context, concatenated.
        rest: String,
    },
    /// The connection was lost or could not be opened.
    Lost(String),
    /// The server did not reply in time.
    Timeout,
}

impl Outcome {
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Outcome::Answer(_))
    }

    /// Whether the outcome is a timeout, which says nothing about the result.
    pub(crate) fn is_late(&self) -> bool {
        self.is_cut_off() || matches!(self, Outcome::Timeout)
    }

    /// Whether the server cancelled the statement for its timeout. Then it has changed nothing.
    pub(crate) fn is_cut_off(&self) -> bool {
        matches!(self, Outcome::Failure { sqlstate, .. } if sqlstate == "57014")
    }

    /// The rows, if there are any.
    pub(crate) fn rows(&self) -> &[Row] {
        match self {
            Outcome::Answer(answer) => &answer.rows,
            _ => &[],
        }
    }

    /// The outcome in one line, for a report.
    pub(crate) fn shown(&self) -> String {
        const ROWS_MAX: usize = 12;
        match self {
            Outcome::Answer(answer) if answer.columns.is_empty() => answer.tag.clone(),
            Outcome::Answer(answer) => {
                let columns: Vec<String> =
                    answer.columns.iter().map(|column| format!("{}:{}", column.name, column.oid)).collect();
                let mut rows: Vec<String> = answer.rows.iter().take(ROWS_MAX).map(shown_row).collect();
                if answer.rows.len() > ROWS_MAX {
                    rows.push(format!(".. {} rows", answer.rows.len()));
                }
                format!("[{}] {}", columns.join(", "), rows.join(" "))
            }
            Outcome::Failure { sqlstate, message, rest } => format!("error {sqlstate}: {message}{rest}"),
            Outcome::Lost(why) => format!("connection lost: {why}"),
            Outcome::Timeout => "no answer in time".to_owned(),
        }
    }
}

fn shown_row(row: &Row) -> String {
    let values: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
    format!("({})", values.join(", "))
}
