//! `pg_catalog`: relations as in PostgreSQL 14, with the columns that its clients read.

mod empty;
mod functions;
mod objects;
mod relations;
mod server;
mod types;

use super::relation::Relation;

#[cfg(test)]
pub(super) use empty::RELATIONS as EMPTY;
#[cfg(test)]
pub(super) use functions::RELATIONS as FUNCTIONS;
pub(crate) use relations::index_definition;

/// All relations.
pub(super) const RELATIONS: &[&[Relation]] = &[
    relations::RELATIONS,
    objects::RELATIONS,
    types::RELATIONS,
    server::RELATIONS,
    functions::RELATIONS,
    empty::RELATIONS,
];
