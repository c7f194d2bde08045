//! The simple protocol: a text with one or more statements. All values are sent as text.

use filbert_grid::query::{Command, TransactionState};

use crate::{
    columns::describe_columns,
    error::Outcome,
    run::{Known, Started, command_of_word},
    sending::Sink,
    session::Session,
    statement::{
        lexer::{self, StatementText, characters},
        session_statement::SessionStatement,
    },
};

impl Session {
    /// Runs the statements of a text one after the other. The first error stops them.
    pub(crate) async fn simple_query(&mut self, text: &str) -> Outcome {
        self.statements.remove("");
        self.portals.remove("");
        self.slot().begin();
        let mut is_empty = true;
        let mut changes = self.state.changes();
        for part in lexer::split(text) {
            is_empty = false;
            let before = self.state.transaction();
            let result = self.simple_statement(part).await;
            if self.state.transaction() == TransactionState::Idle {
                if before != TransactionState::Idle {
                    changes = self.state.changes();
                } else if result.is_err() && self.state.changes() != changes {
                    // In PostgreSQL all statements of a text are one transaction. The client is
                    // warned that earlier changes remain.
                    self.state.tell_that_changes_stay();
                }
            }
            result.map_err(|failure| failure.moved_by(characters(text, part.start)))?;
            self.report_settings();
            // Short statements may have long results, and a text may have many statements.
            if self.socket.out.len() >= self.shared.config.write_buffer_bytes {
                self.socket.flush().await?;
            }
        }
        if is_empty {
            self.socket.out.empty_query();
        }
        Ok(())
    }

    async fn simple_statement(&mut self, part: StatementText<'_>) -> Outcome {
        let text = part.text;
        self.check_transaction(text)?;
        let before = self.state.transaction();
        if let Some(session_statement) = SessionStatement::parse(text)? {
            return self.run_session_statement(&session_statement, &[], &[], true).await;
        }
        let word = lexer::first_word(text);
        if word != "copy"
            && let Some(started) = self.start_short(text, &[], Known::default())?
        {
            let command = match command_of_word(&word, matches!(started, Started::Rows(_))) {
                Some(command) => command,
                None => self.describe_text(text, &[]).await?.command.clone(),
            };
            return self.finish_simple(before, &command, started).await;
        }
        let description = self.describe_text(text, &[]).await?;
        match &description.command {
            Command::Empty => {
                self.socket.out.empty_query();
                Ok(())
            }
            Command::CopyIn(format) => self.copy_in(text, &[], format).await,
            Command::CopyOut(format) => self.copy_out(text, &[], format).await,
            command => {
                let started = self.start_long(text, &[], Known::default()).await?;
                self.finish_simple(before, command, started).await
            }
        }
    }

    async fn finish_simple(&mut self, before: TransactionState, command: &Command, started: Started) -> Outcome {
        let count = match started {
            Started::Count(count) => count,
            Started::Rows(mut rows) => {
                describe_columns(&rows.columns, &[], &mut self.socket.out);
                let mut sink = Sink::data(&rows.columns, &[]);
                self.send_rows(&mut rows, &mut sink, 0).await?;
                rows.count
            }
        };
        self.send_notices();
        self.socket.out.command_complete(&Session::end_tag(before, command, count));
        if self.state.transaction() == TransactionState::Idle && before != TransactionState::Idle {
            self.portals.end_transaction();
        }
        Ok(())
    }
}
