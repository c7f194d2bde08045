//! Messages of clients that are not about maps: the cluster's view, proxies, heartbeats,
//! statistics.

use std::sync::Arc;

use filbert_grid::{ListenerId, ObjectEvent};
use filbert_wire::{
    Event, Message, MessageId, Response, Uuid,
    structure::{DistributedObjectInfo, Version},
    table::client::{
        add_cluster_view_listener, add_cp_group_view_listener, add_distributed_object_listener, add_migration_listener,
        add_partition_lost_listener, create_proxies, create_proxy, deploy_classes, destroy_proxy,
        get_distributed_objects, local_backup_listener, ping, remove_distributed_object_listener,
        remove_migration_listener, remove_partition_lost_listener, statistics, tpc_authentication,
        trigger_partition_assignment,
    },
};

use crate::{
    failure::Outcome,
    losses::LossScope,
    row::{Row, SHIPS_CODE},
    session::Session,
    view::{MEMBER_VERSION, View},
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (add_cluster_view_listener::ID, Row::Served(handle_add_cluster_view_listener)),
    (create_proxy::ID, Row::Served(handle_create_proxy)),
    (create_proxies::ID, Row::Served(handle_create_proxies)),
    (destroy_proxy::ID, Row::Served(handle_destroy_proxy)),
    (get_distributed_objects::ID, Row::Served(handle_get_distributed_objects)),
    (add_distributed_object_listener::ID, Row::Served(handle_add_distributed_object_listener)),
    (remove_distributed_object_listener::ID, Row::Served(handle_remove_distributed_object_listener)),
    (add_partition_lost_listener::ID, Row::Served(handle_add_partition_lost_listener)),
    (remove_partition_lost_listener::ID, Row::Served(handle_remove_partition_lost_listener)),
    (add_migration_listener::ID, Row::Served(handle_add_migration_listener)),
    (remove_migration_listener::ID, Row::Served(handle_remove_migration_listener)),
    (local_backup_listener::ID, Row::Served(handle_local_backup_listener)),
    (add_cp_group_view_listener::ID, Row::Served(handle_add_cp_group_view_listener)),
    (ping::ID, Row::Served(handle_ping)),
    (statistics::ID, Row::Served(handle_statistics)),
    (trigger_partition_assignment::ID, Row::Served(handle_trigger_partition_assignment)),
    (deploy_classes::ID, Row::Refused(SHIPS_CODE)),
    (tpc_authentication::ID, Row::Refused("this server offers no thread-per-core ports")),
];

fn handle_add_cluster_view_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    message.decode::<add_cluster_view_listener::Request>()?;
    let correlation = message.correlation_id();
    session.views.attach(&session.grid);
    let view = match session.grid.cluster() {
        None => session.view(),
        Some(cluster) => {
            View::new(session.views.listen(&session.link, correlation, cluster), session.grid.member_uuid())
        }
    };
    let (members_version, leaders_version) = (view.snapshot().members_version, view.snapshot().leaders_version);
    // Clients wait for the response to the registration, and expect to know the members by then.
    add_cluster_view_listener::MembersViewEvent { version: members_version, member_infos: view.members() }.encode(
        correlation,
        -1,
        &mut session.out,
    );
    add_cluster_view_listener::PartitionsViewEvent { version: leaders_version, partitions: view.partitions() }.encode(
        correlation,
        -1,
        &mut session.out,
    );
    add_cluster_view_listener::MemberGroupsViewEvent { version: members_version, member_groups: Vec::new() }.encode(
        correlation,
        -1,
        &mut session.out,
    );
    let version = Version { major: MEMBER_VERSION.major, minor: MEMBER_VERSION.minor };
    add_cluster_view_listener::ClusterVersionEvent { version }.encode(correlation, -1, &mut session.out);
    add_cluster_view_listener::Response {}.encode(correlation, &mut session.out);
    Ok(())
}

