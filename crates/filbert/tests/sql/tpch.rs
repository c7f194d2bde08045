//! All TPC-H queries on maps of generated data, scale factor 0.1, compared with DuckDB's rows.
//!
//! The queries are `tests/tpch/q01.sql` to `q22.sql`. DuckDB's rows are in `q01.csv` and so on: the
//! first line contains the column types, each following line a row, with `|` between values.
//! `tests/tpch/answers.py` creates them from the tables that this test writes to the directory
//! `FILBERT_TPCH_DATA`. Doubles are compared with a tolerance, all other values exactly.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use filbert::{Blob, FieldType, Value};
use filbert_data::compact::Writer;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use crate::database::{Answer, Database, Embedded};
use crate::values::text_of;

const SCALE: f64 = 0.1;

/// The tables: name, and columns in generator order.
const TABLES: [(&str, &str); 8] = [
    ("region", "r_regionkey BIGINT, r_name VARCHAR, r_comment VARCHAR"),
    ("nation", "n_nationkey BIGINT, n_name VARCHAR, n_regionkey BIGINT, n_comment VARCHAR"),
    (
        "supplier",
        "s_suppkey BIGINT, s_name VARCHAR, s_address VARCHAR, s_nationkey BIGINT, s_phone VARCHAR, s_acctbal DECIMAL(15,2), \
         s_comment VARCHAR",
    ),
    (
        "customer",
        "c_custkey BIGINT, c_name VARCHAR, c_address VARCHAR, c_nationkey BIGINT, c_phone VARCHAR, c_acctbal DECIMAL(15,2), \
         c_mktsegment VARCHAR, c_comment VARCHAR",
    ),
    (
        "part",
        "p_partkey BIGINT, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR, p_size INTEGER, \
         p_container VARCHAR, p_retailprice DECIMAL(15,2), p_comment VARCHAR",
    ),
    (
        "partsupp",
        "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INTEGER, ps_supplycost DECIMAL(15,2), ps_comment VARCHAR",
    ),
    (
        "orders",
        "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus VARCHAR, o_totalprice DECIMAL(15,2), o_orderdate DATE, \
         o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INTEGER, o_comment VARCHAR",
    ),
    (
        "lineitem",
        "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INTEGER, l_quantity DECIMAL(15,2), \
         l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag VARCHAR, \
         l_linestatus VARCHAR, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR, \
         l_shipmode VARCHAR, l_comment VARCHAR",
    ),
];

/// Calls `each` with every row of a table. A `|` follows each value.
fn rows(table: &str, mut each: impl FnMut(&str)) {
    let mut line = String::new();
    let mut give = |row: &dyn std::fmt::Display| {
        line.clear();
        write!(line, "{row}").unwrap();
        each(&line);
    };
    match table {
        "region" => RegionGenerator::new(SCALE, 1, 1).iter().for_each(|row| give(&row)),
        "nation" => NationGenerator::new(SCALE, 1, 1).iter().for_each(|row| give(&row)),
        "supplier" => SupplierGenerator::new(SCALE, 1, 1).iter().for_each(|row| give(&row)),
        "customer" => CustomerGenerator::new(SCALE, 1, 1).iter().for_each(|row| give(&row)),
        "part" => PartGenerator::new(SCALE, 1, 1).iter().for_each(|row| give(&row)),
        "partsupp" => PartSuppGenerator::new(SCALE, 1, 1).iter().for_each(|row| give(&row)),
        "orders" => OrderGenerator::new(SCALE, 1, 1).iter().for_each(|row| give(&row)),
        _ => LineItemGenerator::new(SCALE, 1, 1).iter().for_each(|row| give(&row)),
    }
}

fn columns(declared: &str) -> Vec<(String, FieldType)> {
    // The comma in a decimal type has no space after it.
    let column = |column: &str| {
        let (name, kind) = column.trim().split_once(' ').unwrap();
        let kind = match kind {
            "BIGINT" => FieldType::BigInt,
            "INTEGER" => FieldType::Integer,
            "DATE" => FieldType::Date,
            "VARCHAR" => FieldType::Varchar,
            _ => FieldType::Decimal(Some((15, 2))),
        };
        (name.to_owned(), kind)
    };
    declared.split(", ").map(column).collect()
}

fn value<'t>(text: &'t str, field_type: &FieldType) -> Value<'t> {
    match field_type {
        FieldType::BigInt => Value::Int64(text.parse().unwrap()),
        FieldType::Integer => Value::Int32(text.parse().unwrap()),
        FieldType::Date => Value::Date(text.parse().unwrap()),
        FieldType::Decimal(_) => Value::Decimal(text.parse().unwrap()),
        _ => Value::text(text),
    }
}

