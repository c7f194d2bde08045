//! The description of a statement before it runs: its kind, its parameters and its columns.

use std::sync::Arc;

use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Expr, SelectItem};
use filbert_data::FieldType;
use filbert_dialect::{FileFormat, OnConflict, Parsed, ParsedStatement, Place, TableStatement, schema_of};
use filbert_grid::query::{ColumnMeta, Command, Description, Dialect, ParameterType, RowWriter, SqlError, WriteMode};

use crate::catalog::Mapping;
use crate::client_context::{ClientContext, ParameterTypes};
use crate::dml::expressions::RowScope;
use crate::dml::joined::JoinedColumn;
use crate::dml::literals::parameter;
use crate::dml::returning::Returning;
use crate::dml::targets::{column_index, target_columns};
use crate::parts::Parts;
use crate::plan::planner::{PlannedQuery, unaliased};
use crate::plans::Plan;
use crate::row_writer::copy_writer;
use crate::{explain, session};

/// The one column of statements that return lines of text.
fn lines(name: &str) -> Arc<[ColumnMeta]> {
    Arc::from([ColumnMeta {
        name: name.to_owned(),
        field_type: FieldType::Varchar,
        nullable: true,
        pg_type: None,
        length: None,
    }])
}

/// Describes a statement. `types` are the parameter types that the caller knows.
pub(crate) async fn describe(
    engine: &Parts,
    text: &str,
    client: &ClientContext,
    types: &ParameterTypes,
) -> Result<Arc<Description>, SqlError> {
    let plan = engine.plan(text, client).await?.plan;
    of_plan(engine, client, &plan, types)
}

/// Describes a plan.
pub(crate) fn of_plan(
    engine: &Parts,
    client: &ClientContext,
    plan: &Plan,
    types: &ParameterTypes,
) -> Result<Arc<Description>, SqlError> {
    let description = match plan {
        Plan::Query { planned, copy, .. } => Description {
            command: copy.clone().map_or(Command::Select, Command::CopyOut),
            columns: Some(columns_of_query(planned, types)),
            parameters: parameters(&planned.reported_parameters, types),
        },
        Plan::Change { statement, asked, joined, .. } => Description {
            command: match statement.parsed {
                Parsed::Update(_) => Command::Update,
                Parsed::Delete(_) => Command::Delete,
                _ => Command::Insert,
            },
            parameters: parameters(&wanted(engine, client, statement, joined, asked)?, types),
            columns: returned_columns(engine, client, statement, joined)?,
        },
        Plan::Other(ParsedStatement { parsed: Parsed::Copy(copy), parameters }) => {
            let none = self::parameters(&vec![None; *parameters], types);
            match (&copy.table, &copy.place, &copy.format) {
                (Some(table), Place::Client, FileFormat::Rows(format)) => {
                    let writer = copy_writer(engine, client, table, &copy.columns, WriteMode::Each, None)?;
                    let columns = Some(writer.columns().clone());
                    Description { command: Command::CopyIn(format.clone()), parameters: none, columns }
                }
                _ => Description { command: Command::Other("COPY"), parameters: none, columns: None },
            }
        }
        Plan::Other(statement) => {
            let (command, columns) = of_other(&statement.parsed, client.dialect());
            let parameters = parameters(&vec![None; statement.parameters], types);
            let command = match &statement.parsed {
                // PostgreSQL reports the number of rows that such a table was created with.
                Parsed::Table(TableStatement::Create(table)) if table.source.is_some() && !table.without_data => {
                    Command::Select
                }
                _ => Command::Other(command),
            };
            Description { command, parameters, columns }
        }
        Plan::Session { command, parameters: count } => Description {
            command: Command::Other(session::tag(command)),
            parameters: parameters(&vec![None; *count], types),
            columns: session::value_columns(command),
        },
    };
    Ok(Arc::new(description))
}

/// The types of parameters. A type that the caller knows comes first, then the type that the plan
/// infers, then text.
fn parameters(wanted: &ParameterTypes, known: &ParameterTypes) -> Arc<[ParameterType]> {
    let of = |(index, wanted): (usize, &Option<ParameterType>)| match known.get(index) {
        Some(Some(known)) => known.clone(),
        _ => wanted.clone().unwrap_or_else(|| FieldType::Varchar.into()),
    };
    wanted.iter().enumerate().map(of).collect()
}

/// The columns of a query. A column that is a bare parameter has the type of the parameter, which
/// only the caller may know.
fn columns_of_query(planned: &PlannedQuery, known: &ParameterTypes) -> Arc<[ColumnMeta]> {
    let LogicalPlan::Projection(projection) = &planned.plan else { return planned.columns.clone() };
    let parameters = parameters(&planned.reported_parameters, known);
    let of = |(column, expr): (&ColumnMeta, &PlannedExpr)| {
        let place = match unaliased(expr) {
            PlannedExpr::Placeholder(placeholder) => {
                let number = placeholder.id.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
                number.and_then(|number| number.checked_sub(1))
            }
            _ => None,
        };
        let Some(ParameterType { field_type, pg_type }) = place.and_then(|place| parameters.get(place)) else {
            return column.clone();
        };
        ColumnMeta { field_type: field_type.clone(), pg_type: pg_type.or(column.pg_type), ..column.clone() }
    };
    planned.columns.iter().zip(&projection.expr).map(of).collect()
}

