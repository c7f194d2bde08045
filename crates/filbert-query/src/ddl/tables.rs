//! Statements that create, drop and truncate tables.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::Expr;
use filbert_data::FieldType;
use filbert_dialect::{
    ColumnDefinition, ConstraintKind, CreateTable, DeclaredType, Expression, Insert, Like, schema_of, walk,
};
use filbert_functions::error::{of_datafusion, parsing_error};
use filbert_functions::types::{ARRAY_OF_JSONB, ARRAY_OF_NUMERIC, ARRAY_OF_VARCHAR, BPCHAR, JSONB, NUMERIC, VARCHAR};
use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::replication::{EntrySelection, LeaderRead, WholeClaim};
use filbert_grid::{Caller, IndexConfig, Map, ReadView};

use super::defaults::Literals;
use super::views;
use super::whole;
use crate::catalog::{CheckFacts, ColumnFacts, Identity, Mapping, Sequence, TableFacts};
use crate::client_context::ClientContext;
use crate::dml::expressions::RowScope;
use crate::dml::rows::RowMaker;
use crate::dml::{Changed, Dml};
use crate::parts::Parts;
use crate::plan::planner::{columns_after, plan_query};
use crate::tables::Tables;

/// Schemas in which tables cannot be created.
const RESERVED: [&str; 4] = ["information_schema", "pg_catalog", "sys", "blob"];

/// Creates a table; `None` if it exists and the statement allows that.
pub(super) fn create(
    engine: &Parts,
    client: &ClientContext,
    statement: &CreateTable,
) -> Result<Option<Arc<Mapping>>, SqlError> {
    let tables = &engine.tables;
    let name = statement.name.as_str();
    if let (Some(schema), _) = schema_of(name)
        && RESERVED.contains(&schema)
    {
        let text = format!("tables cannot be made in the schema {schema:?}");
        return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("42501"));
    }
    let is_there = || {
        super::kept(client, "relation", name, "42P07");
        Ok(None)
    };
    if statement.if_not_exists && tables.catalog().mapping(name).is_some() {
        return is_there();
    }
    let literals = Literals::of(engine, client);
    let columns = statement.columns.iter().cloned().map(|column| literals.column(column));
    let statement = &CreateTable { columns: columns.collect::<Result<_, _>>()?, ..statement.clone() };
    let mapping = Arc::new(declared(tables, engine.sessions.planning(client.dialect()), statement)?);
    let grid = tables.grid()?;
    // Reports defaults and checks that cannot be planned.
    tables.catalog().row_ids().not_before(grid.now().0);
    RowMaker::new(&mapping, grid.schemas(), engine.sessions.planning(client.dialect()), tables.catalog().row_ids())?;
    let is_map = || grid.map_names().binary_search_by(|known| known.as_str().cmp(name)).is_ok();
    if tables.catalog().mapping(name).is_none() && is_map() && !grid.map(name)?.is_empty() {
        let text =
            format!("a map {name:?} has entries: CREATE MAPPING shows them as rows, a table begins with an empty one");
        return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("42P07"));
    }
    if !tables.catalog().put_mapping(mapping.clone(), false, statement.if_not_exists)? {
        return is_there();
    }
    let with_indexes = statement.like.iter().filter(|like| like.indexes);
    let kept = super::keep_beside(tables, &mapping)
        .and_then(|()| with_indexes.into_iter().try_for_each(|like| like_indexes(tables, like, &mapping)));
    if let Err(error) = kept {
        // If the map cannot keep the columns or indexes, the table is removed again.
        drop_one(tables, &mapping)?;
        return Err(error);
    }
    Ok(Some(mapping))
}

