//! A pair of servers, Filbert and another one: the same tables in both, and statements that both
//! execute in one of several ways.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};

use crate::compare::{How, Kind, Verdict, cause, compare, same_rows};
use crate::generate::schema::{Schema, Table};
use crate::outcome::{Answer, Outcome};
use crate::server::Server;
use crate::tree::{Dialect, Literals, Printed, Statement, print, visit};

/// The way in which a statement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Way {
    /// With literals, over the simple query protocol.
    Literal,
    /// As `Literal`, after the same statement with other literals. So the cached plan of that text
    /// is used.
    Template,
    /// Prepared, with parameters instead of literals, and executed twice. Values are in text
    /// format.
    Prepared,
    /// As `Prepared`, with values in binary format.
    Binary,
    /// As `Prepared`, without declared types: the servers infer the types of the parameters.
    Inferred,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Literal => "literal",
            Way::Template => "template",
            Way::Prepared => "prepared",
            Way::Binary => "prepared, binary",
            Way::Inferred => "prepared, without types",
        }
    }

    pub(crate) fn literals(self) -> Literals {
        match self {
            Way::Literal | Way::Template => Literals::Written,
            Way::Prepared | Way::Binary => Literals::Declared,
            Way::Inferred => Literals::Inferred,
        }
    }
}

/// How a table is created in Filbert, and the table of the other server that it is compared with.
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    /// The prefixes of table names instead of `tbl_`, in Filbert and in the other server.
    prefix: &'static str,
    other_prefix: &'static str,
    pub(crate) is_indexed: bool,
    making: Making,
}

/// How a table is created.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Making {
    Table,
    /// As a mapping with these options. Only Filbert has columnar storage.
    Mapping {
        options: &'static str,
        columns: bool,
    },
}

const JSON: &str = "'valueFormat'='json-flat'";
const COMPACT: &str = "'valueFormat'='compact', 'valueCompactTypeName'='TYPE'";
const PORTABLE: &str = "'valueFormat'='portable', 'valuePortableFactoryId'='1', 'valuePortableClassId'='CLASS'";

const fn mapping(
    name: &'static str,
    (prefix, other_prefix): (&'static str, &'static str),
    options: &'static str,
    columns: bool,
    is_indexed: bool,
) -> Variant {
    Variant { name, prefix, other_prefix, is_indexed, making: Making::Mapping { options, columns } }
}

/// The tables that are compared with PostgreSQL's tables.
static POSTGRES: [Variant; 2] = [
    Variant { name: "table", prefix: "tbl_", other_prefix: "tbl_", is_indexed: false, making: Making::Table },
    Variant { name: "indexed table", prefix: "idx_", other_prefix: "tbl_", is_indexed: true, making: Making::Table },
];

/// The mappings that are compared with Hazelcast's mappings.
static HAZELCAST: [Variant; 6] = [
    mapping("JSON", ("jsn_", "jsn_"), JSON, false, false),
    mapping("JSON with columns", ("jsc_", "jsn_"), JSON, true, false),
    mapping("Compact, indexed", ("cmp_", "cmp_"), COMPACT, false, true),
    mapping("Compact with columns", ("cmc_", "cmp_"), COMPACT, true, false),
    mapping("Compact with columns, indexed", ("cmx_", "cmp_"), COMPACT, true, true),
    mapping("Portable", ("prt_", "prt_"), PORTABLE, false, false),
];

/// A statement with everything that is required to execute it again.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) schema: Schema,
    /// A change that is executed first.
    pub(crate) before: Option<Statement>,
    pub(crate) statement: Statement,
    pub(crate) way: Way,
    /// The number of the variant.
    pub(crate) variant: usize,
}

/// The result of a case.
pub(crate) struct Trial {
    pub(crate) verdict: Verdict,
    pub(crate) other: Outcome,
    pub(crate) filbert: Outcome,
}

