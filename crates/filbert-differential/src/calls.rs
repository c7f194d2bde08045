//! Calls of functions, operators and casts in Hazelcast's dialect, with literals of each type. They
//! check the value and the type of each result, which a query over tables seldom shows alone.

use crate::cases::{Step, replay_step};
use crate::random::Random;
use crate::report::Report;
use crate::rounds::Span;
use crate::server::Server;

/// The number of calls per round.
const ROUND_CALLS: usize = 500;

/// Numbers, for a cast to each numeric type that has them.
const NUMBERS: [&str; 9] = ["0", "1", "-7", "100", "2.5", "-2.5", "12.345", "0.1", "1e2"];
const WHOLE_TYPES: [&str; 4] = ["tinyint", "smallint", "int", "bigint"];
const FRACTION_TYPES: [&str; 3] = ["decimal", "real", "double"];

/// Number literals, which have types of their own.
const LITERALS: [&str; 7] = ["5", "-3", "2.5", "1e2", "300", "70000", "3000000000"];

const TEXTS: [&str; 11] = [
    "'abc'",
    "' aB '",
    "''",
    "'12'",
    "'1.5'",
    "'true'",
    "'2024-02-29'",
    "'10:20:30'",
    "'Zürich'",
    "'2024-02-29T10:20:30'",
    "cast(null as varchar)",
];

const TIMES: [&str; 5] = [
    "cast('2024-02-29' as date)",
    "cast('10:20:30.123' as time)",
    "cast('2024-02-29T10:20:30.123456' as timestamp)",
    "cast('1969-12-31T23:59:59.999' as timestamp)",
    "cast('2024-02-29T10:20:30+01:00' as timestamp with time zone)",
];

const OTHERS: [&str; 6] =
    ["true", "false", "null", "cast(null as int)", "cast('[1,2]' as json)", "cast('{\"a\": 1}' as json)"];

const TYPES: [&str; 15] = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "decimal",
    "real",
    "double",
    "varchar",
    "date",
    "time",
    "timestamp",
    "timestamp with time zone",
    "json",
    "object",
];

const UNITS: [&str; 18] = [
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "week",
    "dow",
    "doy",
    "isodow",
    "isoyear",
    "quarter",
    "epoch",
    "century",
    "decade",
    "millennium",
];

/// Forms with one operand: `{a}`.
const UNARY: [&str; 43] = [
    "abs({a})",
    "sign({a})",
    "ceil({a})",
    "floor({a})",
    "round({a})",
    "truncate({a})",
    "sqrt({a})",
    "cbrt({a})",
    "exp({a})",
    "ln({a})",
    "log10({a})",
    "sin({a})",
    "cos({a})",
    "tan({a})",
    "cot({a})",
    "asin({a})",
    "acos({a})",
    "atan({a})",
    "degrees({a})",
    "radians({a})",
    "square({a})",
    "upper({a})",
    "lower({a})",
    "initcap({a})",
    "ascii({a})",
    "length({a})",
    "char_length({a})",
    "character_length({a})",
    "reverse({a})",
    "trim({a})",
    "ltrim({a})",
    "rtrim({a})",
    "btrim({a})",
    "to_epoch_millis({a})",
    "to_timestamp_tz({a})",
    "-{a}",
    "not {a}",
    "{a} is null",
    "{a} is true",
    "{a} is not false",
    "trim(leading 'a' from {a})",
    "substring({a}, 2)",
    "json_value({a}, '$.a')",
];

/// Forms with two operands: `{a}` and `{b}`.
const BINARY: [&str; 28] = [
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "{a} / {b}",
    "{a} % {b}",
    "{a} = {b}",
    "{a} <> {b}",
    "{a} < {b}",
    "{a} >= {b}",
    "{a} || {b}",
    "{a} and {b}",
    "{a} like {b}",
    "{a} in ({b}, 1)",
    "{a} between {b} and {b}",
    "coalesce({a}, {b})",
    "nullif({a}, {b})",
    "case when true then {a} else {b} end",
    "case {a} when {b} then 1 else 2 end",
    "power({a}, {b})",
    "mod({a}, {b})",
    "atan2({a}, {b})",
    "round({a}, {b})",
    "truncate({a}, {b})",
    "concat_ws(',', {a}, {b})",
    "substring({a}, {b})",
    "position({a} in {b})",
    "replace({a}, {b}, 'x')",
    "substring({a}, {b}, 2)",
];

/// Functions of another mathematical library; quotients, which have more digits in Hazelcast; and
/// constant `REAL`s, which have fewer.
const INEXACT: [&str; 16] = [
    "as real)", "sqrt(", "cbrt(", "exp(", "ln(", "log10(", "sin(", "cos(", "tan(", "cot(", "acos(", "atan", "degrees(",
    "radians(", "power(", " / ",
];

/// Runs rounds of random calls until the time is over.
pub(crate) fn run(other: &mut dyn Server, filbert: &mut dyn Server, span: &mut Span<'_>, report: &mut Report) {
    for round in span.first.. {
        if span.is_over(round) {
            break;
        }
        let mut random = Random::new(span.seed, round);
        for _ in 0..ROUND_CALLS {
            let text = format!("select {}", call(&mut random));
            let is_inexact = INEXACT.iter().any(|part| text.contains(part));
            let step = Step { text, is_inexact, ..Step::default() };
            replay_step("call", "hazelcast", &step, &[], other, filbert, report);
        }
    }
}

fn call(random: &mut Random) -> String {
    let class = random.below(8);
    let first = operand(random, class);
    match random.below(12) {
        0..4 => random.word(&UNARY).replace("{a}", &first),
        4 => format!("cast({first} as {})", random.word(&TYPES)),
        5 => format!("extract({} from {})", random.word(&UNITS), random.word(&TIMES)),
        _ => {
            // Operands of unlike types are mostly refused.
            let class = if random.chance(75) { class } else { random.below(8) };
            random.word(&BINARY).replace("{a}", &first).replace("{b}", &operand(random, class))
        }
    }
}

/// An operand of a class: four of eight are numbers.
fn operand(random: &mut Random, class: usize) -> String {
    match class {
        0 | 1 => random.word(&TEXTS).to_owned(),
        2 => random.word(&TIMES).to_owned(),
        3 => random.word(&OTHERS).to_owned(),
        4 => random.word(&LITERALS).to_owned(),
        _ => {
            let number = random.word(&NUMBERS);
            let has_fraction = number.contains(['.', 'e']);
            let types = if has_fraction || random.chance(40) { &FRACTION_TYPES[..] } else { &WHOLE_TYPES[..] };
            format!("cast({number} as {})", random.word(types))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_written_with_its_operands() {
        let mut random = Random::new(1, 0);
        let calls: Vec<String> = (0..5_000).map(|_| call(&mut random)).collect();
        assert!(calls.iter().all(|call| !call.contains(['{', '}']) || call.contains("as json")), "{calls:?}");
        for part in ["cast(2.5 as real)", "extract(isodow", "substring(", " between ", "cast(null as int)"] {
            assert!(calls.iter().any(|call| call.contains(part)), "{part}");
        }
    }
}
