//! Expressions over one row: defaults, generated columns, checks, `SET` and `RETURNING`. An
//! expression is planned once, and runs over the values of a row without a plan.
//!
//! It has the same meaning as in a query: it is planned as the only column of a query over a
//! relation with the row's columns, by the same planner and the same rules.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, ExprSchema, ScalarValue, TableReference};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, EmptyRelation, Expr as Logical, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Volatility,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::sql::sqlparser::ast::Expr;
use filbert_data::{FieldType, Value};
use filbert_dialect::calls::ARRAY_LIKE;
use filbert_dialect::walk;
use filbert_functions::builder::{ColumnBuilder, batch};
use filbert_functions::error::{data_error, of_datafusion, parsing_error};
use filbert_functions::types::{JSONB, Mark, field, field_type_of, is_untyped, untyped_field, value_of, with_members};
use filbert_functions::{guards, push_json};
use filbert_grid::query::{ColumnMeta, ParameterType, SqlError};

use crate::catalog::Mapping;
use crate::client_context::ParameterTypes;
use crate::dml::joined::JoinedColumn;
use crate::dml::literals::{constant, parameter};
use crate::execution::Execution;
use crate::plan::context::{analyzed, plan_expression, with_marked_types};
use crate::plan::planner::{
    columns_after, parameter_types, reported, reported_parameter_types, unaliased, without_blanks,
};
use crate::plan::session::dialect_of;

/// The relation name of the row that could not be inserted.
pub(super) const EXCLUDED: &str = "excluded";
/// The relation name of the columns that stand for parameters.
const PARAMETERS: &str = "$parameters";

/// The inputs of an expression.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inputs<'r> {
    /// The values of a row, one for each of the mapping's columns.
    pub(crate) row: &'r [Value<'r>],
    /// The values of the row that could not be inserted.
    pub(crate) excluded: &'r [Value<'r>],
    /// The statement's parameters.
    pub(crate) parameters: &'r [Value<'r>],
    /// The statement context.
    pub(crate) execution: Option<&'r Execution>,
}

/// The position of a value among the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Row(usize),
    Excluded(usize),
    Parameter(usize),
}

impl<'r> Inputs<'r> {
    /// Inputs with a row alone.
    pub(crate) fn row(row: &'r [Value<'r>], execution: &'r Execution) -> Self {
        Inputs { row, execution: Some(execution), ..Inputs::default() }
    }

    fn get(&self, place: Place) -> Result<&'r Value<'r>, SqlError> {
        match place {
            Place::Row(index) => Ok(self.row.get(index).unwrap_or(&Value::Null)),
            Place::Excluded(index) => Ok(self.excluded.get(index).unwrap_or(&Value::Null)),
            Place::Parameter(index) => self
                .parameters
                .get(index)
                .ok_or_else(|| data_error(format!("parameter {} has no value", index.saturating_add(1)))),
        }
    }
}

/// A value of a new row. An input that needs no computation is taken as it is.
pub(crate) enum RowValue {
    Constant(Value<'static>),
    /// One of the inputs.
    Taken(Place),
    Computed(RowExpression),
}

impl RowValue {
    /// Evaluates the value for some inputs.
    ///
    /// # Errors
    /// The value cannot be computed.
    pub(crate) fn evaluate<'r>(&'r self, inputs: &Inputs<'r>) -> Result<Value<'r>, SqlError> {
        match self {
            RowValue::Constant(value) => Ok(value.clone()),
            RowValue::Taken(place) => inputs.get(*place).cloned(),
            RowValue::Computed(expression) => expression.evaluate(inputs),
        }
    }

    /// The inputs that the value reads.
    pub(crate) fn reads(&self) -> Vec<Place> {
        match self {
            RowValue::Constant(_) => Vec::new(),
            RowValue::Taken(place) => vec![*place],
            RowValue::Computed(expression) => expression.read.iter().map(|(place, _)| *place).collect(),
        }
    }

    /// Whether the type is known only from the values themselves.
    pub(crate) fn is_untyped(&self) -> bool {
        matches!(self, RowValue::Computed(expression) if expression.is_untyped())
    }

