//! Statements about the catalog: they create and drop tables, mappings, views and indexes; `SHOW`
//! lists them.

mod alter;
mod defaults;
mod draft;
pub(crate) mod tables;
mod views;
mod whole;

use std::sync::Arc;

use arrow_array::RecordBatch;
use filbert_data::FieldPath;
use filbert_dialect::{CreateIndex, CreateMapping, IndexType, Parsed, ShowWhat, TableStatement, schema_of};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, Severity, SqlError, SqlErrorCode};
use filbert_grid::{BitmapConfig, IndexConfig, IndexKind};

use self::views::NewView;
use crate::catalog::{self, EntryFormat, Mapping};
use crate::client_context::ClientContext;
use crate::cursor::text_rows;
use crate::parts::Parts;
use crate::plan_sources::Definition;
use crate::tables::{Tables, keep_in, relations_of, sample};

/// Runs a statement about the catalog; returns the number of rows that it reports.
///
/// The statement holds its names exclusively. Nobody writes rows of a table that is altered or
/// dropped, and no two statements change the same name at once. An index is built while others
/// write.
pub(crate) async fn run(engine: &Parts, client: &ClientContext, parsed: &Parsed) -> Result<u64, SqlError> {
    let tables = &engine.tables;
    let gates = tables.catalog().gates();
    match parsed {
        Parsed::Table(TableStatement::Create(table)) if table.source.is_some() => {
            return tables::create_as(engine, client, table).await;
        }
        Parsed::CreateIndex(statement) => {
            let _shared = gates.share(&statement.map).await?;
            return create_index(tables, client, statement).map(|()| 0);
        }
        Parsed::DropIndex { name, map, if_exists } => {
            return drop_index(tables, client, name, map.as_deref(), *if_exists).await.map(|()| 0);
        }
        Parsed::Table(TableStatement::DropSchema { names, if_exists, cascade }) => {
            return tables::drop_schemas(tables, client, names, *if_exists, *cascade).await;
        }
        Parsed::Table(TableStatement::Alter(statement)) => {
            return alter::alter(engine, client, statement).await.map(|()| 0);
        }
        _ => {}
    }
    let read = match parsed {
        // No table that the view reads is altered between the planning of its query and its
        // creation.
        Parsed::CreateView { query, .. } => relations_of(query),
        _ => Vec::new(),
    };
    let read: Vec<&str> = read.iter().map(String::as_str).collect();
    let _alone = gates.alone_sharing(&names_of(parsed), &read).await?;
    match parsed {
        Parsed::Table(TableStatement::Truncate { names, restart }) => {
            return tables::truncate(engine, client.view(), names, *restart).await;
        }
        Parsed::Table(statement) => return table_statement(engine, client, statement),
        Parsed::CreateMapping(statement) => create_mapping(tables, statement),
        Parsed::DropMapping { name, if_exists } => drop_mapping(tables, name, *if_exists),
        Parsed::CreateView { name, or_replace, if_not_exists, query_text, query } => {
            let (or_replace, if_not_exists) = (*or_replace, *if_not_exists);
            views::create(engine, client, &NewView { name, or_replace, if_not_exists, query_text, query }).await
        }
        Parsed::DropView { names, if_exists, cascade } => views::drop(tables, client, names, *if_exists, *cascade),
        _ => Err(parsing_error("a statement about the catalog is expected")),
    }?;
    Ok(0)
}

/// The names that a statement redefines.
fn names_of(parsed: &Parsed) -> Vec<&str> {
    match parsed {
        Parsed::CreateMapping(statement) => vec![statement.name.as_str()],
        Parsed::DropMapping { name, .. } | Parsed::CreateView { name, .. } => vec![name.as_str()],
        Parsed::DropView { names, .. } => names.iter().map(String::as_str).collect(),
        Parsed::Table(TableStatement::Create(table)) => vec![table.name.as_str()],
        Parsed::Table(TableStatement::Drop { names, .. } | TableStatement::Truncate { names, .. }) => {
            names.iter().map(String::as_str).collect()
        }
        Parsed::Table(TableStatement::Comment(comment)) => vec![comment.table.as_str()],
        _ => Vec::new(),
    }
}

/// Notifies the client that an object does not exist, which is no error with `IF EXISTS`.
fn skipped(client: &ClientContext, what: &str, name: &str) {
    if let Some(session) = client.session() {
        let name = schema_of(name).1;
        session.tell(Severity::Notice, "00000", format!("{what} {name:?} does not exist, skipping"));
    }
}

/// Notifies the client that an object exists already, which is no error with `IF NOT EXISTS`.
fn kept(client: &ClientContext, what: &str, name: &str, sqlstate: &'static str) {
    if let Some(session) = client.session() {
        let name = schema_of(name).1;
        session.tell(Severity::Notice, sqlstate, format!("{what} {name:?} already exists, skipping"));
    }
}

