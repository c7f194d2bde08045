//! System relations about PostgreSQL features that do not exist here. Clients query them, and get
//! no rows.

use super::super::relation::{Relation, no_rows};

const fn empty(name: &'static str, columns: &'static str) -> Relation {
    Relation { name, columns, rows: no_rows }
}

pub(in super::super) const RELATIONS: &[Relation] = &[
    empty(
        "pg_matviews",
        "schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool, ispopulated bool, definition text",
    ),
    empty("pg_inherits", "inhrelid oid, inhparent oid, inhseqno int4, inhdetachpending bool"),
    empty(
        "pg_trigger",
        "tableoid oid, oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, tgtype int2, tgenabled char, tgisinternal bool, \
         tgconstrrelid oid, tgconstrindid oid, tgconstraint oid, tgdeferrable bool, tginitdeferred bool, tgnargs int2, \
         tgattr int2vector, tgargs text, tgqual pg_node_tree, tgoldtable name, tgnewtable name",
    ),
    empty(
        "pg_policy",
        "oid oid, polname name, polrelid oid, polcmd char, polpermissive bool, polroles _oid, polqual pg_node_tree, \
         polwithcheck pg_node_tree",
    ),
    empty(
        "pg_policies",
        "schemaname name, tablename name, policyname name, permissive text, roles _name, cmd text, qual text, with_check text",
    ),
    empty(
        "pg_operator",
        "tableoid oid, oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind char, oprcanmerge bool, oprcanhash bool, oprleft oid, \
         oprright oid, oprresult oid, oprcom oid, oprnegate oid, oprcode regproc, oprrest regproc, oprjoin regproc",
    ),
    empty(
        "pg_opclass",
        "tableoid oid, oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid, opcintype oid, opcdefault bool, \
         opckeytype oid",
    ),
    empty("pg_opfamily", "tableoid oid, oid oid, opfmethod oid, opfname name, opfnamespace oid, opfowner oid"),
    empty(
        "pg_amop",
        "oid oid, amopfamily oid, amoplefttype oid, amoprighttype oid, amopstrategy int2, amoppurpose char, amopopr oid, \
         amopmethod oid, amopsortfamily oid",
    ),
    empty(
        "pg_amproc",
        "oid oid, amprocfamily oid, amproclefttype oid, amprocrighttype oid, amprocnum int2, amproc regproc",
    ),
    empty(
        "pg_depend",
        "classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, refobjsubid int4, deptype char",
    ),
    empty("pg_shdepend", "dbid oid, classid oid, objid oid, objsubid int4, refclassid oid, refobjid oid, deptype char"),
    empty("pg_shdescription", "objoid oid, classoid oid, description text"),
    empty("pg_seclabel", "objoid oid, classoid oid, objsubid int4, provider text, label text"),
    empty(
        "pg_seclabels",
        "objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname text, provider text, label text",
    ),
    empty(
        "pg_event_trigger",
        "tableoid oid, oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled char, evttags _text",
    ),
    empty("pg_foreign_table", "ftrelid oid, ftserver oid, ftoptions _text"),
    empty(
        "pg_foreign_server",
        "tableoid oid, oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text, srvacl _aclitem, srvoptions _text",
    ),
    empty(
        "pg_foreign_data_wrapper",
        "tableoid oid, oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, fdwacl _aclitem, fdwoptions _text",
    ),
    empty("pg_user_mapping", "oid oid, umuser oid, umserver oid, umoptions _text"),
    empty("pg_user_mappings", "umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions _text"),
    empty(
        "pg_publication",
        "oid oid, pubname name, pubowner oid, puballtables bool, pubinsert bool, pubupdate bool, pubdelete bool, pubtruncate bool, \
         pubviaroot bool",
    ),
    empty("pg_publication_rel", "oid oid, prpubid oid, prrelid oid, prqual pg_node_tree, prattrs int2vector"),
    empty("pg_publication_namespace", "oid oid, pnpubid oid, pnnspid oid"),
    empty("pg_publication_tables", "pubname name, schemaname name, tablename name"),
    empty(
        "pg_subscription",
        "oid oid, subdbid oid, subname name, subowner oid, subenabled bool, subbinary bool, substream bool, subconninfo text, \
         subslotname name, subsynccommit text, subpublications _text",
    ),
    empty(
        "pg_statistic_ext",
        "tableoid oid, oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget int4, stxkeys int2vector, stxkind _char, \
         stxexprs pg_node_tree",
    ),
    empty(
        "pg_stats",
        "schemaname name, tablename name, attname name, inherited bool, null_frac float4, avg_width int4, n_distinct float4, \
         most_common_vals text, most_common_freqs text, histogram_bounds text, correlation float4",
    ),
    empty(
        "pg_rewrite",
        "tableoid oid, oid oid, rulename name, ev_class oid, ev_type char, ev_enabled char, is_instead bool, ev_qual pg_node_tree, \
         ev_action pg_node_tree",
    ),
    empty("pg_rules", "schemaname name, tablename name, rulename name, definition text"),
    empty(
        "pg_cast",
        "tableoid oid, oid oid, castsource oid, casttarget oid, castfunc oid, castcontext char, castmethod char",
    ),
    empty(
        "pg_conversion",
        "tableoid oid, oid oid, conname name, connamespace oid, conowner oid, conforencoding int4, contoencoding int4, conproc regproc, \
         condefault bool",
    ),
    empty(
        "pg_aggregate",
        "aggfnoid oid, aggkind char, aggnumdirectargs int2, aggtransfn regproc, aggfinalfn regproc, aggtranstype oid",
    ),
    empty("pg_auth_members", "oid oid, roleid oid, member oid, grantor oid, admin_option bool"),
    empty("pg_db_role_setting", "setdatabase oid, setrole oid, setconfig _text"),
    empty("pg_default_acl", "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype char, defaclacl _aclitem"),
    empty("pg_parameter_acl", "oid oid, parname text, paracl _aclitem"),
    empty("pg_largeobject_metadata", "oid oid, lomowner oid, lomacl _aclitem"),
    empty(
        "pg_partitioned_table",
        "partrelid oid, partstrat char, partnatts int2, partdefid oid, partattrs int2vector, partclass oidvector, \
         partcollation oidvector, partexprs pg_node_tree",
    ),
    empty(
        "pg_sequence",
        "seqrelid oid, seqtypid oid, seqstart int8, seqincrement int8, seqmax int8, seqmin int8, seqcache int8, seqcycle bool",
    ),
    empty(
        "pg_sequences",
        "schemaname name, sequencename name, sequenceowner name, data_type text, start_value int8, min_value int8, max_value int8, \
         increment_by int8, cycle bool, cache_size int8, last_value int8",
    ),
    empty(
        "pg_locks",
        "locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid xid, classid oid, objid oid, \
         objsubid int2, virtualtransaction text, pid int4, mode text, granted bool, fastpath bool, waitstart timestamptz",
    ),
    empty("pg_prepared_xacts", "transaction xid, gid text, prepared timestamptz, owner name, database name"),
    empty(
        "pg_prepared_statements",
        "name text, statement text, prepare_time timestamptz, parameter_types _text, from_sql bool, generic_plans int8, \
         custom_plans int8",
    ),
    empty(
        "pg_cursors",
        "name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, creation_time timestamptz",
    ),
    empty(
        "pg_replication_slots",
        "slot_name name, plugin name, slot_type text, database name, temporary bool, active bool",
    ),
    empty(
        "pg_stat_replication",
        "pid int4, usesysid oid, usename name, application_name text, client_addr inet, state text, sent_lsn text, sync_state text",
    ),
    empty(
        "pg_stat_user_indexes",
        "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan int8, idx_tup_read int8, \
         idx_tup_fetch int8",
    ),
    empty("pg_ts_config", "tableoid oid, oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid"),
    empty(
        "pg_ts_dict",
        "tableoid oid, oid oid, dictname name, dictnamespace oid, dictowner oid, dicttemplate oid, dictinitoption text",
    ),
    empty("pg_ts_parser", "tableoid oid, oid oid, prsname name, prsnamespace oid"),
    empty("pg_ts_template", "tableoid oid, oid oid, tmplname name, tmplnamespace oid"),
    empty("pg_transform", "oid oid, trftype oid, trflang oid, trffromsql regproc, trftosql regproc"),
    empty("pg_timezone_abbrevs", "abbrev text, utc_offset text, is_dst bool"),
];
