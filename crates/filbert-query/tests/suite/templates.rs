//! Statements that differ only in their literals have the same results as if each were planned
//! separately.

use crate::common::Member;
use filbert_grid::query::{Dialect, QueryEngine};
use proptest::prelude::*;
use proptest::sample::select;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, small SMALLINT, big BIGINT, exact NUMERIC(6, 2), d DOUBLE PRECISION, \
                     r REAL, name TEXT, short VARCHAR(3), born DATE, at TIMESTAMP, yes BOOLEAN, words TEXT[], CHECK (big < 90))";
/// Columns with types that parse or normalize their texts, in PostgreSQL and CrateDB.
const TYPED: &str = "CREATE TABLE typed (id UUID PRIMARY KEY, code CHAR(3), few VARCHAR(3), address INET, doc JSONB, bytes BYTEA, \
                     length INTERVAL, moment TIMESTAMPTZ, numbers INT[])";
const PAIRS: &str = "CREATE TABLE pairs (a INT, b TEXT, n INT DEFAULT 7, PRIMARY KEY (a, b))";

/// `#` stands for a number, `@` for a text.
const STATEMENTS: [&str; 61] = [
    "SELECT * FROM typed WHERE id = @",
    "SELECT * FROM typed WHERE id IN (@, @) ORDER BY id",
    "SELECT id FROM typed WHERE code = @ ORDER BY id",
    "SELECT id FROM typed WHERE few = @ AND address = @ ORDER BY id",
    "SELECT id FROM typed WHERE doc = @ ORDER BY id",
    "SELECT id FROM typed WHERE bytes = @ ORDER BY id",
    "SELECT id FROM typed WHERE length = @ OR moment > @ ORDER BY id",
    "SELECT count(*) FROM typed WHERE numbers = @ OR code = #",
    "INSERT INTO typed (id, code, few, doc) VALUES (@, @, @, @)",
    "INSERT INTO typed (id, address, bytes, length) VALUES (@, @, @, @)",
    "INSERT INTO typed (id, moment, numbers) VALUES (@, @, @)",
    "INSERT INTO typed (id, code) VALUES (@, @) ON CONFLICT (id) DO UPDATE SET few = @, doc = @",
    "UPDATE typed SET code = @, doc = @, moment = @ WHERE id = @",
    "UPDATE typed SET numbers = @, bytes = @, length = @, doc = # WHERE id = @",
    "UPDATE typed SET address = @ WHERE id = @ AND code = @",
    "DELETE FROM typed WHERE id = @",
    "SELECT * FROM t WHERE id = #",
    "SELECT id + 1, name FROM t WHERE # = id",
    "SELECT id, name FROM t WHERE id IN (#, #, #) ORDER BY id LIMIT 2",
    "SELECT name FROM t WHERE id = # AND name = @",
    "SELECT name FROM t WHERE id = @",
    "SELECT id FROM t WHERE small = # ORDER BY id",
    "SELECT id FROM t WHERE name = @ ORDER BY id",
    "SELECT id FROM t WHERE name >= @ AND name < @ ORDER BY id",
    "SELECT count(*), sum(big), max(name) FROM t WHERE big > #",
    "SELECT count(*) FROM t WHERE exact = # OR d = # OR r = #",
    "SELECT count(*) FROM t WHERE born >= @",
    "SELECT id = #, name FROM t WHERE id = #",
    "SELECT n FROM pairs WHERE a = # AND b = @",
    "SELECT n FROM pairs WHERE b = @ AND a IN (#, #) ORDER BY n",
    "SELECT id FROM t WHERE small IN (#) AND small NOT IN (#, #, #) ORDER BY id",
    "SELECT id FROM t WHERE small IN (#, #, #, #) AND small NOT IN (#, #, #, #) ORDER BY id",
    "SELECT id FROM t WHERE big IN (#, #, #, #) AND big IN (#, #, #, #) ORDER BY id",
    "SELECT count(*) FROM t WHERE big NOT IN (#, #, #, #) OR big NOT IN (#, #, #, #)",
    "SELECT id FROM (SELECT id, small AS n FROM t WHERE small IN (#, #, #, #)) AS i WHERE n NOT IN (#, #, #, #) ORDER BY id",
    "INSERT INTO t (id, small, big, name) VALUES (#, #, #, @)",
    "INSERT INTO t (id, exact, d, r, short) VALUES (#, #, #, #, @)",
    "INSERT INTO t (id, born, at, yes) VALUES (#, @, @, @)",
    "INSERT INTO t (id, words) VALUES (#, @)",
    "INSERT INTO t (id, name) VALUES (#, #), (#, @)",
    "INSERT INTO t (id, name) VALUES (#, @) ON CONFLICT (id) DO UPDATE SET name = @, big = #",
    "INSERT INTO t (id, name) VALUES (#, @) ON CONFLICT DO NOTHING",
    "INSERT INTO t (id, name, big) VALUES (#, @, DEFAULT) RETURNING id, name, big, id = #",
    "INSERT INTO pairs VALUES (#, @, #)",
    "INSERT INTO pairs (a, b) VALUES (#, @), (#, @)",
    "UPDATE t SET big = # WHERE id = #",
    "UPDATE t SET big = big + #, small = small - # WHERE id = #",
    "UPDATE t SET exact = exact + #, d = d * # WHERE id = #",
    "UPDATE t SET r = r * # WHERE id = #",
    "UPDATE t SET name = @, short = @ WHERE id = #",
    "UPDATE t SET name = name || @ WHERE id = #",
    "UPDATE t SET born = @ WHERE id = #",
    "UPDATE t SET born = born + # WHERE id = #",
    "UPDATE t SET words = @ WHERE id = #",
    "UPDATE t SET yes = big = # WHERE id = # RETURNING id, yes",
    "UPDATE t SET big = # WHERE name = @",
    "UPDATE pairs SET n = n + # WHERE a = # AND b = @",
    "UPDATE pairs SET n = # WHERE a = #",
    "DELETE FROM t WHERE id = #",
    "DELETE FROM pairs WHERE a = # AND b = @ RETURNING *",
    "DELETE FROM t WHERE id = # AND small = #",
];

