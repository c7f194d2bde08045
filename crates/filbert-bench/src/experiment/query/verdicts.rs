//! The verdicts of experiment Q.

use crate::experiment::report::{Case, Must, Report, figure};

use super::cases::{FILTER, Format, GET, LOOKUP_BY_INDEX, SUM, SUM_JSON};
use super::{COLUMNS, DUCKDB, FILBERT, HAZELCAST};

/// Adds all verdicts.
pub(super) fn judge(report: &mut Report, formats: &[Format]) {
    for format in formats {
        let name = format.name();
        let case = |query: &str| format!("{name}, {query}");
        let (get, lookup) = (case(GET), case(LOOKUP_BY_INDEX));
        let near_get = Case {
            driver: "sql",
            name: &lookup,
            target: FILBERT,
            other_driver: "map",
            other_name: &get,
            other_target: FILBERT,
        };
        report.judge(&format!("{name}, lookup by index: p50 / get's"), &near_get, figure::p50, Must::AtMost, 3.0);
        let theirs = Case::targets("sql", &lookup, HAZELCAST, FILBERT);
        let claim = format!("{name}, lookup by index: Hazelcast's p50 / Filbert's");
        report.judge(&claim, &theirs, figure::p50, Must::AtLeast, 10.0);
        for query in [SUM, FILTER] {
            let scan = case(query);
            let yardstick = Case::targets("sql", &scan, COLUMNS, DUCKDB);
            let claim = format!("{name}, {query}, columns: p50 / DuckDB's");
            report.judge(&claim, &yardstick, figure::p50, Must::AtMost, 2.0);
            let theirs = Case::targets("sql", &scan, HAZELCAST, COLUMNS);
            let claim = format!("{name}, {query}, columns: Hazelcast's p50 / Filbert's");
            report.judge(&claim, &theirs, figure::p50, Must::AtLeast, 200.0);
        }
        if *format == Format::Json {
            for query in [SUM, SUM_JSON] {
                let scan = case(query);
                let theirs = Case::targets("sql", &scan, HAZELCAST, FILBERT);
                let claim = format!("{name}, {query}, rows: Hazelcast's p50 / Filbert's");
                report.judge(&claim, &theirs, figure::p50, Must::AtLeast, 5.0);
            }
        }
    }
    for operation in ["get", "put"] {
        let quiet = format!("{operation}, quiet");
        for scans in ["rows", "columns"] {
            let beside = format!("{operation}, beside scans of {scans}");
            let ratio = Case {
                driver: "native",
                name: &beside,
                target: FILBERT,
                other_driver: "native",
                other_name: &quiet,
                other_target: FILBERT,
            };
            let claim = format!("{operation} beside scans of {scans}: p99 / quiet p99");
            report.judge(&claim, &ratio, figure::p99, Must::AtMost, 2.0);
        }
    }
}
