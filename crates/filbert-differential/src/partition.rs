//! Ternary-logic partitioning: a condition divides rows into rows for which it is true, false or
//! unknown. The combined parts must equal the whole. This test needs no other server.

use anyhow::Result;

use crate::compare::{How, Kind, Verdict, cause, compare, same_rows, without_signs_of_zeros};
use crate::finding::Finding;
use crate::generate::Generator;
use crate::generate::functions::Functions;
use crate::generate::partition::{Combine, Partition};
use crate::generate::schema::Schema;
use crate::outcome::{Outcome, Row};
use crate::random::Random;
use crate::report::Report;
use crate::rounds::Span;
use crate::session::{Session, Way};
use crate::tree::{Literals, print};

/// The number of partitions per round, over the same tables.
const ROUND_PARTITIONS: usize = 80;

/// Runs rounds until the time is over.
pub(crate) fn run(
    session: &mut Session,
    functions: &Functions,
    span: &mut Span<'_>,
    report: &mut Report,
) -> Result<()> {
    let (dialect, seed) = (session.dialect.name(), span.seed);
    for round in span.first.. {
        if span.is_over(round) {
            break;
        }
        // Use different tables than the comparison rounds.
        let mut random = Random::new(seed, !round);
        let schema = Schema::generate(&mut random, session.dialect);
        // The comparison with the other server reports differences while tables are filled.
        let Ok(schema) = session.load(&schema, &mut |_, _, _| ()) else { continue };
        for number in 0..ROUND_PARTITIONS {
            if (span.until)() {
                return Ok(());
            }
            let part = Random::new(random.next(), number as u64);
            let mut generator = Generator::new(part, functions, &schema);
            let partition = generator.a_partition();
            let way = if generator.random.chance(70) { Way::Literal } else { Way::Prepared };
            let variant = generator.random.below(session.variants.len());
            *report.statements.entry("partition".to_owned()).or_default() += 1;
            report.compared += 1;
            check(session, &partition, way, variant, (dialect, seed, round), report);
        }
    }
    Ok(())
}

fn check(
    session: &mut Session,
    partition: &Partition,
    way: Way,
    variant: usize,
    (dialect, seed, round): (&'static str, u64, u64),
    report: &mut Report,
) {
    let mut outcomes = Vec::new();
    for statement in std::iter::once(&partition.whole).chain(&partition.parts) {
        let outcome = session.ask_filbert(statement, way, variant);
        let text = print(statement, session.dialect, Literals::Written).text;
        let kind = match (compare(&outcome, &outcome, How::default()), &outcome) {
            (Verdict::Different(kind), _) => kind,
            (_, Outcome::Failure { sqlstate, message, .. }) => return report.refuse(cause(sqlstate, message), &text),
            _ => {
                outcomes.push(outcome.clone());
                continue;
            }
        };
        *report.met.entry(kind).or_default() += 1;
        if let Outcome::Failure { sqlstate, message, .. } = &outcome
            && !report.is_worth_a_look(cause(sqlstate, message))
        {
            return;
        }
        let place = format!("partition, seed {seed} round {round}");
        let (other, filbert) = (String::new(), outcome.shown());
        return report.find(Finding { kind, dialect, place, setup: Vec::new(), statement: text, other, filbert });
    }
    let Some((whole, parts)) = outcomes.split_first() else { return };
    let (mut there, mut together) = (shown(whole.rows(), partition.combine), together(parts, partition.combine));
    if let Outcome::Answer(answer) = whole {
        // Zeros with different signs are equal, so the minimum may be either.
        let types: Vec<u32> = answer.columns.iter().map(|column| column.oid).collect();
        [&mut there, &mut together].into_iter().for_each(|rows| without_signs_of_zeros(rows, &types));
    }
    let floats: Vec<bool> = if partition.whole.is_inexact() { vec![true; 99] } else { Vec::new() };
    if same_rows(&there, &together, &floats, false) {
        report.same += 1;
        return;
    }
    *report.met.entry(Kind::Partition).or_default() += 1;
    let name = session.variants.get(variant).map_or("", |variant| variant.name);
    let place = format!("{}, {name}, seed {seed} round {round}", way.name());
    let statement = print(&partition.whole, session.dialect, Literals::Written).text;
    let setup = partition.parts.iter().map(|part| print(part, session.dialect, Literals::Written).text).collect();
    let (other, filbert) = (format!("{together:?}"), whole.shown());
    report.find(Finding { kind: Kind::Partition, dialect, place, setup, statement, other, filbert });
}

/// The rows of the whole query, combined in the same way as the parts.
fn shown(rows: &[Row], combine: Combine) -> Vec<Row> {
    match combine {
        Combine::All | Combine::Sum => rows.to_vec(),
        Combine::Distinct => distinct(rows.to_vec()),
    }
}

fn distinct(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows.dedup();
    rows
}

fn together(parts: &[Outcome], combine: Combine) -> Vec<Row> {
    let all: Vec<Row> = parts.iter().flat_map(Outcome::rows).cloned().collect();
    match combine {
        Combine::All => all,
        Combine::Distinct => distinct(all),
        Combine::Sum => {
            let number = |row: &Row| row.first().and_then(Option::as_deref).and_then(|text| text.parse::<i128>().ok());
            let sum: i128 = all.iter().filter_map(number).sum();
            vec![vec![Some(sum.to_string())]]
        }
    }
}
