//! The extended protocol: separate messages parse, bind, describe and execute a statement.

use filbert_data::{Value, dates::Zone};
use filbert_grid::query::{Command, TransactionState};

use crate::{
    columns::{describe_columns, format_of},
    error::{Outcome, PgError, sqlstate},
    portals::{Portal, PreparedKind, Progress, named_bytes},
    run::{Started, tag},
    sending::Sink,
    session::Session,
    statement::lexer::{self, characters},
    types::{self, PgType},
    wire::{Bind, Format, Formats, Oids, Target},
};

impl Session {
    /// `Parse`: prepares a statement and keeps it under a name.
    pub(crate) async fn parse(&mut self, name: &str, text: &str, oids: Oids<'_>) -> Outcome {
        self.slot().begin();
        self.statements.check_free(name)?;
        let mut parts = lexer::split(text);
        let part = parts.next();
        if parts.next().is_some() {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(PgError::new(sqlstate::SYNTAX_ERROR, message).into());
        }
        let before = part.map_or(0, |part| characters(text, part.start));
        let text = part.map_or("", |part| part.text);
        self.check_transaction(text)?;
        if name.is_empty() {
            // As in PostgreSQL, the previous unnamed statement is removed, even if this one fails.
            self.statements.remove(name);
        }
        let lease = self.reserve_for_statement(name, text, oids.len())?;
        let oids: Vec<u32> = oids.iter().collect();
        let prepared = self.analyze(text, &oids).await;
        let prepared = prepared.map_err(|failure| failure.moved_by(before))?;
        self.statements.put(name, prepared.into_named(name, lease)?)?;
        self.socket.out.parse_complete();
        Ok(())
    }

