//! Conditions on casts. Several values may have the same cast. The optimizer must neither conclude
//! from a cast which value a column has, nor compare the column itself.

use std::collections::BTreeSet;

use crate::common::Member;
use filbert_grid::query::Dialect;

/// Types with values. Casts to other types make several of the values equal.
const VALUES: [(&str, &[&str]); 13] = [
    ("smallint", &["3", "2", "1", "0"]),
    ("integer", &["16777217", "16777216", "3", "1", "0"]),
    ("bigint", &["9007199254740993", "9007199254740992", "16777217", "16777216", "2", "1", "0"]),
    ("real", &["2.4", "2.3", "1.9", "0.4", "0.3"]),
    ("double precision", &["2.4000000001", "2.4", "1.9", "0.4", "0.3"]),
    ("numeric(6,2)", &["2.41", "2.4", "1.9", "0.4", "0.3"]),
    ("boolean", &["true", "false"]),
    ("text", &["3", "2", " 2", "02", "1", "true", "t"]),
    ("varchar(9)", &["2024-01-1", "20240101", "ab", "a"]),
    ("date", &["2024-01-02", "2024-01-01"]),
    ("timestamp", &["2024-01-01 03:00:00.4", "2024-01-01 03:00", "2024-01-01 00:00", "2023-12-31 23:00"]),
    ("timestamptz", &["2024-11-03 06:30Z", "2024-11-03 05:45Z", "2024-11-03 05:30Z", "2024-11-03 04:00Z"]),
    ("interval", &["1 mon", "30 days", "29 days 24:00", "1 day"]),
];

/// Types with fewer digits or characters than the types above.
const SHORTER: [&str; 5] = ["numeric(5,1)", "numeric(4,0)", "varchar(1)", "char(1)", "timestamp(0)"];

/// The number of different casts of a relation's values that are compared.
const CASTS_MAX: usize = 2;

/// The name of a type in a dialect; `None` if it has no such type.
fn name_in(dialect: Dialect, data_type: &str) -> Option<String> {
    let name = match (dialect, data_type) {
        (Dialect::Postgres, name) => name,
        (_, "double precision") => "double",
        (Dialect::Hazelcast, "text" | "varchar(9)") => "varchar",
        (Dialect::Hazelcast, "timestamptz") => "timestamp with time zone",
        (Dialect::Hazelcast, "interval") | (Dialect::Crate, "interval" | "date") => return None,
        (Dialect::Hazelcast, name) if name.starts_with("numeric") => return Some(name.replace("numeric", "decimal")),
        (_, name) => name,
    };
    Some(name.to_owned())
}

/// Conditions that hold where a cast equals a value.
fn equal(cast: &str, value: &str) -> [String; 9] {
    [
        format!("{cast} = {value}"),
        format!("{value} = {cast}"),
        format!("{cast} >= {value} and {cast} <= {value}"),
        format!("{cast} between {value} and {value}"),
        format!("{cast} in ({value})"),
        format!("not {cast} <> {value}"),
        format!("{cast} is not distinct from {value}"),
        format!("case when {cast} = {value} then true else false end"),
        format!("case {cast} when {value} then true else false end"),
    ]
}

/// Other conditions on a cast.
fn others(cast: &str, value: &str) -> [String; 5] {
    [
        cast.to_owned(),
        format!("- {cast} = - {value}"),
        format!("{cast} * 0 = 0"),
        format!("{cast} + 1e30 = 1e30"),
        format!("a * 0 = 0 and {cast} = {value}"),
    ]
}

/// The rows of a relation `t (id, a)`, compared with values of a type.
struct Rows<'m> {
    member: &'m Member,
    from: String,
    /// The ids in the order of `a`.
    ordered: Vec<String>,
}

impl Rows<'_> {
    /// The ids of the rows for which a condition is true. They must be in the order of `a`. `None`
    /// if the condition is rejected.
    fn found(&self, condition: &str) -> Option<Vec<String>> {
        let text = format!("select id from {} where {condition} order by a, id", self.from);
        let found = self.member.try_rows(&text, &[]).ok()?;
        let expected: Vec<_> = self.ordered.iter().filter(|id| found.contains(id)).cloned().collect();
        assert_eq!(found, expected, "{text}");
        Some(found)
    }

    /// Compares the casts to a type. Returns the number of conditions.
    fn compare(&self, to: &str) -> usize {
        let cast = format!("cast(a as {to})");
        // Outside of conditions, the cast is computed for each row.
        let text = format!("select cast({cast} as varchar), id from {}", self.from);
        let Ok(each) = self.member.try_rows(&text, &[]) else { return 0 };
        let each: Vec<(&str, &str)> = each.iter().map(|row| row.rsplit_once('|').unwrap()).collect();
        let values: BTreeSet<&str> = each.iter().map(|(value, _)| *value).filter(|value| *value != "NULL").collect();
        let constant = |value: &str| format!("cast('{value}' as {to})");
        let mut conditions = 0;
        for value in values.into_iter().take(CASTS_MAX) {
            // The operator casts a literal of another type, or the cast once more.
            let literal = if value.parse::<f64>().is_ok() { value.to_owned() } else { format!("'{value}'") };
            for operand in [constant(value), literal] {
                let is_equal = |of_row: &str| {
                    let text = format!("select {} = {operand}", constant(of_row));
                    of_row != "NULL" && self.member.try_rows(&text, &[]).is_ok_and(|rows| rows == ["true"])
                };
                let expected: Vec<bool> = each.iter().map(|(of_row, _)| is_equal(of_row)).collect();
                for condition in equal(&cast, &operand) {
                    let Some(found) = self.found(&condition) else { continue };
                    conditions += 1;
                    for ((of_row, id), is_expected) in each.iter().zip(&expected) {
                        let is_found = found.iter().any(|found| found == id);
                        assert_eq!(is_found, *is_expected, "{of_row} of the row {id}: {condition} from {}", self.from);
                    }
                }
            }
            conditions += others(&cast, &constant(value)).iter().filter_map(|other| self.found(other)).count();
        }
        conditions
    }
}

#[test]
fn conditions_on_casts_hold_for_the_rows_with_these_casts_and_leave_orders_alone() {
    let mut conditions = 0;
    for dialect in [Dialect::Postgres, Dialect::Crate, Dialect::Hazelcast] {
        let member = Member::of(dialect);
        // In this time zone, two of the values have the same local time.
        let _others_have_none = member.run("set time zone 'America/New_York'", &[]);
        for (number, (of, values)) in VALUES.iter().enumerate() {
            let Some(of) = name_in(dialect, of) else { continue };
            let rows: Vec<String> =
                values.iter().enumerate().map(|(id, value)| format!("({id}, cast('{value}' as {of}))")).collect();
            let rows = rows.join(", ");
            let mut relations = vec![format!("(values {rows}) t (id, a)")];
            if dialect != Dialect::Hazelcast {
                member.change(&format!("create table t{number} (id int primary key, a {of})"));
                member.change(&format!("insert into t{number} values {rows}"));
                relations.push(format!("t{number}"));
            }
            for from in relations {
                let ordered = member.try_rows(&format!("select id from {from} order by a, id"), &[]);
                let Ok(ordered) = ordered else { continue };
                let rows = Rows { member: &member, from, ordered };
                let types = VALUES.iter().map(|(name, _)| *name).chain(SHORTER);
                conditions += types.filter_map(|to| name_in(dialect, to)).map(|to| rows.compare(&to)).sum::<usize>();
            }
        }
    }
    assert!(conditions > 5_000, "{conditions}");
}
