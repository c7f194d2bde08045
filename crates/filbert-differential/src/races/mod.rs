//! Races: many connections change the same rows and tables concurrently, and a model checks the
//! final state.
//!
//! The model counts acknowledged changes. For any order of execution, counts, sums and columns must
//! match the acknowledged changes. A rejected statement must have no effect.

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

/// The number of concurrent connections.
const CONNECTIONS: usize = 12;

/// The number of statements per connection and race.
const STATEMENTS: usize = 40;

/// A race: the statements that create its tables, the work of each connection, and the final check.
struct Scenario {
    name: &'static str,
    setup: &'static [&'static str],
    /// The work of one connection. It records the acknowledgements.
    work: fn(&mut Racer) -> Result<()>,
    /// Checks the final state against all acknowledgements. Returns the violations.
    check: fn(&mut Racer, &[Acknowledged]) -> Result<Vec<String>>,
}

/// The acknowledgements of one connection: a number for each counted item.
#[derive(Clone, Debug, Default)]
struct Acknowledged {
    counts: std::collections::BTreeMap<String, i64>,
    /// Errors with texts of a library.
    foreign: Vec<(String, Outcome)>,
}

/// One connection of a race.
struct Racer {
    number: usize,
    random: Random,
    connection: Connection,
    told: Acknowledged,
}

impl Racer {
    /// Executes a statement. Returns its result, or `None` if it was rejected.
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

    /// Executes a change. Returns the number of rows from its command tag.
    fn change(&mut self, text: &str) -> i64 {
        let tag = self.run(text).map(|answer| answer.tag).unwrap_or_default();
        tag.split(' ').next_back().and_then(|count| count.parse().ok()).unwrap_or_default()
    }

    fn count(&mut self, what: impl Into<String>, by: i64) {
        *self.told.counts.entry(what.into()).or_default() += by;
    }

    /// Executes a query with a number as its result.
    fn number(&mut self, text: &str) -> Result<i64> {
        let answer = self.run(text).with_context(|| format!("{text} was refused"))?;
        let value = answer.rows.first().and_then(|row| row.first()).cloned().flatten().unwrap_or("0".to_owned());
        value.parse().with_context(|| format!("{text} gave {value:?}"))
    }
}

/// The sum of an item over all connections.
fn total(all: &[Acknowledged], what: &str) -> i64 {
    all.iter().filter_map(|told| told.counts.get(what)).sum()
}

/// Runs all races repeatedly until the time is over.
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
