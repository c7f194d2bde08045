//! The slot of a request among a connection's requests that other threads answer.

use std::sync::Arc;

use filbert_grid::{ErrorKind, query::Ending};
use filbert_wire::CorrelationId;

use crate::{client_link::ClientLink, failure::Failure, replies::Replies};

/// The slot of a request that another thread answers. The number of slots of a connection is
/// limited. Dropping a slot releases it.
pub(crate) struct QuerySlot {
    link: Arc<ClientLink>,
    /// Whether other requests wait until this one is answered.
    parks: bool,
}

impl QuerySlot {
    /// Takes one of the connection's `limit` places, if one is left.
    pub(crate) fn take(link: &Arc<ClientLink>, limit: usize) -> Result<QuerySlot, Box<Failure>> {
        if link.begin_query() >= limit {
            link.end_query();
            let text =
                format!("this connection already has {limit} queries that run, the most that queries_max allows");
            return Err(Failure::new(ErrorKind::LimitReached, text));
        }
        Ok(QuerySlot { link: link.clone(), parks: false })
    }

    /// Lets all other requests of the connection wait until this one is answered.
    pub(crate) fn park(&mut self) {
        self.parks = true;
        self.link.park();
    }

    /// The connection.
    pub(crate) fn link(&self) -> &Arc<ClientLink> {
        &self.link
    }

    /// Whether the client no longer waits for the reply.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.link.is_closing()
    }

    /// The same check as a function, which a running query calls.
    pub(crate) fn ending(&self) -> Ending {
        let link = self.link.clone();
        Arc::new(move || link.is_closing())
    }

    /// Sends the reply, and releases the slot.
    pub(crate) fn reply(self, correlation: CorrelationId, reply: Replies, reply_bytes_max: usize) {
        if !self.link.outbox.append_reply(reply, reply_bytes_max) {
            let text = format!(
                "more than {reply_bytes_max} bytes of replies (reply_bytes_max) wait for this client to read them"
            );
            self.link.outbox.append(|out| Failure::new(ErrorKind::LimitReached, text).encode(correlation, out));
        }
    }
}

impl Drop for QuerySlot {
    fn drop(&mut self) {
        self.link.end_query();
        if self.parks {
            self.link.unpark();
        }
    }
}