/// Fills the maps with objects in the form that a client writes, then declares the mappings with
/// columns.
fn load(database: &mut Embedded) {
    for (table, declared) in TABLES {
        let columns = columns(declared);
        let writer = Writer::new(table, columns.clone());
        database.member().grid().schemas().put(writer.schema().clone()).unwrap();
        let map = database.member().map::<i64, Blob>(table).unwrap();
        let mut key = 0;
        rows(table, |row| {
            let row: Vec<Value<'_>> = row.split('|').zip(&columns).map(|(text, (_, kind))| value(text, kind)).collect();
            map.set(&key, &writer.write(&row).unwrap()).unwrap();
            key += 1;
        });
        let mapping = format!(
            "CREATE MAPPING {table} ({declared}) TYPE IMap OPTIONS ('keyFormat'='bigint', 'valueFormat'='compact', \
             'valueCompactTypeName'='{table}', 'columnar'='true')"
        );
        database.answer(&mapping, &[]).unwrap_or_else(|error| panic!("{mapping}: {error}"));
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tpch")
}

/// Whether two texts are the same value of DuckDB's type.
fn same(found: &str, expected: &str, kind: &str) -> bool {
    if found == expected {
        return true;
    }
    let (Ok(value), Ok(wanted)) = (found.parse::<f64>(), expected.parse::<f64>()) else { return false };
    if kind != "DOUBLE" {
        // Whole numbers may be returned as doubles, such as years from `EXTRACT`.
        return value == wanted && found.len() < 16;
    }
    // DuckDB divides doubles where Filbert divides decimals. Decimals are exact to their last
    // digit.
    let digits = found.split_once('.').map_or(0, |(_, digits)| digits.len());
    let last = if digits >= 4 { 10_f64.powi(-i32::try_from(digits).unwrap()) } else { 0.0 };
    (value - wanted).abs() <= last.max(1e-9 * wanted.abs())
}

/// Sorts rows, so that the order of ties does not matter.
fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.sort();
    rows
}

fn compare(query: &str, found: Vec<Vec<String>>) -> Result<(), String> {
    let path = folder().join(format!("{query}.csv"));
    let answers = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut lines = answers.lines();
    let kinds: Vec<&str> = lines.next().unwrap_or_default().split('|').collect();
    let expected = sorted(lines.map(|line| line.split('|').map(str::to_owned).collect()).collect());
    let found = sorted(found);
    if found.len() != expected.len() {
        return Err(format!("{query}: {} rows, DuckDB has {}", found.len(), expected.len()));
    }
    for (found, expected) in found.iter().zip(&expected) {
        let is_same = found.len() == expected.len()
            && found.iter().zip(expected).zip(&kinds).all(|((found, expected), kind)| same(found, expected, kind));
        if !is_same {
            return Err(format!("{query}: {found:?}, DuckDB has {expected:?}"));
        }
    }
    Ok(())
}

pub(crate) fn tpch_gives_the_rows_that_duckdb_gives() {
    if let Ok(folder) = std::env::var("FILBERT_TPCH_DATA") {
        for (table, _) in TABLES {
            let mut text = String::new();
            rows(table, |row| {
                text.push_str(row);
                text.push('\n');
            });
            std::fs::write(Path::new(&folder).join(format!("{table}.tbl")), text).unwrap();
        }
        return;
    }
    let mut database = Embedded::start();
    let start = Instant::now();
    load(&mut database);
    eprintln!("loaded in {:?}", start.elapsed());
    let mut failures = Vec::new();
    for number in 1..=22 {
        let query = format!("q{number:02}");
        let sql = std::fs::read_to_string(folder().join(format!("{query}.sql"))).unwrap();
        let start = Instant::now();
        match database.answer(&sql, &[]) {
            Ok(Answer::Rows { rows, .. }) => {
                eprintln!("{query}: {} rows in {:?}", rows.len(), start.elapsed());
                let rows = rows.iter().map(|row| row.iter().map(text_of).collect()).collect();
                failures.extend(compare(&query, rows).err());
            }
            Ok(Answer::Count(_)) => failures.push(format!("{query}: a count")),
            Err(error) => failures.push(format!("{query}: {error}")),
        }
    }
    assert!(failures.is_empty(), "{} of 22 queries failed\n{}", failures.len(), failures.join("\n"));
}