/// The mapping that a statement declares.
fn declared(tables: &Tables, state: &SessionState, statement: &CreateTable) -> Result<Mapping, SqlError> {
    let name = statement.name.as_str();
    let (_, short) = schema_of(name);
    let mut facts = TableFacts {
        map: None,
        columns: Vec::new(),
        primary_key: Vec::new(),
        primary_key_name: format!("{short}_pkey"),
        checks: Vec::new(),
        clustered_by: statement.clustered_by.clone(),
        shards: statement.shards,
        partitioned_by: statement.partitioned_by.clone(),
        options: statement.options.clone(),
        comment: None,
    };
    let mut columns: Vec<(String, ColumnFacts)> = Vec::new();
    for like in &statement.like {
        columns.extend(self::like(tables, like, &mut facts)?);
    }
    let of_like = columns.len();
    for definition in statement.columns.iter().filter(|definition| definition.declared.is_some()) {
        columns.push((definition.name.clone(), of_column(definition)?));
    }
    let without_type = statement.columns.iter().enumerate().filter(|(_, definition)| definition.declared.is_none());
    let without_type: Vec<_> = without_type.collect();
    if !without_type.is_empty() {
        let plain = columns.iter().map(|(name, facts)| (name.clone(), ColumnFacts::of(facts.declared.clone())));
        let known = Mapping::of_table(name, plain.collect(), facts.clone())?;
        for (at, definition) in without_type {
            let facts = of_column(&with_type(state, definition, &known)?)?;
            columns.insert(of_like + at, (definition.name.clone(), facts));
        }
    }
    let of_columns = statement.columns.iter().flat_map(|column| &column.constraints);
    for constraint in of_columns.chain(&statement.constraints) {
        match &constraint.kind {
            ConstraintKind::PrimaryKey(_) if !facts.primary_key.is_empty() => {
                let text = format!("multiple primary keys for table {name:?} are not allowed");
                return Err(parsing_error(text).with_sqlstate("42P16"));
            }
            ConstraintKind::PrimaryKey(key) => {
                facts.primary_key.clone_from(key);
                if let Some(name) = &constraint.name {
                    facts.primary_key_name.clone_from(name);
                }
            }
            ConstraintKind::Check(condition) => {
                let made = check_name(short, condition, &facts.checks);
                add_check(&mut facts, constraint.name.clone().unwrap_or(made), condition.clone())?;
            }
        }
    }
    for column in statement.clustered_by.iter().chain(&statement.partitioned_by) {
        let is_there = columns.iter().any(|(name, _)| name == column) || column.contains('[') || column == "_id";
        if !is_there {
            let text = format!("column {column:?}, by which {name:?} is to be divided, is not there");
            return Err(parsing_error(text).with_sqlstate("42703"));
        }
    }
    Mapping::of_table(name, columns, facts)
}

/// The generated name of a check without one. It has the name of the only column that the condition
/// refers to, as in PostgreSQL.
pub(super) fn check_name(table: &str, condition: &Expression, known: &[CheckFacts]) -> String {
    let base = match only_column(&condition.expr) {
        Some(column) => format!("{table}_{column}_check"),
        None => format!("{table}_check"),
    };
    free_name(base, |name| known.iter().any(|check| check.name == *name))
}

/// The first name that is free: `base`, or `base` with a number.
pub(super) fn free_name(base: String, is_known: impl Fn(&String) -> bool) -> String {
    let numbered = (1..).map(|number: usize| format!("{base}{number}"));
    std::iter::once(base.clone()).chain(numbered).find(|name| !is_known(name)).unwrap_or(base)
}

