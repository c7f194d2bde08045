//! Compact schemas. The cluster must have a schema before values of it are stored. The client sends
//! its schemas again when it connects to a different cluster.

use std::sync::Arc;

use filbert_data::compact::Schema;
use filbert_wire::{
    CorrelationId, Message, Request,
    structure::{FieldDescriptor, Schema as WireSchema},
    table::client::{send_all_schemas, send_schema},
};

use crate::{
    ClientError,
    call::Call,
    connection::Connection,
    error::refuse_error,
    inner::{Inner, Target},
};

fn wire(schema: &Schema) -> WireSchema<'_> {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| FieldDescriptor { field_name: &field.name, kind: field.kind as i32 });
    WireSchema { type_name: schema.type_name(), fields: fields.collect() }
}

/// Sends a schema to the cluster, unless this client has sent it before.
///
/// # Errors
///
/// The request fails.
pub(crate) async fn announce(client: &Arc<Inner>, schema: &Schema) -> Result<(), ClientError> {
    let id = schema.fingerprint();
    if client.schemas.lock().contains_key(&id) {
        return Ok(());
    }
    let request = send_schema::Request { schema: wire(schema) };
    Call::send(client, Target::Any, &request, |answer| Ok(answer.decode::<send_schema::Response>().map(drop)?)).await?;
    client.schemas.lock().insert(id, Arc::new(schema.clone()));
    Ok(())
}

/// Sends all schemas again, on a connection to a cluster that may not have them. Calls use the
/// connection only afterwards.
pub(crate) async fn announce_all(client: &Inner, connection: &Arc<Connection>) -> Result<(), ClientError> {
    let known: Vec<Arc<Schema>> = client.schemas.lock().values().cloned().collect();
    if known.is_empty() {
        return Ok(());
    }
    let mut request = Vec::new();
    let schemas = known.iter().map(|schema| wire(schema)).collect();
    send_all_schemas::Request { schemas }.encode(CorrelationId(0), -1, &mut request);
    let answer = connection.call(request, None).await.map_err(|reason| ClientError::Disconnected {
        request: send_all_schemas::ID,
        address: connection.address.clone(),
        reason,
    })?;
    refuse_error(send_all_schemas::ID, &Message::parse(&answer)?)
}
