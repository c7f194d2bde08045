//! The races: transfers, inserts and deletes of the same keys, moved keys, schema changes during
//! row changes.

use anyhow::Result;

use super::{Acknowledged, Racer, STATEMENTS, Scenario, total};

/// The number of rows that all connections change.
const ROWS: usize = 8;

pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "additions to the same rows",
        setup: &[
            "drop table if exists race_adds",
            "create table race_adds (id int primary key, n bigint, t text)",
            "insert into race_adds select v, 0, 'x' from generate_series(0, 7) g(v)",
        ],
        work: add,
        check: check_additions,
    },
    Scenario {
        name: "transfers in one statement",
        setup: &[
            "drop table if exists race_transfers",
            "create table race_transfers (id int primary key, n bigint)",
            "create index on race_transfers (n)",
            "insert into race_transfers select v, 100 from generate_series(0, 7) g(v)",
        ],
        work: transfer,
        check: check_transfers,
    },
    Scenario {
        name: "inserts and deletes of the same keys",
        setup: &[
            "drop table if exists race_keys",
            "create table race_keys (id int primary key, n int)",
            "create index on race_keys (n)",
        ],
        work: insert_and_delete,
        check: check_keys,
    },
    Scenario {
        name: "upserts that count",
        setup: &[
            "drop table if exists race_upserts",
            "create table race_upserts (id int primary key, n bigint default 0)",
        ],
        work: upsert,
        check: check_upserts,
    },
    Scenario {
        name: "columns added by many",
        setup: &[
            "drop table if exists race_columns",
            "create table race_columns (id int primary key, n bigint)",
            "insert into race_columns select v, 0 from generate_series(0, 7) g(v)",
        ],
        work: add_columns,
        check: check_columns,
    },
    Scenario {
        name: "columns added and dropped beside writes",
        setup: &[
            "drop table if exists race_alters",
            "create table race_alters (id int primary key, n bigint)",
            "insert into race_alters select v, 0 from generate_series(0, 7) g(v)",
        ],
        work: alter_beside_writes,
        check: check_alters,
    },
    Scenario {
        name: "keys that move",
        setup: &[
            "drop table if exists race_moves",
            "create table race_moves (id int primary key, n int)",
            "insert into race_moves select v, v from generate_series(0, 63) g(v)",
        ],
        work: move_keys,
        check: check_moves,
    },
    Scenario {
        name: "tables made and dropped beside inserts",
        setup: &["drop table if exists race_drops"],
        work: create_and_drop,
        check: check_drops,
    },
    Scenario {
        name: "several rows or none",
        setup: &["drop table if exists race_several", "create table race_several (id int primary key, n int)"],
        work: insert_several,
        check: check_several,
    },
];

fn add(racer: &mut Racer) -> Result<()> {
    for _ in 0..STATEMENTS {
        let (row, by) = (racer.random.below(ROWS), racer.random.between(-5, 5));
        let text = if racer.random.chance(70) {
            format!("update race_adds set n = n + {by} where id = {row}")
        } else {
            format!("update race_adds set n = n + {by}, t = t || 'x' where id = {row} and t like 'x%'")
        };
        let changed = racer.change(&text);
        racer.count(row.to_string(), by * changed);
    }
    Ok(())
}

fn sums(racer: &mut Racer, all: &[Acknowledged], table: &str, keys: usize) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for row in 0..keys {
        let expected = total(all, &row.to_string());
        let found = racer.number(&format!("select n from {table} where id = {row}"))?;
        if found != expected {
            wrong.push(format!("row {row} has {found}, acknowledged was {expected}"));
        }
    }
    Ok(wrong)
}

fn check_additions(racer: &mut Racer, all: &[Acknowledged]) -> Result<Vec<String>> {
    sums(racer, all, "race_adds", ROWS)
}

fn transfer(racer: &mut Racer) -> Result<()> {
    for _ in 0..STATEMENTS {
        let (from, to) = (racer.random.below(ROWS), racer.random.below(ROWS));
        if from != to {
            racer.change(&format!(
                "update race_transfers set n = n + case id when {from} then -1 else 1 end where id in ({from}, {to})"
            ));
        }
    }
    Ok(())
}