/// Runs a statement about tables; returns the number of rows that it reports.
fn table_statement(engine: &Parts, client: &ClientContext, statement: &TableStatement) -> Result<u64, SqlError> {
    let all = &engine.tables;
    match statement {
        TableStatement::Create(table) => tables::create(engine, client, table).map(|made| u64::from(made.is_some())),
        TableStatement::Drop { names, if_exists, cascade } => tables::drop(all, client, names, *if_exists, *cascade),
        TableStatement::Comment(comment) => alter::comment(all, comment).map(|()| 0),
        TableStatement::CreateSchema { name, if_not_exists } => {
            if !all.catalog().put_schema(name, *if_not_exists)? {
                kept(client, "schema", name, "42P06");
            }
            Ok(0)
        }
        TableStatement::KeepUp { names, .. } => {
            tables::check_all(all, names)?;
            Ok(u64::try_from(names.len()).unwrap_or(u64::MAX))
        }
        TableStatement::Alter(_) | TableStatement::DropSchema { .. } | TableStatement::Truncate { .. } => {
            Err(parsing_error("a statement about tables is expected"))
        }
    }
}

fn create_mapping(tables: &Tables, statement: &CreateMapping) -> Result<(), SqlError> {
    let grid = tables.grid()?;
    let map_name = statement.external_name.as_ref().unwrap_or(&statement.name);
    // Requesting a map would create it. Declared columns need no sample entry.
    let is_there = grid.map_names().binary_search(map_name).is_ok();
    let entry = match statement.columns.is_empty() && is_there {
        true => sample(&*grid.map(map_name)?)?,
        false => None,
    };
    let entry = entry.as_ref().map(|(key, value)| (&**key, &**value));
    let mapping = catalog::resolve(statement, entry, grid.schemas().as_ref())?;
    if tables.catalog().put_mapping(mapping.clone(), statement.or_replace, statement.if_not_exists)? {
        keep_beside(tables, &mapping)?;
    }
    Ok(())
}

/// Applies the declarations of a mapping to its map: columns, and the layouts of fields.
fn keep_beside(tables: &Tables, mapping: &Mapping) -> Result<(), SqlError> {
    let grid = tables.grid()?;
    let is_there = grid.map_names().binary_search(&mapping.external_name).is_ok();
    let has_layout =
        [&mapping.key_format, &mapping.value_format].iter().any(|format| matches!(format, EntryFormat::Ids(_)));
    if mapping.columnar || has_layout || is_there {
        keep_in(&*grid.map(&mapping.external_name)?, mapping)?;
        tables.catalog().changed(Definition::Relation(mapping.name.clone()));
    }
    Ok(())
}

fn drop_mapping(tables: &Tables, name: &str, if_exists: bool) -> Result<(), SqlError> {
    if tables.catalog().mapping(name).is_some_and(|mapping| mapping.table.is_some()) {
        let text = format!("{name:?} is a table: DROP TABLE drops it and its rows");
        return Err(SqlError::new(SqlErrorCode::ObjectNotFound, text).with_sqlstate("42809"));
    }
    let Some(dropped) = tables.catalog().mapping(name) else {
        return if if_exists { Ok(()) } else { Err(tables.catalog().no_mapping(name)) };
    };
    tables.catalog().remove(&dropped, || Ok(()))?;
    let grid = tables.grid()?;
    let is_there = grid.map_names().binary_search(&dropped.external_name).is_ok();
    if dropped.columnar && is_there {
        grid.map(&dropped.external_name)?.set_columns(Vec::new())?;
        tables.catalog().changed(Definition::Relation(name.to_owned()));
    }
    Ok(())
}

