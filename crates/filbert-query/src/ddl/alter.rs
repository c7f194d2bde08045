//! `ALTER TABLE`: what is declared changes, and rows that are there are written anew where they have to be.
//!
//! ```text
//!  actions ─► draft ─► new mapping ─► every row is tried: defaults, types, constraints ─► catalog ─► rows are written anew
//! ```
//!
//! A change that some row would break is refused before anything is changed. Rows are written anew if their columns have other
//! names or types, or are more or fewer; a table whose key or name changes becomes another map.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::execution::session_state::SessionState;
use filbert_data::{BLOB_HEADER_BYTES, Blob, Value};
use filbert_grid::query::{SqlError, SqlErrorCode, SqlSubject};
use filbert_grid::{Caller, Change, Expiry, IndexConfig, Map, PartitionId, PutMode};

use super::draft::{Draft, Origin};
use super::tables::table;
use crate::asker::Asker;
use crate::catalog::Mapping;
use crate::dialect::{AlterAction, AlterTable, Comment, schema_of};
use crate::dml::expressions::{Inputs, RowExpression, RowScope};
use crate::dml::rows::RowMaker;
use crate::dml::stored::StoredRows;
use crate::engine::Inner;
use crate::error::parsing_error;
use crate::surroundings::Occasion;
use crate::tables::Tables;

/// Takes entries of a map, keys and values, a partition at a time.
type VisitEntries<'v> = dyn FnMut(&[(Blob, Blob)]) -> Result<(), SqlError> + 'v;

/// How often rows that others write meanwhile are looked at again.
const ROUNDS_MAX: usize = 100;