    /// Whether a whole number as a parameter has the same effect as a literal. A parameter has the
    /// type of the operands that it is computed with.
    pub(crate) fn takes_numbers_as_they_are(&self) -> bool {
        let RowValue::Computed(expression) = self else { return true };
        let is_number = |field_type: &FieldType| {
            use FieldType::{BigInt, Decimal, Double, Integer, SmallInt, TinyInt};
            matches!(field_type, TinyInt | SmallInt | Integer | BigInt | Double | Decimal(_))
        };
        let mut parameters = expression.read.iter().filter(|(place, _)| matches!(place, Place::Parameter(_)));
        parameters.all(|(_, field_type)| is_number(field_type))
    }
}

/// An expression over the inputs.
pub(crate) struct RowExpression {
    physical: Arc<dyn PhysicalExpr>,
    /// The inputs that the expression reads.
    read: Vec<(Place, FieldType)>,
    schema: SchemaRef,
    /// The field of its result.
    field: FieldRef,
    output: FieldType,
    /// Whether it depends on the session or the time.
    depends: bool,
}

/// The names that an expression may use.
pub(crate) struct RowScope {
    schema: DFSchema,
    /// The number of columns of the row, with those of joined tables. The columns of the excluded
    /// row follow them.
    width: usize,
    /// The parameter types that the client declared.
    types: Vec<Option<ParameterType>>,
}

impl RowScope {
    /// A scope with the columns of a mapping under `name`, and, with `excluded`, a second time
    /// under `excluded`. It also has parameters, with these types as far as they are known.
    pub(crate) fn of(
        mapping: &Mapping,
        name: &str,
        excluded: bool,
        types: &ParameterTypes,
    ) -> Result<RowScope, SqlError> {
        let names = std::iter::once(name).chain(excluded.then_some(EXCLUDED));
        let fields = names.flat_map(|name| {
            let of = |(index, column): (usize, &crate::catalog::MappingColumn)| {
                let field = field(&column.name, &column.field_type, true);
                let field = match mapping.pg_type(index) {
                    Some(pg_type) => pg_type.mark(field),
                    None => field,
                };
                Arc::new(match mapping.members(index) {
                    Some(members) => with_members(&field, members),
                    None => field,
                })
            };
            mapping.columns.iter().enumerate().map(move |column| (Some(TableReference::bare(name)), of(column)))
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), Default::default());
        Ok(RowScope { schema: schema.map_err(failed)?, width: mapping.columns.len(), types: types.to_vec() })
    }

    /// The same scope with the columns of joined tables behind those of the row.
    ///
    /// # Errors
    /// A table has two columns of one name.
    pub(crate) fn beside(self, joined: &[JoinedColumn]) -> Result<RowScope, SqlError> {
        let own = self.schema.iter().map(|(relation, field)| (relation.cloned(), Arc::clone(field)));
        let others = joined.iter().map(|column| {
            let relation = column.relation.as_deref().map(TableReference::bare);
            (relation, Arc::new(column.field.clone()))
        });
        let schema = DFSchema::new_with_metadata(own.chain(others).collect(), Default::default());
        Ok(RowScope { schema: schema.map_err(failed)?, width: self.width.saturating_add(joined.len()), ..self })
    }

    /// Plans a value.
    ///
    /// # Errors
    /// The expression uses an unknown name, or cannot be planned.
    pub(crate) fn value(&self, state: &SessionState, expr: &Expr) -> Result<RowValue, SqlError> {
        if let Some(number) = parameter(expr) {
            return Ok(RowValue::Taken(Place::Parameter(number)));
        }
        if let Some(value) = constant(expr, dialect_of(state)) {
            return Ok(RowValue::Constant(value));
        }
        let logical = self.logical(state, expr)?;
        let logical = self.written(state, logical)?;
        if let Logical::Column(column) = &logical {
            return self.place(column).map(RowValue::Taken);
        }
        self.physical(state, logical).map(RowValue::Computed)
    }

