//! The content of the catalog for system relations of PostgreSQL and CrateDB: schemas, relations,
//! columns, keys and indexes, with their OIDs.

use std::sync::Arc;

use filbert_data::FieldType;
use filbert_functions::pg_types::{self, Declared};
use filbert_grid::Map;

use crate::catalog::{Mapping, SequenceFacts, View};
use crate::oids::{self, Oids};
use crate::tables::Tables;

/// The kind of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelationKind {
    Table,
    View,
    /// A relation of `pg_catalog`, `information_schema` or `sys`.
    System,
}

/// A column of a relation.
#[derive(Clone, Debug)]
pub(crate) struct ColumnFacts {
    pub(crate) name: String,
    pub(crate) field_type: FieldType,
    pub(crate) declared: Declared,
    pub(crate) not_null: bool,
    pub(crate) default: Option<String>,
    pub(crate) generated: Option<String>,
    /// Whether the identity is `ALWAYS`, and its sequence.
    pub(crate) identity: Option<(bool, SequenceFacts)>,
    pub(crate) comment: Option<String>,
    /// The name of its type in CrateDB.
    pub(crate) crate_type: String,
}

/// An index, or the index of a primary key.
#[derive(Clone, Debug)]
pub(crate) struct IndexFacts {
    pub(crate) oid: i64,
    pub(crate) name: String,
    pub(crate) is_primary: bool,
    pub(crate) is_hash: bool,
    /// The positions of its columns, from 1; 0 for a path that is no column.
    pub(crate) columns: Vec<i64>,
    /// The indexed attributes, as written.
    pub(crate) attributes: Vec<String>,
}

/// A primary key or a check.
#[derive(Clone, Debug)]
pub(crate) struct ConstraintFacts {
    pub(crate) oid: i64,
    pub(crate) name: String,
    /// `p` or `c`.
    pub(crate) kind: &'static str,
    pub(crate) columns: Vec<i64>,
    /// The index of a primary key.
    pub(crate) index: i64,
    pub(crate) definition: String,
}

/// A relation.
#[derive(Clone)]
pub(crate) struct RelationFacts {
    pub(crate) oid: i64,
    /// The OID of the type of its rows; 0 for system relations.
    pub(crate) row_type: i64,
    pub(crate) schema: String,
    pub(crate) schema_oid: i64,
    pub(crate) name: String,
    pub(crate) kind: RelationKind,
    pub(crate) columns: Vec<ColumnFacts>,
    pub(crate) indexes: Vec<IndexFacts>,
    pub(crate) constraints: Vec<ConstraintFacts>,
    /// The query of a view.
    pub(crate) definition: Option<String>,
    pub(crate) map: Option<Arc<Map>>,
    pub(crate) comment: Option<String>,
}

impl RelationFacts {
    /// The size of its rows at this member, in bytes.
    pub(crate) fn bytes_here(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.statistics().bytes_owned)
    }

    /// The character of `relkind`.
    pub(crate) fn letter(&self) -> &'static str {
        match self.kind {
            RelationKind::Table => "r",
            RelationKind::View => "v",
            RelationKind::System if self.schema == super::PG_CATALOG => "r",
            RelationKind::System => "v",
        }
    }

    /// The names of columns at these positions, from 1.
    pub(crate) fn names_of<'r>(&'r self, places: &'r [i64]) -> impl Iterator<Item = &'r str> {
        let at = |place: &i64| usize::try_from(*place - 1).ok().and_then(|at| self.columns.get(at));
        places.iter().filter_map(at).map(|column| column.name.as_str())
    }

    /// The columns of the primary key.
    pub(crate) fn key(&self) -> Option<&ConstraintFacts> {
        self.constraints.iter().find(|constraint| constraint.kind == "p")
    }
}

/// The location of a relation.
pub(super) struct Place {
    pub(super) schema: String,
    pub(super) schema_oid: i64,
    pub(super) name: String,
}

/// The content of the catalog.
pub(crate) struct Facts {
    /// Schemas with their OIDs, system schemas first.
    pub(crate) schemas: Vec<(String, i64)>,
    pub(crate) relations: Vec<RelationFacts>,
}

impl Facts {
    /// The current content. `default_schema` is the schema of names without a schema.
    pub(crate) fn of(tables: &Tables, default_schema: &str) -> Facts {
        let mut facts = Facts { schemas: system_schemas(default_schema), relations: system_relations() };
        let mut oids = Oids::default();
        for schema in tables.catalog().schemas() {
            let oid = oids.of("schema", &schema);
            facts.schemas.push((schema, oid));
        }
        let mut mappings = tables.catalog().mappings();
        mappings.extend(unmapped(tables));
        for mapping in mappings {
            let place = facts.place(&mapping.name, default_schema, &mut oids);
            facts.relations.push(super::tables::facts(tables, mapping, place, &mut oids));
        }
        for view in tables.catalog().views() {
            facts.add_view(&view, default_schema, &mut oids);
        }
        facts
    }

