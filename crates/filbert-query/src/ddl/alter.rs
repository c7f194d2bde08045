//! `ALTER TABLE`: changes declarations, and rewrites existing rows where necessary.
//!
//! ```text
//!  actions ─► draft ─► new mapping ─┬─ declarations alone ─► rows are checked ─► catalog
//!                                   └─ keys, names, types, columns ─► another map ─► both
//! ```
//!
//! Rows are checked only where necessary. A change of keys, names, types or columns writes every
//! row into another map, and switches the catalog and the map together. Nobody writes rows by SQL
//! meanwhile, because the statement holds the table's name exclusively. Changes that clients make
//! through the map API are rejected until the other map has taken over, with an error after which
//! clients retry (`filbert-grid/src/replacement.rs`). A change that some row would violate is
//! rejected, and the table stays unchanged.
//!
//! In a cluster, the statement claims all keys of the table's map, so no member writes rows
//! meanwhile (`filbert-grid/src/replication/replacing.rs`). Rows that need to be checked alone are
//! rewritten as well: statements of other members that were planned for the former table then find
//! its map gone, and are not able to write rows that violate a new constraint.

use std::sync::Arc;

use datafusion::execution::session_state::SessionState;
use filbert_data::{Blob, Value};
use filbert_dialect::{AlterAction, AlterTable, Comment, schema_of};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{SqlError, SqlErrorCode, SqlSubject};
use filbert_grid::{Caller, Change, Expiry, GridError, IndexConfig, Map, PartitionId, PutMode, Refused, threads};

use super::defaults::Literals;
use super::draft::{Draft, Origin};
use super::tables::{table, with_type};
use super::whole;
use crate::catalog::{Mapping, TableFacts};
use crate::client_context::ClientContext;
use crate::dml::expressions::{Inputs, RowExpression, RowScope};
use crate::dml::rows::RowMaker;
use crate::dml::stored::StoredRows;
use crate::execution::Execution;
use crate::parts::Parts;
use crate::tables::Tables;

/// How often a change is derived again because another change came first.
const ATTEMPTS_MAX: usize = 10;