fn number() -> impl Strategy<Value = String> {
    let few = select(vec![
        "1",
        "2",
        "3",
        "4",
        "-1",
        "0",
        "07",
        "100",
        "40000",
        "-40000",
        "3000000000",
        "9223372036854775807",
    ]);
    let odd = select(vec!["1.5", "1e2", "99999999999999999999", "-9223372036854775808", "+1", "- 1"]);
    prop_oneof![8 => (0..5).prop_map(|n: i32| n.to_string()), 4 => few.prop_map(str::to_owned), 1 => odd.prop_map(str::to_owned)]
}

fn text() -> impl Strategy<Value = String> {
    let typed = [
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
        "'{a0eebc999c0b4ef8bb6d6bb9bd380a12}'",
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'",
        "'a  '",
        "'10.0.0.1'",
        "'{\"b\": 1, \"a\": [1]}'",
        "'[1, 2]'",
        "'{1,2}'",
        "'1 day'",
        "'24:00:00'",
        "'2020-02-29 12:00:00+02'",
        "'infinity'",
    ];
    let some = [
        "'a'",
        "'b'",
        "'c'",
        "'ab'",
        "''",
        "'it''s'",
        "'Zürich'",
        "'2020-02-29'",
        "'1'",
        "'true'",
        "'{x,y}'",
        "'a\\'",
        "NULL",
    ];
    prop_oneof![3 => select(some.to_vec()), 2 => select(typed.to_vec())].prop_map(str::to_owned)
}

/// A statement with random literals.
fn statement() -> impl Strategy<Value = String> {
    let literals = proptest::collection::vec((number(), text()), 8);
    (select(STATEMENTS.to_vec()), literals).prop_map(|(pattern, literals)| {
        let mut literals = literals.into_iter();
        let mut written = String::new();
        for sign in pattern.chars() {
            match sign {
                '#' => written.push_str(&literals.next().unwrap().0),
                '@' => written.push_str(&literals.next().unwrap().1),
                sign => written.push(sign),
            }
        }
        written
    })
}

