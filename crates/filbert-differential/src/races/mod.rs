//! Races: many connections change the same rows and the same tables at once, and a model tells what must be left.
//!
//! A model counts what was acknowledged. Whatever order the statements ran in, counts, sums and columns must be what the
//! acknowledged ones make; a statement that was refused must have done nothing.

mod scenarios;

use std::net::SocketAddr;
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::compare::{Kind, Verdict, compare};
use crate::finding::Finding;
use crate::outcome::{Answer, Outcome};
use crate::postgres::Connection;
use crate::random::Random;
use crate::report::Report;
use crate::rounds::Span;

/// Connections that race.
const CONNECTIONS: usize = 12;

/// Statements of one connection in one race.
const STATEMENTS: usize = 40;

/// A race: what makes its tables, what each connection does, and what must hold afterwards.
struct Scenario {
    name: &'static str,
    setup: &'static [&'static str],
    /// What a connection of this number does; it returns what it was told.
    work: fn(&mut Racer) -> Result<()>,
    /// What does not hold, given what all were told.
    check: fn(&mut Racer, &[Acknowledged]) -> Result<Vec<String>>,
}

/// What one connection was told: a number for each thing that it counts.
#[derive(Clone, Debug, Default)]
struct Acknowledged {
    counts: std::collections::BTreeMap<String, i64>,
    /// Errors in a library's words.
    foreign: Vec<(String, Outcome)>,
}

/// One connection in a race.
struct Racer {
    number: usize,
    random: Random,
    connection: Connection,
    told: Acknowledged,
}

impl Racer {
    /// Runs a statement; the rows that it changed or found, none when it was refused.
    fn run(&mut self, text: &str) -> Option<Answer> {
        let outcome = self.connection.run(text);
        if let Verdict::Different(Kind::Foreign | Kind::Lost | Kind::Timeout) =
            compare(&outcome, &outcome, Default::default())
        {
            self.told.foreign.push((text.to_owned(), outcome.clone()));
        }
        match outcome {
            Outcome::Answer(answer) => Some(answer),
            _ => None,
        }
    }

    /// Runs a change; the number of rows in its command tag.
    fn change(&mut self, text: &str) -> i64 {
        let tag = self.run(text).map(|answer| answer.tag).unwrap_or_default();
        tag.split(' ').next_back().and_then(|count| count.parse().ok()).unwrap_or_default()
    }

    fn count(&mut self, what: impl Into<String>, by: i64) {
        *self.told.counts.entry(what.into()).or_default() += by;
    }

    /// A number that a query gives.
    fn number(&mut self, text: &str) -> Result<i64> {
        let answer = self.run(text).with_context(|| format!("{text} was refused"))?;
        let value = answer.rows.first().and_then(|row| row.first()).cloned().flatten().unwrap_or("0".to_owned());
        value.parse().with_context(|| format!("{text} gave {value:?}"))
    }
}

/// What all connections were told of one thing.
fn total(all: &[Acknowledged], what: &str) -> i64 {
    all.iter().filter_map(|told| told.counts.get(what)).sum()
}

/// Runs all races over and over until the time is over.
pub(crate) fn run(address: SocketAddr, span: &mut Span<'_>, report: &mut Report) -> Result<()> {
    for round in span.first.. {
        for scenario in scenarios::ALL {
            if span.is_over(round) {
                return Ok(());
            }
            race(address, scenario, span.seed, round, report)?;
        }
    }
    Ok(())
}

fn race(address: SocketAddr, scenario: &Scenario, seed: u64, round: u64, report: &mut Report) -> Result<()> {
    let open = |number: usize| -> Result<Racer> {
        let connection = Connection::open(address, "filbert", &["set statement_timeout = '20s'"])?;
        let random = Random::new(seed, round * 1000 + number as u64);
        Ok(Racer { number, random, connection, told: Acknowledged::default() })
    };
    let mut judge = open(CONNECTIONS)?;
    for text in scenario.setup {
        judge.run(text).with_context(|| format!("{text} was refused"))?;
    }
    let work = |number: usize| -> Result<Acknowledged> {
        let mut racer = open(number)?;
        (scenario.work)(&mut racer)?;
        Ok(racer.told)
    };
    let all = thread::scope(|scope| {
        let racers: Vec<_> = (0..CONNECTIONS).map(|number| scope.spawn(move || work(number))).collect();
        let ended = racers.into_iter().map(|racer| racer.join().map_err(|_| anyhow!("a racer panicked"))?);
        ended.collect::<Result<Vec<_>>>()
    })?;
    *report.statements.entry(format!("race: {}", scenario.name)).or_default() += CONNECTIONS * STATEMENTS;
    report.compared += 1;
    let wrong = match (scenario.check)(&mut judge, &all) {
        Ok(wrong) => wrong,
        Err(error) => vec![format!("{error:#}")],
    };
    let place = format!("race: {}, seed {seed} round {round}", scenario.name);
    let setup: Vec<String> = scenario.setup.iter().map(|text| (*text).to_owned()).collect();
    if wrong.is_empty() {
        report.same += 1;
    }
    for what in wrong {
        *report.met.entry(Kind::Race).or_default() += 1;
        let (other, filbert) = ("what was acknowledged".to_owned(), what);
        report.find(Finding {
            kind: Kind::Race,
            dialect: "postgres",
            place: place.clone(),
            setup: setup.clone(),
            statement: scenario.name.to_owned(),
            other,
            filbert,
        });
    }
    for (text, outcome) in all.into_iter().chain([judge.told]).flat_map(|told| told.foreign) {
        *report.met.entry(Kind::Foreign).or_default() += 1;
        let (other, filbert) = ("an error in the dialect's words".to_owned(), outcome.shown());
        report.find(Finding {
            kind: Kind::Foreign,
            dialect: "postgres",
            place: place.clone(),
            setup: setup.clone(),
            statement: text,
            other,
            filbert,
        });
    }
    Ok(())
}