/// Changes a table.
pub(super) async fn alter(engine: &Parts, client: &ClientContext, statement: &AlterTable) -> Result<(), SqlError> {
    let tables = &engine.tables;
    let renamed = statement.actions.iter().find_map(|action| match action {
        AlterAction::RenameTo(name) => Some(name.as_str()),
        _ => None,
    });
    let names: Vec<&str> = std::iter::once(statement.name.as_str()).chain(renamed).collect();
    let _alone = tables.catalog().gates().alone(&names).await?;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let old = match table(tables, &statement.name) {
            Ok(mapping) => mapping,
            Err(error) if statement.if_exists && error.sqlstate == Some("42P01") => {
                super::skipped(client, "relation", &statement.name);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        match alter_once(engine, client, statement, &old, renamed).await {
            Err(error) if error.sqlstate == Some("40001") && attempts < ATTEMPTS_MAX => {
                if tables.is_in_cluster() {
                    tables.catalog().catch_up()?;
                }
            }
            done => return done,
        }
    }
}

/// Changes a table as it was found.
async fn alter_once(
    engine: &Parts,
    client: &ClientContext,
    statement: &AlterTable,
    old: &Arc<Mapping>,
    renamed: Option<&str>,
) -> Result<(), SqlError> {
    let tables = &engine.tables;
    let execution = engine.sessions.execution_for(client);
    let state = &engine.sessions.planning_within(client.dialect(), &execution);
    let mut draft = Draft::of(old)?;
    let literals = Literals::of(engine, client);
    for action in &statement.actions {
        let action = &match action {
            AlterAction::AddColumn(definition, if_not_exists) => {
                let definition = literals.column(with_type(state, definition, old)?)?;
                AlterAction::AddColumn(definition, *if_not_exists)
            }
            AlterAction::Default(name, Some(default)) => {
                let default = literals.default(default, draft.declared(name)?)?;
                AlterAction::Default(name.clone(), Some(default))
            }
            other => other.clone(),
        };
        if let Some(skipped) = draft.apply(action)? {
            skipped.tell(client);
        }
    }
    super::views::check_altered(tables, &old.name, &statement.actions)?;
    let origins = draft.origins();
    let new = Arc::new(draft.mapping(renamed.unwrap_or(&old.name))?);
    if renamed.is_some()
        && (tables.catalog().mapping(&new.name).is_some() || tables.catalog().view(&new.name).is_some())
    {
        let error = parsing_error(format!("relation {:?} already exists", new.name)).with_sqlstate("42P07");
        return Err(error.about(SqlSubject::UsedName { name: new.name.clone() }));
    }
    // An expression changes the rows of a column that keeps its type, too.
    let has_expression = origins.iter().any(|origin| matches!(origin, Origin::Expression(_)));
    if *new == **old && !has_expression {
        return Ok(());
    }
    RowChange::new(tables, state, (old.clone(), new), origins, execution)?.run(engine).await
}

/// Stores a comment.
pub(super) fn comment(tables: &Tables, comment: &Comment) -> Result<(), SqlError> {
    let mapping = table(tables, &comment.table)?;
    let mut new = (*mapping).clone();
    let Some(facts) = &mapping.table else { return Ok(()) };
    let mut facts = (**facts).clone();
    match &comment.column {
        None => facts.comment.clone_from(&comment.text),
        Some(column) => {
            let index = crate::dml::targets::column_index(&mapping, column)?;
            if let Some(column) = facts.columns.get_mut(index) {
                column.comment.clone_from(&comment.text);
            }
        }
    }
    new.table = Some(Arc::new(facts));
    tables.catalog().replace(&mapping, Arc::new(new), || Ok(()))
}

/// The effect of a change on the rows of a table.
struct RowChange {
    old: Arc<Mapping>,
    new: Arc<Mapping>,
    map: Arc<Map>,
    stored: StoredRows,
    old_maker: RowMaker,
    maker: RowMaker,
    /// The source of each new column.
    sources: Vec<Source>,
    /// The statement context, the same for all rows.
    execution: Execution,
}

enum Source {
    /// The old column with this number.
    Column(usize),
    /// An expression over the old row.
    Expression(RowExpression),
    /// The default of the new column.
    Default,
}

/// The work on the existing rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Nothing: the rows stay as they are.
    None,
    /// The rows are checked.
    Check,
    /// The rows are rewritten.
    Rewrite,
}

impl RowChange {
    fn new(
        tables: &Tables,
        state: &SessionState,
        (old, new): (Arc<Mapping>, Arc<Mapping>),
        origins: Vec<Origin>,
        execution: Execution,
    ) -> Result<Self, SqlError> {
        let grid = tables.grid()?;
        let maker = |mapping: &Arc<Mapping>| RowMaker::new(mapping, grid.schemas(), state, tables.catalog().row_ids());
        let scope = RowScope::of(&old, schema_of(&old.name).1, false, &[])?;
        let mut sources = Vec::with_capacity(new.columns.len());
        for origin in origins {
            sources.push(match origin {
                Origin::Column(index) => Source::Column(index),
                Origin::Expression(expr) => Source::Expression(scope.expression(state, &expr)?),
                Origin::New => Source::Default,
            });
        }
        if let Some(hidden) = new.columns.get(sources.len()) {
            // A row keeps its row id, if it had one.
            let same = old.columns.iter().position(|column| column.hidden && column.name == hidden.name);
            sources.push(same.map_or(Source::Default, Source::Column));
        }
        let mapped = tables.find(&old.name)?.ok_or_else(|| tables.not_found(&old.name))?;
        let stored = StoredRows::of(&old, mapped.table.formats());
        let (old_maker, maker) = (maker(&old)?, maker(&new)?);
        Ok(RowChange { map: mapped.table.map().clone(), stored, old_maker, maker, sources, old, new, execution })
    }

