//! The web console: one page, which is part of the program, and the statistics that it requests.
//!
//! ```text
//!  GET /_filbert/console          the page (also `/`, for browsers: see `wants_page`)
//!  GET /_filbert/assets/{name}    its scripts, styles and icon, built into the program
//!  GET /_filbert/status?since=ms  current statistics, and the samples after a time
//!  GET /_filbert/map?name=..      columns, indexes and settings of one map
//! ```
//!
//! The page sends its statements to `POST /_sql`, like any other client: the console has no access
//! of its own to the data. One sampler ([`sampler`]) collects the statistics for all viewers, so
//! that many viewers do not slow the member down.

mod assets;
mod latency;
mod machine;
mod maps;
mod sampler;
mod samples;
mod sources;
mod status;
mod warnings;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use filbert_grid::Grid;
use serde::{Deserialize, Serialize};

pub(crate) use assets::{page, wants_page};
pub(crate) use sources::{Sources, Warning, WarningLevel};

use crate::figures::json;
use sampler::Sampler;

struct Console {
    grid: Arc<Grid>,
    sources: Sources,
    sampler: Arc<Sampler>,
}

/// The console's routes. Must be called within a tokio runtime: the sampler runs as a task, which
/// ends when the routes are dropped.
pub(crate) fn routes<S>(grid: Arc<Grid>, sources: Sources) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    let sampler = Sampler::start(&grid);
    Router::new()
        .route("/_filbert/console", get(|headers: HeaderMap| async move { page(&headers) }))
        .route("/_filbert/assets/{name}", get(asset))
        .route("/_filbert/status", get(status))
        .route("/_filbert/map", get(map))
        .with_state(Arc::new(Console { grid, sources, sampler }))
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    assets::asset(&name, &headers)
}

#[derive(Deserialize)]
struct Since {
    /// Unix milliseconds. Samples up to this time are left out.
    since: Option<i64>,
}

async fn status(State(console): State<Arc<Console>>, Query(query): Query<Since>) -> Response {
    json(&status::status(&console.grid, &console.sources, &console.sampler, query.since.unwrap_or(0)))
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Reads every partition. It therefore runs outside of the network tasks.
async fn map(State(console): State<Arc<Console>>, Query(query): Query<Named>) -> Response {
    let details =
        tokio::task::spawn_blocking(move || maps::details(&console.grid, &query.name).ok_or(query.name)).await;
    match details {
        Ok(Ok(details)) => json(&details),
        Ok(Err(name)) => problem(StatusCode::NOT_FOUND, format!("there is no map {name:?}")),
        Err(_) => problem(StatusCode::SERVICE_UNAVAILABLE, "the member is shutting down".to_owned()),
    }
}

fn problem(status: StatusCode, message: String) -> Response {
    #[derive(Serialize)]
    struct Problem {
        error: String,
    }
    (status, json(&Problem { error: message })).into_response()
}

#[cfg(test)]
mod tests;
