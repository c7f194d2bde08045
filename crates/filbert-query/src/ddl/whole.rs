//! Claims of all rows of a table of a cluster. Statements of other members that write its rows wait
//! meanwhile.

use std::time::{Duration, Instant};

use filbert_functions::ending::{self, Limits};
use filbert_grid::Map;
use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::replication::WholeClaim;

use crate::dml::apply::PAUSE;

/// Claims all rows of a map, once nobody else holds one of them, for at most `wait_ms`
/// milliseconds.
///
/// # Errors
/// Others hold rows for too long, the statement was ended, or the map was destroyed or replaced.
pub(super) async fn claim(map: &Map, wait_ms: i64) -> Result<WholeClaim<'_>, SqlError> {
    let until = Instant::now() + Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0));
    let mut claim = map.whole_claim();
    while !claim.attempt()? {
        check_limits()?;
        if Instant::now() >= until {
            let text = format!("rows of {:?} are locked by clients, or changed by statements", map.name());
            return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("55P03"));
        }
        // A claim of all keys does not say which of them is held, so there is no key to wait for.
        tokio::time::sleep(PAUSE).await;
    }
    Ok(claim)
}

/// Fails if the statement was cancelled or is late.
pub(super) fn check_limits() -> Result<(), SqlError> {
    match ending::limits().filter(Limits::are_over) {
        Some(limits) => Err(limits.why_over()),
        None => Ok(()),
    }
}
