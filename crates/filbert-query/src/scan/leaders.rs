//! The entries of partitions that this member does not hold, as pages from their leaders.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use filbert_functions::ending;
use filbert_grid::replication::{EntryPage, EntrySelection, LeaderRead};
use filbert_grid::{GridError, Map, PartitionId, ReadView};
use tokio::sync::oneshot;

use crate::scan::access::Access;

/// The number of pages that are requested at a time: the next one arrives while one is read.
const REQUESTED_MAX: usize = 2;

/// A page that was requested.
type Requested = oneshot::Receiver<Result<EntryPage, GridError>>;

/// Pages of entries from leaders.
pub(crate) struct LeaderPages {
    map: Arc<Map>,
    waiting: VecDeque<LeaderRead>,
    requested: VecDeque<(LeaderRead, Requested)>,
}

impl LeaderPages {
    /// The pages of a scan, for the partitions that a view does not have here; `None` if there are
    /// none. `counts` = only the number of entries is wanted.
    pub(crate) fn of(
        map: &Arc<Map>,
        view: &ReadView,
        access: &Access,
        counts: bool,
        is_wanted: &dyn Fn(PartitionId) -> bool,
    ) -> Option<LeaderPages> {
        if view.is_complete() {
            return None;
        }
        let selection = match access {
            Access::All if counts => EntrySelection::Count,
            Access::All => EntrySelection::All,
            Access::Keys(keys) => EntrySelection::Keys(keys.clone()),
            Access::Index { selection, .. } => EntrySelection::Index(selection.clone()),
            Access::Nothing => return None,
        };
        let waiting: VecDeque<LeaderRead> = LeaderRead::beside(map, view, &Arc::new(selection), is_wanted).into();
        (!waiting.is_empty()).then(|| LeaderPages { map: map.clone(), waiting, requested: VecDeque::new() })
    }

    /// Requests the next pages, so that they arrive while other partitions are read here.
    pub(crate) fn request(&mut self) {
        while self.requested.len() < REQUESTED_MAX
            && let Some(read) = self.waiting.pop_front()
        {
            let (sender, page) = oneshot::channel();
            // The scan may have ended.
            self.map.read_at_leader(&read, Box::new(move |page| _ = sender.send(page)));
            self.requested.push_back((read, page));
        }
    }

    /// The next page; `None` at the end.
    ///
    /// # Errors
    /// A leader was not found, or has changed while a partition was read, or the map was destroyed.
    pub(crate) fn poll_page(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<EntryPage, GridError>>> {
        self.request();
        let Some((_, page)) = self.requested.front_mut() else { return Poll::Ready(None) };
        let page = ready!(Pin::new(page).poll(context)).unwrap_or(Err(GridError::NotActive));
        let Some((mut read, _)) = self.requested.pop_front() else { return Poll::Ready(None) };
        let advanced = page.and_then(|page| read.advance(&self.map, &page).map(|goes_on| (page, goes_on)));
        Poll::Ready(Some(match advanced {
            Ok((page, goes_on)) => {
                if goes_on {
                    self.waiting.push_front(read);
                }
                self.request();
                // Another thread has allocated the page, and the statement frees it.
                ending::received(page.bytes());
                Ok(page)
            }
            Err(error) => Err(error),
        }))
    }
}
