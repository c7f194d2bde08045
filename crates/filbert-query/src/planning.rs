//! From the text of a statement to its plan. The text is parsed, planned as far as possible without
//! parameter values, and kept in the plan cache.

use std::sync::Arc;

use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{Expr, Query};
use filbert_dialect::{self as dialect, Copy, FileFormat, Insert, Parsed, ParsedStatement, Place, SessionCommand};
use filbert_functions::ending;
use filbert_functions::error::of_datafusion;
use filbert_grid::query::{CopyFormat, Dialect, ParameterType, SqlError};

use crate::client_context::{ClientContext, plan_key};
use crate::copy;
use crate::dml::joined;
use crate::dml::literals::{is_default, parameter};
use crate::dml::select;
use crate::dml::targets::target_columns;
use crate::parts::Parts;
use crate::plan::columns::name_columns;
use crate::plan::planner::{
    columns_after, items_of, parameter_types, plan_query, plan_rewritten, reported_parameter_types, unaliased,
};
use crate::plan::scope;
use crate::plan_cache::Found;
use crate::plan_sources::{Version, recorded};
use crate::plans::Plan;
use crate::short::{ShortDml, ShortQuery};
use crate::template::Template;

/// How often a statement is planned again because the catalog changed meanwhile.
const ATTEMPTS_MAX: usize = 3;

/// The memory that parsing takes for each word, number and symbol of a long text, in bytes: 220 to
/// 330 for lists, rows, conditions and calls, up to 1,000 for functions that are rewritten, such as
/// `nullif`.
const PARSED_WORD_BYTES: usize = 450;

/// The memory that planning takes beyond a parsed statement, as a multiple of it: 0.4 for lists,
/// 0.8 for conditions, 1.3 for `coalesce`, 1.7 for rows of `VALUES`, 3.1 for functions of
/// operators.
const PLANNED_TO_PARSED: usize = 3;

/// The size of a parsed statement, in bytes, from which on planning's memory is checked ahead.
const PARSED_BYTES_MIN: usize = 1 << 20;

/// The maximum size of the literals of a cached plan, in bytes. Constants that planning computes
/// may be larger than the text.
const LITERALS_BYTES_MAX: usize = 128 << 10;

impl Parts {
    /// The plan of a text; planned now if it is not cached.
    pub(crate) async fn plan(&self, text: &str, client: &ClientContext) -> Result<Found<Plan>, SqlError> {
        let key = plan_key(client.session(), text, client.types());
        let (mut attempts, held) = (0, ending::held());
        let (version, planned, sources) = loop {
            attempts += 1;
            if let Some(found) = self.plans.find(client.dialect(), &key) {
                return Ok(found);
            }
            let version = self.changes.version();
            let permit = self.threads.may_plan(text).await;
            // Within a step of planning, memory is not checked.
            let ahead = match permit {
                Some(_) => ending::ahead(dialect::word_count(text).saturating_mul(PARSED_WORD_BYTES))?,
                None => None,
            };
            let (planned, sources) = recorded(self.plan_of_text(text, client)).await;
            drop((ahead, permit));
            // If a table was altered meanwhile, planning may have seen parts from before and after
            // the change.
            if self.changes.valid_since(version, &sources).is_some() || attempts == ATTEMPTS_MAX {
                break (version, planned, sources);
            }
        };
        let found = Found { plan: Arc::new(planned?), sources: Arc::new(sources) };
        let plan = &found.plan;
        // If the statement ended meanwhile, the plan may be incomplete.
        ending::check().map_err(|error| of_datafusion(&error))?;
        if matches!(**plan, Plan::Other(_)) {
            return Ok(found);
        }
        self.plans.missed();
        if plan.literal_bytes() > LITERALS_BYTES_MAX {
            return Ok(found);
        }
        let bytes = ending::held().saturating_sub(held);
        // A client that writes literals into texts does not send this text again.
        if !self.keep_for_template(text, plan, version, bytes, client).await {
            self.plans.texts(client.dialect()).keep(&key, version, found.clone(), bytes);
        }
        Ok(found)
    }

