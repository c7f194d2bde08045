//! Which path goes where, and the small answers.

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Router};
use serde_json::json;

use crate::connection::Link;
use crate::failure::Failure;
use crate::shared::Shared;
use crate::{cluster, console, console_sources, metrics, origin, sql, user};

/// The version of CrateDB whose answers ours are: clients look at it to know what they may ask.
pub(crate) const CRATE_VERSION: &str = "5.10.0";

/// Who sent a request.
#[derive(Clone, Debug)]
pub(crate) struct User(pub(crate) String);

/// All that is served.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(root))
        .route("/_sql", post(sql::handle))
        .route("/_sql/", post(sql::handle))
        .route("/metrics", get(metrics::handle))
        .route("/_blobs/{*rest}", any(blobs))
        .route("/_filbert/cluster", get(cluster::status).post(cluster::order))
        .merge(console::routes(shared.grid.clone(), console_sources::sources(shared)))
        .method_not_allowed_fallback(wrong_method)
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(shared.clone(), identify))
        .route("/_health", get(health))
        .route("/_ready", get(readiness))
        .layer(middleware::from_fn_with_state(shared.clone(), count))
        .with_state(shared.clone())
}

/// Counts answers by path and status.
async fn count(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let uri = request.uri().clone();
    let response = next.run(request).await;
    shared.counters.answered(uri.path(), response.status());
    response
}

/// Finds out who sends a request, and from where; strangers get no further.
async fn identify(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let config = &shared.config;
    let address = request.extensions().get::<Arc<Link>>().map_or(Ipv4Addr::UNSPECIFIED.into(), |link| link.address());
    let user = origin::check(request.method(), request.headers(), config)
        .and_then(|()| user::user_of(request.headers(), &config.users, &shared.guesses, address));
    match user {
        Ok(name) => {
            request.extensions_mut().insert(User(name));
            next.run(request).await
        }
        Err(failure) => {
            tracing::info!("request refused: {}", failure.message());
            if let Some(link) = request.extensions().get::<Arc<Link>>() {
                link.set_refused_body();
            }
            failure.into_response()
        }
    }
}

/// What tools ask first, and the console for browsers. `HEAD` has the same answer without its body.
async fn root(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if console::wants_page(&headers) {
        return console::page(&headers);
    }
    let is_serving = shared.is_serving();
    let status = if is_serving { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "ok": is_serving,
        "status": status.as_u16(),
        "name": node_name(&shared),
        "cluster_name": shared.grid.cluster_name(),
        "version": {
            "number": CRATE_VERSION,
            "build_hash": concat!("filbert-", env!("CARGO_PKG_VERSION")),
            "build_timestamp": "NA",
            "build_snapshot": false,
            "lucene_version": "NA",
        },
    });
    (status, [(CONTENT_TYPE, "application/json")], format!("{body:#}\n")).into_response()
}

fn node_name(shared: &Shared) -> String {
    shared.config.node_name.clone().unwrap_or_else(|| shared.grid.member_uuid().to_string())
}

/// Whether the member takes operations: one that does not may be started anew. Nobody needs a password for that.
async fn health(State(shared): State<Arc<Shared>>) -> Response {
    state(&shared, if shared.is_serving() { Ok("serving") } else { Err("stopping") })
}

/// Whether clients are to be sent here: the member takes operations, and goes on to. One that is about to leave its cluster serves meanwhile,
/// and whoever sends it clients finds others for them.
async fn readiness(State(shared): State<Arc<Shared>>) -> Response {
    let is = match (shared.is_serving(), shared.is_leaving()) {
        (true, false) => Ok("serving"),
        (true, true) => Err("leaving"),
        (false, _) => Err("stopping"),
    };
    state(&shared, is)
}

/// An answer that says by its status whether it is good.
fn state(shared: &Shared, is: Result<&str, &str>) -> Response {
    let (status, word) = match is {
        Ok(word) => (StatusCode::OK, word),
        Err(word) => (StatusCode::SERVICE_UNAVAILABLE, word),
    };
    let body = json!({"status": word, "name": node_name(shared), "version": env!("CARGO_PKG_VERSION")});
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn blobs(Extension(link): Extension<Arc<Link>>) -> Failure {
    link.set_refused_body();
    Failure::unsupported("blobs are not served; values of up to 1 GiB can be kept in tables and maps").closing()
}

async fn nothing(Extension(link): Extension<Arc<Link>>, request: Request) -> Failure {
    link.set_refused_body();
    Failure::no_such_path(request.uri().path())
}

async fn wrong_method(method: Method, request: Request) -> Failure {
    let expected = if request.uri().path().starts_with("/_sql") { "POST" } else { "GET" };
    Failure::wrong_method(method.as_str(), expected)
}
