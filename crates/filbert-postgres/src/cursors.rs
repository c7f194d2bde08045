//! The execution of the protocol's own statements, which manage prepared statements and cursors by
//! name.

use filbert_data::Value;
use filbert_grid::query::{Command, TransactionState};

use crate::{
    columns::{describe_columns, readers},
    error::{Failure, Outcome, PgError, sqlstate},
    portals::{Portal, PreparedKind, Progress, named_bytes},
    run::{Known, Started},
    sending::Sink,
    session::Session,
    statement::session_statement::{Count, Inner, SessionStatement},
    types::{Base, PgType},
    wire::Format,
};

impl Session {
    /// Runs a statement of the protocol with the values of its parameters. With `describes`, a row
    /// description is sent before the rows.
    pub(crate) async fn run_session_statement(
        &mut self,
        session_statement: &SessionStatement,
        values: &[Value<'static>],
        formats: &[Format],
        describes: bool,
    ) -> Outcome {
        let done = match session_statement {
            SessionStatement::Prepare { name, types, statement } => {
                self.statements.check_free(name)?;
                let oids: Vec<u32> = types.iter().map(|pg_type| pg_type.oid()).collect();
                let lease = self.reserve_for_statement(name, &statement.text, oids.len())?;
                let prepared = self.analyze_inner(statement, &oids).await?;
                self.statements.put(name, prepared.into_named(name, lease)?)?;
                "PREPARE"
            }
            SessionStatement::Execute { name, values: inner } => {
                return Box::pin(self.run_prepared(name, inner, values, formats, describes)).await;
            }
            SessionStatement::Deallocate(Some(name)) => {
                self.statements.get(name)?;
                self.statements.remove(name);
                "DEALLOCATE"
            }
            SessionStatement::Deallocate(None) => {
                self.statements.clear();
                "DEALLOCATE ALL"
            }
            SessionStatement::Declare { name, is_binary, hold, statement } => {
                self.declare(name, *is_binary, *hold, statement, values).await?;
                "DECLARE CURSOR"
            }
            SessionStatement::Fetch { name, count, is_move } => {
                return self.fetch(name, *count, *is_move, formats, describes).await;
            }
            SessionStatement::Close(Some(name)) => {
                self.portals.get(name)?;
                self.portals.remove(name);
                "CLOSE CURSOR"
            }
            SessionStatement::Close(None) => {
                self.portals.clear();
                "CLOSE CURSOR ALL"
            }
            SessionStatement::Discard { all, plans } => self.discard(*all, *plans)?,
        };
        self.socket.out.command_complete(done);
        Ok(())
    }

    fn discard(&mut self, all: bool, plans: bool) -> Result<&'static str, Box<PgError>> {
        if !all {
            // The engine itself recognizes plans that are no longer valid. There are neither
            // sequences nor temporary tables.
            return Ok(if plans { "DISCARD PLANS" } else { "DISCARD" });
        }
        if self.state.transaction() != TransactionState::Idle {
            return Err(PgError::new("25001", "DISCARD ALL cannot run inside a transaction block"));
        }
        self.statements.clear();
        self.portals.clear();
        self.state.reset();
        self.state.advisory_unlock_all();
        Ok("DISCARD ALL")
    }

    /// `EXECUTE`.
    async fn run_prepared(
        &mut self,
        name: &str,
        inner: &Inner,
        values: &[Value<'static>],
        formats: &[Format],
        describes: bool,
    ) -> Outcome {
        let statement = self.statements.get(name)?.clone();
        let PreparedKind::Engine(command) = &statement.kind else {
            let message =
                format!("prepared statement \"{name}\" is one of the protocol's own, which EXECUTE does not run");
            return Err(PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).into());
        };
        let given = if inner.text.is_empty() { Vec::new() } else { self.evaluate(inner, values).await? };
        if given.len() != statement.parameters.len() {
            let message = format!(
                "wrong number of parameters for prepared statement \"{name}\": expected {} but got {}",
                statement.parameters.len(),
                given.len()
            );
            return Err(PgError::new(sqlstate::SYNTAX_ERROR, message).into());
        }
        let mut values = Vec::with_capacity(given.len());
        for (at, ((value, found), wanted)) in given.into_iter().zip(&statement.parameters).enumerate() {
            values.push(match assigned(found, *wanted) {
                _ if value.is_null() => value,
                Assigned::AsItIs => value,
                Assigned::Cast => self.cast(value, found, *wanted).await?,
                Assigned::Never => {
                    let number = at + 1;
                    let message =
                        format!("parameter ${number} of type {found} cannot be coerced to the expected type {wanted}");
                    return Err(PgError::new("42804", message).into());
                }
            });
        }
        let before = self.state.transaction();
        let count = match self.start_prepared(&statement, &values).await? {
            Started::Count(count) => count,
            Started::Rows(mut rows) => {
                let columns = statement.columns.as_ref().unwrap_or(&rows.columns).clone();
                if describes {
                    describe_columns(&columns, formats, &mut self.socket.out);
                }
                let mut sink = Sink::data(&columns, formats);
                self.send_rows(&mut rows, &mut sink, 0).await?;
                rows.count
            }
        };
        self.socket.out.command_complete(&Session::end_tag(before, command, count));
        Ok(())
    }

