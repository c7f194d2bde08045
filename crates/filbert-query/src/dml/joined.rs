//! The columns of the tables that an UPDATE or a DELETE joins (`FROM`, `USING`), which `RETURNING`
//! may report.

use arrow_schema::Field;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, Ident, TableWithJoins, With};
use filbert_dialect::Parsed;
use filbert_functions::error::of_datafusion;
use filbert_functions::types::{field, field_type_of};
use filbert_grid::query::SqlError;

use crate::client_context::ClientContext;
use crate::dml::select;
use crate::plan::columns::{name_columns, result_name};
use crate::plan::context::analyzed;
use crate::plan::planner::plan_rewritten;
use crate::plan::scope;
use crate::tables::Tables;

/// A column of a joined table.
#[derive(Clone, Debug)]
pub(crate) struct JoinedColumn {
    /// The table's name within the statement; none for a column that a join merges.
    pub(crate) relation: Option<String>,
    pub(crate) field: Field,
}

impl JoinedColumn {
    /// The column as an expression of the statement.
    pub(crate) fn expr(&self) -> Expr {
        let quoted = |name: &str| Ident::with_quote('"', name);
        match &self.relation {
            Some(relation) => Expr::CompoundIdentifier(vec![quoted(relation), quoted(self.field.name())]),
            None => Expr::Identifier(quoted(self.field.name())),
        }
    }
}

/// The columns of the tables that a statement joins, if it has a `RETURNING`.
///
/// # Errors
/// The tables cannot be planned.
pub(crate) async fn of_statement(
    state: &SessionState,
    tables: &Tables,
    client: &ClientContext,
    parsed: &Parsed,
) -> Result<Vec<JoinedColumn>, SqlError> {
    match parsed {
        Parsed::Update(update) if update.returning.is_some() => {
            columns(state, tables, client, update.with.as_ref(), &update.from).await
        }
        Parsed::Delete(delete) if delete.returning.is_some() => {
            columns(state, tables, client, delete.with.as_ref(), &delete.using).await
        }
        _ => Ok(Vec::new()),
    }
}

/// The columns of joined tables, in order.
///
/// # Errors
/// The tables cannot be planned.
pub(crate) async fn columns(
    state: &SessionState,
    tables: &Tables,
    client: &ClientContext,
    with: Option<&With>,
    joined: &[TableWithJoins],
) -> Result<Vec<JoinedColumn>, SqlError> {
    if joined.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = select::joined(select::all()?, with, joined);
    scope::resolve(tables, client, &mut query)?;
    name_columns(&mut query, &|name| tables.visible_columns(name));
    let planned = plan_rewritten(state, tables, client, query).await?;
    let marked = planned.schema().clone();
    let analyzed = analyzed(state, planned).map_err(|error| of_datafusion(&error))?;
    // Analysis decides the final types, and may lose types that Arrow lacks.
    let columns = analyzed.schema().iter().zip(marked.fields()).map(|((relation, found), marked)| {
        let name = result_name(found.name());
        let known = found.as_ref().clone().with_metadata(marked.metadata().clone());
        let own = field(name, &field_type_of(&known), true);
        let metadata = own.metadata().clone().into_iter().chain(marked.metadata().clone()).collect();
        let own = own.with_metadata(metadata);
        JoinedColumn { relation: relation.map(|relation| relation.table().to_owned()), field: own }
    });
    Ok(columns.collect())
}
