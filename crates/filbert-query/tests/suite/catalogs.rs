//! System relations, queried as PostgreSQL's and CrateDB's tools query them.

use crate::common::Member;
use filbert_grid::query::Dialect;

/// The queries of psql for each of its backslash commands, as `psql -E` shows them, separated by
/// lines of `;`.
const PSQL: &str = include_str!("../data/psql.sql");

/// The queries of drivers, ORMs and tools about types, tables, columns, keys and indexes, separated
/// by lines of `;`. The name of the sender is above each of its queries.
const DRIVERS: &str = include_str!("../data/drivers.sql");

fn member(dialect: Dialect) -> Member {
    let member = Member::of(dialect);
    member.change(
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL DEFAULT 'x', price NUMERIC(10, 2) CHECK (price > 0), tags TEXT[])",
    );
    member.change("INSERT INTO t (id, name, price) VALUES (1, 'a', 1), (2, 'b', 2)");
    member.change("CREATE VIEW v AS SELECT name FROM t");
    member
}

#[test]
fn every_query_of_psql_is_answered() {
    let member = member(Dialect::Postgres);
    member.change("CREATE INDEX t_name ON t (name)");
    let oid = member.rows("SELECT 't'::regclass::oid").join("");
    assert_answered(&member, &oid, PSQL, 80);
}

#[test]
fn every_query_of_drivers_is_answered() {
    let member = member(Dialect::Postgres);
    member.change("CREATE INDEX t_name ON t (name)");
    let oid = member.rows("SELECT 't'::regclass::oid").join("");
    assert_answered(&member, &oid, DRIVERS, 50);
}

#[track_caller]
fn assert_answered(member: &Member, oid: &str, queries: &str, least: usize) {
    let queries: Vec<&str> = queries.split("\n;\n").map(str::trim).filter(|query| !query.is_empty()).collect();
    assert!(queries.len() > least, "{} queries", queries.len());
    let failures: Vec<String> = queries
        .iter()
        .filter_map(|query| {
            let error = member.try_rows(&query.replace("$OID", oid), &[]).err()?;
            Some(format!("{error}\n{query}"))
        })
        .collect();
    assert!(failures.is_empty(), "{} of {}\n\n{}", failures.len(), queries.len(), failures.join("\n\n"));
}

/// The query of `DRIVERS` below a name.
fn of_drivers(name: &str) -> &'static str {
    let mut queries = DRIVERS.split("\n;\n");
    queries.find(|query| query.trim().starts_with(&format!("-- {name}\n"))).unwrap()
}

#[test]
fn drivers_learn_of_keys_indexes_and_types() {
    let member = member(Dialect::Postgres);
    member.change("CREATE TABLE k (b TEXT, a INT, c INT, PRIMARY KEY (c, b))");
    member.change("CREATE INDEX k_a ON k (a)");
    let of = |name: &str, table: &str| member.rows(&of_drivers(name).replace("'t'", &format!("'{table}'")));
    assert_eq!(of("pgjdbc: getPrimaryKeys", "t"), ["filbert|public|t|id|1|t_pkey"]);
    assert_eq!(of("pgjdbc: getPrimaryKeys", "k"), ["filbert|public|k|c|1|k_pkey", "filbert|public|k|b|2|k_pkey"]);
    assert_eq!(
        of("pgjdbc: getIndexInfo", "k"),
        [
            "filbert|k|false|NULL|k_pkey|3|1|c|A|0.0|0|NULL|NULL",
            "filbert|k|false|NULL|k_pkey|3|2|b|A|0.0|0|NULL|NULL",
            "filbert|k|true|NULL|k_a|3|1|a|A|0.0|0|NULL|NULL",
        ]
    );
    assert_eq!(of("pgjdbc: a type by its number", "t"), ["true|b|_int4|1007"]);
    let npgsql = of("Npgsql: the types", "t");
    assert!(npgsql.contains(&"pg_catalog|1007|_int4|a|false|23".to_owned()), "{npgsql:?}");
    assert!(npgsql.contains(&"pg_catalog|23|int4|b|false|NULL".to_owned()), "{npgsql:?}");
    let asyncpg = of("asyncpg: types by their numbers", "t");
    assert_eq!(asyncpg.len(), 2, "{asyncpg:?}");
    let postgrex = of("Postgrex: the types", "t");
    assert!(
        postgrex.iter().any(|row| row.starts_with("23|int4|int4send|int4recv|int4out|int4in|0|0|")),
        "{postgrex:?}"
    );
}

#[test]
fn columns_of_catalogs_are_of_their_own_types() {
    let member = member(Dialect::Postgres);
    let types = |text: &str| {
        let columns = member.describe(text).unwrap().columns.clone().unwrap();
        columns.iter().map(|column| column.pg_type.unwrap_or(0)).collect::<Vec<_>>()
    };
    for (text, expected) in [
        ("SELECT oid, relname, relkind, relhasindex, relfrozenxid FROM pg_class", vec![26, 19, 18, 0, 28]),
        ("SELECT indkey, indclass, conkey FROM pg_index, pg_constraint", vec![22, 30, 0]),
        ("SELECT c.oid AS number, count(*) FROM pg_class c GROUP BY c.oid ORDER BY 1 LIMIT 3", vec![26, 0]),
        ("SELECT oid::bigint, relname::text, oid + 1 FROM pg_class", vec![0, 0, 0]),
        // Objects are shown as their names.
        ("SELECT 't'::regclass, to_regtype('int4'), 'array_in'::regproc", vec![0, 0, 0]),
        ("SELECT typinput, typinput::text, typinput::oid FROM pg_type", vec![0, 0, 0]),
    ] {
        assert_eq!(types(text), expected, "{text}");
    }
    assert_eq!(
        member.rows("SELECT typinput, typreceive::text, typsend::oid > 0, typmodin FROM pg_type WHERE oid = 1007"),
        ["array_in|array_recv|true|-"]
    );
    assert_eq!(
        member.rows("SELECT count(*) FROM pg_type t JOIN pg_proc p ON p.oid = t.typinput WHERE proname = 'int4in'"),
        ["1"]
    );
}

