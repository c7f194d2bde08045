//! Operators whose results or whose work may be any amount become functions that count them.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::optimizer::AnalyzerRule;

use super::{joined, like};

/// Makes calls of `||` of texts, and of `LIKE` with patterns that are long or computed. Types are coerced before.
#[derive(Debug)]
pub struct CountedOperators;

impl AnalyzerRule for CountedOperators {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.transform_down_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let schema = merge_schema(&node.inputs());
            node.map_expressions(|expression| {
                let name = names.save(&expression);
                let changed = expression.transform_up(|inner| {
                    let joined = joined::by_function(inner, &schema);
                    joined.transform_data(|inner| Ok(like::by_parts(inner)))
                })?;
                Ok(if changed.transformed { changed.update_data(|data| name.restore(data)) } else { changed })
            })
        });
        Ok(changed?.data)
    }

    fn name(&self) -> &str {
        "counted_operators"
    }
}
