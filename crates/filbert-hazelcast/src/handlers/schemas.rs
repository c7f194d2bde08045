//! Schemas of Compact values. Clients send a schema before they send the first value of its type.

use filbert_data::compact::{FieldDescriptor, FieldKind, Schema, SchemaId};
use filbert_grid::{ErrorKind, check_name};
use filbert_wire::{
    Message, MessageId, Response,
    structure::{self},
    table::client::{fetch_schema, send_all_schemas, send_schema},
};

use crate::{
    failure::{Failure, Outcome},
    row::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (send_schema::ID, Row::Served(handle_send)),
    (fetch_schema::ID, Row::Served(handle_fetch)),
    (send_all_schemas::ID, Row::Served(handle_send_all)),
];

fn handle_send(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: send_schema::Request<'_> = message.decode()?;
    session.grid.schemas().put(read(&request.schema)?)?;
    // Clients repeat the request until the replies have named every member of their view.
    let replicated_members = vec![session.grid.member_uuid()];
    send_schema::Response { replicated_members }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_fetch(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: fetch_schema::Request = message.decode()?;
    let schema = session.grid.schemas().get(SchemaId(request.schema_id));
    let schema = schema.as_deref().map(|schema| structure::Schema {
        type_name: schema.type_name(),
        fields: schema
            .fields()
            .iter()
            .map(|field| structure::FieldDescriptor { field_name: &field.name, kind: field.kind as i32 })
            .collect(),
    });
    fetch_schema::Response { schema }.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn handle_send_all(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: send_all_schemas::Request<'_> = message.decode()?;
    for schema in &request.schemas {
        session.grid.schemas().put(read(schema)?)?;
    }
    send_all_schemas::Response {}.encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn read(schema: &structure::Schema<'_>) -> Result<Schema, Box<Failure>> {
    check_name("type", schema.type_name)?;
    let mut fields = Vec::new();
    for field in &schema.fields {
        check_name("field", field.field_name)?;
        let kind = FieldKind::try_from(field.kind).map_err(|error| {
            let text = format!("schema {:?}, field {:?}: {error}", schema.type_name, field.field_name);
            Failure::new(ErrorKind::Serialization, text)
        })?;
        fields.push(FieldDescriptor { name: field.field_name.to_owned(), kind });
    }
    Ok(Schema::new(schema.type_name, fields))
}