#[test]
fn fields_of_rows_are_looked_into() {
    let member = member(Dialect::Postgres);
    for (text, expected) in [
        ("SELECT (information_schema._pg_expandarray(ARRAY[7, 8])).n", "1;2"),
        ("SELECT (k).x, (k).n FROM (SELECT information_schema._pg_expandarray(ARRAY['a', 'b']) AS k) s", "a|1;b|2"),
        ("SELECT id, (information_schema._pg_expandarray(tags)).x FROM t", ""),
    ] {
        assert_eq!(member.rows(text).join(";"), expected, "{text}");
    }
    let columns =
        member.describe("SELECT (information_schema._pg_expandarray(ARRAY[7])).n").unwrap().columns.clone().unwrap();
    assert_eq!(columns[0].name, "n");
}

#[test]
fn a_table_is_told_as_it_was_declared() {
    let member = member(Dialect::Postgres);
    for (text, expected) in [
        (
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum",
            "id|integer|true;name|character varying(20)|true;price|numeric(10,2)|false;tags|text[]|false",
        ),
        (
            "SELECT conname, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'p'",
            "t_pkey|p|PRIMARY KEY (id)",
        ),
        ("SELECT relkind, reltuples FROM pg_class WHERE relname = 't'", "r|2.0"),
        ("SELECT pg_get_viewdef('v'::regclass), 'v'::regclass::text", "SELECT name FROM t|v"),
        (
            "SELECT column_name, is_nullable, data_type, character_maximum_length, numeric_precision FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position",
            "id|NO|integer|NULL|32;name|NO|character varying|20|NULL;price|YES|numeric|NULL|10;tags|YES|ARRAY|NULL|NULL",
        ),
        (
            "SELECT table_type FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name",
            "BASE TABLE;VIEW",
        ),
        ("SELECT column_name FROM information_schema.key_column_usage", "id"),
        ("SELECT nspname FROM pg_namespace ORDER BY oid", "pg_catalog;public;information_schema;sys"),
        (
            "SELECT t.typname, e.typname FROM pg_type t JOIN pg_type e ON t.typelem = e.oid WHERE t.oid = '_int4'::regtype",
            "_int4|int4",
        ),
        ("SELECT count(*) FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.oid IS NULL", "0"),
        ("SELECT count(*) FROM (SELECT oid FROM pg_class GROUP BY oid HAVING count(*) > 1) x", "0"),
        ("SELECT count(*) FROM (SELECT oid FROM pg_type GROUP BY oid HAVING count(*) > 1) x", "0"),
        ("SELECT indisprimary, indkey FROM pg_index", "true|[1]"),
    ] {
        assert_eq!(member.rows(text).join(";"), expected, "{text}");
    }
}

#[test]
fn numbers_of_objects_follow_from_their_names() {
    let text = "SELECT oid FROM pg_class WHERE relname IN ('t', 'v', 't_pkey') ORDER BY relname";
    assert_eq!(member(Dialect::Postgres).rows(text), member(Dialect::Postgres).rows(text));
}

#[test]
fn every_relation_of_the_system_can_be_read() {
    for (dialect, schemas) in [
        (Dialect::Postgres, ["pg_catalog", "information_schema", "sys"]),
        (Dialect::Crate, ["pg_catalog", "information_schema", "sys"]),
    ] {
        let member = member(dialect);
        for schema in schemas {
            let names = member.rows(&format!("SELECT relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE nspname = '{schema}'"));
            assert!(names.len() > 10, "{schema}: {}", names.len());
            for name in names {
                // CrateDB's information_schema has relations of its own.
                let result = member.try_rows(&format!("SELECT * FROM {schema}.{name}"), &[]);
                assert!(result.is_ok() || dialect == Dialect::Crate, "{schema}.{name}: {:?}", result.err());
            }
        }
    }
}

#[test]
fn cratedb_finds_its_cluster_nodes_and_shards() {
    let member = member(Dialect::Crate);
    for (text, expected) in [
        ("SELECT count(*) FROM sys.nodes", "1"),
        ("SELECT count(*) FROM sys.cluster WHERE name IS NOT NULL", "1"),
        ("SELECT schema_name, table_name, num_docs FROM sys.shards", "doc|t|2"),
        ("SELECT health FROM sys.health WHERE table_name = 't'", "GREEN"),
        ("SELECT count(*) FROM sys.checks WHERE passed = false", "0"),
        ("SELECT table_name FROM information_schema.tables WHERE table_schema = 'doc' ORDER BY 1", "t;v"),
        (
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position",
            "id|integer;name|character varying;price|numeric;tags|text_array",
        ),
        ("SHOW TABLES", "t"),
        ("SHOW COLUMNS FROM v", "name|text"),
        ("SELECT version['number'], heap['max'] / 2 > 0 FROM sys.nodes", "\"5.10.0\"|true"),
    ] {
        assert_eq!(member.rows(text).join(";"), expected, "{text}");
    }
}

#[test]
fn maps_without_a_mapping_are_listed_as_soon_as_they_have_entries() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE MAPPING m EXTERNAL NAME stored (__key INT, this VARCHAR) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='varchar')");
    member.change("INSERT INTO m VALUES (1, 'x')");
    member.change("DROP MAPPING m");
    assert_eq!(member.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"), ["stored"]);
}