    async fn run(&self, engine: &Parts) -> Result<(), SqlError> {
        let tables = &engine.tables;
        match self.work() {
            Work::Rewrite | Work::Check if tables.is_in_cluster() => return self.rewrite_on_all(engine).await,
            Work::Rewrite => return self.rewrite(tables).await,
            Work::Check => self.check().await?,
            Work::None => {}
        }
        tables.catalog().replace(&self.old, self.new.clone(), || Ok(()))?;
        super::keep_beside(tables, &self.new)
    }

    /// The work on the existing rows.
    fn work(&self) -> Work {
        let (Some(old), Some(new)) = (&self.old.table, &self.new.table) else { return Work::Rewrite };
        let same_shape = self.old.external_name == self.new.external_name
            && self.old.key_format == self.new.key_format
            && self.old.value_format == self.new.value_format
            && old.primary_key == new.primary_key;
        let mut kept = 0;
        let mut checks = new.checks.iter().any(|check| !old.checks.contains(check));
        for ((column, facts), source) in self.new.columns.iter().zip(&new.columns).zip(&self.sources) {
            match source {
                Source::Column(index) => {
                    let (Some(before), Some(facts_before)) = (self.old.columns.get(*index), old.columns.get(*index))
                    else {
                        return Work::Rewrite;
                    };
                    if before != column
                        || facts_before.declared != facts.declared
                        || facts_before.generated != facts.generated
                    {
                        return Work::Rewrite;
                    }
                    checks |= facts.not_null && !facts_before.not_null;
                    kept += 1;
                }
                // A missing field of an entry is read as null.
                Source::Default if facts.default.is_none() && facts.generated.is_none() && facts.identity.is_none() => {
                    checks |= facts.not_null;
                }
                Source::Default | Source::Expression(_) => return Work::Rewrite,
            }
        }
        // If a removed column is added again, its old values must not come back.
        match same_shape && kept == self.old.columns.len() {
            true if checks => Work::Check,
            true => Work::None,
            false => Work::Rewrite,
        }
    }

    fn rows_of(&self, partition: PartitionId) -> Vec<(Blob, Blob)> {
        let mut rows = Vec::new();
        self.map.scan_rows(partition, &mut |key, value| rows.push((Blob::from(key), Blob::from(value))));
        rows
    }