fn check_transfers(racer: &mut Racer, _: &[Acknowledged]) -> Result<Vec<String>> {
    let sum = racer.number("select sum(n) from race_transfers")?;
    let by_index = racer.number("select count(*) from race_transfers where n >= -100000")?;
    let mut wrong = Vec::new();
    if sum != 100 * ROWS as i64 {
        wrong.push(format!("the sum is {sum}, it was {}", 100 * ROWS));
    }
    if by_index != ROWS as i64 {
        wrong.push(format!("the index finds {by_index} of {ROWS} rows"));
    }
    Ok(wrong)
}

fn insert_and_delete(racer: &mut Racer) -> Result<()> {
    for _ in 0..STATEMENTS {
        let key = racer.random.below(ROWS);
        let (text, sign) = match racer.random.below(4) {
            0 => (format!("insert into race_keys values ({key}, {key})"), 1),
            1 => (format!("insert into race_keys values ({key}, {key}) on conflict do nothing"), 1),
            2 => (format!("delete from race_keys where id = {key}"), -1),
            _ => (format!("delete from race_keys where n = {key}"), -1),
        };
        let changed = racer.change(&text);
        racer.count(key.to_string(), sign * changed);
    }
    Ok(())
}

fn check_keys(racer: &mut Racer, all: &[Acknowledged]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for key in 0..ROWS {
        let expected = total(all, &key.to_string());
        for column in ["id", "n", "n + 0"] {
            let found = racer.number(&format!("select count(*) from race_keys where {column} = {key}"))?;
            if found != expected {
                wrong.push(format!("{found} rows with {column} = {key}, acknowledged were {expected}"));
            }
        }
    }
    Ok(wrong)
}

fn upsert(racer: &mut Racer) -> Result<()> {
    for _ in 0..STATEMENTS {
        let key = racer.random.below(ROWS);
        let changed = racer.change(&format!(
            "insert into race_upserts values ({key}, 1) on conflict (id) do update set n = race_upserts.n + excluded.n"
        ));
        racer.count(key.to_string(), changed);
    }
    Ok(())
}

fn check_upserts(racer: &mut Racer, all: &[Acknowledged]) -> Result<Vec<String>> {
    sums(racer, all, "race_upserts", ROWS)
}

fn add_columns(racer: &mut Racer) -> Result<()> {
    let number = racer.number;
    for column in 0..2 {
        if racer.run(&format!("alter table race_columns add column c{number}_{column} int")).is_some() {
            racer.count(format!("c{number}_{column}"), 1);
        }
    }
    Ok(())
}

fn check_columns(racer: &mut Racer, all: &[Acknowledged]) -> Result<Vec<String>> {
    let answer = racer.run("select * from race_columns").map(|answer| answer.columns).unwrap_or_default();
    let told: Vec<&String> = all.iter().flat_map(|told| told.counts.keys()).collect();
    let missing: Vec<&String> =
        told.iter().copied().filter(|name| answer.iter().all(|column| column.name != **name)).collect();
    let mut wrong = Vec::new();
    if !missing.is_empty() {
        wrong.push(format!("{} of {} columns that were acknowledged are missing", missing.len(), told.len()));
    }
    let rows = racer.number("select count(*) from race_columns")?;
    if rows != ROWS as i64 {
        wrong.push(format!("{rows} rows are left of {ROWS}"));
    }
    Ok(wrong)
}

