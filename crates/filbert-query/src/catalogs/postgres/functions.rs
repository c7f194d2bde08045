//! Functions of rows that clients call in a FROM clause, as relations: what they have does not depend on their arguments here.

use super::super::relation::{Relation, no_rows, row};

pub(in super::super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "pg_get_keywords",
        columns: "word text, catcode char, barelabel bool=t, catdesc text, baredesc text",
        rows: |_, rows| {
            for word in KEYWORDS {
                row!(rows, word: word, catcode: "R", catdesc: "reserved", baredesc: "can be bare label");
            }
        },
    },
    Relation { name: "pg_partition_ancestors", columns: "relid oid", rows: no_rows },
    Relation { name: "pg_partition_tree", columns: "relid oid, parentrelid oid, isleaf bool, level int4", rows: no_rows },
    Relation { name: "pg_options_to_table", columns: "option_name text, option_value text", rows: no_rows },
    Relation {
        name: "aclexplode",
        columns: "grantor oid, grantee oid, privilege_type text, is_grantable bool",
        rows: no_rows,
    },
    Relation {
        name: "pg_timezone_names",
        columns: "name text, abbrev text, utc_offset text, is_dst bool=f",
        rows: |_, rows| row!(rows, name: "UTC", abbrev: "UTC", utc_offset: "00:00:00"),
    },
    Relation {
        name: "pg_available_extensions",
        columns: "name name, default_version text, installed_version text, comment text",
        rows: no_rows,
    },
    Relation {
        name: "pg_available_extension_versions",
        columns: "name name, version text, installed bool, superuser bool, trusted bool, relocatable bool, schema name, \
                  requires _name, comment text",
        rows: no_rows,
    },
    Relation {
        name: "pg_lock_status",
        columns: "locktype text, database oid, relation oid, pid int4, mode text, granted bool",
        rows: no_rows,
    },
];

/// Words that a statement's grammar reserves.
const KEYWORDS: [&str; 70] = [
    "all", "alter", "and", "any", "array", "as", "asc", "begin", "between", "by", "case", "cast", "check", "column",
    "commit", "constraint", "copy", "create", "cross", "default", "delete", "desc", "distinct", "drop", "else", "end",
    "except", "exists", "explain", "false", "for", "from", "full", "group", "having", "in", "index", "inner", "insert",
    "intersect", "into", "is", "join", "key", "left", "like", "limit", "not", "null", "offset", "on", "or", "order",
    "outer", "primary", "refresh", "right", "select", "set", "show", "table", "then", "true", "union", "update",
    "using", "values", "view", "when", "where",
];