/// The only column that an expression refers to.
fn only_column(expression: &Expr) -> Option<String> {
    let mut found: Vec<String> = Vec::new();
    let _ = walk::expressions(expression, |inner| {
        let name = match inner {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        if let Some(name) = name.filter(|name| !found.contains(&name.value)) {
            found.push(name.value.clone());
        }
        ControlFlow::<()>::Continue(())
    });
    match found.as_slice() {
        [column] => Some(column.clone()),
        _ => None,
    }
}

pub(super) fn add_check(facts: &mut TableFacts, name: String, condition: Expression) -> Result<(), SqlError> {
    if facts.checks.iter().any(|check| check.name == name) {
        let text = format!("constraint {name:?} is there already");
        return Err(parsing_error(text).with_sqlstate("42710"));
    }
    facts.checks.push(CheckFacts { name, condition });
    Ok(())
}

/// Gives a generated column without a declared type the type of its expression over the known
/// columns.
///
/// # Errors
/// The expression cannot be planned.
pub(super) fn with_type(
    state: &SessionState,
    definition: &ColumnDefinition,
    known: &Mapping,
) -> Result<ColumnDefinition, SqlError> {
    let (None, Some(generated)) = (&definition.declared, &definition.generated) else { return Ok(definition.clone()) };
    let scope = RowScope::of(known, schema_of(&known.name).1, false, &[])?;
    let expression = scope.expression(state, &generated.expr)?;
    let declared = Some(DeclaredType::Plain(expression.output().clone()));
    Ok(ColumnDefinition { declared, ..definition.clone() })
}

/// The declaration of a column.
///
/// # Errors
/// The declaration is inconsistent.
pub(super) fn of_column(definition: &ColumnDefinition) -> Result<ColumnFacts, SqlError> {
    let name = &definition.name;
    let Some(declared) = &definition.declared else {
        return Err(parsing_error(format!("column {name:?} has no type")));
    };
    let kinds = [definition.default.is_some(), definition.generated.is_some(), definition.counting.is_some()];
    if kinds.iter().filter(|is_so| **is_so).count() > 1 {
        let text = format!("column {name:?} has more than one of DEFAULT, GENERATED ALWAYS AS and a counter");
        return Err(parsing_error(text));
    }
    let identity = match &definition.counting {
        None => None,
        Some(counting) => {
            let sequence = Sequence::new(counting, &declared.field_type())?;
            Some(Identity { always: counting.always, sequence: Arc::new(sequence) })
        }
    };
    Ok(ColumnFacts {
        declared: declared.clone(),
        not_null: definition.not_null,
        default: definition.default.clone(),
        generated: definition.generated.clone(),
        identity,
        comment: None,
    })
}

/// The columns of another table, for `LIKE`: names, types and `NOT NULL`, and the further
/// properties that the statement includes.
fn like(tables: &Tables, like: &Like, new: &mut TableFacts) -> Result<Vec<(String, ColumnFacts)>, SqlError> {
    let Some(mapped) = tables.find(&like.table)? else { return Err(tables.not_found(&like.table)) };
    let mapping = &mapped.mapping;
    let facts = mapping.table.as_ref().map(|table| table.columns.as_slice()).unwrap_or_default();
    let columns = mapping.columns.iter().enumerate().filter(|(_, column)| !column.hidden);
    let of = |(index, column): (usize, &crate::catalog::MappingColumn)| {
        let plain = || ColumnFacts::of(DeclaredType::Plain(column.field_type.clone()));
        let facts = facts.get(index).map_or_else(plain, |facts| ColumnFacts {
            declared: facts.declared.clone(),
            not_null: facts.not_null,
            default: facts.default.clone().filter(|_| like.defaults),
            generated: facts.generated.clone().filter(|_| like.generated),
            identity: facts.identity.as_ref().filter(|_| like.identity).map(Identity::anew),
            comment: facts.comment.clone().filter(|_| like.comments),
        });
        (column.name.clone(), facts)
    };
    if let Some(table) = &mapping.table {
        if like.constraints {
            new.checks.extend(table.checks.iter().cloned());
        }
        if like.indexes && new.primary_key.is_empty() {
            new.primary_key.clone_from(&table.primary_key);
        }
        if like.comments {
            new.comment.clone_from(&table.comment);
        }
    }
    Ok(columns.map(of).collect())
}

/// Creates the indexes of the other table for `LIKE`, under new names.
fn like_indexes(tables: &Tables, like: &Like, new: &Mapping) -> Result<(), SqlError> {
    let Some(mapped) = tables.find(&like.table)? else { return Ok(()) };
    let grid = tables.grid()?;
    for index in mapped.table.map().indexes() {
        let place = |attribute: &String| {
            let old = mapped.mapping.columns.iter().find(|column| column.path.to_string() == *attribute);
            let new = new.columns.iter().find(|column| old.is_some_and(|old| old.name == column.name));
            new.map_or_else(|| attribute.clone(), |column| column.path.to_string())
        };
        let attributes = index.attributes.iter().map(place).collect();
        grid.map(&new.external_name)?.add_index(IndexConfig { name: None, attributes, ..index.clone() })?;
    }
    Ok(())
}

/// Creates a table with a query's columns, and writes its rows; returns the number of rows.
pub(crate) async fn create_as(
    engine: &Parts,
    client: &ClientContext,
    statement: &CreateTable,
) -> Result<u64, SqlError> {
    let Some(query) = &statement.source else { return Ok(0) };
    let state = engine.sessions.planning(client.dialect());
    let planned = plan_query(state, &engine.tables, client, (**query).clone()).await?;
    if !planned.parameters.is_empty() {
        return Err(parsing_error("a table cannot be made of a query with parameters").with_sqlstate("0A000"));
    }
    let names = planned.columns.iter().enumerate().map(|(at, column)| statement.names.get(at).unwrap_or(&column.name));
    let names: Vec<&String> = names.collect();
    if let Some((_, name)) =
        names.iter().enumerate().find(|(at, name)| names.iter().take(*at).any(|other| other == *name))
    {
        return Err(parsing_error(format!("column {name:?} specified more than once")).with_sqlstate("42701"));
    }
    let optimized = state.optimize(&planned.plan).map_err(|error| of_datafusion(&error))?;
    let columns = columns_after(&optimized, &planned.columns);
    if statement.names.len() > columns.len() {
        let text = format!("{} names are given to {} columns", statement.names.len(), columns.len());
        return Err(parsing_error(text));
    }
    let mut table = CreateTable { source: None, names: Vec::new(), ..statement.clone() };
    for (at, column) in columns.iter().enumerate() {
        let name = statement.names.get(at).unwrap_or(&column.name).clone();
        let declared = match column.pg_type {
            Some(VARCHAR) => DeclaredType::Varchar(column.length),
            // Without a declared length, texts keep their trailing blanks.
            Some(BPCHAR) => match planned.lengths.get(at).copied().flatten() {
                Some(length) => DeclaredType::Character(length),
                None => DeclaredType::Plain(FieldType::Varchar),
            },
            Some(JSONB) => DeclaredType::Jsonb,
            Some(ARRAY_OF_JSONB) => DeclaredType::Array(Box::new(DeclaredType::Jsonb)),
            Some(ARRAY_OF_VARCHAR) => DeclaredType::Array(Box::new(DeclaredType::Varchar(None))),
            Some(NUMERIC) => DeclaredType::Plain(FieldType::Decimal(None)),
            Some(ARRAY_OF_NUMERIC) => DeclaredType::Array(Box::new(DeclaredType::Plain(FieldType::Decimal(None)))),
            _ => DeclaredType::Plain(column.field_type.clone()),
        };
        table.columns.push(ColumnDefinition::plain(name, declared));
    }
    let gates = engine.tables.catalog().gates();
    let alone = gates.alone(&[table.name.as_str()]).await?;
    let made = create(engine, client, &table)?;
    std::mem::drop(alone);
    let Some(made) = made.filter(|_| !statement.without_data) else { return Ok(0) };
    let names = table.columns.into_iter().map(|column| column.name).collect();
    let insert = Insert { table: table.name, columns: names, source: Some(query.clone()), ..Insert::default() };
    // The table must not stay without its rows, also if the statement is cancelled.
    let mut unfilled = Unfilled { tables: &engine.tables, table: Some(made) };
    let filled = {
        let _shared = gates.share(&insert.table).await?;
        Dml::begins(&engine.tables, &engine.sessions, client, None)?.insert(&insert, &[]).await?
    };
    unfilled.table = None;
    match filled {
        Changed::Count(count) => Ok(count),
        Changed::Rows(..) => Ok(0),
    }
}

/// A new table that does not have all its rows yet. Dropping this value drops the table.
struct Unfilled<'t> {
    tables: &'t Tables,
    table: Option<Arc<Mapping>>,
}