fn handle_create_proxy(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: create_proxy::Request<'_> = message.decode()?;
    session.grid.create_object(request.service_name, request.name)?;
    create_proxy::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_create_proxies(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: create_proxies::Request<'_> = message.decode()?;
    for (name, service) in request.proxies {
        session.grid.create_object(service, name)?;
    }
    create_proxies::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_destroy_proxy(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: destroy_proxy::Request<'_> = message.decode()?;
    session.grid.destroy_object(request.service_name, request.name)?;
    destroy_proxy::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_get_distributed_objects(session: &mut Session, message: &Message<'_>) -> Outcome {
    message.decode::<get_distributed_objects::Request>()?;
    let objects = session.grid.objects().list();
    let response =
        objects.iter().map(|id| DistributedObjectInfo { service_name: &id.service, name: &id.name }).collect();
    get_distributed_objects::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_add_distributed_object_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    let add_distributed_object_listener::Request { local_only } = message.decode()?;
    let correlation = message.correlation_id();
    let (link, cluster, here) = (session.link.clone(), session.grid.cluster().cloned(), session.grid.member_uuid());
    let sink = move |event: &ObjectEvent<'_>| {
        // A client that has registered at every member is notified of each object once: by the
        // member that has been in the cluster for longest.
        let is_reported_elsewhere = cluster.as_ref().filter(|_| local_only).is_some_and(|cluster| {
            let view = cluster.view();
            view.members.first().is_some_and(|first| first.uuid != here)
        });
        if is_reported_elsewhere {
            return;
        }
        let message = add_distributed_object_listener::DistributedObjectEvent {
            name: event.name,
            service_name: event.service,
            event_type: event.kind.name(),
            source: event.source,
        };
        link.outbox.append(|out| message.encode(correlation, -1, out));
    };
    let response = Uuid::new_v4();
    session.grid.objects().add_listener(ListenerId(response), session.connection_id(), Arc::new(sink))?;
    add_distributed_object_listener::Response { response }.encode(correlation, &mut session.out);
    Ok(())
}

fn handle_remove_distributed_object_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: remove_distributed_object_listener::Request = message.decode()?;
    let response = session.grid.objects().remove_listener(ListenerId(request.registration_id));
    remove_distributed_object_listener::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_add_partition_lost_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    let add_partition_lost_listener::Request { local_only } = message.decode()?;
    let (link, correlation) = (&session.link, message.correlation_id());
    let response = session.views.listen_to_losses(link, correlation, LossScope::AllMaps, local_only, &session.grid)?;
    add_partition_lost_listener::Response { response }.encode(correlation, &mut session.out);
    Ok(())
}

fn handle_remove_partition_lost_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: remove_partition_lost_listener::Request = message.decode()?;
    let response = session.views.forget_losses(request.registration_id);
    remove_partition_lost_listener::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_add_migration_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    let add_migration_listener::Request { local_only } = message.decode()?;
    let correlation = message.correlation_id();
    let response = session.views.listen_to_migrations(&session.link, correlation, local_only, &session.grid)?;
    add_migration_listener::Response { response }.encode(correlation, &mut session.out);
    Ok(())
}

fn handle_remove_migration_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: remove_migration_listener::Request = message.decode()?;
    let response = session.views.forget_migrations(request.registration_id);
    remove_migration_listener::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

// Replies are sent only after replication, and there are no CP groups. So registrations for such
// events are accepted, and no event is ever sent.

/// The id of a listener for events that are never sent. The registration is not stored: its id is
/// derived from the ids of the member and of the message.
fn silent_registration(session: &Session, message: MessageId) -> Uuid {
    Uuid::from_u128(session.grid.member_uuid().as_u128() ^ u128::from(message.0))
}

fn handle_local_backup_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    message.decode::<local_backup_listener::Request>()?;
    let response = silent_registration(session, local_backup_listener::ID);
    local_backup_listener::Response { response }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_add_cp_group_view_listener(session: &mut Session, message: &Message<'_>) -> Outcome {
    message.decode::<add_cp_group_view_listener::Request>()?;
    add_cp_group_view_listener::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_ping(session: &mut Session, message: &Message<'_>) -> Outcome {
    message.decode::<ping::Request>()?;
    ping::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_statistics(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: statistics::Request<'_> = message.decode()?;
    session.grid.clients().set_statistics(session.client, request.client_attributes)?;
    statistics::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_trigger_partition_assignment(session: &mut Session, message: &Message<'_>) -> Outcome {
    // Partitions are assigned without such a request.
    message.decode::<trigger_partition_assignment::Request>()?;
    trigger_partition_assignment::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}
