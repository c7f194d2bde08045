//! Splits the input into statements and commands.

/// One statement or command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A statement, without its semicolon.
    Statement(String),
    /// A command, with its backslash.
    Command(String),
}

impl Piece {
    /// The form for the history: a statement with several lines is one entry.
    pub(super) fn as_typed(&self) -> String {
        match self {
            Piece::Statement(statement) => format!("{statement};"),
            Piece::Command(command) => command.clone(),
        }
    }
}

/// Input that has not been executed yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    text: String,
}

impl Input {
    /// Appends input.
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Whether the remaining input is only white space.
    pub(super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Returns the next complete statement (up to its semicolon) or the next command (up to the end
    /// of the line).
    pub(super) fn next(&mut self) -> Option<Piece> {
        loop {
            let start = self.text.len() - self.text.trim_start().len();
            self.text.drain(..start);
            if self.text.starts_with('\\') {
                let end = self.text.find('\n').unwrap_or(self.text.len());
                return Some(Piece::Command(self.text.drain(..end).collect::<String>().trim().to_owned()));
            }
            let end = filbert_postgres::statement_bytes(&self.text)?;
            let statement: String = self.text.drain(..end).collect();
            let statement = statement.trim_end_matches(';').trim();
            if !statement.is_empty() {
                return Some(Piece::Statement(statement.to_owned()));
            }
        }
    }

    /// As [`Input::next`], but the last statement of a script needs no semicolon.
    pub(super) fn next_of_script(&mut self) -> Option<Piece> {
        if let Some(piece) = self.next() {
            return Some(piece);
        }
        let rest = std::mem::take(&mut self.text);
        let rest = rest.trim();
        (!rest.is_empty()).then(|| Piece::Statement(rest.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        let mut input = Input::default();
        input.push(text);
        std::iter::from_fn(|| input.next_of_script()).map(|piece| piece.as_typed()).collect()
    }

    #[test]
    fn statements_end_with_semicolons_and_commands_with_lines() {
        assert_eq!(all("SELECT 1; SELECT\n2"), ["SELECT 1;", "SELECT\n2;"]);
        assert_eq!(all("\\d t\nSELECT ';' ;\\q"), ["\\d t", "SELECT ';';", "\\q"]);
        assert_eq!(all(" ;; \n"), [""; 0]);
    }

    #[test]
    fn what_is_not_complete_waits() {
        let mut input = Input::default();
        input.push("SELECT 'a;\n");
        assert_eq!(input.next(), None);
        input.push("b';");
        assert_eq!(input.next(), Some(Piece::Statement("SELECT 'a;\nb'".to_owned())));
        assert!(input.is_empty());
    }
}
