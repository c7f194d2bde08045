//! Settings and running statements.

use super::super::relation::{Relation, Rows, row};
use super::super::scene::Scene;
use crate::session;

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "pg_settings",
        columns: "name text, setting text, unit text, category text, short_desc text, extra_desc text, context text, vartype text, \
                  source text=default, min_val text, max_val text, enumvals _text, boot_val text, reset_val text, sourcefile text, \
                  sourceline int4, pending_restart bool=f",
        rows: settings,
    },
    Relation {
        name: "pg_stat_activity",
        columns: "datid oid=5, datname name, pid int4, leader_pid int4, usesysid oid=10, usename name, application_name text, \
                  client_addr text, client_hostname text, client_port int4, backend_start timestamptz, xact_start timestamptz, \
                  query_start timestamptz, state_change timestamptz, wait_event_type text, wait_event text, state text=active, \
                  backend_xid xid, backend_xmin xid, query_id int8, query text, backend_type text=client backend",
        rows: activity,
    },
];

fn settings(scene: &Scene, rows: &mut Rows<'_>) {
    for setting in session::SETTINGS {
        let default = setting.default_value(scene.session.as_deref(), scene.dialect);
        let value = session::value_of(scene.session.as_deref(), scene.dialect, setting.name);
        let value = value.unwrap_or_else(|| default.clone());
        row!(rows,
            name: session::shown_name(setting.name),
            source: if value == default { "default" } else { "session" },
            setting: value,
            unit: setting.unit(),
            category: setting.category,
            short_desc: setting.description,
            context: if setting.is_fixed() { "internal" } else { "user" },
            vartype: setting.type_name(),
            boot_val: default.clone(),
            reset_val: default,
        );
    }
}

/// The running statements. Idle sessions are not listed.
fn activity(scene: &Scene, rows: &mut Rows<'_>) {
    for job in scene.server.jobs.running() {
        let started = job.started.timestamp_micros();
        row!(rows,
            datname: scene.database(),
            pid: i64::from(job.process),
            usename: job.user,
            application_name: job.application,
            query_start: started,
            state_change: started,
            query: job.text.as_ref(),
        );
    }
}
