//! Plans of statements: how a text becomes one, and where it is kept for the next time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_schema::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr as LogicalExpr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Expr, Query};
use filbert_data::{FieldType, Value};
use filbert_grid::layout_changes;
use filbert_grid::query::{CopyFormat, Dialect, ParameterType, SqlError, arrow_type};

use crate::asker::{Asker, plan_key};
use crate::dialect::{self, Copy, FileFormat, Insert, Parsed, ParsedStatement, Place, SessionCommand};
use crate::dml::literals::{is_default, parameter};
use crate::dml::select;
use crate::engine::Inner;
use crate::error::of_datafusion;
use crate::plan::columns::name_columns;
use crate::plan::context::ParameterTypes;
use crate::plan::ending;
use crate::plan::planner::{
    PlannedQuery, check_count, columns_after, parameter_types, plan_query, plan_rewritten, told_parameter_types,
};
use crate::plan::scope;
use crate::plan_cache::PlanCache;
use crate::short::{ShortDml, ShortQuery};
use crate::template::Template;

/// How often a statement is planned anew because the catalog changed meanwhile.
const ATTEMPTS_MAX: usize = 3;

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

/// Bytes of the literals of a plan that is kept, at most: what is computed while a statement is planned may be larger than its text.
const LITERALS_BYTES_MAX: usize = 128 << 10;

