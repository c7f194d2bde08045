//! Plans of statements, and where they are kept for the next time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_schema::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr as LogicalExpr, LogicalPlan};
use filbert_data::{FieldType, Value};
use filbert_dialect::{ParsedStatement, SessionCommand};
use filbert_grid::query::{CopyFormat, Dialect, ParameterType, SqlError, arrow_type};

use crate::asker::ParameterTypes;
use crate::plan::planner::{PlannedQuery, check_count};
use crate::plan_cache::PlanCache;
use crate::short::{ShortDml, ShortQuery};

/// A statement that is understood and planned as far as it can be without its parameters.
#[allow(clippy::large_enum_variant, reason = "each is kept once, behind an Arc")]
pub(crate) enum Plan {
    Query {
        planned: PlannedQuery,
        /// The optimized plan, of queries without parameters.
        optimized: Option<LogicalPlan>,
        short: Option<ShortQuery>,
        /// How its rows go to the client, if it is a `COPY`.
        copy: Option<CopyFormat>,
    },
    Change {
        statement: ParsedStatement,
        short: Option<ShortDml>,
        /// The types of parameters within expressions, where those tell them.
        asked: Vec<Option<FieldType>>,
    },
    /// What concerns the session.
    Session { command: SessionCommand, parameters: usize },
    /// Everything that is rare.
    Other(ParsedStatement),
}

impl Plan {
    /// The bytes that the literals of a query's plan take.
    pub(crate) fn literal_bytes(&self) -> usize {
        let Plan::Query { planned, optimized, .. } = self else { return 0 };
        let mut bytes = 0_usize;
        // It fails at nothing.
        let _ = optimized.as_ref().unwrap_or(&planned.plan).apply_with_subqueries(|node| {
            node.apply_expressions(|expression| {
                expression.apply(|inner| {
                    if let LogicalExpr::Literal(scalar, _) = inner {
                        bytes = bytes.saturating_add(scalar.size());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        });
        bytes
    }

    /// The values that a statement takes of those that came with it.
    ///
    /// # Errors
    /// There are too few of them, or too many.
    pub(crate) fn given<'p, 'v>(&self, dialect: Dialect, values: &'p [Value<'v>]) -> Result<&'p [Value<'v>], SqlError> {
        let wanted = match self {
            Plan::Query { planned, .. } => planned.parameters.len(),
            Plan::Change { statement, .. } | Plan::Other(statement) => statement.parameters,
            Plan::Session { parameters, .. } => *parameters,
        };
        let given = match dialect {
            // CrateDB's own clients give more than the statement asks for at times.
            Dialect::Crate => values.get(..wanted).unwrap_or(values),
            Dialect::Hazelcast | Dialect::Postgres => values,
        };
        check_count(wanted, given.len())?;
        Ok(given)
    }

    pub(crate) fn is_short(&self) -> bool {
        matches!(self, Plan::Query { short: Some(_), copy: None, .. } | Plan::Change { short: Some(_), .. })
    }

    /// Whether parameters of these types mean the same in a plan that was made without them: as what they are compared with, they are
    /// found by a key or an index.
    pub(crate) fn suits(&self, types: &ParameterTypes) -> bool {
        let Plan::Query { planned, .. } = self else { return false };
        let bits = |data_type: &DataType| match data_type {
            DataType::Int16 => 16,
            DataType::Int32 => 32,
            DataType::Int64 => 64,
            _ => 0,
        };
        let suits = |(wanted, declared): (&Option<DataType>, &Option<ParameterType>)| match (wanted, declared) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(wanted), Some(declared)) => {
                let declared = arrow_type(&declared.field_type);
                *wanted == declared || bits(&declared) > 0 && bits(&declared) <= bits(wanted)
            }
        };
        planned.parameters.iter().zip(types).all(suits)
    }

    /// Whether this plan, of a statement with parameters, means the same as another that has these literals in their places.
    pub(crate) fn same_as_with_literals(&self, other: &Plan, literals: &[Value<'_>]) -> bool {
        match (self, other) {
            (Plan::Query { short: Some(short), planned, copy: None, .. }, Plan::Query { planned: of_other, .. }) => {
                short.takes_as_they_are(literals)
                    && planned.takes_as_they_are(literals)
                    && planned.columns == of_other.columns
            }
            (Plan::Change { short: Some(short), .. }, Plan::Change { short: Some(of_other), .. }) => {
                short.same_as_with_literals(of_other)
            }
            _ => false,
        }
    }
}

/// Counts of the plans that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCacheStatistics {
    /// Plans that are kept.
    pub plans: usize,
    /// Statements whose plan was there.
    pub hits: u64,
    /// Statements whose plan had to be made.
    pub misses: u64,
}

/// The plans that are kept, by the dialects of their texts.
pub(crate) struct Plans {
    of_texts: ByDialect<Plan>,
    /// `None` is kept too: a template whose texts have to be planned one by one.
    of_templates: ByDialect<Option<Arc<Plan>>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

struct ByDialect<P>([PlanCache<P>; 3]);

impl<P> ByDialect<P> {
    fn new(plans_max: usize) -> Self {
        ByDialect([(); 3].map(|()| PlanCache::new(plans_max)))
    }

    fn of(&self, dialect: Dialect) -> &PlanCache<P> {
        let ByDialect([hazelcast, crate_, postgres]) = self;
        match dialect {
            Dialect::Hazelcast => hazelcast,
            Dialect::Crate => crate_,
            Dialect::Postgres => postgres,
        }
    }
}

impl Plans {
    /// As many for each dialect, of texts and of templates.
    pub(crate) fn new(plans_max: usize) -> Plans {
        let (of_texts, of_templates) = (ByDialect::new(plans_max), ByDialect::new(plans_max));
        Plans { of_texts, of_templates, hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    pub(crate) fn statistics(&self) -> PlanCacheStatistics {
        let of_texts = self.of_texts.0.iter().map(|plans| plans.count(|_| true));
        let of_templates = self.of_templates.0.iter().map(|plans| plans.count(Option::is_some));
        PlanCacheStatistics {
            plans: of_texts.chain(of_templates).sum(),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// The plan of a text, by its [`plan_key`](crate::asker::plan_key).
    pub(crate) fn find(&self, dialect: Dialect, key: &str, version: u64) -> Option<Arc<Plan>> {
        self.counted(self.of_texts.of(dialect).find(key, version))
    }

    /// The plan that serves each text of a template, by the template's [`plan_key`](crate::asker::plan_key).
    pub(crate) fn find_by_template(&self, dialect: Dialect, key: &str, version: u64) -> Option<Arc<Plan>> {
        let known = self.of_templates.of(dialect).find(key, version)?;
        self.counted(known.as_ref().clone())
    }

    fn counted(&self, found: Option<Arc<Plan>>) -> Option<Arc<Plan>> {
        if found.is_some() {
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// The plans of texts.
    pub(crate) fn texts(&self, dialect: Dialect) -> &PlanCache<Plan> {
        self.of_texts.of(dialect)
    }

    /// The plans of templates; `None` of a template whose texts have to be planned one by one.
    pub(crate) fn templates(&self, dialect: Dialect) -> &PlanCache<Option<Arc<Plan>>> {
        self.of_templates.of(dialect)
    }

    /// A plan was not there, and has been made.
    pub(crate) fn missed(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }
}
