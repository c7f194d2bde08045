//! `sys`: the member as CrateDB's tools query it.

mod cluster;
mod jobs;
mod shards;

use super::relation::{Relation, no_rows};

/// All relations.
pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "cluster",
        columns: "id text, name text, master_node text, license json, settings json",
        rows: cluster::cluster,
    },
    Relation {
        name: "nodes",
        columns: "id text, name text, hostname text, rest_url text, port json, attributes json, version json, heap json, mem json, load json, \
                  os json, os_info json, process json, thread_pools json, network json, connections json, fs json, \
                  cluster_state_version int8=1",
        rows: cluster::nodes,
    },
    Relation {
        name: "health",
        columns: "health text, severity int2, table_name text, table_schema text, partition_ident text, missing_shards int8=0, \
                  underreplicated_shards int8=0",
        rows: shards::health,
    },
    Relation {
        name: "shards",
        columns: "id int4, schema_name text, table_name text, partition_ident text=, num_docs int8, size int8, primary bool=t, \
                  state text=STARTED, routing_state text=STARTED, relocating_node text, orphan_partition bool=f, blob_path text, path text, \
                  min_lucene_version text, node json, recovery json, closed bool=f, flush_stats json, seq_no_stats json, \
                  translog_stats json, retention_leases json, last_write_before timestamptz",
        rows: shards::shards,
    },
    Relation {
        name: "allocations",
        columns: "table_schema text, table_name text, partition_ident text, shard_id int4, primary bool=t, node_id text, \
                  current_state text=STARTED, explanation text, decisions json",
        rows: shards::allocations,
    },
    Relation { name: "checks", columns: "id int4, severity int4, description text, passed bool", rows: no_rows },
    Relation {
        name: "node_checks",
        columns: "id int4, node_id text, severity int4, description text, passed bool, acknowledged bool",
        rows: no_rows,
    },
    Relation {
        name: "jobs",
        columns: "id text, node json, started timestamptz, stmt text, username text",
        rows: jobs::running,
    },
    Relation {
        name: "jobs_log",
        columns: "id text, node json, started timestamptz, ended timestamptz, stmt text, username text, error text, classification json",
        rows: jobs::ended,
    },
    Relation {
        name: "operations",
        columns: "id text, job_id text, name text, node json, started timestamptz, used_bytes int8",
        rows: no_rows,
    },
    Relation {
        name: "operations_log",
        columns: "id text, job_id text, name text, error text, started timestamptz, ended timestamptz, used_bytes int8",
        rows: no_rows,
    },
    Relation {
        name: "summits",
        columns: "mountain text, height int4, prominence int4, coordinates text, range text, classification text, region text, \
                  country text, first_ascent int4",
        rows: no_rows,
    },
    Relation { name: "repositories", columns: "name text, type text, settings json", rows: no_rows },
    Relation {
        name: "snapshots",
        columns: "repository text, name text, version text, state text, concrete_indices _text, tables _text, \
                  table_partitions json, include_global_state bool, reason text, total_shards int4, started timestamptz, \
                  finished timestamptz, failures _text",
        rows: no_rows,
    },
    Relation {
        name: "users",
        columns: "name text, superuser bool=t, password text, jwt json, session_settings json",
        rows: cluster::users,
    },
    Relation {
        name: "roles",
        columns: "name text, granted_roles json, granted_role_names _text, grantor text, password_set bool",
        rows: no_rows,
    },
    Relation {
        name: "privileges",
        columns: "class text, grantee text, grantor text, ident text, state text, type text",
        rows: no_rows,
    },
    Relation {
        name: "segments",
        columns: "table_schema text, table_name text, partition_ident text, shard_id int4, segment_name text, num_docs int4, size int8",
        rows: no_rows,
    },
];
