//! String literals and parameters without a type, beside a value of each type: in comparisons, as
//! alternatives, in arrays, unions and changes. PostgreSQL reads them as values of that type.
//!
//! All forms are executed with all texts. An engine handles the forms in different places, so a
//! text may be handled correctly in one form and wrongly in another.

use crate::cases::{Step, replay_step};
use crate::postgres::Parameter;
use crate::report::Report;
use crate::server::Server;

/// The tables.
const SETUP: [&str; 3] = [
    "create table untyped (id int primary key, s smallint, b bigint, n numeric(10,2), f numeric, r real, \
     d double precision, t text, v varchar(5), c char(5), bo boolean, da date, ts timestamp, tz timestamptz, ti time, \
     iv interval, u uuid, by bytea, j jsonb, ia int[], ta text[], na numeric(6,1)[])",
    "insert into untyped values (1, 1, 10000000000, 10.25, 10.001, 1.5, 2.5, 'abc', 'abc', 'abc', true, '2024-01-02', \
     '2024-01-02 03:04:05', '2024-01-02 03:04:05+00', '03:04:05', '1 day', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', \
     '\\x01ff', '{\"a\": 1}', '{1,2}', '{a,b}', '{1.5,2}')",
    "insert into untyped values (2, 2, 3, 9.99, 9.999, 0.1, 0.1, 'ab ', 'ab', 'ab', false, '2024-02-29', \
     '2024-02-29 12:00:00.5', '2024-02-29 12:00:00.5+00', '23:59:59.999', '1 mon', \
     '123e4567-e89b-12d3-a456-426614174000', '\\x', '[1, 2]', '{}', '{}', '{}'), (3)",
];

/// The columns, with texts: equal values in several notations, other values, and texts that are
/// none.
const TEXTS: [(&str, &[&str]); 21] = [
    ("s", &["1", "2", "1.5", "40000", "x"]),
    ("b", &["3", "10000000000", "3.0"]),
    ("n", &["9.99", "9.999", "10.250", "1e1", "x"]),
    ("f", &["9.999", "10.0010", "1e-5"]),
    ("r", &["0.1", "1.5", "0.10000001", "1e40", "1e-50"]),
    ("d", &["0.1", "2.5", "NaN", "1e400"]),
    ("t", &["abc", "ab", "ab ", ""]),
    ("v", &["abc", "abcdef", "ab"]),
    ("c", &["abc", "ab", "ab   "]),
    ("bo", &["t", "true", "yes", "0", "on", "x"]),
    ("da", &["2024-01-02", "2024-02-29 10:00", "Jan 2 2024", "x"]),
    ("ts", &["2024-01-02 03:04:05", "2024-02-29T12:00:00.5", "2024-01-02", "2024-01-02 03:04:05+05"]),
    ("tz", &["2024-01-02 03:04:05+00", "2024-01-02 05:04:05+02", "2024-02-29 12:00:00.5"]),
    ("ti", &["03:04:05", "23:59:59.999", "3:04", "x"]),
    ("iv", &["1 day", "24:00:00", "30 days", "1 mon", "P1D"]),
    ("u", &["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc999c0b4ef8bb6d6bb9bd380a11}", "x"]),
    ("by", &["\\x01ff", "\\x", "\\001\\377", "abc"]),
    ("j", &["{\"a\":1}", "[1,2]", "{\"a\": 1.0}", "x"]),
    ("ia", &["{1,2}", "{}", "{1, 2}", "x"]),
    ("ta", &["{a,b}", "{\"a\",\"b\"}", "{}"]),
    ("na", &["{1.5,2}", "{1.50,2.0}", "{1.55,2}"]),
];

/// The statements. `{c}` is the column.
const FORMS: [&str; 38] = [
    "select id from untyped where {c} = $1 order by id",
    "select id from untyped where $1 = {c} order by id",
    "select id from untyped where {c} <> $1 order by id",
    "select id from untyped where {c} < $1 order by id",
    "select id from untyped where {c} >= $1 order by id",
    "select id from untyped where {c} in ($1) order by id",
    "select id from untyped where {c} in ($1, $1) order by id",
    "select id from untyped where {c} not in ($1) order by id",
    "select id from untyped where {c} between $1 and $1 order by id",
    "select id from untyped where {c} is distinct from $1 order by id",
    "select id from untyped where {c} is not distinct from $1 order by id",
    "select id, case {c} when $1 then 1 else 0 end from untyped order by id",
    "select id, coalesce({c}, $1) from untyped order by id",
    "select id, coalesce($1, {c}) from untyped order by id",
    "select id, case when id = 1 then {c} else $1 end from untyped order by id",
    "select id, nullif({c}, $1) from untyped order by id",
    "select {c} from untyped where id = 1 union all select $1 order by 1",
    "select id from untyped where ({c}, id) = ($1, 1) order by id",
    "select id, greatest({c}, $1) from untyped order by id",
    "select array[{c}, $1] from untyped where id = 1",
    "select max(case when {c} = $1 then id end) from untyped",
    "select count(*) filter (where {c} = $1) from untyped",
    "select id, lag({c}, 1, $1) over (order by id) from untyped order by id",
    "select id, nullif($1, {c}) from untyped order by id",
    "select id, coalesce($1, coalesce({c}, {c})) from untyped order by id",
    "select id, case when id = 1 then $1 else coalesce({c}, $1) end from untyped order by id",
    "select * from (values ((select {c} from untyped where id = 1)), ($1)) x (a) order by 1",
    "select id, {c} = coalesce($1, null) from untyped order by id",
    "select id from untyped where {c} = any(array[$1, null]) order by id",
    "select a.id from untyped a where exists (select 1 from untyped b where b.{c} = $1 and a.id = b.id) order by 1",
    "select count(*) from untyped group by {c} having {c} = $1",
    "update untyped set {c} = {c} where id = 1 returning coalesce({c}, $1), {c} = $1",
    "update untyped set {c} = case when id = 3 then $1 else {c} end where id = 3 returning {c}",
    "insert into untyped (id, {c}) values (3, null) on conflict (id) do update set {c} = coalesce(excluded.{c}, $1) \
     returning {c}",
    "update untyped set {c} = $1 where id = 3 returning {c}",
    "update untyped set t = 'a' || $1, {c} = {c} where id = 3 returning t, coalesce($1, 'm'), $1 in ('a', 'b'), {c}",
    "insert into untyped (id) values (3) on conflict (id) do update set t = 'a' || $1 returning greatest($1, 'm'), {c}",
    "update untyped set {c} = null where {c} = $1 and id = 3 returning id",
];

/// Executes all statements on both servers.
pub(crate) fn run(other: &mut dyn Server, filbert: &mut dyn Server, report: &mut Report) {
    prepare(other);
    prepare(filbert);
    let setup: Vec<String> = SETUP.map(str::to_owned).to_vec();
    for (column, texts) in TEXTS {
        for form in FORMS {
            let statement = form.replace("{c}", column);
            for text in texts {
                let literal = statement.replace("$1", &format!("'{}'", text.replace('\'', "''")));
                let parameter = Parameter { oid: 0, value: Some((*text).to_owned()) };
                let steps = [
                    Step { text: literal, ..Step::default() },
                    Step { text: statement.clone(), parameters: vec![parameter], ..Step::default() },
                ];
                for step in steps {
                    replay_step("without a type", "postgres", &step, &setup, other, filbert, report);
                }
            }
        }
    }
}

fn prepare(server: &mut dyn Server) {
    server.run("drop table if exists untyped");
    for text in SETUP {
        server.run(text);
    }
}