impl Drop for Unfilled<'_> {
    fn drop(&mut self) {
        if let Some(table) = &self.table {
            // Another statement may have dropped or altered it meanwhile.
            let _ = drop_one(self.tables, table);
        }
    }
}

/// Drops schemas, with their tables if `cascade` is set; returns the number of existing schemas.
pub(super) async fn drop_schemas(
    tables: &Tables,
    client: &ClientContext,
    names: &[String],
    if_exists: bool,
    cascade: bool,
) -> Result<u64, SqlError> {
    let catalog = tables.catalog();
    let mut dropped = 0;
    for name in names {
        let of_schema = if cascade { catalog.in_schema(name) } else { Vec::new() };
        let had_tables = !of_schema.is_empty();
        for table in of_schema {
            let _alone = catalog.gates().alone(&[table.as_str()]).await?;
            match catalog.mapping(&table) {
                Some(mapping) if mapping.table.is_some() => drop_one(tables, &mapping)?,
                Some(mapping) => catalog.remove(&mapping, || Ok(()))?,
                None => catalog.drop_view(&table, true).map(|_| ())?,
            }
        }
        let was_there = catalog.drop_schema(name, if_exists || had_tables)?;
        if !was_there && !had_tables {
            super::skipped(client, "schema", name);
        }
        dropped += u64::from(was_there);
    }
    Ok(dropped)
}