    fn partitions(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.map.partition_count()).map(PartitionId)
    }

    /// Checks every row.
    async fn check(&self) -> Result<(), SqlError> {
        for partition in self.partitions() {
            for (key, value) in self.rows_of(partition) {
                self.rewritten(&key, &value)?;
            }
            // A cancelled statement ends here.
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// The rewritten entry.
    fn rewritten(&self, key: &Blob, value: &Blob) -> Result<(Blob, Blob), SqlError> {
        let old = self.stored.read(self.old_maker.writer(), key, value)?;
        let mut row = Vec::with_capacity(self.sources.len());
        for (column, source) in self.sources.iter().enumerate() {
            row.push(match source {
                Source::Column(index) => {
                    let value = old.get(*index).cloned().unwrap_or(Value::Null);
                    self.maker.convert(column, value)?
                }
                Source::Expression(expression) => self.maker.convert_field(
                    column,
                    expression.evaluate(&Inputs::row(&old, &self.execution))?,
                    expression.is_untyped(),
                )?,
                Source::Default => self.maker.default_value(column, Some(&self.execution))?,
            });
        }
        self.maker.check(&mut row, &self.execution)?;
        self.maker.entry(&row)
    }

    /// An index with the new paths of its columns; `None` if one of them was removed.
    fn renamed(&self, index: &IndexConfig) -> Option<IndexConfig> {
        let place = |attribute: &String| {
            let old = self.old.columns.iter().position(|column| column.path.to_string() == *attribute);
            let Some(old) = old else { return Some(attribute.clone()) };
            let new =
                self.sources.iter().position(|source| matches!(source, Source::Column(index) if *index == old))?;
            Some(self.new.columns.get(new)?.path.to_string())
        };
        let attributes = index.attributes.iter().map(place).collect::<Option<Vec<_>>>()?;
        Some(IndexConfig { attributes, ..index.clone() })
    }

    /// Builds another map of the rewritten rows, and replaces the current map by it. Until then the
    /// table is unchanged, also if the statement fails or is cancelled.
    async fn rewrite(&self, tables: &Tables) -> Result<(), SqlError> {
        let grid = tables.grid()?;
        let mut succession =
            grid.succeed(&self.map, &self.new.external_name).map_err(|error| in_use(&self.old, error))?;
        let target = succession.new_map().clone();
        crate::tables::keep_in(&target, &self.new)?;
        for index in self.map.indexes().iter().filter_map(|index| self.renamed(index)) {
            target.add_index(index)?;
        }
        for partition in self.partitions() {
            for (number, (key, value)) in self.rows_of(partition).iter().enumerate() {
                threads::give_way_at(number);
                let (new_key, new_value) = self.rewritten(key, value)?;
                // The entry has expired since.
                let Some(metadata) = succession.metadata(key) else { continue };
                let partition = target.partition_of(&new_key);
                if target.entry_view(partition, &new_key, |view| view.is_some()) {
                    return Err(self.not_unique(&new_key));
                }
                let mode = PutMode::Metadata(metadata);
                let put = Change::Put { key: &new_key, value: &new_value, expiry: Expiry::DEFAULT, mode };
                target.change(partition, Caller::default(), put, |_| ()).map_err(|refused| not_moved(&refused))?;
            }
            // A cancelled statement ends here.
            tokio::task::yield_now().await;
        }
        let put_in_place = || succession.put_in_place().map_err(|error| in_use(&self.new, error));
        tables.catalog().replace(&self.old, self.new.clone(), put_in_place)
    }

    /// The same on all members of a cluster.
    async fn rewrite_on_all(&self, engine: &Parts) -> Result<(), SqlError> {
        let tables = &engine.tables;
        let refused = |error| in_use(&self.old, error);
        let claim = whole::claim(&self.map, engine.sessions.lock_wait_ms()).await?;
        let grid = tables.grid()?;
        let replacement = grid.replace_on_all(&self.map, claim, &self.new.external_name);
        let mut replacement = replacement.map_err(refused)?;
        let mut rewrite = |key: &[u8], value: &[u8]| self.rewritten(&Blob::from(key), &Blob::from(value));
        for read in replacement.reads() {
            if let Some(key) = replacement.copy(read, &whole::check_limits, &mut rewrite)? {
                return Err(self.not_unique(&key));
            }
            // A cancelled statement ends here.
            tokio::task::yield_now().await;
        }
        let facts =
            self.new.table.as_ref().map(|facts| TableFacts { map: Some(replacement.id()), ..(**facts).clone() });
        let new = Arc::new(Mapping { table: facts.map(Arc::new), ..(*self.new).clone() });
        let indexes: Vec<IndexConfig> = self.map.indexes().iter().filter_map(|index| self.renamed(index)).collect();
        let mut put_in_place = |redefinitions| replacement.put_in_place(redefinitions, &indexes).map_err(refused);
        tables.catalog().replace_on_all(&self.old, &new, &mut put_in_place)
    }

    fn not_unique(&self, key: &[u8]) -> SqlError {
        let error = self.maker.duplicate(key);
        SqlError { message: format!("could not make the key unique: {}", error.message), ..error }
    }
}

/// The error of a map that cannot be replaced.
fn in_use(mapping: &Mapping, error: GridError) -> SqlError {
    let refused = |sqlstate: &'static str| {
        SqlError::new(SqlErrorCode::Generic, format!("{:?} cannot be altered: {error}", mapping.name))
            .with_sqlstate(sqlstate)
    };
    match &error {
        GridError::IllegalState(_) | GridError::BeingReplaced { .. } => refused("55P03"),
        GridError::IllegalArgument(_) => refused("42P07"),
        GridError::Destroyed { .. } => refused("40001"),
        _ => error.into(),
    }
}

fn not_moved(refused: &Refused) -> SqlError {
    match refused {
        Refused::Error(error) => error.clone().into(),
        Refused::Locked { .. } => {
            let text = format!("a row could not be written anew: {refused}");
            SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("55P03")
        }
    }
}