    async fn plan_of_text(&self, text: &str, client: &ClientContext) -> Result<Plan, SqlError> {
        let limits = dialect::Limits {
            text_bytes_max: self.config.statement_bytes_max,
            parameters_max: self.config.parameters_max,
            ..dialect::Limits::default()
        };
        let before = ending::held();
        let statement = dialect::parse(text, client.dialect(), &limits, &self.path(client))?;
        // The parts of a long statement take hundreds of times its text, and its plans a multiple.
        ending::check().map_err(|error| of_datafusion(&error))?;
        let parsed = ending::held().saturating_sub(before);
        let _ahead = match parsed >= PARSED_BYTES_MIN {
            true => ending::ahead(parsed.saturating_mul(PLANNED_TO_PARSED))?,
            false => None,
        };
        if !client.types().is_empty()
            && matches!(statement.parsed, Parsed::Query(_))
            && let Ok(plan) = self.make_plan(statement.clone(), &ClientContext::new(client.session())).await
            && plan.is_short()
            && plan.suits(client.types())
        {
            return Ok(plan);
        }
        let planned = self.make_plan(statement, client).await;
        planned.map_err(|error| dialect::located(error, text, client.dialect()))
    }

    /// Caches the plan of a text for the text's template. Returns whether the template serves such
    /// texts from now on.
    async fn keep_for_template(
        &self,
        text: &str,
        plan: &Plan,
        version: Version,
        bytes: usize,
        client: &ClientContext,
    ) -> bool {
        if !plan.is_short() {
            return false;
        }
        let Some(template) = Template::of(text) else { return false };
        let templates = self.plans.templates(client.dialect());
        let key = plan_key(client.session(), template.key(), &[]);
        if let Some(known) = templates.find(&key) {
            return known.plan.is_some();
        }
        let (made, sources) = recorded(self.plan_of_text(template.statement(), client)).await;
        let made = made.ok().filter(|made| {
            made.same_as_with_literals(plan, template.values())
                && dialect::differ_in_literals_only(text, template.statement(), template.values(), client.dialect())
        });
        let serves = made.is_some();
        if ending::check().is_err() {
            return false;
        }
        let found = Found { plan: Arc::new(made.map(Arc::new)), sources: Arc::new(sources) };
        templates.keep(&key, version, found, bytes);
        serves
    }

    pub(crate) async fn make_plan(&self, statement: ParsedStatement, client: &ClientContext) -> Result<Plan, SqlError> {
        let ParsedStatement { parsed, parameters } = statement;
        match parsed {
            Parsed::Session(SessionCommand::Ask(text)) => {
                let limits = dialect::Limits::default();
                let query = dialect::parse(&text, client.dialect(), &limits, &self.path(client))?;
                Box::pin(self.make_plan(query, client)).await
            }
            Parsed::Session(command) => Ok(Plan::Session { command, parameters }),
            Parsed::Query(query) => self.plan_query(*query, parameters, client, None).await,
            Parsed::Copy(mut copy) => {
                if client.dialect() == Dialect::Postgres {
                    copy::leave_out_generated(&self.tables, &mut copy)?;
                }
                match *copy {
                    Copy { query: Some(query), place: Place::Client, format: FileFormat::Rows(format), .. } => {
                        self.plan_query(*query, parameters, client, Some(format)).await
                    }
                    copy => Ok(Plan::Other(ParsedStatement { parsed: Parsed::Copy(Box::new(copy)), parameters })),
                }
            }
            parsed @ (Parsed::Insert(_) | Parsed::Update(_) | Parsed::Delete(_)) => {
                let state = self.sessions.planning_for(client);
                let short = ShortDml::of(&self.tables, &state, &parsed, client.types())?;
                let asked = if parameters > 0 { self.asked_by_change(&parsed, client).await } else { Vec::new() };
                let joined = joined::of_statement(&state, &self.tables, client, &parsed).await?;
                Ok(Plan::Change { statement: ParsedStatement { parsed, parameters }, short, asked, joined })
            }
            parsed => Ok(Plan::Other(ParsedStatement { parsed, parameters })),
        }
    }

