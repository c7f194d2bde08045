//! The analysis of a statement before it is kept: its parameters, its columns, and whether it is a
//! statement of the engine or of the protocol itself.

use filbert_grid::query::Command;

use crate::{
    error::{Outcome, PgError},
    memory::MemoryLease,
    portals::{Prepared, PreparedKind, named_bytes, statement_bytes},
    session::Session,
    statement::{
        casts::cast_types,
        session_statement::{Inner, SessionStatement},
    },
    types::PgType,
};

impl Session {
    /// Reserves memory for a statement that will be kept, before it is analyzed.
    ///
    /// # Errors
    /// SQLSTATE 53200: there is not enough memory left.
    pub(crate) fn reserve_for_statement(
        &self,
        name: &str,
        text: &str,
        oids: usize,
    ) -> Result<MemoryLease, Box<PgError>> {
        self.memory.reserve(named_bytes(name) + statement_bytes(text, oids))
    }

    /// Analyzes a statement.
    pub(crate) async fn analyze(&mut self, text: &str, oids: &[u32]) -> Outcome<Prepared> {
        if text.is_empty() {
            return Ok(Prepared::new(text, PreparedKind::Engine(Command::Empty)));
        }
        match SessionStatement::parse(text)? {
            Some(session_statement) => self.analyze_session_statement(text, session_statement, oids).await,
            None => self.analyze_engine_statement(text, oids).await,
        }
    }

    async fn analyze_engine_statement(&mut self, text: &str, oids: &[u32]) -> Outcome<Prepared> {
        // A type that the client declares takes precedence. If the client declares none, or
        // `unknown` (705), the cast in the statement decides.
        let mut requested: Vec<u32> = cast_types(text).iter().map(|cast| cast.map_or(0, PgType::oid)).collect();
        requested.resize(requested.len().max(oids.len()), 0);
        for (oid, given) in requested.iter_mut().zip(oids) {
            if !matches!(given, 0 | 705) {
                *oid = *given;
            }
        }
        let known: Vec<_> =
            requested.iter().map(|oid| PgType::from_oid(*oid).and_then(PgType::parameter_type)).collect();
        let description = self.describe_text(text, &known).await?;
        let mut all: Vec<u32> = description.parameters.iter().map(|of| PgType::of_parameter(of).oid()).collect();
        for (oid, requested) in all.iter_mut().zip(requested) {
            if requested != 0 {
                *oid = requested;
            }
        }
        let parameters = all.iter().map(|oid| PgType::from_oid(*oid).unwrap_or(PgType::TEXT)).collect();
        let kind = PreparedKind::Engine(description.command.clone());
        let columns = match description.command {
            // The rows of a COPY are not sent as `DataRow` messages.
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

    /// Analyzes a statement of the protocol itself. It has the parameters and columns of the
    /// statement that it refers to.
    async fn analyze_session_statement(
        &mut self,
        text: &str,
        session_statement: SessionStatement,
        oids: &[u32],
    ) -> Outcome<Prepared> {
        let mut prepared = Prepared::new(text, PreparedKind::Session(session_statement.clone()));
        match &session_statement {
            SessionStatement::Declare { statement, .. } => {
                let inner = self.analyze_inner(statement, oids).await?;
                prepared.oids = inner.oids;
                prepared.parameters = inner.parameters;
                prepared.declared = inner.declared;
            }
            SessionStatement::Execute { name, values } => {
                prepared.columns.clone_from(&self.statements.get(name)?.columns);
                if !values.text.is_empty() {
                    let select = format!("SELECT {}", values.text);
                    let inner = self.analyze_engine_statement(&select, oids).await?;
                    prepared.oids = inner.oids;
                    prepared.parameters = inner.parameters;
                }
            }
            SessionStatement::Fetch { name, is_move: false, .. } => {
                prepared.columns.clone_from(&self.portals.get(name)?.statement.columns);
            }
            _ => {}
        }
        Ok(prepared)
    }

    /// Analyzes the inner statement of another statement. The inner statement must be one of the
    /// engine.
    pub(crate) async fn analyze_inner(&mut self, inner: &Inner, oids: &[u32]) -> Outcome<Prepared> {
        let prepared = Box::pin(self.analyze_engine_statement(&inner.text, oids)).await;
        prepared.map_err(|failure| failure.moved_by(inner.before))
    }
}
