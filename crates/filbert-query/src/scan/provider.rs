//! A map as a DataFusion table.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result, Statistics};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion::physical_plan::ExecutionPlan;
use filbert_functions::error::carried;
use filbert_functions::{fallible, guards};

use crate::scan::access::AccessPlan;
use crate::scan::exec::MapScanExec;
use crate::scan::scanner::ScanSpec;
use crate::scan::statistics;
use crate::scan::table::MapTable;

/// Offers a map's table to plans.
#[derive(Debug)]
pub(crate) struct MapProvider(pub(crate) Arc<MapTable>);

impl MapProvider {
    /// A scan of some columns for the rows that satisfy all filters.
    pub(crate) fn scan_spec(
        &self,
        state: &dyn Session,
        projection: Option<&[usize]>,
        filters: &[Expr],
    ) -> Result<ScanSpec> {
        let table = &self.0;
        let mut columns: Vec<usize> = match projection {
            Some(projection) => projection.to_vec(),
            None => (0..table.columns().len()).collect(),
        };
        let width = columns.len();
        for filter in filters {
            for column in filter.column_refs() {
                if let Ok(index) = table.arrow_schema().index_of(&column.name)
                    && !columns.contains(&index)
                {
                    columns.push(index);
                }
            }
        }
        let mut spec = ScanSpec::new(table.clone(), columns, width)?;
        spec.access = AccessPlan::choose(table, filters).resolve(table, &[]).map_err(carried)?;
        spec.filter = filter_of_plan(state, &spec.schema, filters)?;
        Ok(spec)
    }
}

fn has_subquery(filter: &Expr) -> bool {
    use datafusion::common::tree_node::TreeNode;
    let is_subquery = |expr: &Expr| matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_));
    filter.exists(|expr| Ok(is_subquery(expr))).unwrap_or(true)
}

/// All filters of an optimized plan as one expression over the columns of a schema. Their operands
/// have common types already: to make sure of it takes seconds for deep expressions.
fn filter_of_plan(state: &dyn Session, schema: &SchemaRef, filters: &[Expr]) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let Some(filter) = guards::all_of(filters.iter().cloned().map(unqualified)) else { return Ok(None) };
    let schema = DFSchema::try_from(schema.clone())?;
    let filter = guards::condition(filter, &schema)?;
    create_physical_expr(&filter, &schema, state.execution_props(), &PhysicalPlanningContext::default()).map(Some)
}

/// All filters as one expression over the columns of a schema.
pub(crate) fn physical_filter(
    state: &dyn Session,
    schema: &SchemaRef,
    filters: &[Expr],
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let Some(filter) = guards::all_of(filters.iter().cloned().map(unqualified)) else { return Ok(None) };
    let schema = DFSchema::try_from(schema.clone())?;
    state.create_physical_expr(guards::condition(filter, &schema)?, &schema).map(Some)
}

/// The expression with unqualified column names, which suffice within one table.
pub(crate) fn unqualified(expr: Expr) -> Expr {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let strip = |expr: Expr| {
        Ok(match expr {
            Expr::Column(column) if column.relation.is_some() => {
                Transformed::yes(Expr::Column(datafusion::common::Column::new_unqualified(column.name)))
            }
            other => Transformed::no(other),
        })
    };
    match expr.clone().transform(strip) {
        Ok(transformed) => transformed.data,
        Err(_) => expr,
    }
}

#[async_trait]
impl TableProvider for MapProvider {
    fn schema(&self) -> SchemaRef {
        self.0.arrow_schema().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let spec = self.scan_spec(state, projection.map(Vec::as_slice), filters)?;
        let statistics = statistics::of_scan(&spec);
        let tasks = state.config().target_partitions();
        Ok(Arc::new(MapScanExec::new(spec, limit, tasks, statistics)?))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let stays = |filter: &Expr| has_subquery(filter) || filter.is_volatile();
        // A filter that stays above the scan may keep rows from one that fails for them.
        let schema = match filters.iter().any(|filter| stays(filter)) {
            true => Some(DFSchema::try_from(self.schema())?),
            false => None,
        };
        let can_fail = |filter: &Expr| {
            schema.as_ref().is_some_and(|schema| fallible::can_fail(&unqualified(filter.clone()), schema))
        };
        let supported = filters.iter().map(|filter| match stays(filter) || can_fail(filter) {
            true => TableProviderFilterPushDown::Unsupported,
            false => TableProviderFilterPushDown::Exact,
        });
        Ok(supported.collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(statistics::of_table(&self.0))
    }
}
