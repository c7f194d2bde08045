//! Functions about the session and the current time.

use filbert_data::Value;
use filbert_functions::error::carried;
use filbert_functions::native::{
    Call, Native, Take, bool, failed, int4, int8, now, of_text, pure, text, texts, timestamptz,
};

use crate::server::ServerOfSession;
use crate::session::{check, database, search_path, value_of, version};
use crate::system::default_schema;

pub(super) const FUNCTIONS: &[Native] = &[
    now("version", &[], text, |call| Ok(of_text(version(call.dialect)))),
    now("current_database", &[], text, |call| Ok(of_text(database(call.session(), call.dialect)))),
    now("current_catalog", &[], text, |call| Ok(of_text(database(call.session(), call.dialect)))),
    now("current_schema", &[], text, |call| Ok(schema(call))),
    now("current_schemas", &[Take::Bool], texts, |call| {
        let path = search_path(call.session(), call.dialect, call.bool(0));
        Ok(Value::Array(path.into_iter().map(of_text).collect()))
    }),
    now("current_user", &[], text, |call| Ok(user(call))),
    now("session_user", &[], text, |call| Ok(user(call))),
    now("current_role", &[], text, |call| Ok(user(call))),
    now("user", &[], text, |call| Ok(user(call))),
    now("current_setting", &[Take::Text, Take::Bool], text, current_setting).least(1),
    now("set_config", &[Take::Text, Take::Text, Take::Bool], text, set_config),
    now("pg_backend_pid", &[], int4, |call| Ok(Value::Int32(call.session().map_or(0, |session| session.process())))),
    pure("pg_is_in_recovery", &[], bool, |_| Ok(Value::Boolean(false))),
    pure("pg_is_wal_replay_paused", &[], bool, |_| Ok(Value::Boolean(false))),
    pure("pg_jit_available", &[], bool, |_| Ok(Value::Boolean(false))),
    pure("pg_my_temp_schema", &[], int8, |_| Ok(Value::Int64(0))),
    pure("pg_is_other_temp_schema", &[Take::Int], bool, |_| Ok(Value::Boolean(false))),
    pure("inet_client_addr", &[], text, |_| Ok(Value::Null)),
    pure("inet_server_addr", &[], text, |_| Ok(Value::Null)),
    pure("inet_client_port", &[], int4, |_| Ok(Value::Null)),
    pure("inet_server_port", &[], int4, |_| Ok(Value::Null)),
    pure("pg_client_encoding", &[], text, |_| Ok(of_text("UTF8"))),
    pure("getdatabaseencoding", &[], text, |_| Ok(of_text("UTF8"))),
    now("txid_current", &[], int8, |_| Ok(Value::Int64(1))),
    now("pg_postmaster_start_time", &[], timestamptz, |call| {
        let started = ServerOfSession::of(call.options()).map(|server| server.started.fixed_offset());
        Ok(started.map_or(Value::Null, Value::TimestampTz))
    }),
    now("pg_conf_load_time", &[], timestamptz, |call| {
        let started = ServerOfSession::of(call.options()).map(|server| server.started.fixed_offset());
        Ok(started.map_or(Value::Null, Value::TimestampTz))
    }),
    now("pg_cancel_backend", &[Take::Int], bool, |call| {
        let process = call.int(0).and_then(|process| i32::try_from(process).ok()).unwrap_or(0);
        Ok(Value::Boolean(
            ServerOfSession::of(call.options()).is_some_and(|server| server.jobs.cancel_process(process)),
        ))
    }),
    now("pg_terminate_backend", &[Take::Int], bool, |call| {
        let process = call.int(0).and_then(|process| i32::try_from(process).ok()).unwrap_or(0);
        Ok(Value::Boolean(
            ServerOfSession::of(call.options()).is_some_and(|server| server.jobs.cancel_process(process)),
        ))
    }),
];

fn user(call: &Call<'_>) -> Value<'static> {
    of_text(call.session().map_or("filbert", |session| session.user()))
}

/// The first schema of the search path, or the default schema if the path is empty.
fn schema(call: &Call<'_>) -> Value<'static> {
    let path = search_path(call.session(), call.dialect, false);
    of_text(path.into_iter().next().unwrap_or_else(|| default_schema(call.dialect).to_owned()))
}

fn current_setting(call: &Call<'_>) -> datafusion::common::Result<Value<'static>> {
    match value_of(call.session(), call.dialect, call.text(0)) {
        Some(value) => Ok(of_text(value)),
        None if call.bool(1) => Ok(Value::Null),
        None => Err(carried(crate::session::unknown(call.text(0)))),
    }
}

fn set_config(call: &Call<'_>) -> datafusion::common::Result<Value<'static>> {
    let Some(session) = call.session() else { return Err(failed("there is no session to set anything for")) };
    let value = check(call.text(0), call.text(1), call.dialect).map_err(carried)?;
    session.set(call.text(0), Some(value.clone())).map_err(carried)?;
    Ok(of_text(value))
}