/// Drops tables and their rows; returns the number of existing tables. If one of them cannot be
/// dropped, none is.
pub(super) fn drop(
    tables: &Tables,
    client: &ClientContext,
    names: &[String],
    if_exists: bool,
    cascade: bool,
) -> Result<u64, SqlError> {
    let mut found: Vec<Arc<Mapping>> = Vec::with_capacity(names.len());
    for name in names {
        match table(tables, name) {
            Ok(mapping) if found.iter().any(|other| Arc::ptr_eq(other, &mapping)) => {}
            Ok(mapping) => found.push(mapping),
            Err(error) if if_exists && error.sqlstate == Some("42P01") => super::skipped(client, "table", name),
            Err(error) => return Err(error),
        }
    }
    let views: Vec<String> = found.iter().flat_map(|mapping| tables.views_over(&mapping.name)).collect();
    if !cascade {
        views::check_dropped(client, "table", names, &views)?;
    }
    let mut dropped = 0;
    for mapping in found {
        drop_one(tables, &mapping)?;
        dropped += 1;
    }
    if cascade {
        views::drop_over(tables, client, &views)?;
    }
    Ok(dropped)
}

/// Drops a table and its rows. For other statements both disappear together.
fn drop_one(tables: &Tables, mapping: &Arc<Mapping>) -> Result<(), SqlError> {
    let grid = tables.grid()?;
    let unlinked = tables.catalog().remove(mapping, || Ok(grid.unlink_map(&mapping.external_name)?))?;
    // Outside of the catalog's lock, because it takes time proportional to the number of rows.
    std::mem::drop(unlinked);
    Ok(())
}

/// The number of keys of a map that clients have locked, on all members.
fn locked_keys(map: &Map, view: &ReadView) -> Result<usize, SqlError> {
    if view.is_complete() {
        return Ok(map.statistics().locked_keys);
    }
    let nothing_here = ReadView::of_groups(&[false]);
    let reads = LeaderRead::beside(map, &nothing_here, &Arc::new(EntrySelection::CountLocked), &|_| true);
    let mut locked = 0;
    map.visit_at_leaders(reads, &|| Ok(()), &mut |page| {
        locked += page.count();
        Ok(true)
    })?;
    Ok(locked)
}

/// Removes all rows of tables; returns their number. In a cluster all rows are claimed first, so
/// that none remains because a statement of another member holds it.
pub(super) async fn truncate(
    engine: &Parts,
    view: &ReadView,
    names: &[String],
    restart: bool,
) -> Result<u64, SqlError> {
    let tables = &engine.tables;
    let mut mapped: Vec<Arc<Mapping>> = names.iter().map(|name| table(tables, name)).collect::<Result<_, _>>()?;
    // All statements claim in the same order, and each table once.
    mapped.sort_unstable_by(|one, other| one.external_name.cmp(&other.external_name));
    mapped.dedup_by(|one, other| one.external_name == other.external_name);
    let grid = tables.grid()?;
    let maps: Vec<Arc<Map>> =
        mapped.iter().map(|mapping| grid.map(&mapping.external_name)).collect::<Result<_, _>>()?;
    for (mapping, map) in mapped.iter().zip(&maps) {
        let locked = locked_keys(map, view)?;
        if locked > 0 {
            // Locked rows would remain.
            let text = format!("{locked} rows of {:?} are locked by clients, it cannot be emptied", mapping.name);
            return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("55P03"));
        }
    }
    // Sequences that cannot restart are reported before a row is removed.
    let facts = mapped.iter().filter_map(|mapping| mapping.table.as_ref()).filter(|_| restart);
    let identities = facts.flat_map(|facts| facts.columns.iter().filter_map(|column| column.identity.as_ref()));
    let identities: Vec<_> = identities.cloned().collect();
    identities.iter().try_for_each(|identity| identity.sequence.check_restart())?;
    let mut claims = Vec::new();
    if tables.is_in_cluster() {
        for map in &maps {
            claims.push(whole::claim(map, engine.sessions.lock_wait_ms()).await?);
        }
    }
    let mut rows = 0;
    for (at, map) in maps.iter().enumerate() {
        rows += map.clear(claims.get(at).map_or_else(Caller::default, WholeClaim::owner))?;
    }
    identities.iter().for_each(|identity| identity.restart());
    Ok(u64::try_from(rows).unwrap_or(u64::MAX))
}

