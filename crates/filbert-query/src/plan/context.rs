//! The context of DataFusion's planner for a statement or an expression: tables, functions and
//! parameter types.
//!
//! DataFusion's session has the same context, but without types for parameters. Here parameters
//! have the types that are known before planning, and operators and functions are resolved by them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, SchemaRef};
use datafusion::catalog::TableFunctionArgs;
use datafusion::catalog::cte_worktable::CteWorkTable;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::common::config::ConfigOptions;
use datafusion::common::file_options::file_type::FileType;
use datafusion::common::{DFSchema, DataFusionError, ResolvedTableReference, Result, TableReference};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast::{Expr as SqlExpr, ExprWithAlias, Query, Statement};
use filbert_functions::ending;
use filbert_functions::types::{field, with_pg_type};
use filbert_functions::{mark_types, related_within, with_related_types};
use filbert_grid::query::{Dialect, ParameterType};

use crate::client_context::ParameterTypes;
use crate::extent;
use crate::plan::parameters::{Known, has_open_operands, infer, infer_in_plan};
use crate::plan::relations::Relations;
use crate::plan::session::dialect_of;
use crate::plan::{calls, growth, set_operations};

/// A planned statement.
pub(crate) struct Planned {
    pub(crate) plan: LogicalPlan,
    /// Whether an operand is a parameter with a type that was unknown when the operators around it
    /// were planned.
    pub(crate) is_inferred: bool,
}

/// Plans a query that reads the tables of these names.
///
/// # Errors
/// It uses an unknown name, or cannot be planned.
pub(crate) async fn plan_statement(
    state: &SessionState,
    query: Query,
    references: &BTreeSet<TableReference>,
    types: &ParameterTypes,
) -> Result<Planned> {
    let mut context = Context::new(state);
    for reference in references {
        let resolved = context.resolved(reference.clone());
        if !context.tables.contains_key(&resolved)
            && let Ok(schema) = state.schema_for_ref(resolved.clone())
            && let Some(table) = schema.table(&resolved.table).await?
        {
            context.tables.insert(resolved, provider_as_source(table));
        }
    }
    let mut statement = Statement::Query(Box::new(query));
    let again = calls::has_recursion(&statement).then(|| statement.clone());
    let mut is_to_be_settled = calls::written(&mut statement, false);
    // These steps are long for a long statement, and copy it.
    ending::check()?;
    let planner = SqlToRel::new_with_options(&context, options(state));
    let mut plan = planner.sql_statement_to_plan_with_context(statement, &mut with_types(types));
    if let Some(mut statement) = again
        && plan.as_ref().map_or(true, calls::narrows_numbers)
    {
        is_to_be_settled = calls::written(&mut statement, true);
        plan = planner.sql_statement_to_plan_with_context(statement, &mut with_types(types));
    }
    let plan = plan?;
    extent::check(&plan)?;
    growth::check(&plan)?;
    let plan = if is_to_be_settled { calls::settled(state, plan)? } else { plan };
    let plan = with_related_types(plan, dialect_of(state))?;
    let is_inferred = has_open_operands(&plan)?;
    let plan = infer_in_plan(plan, &known(state, types))?;
    let plan = set_operations::with_common_types(plan, dialect_of(state))?;
    Ok(Planned { plan: with_marked_types(state, plan)?, is_inferred })
}

/// The plan with the dialect's types of expressions, where Arrow has no such types.
pub(crate) fn with_marked_types(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    if dialect_of(state) == Dialect::Postgres { mark_types(plan) } else { Ok(plan) }
}

/// The plan after the analyzer rules.
pub(crate) fn analyzed(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {})
}

