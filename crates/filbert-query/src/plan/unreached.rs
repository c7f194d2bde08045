//! Removes what constants rule out: branches of `CASE` and arguments of `COALESCE`.
//!
//! DataFusion computes the constants of a statement wherever they stand, and the statement fails if
//! a cast of a constant does. PostgreSQL removes such a branch first:
//! `CASE WHEN a > 5 THEN 7 WHEN false THEN 100000::smallint END` is no error.

use std::sync::Arc;

use arrow_schema::Field;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, ExprSchemable, LogicalPlan, Operator, Volatility};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use filbert_functions::named::{map_named, schema_within};

/// The rule. It must run before the rules that compute constants.
pub(super) fn removed() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(Unreached)
}

#[derive(Debug)]
struct Unreached;

impl OptimizerRule for Unreached {
    fn name(&self) -> &str {
        "branches_that_constants_rule_out"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !has_choices(&plan)? {
            return Ok(Transformed::no(plan));
        }
        let schema = schema_within(&plan)?;
        // Functions look up the time zone and other settings there.
        let context = SimplifyContext::builder().with_config_options(config.options());
        let constants = Constants(ExprSimplifier::new(context.build()));
        map_named(plan, |expression| {
            // From the inside: a choice that takes the place of another one was examined before.
            expression.transform_up(|inner| match inner {
                Expr::Case(case) => constants.reached(case, &schema),
                Expr::ScalarFunction(call) if call.func.name() == COALESCE => constants.first_values(call, &schema),
                other => Ok(Transformed::no(other)),
            })
        })
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

const COALESCE: &str = "coalesce";

fn has_choices(plan: &LogicalPlan) -> Result<bool> {
    let is_choice = |inner: &Expr| match inner {
        Expr::Case(_) => true,
        Expr::ScalarFunction(call) => call.func.name() == COALESCE,
        _ => false,
    };
    let mut found = false;
    plan.apply_expressions(|expression| {
        found |= expression.exists(|inner| Ok(is_choice(inner)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Computes constants as the optimizer does.
struct Constants(ExprSimplifier);

impl Constants {
    /// A choice without the branches behind conditions that are never true, and behind one that
    /// always is.
    fn reached(&self, case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let is_null =
            case.expr.as_ref().is_some_and(|operand| self.constant(operand).is_some_and(|value| value.is_null()));
        let holds = |when: &Expr| match &case.expr {
            // Nothing equals NULL.
            Some(_) if is_null => Some(false),
            None => self.truth(when),
            Some(operand) => self.truth(&Expr::BinaryExpr(BinaryExpr {
                left: operand.clone(),
                op: Operator::Eq,
                right: Box::new(when.clone()),
            })),
        };
        let truths: Vec<Option<bool>> = case.when_then_expr.iter().map(|(when, _)| holds(when)).collect();
        if truths.iter().all(Option::is_none) {
            return Ok(Transformed::no(Expr::Case(case)));
        }
        let (_, field) = Expr::Case(case.clone()).to_field(schema)?;
        let (mut branches, mut otherwise) = (Vec::new(), case.else_expr.clone());
        for (branch, truth) in case.when_then_expr.iter().zip(truths) {
            match truth {
                Some(false) => {}
                None => branches.push(branch.clone()),
                Some(true) => {
                    otherwise = Some(branch.1.clone());
                    break;
                }
            }
        }
        let left = match otherwise {
            otherwise if !branches.is_empty() => {
                Expr::Case(Case { expr: case.expr.clone(), when_then_expr: branches, else_expr: otherwise })
            }
            Some(one) => *one,
            None => Expr::Literal(ScalarValue::try_from(field.data_type())?, None),
        };
        let is_same = is_of_type(&left, &field, schema);
        Ok(if is_same { Transformed::yes(left) } else { Transformed::no(Expr::Case(case)) })
    }

    /// The arguments of `COALESCE` up to the first one that is a constant other than NULL.
    fn first_values(&self, mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let is_value = |argument: &Expr| self.constant(argument).is_some_and(|value| !value.is_null());
        let Some(at) = call.args.iter().position(is_value) else {
            return Ok(Transformed::no(Expr::ScalarFunction(call)));
        };
        let is_last = at + 1 == call.args.len();
        if at == 0 {
            let (_, field) = Expr::ScalarFunction(call.clone()).to_field(schema)?;
            if let Some(first) = call.args.first().filter(|first| is_of_type(first, &field, schema)) {
                return Ok(Transformed::yes(first.clone()));
            }
        }
        call.args.truncate(at + 1);
        Ok(Transformed::new_transformed(Expr::ScalarFunction(call), !is_last))
    }

    /// Whether a condition holds for all rows, or for none. NULL does not hold.
    fn truth(&self, condition: &Expr) -> Option<bool> {
        if let Some(value) = self.constant(condition) {
            return matches!(value, ScalarValue::Boolean(_) | ScalarValue::Null)
                .then_some(value == ScalarValue::Boolean(Some(true)));
        }
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return None };
        // The operand that decides, whatever the other one is.
        let decides = match op {
            Operator::And => false,
            Operator::Or => true,
            _ => return None,
        };
        let sides = [self.truth(left), self.truth(right)];
        if sides.contains(&Some(decides)) {
            return Some(decides);
        }
        (sides == [Some(!decides); 2]).then_some(!decides)
    }

    /// The value that an expression has for all rows and all evaluations.
    fn constant(&self, expression: &Expr) -> Option<ScalarValue> {
        if let Expr::Literal(scalar, _) = expression {
            return Some(scalar.clone());
        }
        let varies = |inner: &Expr| match inner {
            Expr::ScalarFunction(call) => call.func.signature().volatility != Volatility::Immutable,
            Expr::Literal(..) | Expr::BinaryExpr(_) | Expr::Not(_) | Expr::Negative(_) | Expr::Cast(_) => false,
            Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::IsTrue(_) | Expr::IsFalse(_) | Expr::IsUnknown(_) => false,
            Expr::IsNotTrue(_) | Expr::IsNotFalse(_) | Expr::IsNotUnknown(_) => false,
            Expr::InList(_) | Expr::Between(_) | Expr::Like(_) | Expr::SimilarTo(_) => false,
            _ => true,
        };
        if expression.exists(|inner| Ok(varies(inner))).unwrap_or(true) {
            return None;
        }
        match self.0.simplify(expression.clone()).ok()? {
            Expr::Literal(scalar, _) => Some(scalar),
            _ => None,
        }
    }
}

/// Whether an expression has the type of a choice. The choice may have a type that Arrow lacks and
/// that the branches that are left have not.
fn is_of_type(expression: &Expr, field: &Field, schema: &DFSchema) -> bool {
    expression
        .to_field(schema)
        .is_ok_and(|(_, found)| found.data_type() == field.data_type() && found.metadata() == field.metadata())
}
