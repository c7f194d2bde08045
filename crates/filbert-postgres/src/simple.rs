//! The simple protocol: a text of statements, whose values are all text.

use filbert_grid::query::{Command, TransactionState};

use crate::{
    error::Outcome,
    rows::{Sink, describe_columns},
    run::{Started, command_of_word},
    session::Session,
    statement::{
        lexer::{self, Part},
        own::Own,
    },
};

impl Session {
    /// Runs the statements of a text one after the other; an error ends them.
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
                    // The statements of a text would be one transaction.
                    self.state.tell_that_changes_stay();
                }
            }
            result.map_err(|failure| failure.moved_by(characters(text, part.start)))?;
            self.report_settings();
            // Short statements may have long answers, and there may be many in a text.
            if self.link.out.len() >= self.shared.config.write_buffer_bytes {
                self.link.flush().await?;
            }
        }
        if is_empty {
            self.link.out.empty_query();
        }
        Ok(())
    }

    async fn simple_statement(&mut self, part: Part<'_>) -> Outcome {
        let text = part.text;
        self.check_transaction(text)?;
        let before = self.state.transaction();
        if let Some(own) = Own::parse(text)? {
            return self.run_own(&own, &[], &[], true).await;
        }
        let word = lexer::first_word(text);
        if word != "copy"
            && let Some(started) = self.start_short(text, &[], &[])?
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
                self.link.out.empty_query();
                Ok(())
            }
            Command::CopyIn(format) => self.copy_in(text, &[], format).await,
            Command::CopyOut(format) => self.copy_out(text, &[], format).await,
            command => {
                let started = self.start_long(text, &[], &[]).await?;
                self.finish_simple(before, command, started).await
            }
        }
    }

    async fn finish_simple(&mut self, before: TransactionState, command: &Command, started: Started) -> Outcome {
        let count = match started {
            Started::Count(count) => count,
            Started::Rows(mut rows) => {
                describe_columns(&rows.columns, &[], &mut self.link.out);
                let mut sink = Sink::data(&rows.columns, &[]);
                self.send_rows(&mut rows, &mut sink, 0).await?;
                rows.count
            }
        };
        self.send_notices();
        self.link.out.command_complete(&Session::end_tag(before, command, count));
        if self.state.transaction() == TransactionState::Idle && before != TransactionState::Idle {
            self.portals.end_transaction();
        }
        Ok(())
    }
}

/// Characters of a text in front of a byte.
pub(crate) fn characters(text: &str, bytes: usize) -> u32 {
    u32::try_from(text.get(..bytes).unwrap_or_default().chars().count()).unwrap_or(u32::MAX)
}