    /// The field of a value, as far as it is known before evaluation; `None` for a constant and for
    /// a parameter.
    pub(crate) fn field<'s>(&'s self, value: &'s RowValue) -> Option<&'s Field> {
        let of_row = |index: usize| self.schema.fields().get(index).map(AsRef::as_ref);
        match value {
            RowValue::Constant(_) | RowValue::Taken(Place::Parameter(_)) => None,
            RowValue::Taken(Place::Row(index)) => of_row(*index),
            RowValue::Taken(Place::Excluded(index)) => of_row(self.width.saturating_add(*index)),
            RowValue::Computed(expression) => Some(&expression.field),
        }
    }

    /// Plans any expression.
    ///
    /// # Errors
    /// Like [`RowScope::value`].
    pub(crate) fn expression(&self, state: &SessionState, expr: &Expr) -> Result<RowExpression, SqlError> {
        let logical = self.logical(state, expr)?;
        let logical = self.written(state, logical)?;
        self.physical(state, logical)
    }

    /// The types of the parameters of an expression, where no type is known yet.
    ///
    /// # Errors
    /// Like [`RowScope::value`].
    pub(crate) fn parameters(
        &self,
        state: &SessionState,
        expr: &Expr,
        known: &mut [Option<ParameterType>],
    ) -> Result<(), SqlError> {
        let query = self.query(self.logical(state, expr)?).map_err(failed)?;
        let found = reported_parameter_types(&query, &parameter_types(&query)?)?;
        for (place, found) in known.iter_mut().zip(found) {
            if place.is_none() {
                *place = found;
            }
        }
        Ok(())
    }

    /// Plans a value of `RETURNING`, and its column without the name.
    ///
    /// # Errors
    /// Like [`RowScope::value`].
    pub(crate) fn returned(&self, state: &SessionState, expr: &Expr) -> Result<(RowValue, ColumnMeta), SqlError> {
        if let Some(number) = parameter(expr) {
            let declared = self.types.get(number).cloned().flatten();
            let ParameterType { field_type, pg_type } = declared.unwrap_or_else(|| FieldType::Varchar.into());
            // A document that a client sends may have any form.
            if pg_type != Some(JSONB) {
                let column = ColumnMeta { name: String::new(), field_type, nullable: true, pg_type, length: None };
                return Ok((RowValue::Taken(Place::Parameter(number)), column));
            }
        }
        let logical = self.logical(state, expr)?;
        let query = self.query(logical).and_then(|query| with_marked_types(state, query)).map_err(failed)?;
        let (query, columns) = reported(state, query, dialect_of(state))?;
        let query = analyzed(state, query).map_err(failed)?;
        let Some(column) = columns_after(&query, &columns).first().cloned() else {
            return Err(failed(DataFusionError::Internal("a column is missing".to_owned())));
        };
        let column = ColumnMeta { nullable: true, ..column };
        let value = match self.simplified(state, query).map_err(failed)? {
            Logical::Column(of_row) => RowValue::Taken(self.place(&of_row)?),
            logical => RowValue::Computed(self.physical(state, logical)?),
        };
        Ok((value, column))
    }

    /// An expression for a value that is written.
    fn written(&self, state: &SessionState, logical: Logical) -> Result<Logical, SqlError> {
        let query = self.query(logical).and_then(|query| with_marked_types(state, query)).and_then(without_blanks);
        let query = query.and_then(|query| analyzed(state, query));
        self.simplified(state, query.map_err(failed)?).map_err(failed)
    }

    fn logical(&self, state: &SessionState, expr: &Expr) -> Result<Logical, SqlError> {
        // If the row and the excluded row have the same columns, an unqualified name refers to the
        // row.
        let expr = match self.schema.fields().len() > self.width {
            false => expr.clone(),
            true => {
                let own = self.schema.iter().take(self.width).map(|(name, field)| (name.cloned(), Arc::clone(field)));
                let own = DFSchema::new_with_metadata(own.collect(), Default::default()).map_err(failed)?;
                qualify(expr, &own)
            }
        };
        let logical = plan_expression(state, expr, &self.schema, &self.types).map_err(failed)?;
        check_of_row(&logical)?;
        Ok(logical.transform(|expr| as_field(expr, &self.schema)).map_err(failed)?.data)
    }

