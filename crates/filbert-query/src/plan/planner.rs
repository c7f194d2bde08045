//! Plans queries.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError, ParamValues, TableReference};
use datafusion::execution::session_state::SessionState;
use datafusion::functions::string::rtrim;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::logical_plan::Projection;
use datafusion::logical_expr::{Distinct, Expr as LogicalExpr, LogicalPlan, lit};
use datafusion::sql::sqlparser::ast::{Query, SetExpr};
use filbert_data::{FieldType, Value};
use filbert_dialect::narrow_values;
use filbert_functions::ending;
use filbert_functions::error::{data_error, of_datafusion, parsing_error};
use filbert_functions::reported_parameters;
use filbert_functions::types::{
    ARRAY_OF_NUMERIC, Length, Mark, NUMERIC, field_type_of, field_type_of_arrow, filled_length, json_metadata,
    object_kind, pg_type_of, scalar_of,
};
use filbert_grid::query::{ColumnMeta, Dialect, ParameterType, SqlError, arrow_type};

use crate::client_context::{ClientContext, ParameterTypes};
use crate::extent;
use crate::plan::columns::{name_columns, result_name};
use crate::plan::context::{Planned, plan_statement};
use crate::plan::{digits, first_uses, groups, listed, order, references, scope, unnested, values, windows};
use crate::subqueries;
use crate::table_catalog::check;
use crate::tables::Tables;

/// A planned query that is not optimized yet.
pub(crate) struct PlannedQuery {
    pub(crate) plan: LogicalPlan,
    pub(crate) columns: Arc<[ColumnMeta]>,
    /// For each column of fixed-length text, the length, if all its values have the same length.
    pub(crate) lengths: Vec<Option<u32>>,
    /// The type of each parameter, where the query determines it.
    pub(crate) parameters: Vec<Option<DataType>>,
    /// The same types, as reported to clients.
    pub(crate) reported_parameters: Vec<Option<ParameterType>>,
}

impl PlannedQuery {
    /// Whether these literals, as written, are valid values of its parameters. A UUID or a document
    /// must be normalized first.
    pub(crate) fn takes_as_they_are(&self, literals: &[Value<'_>]) -> bool {
        let has_a_form = |reported: &Option<ParameterType>| {
            let field_type = reported.as_ref().map(|reported| &reported.field_type);
            matches!(field_type, Some(FieldType::Uuid | FieldType::Json))
        };
        self.reported_parameters.len() == literals.len() && !self.reported_parameters.iter().any(has_a_form)
    }
}

/// Plans a query.
pub(crate) async fn plan_query(
    state: &SessionState,
    tables: &Tables,
    client: &ClientContext,
    mut query: Query,
) -> Result<PlannedQuery, SqlError> {
    let dialect = client.dialect();
    if let SetExpr::Values(values) = query.body.as_mut() {
        narrow_values(values, dialect);
    }
    if dialect == Dialect::Postgres {
        listed::type_quoted(&mut query);
        groups::tell_aliases_apart(&mut query);
    }
    scope::resolve(tables, client, &mut query)?;
    ending::check().map_err(|error| of_datafusion(&error))?;
    name_columns(&mut query, &|name| tables.visible_columns(name));
    let plan = plan_rewritten(state, tables, client, query).await?;
    let lengths = plan.schema().fields().iter().map(|field| match Mark::of(field).length {
        Length::Of(length) => Some(length),
        _ => None,
    });
    let lengths = lengths.collect();
    let (plan, columns) = reported(state, plan, dialect)?;
    let parameters = parameter_types(&plan)?;
    let reported_parameters = reported_parameter_types(&plan, &parameters)?;
    Ok(PlannedQuery { plan, columns, lengths, parameters, reported_parameters })
}

/// The plan of a final result, and its columns as reported to clients. Used for queries, and for
/// the rows that changes return.
///
/// # Errors
/// In PostgreSQL's dialect: a column has rows as values.
pub(crate) fn reported(
    state: &SessionState,
    plan: LogicalPlan,
    dialect: Dialect,
) -> Result<(LogicalPlan, Arc<[ColumnMeta]>), SqlError> {
    if dialect == Dialect::Postgres && plan.schema().fields().iter().any(|field| has_rows(field.data_type())) {
        let text = "a row is not served as a value of the result; name its columns, or use row_to_json";
        return Err(parsing_error(text).with_sqlstate("0A000"));
    }
    let casts = are_casts(&plan);
    let pg_types = pg_types_of(&plan, &casts);
    let lengths: Vec<Option<u32>> = match dialect {
        Dialect::Postgres => (0..casts.len()).map(|at| digits::length(&plan, at)).collect(),
        Dialect::Hazelcast | Dialect::Crate => Vec::new(),
    };
    let plan = names_of_objects(state, plan, &pg_types).map_err(|error| of_datafusion(&error))?;
    let plan = match dialect {
        Dialect::Hazelcast => plan,
        _ => filled_up(state, plan, &casts).map_err(|error| of_datafusion(&error))?,
    };
    let mut columns = columns_of(&plan);
    let fields = plan.schema().fields().iter().zip(pg_types).zip(casts);
    for (at, (column, ((field, pg_type), is_cast))) in Arc::make_mut(&mut columns).iter_mut().zip(fields).enumerate() {
        if is_cast && dialect != Dialect::Hazelcast && matches!(column.field_type, FieldType::Uuid | FieldType::Json) {
            column.field_type = field_type_of_arrow(field.data_type());
        }
        column.pg_type = pg_type.filter(|pg_type| object_kind(*pg_type).is_none());
        column.length = lengths.get(at).copied().flatten();
        column.pg_type = column.pg_type.or_else(|| match column.field_type {
            _ if dialect != Dialect::Postgres || digits::are_declared(&plan, at) => None,
            FieldType::Decimal(Some(_)) => Some(NUMERIC),
            FieldType::Array(ref item) if matches!(**item, FieldType::Decimal(Some(_))) => Some(ARRAY_OF_NUMERIC),
            _ => None,
        });
        // As in PostgreSQL, a NULL without a type is text.
        if dialect != Dialect::Hazelcast && field.data_type().is_null() {
            column.field_type = FieldType::Varchar;
        }
    }
    Ok((plan, columns))
}

/// Whether values of a type are rows, or arrays of rows.
fn has_rows(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(_) => true,
        DataType::List(item) => has_rows(item.data_type()),
        _ => false,
    }
}

