//! One statement for many rows of values.

use std::sync::Arc;
use std::time::Instant;

use axum::response::Response;
use filbert_grid::query::{QueryEngine, Session};

use crate::body::Received;
use crate::failure::Failure;
use crate::shared::Shared;

pub(crate) async fn answer(
    _shared: &Arc<Shared>,
    _engine: &Arc<dyn QueryEngine>,
    _session: &Arc<Session>,
    _text: String,
    _received: Received,
    _started: Instant,
) -> Result<Response, Failure> {
    Err(Failure::unsupported("bulk_args"))
}
