//! Replaces operators with unbounded results or work by functions that count them.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::optimizer::AnalyzerRule;

use super::{joined, like};

/// Replaces `||` of texts, and `LIKE` with long or computed patterns, by calls. Runs after type
/// coercion.
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
