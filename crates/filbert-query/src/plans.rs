//! Plans of statements, and the caches that keep them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_schema::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr as LogicalExpr, LogicalPlan};
use filbert_data::Value;
use filbert_dialect::{ParsedStatement, SessionCommand};
use filbert_grid::MemberMemory;
use filbert_grid::query::{CopyFormat, Dialect, ParameterType, SqlError, arrow_type};

use crate::client_context::ParameterTypes;
use crate::dml::joined::JoinedColumn;
use crate::plan::planner::{PlannedQuery, check_count};
use crate::plan_cache::{Found, PlanCache};
use crate::plan_sources::Changes;
use crate::short::{ShortDml, ShortQuery};

/// A parsed statement, planned as far as possible without parameter values.
#[allow(clippy::large_enum_variant, reason = "each is kept once, behind an Arc")]
pub(crate) enum Plan {
    Query {
        planned: PlannedQuery,
        /// The optimized plan, for queries without parameters.
        optimized: Option<LogicalPlan>,
        short: Option<ShortQuery>,
        /// The format of the rows for the client, if the statement is a `COPY`.
        copy: Option<CopyFormat>,
    },
    Change {
        statement: ParsedStatement,
        short: Option<ShortDml>,
        /// The types of parameters within expressions, where the expressions determine them.
        asked: Vec<Option<ParameterType>>,
        /// The columns of joined tables that `RETURNING` may report.
        joined: Vec<JoinedColumn>,
    },
    /// A statement about the session.
    Session { command: SessionCommand, parameters: usize },
    /// All other statements, which are rare.
    Other(ParsedStatement),
}

impl Plan {
    /// The size of the literals of a query's plan, in bytes.
    pub(crate) fn literal_bytes(&self) -> usize {
        let Plan::Query { planned, optimized, .. } = self else { return 0 };
        let mut bytes = 0_usize;
        // The closure returns no errors.
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

    /// The values that a statement uses of the values that came with it.
    ///
    /// # Errors
    /// There are too few values, or too many.
    pub(crate) fn given<'p, 'v>(&self, dialect: Dialect, values: &'p [Value<'v>]) -> Result<&'p [Value<'v>], SqlError> {
        let wanted = match self {
            Plan::Query { planned, .. } => planned.parameters.len(),
            Plan::Change { statement, .. } | Plan::Other(statement) => statement.parameters,
            Plan::Session { parameters, .. } => *parameters,
        };
        let given = match dialect {
            // CrateDB's own clients sometimes send more values than the statement uses.
            Dialect::Crate => values.get(..wanted).unwrap_or(values),
            Dialect::Hazelcast | Dialect::Postgres => values,
        };
        check_count(wanted, given.len())?;
        Ok(given)
    }

    pub(crate) fn is_short(&self) -> bool {
        matches!(self, Plan::Query { short: Some(_), copy: None, .. } | Plan::Change { short: Some(_), .. })
    }

    /// Whether parameters of these types mean the same in a plan that was made without them: a key
    /// or an index finds them in the type that they are compared with.
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

    /// Whether this plan of a statement with parameters is equivalent to another plan with these
    /// literals in place of the parameters.
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

/// Statistics of the plan caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCacheStatistics {
    /// Cached plans.
    pub plans: usize,
    /// Statements that found a cached plan.
    pub hits: u64,
    /// Statements that had to be planned.
    pub misses: u64,
}

/// The cached plans, by the dialect of their texts.
pub(crate) struct Plans {
    of_texts: ByDialect<Plan>,
    /// `None` is cached too: it marks a template that cannot serve its texts, so each text is
    /// planned.
    of_templates: ByDialect<Option<Arc<Plan>>>,
    memory: Arc<MemberMemory>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The number of caches: of texts and of templates, for each dialect.
const CACHES: usize = 6;

struct ByDialect<P>([PlanCache<P>; 3]);

impl<P> ByDialect<P> {
    fn new(plans_max: usize, bytes_max: usize, memory: &Arc<MemberMemory>, changes: &Changes) -> Self {
        ByDialect([(); 3].map(|()| PlanCache::new(plans_max, bytes_max, memory.clone(), changes.clone())))
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
    /// Creates the caches. Each dialect may keep `plans_max` plans of texts and as many of
    /// templates, of `bytes_max` bytes each.
    pub(crate) fn new(plans_max: usize, bytes_max: usize, memory: &Arc<MemberMemory>, changes: &Changes) -> Plans {
        Plans {
            of_texts: ByDialect::new(plans_max, bytes_max, memory, changes),
            of_templates: ByDialect::new(plans_max, bytes_max, memory, changes),
            memory: memory.clone(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
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

    /// The plan of a text, by its [`plan_key`](crate::client_context::plan_key).
    pub(crate) fn find(&self, dialect: Dialect, key: &str) -> Option<Found<Plan>> {
        self.fit();
        self.counted(self.of_texts.of(dialect).find(key))
    }

    /// The plan that serves all texts of a template, by the template's
    /// [`plan_key`](crate::client_context::plan_key).
    pub(crate) fn find_by_template(&self, dialect: Dialect, key: &str) -> Option<Found<Plan>> {
        let known = self.of_templates.of(dialect).find(key)?;
        let plan = known.plan.as_ref().clone();
        self.counted(plan.map(|plan| Found { plan, sources: known.sources }))
    }

    /// Makes the caches smaller if the member's memory has become scarce.
    fn fit(&self) {
        let of_one = self.of_texts.of(Dialect::Postgres).bytes_max_now();
        if self.memory.plans() > of_one.saturating_mul(CACHES) {
            self.of_texts.0.iter().for_each(PlanCache::shrink);
            self.of_templates.0.iter().for_each(PlanCache::shrink);
        }
    }

    fn counted(&self, found: Option<Found<Plan>>) -> Option<Found<Plan>> {
        if found.is_some() {
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// The plan cache of texts.
    pub(crate) fn texts(&self, dialect: Dialect) -> &PlanCache<Plan> {
        self.of_texts.of(dialect)
    }

    /// The plan cache of templates. `None` marks a template that cannot serve its texts.
    pub(crate) fn templates(&self, dialect: Dialect) -> &PlanCache<Option<Arc<Plan>>> {
        self.of_templates.of(dialect)
    }

    /// Counts a statement that had to be planned.
    pub(crate) fn missed(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }
}
