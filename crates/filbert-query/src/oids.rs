//! OIDs of objects. Some are fixed by PostgreSQL. The others are hashes of names, and are the same
//! in every member and process.

use std::collections::HashSet;

/// The first OID of user objects in PostgreSQL.
pub(crate) const FIRST_USER: i64 = 16_384;
/// The first OID of system relations that have no fixed OID in PostgreSQL.
pub(crate) const FIRST_SYSTEM: i64 = 12_000;

/// The OID of a function at this position in the list of functions.
pub(crate) fn of_function(place: usize) -> i64 {
    // Below the hashed OIDs, and above the OIDs that PostgreSQL fixes for objects that exist here.
    FIRST_SYSTEM - 6_000 + i64::try_from(place).unwrap_or(0)
}

/// The position of a function in the list of functions, from its OID.
pub(crate) fn place_of_function(oid: i64) -> Option<usize> {
    usize::try_from(oid - of_function(0)).ok()
}

/// `pg_catalog`.
pub(crate) const PG_CATALOG: i64 = 11;
/// `public`, or `doc`.
pub(crate) const PUBLIC: i64 = 2200;
/// `information_schema`.
pub(crate) const INFORMATION_SCHEMA: i64 = 13_200;
/// `sys`.
pub(crate) const SYS: i64 = 13_201;
/// Every user is the superuser: there are no privileges yet.
pub(crate) const SUPERUSER: i64 = 10;
/// The only database.
pub(crate) const DATABASE: i64 = 5;
/// `pg_default`.
pub(crate) const TABLESPACE: i64 = 1663;
/// The collation `default`.
pub(crate) const COLLATION: i64 = 100;
/// The access method `heap`.
pub(crate) const HEAP: i64 = 2;
/// The access method `btree`.
pub(crate) const BTREE: i64 = 403;
/// The access method `hash`.
pub(crate) const HASH: i64 = 405;

/// Relations of `pg_catalog` with an OID that clients know.
const FIXED: [(&str, i64); 24] = [
    ("pg_am", 2601),
    ("pg_attrdef", 2604),
    ("pg_attribute", 1249),
    ("pg_authid", 1260),
    ("pg_cast", 2605),
    ("pg_class", 1259),
    ("pg_collation", 3456),
    ("pg_constraint", 2606),
    ("pg_database", 1262),
    ("pg_description", 2609),
    ("pg_extension", 3079),
    ("pg_index", 2610),
    ("pg_language", 2612),
    ("pg_namespace", 2615),
    ("pg_opclass", 2616),
    ("pg_operator", 2617),
    ("pg_policy", 3256),
    ("pg_proc", 1255),
    ("pg_publication", 6104),
    ("pg_rewrite", 2618),
    ("pg_tablespace", 1213),
    ("pg_trigger", 2620),
    ("pg_type", 1247),
    ("pg_event_trigger", 3466),
];

/// The OID of the system relation at position `at` of all system relations.
pub(crate) fn of_system(name: &str, at: usize) -> i64 {
    let fixed = FIXED.iter().find(|(known, _)| *known == name);
    fixed.map_or_else(|| FIRST_SYSTEM + i64::try_from(at).unwrap_or(0), |(_, oid)| *oid)
}

/// Assigns OIDs to objects by their names. If two names hash to one OID, the later one gets the
/// next free OID.
#[derive(Debug, Default)]
pub(crate) struct Oids {
    used: HashSet<i64>,
}

impl Oids {
    /// The OID of an object of a kind.
    pub(crate) fn of(&mut self, kind: &str, name: &str) -> i64 {
        let mut oid = first_choice(kind, name);
        while !self.used.insert(oid) {
            oid = if oid == i64::from(i32::MAX) { FIRST_USER } else { oid + 1 };
        }
        oid
    }
}

/// FNV-1a over kind and name, folded into the free OIDs. OIDs stay below 2^31, because some clients
/// read them as signed integers.
fn first_choice(kind: &str, name: &str) -> i64 {
    let bytes = kind.bytes().chain([0]).chain(name.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let room = u64::from(i32::MAX.unsigned_abs()) - FIRST_USER.unsigned_abs();
    FIRST_USER + i64::try_from(hash % room).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_from_names_and_differ() {
        let mut oids = Oids::default();
        let first = oids.of("table", "a");
        assert!((FIRST_USER..=i64::from(i32::MAX)).contains(&first));
        assert_ne!(oids.of("index", "a"), first);
        assert_eq!(Oids::default().of("table", "a"), first);
        assert_eq!(oids.of("table", "a"), first + 1);
        assert_eq!(of_system("pg_class", 3), 1259);
        assert_eq!(of_system("pg_x", 3), FIRST_SYSTEM + 3);
    }
}
