//! The web console: one page that the program serves itself, and the figures that the page asks for.
//!
//! ```text
//!  GET /_filbert/console          the page (also `/`, for browsers: see `wants_page`)
//!  GET /_filbert/assets/{name}    its scripts, styles and icon, built into the program
//!  GET /_filbert/status?since=ms  figures now, and samples taken since a moment
//!  GET /_filbert/map?name=..      columns, indexes and settings of one map
//! ```
//!
//! Statements that the page runs go to `POST /_sql` like everyone's: the console has no door of its own to the data. Figures are
//! gathered by one sampler ([`sampler`]), whoever looks and however many do, so that looking does not slow the member down.

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
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use filbert_grid::Grid;
use serde::{Deserialize, Serialize};

pub(crate) use assets::{page, wants_page};
pub(crate) use sources::{Sources, Warning, WarningLevel};

use sampler::Sampler;

struct Console {
    grid: Arc<Grid>,
    sources: Sources,
    sampler: Arc<Sampler>,
}

/// The console's routes. Must be called within a tokio runtime: the sampler is a task of it, which ends with the routes.
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
    /// Unix milliseconds; samples up to it are left out.
    since: Option<i64>,
}

async fn status(State(console): State<Arc<Console>>, Query(query): Query<Since>) -> Response {
    json(&status::status(&console.grid, &console.sources, &console.sampler, query.since.unwrap_or(0)))
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Looks at every partition, so it runs beside the network tasks.
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

/// Figures are of this moment: nobody on the way may keep them.
pub(crate) fn json<T: Serialize>(body: &T) -> Response {
    match serde_json::to_vec(body) {
        Ok(body) => {
            let headers = [
                (CONTENT_TYPE, "application/json; charset=utf-8"),
                (CACHE_CONTROL, "no-store"),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ];
            (headers, body).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests;
