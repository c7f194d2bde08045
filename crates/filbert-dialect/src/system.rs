//! Names of system relations for rewritten statements. The query engine implements the relations.

/// PostgreSQL's catalog.
pub const PG_CATALOG: &str = "pg_catalog";

/// Relations of `pg_catalog` that never have rows, sorted by name. A statement that reads one needs
/// no plan.
pub const EMPTY_RELATIONS: &[&str] = &[
    "pg_aggregate",
    "pg_amop",
    "pg_amproc",
    "pg_auth_members",
    "pg_cast",
    "pg_conversion",
    "pg_cursors",
    "pg_db_role_setting",
    "pg_default_acl",
    "pg_depend",
    "pg_enum",
    "pg_event_trigger",
    "pg_foreign_data_wrapper",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_inherits",
    "pg_largeobject_metadata",
    "pg_locks",
    "pg_matviews",
    "pg_opclass",
    "pg_operator",
    "pg_opfamily",
    "pg_parameter_acl",
    "pg_partitioned_table",
    "pg_policies",
    "pg_policy",
    "pg_prepared_statements",
    "pg_prepared_xacts",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_publication_tables",
    "pg_range",
    "pg_replication_slots",
    "pg_rewrite",
    "pg_rules",
    "pg_seclabel",
    "pg_seclabels",
    "pg_sequence",
    "pg_sequences",
    "pg_shdepend",
    "pg_shdescription",
    "pg_stat_replication",
    "pg_stat_user_indexes",
    "pg_statistic_ext",
    "pg_stats",
    "pg_subscription",
    "pg_timezone_abbrevs",
    "pg_transform",
    "pg_trigger",
    "pg_ts_config",
    "pg_ts_dict",
    "pg_ts_parser",
    "pg_ts_template",
    "pg_user_mapping",
    "pg_user_mappings",
];

/// Relations of `pg_catalog` that stand for table functions, sorted by name.
pub const TABLE_FUNCTIONS: &[&str] = &[
    "aclexplode",
    "pg_available_extension_versions",
    "pg_available_extensions",
    "pg_get_keywords",
    "pg_lock_status",
    "pg_options_to_table",
    "pg_partition_ancestors",
    "pg_partition_tree",
    "pg_timezone_names",
];

/// Whether a relation of `pg_catalog` never has rows.
pub(crate) fn is_always_empty(name: &str) -> bool {
    EMPTY_RELATIONS.binary_search(&name).is_ok()
}

/// Whether a relation of `pg_catalog` stands for a table function.
pub(crate) fn is_table_function(name: &str) -> bool {
    TABLE_FUNCTIONS.binary_search(&name).is_ok()
}