/// Changes a table.
pub(crate) fn alter(engine: &Inner, asker: &Asker, statement: &AlterTable) -> Result<(), SqlError> {
    let tables = &engine.tables;
    let old = match table(tables, &statement.name) {
        Ok(mapping) => mapping,
        Err(error) if statement.if_exists && error.sqlstate == Some("42P01") => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut draft = Draft::of(&old)?;
    for action in &statement.actions {
        draft.apply(action)?;
    }
    let renamed = statement.actions.iter().find_map(|action| match action {
        AlterAction::RenameTo(name) => Some(name.as_str()),
        _ => None,
    });
    if let Some(name) = renamed
        && (tables.catalog().mapping(name).is_some() || tables.catalog().view(name).is_some())
    {
        let error = parsing_error(format!("relation {name:?} already exists")).with_sqlstate("42P07");
        return Err(error.about(SqlSubject::UsedName { name: name.to_owned() }));
    }
    let origins = draft.origins();
    let new = Arc::new(draft.mapping(renamed.unwrap_or(&old.name))?);
    let state = engine.sessions.planning(asker.dialect());
    let occasion = engine.sessions.occasion(asker.dialect(), asker.session());
    let change = RowChange::new(tables, state, (old, new), origins, occasion)?;
    change.run(tables)
}

/// Keeps a comment.
pub(crate) fn comment(tables: &Tables, comment: &Comment) -> Result<(), SqlError> {
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
    tables.catalog().put_mapping(new, true, false).map(|_| ())
}

/// What becomes of the rows of a table that changes.
struct RowChange {
    old: Arc<Mapping>,
    new: Arc<Mapping>,
    map: Arc<Map>,
    stored: StoredRows,
    old_maker: RowMaker,
    maker: RowMaker,
    /// Where each of the new columns comes from.
    sources: Vec<Source>,
    /// Who asks, and when: the same for all rows.
    occasion: Occasion,
}

enum Source {
    /// The old column of this number.
    Column(usize),
    /// An expression over the old row.
    Expression(RowExpression),
    /// What a new column is where nothing is given.
    Default,
}

/// An entry and what it becomes.
struct Rewritten {
    key: Blob,
    value: Blob,
    new_key: Blob,
    new_value: Blob,
}

impl RowChange {
    fn new(
        tables: &Tables,
        state: &SessionState,
        (old, new): (Arc<Mapping>, Arc<Mapping>),
        origins: Vec<Origin>,
        occasion: Occasion,
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
            // The number of a row stays, if it had one.
            let same = old.columns.iter().position(|column| column.hidden && column.name == hidden.name);
            sources.push(same.map_or(Source::Default, Source::Column));
        }
        let mapped = tables.find(&old.name)?.ok_or_else(|| tables.not_found(&old.name))?;
        let stored = StoredRows::of(&old, mapped.table.formats());
        let (old_maker, maker) = (maker(&old)?, maker(&new)?);
        Ok(RowChange { map: mapped.table.map().clone(), stored, old_maker, maker, sources, old, new, occasion })
    }

    fn run(&self, tables: &Tables) -> Result<(), SqlError> {
        let key_of = |mapping: &Mapping| mapping.table.as_ref().map(|facts| facts.primary_key.clone());
        let same_key =
            self.sources_of_key() && key_of(&self.old).map(|key| key.len()) == key_of(&self.new).map(|key| key.len());
        if same_key && self.old.external_name == self.new.external_name {
            // Every row is tried before anything changes.
            self.for_each_partition(&mut |rows| {
                rows.iter().try_for_each(|(key, value)| self.rewritten(key, value).map(|_| ()))
            })?;
            self.publish(tables, &self.map)?;
            return self.rewrite_in_place();
        }
        self.move_rows(tables)
    }

    /// Whether keys are made of the same columns as before, with the same names and types.
    fn sources_of_key(&self) -> bool {
        let of_key = |column: &crate::catalog::MappingColumn| column.path.side == filbert_data::Side::Key;
        self.new.columns.iter().zip(&self.sources).filter(|(column, _)| of_key(column)).all(|(column, source)| {
            matches!(source, Source::Column(index) if self.old.columns.get(*index).is_some_and(|old| {
                old.path == column.path && old.field_type == column.field_type
            }))
        })
    }

    fn for_each_partition(&self, visit: &mut VisitEntries<'_>) -> Result<(), SqlError> {
        for partition in (0..self.map.partition_count()).map(PartitionId) {
            let mut rows = Vec::new();
            self.map.scan_rows(partition, &mut |key, value| rows.push((Blob::from(key), Blob::from(value))));
            visit(&rows)?;
        }
        Ok(())
    }

    /// What an entry becomes.
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
                    expression.evaluate(&Inputs::row(&old, &self.occasion))?,
                    expression.is_untyped(),
                )?,
                Source::Default => self.maker.default_value(column, Some(&self.occasion))?,
            });
        }
        self.maker.check(&mut row, &self.occasion)?;
        self.maker.entry(&row)
    }

    /// From here on, statements see the table as it becomes.
    fn publish(&self, tables: &Tables, map: &Map) -> Result<(), SqlError> {
        let indexes = map.indexes();
        tables.catalog().put_mapping((*self.new).clone(), true, false)?;
        super::keep_beside(tables, &self.new)?;
        for index in indexes {
            let Some(renamed) = self.renamed(&index) else {
                // A column that it was of is gone.
                if let Some(name) = &index.name {
                    map.drop_index(name)?;
                }
                continue;
            };
            if renamed.attributes != index.attributes {
                if let Some(name) = &index.name {
                    map.drop_index(name)?;
                }
                map.add_index(renamed)?;
            }
        }
        tables.catalog().changed();
        Ok(())
    }

    /// An index with its columns' new places; `None` if one of them is gone.
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

    /// Writes rows anew whose values are not as they are written now.
    fn rewrite_in_place(&self) -> Result<(), SqlError> {
        let schema = self.maker.writer().value_schema();
        for _ in 0..ROUNDS_MAX {
            let mut missed = false;
            self.for_each_partition(&mut |rows| {
                for (key, value) in rows {
                    let is_new = schema.is_some_and(|schema| schema_of_blob(value) == Some(schema));
                    // One that breaks what is declared now was written meanwhile, and stays as it is.
                    let Ok((_, new)) = (if is_new { continue } else { self.rewritten(key, value) }) else { continue };
                    let change = Change::ReplaceIfSame { key, expected: value, value: &new };
                    let partition = self.map.partition_of(key);
                    let done = self
                        .map
                        .change(partition, Caller::default(), change, |reply| crate::dml::apply::outcome(&reply));
                    missed |= done != Ok(crate::dml::apply::Outcome::Made);
                }
                Ok(())
            })?;
            if !missed {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes another map of the table: its name or its key is another.
    fn move_rows(&self, tables: &Tables) -> Result<(), SqlError> {
        let mut rows: Vec<Rewritten> = Vec::new();
        self.for_each_partition(&mut |found| {
            for (key, value) in found {
                let (new_key, new_value) = self.rewritten(key, value)?;
                rows.push(Rewritten { key: key.clone(), value: value.clone(), new_key, new_value });
            }
            Ok(())
        })?;
        let mut seen: HashSet<&[u8]> = HashSet::with_capacity(rows.len());
        if let Some(twice) = rows.iter().find(|row| !seen.insert(&row.new_key)) {
            let error = self.maker.duplicate(&twice.new_key);
            return Err(SqlError { message: format!("could not make the key unique: {}", error.message), ..error });
        }
        drop(seen);
        let grid = tables.grid()?;
        let same_map = self.old.external_name == self.new.external_name;
        if !same_map {
            tables.catalog().drop_mapping(&self.old.name, true)?;
        }
        let indexes: Vec<IndexConfig> = self.map.indexes().iter().filter_map(|index| self.renamed(index)).collect();
        let target = grid.map(&self.new.external_name)?;
        self.publish(tables, &self.map)?;
        let put = |key: &Blob, value: &Blob| {
            let change = Change::Put { key, value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
            target.change(target.partition_of(key), Caller::default(), change, |_| ()).map_err(|error| locked(&error))
        };
        for row in &rows {
            if same_map && row.new_key != row.key {
                let change = Change::RemoveIfSame { key: &row.key, expected: &row.value };
                let partition = self.map.partition_of(&row.key);
                self.map.change(partition, Caller::default(), change, |_| ()).map_err(|error| locked(&error))?;
            }
        }
        rows.iter().try_for_each(|row| put(&row.new_key, &row.new_value))?;
        if !same_map {
            grid.destroy_map(&self.old.external_name);
            for index in indexes {
                target.add_index(index)?;
            }
        }
        tables.catalog().changed();
        Ok(())
    }
}

fn locked(refused: &filbert_grid::Refused) -> SqlError {
    let text = format!("a row could not be moved to its new key: {refused}");
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("55P03")
}

/// The Compact schema of a stored value.
fn schema_of_blob(value: &[u8]) -> Option<i64> {
    let id = value.get(BLOB_HEADER_BYTES..BLOB_HEADER_BYTES + 8)?;
    Some(i64::from_be_bytes(id.try_into().ok()?))
}