/// Plans a query that already has column names.
pub(crate) async fn plan_rewritten(
    state: &SessionState,
    tables: &Tables,
    client: &ClientContext,
    mut query: Query,
) -> Result<LogicalPlan, SqlError> {
    groups::tell_casts_apart(&mut query);
    let (has_values, mut has_computed) = values::found_in(&query);
    has_computed |= has_values && values::mix_types(&query, client.types());
    if has_computed {
        values::as_union(&mut query);
    }
    let has_items = has_values && !has_computed;
    let (references, parameters) = references::of(&query).map_err(|error| of_datafusion(&error))?;
    let is_open = client.dialect() == Dialect::Postgres && !first_uses::are_declared(&parameters, client.types());
    let open = is_open.then(|| query.clone());
    for reference in &references {
        check(tables, reference.schema(), reference.table(), client.dialect())?;
    }
    let plan = plan_items(state, query, &references, client.types(), has_items).await;
    let plan = match (plan, open) {
        (Ok(planned), Some(query)) => match first_uses::determined(&planned, client.types()) {
            Ok(Some(types)) => plan_items(state, query, &references, &types, has_items).await,
            Ok(None) => Ok(planned),
            Err(error) => Err(error),
        },
        (plan, _) => plan,
    };
    let plan = plan.map_err(|error| of_datafusion(&error))?.plan;
    windows::check(&plan)?;
    if client.dialect() == Dialect::Postgres {
        unnested::check(&plan).map_err(|error| of_datafusion(&error))?;
    }
    let plan = groups::each_once(plan).and_then(order::keep).and_then(subqueries::unnest);
    let plan = plan.and_then(|plan| {
        extent::check(&plan)?;
        Ok(plan)
    });
    plan.map_err(|error| of_datafusion(&error))
}

/// Plans a statement. If `has_items`, it has `VALUES`, which DataFusion may not make one relation
/// of.
async fn plan_items(
    state: &SessionState,
    query: Query,
    references: &BTreeSet<TableReference>,
    types: &ParameterTypes,
    has_items: bool,
) -> Result<Planned, DataFusionError> {
    let again = has_items.then(|| query.clone());
    match (plan_statement(state, query, references, types).await, again) {
        (Err(error), Some(mut query)) if values::is_of_items(&error) => {
            values::as_union(&mut query);
            plan_statement(state, query, references, types).await
        }
        (plan, _) => plan,
    }
}

/// The columns of a plan's result.
fn columns_of(plan: &LogicalPlan) -> Arc<[ColumnMeta]> {
    let of_field = |field: &Arc<Field>| ColumnMeta {
        name: result_name(field.name()).to_owned(),
        field_type: field_type_of(field),
        nullable: field.is_nullable(),
        pg_type: None,
        length: None,
    };
    plan.schema().fields().iter().map(of_field).collect()
}

