//! What a server makes of a statement.

/// A column of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The OID of its type.
    pub(crate) oid: u32,
}

/// A row: its values as the server writes them, none for NULL.
pub(crate) type Row = Vec<Option<String>>;

/// The answer to a statement that was not refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// The command tag, with the number of rows.
    pub(crate) tag: String,
    pub(crate) notices: Vec<String>,
}

/// What became of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answer(Answer),
    /// It was refused, or failed.
    Failure {
        sqlstate: String,
        message: String,
        /// Detail, hint and context, one after another.
        rest: String,
    },
    /// The connection ended, or never began.
    Lost(String),
    /// The server said nothing for too long.
    Timeout,
}

impl Outcome {
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Outcome::Answer(_))
    }

    /// Whether there was no time for an answer, which says nothing of what it would have been.
    pub(crate) fn is_late(&self) -> bool {
        self.is_cut_off() || matches!(self, Outcome::Timeout)
    }

    /// Whether the server ended it for taking too long; then it has changed nothing.
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

    /// In one line, for a report.
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
