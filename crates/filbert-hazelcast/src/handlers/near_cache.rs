//! The consistency of clients' near caches: invalidations, and metadata for the detection of missed
//! invalidations.

use std::sync::Arc;

use filbert_grid::{ClusterView, Invalidation, InvalidationSink};
use filbert_wire::{
    CorrelationId, Event, Message, MessageId, Response,
    table::map::{add_near_cache_invalidation_listener, fetch_near_cache_invalidation_metadata},
};

use crate::{client_link::ClientLink, failure::Outcome, row::Row, session::Session};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (add_near_cache_invalidation_listener::ID, Row::Served(handle_add)),
    (fetch_near_cache_invalidation_metadata::ID, Row::Served(handle_fetch_metadata)),
];

/// Sends invalidations to one client. Called under a partition's lock.
struct ToClient {
    link: Arc<ClientLink>,
    correlation: CorrelationId,
}

impl InvalidationSink for ToClient {
    fn invalidate(&self, invalidation: &Invalidation<'_>) {
        let message = add_near_cache_invalidation_listener::IMapInvalidationEvent {
            key: invalidation.key,
            source_uuid: invalidation.source,
            partition_uuid: invalidation.partition_uuid,
            sequence: invalidation.sequence,
        };
        let partition = invalidation.partition.0.cast_signed();
        self.link.outbox.append(|out| message.encode(self.correlation, partition, out));
    }
}

fn handle_add(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: add_near_cache_invalidation_listener::Request<'_> = message.decode()?;
    let correlation = message.correlation_id();
    let connection = session.connection_id();
    let sink = Arc::new(ToClient { link: session.link.clone(), correlation });
    let id = session.map(request.name)?.add_invalidation_listener(connection, sink)?;
    add_near_cache_invalidation_listener::Response { response: id.0 }.encode(correlation, &mut session.out);
    Ok(())
}

fn handle_fetch_metadata(session: &mut Session, message: &Message<'_>) -> Outcome {
    // The request names this member. It answers for the partitions that it leads, as the other
    // members do.
    let request: fetch_near_cache_invalidation_metadata::Request<'_> = message.decode()?;
    let metadata = session.grid.invalidation_metadata(request.names);
    let (view, itself) = (session.grid.cluster().map(|cluster| cluster.view()), session.grid.member_uuid());
    let is_led = |partition: filbert_grid::PartitionId| {
        let leader = |view: &Arc<ClusterView>| view.leaders.get(partition.0 as usize).copied().flatten();
        view.as_ref().is_none_or(|view| leader(view) == Some(itself))
    };
    let number = |partition: filbert_grid::PartitionId| partition.0.cast_signed();
    let sequences = |of: &[(filbert_grid::PartitionId, i64)]| {
        of.iter().filter(|(id, _)| is_led(*id)).map(|(id, at)| (number(*id), *at)).collect()
    };
    fetch_near_cache_invalidation_metadata::Response {
        name_partition_sequence_list: metadata
            .sequences
            .iter()
            .map(|(name, of)| (name.as_str(), sequences(of)))
            .collect(),
        partition_uuid_list: metadata
            .partition_uuids
            .iter()
            .filter(|(id, _)| is_led(*id))
            .map(|(id, uuid)| (number(*id), *uuid))
            .collect(),
    }
    .encode(message.correlation_id(), &mut session.out);
    Ok(())
}