    /// The query with the expression as its only column.
    fn query(&self, logical: Logical) -> Result<LogicalPlan, DataFusionError> {
        let schema = Arc::new(self.schema.clone());
        let relation = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema });
        LogicalPlanBuilder::from(relation).project([logical])?.build()
    }

    /// The simplified form of the only column of a query.
    fn simplified(&self, state: &SessionState, query: LogicalPlan) -> Result<Logical, DataFusionError> {
        let LogicalPlan::Projection(projection) = &query else {
            return Err(DataFusionError::NotImplemented("a query as the value of a column of a row".to_owned()));
        };
        let Some(logical) = projection.expr.first() else {
            return Err(DataFusionError::Internal("an expression is missing".to_owned()));
        };
        let schema = Arc::new(self.schema.clone());
        let logical = unaliased(logical).clone();
        let context = SimplifyContext::builder()
            .with_schema(schema)
            .with_config_options(Arc::clone(state.config_options()))
            .build();
        if !logical.exists(|expr| Ok(depends(expr)))? {
            return ExprSimplifier::new(context).simplify(logical);
        }
        // A function that depends on the session stays a call. Some other functions have an
        // equivalent expression, which the optimizer would put in their place.
        let simplified = |expr| match expr {
            Logical::ScalarFunction(mut call) if call.func.signature().volatility == Volatility::Immutable => {
                Ok(match call.func.simplify(std::mem::take(&mut call.args), &context)? {
                    ExprSimplifyResult::Simplified(other) => Transformed::yes(other),
                    ExprSimplifyResult::Original(args) => {
                        call.args = args;
                        Transformed::no(Logical::ScalarFunction(call))
                    }
                })
            }
            other => Ok(Transformed::no(other)),
        };
        Ok(logical.transform_up(simplified)?.data)
    }

    fn place(&self, column: &Column) -> Result<Place, SqlError> {
        let index = self.schema.index_of_column(column).map_err(failed)?;
        Ok(match index.checked_sub(self.width) {
            None => Place::Row(index),
            Some(index) => Place::Excluded(index),
        })
    }

    fn physical(&self, state: &SessionState, logical: Logical) -> Result<RowExpression, SqlError> {
        let mut parameters: Vec<(usize, FieldRef)> = Vec::new();
        let logical = logical.transform(|expr| as_column(expr, &mut parameters)).map_err(failed)?.data;
        // Only the inputs that the expression reads become arrays.
        let mut read = Vec::new();
        let mut fields = Vec::new();
        for column in logical.column_refs() {
            if let Some((number, field)) = parameter_of(column, &parameters) {
                read.push((Place::Parameter(number), field_type_of(field)));
                fields.push((column.relation.clone(), Arc::clone(field)));
            } else {
                let field = self.schema.field_from_column(column).map_err(failed)?;
                let index = self.schema.index_of_column(column).map_err(failed)?;
                read.push((self.place(column)?, field_type_of(field)));
                let (qualifier, field) = self.schema.qualified_field(index);
                fields.push((qualifier.cloned(), Arc::clone(field)));
            }
        }
        let depends = logical.exists(|expr| Ok(depends(expr))).unwrap_or(true);
        let schema = DFSchema::new_with_metadata(fields, Default::default()).map_err(failed)?;
        let guarded = guards::value(logical, &schema).map_err(failed)?;
        let physical = state.create_physical_expr(guarded, &schema).map_err(failed)?;
        let arrow: SchemaRef = schema.inner().clone();
        let field = physical.return_field(&arrow).map_err(failed)?;
        let output = field_type_of(&field);
        Ok(RowExpression { physical, read, schema: arrow, field, output, depends })
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
fn failed(error: DataFusionError) -> SqlError {
    let is_unknown = matches!(error.find_root(), DataFusionError::SchemaError(..));
    let error = of_datafusion(&error);
    if is_unknown { error.with_sqlstate("42703") } else { error }
}

/// Qualifies unqualified names with the row's relation.
fn qualify(expr: &Expr, own: &DFSchema) -> Expr {
    use datafusion::sql::sqlparser::ast::{Ident, VisitorMut};
    use std::ops::ControlFlow;
    struct Qualify<'s>(&'s DFSchema);
    impl VisitorMut for Qualify<'_> {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Identifier(name) = expr
                && let Ok((Some(TableReference::Bare { table }), _)) =
                    self.0.qualified_field_with_unqualified_name(&name.value)
            {
                *expr = Expr::CompoundIdentifier(vec![Ident::with_quote('"', table.as_ref()), name.clone()]);
            }
            ControlFlow::Continue(())
        }
    }
    let mut expr = expr.clone();
    let _ = walk::change(&mut expr, &mut Qualify(own));
    expr
}

