//! The rounds of a comparison: tables, then queries and changes. Each statement is executed in
//! several ways and on each variant.

use anyhow::{Context, Result};

use crate::compare::{Kind, Verdict, cause};
use crate::finding::Finding;
use crate::generate::Generator;
use crate::generate::functions::Functions;
use crate::generate::schema::{Schema, Table};
use crate::outcome::Outcome;
use crate::random::Random;
use crate::report::Report;
use crate::session::{Case, Session, Trial, Variant, Way};
use crate::tree::{Dialect, Literals, Statement, print, shrink};

/// The number of statements per round, over the same tables.
const ROUND_STATEMENTS: usize = 120;

/// The maximum number of rounds with tables that could not be created. A run stops after them.
const LEFT_OUT_MAX: usize = 3;

/// The maximum number of smaller cases that are tried for one difference. It is not a time limit,
/// so that a seed finds the same on every machine.
const TRIALS_MAX: usize = 400;

/// The rounds to run, and the end time.
pub(crate) struct Span<'a> {
    pub(crate) seed: u64,
    pub(crate) first: u64,
    /// `None` means unlimited.
    pub(crate) count: Option<u64>,
    pub(crate) until: &'a mut dyn FnMut() -> bool,
}

impl Span<'_> {
    /// Whether the run ends before this round.
    pub(crate) fn is_over(&mut self, round: u64) -> bool {
        self.count.is_some_and(|count| round >= self.first + count) || (self.until)()
    }
}

/// Runs rounds until the time is over.
pub(crate) fn run(
    session: &mut Session,
    functions: &Functions,
    span: &mut Span<'_>,
    report: &mut Report,
) -> Result<()> {
    let seed = span.seed;
    let mut left_out = 0;
    for round in span.first.. {
        if span.is_over(round) {
            break;
        }
        session.begin_round(seed, round);
        let mut random = Random::new(seed, round);
        let schema = Schema::generate(&mut random, session.dialect);
        let mut refused = Vec::new();
        let loaded = session.load(&schema, &mut |text, other, filbert| refused.push((text, other, filbert)));
        for (statement, other, filbert) in refused {
            tell_setup(report, statement, &other, &filbert, (session.dialect, seed, round));
        }
        let schema = match loaded {
            Ok(schema) => schema,
            Err(error) => {
                left_out += 1;
                if left_out > LEFT_OUT_MAX {
                    return Err(error.context("too many rounds cannot be run"));
                }
                println!("round {round} of seed {seed} is left out: {error:#}");
                continue;
            }
        };
        let mut round_of = Round { session, schema: &schema, seed, round, report };
        round_of.statements(&mut random, functions, span.until)?;
    }
    Ok(())
}

fn tell_setup(
    report: &mut Report,
    statement: String,
    other: &Outcome,
    filbert: &Outcome,
    (dialect, seed, round): (Dialect, u64, u64),
) {
    if dialect == Dialect::Hazelcast && !other.is_answer() {
        return;
    }
    let kind = match (other, filbert) {
        (Outcome::Answer(_), Outcome::Failure { sqlstate, message, .. }) => {
            return report.refuse(cause(sqlstate, message), &statement);
        }
        (_, Outcome::Answer(answer)) if answer.columns.is_empty() => Kind::Accepted,
        (_, Outcome::Answer(_)) => Kind::Table,
        _ => Kind::Lost,
    };
    *report.met.entry(kind).or_default() += 1;
    let place = format!("filling a table, seed {seed} round {round}");
    let (other, filbert, dialect) = (other.shown(), filbert.shown(), dialect.name());
    report.find(Finding { kind, dialect, place, setup: Vec::new(), statement, other, filbert });
}

struct Round<'a> {
    session: &'a mut Session,
    schema: &'a Schema,
    seed: u64,
    round: u64,
    report: &'a mut Report,
}