    /// `Bind`: creates a portal from a statement and values.
    pub(crate) fn bind(&mut self, bind: &Bind<'_>) -> Outcome {
        let statement = self.statements.get(bind.statement)?.clone();
        self.check_transaction(&statement.text)?;
        let name = if bind.statement.is_empty() { "unnamed" } else { bind.statement };
        if usize::from(bind.count) != statement.parameters.len() {
            let message = format!(
                "bind message supplies {} parameters, but prepared statement \"{name}\" requires {}",
                bind.count,
                statement.parameters.len()
            );
            return Err(PgError::protocol(message).into());
        }
        let formats = formats(bind.formats);
        let expected = bind.values().zip(&statement.parameters).enumerate().map(|(at, (bytes, pg_type))| {
            bytes.map_or(0, |bytes| types::value_bytes(bytes, *pg_type, format_of(&formats, at)))
        });
        let expected: usize = expected.sum();
        if bind.portal.is_empty() {
            self.portals.remove(bind.portal);
        }
        let lease = self
            .memory
            .reserve(named_bytes(bind.portal) + statement.parameters.len() * size_of::<Value<'_>>() + expected)?;
        let mut values = Vec::with_capacity(statement.parameters.len());
        for (at, (bytes, pg_type)) in bind.values().zip(&statement.parameters).enumerate() {
            let format = format_of(&formats, at);
            let value = read_value(bytes, *pg_type, format, &self.zone);
            values.push(value.map_err(|error| error.within(format!("parameter ${}", at + 1)))?);
        }
        let formats = self::formats(bind.results);
        let columns = statement.columns.as_ref().map_or(0, |columns| columns.len());
        if formats.len() > 1 && formats.len() != columns {
            let message = format!("bind message has {} result formats but query has {columns} columns", formats.len());
            return Err(PgError::protocol(message).into());
        }
        self.portals
            .put(bind.portal, Portal { statement, values, formats, progress: Progress::New, hold: false, lease })?;
        self.socket.out.bind_complete();
        Ok(())
    }

    /// `Describe`.
    pub(crate) fn describe(&mut self, target: Target, name: &str) -> Outcome {
        let (columns, formats) = match target {
            Target::Statement => {
                let statement = self.statements.get(name)?;
                self.socket.out.parameter_description(&statement.oids);
                (statement.columns.clone(), Vec::new())
            }
            Target::Portal => {
                let portal = self.portals.get(name)?;
                (portal.statement.columns.clone(), portal.formats.clone())
            }
        };
        match columns {
            Some(columns) => describe_columns(&columns, &formats, &mut self.socket.out),
            None => self.socket.out.no_data(),
        }
        Ok(())
    }

    /// `Close`. A name that does not exist is no error.
    pub(crate) fn close(&mut self, target: Target, name: &str) {
        match target {
            Target::Statement => self.statements.remove(name),
            Target::Portal => self.portals.remove(name),
        };
        self.socket.out.close_complete();
    }

    /// `Execute`: runs a portal, or continues a suspended one.
    pub(crate) async fn execute(&mut self, name: &str, rows_max: u32) -> Outcome {
        self.slot().begin();
        let mut portal = self.portals.take(name)?;
        self.check_transaction(&portal.statement.text)?;
        let before = self.state.transaction();
        let statement = portal.statement.clone();
        match &statement.kind {
            PreparedKind::Engine(Command::Empty) => self.socket.out.empty_query(),
            PreparedKind::Engine(Command::CopyIn(format)) => {
                self.copy_in(&statement.text, &portal.values, format).await?
            }
            PreparedKind::Engine(Command::CopyOut(format)) => {
                self.copy_out(&statement.text, &portal.values, format).await?
            }
            PreparedKind::Engine(command) => self.continue_portal(&mut portal, command, rows_max, before).await?,
            PreparedKind::Session(session_statement) => {
                // The statement may declare a cursor with the name of the portal.
                self.run_session_statement(session_statement, &portal.values, &portal.formats, false).await?;
                portal.progress = Progress::Done;
            }
        }
        if self.state.transaction() == TransactionState::Idle && before != TransactionState::Idle {
            self.portals.end_transaction();
        } else if self.portals.get(name).is_err() {
            self.portals.put(name, portal)?;
        }
        self.report_settings();
        Ok(())
    }

    async fn continue_portal(
        &mut self,
        portal: &mut Portal,
        command: &Command,
        rows_max: u32,
        before: TransactionState,
    ) -> Outcome {
        let mut rows = match std::mem::replace(&mut portal.progress, Progress::Done) {
            Progress::Rows(rows) => rows,
            Progress::Done => {
                self.socket.out.command_complete(&tag(command, 0));
                return Ok(());
            }
            Progress::New => match self.start_prepared(&portal.statement, &portal.values).await? {
                Started::Rows(rows) => rows,
                Started::Count(count) => {
                    self.send_notices();
                    self.socket.out.command_complete(&Session::end_tag(before, command, count));
                    return Ok(());
                }
            },
        };
        let before_count = rows.count;
        let mut sink = match &portal.statement.columns {
            Some(columns) => Sink::data(columns, &portal.formats),
            None => Sink::Nowhere,
        };
        // Only the sending of rows is suspended. Changes of a statement are never left half done.
        if self.send_rows(&mut rows, &mut sink, rows_max.into()).await? {
            self.socket.out.portal_suspended();
            portal.progress = Progress::Rows(rows);
        } else {
            self.send_notices();
            self.socket.out.command_complete(&Session::end_tag(before, command, rows.count - before_count));
        }
        Ok(())
    }
}

/// Decodes the value of a parameter.
fn read_value(
    bytes: Option<&[u8]>,
    pg_type: PgType,
    format: Format,
    zone: &Zone,
) -> Result<Value<'static>, Box<PgError>> {
    let Some(bytes) = bytes else { return Ok(Value::Null) };
    match format {
        Format::Text => types::read_text(types::utf8(bytes)?, pg_type, zone).map(Value::into_owned),
        Format::Binary => types::read_binary(bytes, pg_type).map(Value::into_owned),
    }
}

fn formats(formats: Formats<'_>) -> Vec<Format> {
    formats.iter().map(|format| if format == 0 { Format::Text } else { Format::Binary }).collect()
}
