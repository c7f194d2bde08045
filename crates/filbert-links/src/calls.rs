//! Calls: finds or creates the link to a member, and dials if the link has no connection.

use std::sync::Arc;

use bytes::Bytes;
use filbert_cluster::{BoxFuture, MemberId};

use crate::peer_link::{PeerLink, Target};
use crate::shared::Shared;
use crate::{Channel, Kind, LinkError, Refused, dial};

/// Queues a request before it returns, so that requests have the order of the calls.
pub(crate) fn call(
    shared: &Arc<Shared>,
    to: MemberId,
    channel: Channel,
    request: Bytes,
) -> BoxFuture<Result<Bytes, LinkError>> {
    match link_to(shared, to, channel.kind()) {
        Ok(link) => call_on(shared, &link, channel, request),
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

/// Like [`call`], on a given link, which may exist only for this call.
pub(crate) fn call_on(
    shared: &Arc<Shared>,
    link: &Arc<PeerLink>,
    channel: Channel,
    request: Bytes,
) -> BoxFuture<Result<Bytes, LinkError>> {
    let sent = match shared.member.get() {
        _ if shared.has_stopped() => Err(LinkError::Stopped),
        None if channel != Channel::Join => Err(Refused::NoMember(channel.kind()).into()),
        _ => link.call(&shared.settings, channel, request),
    };
    match sent {
        Ok(sent) => {
            if sent.needs_connection {
                // A runtime that shuts down drops the task, which reports its end to the link.
                shared.spawn(dial::run(Arc::clone(link), Arc::clone(shared)));
            }
            let answer = sent.answer;
            Box::pin(async move { answer.await.unwrap_or(Err(LinkError::Broken)) })
        }
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

fn link_to(shared: &Shared, to: MemberId, kind: Kind) -> Result<Arc<PeerLink>, LinkError> {
    if let Some(link) = shared.links.read().get(&(to, kind)) {
        return Ok(Arc::clone(link));
    }
    let mut links = shared.links.write();
    // Checked under the lock: an address is removed before its links are.
    if !shared.addresses.read().contains_key(&to) {
        return Err(LinkError::NoAddress);
    }
    let new = || Arc::new(PeerLink::new(Target::Member(to), kind, &shared.service));
    Ok(Arc::clone(links.entry((to, kind)).or_insert_with(new)))
}
