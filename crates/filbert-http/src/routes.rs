//! The routes of paths, and the handlers of small responses.

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

use crate::connection::ConnectionState;
use crate::failure::Failure;
use crate::shared::Shared;
use crate::user::User;
use crate::{cluster, console, console_sources, metrics, origin, sql, user};

/// The version of CrateDB that the responses follow. Clients read it to know which features they
/// can use.
const CRATE_VERSION: &str = "5.10.0";

/// All routes.
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

/// Counts responses by path and status.
async fn count(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let uri = request.uri().clone();
    let response = next.run(request).await;
    shared.counters.answered(uri.path(), response.status());
    response
}

/// Checks the origin and the user of a request. Refused requests get no further.
async fn identify(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let config = &shared.config;
    let address = request
        .extensions()
        .get::<Arc<ConnectionState>>()
        .map_or(Ipv4Addr::UNSPECIFIED.into(), |connection| connection.address());
    let user = origin::check(request.method(), request.headers(), config)
        .and_then(|()| user::user_of(request.headers(), &config.users, &shared.guesses, address));
    match user {
        Ok(name) => {
            request.extensions_mut().insert(User(name));
            next.run(request).await
        }
        Err(failure) => {
            tracing::info!("request refused: {}", failure.message());
            if let Some(connection) = request.extensions().get::<Arc<ConnectionState>>() {
                connection.set_refused_body();
            }
            failure.into_response()
        }
    }
}

/// Server information for tools, or the console for browsers. `HEAD` has the same response without
/// its body.
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

/// Whether the member takes operations. A member that does not may be restarted. No password is
/// needed.
async fn health(State(shared): State<Arc<Shared>>) -> Response {
    state(&shared, if shared.is_serving() { Ok("serving") } else { Err("stopping") })
}

/// Whether clients should use this member: it takes operations and will continue to. A member that
/// is about to leave its cluster still serves, and load balancers should send clients to other
/// members.
async fn readiness(State(shared): State<Arc<Shared>>) -> Response {
    let is = match (shared.is_serving(), shared.is_leaving()) {
        (true, false) => Ok("serving"),
        (true, true) => Err("leaving"),
        (false, _) => Err("stopping"),
    };
    state(&shared, is)
}

/// A response with status 200 or 503.
fn state(shared: &Shared, is: Result<&str, &str>) -> Response {
    let (status, word) = match is {
        Ok(word) => (StatusCode::OK, word),
        Err(word) => (StatusCode::SERVICE_UNAVAILABLE, word),
    };
    let body = json!({"status": word, "name": node_name(shared), "version": env!("CARGO_PKG_VERSION")});
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn blobs(Extension(connection): Extension<Arc<ConnectionState>>) -> Failure {
    connection.set_refused_body();
    Failure::unsupported("blobs are not served; values of up to 1 GiB can be kept in tables and maps").closing()
}

async fn nothing(Extension(connection): Extension<Arc<ConnectionState>>, request: Request) -> Failure {
    connection.set_refused_body();
    Failure::no_such_path(request.uri().path())
}

async fn wrong_method(method: Method, request: Request) -> Failure {
    let expected = if request.uri().path().starts_with("/_sql") { "POST" } else { "GET" };
    Failure::wrong_method(method.as_str(), expected)
}
