//! Compact schemas: announced to the cluster before values of them are stored, and again when the cluster is another.

use std::sync::Arc;

use filbert_data::compact::Schema;
use filbert_wire::{
    CorrelationId, Message, Request,
    structure::{FieldDescriptor, Schema as WireSchema},
    table::client::{send_all_schemas, send_schema},
};

use crate::{
    Client, ClientError,
    call::Call,
    connection::Connection,
    handshake::refuse_error,
    inner::{Inner, Target},
};

fn wire(schema: &Schema) -> WireSchema<'_> {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| FieldDescriptor { field_name: &field.name, kind: field.kind as i32 });
    WireSchema { type_name: schema.type_name(), fields: fields.collect() }
}

impl Client {
    /// Announces a Compact schema, so that values of it can be stored and queried. A schema that was announced by this
    /// client before is not sent again.
    ///
    /// # Errors
    ///
    /// The request fails.
    pub async fn send_schema(&self, schema: &Schema) -> Result<(), ClientError> {
        let id = schema.fingerprint();
        if self.inner.schemas.lock().contains_key(&id) {
            return Ok(());
        }
        let request = send_schema::Request { schema: wire(schema) };
        Call::send(&self.inner, Target::Any, &request, |answer| {
            Ok(answer.decode::<send_schema::Response>().map(drop)?)
        })
        .await?;
        self.inner.schemas.lock().insert(id, Arc::new(schema.clone()));
        Ok(())
    }
}

/// Announces all schemas again on a connection to a cluster that may not know them. Calls are let onto the connection
/// afterwards.
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
