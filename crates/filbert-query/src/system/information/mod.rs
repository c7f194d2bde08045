//! `information_schema`: the standard's catalog, with the columns that each of the three databases has in it.

mod crate_db;
mod hazelcast;
mod keys;
mod server;

use super::relation::Relation;

pub(super) use hazelcast::RELATIONS as HAZELCAST;

/// As PostgreSQL has it.
pub(super) const POSTGRES: &[&[Relation]] = &[server::RELATIONS, keys::RELATIONS];

/// As CrateDB has it.
pub(super) const CRATE: &[&[Relation]] = &[crate_db::RELATIONS, keys::RELATIONS];