    /// Casts a value to another type, with the engine's `CAST`.
    async fn cast(&mut self, value: Value<'static>, found: PgType, wanted: PgType) -> Outcome<Value<'static>> {
        let text = format!("SELECT CAST($1 AS {wanted})");
        let types = [found.parameter_type()];
        let known = Known { types: &types, columns: None };
        let Started::Rows(mut rows) = self.start(&text, &[value], known).await? else {
            return Ok(Value::Null);
        };
        if !self.next_page(&mut rows, 1).await? {
            return Ok(Value::Null);
        }
        let Some(page) = rows.page() else { return Ok(Value::Null) };
        Ok(readers(page, &rows.columns)?.first().map_or(Value::Null, |reader| reader.get(0).into_owned()))
    }

    /// Evaluates expressions as a query without a table. Returns the values with their types.
    async fn evaluate(
        &mut self,
        inner: &Inner,
        parameters: &[Value<'static>],
    ) -> Outcome<Vec<(Value<'static>, PgType)>> {
        let begin = "SELECT ";
        let started = self.start(&format!("{begin}{}", inner.text), parameters, Known::default()).await;
        let moved = |failure: Failure| failure.moved_by(inner.before.saturating_sub(begin.len() as u32));
        let Started::Rows(mut rows) = started.map_err(moved)? else { return Ok(Vec::new()) };
        let mut values = Vec::new();
        if self.next_page(&mut rows, 1).await?
            && let Some(page) = rows.page()
        {
            let readers = readers(page, &rows.columns)?;
            let types = rows.columns.iter().map(PgType::of_column);
            values = readers.iter().map(|reader| reader.get(0).into_owned()).zip(types).collect();
        }
        Ok(values)
    }

    /// `DECLARE`.
    async fn declare(
        &mut self,
        name: &str,
        is_binary: bool,
        hold: bool,
        statement: &Inner,
        values: &[Value<'static>],
    ) -> Outcome {
        if !hold && self.state.transaction() == TransactionState::Idle {
            let error = PgError::new(sqlstate::NO_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks");
            return Err(error.with_hint("Begin a transaction, or declare the cursor WITH HOLD.").into());
        }
        if self.portals.get(name).is_ok() {
            let message = format!("cursor \"{name}\" already exists");
            return Err(PgError::new(sqlstate::DUPLICATE_CURSOR, message).into());
        }
        let lease = self.reserve_for_statement(name, &statement.text, 0)?;
        let prepared = self.analyze_inner(statement, &[]).await?;
        if !matches!(prepared.kind, PreparedKind::Engine(Command::Select)) || prepared.columns.is_none() {
            return Err(PgError::new(sqlstate::SYNTAX_ERROR, "a cursor needs a query, such as SELECT or VALUES").into());
        }
        let prepared = prepared.into_named(name, lease)?;
        let progress = match self.start_prepared(&prepared, values).await? {
            Started::Rows(mut rows) => {
                // The page that is already available needs a memory reservation.
                rows.fetch_first_page(self.shared.config.page_rows)?;
                Progress::Rows(rows)
            }
            Started::Count(_) => Progress::Done,
        };
        let formats = if is_binary { vec![Format::Binary] } else { Vec::new() };
        let lease = self.memory.reserve(named_bytes(name))?;
        let portal = Portal { statement: prepared, values: Vec::new(), formats, progress, hold, lease };
        Ok(self.portals.put(name, portal)?)
    }

    /// `FETCH` and `MOVE`.
    async fn fetch(&mut self, name: &str, count: Count, is_move: bool, formats: &[Format], describes: bool) -> Outcome {
        let mut portal = self.portals.take(name)?;
        let result = self.fetch_from(&mut portal, count, is_move, formats, describes).await;
        // A cursor that failed is kept, and has no more rows.
        self.portals.put(name, portal)?;
        let shown = result?;
        let command = if is_move { "MOVE" } else { "FETCH" };
        self.socket.out.command_complete(&format!("{command} {shown}"));
        Ok(())
    }

    async fn fetch_from(
        &mut self,
        portal: &mut Portal,
        count: Count,
        is_move: bool,
        formats: &[Format],
        describes: bool,
    ) -> Outcome<u64> {
        if let Progress::New = portal.progress {
            // `FETCH` also works with a portal that `Bind` created.
            if let Started::Rows(rows) = self.start_prepared(&portal.statement, &portal.values).await? {
                portal.progress = Progress::Rows(rows);
            }
        }
        // The cursor's own format applies if the client gives none.
        let formats = if formats.is_empty() { portal.formats.as_slice() } else { formats };
        let columns = portal.statement.columns.clone().unwrap_or_default();
        if describes && !is_move {
            describe_columns(&columns, formats, &mut self.socket.out);
        }
        let Progress::Rows(mut rows) = std::mem::replace(&mut portal.progress, Progress::Done) else {
            // All rows were read.
            return match count {
                Count::Absolute(1..) => Err(only_forward().into()),
                _ => Ok(0),
            };
        };
        let mut sink = if is_move { Sink::Nowhere } else { Sink::data(&columns, formats) };
        let (passed, shown) = match count {
            Count::Next(count) => (0, Some(count)),
            Count::All => (0, None),
            Count::Relative(0) | Count::Absolute(0) => (0, Some(0)),
            Count::Relative(count) => (count - 1, Some(1)),
            Count::Absolute(row) if row > rows.count => (row - rows.count - 1, Some(1)),
            Count::Absolute(_) => {
                portal.progress = Progress::Rows(rows);
                return Err(only_forward().into());
            }
        };
        let mut has_more = true;
        if passed > 0 {
            has_more = self.send_rows(&mut rows, &mut Sink::Nowhere, passed).await?;
        }
        let before = rows.count;
        if has_more && shown != Some(0) {
            has_more = self.send_rows(&mut rows, &mut sink, shown.unwrap_or_default()).await?;
        }
        let count = rows.count - before;
        if has_more {
            portal.progress = Progress::Rows(rows);
        }
        Ok(count)
    }
}

/// How a value of one type is assigned to a parameter of another type.
#[derive(Debug, PartialEq, Eq)]
enum Assigned {
    AsItIs,
    Cast,
    /// There is no such cast, or only an explicit one.
    Never,
}

/// Returns how a value is assigned to a parameter, with the rules for assignment to columns in
/// PostgreSQL. A text may be a literal of any type.
fn assigned(found: PgType, wanted: PgType) -> Assigned {
    let is_one_of = |bases: &[Base]| !found.is_array && bases.contains(&found.base);
    let is_text = is_one_of(&[Base::Text, Base::Varchar, Base::Unknown]);
    let datetimes = [Base::Date, Base::Timestamp, Base::Timestamptz];
    let is_cast = match wanted.base {
        _ if found == wanted => return Assigned::AsItIs,
        _ if wanted.is_array => return if is_text { Assigned::Cast } else { Assigned::AsItIs },
        Base::Text | Base::Varchar if is_text => return Assigned::AsItIs,
        Base::Text | Base::Varchar => true,
        Base::Bool | Base::Uuid => is_text,
        Base::Int2 | Base::Int4 | Base::Int8 | Base::Float4 | Base::Float8 | Base::Numeric => {
            is_text || found.is_number()
        }
        Base::Date | Base::Timestamp | Base::Timestamptz => is_text || is_one_of(&datetimes),
        Base::Time => is_text || is_one_of(&[Base::Timestamp, Base::Timestamptz, Base::Interval]),
        Base::Interval => is_text || is_one_of(&[Base::Time]),
        Base::Bytea => is_text,
        Base::Json | Base::Jsonb => is_text || is_one_of(&[Base::Json, Base::Jsonb]),
        _ => return Assigned::AsItIs,
    };
    if is_cast { Assigned::Cast } else { Assigned::Never }
}

fn only_forward() -> Box<PgError> {
    PgError::new(sqlstate::NOT_IN_STATE, "cursor can only scan forward")
}