impl Trial {
    /// A text that is equal for differences with the same cause, if the outcomes determine it.
    pub(crate) fn cause(&self, kind: Kind) -> Option<String> {
        let oids = |outcome: &Outcome| match outcome {
            Outcome::Answer(answer) => answer.columns.iter().map(|column| column.oid).collect(),
            _ => Vec::new(),
        };
        let names = |outcome: &Outcome| match outcome {
            Outcome::Answer(answer) => answer.columns.iter().map(|column| column.name.clone()).collect(),
            _ => Vec::new(),
        };
        match (kind, &self.other, &self.filbert) {
            (Kind::Names, other, filbert) => {
                let pairs = names(other).into_iter().zip(names(filbert)).filter(|(other, filbert)| other != filbert);
                Some(format!("{:?}", pairs.collect::<Vec<_>>()))
            }
            (Kind::Foreign | Kind::Failed, _, Outcome::Failure { sqlstate, message, .. })
            | (Kind::Accepted, Outcome::Failure { sqlstate, message, .. }, _) => Some(cause(sqlstate, message)),
            (Kind::Types, other, filbert) => {
                let pairs = oids(other).into_iter().zip(oids(filbert)).filter(|(other, filbert)| other != filbert);
                Some(format!("{:?}", pairs.collect::<Vec<_>>()))
            }
            _ => None,
        }
    }
}

/// Both servers, with their tables.
pub(crate) struct Session {
    pub(crate) dialect: Dialect,
    other: Box<dyn Server>,
    filbert: Box<dyn Server>,
    pub(crate) variants: &'static [Variant],
    loaded: Schema,
    /// Tables with rows that differ from the loaded schema.
    changed: BTreeSet<String>,
    /// The time zone of both sessions.
    zone: &'static str,
}

/// The time zone of a connection.
const UTC: &str = "UTC";
/// The time zones of rounds, in turn.
const ZONES: [&str; 3] = [UTC, "America/New_York", "Asia/Kolkata"];

/// Reports a statement with unexpected outcomes while a table is filled.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(String, Outcome, Outcome);

impl Session {
    /// A session with PostgreSQL and Filbert.
    pub(crate) fn with_postgres(other: Box<dyn Server>, filbert: Box<dyn Server>) -> Session {
        let (loaded, changed) = (Schema::default(), BTreeSet::new());
        Session { dialect: Dialect::Postgres, other, filbert, variants: &POSTGRES, loaded, changed, zone: UTC }
    }

    /// A session with a Hazelcast member and Filbert.
    pub(crate) fn with_hazelcast(other: Box<dyn Server>, filbert: Box<dyn Server>) -> Session {
        let (loaded, changed) = (Schema::default(), BTreeSet::new());
        Session { dialect: Dialect::Hazelcast, other, filbert, variants: &HAZELCAST, loaded, changed, zone: UTC }
    }

    /// Gives both sessions the time zone of a round. Hazelcast's dialect has none.
    pub(crate) fn begin_round(&mut self, seed: u64, round: u64) {
        if self.dialect != Dialect::Postgres {
            return;
        }
        let at = usize::try_from(seed.wrapping_add(round) % ZONES.len() as u64).unwrap_or_default();
        self.zone = ZONES.get(at).copied().unwrap_or(UTC);
        let set = format!("set timezone = '{}'", self.zone);
        self.other.run(&set);
        self.filbert.run(&set);
    }

    /// The statement that sets the time zone of a session; `None` if it has its first one.
    pub(crate) fn zone_statement(&self) -> Option<String> {
        (self.zone != UTC).then(|| format!("set timezone = '{}'", self.zone))
    }

    /// Executes a text on the other server, once for each table prefix. Returns the last outcome.
    fn run_other(&mut self, text: &str) -> Outcome {
        let mut prefixes: Vec<&str> = self.variants.iter().map(|variant| variant.other_prefix).collect();
        prefixes.dedup();
        let mut last = Outcome::Timeout;
        for prefix in prefixes {
            last = self.other.run(&text.replace("tbl_", prefix));
        }
        last
    }

    fn run_filbert(&mut self, variant: &Variant, text: &str) -> Outcome {
        self.filbert.run(&text.replace("tbl_", variant.prefix))
    }