/// Field functions accept parameters without a type, because the type is known only from the value.
/// A parameter beside a string literal has the Arrow type of literals; its values are arrays of the
/// type of columns.
/// A parameter before which `ANY` or `ALL` stands is an array of the compared type.
fn as_field(expr: Logical, schema: &DFSchema) -> Result<Transformed<Logical>, DataFusionError> {
    let mut call = match expr {
        Logical::ScalarFunction(call) => call,
        Logical::Placeholder(Placeholder { id, field: Some(field) }) if field.data_type().is_string() => {
            let field = Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View));
            return Ok(Transformed::yes(Logical::Placeholder(Placeholder::new_with_field(id, Some(field)))));
        }
        other => return Ok(Transformed::no(other)),
    };
    if call.func.name() == ARRAY_LIKE
        && let [Logical::Placeholder(parameter @ Placeholder { field: None, .. }), item] = call.args.as_mut_slice()
    {
        let item = item.to_field(schema)?.1;
        let list = DataType::List(Arc::new(item.as_ref().clone().with_name("item").with_nullable(true)));
        let metadata = Mark::of(&item).of_array().metadata(HashMap::new());
        parameter.field = Some(Arc::new(Field::new(&parameter.id, list, true).with_metadata(metadata)));
    }
    let is_of_objects = call.func.name().starts_with("object");
    for argument in &mut call.args {
        if let Logical::Placeholder(placeholder) = argument
            && placeholder.field.is_none()
            && is_of_objects
        {
            placeholder.field = Some(Arc::new(untyped_field(&placeholder.id)));
        }
    }
    Ok(Transformed::yes(Logical::ScalarFunction(call)))
}

/// Replaces a parameter by a column.
fn as_column(expr: Logical, parameters: &mut Vec<(usize, FieldRef)>) -> Result<Transformed<Logical>, DataFusionError> {
    let Logical::Placeholder(placeholder) = &expr else { return Ok(Transformed::no(expr)) };
    let number = placeholder.id.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
    let Some(number) = number.and_then(|number| number.checked_sub(1)) else { return Ok(Transformed::no(expr)) };
    let field = match &placeholder.field {
        Some(field) if is_untyped(field) => untyped_field(&placeholder.id),
        Some(field) => field.as_ref().clone().with_name(&placeholder.id).with_nullable(true),
        None => Field::new(&placeholder.id, DataType::Utf8View, true),
    };
    if !parameters.iter().any(|(known, _)| *known == number) {
        parameters.push((number, Arc::new(field)));
    }
    let name = placeholder.id.clone();
    Ok(Transformed::yes(Logical::Column(Column::new(Some(TableReference::bare(PARAMETERS)), name))))
}

fn parameter_of<'p>(column: &Column, parameters: &'p [(usize, FieldRef)]) -> Option<(usize, &'p FieldRef)> {
    if column.relation.as_ref().is_none_or(|relation| relation.table() != PARAMETERS) {
        return None;
    }
    let number = column.name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)?;
    parameters.iter().find(|(known, _)| *known == number).map(|(number, field)| (*number, field))
}