    /// The types of parameters within the expressions of a change, as the query reports them that
    /// finds the rows to change.
    async fn asked_by_change(&self, parsed: &Parsed, client: &ClientContext) -> Vec<Option<ParameterType>> {
        let query = match parsed {
            Parsed::Update(update) => {
                let alias = update.alias.as_deref().unwrap_or_else(|| dialect::schema_of(&update.table).1);
                let is_computed = |expr: &&Expr| !is_default(expr) && parameter(expr).is_none();
                let items: Vec<Expr> =
                    update.assignments.iter().map(|(_, expr)| expr).filter(is_computed).cloned().collect();
                let query = select::entries(&update.table, alias, &items, update.selection.as_ref());
                query.map(|query| select::joined(query, update.with.as_ref(), &update.from))
            }
            Parsed::Delete(delete) => {
                let alias = delete.alias.as_deref().unwrap_or_else(|| dialect::schema_of(&delete.table).1);
                let query = select::entries(&delete.table, alias, &[], delete.selection.as_ref());
                query.map(|query| select::joined(query, delete.with.as_ref(), &delete.using))
            }
            Parsed::Insert(Insert { source: Some(source), .. }) => Ok((**source).clone()),
            _ => return Vec::new(),
        };
        let Ok(mut query) = query else { return Vec::new() };
        // Errors are reported when the statement runs.
        if scope::resolve(&self.tables, client, &mut query).is_err() {
            return Vec::new();
        }
        name_columns(&mut query, &|name| self.tables.visible_columns(name));
        let state = self.sessions.planning_for(client);
        let planned = plan_rewritten(&state, &self.tables, client, query).await;
        let Ok(plan) = planned else { return Vec::new() };
        let types = parameter_types(&plan).and_then(|types| reported_parameter_types(&plan, &types));
        let mut types = types.unwrap_or_default();
        if let Parsed::Insert(insert) = parsed {
            self.give_columns(insert, &plan, &mut types);
        }
        types
    }

    /// Gives parameters that are columns of the inserted rows the types of their columns.
    fn give_columns(&self, insert: &Insert, plan: &LogicalPlan, types: &mut [Option<ParameterType>]) {
        let Ok(Some(mapped)) = self.tables.find(&insert.table) else { return };
        let Ok(targets) = target_columns(&mapped.mapping, &insert.columns) else { return };
        for (item, target) in items_of(plan).iter().zip(targets) {
            if let PlannedExpr::Placeholder(placeholder) = unaliased(item)
                && let Some(number) = placeholder.id.strip_prefix('$').and_then(|number| number.parse::<usize>().ok())
                && let Some(place @ None) = number.checked_sub(1).and_then(|at| types.get_mut(at))
            {
                *place = mapped.mapping.parameter_type(target);
            }
        }
    }

    async fn plan_query(
        &self,
        query: Query,
        parameters: usize,
        client: &ClientContext,
        copy: Option<CopyFormat>,
    ) -> Result<Plan, SqlError> {
        let state = self.sessions.planning_for(client);
        let mut planned = plan_query(&state, &self.tables, client, query).await?;
        planned.parameters.resize(parameters, None);
        planned.reported_parameters.resize(parameters, None);
        // A plan with unknown parameter types cannot be optimized yet.
        let optimized = state.optimize(&planned.plan).ok();
        if let Some(optimized) = &optimized {
            // Type coercion decides the final types.
            planned.columns = columns_after(optimized, &planned.columns);
        }
        let short = optimized.as_ref().and_then(|plan| ShortQuery::of(&state, &planned, plan));
        let optimized = optimized.filter(|_| planned.parameters.is_empty());
        Ok(Plan::Query { planned, optimized, short, copy })
    }
}
