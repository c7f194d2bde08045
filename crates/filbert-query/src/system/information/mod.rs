//! `information_schema`, the catalog of the SQL standard, with the columns of each of the three
//! databases.

mod crate_db;
mod hazelcast;
mod keys;
mod server;

use super::relation::Relation;

pub(super) use hazelcast::RELATIONS as HAZELCAST;

/// The relations for PostgreSQL.
pub(super) const POSTGRES: &[&[Relation]] = &[server::RELATIONS, keys::RELATIONS];

/// The relations for CrateDB.
pub(super) const CRATE: &[&[Relation]] = &[crate_db::RELATIONS, keys::RELATIONS];