    /// The relation with this OID.
    pub(crate) fn relation(&self, oid: i64) -> Option<&RelationFacts> {
        self.relations.iter().find(|relation| relation.oid == oid)
    }

    /// The index with this OID, and its relation.
    pub(crate) fn index(&self, oid: i64) -> Option<(&RelationFacts, &IndexFacts)> {
        self.indexes().find(|(_, index)| index.oid == oid)
    }

    /// All indexes with their relations.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = (&RelationFacts, &IndexFacts)> {
        self.relations.iter().flat_map(|relation| relation.indexes.iter().map(move |index| (relation, index)))
    }

    /// Tables and views of users.
    pub(crate) fn of_users(&self) -> impl Iterator<Item = &RelationFacts> {
        self.relations.iter().filter(|relation| relation.kind != RelationKind::System)
    }

    /// The schema and the name of a catalog name.
    fn place(&mut self, name: &str, default_schema: &str, oids: &mut Oids) -> Place {
        let (schema, name) = match name.split_once('.') {
            Some((schema, name)) if !schema.is_empty() && !name.is_empty() => (schema, name),
            _ => (default_schema, name),
        };
        let known = self.schemas.iter().find(|(known, _)| known == schema).map(|(_, oid)| *oid);
        let oid = known.unwrap_or_else(|| {
            let oid = oids.of("schema", schema);
            self.schemas.push((schema.to_owned(), oid));
            oid
        });
        Place { schema: schema.to_owned(), schema_oid: oid, name: name.to_owned() }
    }

    fn add_view(&mut self, view: &View, default_schema: &str, oids: &mut Oids) {
        let Place { schema, schema_oid, name } = self.place(&view.name, default_schema, oids);
        let full = format!("{schema}.{name}");
        self.relations.push(RelationFacts {
            oid: oids.of("table", &full),
            row_type: oids.of("type", &full),
            schema,
            schema_oid,
            name,
            kind: RelationKind::View,
            columns: view.columns.iter().map(|(name, field_type)| plain_column(name, field_type)).collect(),
            indexes: Vec::new(),
            constraints: Vec::new(),
            definition: Some(view.query.clone()),
            map: None,
            comment: None,
        });
    }
}

pub(super) fn plain_column(name: &str, field_type: &FieldType) -> ColumnFacts {
    ColumnFacts {
        name: name.to_owned(),
        field_type: field_type.clone(),
        declared: pg_types::of_field_type(field_type),
        not_null: false,
        default: None,
        generated: None,
        identity: None,
        comment: None,
        crate_type: pg_types::crate_type(field_type),
    }
}

/// Maps without a mapping, with columns inferred from an entry.
fn unmapped(tables: &Tables) -> Vec<Arc<Mapping>> {
    let Ok(grid) = tables.grid() else { return Vec::new() };
    let names = grid.map_names().into_iter().filter(|name| !name.starts_with("__"));
    let unknown = names.filter(|name| tables.catalog().mapping_of_map(name).is_none());
    unknown.filter_map(|name| tables.inferred_here(&name).ok().flatten()).map(Arc::new).collect()
}

fn system_schemas(default_schema: &str) -> Vec<(String, i64)> {
    let fixed = [
        (super::PG_CATALOG, oids::PG_CATALOG),
        (super::INFORMATION_SCHEMA, oids::INFORMATION_SCHEMA),
        (super::SYS, oids::SYS),
        (default_schema, oids::PUBLIC),
    ];
    fixed.into_iter().map(|(name, oid)| (name.to_owned(), oid)).collect()
}

fn system_relations() -> Vec<RelationFacts> {
    let mut relations = Vec::new();
    for (schema, schema_oid, tables) in super::system_tables() {
        for table in tables {
            let columns = table.columns.iter().map(|column| ColumnFacts {
                declared: (column.type_oid(), -1),
                ..plain_column(column.name, &column.field_type)
            });
            relations.push(RelationFacts {
                oid: oids::of_system(table.name, relations.len()),
                row_type: 0,
                schema: schema.to_owned(),
                schema_oid,
                name: table.name.to_owned(),
                kind: RelationKind::System,
                columns: columns.collect(),
                indexes: Vec::new(),
                constraints: Vec::new(),
                definition: None,
                map: None,
                comment: None,
            });
        }
    }
    relations
}
