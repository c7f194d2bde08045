//! The response with statistics as JSON.

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// Writes statistics as JSON. They are valid only at this time: caches must not store them.
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