impl Round<'_> {
    fn statements(
        &mut self,
        random: &mut Random,
        functions: &Functions,
        until: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        for number in 0..ROUND_STATEMENTS {
            if until() {
                return Ok(());
            }
            let part = Random::new(random.next(), number as u64);
            let mut generator = Generator::new(part, functions, self.schema);
            let is_change = generator.random.chance(30);
            let before = (!is_change && generator.random.chance(12)).then(|| generator.a_change());
            let statement = if is_change { generator.a_change() } else { generator.a_query() };
            *self.report.statements.entry(statement.name().to_owned()).or_default() += 1;
            let mut random = generator.random;
            self.ask(&statement, before.as_ref(), &mut random)?;
        }
        self.session.forget_changes()
    }

    /// Executes a statement in several ways.
    fn ask(&mut self, statement: &Statement, before: Option<&Statement>, random: &mut Random) -> Result<()> {
        let variants = self.session.variants.len();
        let has_parameters = !print(statement, self.session.dialect, Literals::Declared).parameters.is_empty();
        let mut ways: Vec<(Way, usize)> = (0..variants).map(|variant| (Way::Literal, variant)).collect();
        if has_parameters {
            ways.push((if random.chance(50) { Way::Prepared } else { Way::Binary }, random.below(variants)));
        }
        if statement.changes().is_none() && has_parameters && random.chance(50) {
            ways.push((Way::Template, random.below(variants)));
        }
        if has_parameters && self.session.dialect == Dialect::Postgres && random.chance(50) {
            ways.push((Way::Inferred, random.below(variants)));
        }
        for (way, variant) in ways {
            let case = Case {
                schema: self.schema.clone(),
                before: before.cloned(),
                statement: statement.clone(),
                way,
                variant,
            };
            let trial = self.session.try_case(&case)?;
            self.report.compared += 1;
            let text = print(statement, self.session.dialect, Literals::Written).text;
            match &trial.verdict {
                Verdict::Same => self.report.same += 1,
                Verdict::BothRefuse => {
                    self.report.both_refuse += 1;
                    if let Outcome::Failure { sqlstate, message, .. } = &trial.other {
                        *self.report.refused_by_other.entry(cause(sqlstate, message)).or_default() += 1;
                    }
                }
                Verdict::Refused(cause) => {
                    self.report.refuse(cause.clone(), &text);
                    // A statement that is rejected with literals is rejected in the other ways too.
                    break;
                }
                Verdict::Different(kind) => {
                    *self.report.met.entry(*kind).or_default() += 1;
                    self.tell(*kind, case, trial)?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Minimizes the case and reports it.
    fn tell(&mut self, kind: Kind, case: Case, trial: Trial) -> Result<()> {
        if let Some(cause) = trial.cause(kind)
            && !self.report.is_worth_a_look(cause)
        {
            return Ok(());
        }
        let (case, trial) = smallest(self.session, kind, case, trial)?;
        let variant = self.session.variants.get(case.variant).context("no such variant")?;
        let place = format!("{}, {}, seed {} round {}", case.way.name(), variant.name, self.seed, self.round);
        let printed = print(&case.statement, self.session.dialect, case.way.literals());
        let zone = self.session.zone_statement();
        let setup = zone.into_iter().chain(setup(&case, variant, self.session.dialect)).collect();
        let mut statement = printed.text;
        if !printed.parameters.is_empty() {
            let parameters: Vec<_> =
                printed.parameters.iter().map(|parameter| (parameter.oid, &parameter.value)).collect();
            statement = format!("-- parameters: {}\n{statement}", serde_json::to_string(&parameters)?);
        }
        self.report.find(Finding {
            kind,
            dialect: self.session.dialect.name(),
            place,
            setup,
            statement,
            other: trial.other.shown(),
            filbert: trial.filbert.shown(),
        });
        Ok(())
    }
}

/// Returns the smallest case that still shows this kind of difference.
fn smallest(session: &mut Session, kind: Kind, mut case: Case, mut trial: Trial) -> Result<(Case, Trial)> {
    let mut trials = 0;
    let mut differs = |case: &Case| -> Result<Option<Trial>> {
        let trial = session.try_case(case)?;
        Ok((trial.verdict == Verdict::Different(kind)).then_some(trial))
    };
    loop {
        let mut candidates = Vec::new();
        if let Some(before) = &case.before {
            // The preceding statement may cause the difference.
            let (statement, way) = (before.clone(), Way::Literal);
            candidates.push(Case { before: None, statement, way, ..case.clone() });
            candidates.push(Case { before: None, ..case.clone() });
        }
        if case.way != Way::Literal {
            candidates.push(Case { way: Way::Literal, ..case.clone() });
        }
        candidates
            .extend(shrink::smaller(&case.statement).into_iter().map(|statement| Case { statement, ..case.clone() }));
        let before =
            case.before.iter().flat_map(shrink::smaller).map(|before| Case { before: Some(before), ..case.clone() });
        candidates.extend(before.collect::<Vec<_>>());
        candidates.extend(fewer_rows(&case.schema).into_iter().map(|schema| Case { schema, ..case.clone() }));
        let mut found = None;
        for candidate in candidates {
            trials += 1;
            if trials > TRIALS_MAX {
                return Ok((case, trial));
            }
            if let Some(still) = differs(&candidate)? {
                found = Some((candidate, still));
                break;
            }
        }
        match found {
            Some(smaller) => (case, trial) = smaller,
            None => return Ok((case, trial)),
        }
    }
}

/// Schemas with fewer rows: an empty table, half of a table, one row removed.
fn fewer_rows(schema: &Schema) -> Vec<Schema> {
    let mut all = Vec::new();
    for (index, table) in schema.tables.iter().enumerate() {
        let mut with_rows = |rows: Vec<Vec<Option<String>>>| {
            let mut smaller = schema.clone();
            if let Some(place) = smaller.tables.get_mut(index) {
                place.rows = rows;
            }
            all.push(smaller);
        };
        let rows = &table.rows;
        match rows.len() {
            0 => {}
            1 => with_rows(Vec::new()),
            count => {
                with_rows(Vec::new());
                with_rows(rows.iter().take(count / 2).cloned().collect());
                with_rows(rows.iter().skip(count / 2).cloned().collect());
                if count <= 4 {
                    for left_out in 0..count {
                        with_rows(
                            rows.iter()
                                .enumerate()
                                .filter(|(at, _)| *at != left_out)
                                .map(|(_, row)| row.clone())
                                .collect(),
                        );
                    }
                }
            }
        }
    }
    all
}

/// The statements that create the objects of a case: its tables, with the columns that it uses.
fn setup(case: &Case, variant: &Variant, dialect: Dialect) -> Vec<String> {
    let written = |statement: &Statement| print(statement, dialect, Literals::Written).text;
    let mut texts: Vec<String> = case.before.iter().map(written).collect();
    let all = format!("{} {}", written(&case.statement), texts.join(" "));
    let changed = case.statement.changes().unwrap_or_default();
    let mut setup = Vec::new();
    for table in case.schema.tables.iter().filter(|table| all.contains(&table.name)) {
        let keep: Vec<bool> = table
            .columns
            .iter()
            .map(|column| {
                column.name == dialect.key()
                    || names(&all, &column.name)
                    || changed == table.name && table.columns.len() < 4
            })
            .collect();
        let columns =
            table.columns.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(column, _)| column.clone()).collect();
        let row = |row: &Vec<Option<String>>| {
            row.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(value, _)| value.clone()).collect()
        };
        let smaller = Table { name: table.name.clone(), columns, rows: table.rows.iter().map(row).collect() };
        setup.extend(variant.statements(&smaller, false));
        setup.extend(smaller.fill(dialect));
        setup.extend(smaller.indexes(dialect).into_iter().filter(|_| variant.is_indexed));
    }
    setup.append(&mut texts);
    setup
}

/// Whether a text contains this word.
fn names(text: &str, word: &str) -> bool {
    text.split(|character: char| !character.is_alphanumeric() && character != '_').any(|part| part == word)
}
