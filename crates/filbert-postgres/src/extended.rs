//! The extended protocol: statements are parsed, bound to values, described and executed by messages of their own.

use filbert_data::{Value, dates::Zone};
use filbert_grid::query::{Command, TransactionState};

use crate::{
    error::{Outcome, PgError, sqlstate},
    kept::Kept,
    portals::{Kind, Portal, Prepared, Progress, format_of, named_bytes, statement_bytes},
    rows::{Rows, Sink, describe_columns},
    run::Started,
    session::Session,
    simple::characters,
    statement::{
        casts::cast_types,
        lexer,
        own::{Inner, Own},
    },
    types::{self, PgType},
    wire::{Bind, Format, Formats, Oids, Target},
};

impl Session {
    /// `Parse`: keeps a statement under a name.
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
            // As in PostgreSQL, the one before is gone whatever becomes of this one.
            self.statements.remove(name);
        }
        let room = self.room_for_statement(name, text, oids.len())?;
        let oids: Vec<u32> = oids.iter().collect();
        let prepared = self.understand(text, &oids).await;
        let prepared = prepared.map_err(|failure| failure.moved_by(before))?;
        self.statements.put(name, prepared.kept(name, room)?)?;
        self.link.out.parse_complete();
        Ok(())
    }

    /// Room for a statement that is to be kept, before it is understood.
    ///
    /// # Errors
    /// SQLSTATE 53200: there is none.
    pub(crate) fn room_for_statement(&self, name: &str, text: &str, oids: usize) -> Result<Kept, Box<PgError>> {
        self.keeper.keep(named_bytes(name) + statement_bytes(text, oids))
    }

    /// Finds out what a statement is.
    pub(crate) async fn understand(&mut self, text: &str, oids: &[u32]) -> Outcome<Prepared> {
        if text.is_empty() {
            return Ok(Prepared::new(text, Kind::Engine(Command::Empty)));
        }
        match Own::parse(text)? {
            Some(own) => self.understand_own(text, own, oids).await,
            None => self.understand_engine(text, oids).await,
        }
    }

    async fn understand_engine(&mut self, text: &str, oids: &[u32]) -> Outcome<Prepared> {
        // What the client says counts; it may say nothing, or that it does not know. Then what the statement says does.
        let mut said: Vec<u32> = cast_types(text).iter().map(|cast| cast.map_or(0, PgType::oid)).collect();
        said.resize(said.len().max(oids.len()), 0);
        for (place, given) in said.iter_mut().zip(oids) {
            if !matches!(given, 0 | 705) {
                *place = *given;
            }
        }
        let known: Vec<_> = said.iter().map(|oid| PgType::from_oid(*oid).and_then(PgType::parameter_type)).collect();
        let description = self.describe_text(text, &known).await?;
        let mut all: Vec<u32> = description.parameters.iter().map(|described| PgType::of(described).oid()).collect();
        for (place, said) in all.iter_mut().zip(said) {
            if said != 0 {
                *place = said;
            }
        }
        let parameters = all.iter().map(|oid| PgType::from_oid(*oid).unwrap_or(PgType::TEXT)).collect();
        let kind = Kind::Engine(description.command.clone());
        let columns = match description.command {
            // Their rows do not come as rows.
            Command::CopyIn(_) | Command::CopyOut(_) => None,
            _ => description.columns.clone(),
        };
        let mut prepared = Prepared::new(text, kind);
        prepared.oids = all;
        prepared.parameters = parameters;
        prepared.declared = known;
        prepared.columns = columns;
        Ok(prepared)
    }

    /// The protocol's own statements have the parameters and columns of what they are about.
    async fn understand_own(&mut self, text: &str, own: Own, oids: &[u32]) -> Outcome<Prepared> {
        let mut prepared = Prepared::new(text, Kind::Own(own.clone()));
        match &own {
            Own::Declare { statement, .. } => {
                let inner = self.understand_inner(statement, oids).await?;
                prepared.oids = inner.oids;
                prepared.parameters = inner.parameters;
                prepared.declared = inner.declared;
            }
            Own::Execute { name, values } => {
                prepared.columns.clone_from(&self.statements.get(name)?.columns);
                if !values.text.is_empty() {
                    let select = format!("SELECT {}", values.text);
                    let inner = self.understand_engine(&select, oids).await?;
                    prepared.oids = inner.oids;
                    prepared.parameters = inner.parameters;
                }
            }
            Own::Fetch { name, is_move: false, .. } => {
                prepared.columns.clone_from(&self.portals.get(name)?.statement.columns);
            }
            _ => {}
        }
        Ok(prepared)
    }

    /// Finds out what a statement within another one is, which must be the engine's.
    pub(crate) async fn understand_inner(&mut self, inner: &Inner, oids: &[u32]) -> Outcome<Prepared> {
        let prepared = Box::pin(self.understand_engine(&inner.text, oids)).await;
        prepared.map_err(|failure| failure.moved_by(inner.before))
    }

    /// `Bind`: makes a portal of a statement and values.
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
        let room = self
            .keeper
            .keep(named_bytes(bind.portal) + statement.parameters.len() * size_of::<Value<'_>>() + expected)?;
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
            .put(bind.portal, Portal { statement, values, formats, progress: Progress::New, hold: false, room })?;
        self.link.out.bind_complete();
        Ok(())
    }

    /// `Describe`.
    pub(crate) fn describe(&mut self, target: Target, name: &str) -> Outcome {
        let (columns, formats) = match target {
            Target::Statement => {
                let statement = self.statements.get(name)?;
                self.link.out.parameter_description(&statement.oids);
                (statement.columns.clone(), Vec::new())
            }
            Target::Portal => {
                let portal = self.portals.get(name)?;
                (portal.statement.columns.clone(), portal.formats.clone())
            }
        };
        match columns {
            Some(columns) => describe_columns(&columns, &formats, &mut self.link.out),
            None => self.link.out.no_data(),
        }
        Ok(())
    }

    /// `Close`: it is no error if there is no such thing.
    pub(crate) fn close(&mut self, target: Target, name: &str) {
        match target {
            Target::Statement => self.statements.remove(name),
            Target::Portal => self.portals.remove(name),
        };
        self.link.out.close_complete();
    }

    /// `Execute`: runs a portal, or goes on with it.
    pub(crate) async fn execute(&mut self, name: &str, rows_max: u32) -> Outcome {
        self.slot().begin();
        let mut portal = self.portals.take(name)?;
        self.check_transaction(&portal.statement.text)?;
        let before = self.state.transaction();
        let statement = portal.statement.clone();
        match &statement.kind {
            Kind::Engine(Command::Empty) => self.link.out.empty_query(),
            Kind::Engine(Command::CopyIn(format)) => self.copy_in(&statement.text, &portal.values, format).await?,
            Kind::Engine(Command::CopyOut(format)) => self.copy_out(&statement.text, &portal.values, format).await?,
            Kind::Engine(command) => self.go_on(&mut portal, command, rows_max, before).await?,
            Kind::Own(own) => {
                // The portal's name may be that of the cursor that the statement declares.
                self.run_own(own, &portal.values, &portal.formats, false).await?;
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

    async fn go_on(
        &mut self,
        portal: &mut Portal,
        command: &Command,
        rows_max: u32,
        before: TransactionState,
    ) -> Outcome {
        let mut rows = match std::mem::replace(&mut portal.progress, Progress::Done) {
            Progress::Rows(rows) => rows,
            Progress::Done => {
                self.link.out.command_complete(&crate::run::tag(command, 0));
                return Ok(());
            }
            Progress::New => {
                match self.start(&portal.statement.text, &portal.values, &portal.statement.declared).await? {
                    Started::Rows(rows) => rows,
                    Started::Count(count) => {
                        self.send_notices();
                        self.link.out.command_complete(&Session::end_tag(before, command, count));
                        return Ok(());
                    }
                }
            }
        };
        check_columns(&rows, &portal.statement)?;
        let before_count = rows.count;
        let mut sink = match &portal.statement.columns {
            Some(columns) => Sink::data(columns, &portal.formats),
            None => Sink::Nowhere,
        };
        // A statement that changes is not left half done: only what it shows is.
        if self.send_rows(&mut rows, &mut sink, rows_max.into()).await? {
            self.link.out.portal_suspended();
            portal.progress = Progress::Rows(rows);
        } else {
            self.send_notices();
            self.link.out.command_complete(&Session::end_tag(before, command, rows.count - before_count));
        }
        Ok(())
    }
}

/// Reads the value of a parameter.
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

/// The rows must be what the client was told that they are, or such that they can be sent as that: numbers as other numbers, anything as
/// text.
fn check_columns(rows: &Rows, statement: &Prepared) -> Result<(), Box<PgError>> {
    let Some(described) = &statement.columns else { return Ok(()) };
    let fits =
        |told: PgType, found: PgType| told == found || told == PgType::TEXT || (told.is_number() && found.is_number());
    let mut columns = described.iter().zip(rows.columns.iter());
    let all_fit = columns.all(|(told, found)| fits(PgType::of_column(told), PgType::of_column(found)));
    if all_fit && described.len() == rows.columns.len() {
        return Ok(());
    }
    Err(PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, "cached plan must not change result type"))
}