/// The columns of the same plan after optimization. The reported PostgreSQL types are known only
/// before it.
pub(crate) fn columns_after(plan: &LogicalPlan, before: &[ColumnMeta]) -> Arc<[ColumnMeta]> {
    let mut columns = columns_of(plan);
    let fields = plan.schema().fields().iter().zip(before);
    for (column, (field, before)) in Arc::make_mut(&mut columns).iter_mut().zip(fields) {
        column.pg_type = before.pg_type;
        column.length = before.length;
        if field.data_type().is_null() {
            column.field_type = before.field_type.clone();
        }
        // A subquery without rows is a null without metadata.
        if column.field_type == FieldType::Varchar && matches!(before.field_type, FieldType::Uuid | FieldType::Json) {
            column.field_type = before.field_type.clone();
        }
        // A cast to text keeps the metadata of its operand.
        if before.field_type == FieldType::Varchar && matches!(column.field_type, FieldType::Uuid | FieldType::Json) {
            column.field_type = FieldType::Varchar;
        }
    }
    columns
}

/// The columns of a result that are casts. A cast keeps the metadata of its operand, but has the
/// type that it casts to.
fn are_casts(plan: &LogicalPlan) -> Vec<bool> {
    let items = items_of(plan);
    let is_cast =
        |at: usize| matches!(items.get(at).map(unaliased), Some(LogicalExpr::Cast(_) | LogicalExpr::TryCast(_)));
    (0..plan.schema().fields().len()).map(is_cast).collect()
}

/// The expressions of a result's columns; none if the result is no projection.
pub(crate) fn items_of(plan: &LogicalPlan) -> &[LogicalExpr] {
    let mut inner = plan;
    loop {
        inner = match inner {
            LogicalPlan::Projection(projection) => return &projection.expr,
            LogicalPlan::Sort(sort) => &sort.input,
            LogicalPlan::Limit(limit) => &limit.input,
            LogicalPlan::Distinct(Distinct::All(input)) => input,
            _ => return &[],
        };
    }
}

/// The reported PostgreSQL types of a result's columns.
fn pg_types_of(plan: &LogicalPlan, casts: &[bool]) -> Vec<Option<u32>> {
    let fields = plan.schema().fields().iter().zip(casts);
    fields.map(|(field, is_cast)| if *is_cast { None } else { pg_type_of(field) }).collect()
}

/// An expression without its aliases.
pub(crate) fn unaliased(expr: &LogicalExpr) -> &LogicalExpr {
    let mut expr = expr;
    while let LogicalExpr::Alias(alias) = expr {
        expr = &alias.expr;
    }
    expr
}

/// Shows functions, relations and other objects in a result by name, as PostgreSQL does; within a
/// query they are OIDs.
fn names_of_objects(
    state: &SessionState,
    plan: LogicalPlan,
    pg_types: &[Option<u32>],
) -> Result<LogicalPlan, DataFusionError> {
    let kind = |at: usize| pg_types.get(at).copied().flatten().and_then(object_kind);
    if (0..pg_types.len()).all(|at| kind(at).is_none()) {
        return Ok(plan);
    }
    let Some(reg_name) = state.scalar_functions().get("reg_name") else { return Ok(plan) };
    made_of_columns(plan, |at, column| Some(reg_name.call(vec![lit(kind(at)?), column])))
}

/// Computes the columns of a plan from the columns of another: within its projection, if the top
/// node is one.
fn made_of_columns(
    plan: LogicalPlan,
    make: impl Fn(usize, LogicalExpr) -> Option<LogicalExpr>,
) -> Result<LogicalPlan, DataFusionError> {
    let columns = plan.schema().columns();
    let named = |at: usize, item: &LogicalExpr, column: Column| match make(at, unaliased(item).clone()) {
        Some(made) => made.alias_qualified(column.relation, column.name),
        None => item.clone(),
    };
    if let LogicalPlan::Projection(projection) = plan {
        let items = projection.expr.iter().zip(columns).enumerate();
        let items: Vec<LogicalExpr> = items.map(|(at, (item, column))| named(at, item, column)).collect();
        return Ok(LogicalPlan::Projection(Projection::try_new(items, projection.input)?));
    }
    let items = columns.into_iter().enumerate();
    let items = items.map(|(at, column)| named(at, &LogicalExpr::Column(column.clone()), column));
    let items: Vec<LogicalExpr> = items.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(items, Arc::new(plan))?))
}

/// Removes insignificant trailing blanks from texts that are written.
pub(crate) fn without_blanks(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let has_blanks: Vec<bool> =
        plan.schema().fields().iter().map(|field| Mark::of(field).length == Length::Own).collect();
    if !has_blanks.contains(&true) {
        return Ok(plan);
    }
    made_of_columns(plan, |at, column| has_blanks.get(at)?.then(|| rtrim().call(vec![column])))
}