/// The table that a statement changes, and the name of its relation.
fn changed_table(statement: &ParsedStatement) -> Option<(&str, &str)> {
    let (table, alias) = match &statement.parsed {
        Parsed::Insert(insert) => (&insert.table, &insert.alias),
        Parsed::Update(update) => (&update.table, &update.alias),
        Parsed::Delete(delete) => (&delete.table, &delete.alias),
        _ => return None,
    };
    Some((table, alias.as_deref().unwrap_or_else(|| schema_of(table).1)))
}

/// The columns of `RETURNING`.
fn returned_columns(
    engine: &Parts,
    client: &ClientContext,
    statement: &ParsedStatement,
    joined: &[JoinedColumn],
) -> Result<Option<Arc<[ColumnMeta]>>, SqlError> {
    let (Some((table, name)), Some(items)) = (changed_table(statement), statement.parsed.returning()) else {
        return Ok(None);
    };
    let Some(mapped) = engine.tables.find(table)? else { return Err(engine.tables.not_found(table)) };
    let state = engine.sessions.planning(client.dialect());
    let returning = Returning::of(state, &mapped.mapping, name, joined, items, client.types())?;
    Ok(Some(returning.columns().clone()))
}

/// The types of parameters: the inferred types for parameters within expressions, and the column
/// types for parameters that are column values.
fn wanted(
    engine: &Parts,
    client: &ClientContext,
    statement: &ParsedStatement,
    joined: &[JoinedColumn],
    asked: &ParameterTypes,
) -> Result<Vec<Option<ParameterType>>, SqlError> {
    let mut wanted = asked.to_vec();
    wanted.resize(statement.parameters, None);
    let items = statement.parsed.returning().unwrap_or_default();
    let is_concerned = !matches!(statement.parsed, Parsed::Delete(_)) || !items.is_empty();
    let Some((table, name)) = changed_table(statement).filter(|_| is_concerned) else { return Ok(wanted) };
    let Some(mapped) = engine.tables.find(table)? else { return Err(engine.tables.not_found(table)) };
    let mapping = &mapped.mapping;
    wanted_by_values(engine, client, statement, (mapping, name), &mut wanted)?;
    if !items.is_empty() && wanted.contains(&None) {
        let scope = RowScope::of(mapping, name, false, client.types())?.beside(joined)?;
        let state = engine.sessions.planning_for(client);
        for item in items {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
                && parameter(expr).is_none()
            {
                // An error is reported when the statement runs.
                drop(scope.parameters(&state, expr, &mut wanted));
            }
        }
    }
    Ok(wanted)
}

/// The types of parameters that are values of columns, or within values of `ON CONFLICT`.
fn wanted_by_values(
    engine: &Parts,
    client: &ClientContext,
    statement: &ParsedStatement,
    (mapping, name): (&Mapping, &str),
    wanted: &mut [Option<ParameterType>],
) -> Result<(), SqlError> {
    // Other uses of a parameter come first, as in PostgreSQL.
    let give = |wanted: &mut [Option<ParameterType>], expr: &Expr, column: usize| {
        if let Some(place @ None) = parameter(expr).and_then(|number| wanted.get_mut(number)) {
            *place = mapping.parameter_type(column);
        }
    };
    match &statement.parsed {
        Parsed::Insert(insert) => {
            let targets = target_columns(mapping, &insert.columns)?;
            for row in insert.values().unwrap_or_default() {
                for (expr, column) in row.iter().zip(&targets) {
                    if let Some(place) = parameter(expr).and_then(|number| wanted.get_mut(number)) {
                        *place = mapping.parameter_type(*column);
                    }
                }
            }
            let Some(OnConflict { update: Some(assignments), selection, .. }) = &insert.on_conflict else {
                return Ok(());
            };
            let scope = RowScope::of(mapping, name, true, client.types())?;
            let state = engine.sessions.planning_for(client);
            for (name, expr) in assignments {
                match parameter(expr) {
                    Some(_) => give(wanted, expr, column_index(mapping, name)?),
                    // An error is reported when the statement runs.
                    None => drop(scope.parameters(&state, expr, wanted)),
                }
            }
            if let Some(condition) = selection {
                drop(scope.parameters(&state, condition, wanted));
            }
        }
        Parsed::Update(update) => {
            for (name, expr) in &update.assignments {
                give(wanted, expr, column_index(mapping, name)?);
            }
        }
        _ => {}
    }
    Ok(())
}

/// The command tag that PostgreSQL reports, and the columns.
pub(crate) fn of_other(parsed: &Parsed, dialect: Dialect) -> (&'static str, Option<Arc<[ColumnMeta]>>) {
    match parsed {
        Parsed::Table(statement) => (statement.command(), None),
        Parsed::Explain { .. } => ("EXPLAIN", Some(lines(explain::column(dialect)))),
        Parsed::Show(_) => ("SHOW", Some(lines("name"))),
        Parsed::CreateMapping(_) => ("CREATE MAPPING", None),
        Parsed::DropMapping { .. } => ("DROP MAPPING", None),
        Parsed::CreateIndex(_) => ("CREATE INDEX", None),
        Parsed::DropIndex { .. } => ("DROP INDEX", None),
        Parsed::CreateView { .. } => ("CREATE VIEW", None),
        Parsed::DropView { .. } => ("DROP VIEW", None),
        Parsed::Session(_) | Parsed::Insert(_) | Parsed::Update(_) | Parsed::Delete(_) | Parsed::Query(_) => {
            ("SELECT", None)
        }
        Parsed::Copy(_) => ("COPY", None),
    }
}