/// The mapping of a table.
///
/// # Errors
/// The table does not exist, or the mapping is not a table.
pub(crate) fn table(tables: &Tables, name: &str) -> Result<Arc<Mapping>, SqlError> {
    match tables.catalog().mapping(name) {
        Some(mapping) if mapping.table.is_some() => Ok(mapping),
        Some(_) => Err(wrong_kind(name, "is a mapping of a map, not a table")),
        None if tables.catalog().view(name).is_some() => Err(wrong_kind(name, "is a view, not a table")),
        None => Err(tables.not_found(name)),
    }
}

fn wrong_kind(name: &str, what: &str) -> SqlError {
    SqlError::new(SqlErrorCode::ObjectNotFound, format!("{name:?} {what}")).with_sqlstate("42809")
}

/// Checks that tables, mappings or views exist.
pub(crate) fn check_all(tables: &Tables, names: &[String]) -> Result<(), SqlError> {
    names.iter().try_for_each(|name| match tables.catalog().view(name) {
        Some(_) => Ok(()),
        None => tables.find(name)?.map(|_| ()).ok_or_else(|| tables.not_found(name)),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use super::*;
    use crate::catalog::{Catalog, assert_same_mapping};
    use crate::config::QueryConfig;
    use crate::jobs::{Jobs, LogLimits, SlowStatements};
    use crate::memory::MemoryLimits;
    use crate::plan::session::Sessions;
    use crate::server::Server;
    use filbert_dialect::{DefaultPlace, Limits, Parsed, TableStatement, parse};
    use filbert_grid::query::Dialect;

    /// A cluster rejects declarations that it cannot store unchanged; it must store most of them.
    #[test]
    fn declared_tables_are_read_as_they_were_written() {
        let cases = [
            (
                Dialect::Postgres,
                "create table a (id int primary key, name varchar(10) not null, born timestamp(3) with time zone)",
            ),
            (
                Dialect::Postgres,
                "create table b (x bigint generated always as identity (start with 5 increment by -2 maxvalue 9 cycle), \
                 y numeric(10,2) default 1.5 + 2, z text default upper('a'), at timestamptz default now(), \
                 u uuid default gen_random_uuid(), check (y > 0 and z in ('A', 'b') or x between 1 and 2), \
                 constraint named check (y::int % 2 = 0 and z like 'a%'), primary key (x, z))",
            ),
            (
                Dialect::Postgres,
                "create table c (a int, b int generated always as (a * 2 + coalesce(a, 1)) stored, d int[], j jsonb default '{}'::jsonb, \
                 i interval default '1 day', c char(3) default 'x', day date default '2020-01-01', n float8 default -1e-3, \
                 t boolean default not true, e text default case when 1 = 1 then 'a' else 'b' end)",
            ),
            (
                Dialect::Crate,
                "create table d (id integer primary key, o object(strict) as (a integer, b array(text)), at timestamp default now(), \
                 ip ip, place geo_point, area geo_shape, up integer generated always as (id + 1), twice as id * 2, name generated always as 'x' || id) clustered by (id) into 4 shards with (number_of_replicas = 0)",
            ),
        ];
        let tables = Arc::new(Tables::new(Weak::new(), Arc::new(Catalog::new(10))));
        let config = QueryConfig::default();
        let limits = MemoryLimits::new(&config, None);
        let server = Arc::new(Server::new(
            Arc::clone(&tables),
            Jobs::new(LogLimits::default(), SlowStatements::default()),
            limits,
        ));
        let memory = Arc::new(filbert_grid::MemberMemory::new(None));
        let sessions = Sessions::new(&config, limits, &memory, &server).unwrap();
        for (dialect, text) in cases {
            let parsed = parse(text, dialect, &Limits::default(), &DefaultPlace).unwrap().parsed;
            let Parsed::Table(TableStatement::Create(table)) = parsed else { panic!("{text}") };
            assert_same_mapping(declared(&tables, sessions.planning(dialect), &table).unwrap());
        }
    }
}