/// Plans an expression over columns.
///
/// # Errors
/// Like [`plan_statement`].
pub(crate) fn plan_expression(
    state: &SessionState,
    mut expr: SqlExpr,
    schema: &DFSchema,
    types: &ParameterTypes,
) -> Result<Expr> {
    let is_to_be_settled = calls::written(&mut expr, false);
    let context = Context::new(state);
    let planner = SqlToRel::new_with_options(&context, options(state));
    let expr = planner.sql_to_expr_with_alias(ExprWithAlias { expr, alias: None }, schema, &mut with_types(types))?;
    growth::check_expression(&expr)?;
    let expr = if is_to_be_settled { calls::settled_expression(state, expr, schema)?.data } else { expr };
    let expr = related_within(expr, schema, dialect_of(state))?.data;
    Ok(infer(expr, schema, &known(state, types))?.data)
}

fn known<'t>(state: &SessionState, types: &'t ParameterTypes) -> Known<'t> {
    Known { declared: types, dialect: dialect_of(state) }
}

fn with_types(types: &ParameterTypes) -> PlannerContext {
    let of = |(index, known): (usize, &Option<ParameterType>)| -> Option<FieldRef> {
        let known = known.as_ref()?;
        let field = field(&format!("${}", index + 1), &known.field_type, true);
        Some(Arc::new(match known.pg_type {
            Some(oid) => with_pg_type(field, oid),
            None => field,
        }))
    };
    PlannerContext::new().with_prepare_param_data_types(types.iter().enumerate().map(of).collect())
}

fn options(state: &SessionState) -> ParserOptions {
    let set = &state.config_options().sql_parser;
    ParserOptions {
        parse_float_as_decimal: set.parse_float_as_decimal,
        enable_ident_normalization: set.enable_ident_normalization,
        enable_options_value_normalization: set.enable_options_value_normalization,
        support_varchar_with_length: set.support_varchar_with_length,
        map_string_types_to_utf8view: set.map_string_types_to_utf8view,
        collect_spans: set.collect_spans,
        default_null_ordering: set.default_null_ordering.as_str().into(),
    }
}

struct Context<'s> {
    state: &'s SessionState,
    tables: HashMap<ResolvedTableReference, Arc<dyn TableSource>>,
    relations: [Arc<dyn RelationPlanner>; 1],
}

impl<'s> Context<'s> {
    fn new(state: &'s SessionState) -> Context<'s> {
        Context { state, tables: HashMap::new(), relations: [Arc::new(Relations::of(dialect_of(state)))] }
    }

    fn resolved(&self, name: TableReference) -> ResolvedTableReference {
        let defaults = &self.state.config_options().catalog;
        name.resolve(&defaults.default_catalog, &defaults.default_schema)
    }
}

impl ContextProvider for Context<'_> {
    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.state.expr_planners()
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relations
    }

    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let name = self.resolved(name);
        let found = self.tables.get(&name).cloned();
        found.ok_or_else(|| DataFusionError::Plan(format!("table '{name}' not found")))
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        let function = self.state.table_functions().get(name).cloned();
        let function = function.ok_or_else(|| DataFusionError::Plan(format!("table function '{name}' not found")))?;
        let context = SimplifyContext::builder()
            .with_config_options(Arc::clone(self.state.config_options()))
            .with_query_execution_start_time(self.state.execution_props().query_execution_start_time)
            .build();
        let simplifier = ExprSimplifier::new(context);
        let schema = DFSchema::empty();
        let settled = |arg| calls::settled_expression(self.state, arg, &schema).map(|settled| settled.data);
        let simplified = |arg| simplifier.coerce(settled(arg)?, &schema).and_then(|arg| simplifier.simplify(arg));
        let args = args.into_iter().map(simplified).collect::<Result<Vec<_>>>()?;
        let provider = function.create_table_provider_with_args(TableFunctionArgs::new(&args, self.state))?;
        Ok(provider_as_source(provider))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        Ok(provider_as_source(Arc::new(CteWorkTable::new(name, schema))))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.state.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }

    fn get_file_type(&self, extension: &str) -> Result<Arc<dyn FileType>> {
        Err(DataFusionError::Plan(format!("there are no files of the kind {extension}")))
    }
}
