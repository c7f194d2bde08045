//! The statement context of functions, beyond their arguments: session, time zone, start time,
//! limits.
//!
//! A plan is cached for all sessions that send the same text. Values that depend on the session are
//! therefore looked up at run time, in the settings of the plan's DataFusion session.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use datafusion::common::config::ConfigOptions;
use filbert_data::dates::Zone;
use filbert_dialect::catalog_of;
use filbert_grid::query::{Dialect, Session};

use crate::ending::Limits;
use crate::settings::{self, InSettings};

/// The session, the start time and the limits of a statement.
#[derive(Clone, Debug)]
pub struct StatementContext {
    session: Option<Arc<Session>>,
    /// The dialect, if it is known without a session.
    dialect: Option<Dialect>,
    /// The time zone that a plan was made for. Sessions may have another one when they run it.
    planned_zone: Option<Zone>,
    /// The start time of the statement; `None` outside of statements.
    began: Option<DateTime<Utc>>,
    /// The limits that end the statement early.
    limits: Option<Limits>,
    /// The maximum size of the results of one call for one batch of rows, in bytes.
    results_bytes_max: usize,
}

impl StatementContext {
    /// The context of a statement that begins now.
    pub fn new(session: Option<Arc<Session>>, results_bytes_max: usize) -> StatementContext {
        StatementContext {
            session,
            dialect: None,
            planned_zone: None,
            began: Some(Utc::now()),
            limits: None,
            results_bytes_max,
        }
    }

    /// The context of expressions that are computed for many statements.
    pub fn lasting(dialect: Dialect, results_bytes_max: usize) -> StatementContext {
        StatementContext {
            session: None,
            dialect: Some(dialect),
            planned_zone: None,
            began: None,
            limits: None,
            results_bytes_max,
        }
    }

    /// The context of a plan that is made for a session and runs later, also for other sessions
    /// with its time zone.
    pub fn planning(session: Option<&Arc<Session>>, dialect: Dialect, results_bytes_max: usize) -> StatementContext {
        let zone = StatementContext::new(session.cloned(), results_bytes_max).zone();
        StatementContext { planned_zone: Some(zone), ..StatementContext::lasting(dialect, results_bytes_max) }
    }

    /// The context from the settings of a plan's session.
    pub fn of(options: &ConfigOptions) -> Option<&StatementContext> {
        settings::find(options)
    }

    /// Returns this context with these limits of the statement.
    pub fn ended_by(self, limits: Option<Limits>) -> StatementContext {
        StatementContext { limits, ..self }
    }

    /// The limits that end the statement early.
    pub fn limits(&self) -> Option<&Limits> {
        self.limits.as_ref()
    }

    /// The session of the statement.
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }

    /// The maximum size of the results of one call for one batch of rows, in bytes.
    pub fn results_bytes_max(&self) -> usize {
        self.results_bytes_max
    }

    /// The dialect of the statement.
    pub fn dialect(&self) -> Option<Dialect> {
        self.session.as_ref().map(|session| session.dialect()).or(self.dialect)
    }

    /// The time zone of timestamps.
    pub fn zone(&self) -> Zone {
        if let Some(zone) = &self.planned_zone {
            return zone.clone();
        }
        let session = self.session.as_ref().filter(|session| session.dialect() == Dialect::Postgres);
        let zone = session.and_then(|session| session.setting("timezone"));
        zone.and_then(|zone| Zone::of_setting(&zone)).unwrap_or(Zone::UTC)
    }

    /// The start time of the transaction, or of the statement outside of one.
    pub fn transaction_began(&self) -> DateTime<Utc> {
        let began = self.session.as_ref().and_then(|session| session.transaction_began_us());
        began.and_then(DateTime::from_timestamp_micros).unwrap_or_else(|| self.now())
    }

    /// The start time of the statement.
    pub fn now(&self) -> DateTime<Utc> {
        self.began.unwrap_or_else(Utc::now)
    }
}

impl InSettings for StatementContext {
    const NAME: &'static str = "statement_context";
}

/// The dialect of the statements that are planned with these settings.
pub fn dialect_of_options(options: &ConfigOptions) -> Dialect {
    let catalog = &options.catalog.default_catalog;
    let is_one = |dialect: &Dialect| catalog_of(*dialect) == catalog;
    [Dialect::Crate, Dialect::Postgres].into_iter().find(is_one).unwrap_or(Dialect::Hazelcast)
}