/// Whether a function may return different values for the same arguments.
fn depends(expr: &Logical) -> bool {
    matches!(expr, Logical::ScalarFunction(function) if function.func.signature().volatility != Volatility::Immutable)
}

/// The expression with these settings for its functions.
fn seeing(physical: &Arc<dyn PhysicalExpr>, options: &Arc<ConfigOptions>) -> Result<Arc<dyn PhysicalExpr>, SqlError> {
    let rebound = |node: Arc<dyn PhysicalExpr>| {
        let Some(function) = node.downcast_ref::<ScalarFunctionExpr>() else { return Ok(Transformed::no(node)) };
        let bound = ScalarFunctionExpr::new(
            function.name(),
            Arc::new(function.fun().clone()),
            function.args().to_vec(),
            function.return_field(&Schema::empty())?,
            options.clone(),
        );
        Ok(Transformed::yes(Arc::new(bound) as Arc<dyn PhysicalExpr>))
    };
    Ok(physical.clone().transform_up(rebound).map_err(failed)?.data)
}

/// Fails for expressions over more than one row.
fn check_of_row(expr: &Logical) -> Result<(), SqlError> {
    let mut refusal = None;
    let found = expr.apply(|expr| {
        refusal = match expr {
            Logical::ScalarSubquery(_) | Logical::InSubquery(_) | Logical::Exists(_) | Logical::SetComparison(_) => {
                Some(("a query within is not served here", "0A000"))
            }
            Logical::AggregateFunction(_) => Some(("aggregate functions are not allowed here", "42803")),
            Logical::WindowFunction(_) => Some(("window functions are not allowed here", "42P20")),
            Logical::Unnest(_) => Some(("set-returning functions are not allowed here", "0A000")),
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    });
    found.map_err(failed)?;
    match refusal {
        Some((text, sqlstate)) => Err(parsing_error(text).with_sqlstate(sqlstate)),
        None => Ok(()),
    }
}

impl RowExpression {
    /// Whether the type is known only from the values themselves.
    pub(crate) fn is_untyped(&self) -> bool {
        is_untyped(&self.field)
    }

    /// Whether it uses a column of the row.
    pub(crate) fn reads_row(&self) -> bool {
        self.read.iter().any(|(place, _)| !matches!(place, Place::Parameter(_)))
    }

    /// The field of the values.
    pub(crate) fn field(&self) -> &Field {
        &self.field
    }

    /// The type of the values.
    pub(crate) fn output(&self) -> &FieldType {
        &self.output
    }

    /// Evaluates the expression for some inputs.
    ///
    /// # Errors
    /// The value cannot be computed for these inputs.
    pub(crate) fn evaluate(&self, inputs: &Inputs<'_>) -> Result<Value<'static>, SqlError> {
        let mut arrays = Vec::with_capacity(self.read.len());
        for (place, field_type) in &self.read {
            let mut builder = ColumnBuilder::new(field_type);
            let value = inputs.get(*place)?.clone();
            let value = match place {
                Place::Parameter(_) if *field_type == FieldType::Json && !value.is_null() => {
                    let mut document = String::new();
                    push_json(&value, &mut document);
                    Value::Json(document.into())
                }
                Place::Parameter(_) if !value.is_null() => {
                    value.convert(field_type).map_err(|error| filbert_functions::error::conversion(&error))?
                }
                _ => value,
            };
            builder.append(value).map_err(|error| data_error(error.to_string()))?;
            arrays.push(builder.finish());
        }
        let rows = batch(&self.schema, arrays, 1).map_err(failed)?;
        let evaluated = match inputs.execution {
            Some(execution) if self.depends => seeing(&self.physical, execution.options())?.evaluate(&rows),
            _ => self.physical.evaluate(&rows),
        };
        let scalar = match evaluated.map_err(failed)? {
            ColumnarValue::Scalar(scalar) => scalar,
            ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0).map_err(failed)?,
        };
        Ok(value_of(&scalar, &self.output))
    }
}
