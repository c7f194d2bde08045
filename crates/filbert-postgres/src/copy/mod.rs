//! `COPY FROM STDIN` and `COPY TO STDOUT`.

pub(crate) mod out;

use filbert_data::Value;
use filbert_grid::query::CopyFormat;

use crate::{
    error::{Outcome, PgError, sqlstate},
    session::Session,
};

impl Session {
    pub(crate) async fn copy_in(&mut self, _text: &str, _values: &[Value<'_>], _format: &CopyFormat) -> Outcome {
        Err(PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, "COPY FROM STDIN is not supported").into())
    }

    pub(crate) async fn copy_out(&mut self, _text: &str, _values: &[Value<'_>], _format: &CopyFormat) -> Outcome {
        Err(PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, "COPY TO STDOUT is not supported").into())
    }
}
