//! The registry of Compact schemas that clients have announced. Its size is limited, and a schema
//! never changes.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use filbert_data::SchemaSource;
use filbert_data::compact::{Schema, SchemaId};
use parking_lot::RwLock;

use crate::cluster::Cluster;
use crate::definitions::of_schema;
use crate::errors::GridError;
use crate::names::check_name;

/// The Compact schemas of the member.
pub struct Schemas {
    by_id: RwLock<HashMap<SchemaId, Arc<Schema>>>,
    schemas_max: usize,
    fields_max: usize,
    /// The cluster of the member, if it is in one.
    cluster: OnceLock<Weak<dyn Cluster>>,
}

impl Schemas {
    pub(crate) fn new(schemas_max: usize, fields_max: usize) -> Self {
        Schemas { by_id: RwLock::default(), schemas_max, fields_max, cluster: OnceLock::new() }
    }

    pub(crate) fn join_cluster(&self, cluster: &Arc<dyn Cluster>) {
        // A member is in at most one cluster.
        let _first = self.cluster.set(Arc::downgrade(cluster));
    }

    /// As [`Schemas::put`], on all members of a cluster. Returns when this member has the schema,
    /// so that entries of the type can be written.
    ///
    /// Blocks. Must not be called on a thread for which other threads wait.
    ///
    /// # Errors
    /// As [`Schemas::put`], or the cluster cannot be reached.
    pub fn announce(&self, schema: Schema) -> Result<SchemaId, GridError> {
        if let Some(cluster) = self.cluster.get().and_then(Weak::upgrade)
            && self.get(schema.fingerprint()).is_none()
        {
            check_names(&schema)?;
            // `false` means that another member has announced the schema already.
            cluster.redefine(vec![of_schema(&schema)])?;
        }
        self.put(schema)
    }

    /// Stores a schema. A schema that exists already has no effect.
    ///
    /// # Errors
    /// A different schema has the same fingerprint, the schema has too many fields, one of its
    /// names is longer than [`NAME_BYTES_MAX`](crate::NAME_BYTES_MAX), or there are too many
    /// schemas.
    pub fn put(&self, schema: Schema) -> Result<SchemaId, GridError> {
        if schema.fields().len() > self.fields_max {
            let limit = self.fields_max;
            return Err(GridError::LimitReached { what: "fields in one schema", setting: "schema_fields_max", limit });
        }
        check_names(&schema)?;
        let id = schema.fingerprint();
        let mut schemas = self.by_id.write();
        if let Some(stored) = schemas.get(&id) {
            if **stored == schema {
                return Ok(id);
            }
            return Err(GridError::SchemaConflict {
                id: id.0,
                type_name: schema.type_name().to_owned(),
                stored: stored.type_name().to_owned(),
            });
        }
        if schemas.len() >= self.schemas_max {
            let limit = self.schemas_max;
            return Err(GridError::LimitReached { what: "Compact schemas", setting: "schemas_max", limit });
        }
        schemas.insert(id, Arc::new(schema));
        Ok(id)
    }

    /// The schema with this id, if it is registered.
    pub fn get(&self, id: SchemaId) -> Option<Arc<Schema>> {
        self.by_id.read().get(&id).cloned()
    }

    /// All schemas, unordered.
    pub fn all(&self) -> Vec<Arc<Schema>> {
        self.by_id.read().values().cloned().collect()
    }

    /// The number of schemas.
    pub fn len(&self) -> usize {
        self.by_id.read().len()
    }

    /// Whether there is no schema.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn check_names(schema: &Schema) -> Result<(), GridError> {
    check_name("type", schema.type_name())?;
    schema.fields().iter().try_for_each(|field| check_name("field", &field.name))
}

impl SchemaSource for Schemas {
    fn schema(&self, id: SchemaId) -> Option<Arc<Schema>> {
        self.get(id)
    }
}