impl Plan {
    /// The bytes that the literals of a query's plan take.
    fn literal_bytes(&self) -> usize {
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

    fn is_short(&self) -> bool {
        matches!(self, Plan::Query { short: Some(_), copy: None, .. } | Plan::Change { short: Some(_), .. })
    }

    /// Whether parameters of these types mean the same in a plan that was made without them: as what they are compared with, they are
    /// found by a key or an index.
    fn suits(&self, types: &ParameterTypes) -> bool {
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
    fn same_as_with_literals(&self, other: &Plan, literals: &[Value<'_>]) -> bool {
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

    /// The plan of a text, by its [`plan_key`].
    pub(crate) fn find(&self, dialect: Dialect, key: &str, version: u64) -> Option<Arc<Plan>> {
        self.counted(self.of_texts.of(dialect).find(key, version))
    }

    /// The plan that serves each text of a template, by the template's [`plan_key`].
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

    /// A plan was not there, and has been made.
    fn missed(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }
}

impl Inner {
    /// Grows when plans may have become wrong: with mappings, views, indexes and columns, and when a map is destroyed.
    pub(crate) fn version(&self) -> u64 {
        self.tables.catalog().version().wrapping_add(layout_changes())
    }

    /// The plan of a text, made now if it is not there.
    pub(crate) async fn plan(&self, text: &str, asker: &Asker) -> Result<Arc<Plan>, SqlError> {
        let key = plan_key(asker.session(), text, asker.types());
        let mut attempts = 0;
        let (version, planned) = loop {
            attempts += 1;
            let version = self.version();
            if let Some(plan) = self.plans.find(asker.dialect(), &key, version) {
                return Ok(plan);
            }
            let planned = self.plan_of_text(text, asker).await;
            // Of a table that is altered meanwhile, some may have been found before and some after the change.
            if self.version() == version || attempts == ATTEMPTS_MAX {
                break (version, planned);
            }
        };
        let plan = Arc::new(planned?);
        // Of a statement that ended meanwhile it may be half made.
        ending::check().map_err(|error| of_datafusion(&error))?;
        if matches!(*plan, Plan::Other(_)) {
            return Ok(plan);
        }
        self.plans.missed();
        if plan.literal_bytes() > LITERALS_BYTES_MAX {
            return Ok(plan);
        }
        // Where literals are written into texts, this one does not come again.
        if !self.keep_for_template(text, &plan, version, asker).await {
            self.plans.of_texts.of(asker.dialect()).keep(&key, version, plan.clone());
        }
        Ok(plan)
    }

    async fn plan_of_text(&self, text: &str, asker: &Asker) -> Result<Plan, SqlError> {
        let limits = dialect::Limits {
            text_bytes_max: self.config.statement_bytes_max,
            parameters_max: self.config.parameters_max,
            ..dialect::Limits::default()
        };
        let statement = dialect::parse(text, asker.dialect(), &limits, &self.path(asker))?;
        if !asker.types().is_empty()
            && matches!(statement.parsed, Parsed::Query(_))
            && let Ok(plan) = self.make_plan(statement.clone(), &Asker::new(asker.session())).await
            && plan.is_short()
            && plan.suits(asker.types())
        {
            return Ok(plan);
        }
        let planned = self.make_plan(statement, asker).await;
        planned.map_err(|error| dialect::located(error, text, asker.dialect()))
    }

    /// Keeps a plan for the template of a text, whose own plan this is. Whether one serves such texts from now on.
    async fn keep_for_template(&self, text: &str, plan: &Plan, version: u64, asker: &Asker) -> bool {
        if !plan.is_short() {
            return false;
        }
        let Some(template) = Template::of(text) else { return false };
        let templates = self.plans.of_templates.of(asker.dialect());
        let key = plan_key(asker.session(), template.key(), &[]);
        if let Some(known) = templates.find(&key, version) {
            return known.is_some();
        }
        let made = self.plan_of_text(template.statement(), asker).await.ok();
        let made = made.filter(|made| {
            made.same_as_with_literals(plan, template.values())
                && dialect::differ_in_literals_only(text, template.statement(), template.values(), asker.dialect())
        });
        let serves = made.is_some();
        if ending::check().is_err() {
            return false;
        }
        templates.keep(&key, version, Arc::new(made.map(Arc::new)));
        serves
    }

    pub(crate) async fn make_plan(&self, statement: ParsedStatement, asker: &Asker) -> Result<Plan, SqlError> {
        let ParsedStatement { parsed, parameters } = statement;
        match parsed {
            Parsed::Session(SessionCommand::Ask(text)) => {
                let limits = dialect::Limits::default();
                let query = dialect::parse(&text, asker.dialect(), &limits, &self.path(asker))?;
                Box::pin(self.make_plan(query, asker)).await
            }
            Parsed::Session(command) => Ok(Plan::Session { command, parameters }),
            Parsed::Query(query) => self.plan_query(*query, parameters, asker, None).await,
            Parsed::Copy(copy) => match *copy {
                Copy { query: Some(query), place: Place::Client, format: FileFormat::Rows(format), .. } => {
                    self.plan_query(*query, parameters, asker, Some(format)).await
                }
                copy => Ok(Plan::Other(ParsedStatement { parsed: Parsed::Copy(Box::new(copy)), parameters })),
            },
            parsed @ (Parsed::Insert(_) | Parsed::Update(_) | Parsed::Delete(_)) => {
                let state = self.sessions.planning_for(asker);
                let short = ShortDml::of(&self.tables, &state, &parsed, asker.types())?;
                let asked = if parameters > 0 { self.asked_by_change(&parsed, asker).await } else { Vec::new() };
                Ok(Plan::Change { statement: ParsedStatement { parsed, parameters }, short, asked })
            }
            parsed => Ok(Plan::Other(ParsedStatement { parsed, parameters })),
        }
    }

    /// The types of parameters within the expressions of a change, as the query tells them that finds what is changed.
    async fn asked_by_change(&self, parsed: &Parsed, asker: &Asker) -> Vec<Option<FieldType>> {
        let query = match parsed {
            Parsed::Update(update) => {
                let alias = update.alias.as_deref().unwrap_or_else(|| dialect::schema_of(&update.table).1);
                let is_computed = |expr: &&Expr| !is_default(expr) && parameter(expr).is_none();
                let items: Vec<Expr> =
                    update.assignments.iter().map(|(_, expr)| expr).filter(is_computed).cloned().collect();
                let query = select::entries(&update.table, alias, &items, update.selection.as_ref());
                query.map(|query| select::joined(query, &update.from))
            }
            Parsed::Delete(delete) => {
                let alias = delete.alias.as_deref().unwrap_or_else(|| dialect::schema_of(&delete.table).1);
                let query = select::entries(&delete.table, alias, &[], delete.selection.as_ref());
                query.map(|query| select::joined(query, &delete.using))
            }
            Parsed::Insert(Insert { source: Some(source), .. }) => Ok((**source).clone()),
            _ => return Vec::new(),
        };
        let Ok(mut query) = query else { return Vec::new() };
        // What is wrong is told when the statement runs.
        if scope::resolve(&self.tables, asker.dialect(), &mut query).is_err() {
            return Vec::new();
        }
        name_columns(&mut query, &|name| self.tables.visible_columns(name));
        let state = self.sessions.planning_for(asker);
        let planned = plan_rewritten(&state, &self.tables, asker, query).await;
        planned.and_then(|plan| told_parameter_types(&plan, &parameter_types(&plan)?)).unwrap_or_default()
    }

    async fn plan_query(
        &self,
        query: Query,
        parameters: usize,
        asker: &Asker,
        copy: Option<CopyFormat>,
    ) -> Result<Plan, SqlError> {
        let state = self.sessions.planning_for(asker);
        let mut planned = plan_query(&state, &self.tables, asker, query).await?;
        planned.parameters.resize(parameters, None);
        planned.told_parameters.resize(parameters, None);
        // A plan whose parameters' types are open cannot be optimized before they are known.
        let optimized = state.optimize(&planned.plan).ok();
        if let Some(optimized) = &optimized {
            // Types are what the rules of conversion make of them.
            planned.columns = columns_after(optimized, &planned.columns);
        }
        let short = optimized.as_ref().and_then(|plan| ShortQuery::of(&state, &planned, plan));
        let optimized = optimized.filter(|_| planned.parameters.is_empty());
        Ok(Plan::Query { planned, optimized, short, copy })
    }
}