/// The outcome of a statement.
fn outcome(member: &Member, text: &str) -> Result<Vec<String>, String> {
    member.try_rows(text, &[]).map_err(|error| format!("{} {}", error.sqlstate(), error.message))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn templates_change_nothing(
        dialect in select(vec![Dialect::Postgres, Dialect::Crate, Dialect::Hazelcast]),
        has_indexes in any::<bool>(),
        statements in proptest::collection::vec(statement(), 1..120),
    ) {
        let (by_template, by_itself) = (Member::of(dialect), Member::of(dialect));
        for member in [&by_template, &by_itself] {
            member.change(TABLE);
            member.change(PAIRS);
            if dialect != Dialect::Hazelcast {
                member.change(TYPED);
            }
            if has_indexes {
                member.change("CREATE INDEX by_name ON t (name)");
                member.change("CREATE INDEX by_small ON t (small)");
            }
        }
        for text in &statements {
            // A statement with a comment has no template.
            let planned = format!("{text} -- by itself");
            prop_assert_eq!(outcome(&by_template, text), outcome(&by_itself, &planned), "{:?} {}", dialect, text);
        }
        for all in ["SELECT * FROM t ORDER BY id", "SELECT * FROM pairs ORDER BY a, b", "SELECT * FROM typed ORDER BY id"] {
            prop_assert_eq!(outcome(&by_template, all), outcome(&by_itself, all));
        }
    }
}

#[test]
fn a_text_is_answered_in_place_though_its_literals_are_new() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, n INT, name TEXT)");
    let patterns = [
        "INSERT INTO t VALUES (#, 1, 'number #')",
        "UPDATE t SET n = n + # WHERE id = #",
        "SELECT n, name FROM t WHERE id = #",
        "DELETE FROM t WHERE id = #",
    ];
    for pattern in patterns {
        let text = |number: u32| pattern.replace('#', &number.to_string());
        // Other tests of this program may invalidate plans at any time.
        let in_place = |number: &u32| member.engine.execute_short(&member.statement(&text(*number), &[])).is_some();
        let found = (0..1_000).find(|number| in_place(number) || member.run(&text(*number), &[]).is_err());
        assert!(found.is_some_and(|number| number > 0), "{pattern}: {found:?}");
        member.run(&text(2_000), &[]).unwrap();
    }
}

#[test]
fn a_uuid_is_found_in_each_of_its_forms() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE u (id UUID PRIMARY KEY, k UUID, n INT)");
    member.change("CREATE INDEX u_k ON u (k)");
    member.change(
        "INSERT INTO u VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1)",
    );
    let forms = [
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
        "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
    ];
    for column in ["id", "k"] {
        for condition in [
            "@ = '#'",
            "'#' = @",
            "@ IN ('#')",
            "@ IN ('#', '#')",
            "@ IN ('#') AND @ = '#'",
            "@ IN ('#', '#', '#', '#')",
        ] {
            let text =
                |form: &str| format!("SELECT n FROM u WHERE {}", condition.replace('@', column).replace('#', form));
            // From the second statement on, there may be a template.
            for form in forms.iter().chain(&forms) {
                assert_eq!(member.rows(&text(form)), ["1"], "{}", text(form));
            }
            assert_eq!(member.error(&text("zz")).sqlstate(), "22P02", "{}", text("zz"));
        }
    }
}

#[test]
fn a_template_follows_changes_of_the_table() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    for id in 1..4 {
        member.change(&format!("INSERT INTO t VALUES ({id}, {id})"));
        assert_eq!(member.rows(&format!("SELECT * FROM t WHERE id = {id}")), [format!("{id}|{id}")]);
    }
    member.change("ALTER TABLE t ADD COLUMN note TEXT DEFAULT 'new'");
    assert_eq!(member.rows("SELECT * FROM t WHERE id = 2"), ["2|2|new"]);
    member.change("DROP TABLE t");
    assert_eq!(member.error("SELECT * FROM t WHERE id = 3").sqlstate(), "42P01");
}

#[test]
fn a_statement_is_a_hit_or_a_miss_whether_its_template_serves_or_not() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id INT PRIMARY KEY, n NUMERIC(6, 2), r REAL)");
    let before = member.engine.statistics().plans;
    for n in 0..10 {
        member.change(&format!("UPDATE t SET n = n + {n} WHERE id = {n}"));
        member.change(&format!("UPDATE t SET r = r * {n} WHERE id = {n}"));
    }
    let after = member.engine.statistics().plans;
    assert_eq!(after.hits + after.misses - before.hits - before.misses, 20, "{before:?} {after:?}");
    // A product with a REAL depends on the form of the literal, so its statements have no template.
    assert!(after.misses - before.misses >= 10 && after.hits > before.hits, "{before:?} {after:?}");
}