fn alter_beside_writes(racer: &mut Racer) -> Result<()> {
    let number = racer.number;
    for step in 0..STATEMENTS {
        match (number, step % 4) {
            (0 | 1, 0) => drop(racer.run(&format!("alter table race_alters add column x{number} int default {step}"))),
            (0 | 1, 1) => drop(racer.run(&format!("alter table race_alters drop column x{number}"))),
            (2, 0) => drop(racer.run("alter table race_alters alter column n type numeric")),
            (2, 2) => drop(racer.run("alter table race_alters alter column n type bigint")),
            (0..=2, _) => {}
            _ => {
                let row = racer.random.below(ROWS);
                let changed = racer.change(&format!("update race_alters set n = n + 1 where id = {row}"));
                racer.count(row.to_string(), changed);
                let key = 1000 + number * STATEMENTS + step;
                let inserted = racer.change(&format!("insert into race_alters (id, n) values ({key}, 1)"));
                racer.count("inserted", inserted);
            }
        }
    }
    Ok(())
}

fn check_alters(racer: &mut Racer, all: &[Acknowledged]) -> Result<Vec<String>> {
    let mut wrong = sums(racer, all, "race_alters", ROWS)?;
    let (found, expected) =
        (racer.number("select count(*) from race_alters where id >= 1000")?, total(all, "inserted"));
    if found != expected {
        wrong.push(format!("{found} rows were kept, acknowledged were {expected}"));
    }
    Ok(wrong)
}

fn move_keys(racer: &mut Racer) -> Result<()> {
    for _ in 0..STATEMENTS {
        let (key, by) = (racer.random.below(64), 64 * (1 + racer.random.below(3)));
        match racer.random.below(3) {
            0 => racer.change(&format!("update race_moves set id = id + {by} where id = {key}")),
            1 => racer.change(&format!("update race_moves set id = id % 64 where n = {key}")),
            _ => racer.change(&format!("update race_moves set id = id + 64 where n between {key} and {}", key + 3)),
        };
    }
    Ok(())
}

fn check_moves(racer: &mut Racer, _: &[Acknowledged]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (what, text) in
        [("rows", "select count(*) from race_moves"), ("values", "select count(distinct n) from race_moves")]
    {
        let found = racer.number(text)?;
        if found != 64 {
            wrong.push(format!("{found} {what} are left of 64"));
        }
    }
    Ok(wrong)
}

fn create_and_drop(racer: &mut Racer) -> Result<()> {
    for _ in 0..STATEMENTS {
        match racer.random.below(4) {
            0 => drop(racer.run("create table if not exists race_drops (id int primary key, n int)")),
            1 if racer.number < 4 => drop(racer.run("drop table if exists race_drops")),
            _ => {
                let key = racer.random.below(1000);
                racer.change(&format!("insert into race_drops values ({key}, 1) on conflict do nothing"));
            }
        }
    }
    Ok(())
}

fn check_drops(racer: &mut Racer, _: &[Acknowledged]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for text in ["drop table if exists race_drops", "create table race_drops (id int primary key, n int)"] {
        let outcome = racer.connection.run(text);
        if !outcome.is_answer() {
            wrong.push(format!("afterwards, {text}: {}", outcome.shown()));
        }
    }
    let left = racer.number("select count(*) from race_drops")?;
    if left != 0 {
        wrong.push(format!("a new table has {left} rows"));
    }
    Ok(wrong)
}

fn insert_several(racer: &mut Racer) -> Result<()> {
    for step in 0..STATEMENTS {
        // Three keys that other connections insert too, and a unique key that identifies the
        // statement.
        let first = racer.random.below(40);
        let rows: Vec<String> = (0..3).map(|next| format!("({}, {})", first + next, racer.number)).collect();
        let own = 1000 + racer.number * STATEMENTS + step;
        let inserted = racer.change(&format!("insert into race_several values {}, ({own}, -1)", rows.join(", ")));
        racer.count("inserted", inserted);
    }
    Ok(())
}

fn check_several(racer: &mut Racer, all: &[Acknowledged]) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let expected = total(all, "inserted");
    let found = racer.number("select count(*) from race_several")?;
    let statements = racer.number("select count(*) from race_several where n = -1")?;
    if found != expected {
        wrong.push(format!("{found} rows, acknowledged were {expected}"));
    }
    if found != 4 * statements {
        wrong.push(format!("{found} rows by {statements} statements of 4 rows: some were done in part"));
    }
    Ok(wrong)
}