    /// Creates the tables of a schema in both servers and drops earlier tables. Rows and columns
    /// that are rejected or differ are reported and removed. Returns the schema that both servers
    /// have.
    pub(crate) fn load(&mut self, schema: &Schema, tell: Tell<'_>) -> Result<Schema> {
        let mut kept = schema.clone();
        for table in &mut kept.tables {
            self.load_table(table, tell)?;
        }
        self.loaded = kept.clone();
        self.changed.clear();
        Ok(kept)
    }

    fn load_table(&mut self, table: &mut Table, tell: Tell<'_>) -> Result<()> {
        self.make(table, tell)?;
        if let Some(text) = table.fill(self.dialect) {
            // Insert all rows at once if both servers accept them. Otherwise insert row by row, to
            // find the rejected rows.
            let is_taken = self.run_other(&text).is_answer();
            let variants = self.variants.iter();
            let is_taken = variants.fold(is_taken, |all, variant| self.run_filbert(variant, &text).is_answer() && all);
            if is_taken {
                return self.compare_columns(table, tell);
            }
            self.make(table, tell)?;
        }
        let rows = std::mem::take(&mut table.rows);
        for row in rows {
            let one = Table { rows: vec![row.clone()], ..table.clone() };
            let text = one.fill(self.dialect).unwrap_or_default();
            let there = self.run_other(&text);
            let mut is_kept = there.is_answer();
            for variant in self.variants {
                let made = self.run_filbert(variant, &text);
                if made.is_answer() != there.is_answer() {
                    is_kept = false;
                    tell(text.replace("tbl_", variant.prefix), there.clone(), made);
                }
            }
            if is_kept {
                table.rows.push(row);
            } else if let Some(Some(id)) = row.first() {
                let delete = format!("delete from {} where {} = {id}", table.name, self.dialect.key());
                self.run_other(&delete);
                self.variants.iter().for_each(|variant| drop(self.run_filbert(variant, &delete)));
            }
        }
        self.compare_columns(table, tell)
    }

    /// Creates an empty table in both servers. Drops earlier objects with its name.
    fn make(&mut self, table: &Table, tell: Tell<'_>) -> Result<()> {
        let mut made = Vec::new();
        for variant in self.variants {
            for is_other in [true, false] {
                let prefix = if is_other { variant.other_prefix } else { variant.prefix };
                if made.contains(&(is_other, prefix)) {
                    continue;
                }
                made.push((is_other, prefix));
                for text in variant.statements(table, is_other) {
                    let text = text.replace("tbl_", prefix);
                    let outcome = if is_other { self.other.run(&text) } else { self.filbert.run(&text) };
                    if !outcome.is_answer() {
                        bail!("{text}: {}", outcome.shown());
                    }
                }
            }
            for index in table.indexes(self.dialect).iter().filter(|_| variant.is_indexed) {
                let outcome = self.run_filbert(variant, index);
                if !outcome.is_answer() {
                    tell(index.clone(), Outcome::Answer(Answer::default()), outcome);
                }
            }
        }
        Ok(())
    }

