//! Generates tables and their rows.

use std::fmt::Write;

use super::values;
use crate::random::Random;
use crate::tree::{Dialect, Type};

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    pub(crate) kind: Type,
    /// The type with its modifiers, as declared.
    pub(crate) declared: String,
    /// A default and constraints, as declared.
    options: String,
    is_nullable: bool,
}

/// A table with its rows. `id` is its primary key. All tables have a column `k`.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<TableColumn>,
    /// Values in the text form of their types.
    pub(crate) rows: Vec<Vec<Option<String>>>,
}

/// The tables of one round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    pub(crate) tables: Vec<Table>,
}

impl Schema {
    /// Generates tables with a few columns and rows each.
    pub(crate) fn generate(random: &mut Random, dialect: Dialect) -> Schema {
        let odd_percent = if random.chance(50) { 20 } else { 3 };
        let tables = (1..=3).map(|number| Table::generate(random, dialect, number, odd_percent)).collect();
        Schema { tables }
    }
}

impl Table {
    fn generate(random: &mut Random, dialect: Dialect, number: usize, odd_percent: usize) -> Table {
        let mut columns =
            vec![column(dialect.key().to_owned(), Type::Int4, "int"), column("k".to_owned(), Type::Int4, "int")];
        for index in 1..=random.between(3, 6) {
            let kind = match random.pick(dialect.types()) {
                // Columnar storage needs a declared scale, which Hazelcast does not keep.
                Some(Type::Numeric) if dialect == Dialect::Hazelcast => Type::Double,
                kind => kind.copied().unwrap_or(Type::Int4),
            };
            let declared = declared(random, kind, dialect);
            let mut column = column(format!("{}{number}{index}", prefix(kind)), kind, &declared);
            if dialect == Dialect::Postgres && random.chance(30) {
                let default = stored(random, dialect, &column, odd_percent);
                (column.options, column.is_nullable) = options(random, &column.name, &quoted(&default));
            }
            columns.push(column);
        }
        let count = if random.chance(6) { 0 } else { random.between(2, 18) };
        let row = |random: &mut Random, id: i64| {
            let values = columns.iter().enumerate().map(|(index, column)| match index {
                0 => Some(id.to_string()),
                1 => (!random.chance(15)).then(|| random.between(0, 6).to_string()),
                _ => (!column.is_nullable || !random.chance(18)).then(|| stored(random, dialect, column, odd_percent)),
            });
            values.collect()
        };
        let rows = (1..=count).map(|id| row(random, id)).collect();
        Table { name: format!("tbl_{number}"), columns, rows }
    }

    /// The statement that creates the table.
    pub(crate) fn create(&self) -> String {
        let mut text = format!("create table {} (", self.name);
        for (index, column) in self.columns.iter().enumerate() {
            let TableColumn { name, declared, options, .. } = column;
            let _ = write!(text, "{}{name} {declared}{options}", if index > 0 { ", " } else { "" });
        }
        text.push_str(", primary key (id))");
        text
    }

    /// The statement that creates a mapping with these format options.
    pub(crate) fn mapping(&self, options: &str) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|column| format!("{} {}", column.name, column.declared)).collect();
        let columns = columns.join(", ");
        format!("create or replace mapping {} ({columns}) type IMap options ('keyFormat'='int', {options})", self.name)
    }

    /// The statement that inserts the rows, if there are any.
    pub(crate) fn fill(&self, dialect: Dialect) -> Option<String> {
        if self.rows.is_empty() {
            return None;
        }
        let row = |row: &Vec<Option<String>>| {
            let value = |(value, column): (&Option<String>, &TableColumn)| match (value, dialect) {
                (None, _) => "null".to_owned(),
                (Some(text), Dialect::Postgres) => quoted(text),
                (Some(text), Dialect::Hazelcast) if column.kind == Type::Timestamp => {
                    format!("cast({} as timestamp)", quoted(&text.replace(' ', "T")))
                }
                (Some(text), Dialect::Hazelcast) => format!("cast({} as {})", quoted(text), column.declared),
            };
            let values: Vec<String> = row.iter().zip(&self.columns).map(value).collect();
            format!("({})", values.join(", "))
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        Some(format!("insert into {} values {}", self.name, rows.join(", ")))
    }

    /// The statements that create indexes.
    pub(crate) fn indexes(&self, dialect: Dialect) -> Vec<String> {
        let indexed = self.columns.iter().skip(1).filter(|column| {
            !matches!(column.kind, Type::Jsonb | Type::Ints | Type::Texts | Type::Bytea | Type::Interval)
        });
        let index = |column: &TableColumn| {
            let (table, column) = (&self.name, &column.name);
            match dialect {
                Dialect::Postgres => format!("create index on {table} ({column})"),
                Dialect::Hazelcast => {
                    format!("create index if not exists {table}_{column} on {table} ({column}) type sorted")
                }
            }
        };
        indexed.map(index).collect()
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn column(name: String, kind: Type, declared: &str) -> TableColumn {
    TableColumn { name, kind, declared: declared.to_owned(), options: String::new(), is_nullable: true }
}

/// Chooses a default and constraints of a column, in any order, and whether they allow NULL.
fn options(random: &mut Random, name: &str, default: &str) -> (String, bool) {
    let is_nullable = random.chance(50);
    let mut options = vec![match is_nullable {
        true => random.word(&["", " null"]).to_owned(),
        false => " not null".to_owned(),
    }];
    // Infinite dates and timestamps and the end of a day are refused, and the round with them.
    let is_served = !default.to_ascii_lowercase().contains("infinity") && !default.contains("24:00");
    if random.chance(75) && is_served {
        options.push(format!(" default {default}"));
    }
    if random.chance(20) {
        options.push(format!(" check ({name} is not null or id is not null)"));
    }
    random.shuffle(&mut options);
    (options.concat(), is_nullable)
}

fn declared(random: &mut Random, kind: Type, dialect: Dialect) -> String {
    match kind {
        _ if dialect == Dialect::Hazelcast => kind.hazelcast_name().to_owned(),
        Type::Numeric => random.word(&["numeric", "numeric(20,4)", "numeric(12,2)"]).to_owned(),
        Type::Varchar => random.word(&["varchar(12)", "varchar", "varchar(20)"]).to_owned(),
        Type::Char => "char(5)".to_owned(),
        _ => kind.name().to_owned(),
    }
}

/// Chooses a value that fits the column.
fn stored(random: &mut Random, dialect: Dialect, column: &TableColumn, odd_percent: usize) -> String {
    let text = values::text(random, dialect, column.kind, odd_percent);
    let holds = match column.declared.as_str() {
        "numeric(20,4)" | "numeric(12,2)" => text.len() <= 12 && text != "NaN" && text != "1e10",
        "varchar(12)" => text.chars().count() <= 12,
        _ => true,
    };
    if holds { text.to_owned() } else { values::text(random, dialect, column.kind, 0).to_owned() }
}

fn prefix(kind: Type) -> &'static str {
    match kind {
        Type::Int2 => "s",
        Type::Int4 => "i",
        Type::Int8 => "l",
        Type::Numeric => "n",
        Type::Real => "f",
        Type::Double => "d",
        Type::Text => "t",
        Type::Varchar => "v",
        Type::Char => "c",
        Type::Bool => "b",
        Type::Date => "dt",
        Type::Timestamp => "ts",
        Type::Timestamptz => "tz",
        Type::Time => "tm",
        Type::Interval => "iv",
        Type::Uuid => "u",
        Type::Bytea => "by",
        Type::Jsonb => "j",
        Type::Ints => "ai",
        Type::Texts => "at",
    }
}