/// Pads `char(n)` texts of a result. They are stored without padding.
fn filled_up(state: &SessionState, plan: LogicalPlan, casts: &[bool]) -> Result<LogicalPlan, DataFusionError> {
    let fields = plan.schema().fields().iter().zip(casts);
    let lengths = fields.map(|(field, is_cast)| filled_length(field).filter(|_| !is_cast));
    let lengths: Vec<Option<i64>> = lengths.collect();
    let Some(rpad) = state.scalar_functions().get("rpad").filter(|_| lengths.iter().any(Option::is_some)) else {
        return Ok(plan);
    };
    made_of_columns(plan, |at, column| Some(rpad.call(vec![column, lit((*lengths.get(at)?)?)])))
}

/// The types of `$1`, `$2`, .. in order.
pub(crate) fn parameter_types(plan: &LogicalPlan) -> Result<Vec<Option<DataType>>, SqlError> {
    let mut by_name = plan.get_parameter_types().map_err(|error| of_datafusion(&error))?;
    // A parameter has a type as soon as one of its uses has one.
    let typed = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|inner| {
                if let LogicalExpr::Placeholder(Placeholder { id, field: Some(field) }) = inner
                    && let Some(place @ None) = by_name.get_mut(id)
                {
                    *place = Some(field.data_type().clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    typed.map_err(|error| of_datafusion(&error))?;
    let reported = reported_parameters(plan, |name, found| {
        if let Some(place @ None) = by_name.get_mut(name) {
            *place = Some(arrow_type(&found.field_type));
        }
    });
    reported.map_err(|error| of_datafusion(&error))?;
    let mut types = Vec::new();
    for (name, data_type) in by_name {
        let number: usize = name.strip_prefix('$').and_then(|number| number.parse().ok()).unwrap_or(0);
        let Some(index) = number.checked_sub(1) else {
            return Err(parsing_error(format!("parameter {name:?}, expected ?")));
        };
        if types.len() <= index {
            types.resize(index + 1, None);
        }
        if let Some(place) = types.get_mut(index) {
            *place = data_type;
        }
    }
    Ok(types)
}

/// The parameter types as reported to clients. UUIDs and documents are texts in computations, but
/// are reported with their own types.
pub(crate) fn reported_parameter_types(
    plan: &LogicalPlan,
    types: &[Option<DataType>],
) -> Result<Vec<Option<ParameterType>>, SqlError> {
    let of_arrow = |found: &DataType| ParameterType::from(field_type_of_arrow(found));
    let mut reported: Vec<Option<ParameterType>> = types.iter().map(|found| found.as_ref().map(of_arrow)).collect();
    let found = reported_parameters(plan, |name, found| {
        let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        if let Some(place) = number.and_then(|number| reported.get_mut(number.checked_sub(1)?)) {
            *place = Some(found);
        }
    });
    found.map_err(|error| of_datafusion(&error))?;
    Ok(reported)
}

/// Checks the number of values, and converts each value to the type of its parameter.
pub(crate) fn bind(parameters: &[Option<DataType>], values: &[Value<'_>]) -> Result<Vec<ScalarAndMetadata>, SqlError> {
    check_count(parameters.len(), values.len())?;
    let bound = parameters.iter().zip(values).enumerate().map(|(index, (wanted, value))| {
        let converted = bind_one(index, wanted.as_ref(), value)?;
        let scalar = scalar_of(&converted)?;
        let scalar = match wanted {
            Some(wanted) if scalar.data_type() != *wanted => {
                scalar.cast_to(wanted).map_err(|error| of_datafusion(&error))?
            }
            _ => scalar,
        };
        // A document is text in Arrow.
        let document = matches!(value, Value::Json(_)).then(|| json_metadata().into());
        Ok(ScalarAndMetadata::new(scalar, document))
    });
    bound.collect()
}

/// Converts a parameter's value to the type that the statement needs.
pub(crate) fn bind_one<'v>(index: usize, wanted: Option<&DataType>, value: &Value<'v>) -> Result<Value<'v>, SqlError> {
    let Some(wanted) = wanted else { return Ok(value.clone()) };
    if value.is_null() || matches!(value, Value::Object(_)) {
        return Ok(value.clone());
    }
    value
        .clone()
        .convert(&field_type_of_arrow(wanted))
        .map_err(|error| data_error(format!("parameter at position {index}: {error}")))
}

/// Fails unless there is a value for each parameter.
pub(crate) fn check_count(expected: usize, found: usize) -> Result<(), SqlError> {
    if expected == found {
        return Ok(());
    }
    let text = format!("unexpected parameter count: expected {expected}, got {found}");
    Err(data_error(text).with_sqlstate("07001"))
}

/// Replaces the parameters of the plan by their values.
pub(crate) fn with_parameters(plan: LogicalPlan, values: Vec<ScalarAndMetadata>) -> Result<LogicalPlan, SqlError> {
    if values.is_empty() {
        return Ok(plan);
    }
    plan.with_param_values(ParamValues::List(values)).map_err(|error| of_datafusion(&error))
}