    /// Removes columns with different values in the two servers.
    fn compare_columns(&mut self, table: &mut Table, tell: Tell<'_>) -> Result<()> {
        let mut wrong = Vec::new();
        for column in &table.columns {
            for variant in self.variants {
                let text = format!("select {}, {} from {}", self.dialect.key(), column.name, table.name);
                let there = self.other.run(&text.replace("tbl_", variant.other_prefix));
                let here = self.run_filbert(variant, &text);
                if compare(&there, &here, self.how(None)) != Verdict::Same {
                    tell(format!("{text} -- {}", column.declared).replace("tbl_", variant.prefix), there, here);
                    wrong.push(column.name.clone());
                }
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let keep: Vec<bool> = table.columns.iter().map(|column| !wrong.contains(&column.name)).collect();
        if keep.iter().take(2).any(|keep| !keep) {
            bail!("the keys of {} are not the same in both", table.name);
        }
        let mut flags = keep.iter();
        table.columns.retain(|_| flags.next().copied().unwrap_or_default());
        for row in &mut table.rows {
            let mut flags = keep.iter();
            row.retain(|_| flags.next().copied().unwrap_or_default());
        }
        self.load_table(table, tell)
    }

    /// Restores the rows of a schema. Its tables are the loaded tables, possibly with fewer rows.
    fn restore(&mut self, schema: &Schema) -> Result<()> {
        for (table, loaded) in schema.tables.iter().zip(self.loaded.tables.clone()) {
            if !self.changed.contains(&table.name) && table.rows == loaded.rows {
                continue;
            }
            let clear = format!("delete from {}", table.name);
            for text in std::iter::once(clear).chain(table.fill(self.dialect)) {
                let there = done(|| self.run_other(&text));
                if !there.is_answer() {
                    bail!("the other server refused {text}: {}", there.shown());
                }
                for variant in self.variants {
                    let here = done(|| self.run_filbert(variant, &text));
                    if !here.is_answer() {
                        bail!("Filbert refused to restore a table by {text}: {}", here.shown());
                    }
                }
            }
        }
        self.loaded = schema.clone();
        self.changed.clear();
        Ok(())
    }

    /// The rules for the comparison of a statement's results.
    fn how(&self, statement: Option<&Statement>) -> How {
        How {
            is_ordered: statement.is_some_and(Statement::is_ordered),
            is_inexact: statement.is_some_and(Statement::is_inexact),
            is_superset: self.dialect == Dialect::Hazelcast,
            is_inferring: false,
        }
    }

    /// Executes a case on both servers and compares the outcomes.
    pub(crate) fn try_case(&mut self, case: &Case) -> Result<Trial> {
        self.restore(&case.schema)?;
        if let Some(before) = &case.before {
            let first = Case { before: None, statement: before.clone(), way: Way::Literal, ..case.clone() };
            let trial = self.ask_both(&first)?;
            if !matches!(trial.verdict, Verdict::Same) {
                return Ok(trial);
            }
        }
        self.ask_both(case)
    }

    fn ask_both(&mut self, case: &Case) -> Result<Trial> {
        self.changed.extend(case.statement.changes().map(str::to_owned));
        // Inexact values may come from the change before.
        let is_inexact = [Some(&case.statement), case.before.as_ref()].into_iter().flatten().any(Statement::is_inexact);
        let is_inferring = case.way == Way::Inferred;
        let how = How { is_inferring, is_inexact, ..self.how(Some(&case.statement)) };
        let variant = self.variants.get(case.variant).context("no such variant")?;
        let other = ask(&mut *self.other, self.dialect, &case.statement, case.way, variant.other_prefix);
        let filbert = ask(&mut *self.filbert, self.dialect, &case.statement, case.way, variant.prefix);
        let (Some(there), Some(here)) = (other.last().cloned(), filbert.last().cloned()) else {
            bail!("no outcome of a statement");
        };
        let verdict = compare(&there, &here, how);
        let mut trial = Trial { verdict, other: there, filbert: here };
        let floats: Vec<bool> = if how.is_inexact { vec![true; 99] } else { Vec::new() };
        if let [first, second] = filbert.as_slice()
            && trial.verdict == Verdict::Same
            && case.statement.changes().is_none()
            && !first.is_late()
            && !(first.is_answer() && same_rows(first.rows(), second.rows(), &floats, how.is_ordered))
        {
            // The outcome of the first execution is shown as the expected outcome.
            (trial.verdict, trial.other) = (Verdict::Different(Kind::Unstable), first.clone());
        }
        // A statement that only Filbert accepts is not comparable if Filbert supports a superset.
        let is_beyond = trial.verdict == Verdict::BothRefuse && trial.filbert.is_answer();
        if !is_beyond
            && let (Some(table), Verdict::Same | Verdict::BothRefuse | Verdict::Refused(_)) =
                (case.statement.changes(), &trial.verdict)
        {
            // A rejected statement must not change anything. A Hazelcast member may have executed a
            // part of it.
            let is_refused = match trial.verdict {
                Verdict::BothRefuse => self.dialect == Dialect::Hazelcast,
                _ => matches!(trial.verdict, Verdict::Refused(_)),
            };
            let table = table.to_owned();
            self.compare_table(&table, case.variant, is_refused.then_some(&case.schema), &mut trial, how);
        }
        Ok(trial)
    }

    /// Compares the complete table after a change. If only Filbert rejected the change, compares
    /// the table with its earlier content.
    fn compare_table(&mut self, table: &str, variant: usize, before: Option<&Schema>, trial: &mut Trial, how: How) {
        let text = format!("select * from {table}");
        let Some(variant) = self.variants.get(variant) else { return };
        let here = self.run_filbert(variant, &text);
        let there = match before {
            None => self.other.run(&text.replace("tbl_", variant.other_prefix)),
            Some(schema) => {
                let rows = schema.tables.iter().find(|known| known.name == table).map_or(0, |table| table.rows.len());
                if here.rows().len() == rows {
                    return;
                }
                Outcome::Answer(Answer::default())
            }
        };
        let how = How { is_ordered: false, ..how };
        if compare(&there, &here, how) != Verdict::Same {
            *trial = Trial { verdict: Verdict::Different(Kind::Table), other: there, filbert: here };
        }
    }

    /// Executes a statement only on Filbert.
    pub(crate) fn ask_filbert(&mut self, statement: &Statement, way: Way, variant: usize) -> Outcome {
        let prefix = self.variants.get(variant).map_or("tbl_", |variant| variant.prefix);
        let outcomes = ask(&mut *self.filbert, self.dialect, statement, way, prefix);
        outcomes.into_iter().next_back().unwrap_or(Outcome::Timeout)
    }

    /// Restores rows that a case of this schema may have changed.
    pub(crate) fn forget_changes(&mut self) -> Result<()> {
        let loaded = self.loaded.clone();
        self.restore(&loaded)
    }
}

impl Variant {
    /// The statements that create an empty table of this variant.
    pub(crate) fn statements(&self, table: &Table, is_other: bool) -> Vec<String> {
        let name = &table.name;
        match self.making {
            Making::Table => vec![format!("drop table if exists {name}"), table.create()],
            Making::Mapping { options, columns } => {
                // All values of a Compact type or Portable class in a member must have the same
                // fields.
                let made = MADE.fetch_add(1, Ordering::Relaxed) + 1;
                let options = options.replace("TYPE", &format!("{name}_{made}")).replace("CLASS", &made.to_string());
                let columns = if columns && !is_other { ", 'columnar'='true'" } else { "" };
                let create = table.mapping(&format!("{options}{columns}"));
                vec![create, format!("delete from {name}")]
            }
        }
    }
}

/// The number of created mappings.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Sends a statement in one way. Returns all outcomes.
fn ask(server: &mut dyn Server, dialect: Dialect, statement: &Statement, way: Way, prefix: &str) -> Vec<Outcome> {
    let text = |statement: &Statement| print(statement, dialect, Literals::Written).text.replace("tbl_", prefix);
    match way {
        Way::Literal => vec![server.run(&text(statement))],
        Way::Template => {
            if statement.changes().is_none() {
                server.run(&text(&with_other_literals(statement)));
            }
            vec![server.run(&text(statement))]
        }
        Way::Prepared | Way::Binary | Way::Inferred => {
            let Printed { text, parameters } = print(statement, dialect, way.literals());
            let times = if statement.changes().is_some() { 1 } else { 2 };
            server.prepare_and_run(&text.replace("tbl_", prefix), &parameters, way == Way::Binary, times)
        }
    }
}

/// Replaces literals that may be parameters with other literals of the same type.
fn with_other_literals(statement: &Statement) -> Statement {
    use crate::tree::Type;
    let mut other = statement.clone();
    visit::each_literal(&mut other, &mut |literal| {
        let Some(text) = literal.text.as_mut().filter(|_| literal.is_parameter) else { return };
        match literal.kind {
            Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric => {
                *text = if text == "2" {
                    "3".to_owned()
                } else if text.contains('.') {
                    "4.25".to_owned()
                } else {
                    "2".to_owned()
                };
            }
            Type::Text => *text = if text == "q" { "r".to_owned() } else { "q".to_owned() },
            Type::Bool => *text = if text == "t" { "f".to_owned() } else { "t".to_owned() },
            _ => {}
        }
    });
    other
}

/// Repeats a statement until it does not time out, because the machine may be overloaded.
fn done(mut run: impl FnMut() -> Outcome) -> Outcome {
    let mut outcome = run();
    while outcome.is_cut_off() {
        outcome = run();
    }
    outcome
}