fn create_index(tables: &Tables, client: &ClientContext, statement: &CreateIndex) -> Result<(), SqlError> {
    let Some(mapped) = tables.find(&statement.map)? else { return Err(tables.not_found(&statement.map)) };
    let map = mapped.table.map();
    if statement.unique {
        let key = mapped.mapping.table.as_ref().map(|facts| facts.primary_key.as_slice()).unwrap_or_default();
        if key.is_empty() || !key.iter().all(|column| statement.attributes.contains(column)) {
            let text = format!(
                "only the primary key of {:?} is unique: CREATE INDEX makes an index that is not",
                statement.map
            );
            return Err(index_error(text).with_sqlstate("0A000"));
        }
    }
    let mut attributes = Vec::with_capacity(statement.attributes.len());
    for name in &statement.attributes {
        let column = mapped.mapping.columns.iter().find(|column| column.name == *name);
        let path = match column {
            Some(column) => column.path.clone(),
            // A field can be indexed without a column, if its name is a path.
            None if name.contains(['.', '[']) => {
                FieldPath::parse(name).map_err(|error| index_error(error.to_string()))?
            }
            None => return Err(catalog::unknown_column(&mapped.mapping, name)),
        };
        attributes.push(path.to_string());
    }
    let kind = match statement.kind {
        IndexType::Sorted => IndexKind::Sorted,
        IndexType::Hash => IndexKind::Hash,
        IndexType::Bitmap => IndexKind::Bitmap,
    };
    let known = |name: &String| map.indexes().iter().any(|index| index.name.as_ref() == Some(name));
    if let Some(name) = statement.name.as_ref().filter(|name| known(name)) {
        return there_already(client, statement, name);
    }
    let option = |wanted: &str| {
        let found = statement.options.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.clone())
    };
    let bitmap = (kind == IndexKind::Bitmap).then(|| BitmapConfig {
        unique_key: option("unique_key").unwrap_or_else(|| "__key".to_owned()),
        transformation: match option("unique_key_transformation").as_deref() {
            Some("LONG") => 1,
            Some("RAW") => 2,
            _ => 0,
        },
    });
    let name = match &statement.name {
        None if client.dialect() == Dialect::Postgres => Some(index_name(statement, known)),
        name => name.clone(),
    };
    let added = map.add_index(IndexConfig { name, kind, attributes, bitmap })?;
    tables.catalog().changed(Definition::Relation(mapped.mapping.name.clone()));
    match &statement.name {
        // Another statement has created an index with this name since.
        Some(name) if !added => there_already(client, statement, name),
        _ => Ok(()),
    }
}

/// PostgreSQL's name of an index without one.
fn index_name(statement: &CreateIndex, is_known: impl Fn(&String) -> bool) -> String {
    let base = format!("{}_{}_idx", schema_of(&statement.map).1, statement.attributes.join("_"));
    tables::free_name(base, is_known)
}

fn there_already(client: &ClientContext, statement: &CreateIndex, name: &str) -> Result<(), SqlError> {
    if statement.if_not_exists {
        kept(client, "relation", name, "42P07");
        return Ok(());
    }
    let text = format!("Can't create index: index '{name}' already exists");
    Err(SqlError::new(SqlErrorCode::IndexInvalid, text).with_sqlstate("42P07"))
}

async fn drop_index(
    tables: &Tables,
    client: &ClientContext,
    name: &str,
    map: Option<&str>,
    if_exists: bool,
) -> Result<(), SqlError> {
    let short = schema_of(name).1;
    let of_map = |mapping: &Arc<Mapping>| {
        let map = tables.grid().ok()?.existing_map(&mapping.external_name)?;
        map.indexes().iter().any(|index| index.name.as_deref() == Some(short)).then(|| mapping.name.clone())
    };
    let owners = match map {
        Some(map) => vec![map.to_owned()],
        None => tables.catalog().mappings().iter().filter_map(of_map).collect(),
    };
    for owner in &owners {
        // Nobody alters the table meanwhile.
        let _shared = tables.catalog().gates().share(owner).await?;
        match tables.find(owner)? {
            Some(mapped) if mapped.table.map().drop_index(short)? => {
                tables.catalog().changed(Definition::Relation(mapped.mapping.name.clone()));
                return Ok(());
            }
            None if map.is_some() => return Err(tables.not_found(owner)),
            _ => {}
        }
    }
    match if_exists {
        true => {
            skipped(client, "index", name);
            Ok(())
        }
        false => Err(index_error(format!("Index does not exist: {name}"))),
    }
}

fn index_error(message: String) -> SqlError {
    SqlError::new(SqlErrorCode::IndexInvalid, message).with_sqlstate("42704")
}

/// The rows of `SHOW`.
pub(crate) fn show(tables: &Tables, what: &ShowWhat) -> Result<RecordBatch, SqlError> {
    let catalog = tables.catalog();
    let names = match what {
        ShowWhat::Mappings => catalog.mapping_names(),
        ShowWhat::Views => catalog.view_names(),
        // Jobs and data connections are not supported, so there are none.
        ShowWhat::Jobs | ShowWhat::DataConnections => Vec::new(),
        ShowWhat::Resources(name) => {
            let text = format!("Data connection '{name}' not found");
            return Err(SqlError::new(SqlErrorCode::ObjectNotFound, text));
        }
        ShowWhat::Indexes(mapping) => {
            let mappings = match mapping {
                Some(name) => match tables.find(name)? {
                    Some(mapped) => vec![mapped.mapping.external_name.clone()],
                    None => return Err(tables.not_found(name)),
                },
                None => catalog.mappings().iter().map(|mapping| mapping.external_name.clone()).collect(),
            };
            let grid = tables.grid()?;
            let there = grid.map_names();
            let mut names = Vec::new();
            for map in mappings.iter().filter(|map| there.binary_search(map).is_ok()) {
                names.extend(grid.map(map)?.indexes().into_iter().filter_map(|index| index.name));
            }
            names
        }
    };
    let mut names = names;
    names.sort_unstable();
    text_rows("name", names.iter().map(String::as_str))
}
