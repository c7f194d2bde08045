//! How the text of a statement becomes a plan: parsed, planned as far as it can be without its parameters, and kept.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Expr, Query};
use filbert_data::FieldType;
use filbert_dialect::{self as dialect, Copy, FileFormat, Insert, Parsed, ParsedStatement, Place, SessionCommand};
use filbert_functions::ending;
use filbert_functions::error::of_datafusion;
use filbert_grid::layout_changes;
use filbert_grid::query::{CopyFormat, SqlError};

use crate::asker::{Asker, plan_key};
use crate::dml::literals::{is_default, parameter};
use crate::dml::select;
use crate::parts::Parts;
use crate::plan::columns::name_columns;
use crate::plan::planner::{columns_after, parameter_types, plan_query, plan_rewritten, told_parameter_types};
use crate::plan::scope;
use crate::plans::Plan;
use crate::short::{ShortDml, ShortQuery};
use crate::template::Template;

/// How often a statement is planned anew because the catalog changed meanwhile.
const ATTEMPTS_MAX: usize = 3;

/// Bytes of the literals of a plan that is kept, at most: what is computed while a statement is planned may be larger than its text.
const LITERALS_BYTES_MAX: usize = 128 << 10;

impl Parts {
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
            self.plans.texts(asker.dialect()).keep(&key, version, plan.clone());
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
        let templates = self.plans.templates(asker.dialect());
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
