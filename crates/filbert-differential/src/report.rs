//! What a run found: counts, causes of refusals, and differences, each told once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use crate::compare::{Kind, by_count};
use crate::finding::Finding;
use crate::known::{KnownDifferences, Standing};

/// The report of a run.
pub(crate) struct Report {
    /// Statements by name.
    pub(crate) statements: BTreeMap<String, usize>,
    /// Comparisons made: a statement is asked in several ways.
    pub(crate) compared: usize,
    pub(crate) same: usize,
    pub(crate) both_refuse: usize,
    /// Causes for which the other server refuses, to see whether the generator makes sense.
    pub(crate) refused_by_other: BTreeMap<String, usize>,
    pub(crate) refused: BTreeMap<String, usize>,
    /// A statement for each cause.
    refused_examples: BTreeMap<String, String>,
    pub(crate) decided: BTreeMap<String, usize>,
    pub(crate) open: BTreeMap<String, usize>,
    seen: BTreeSet<String>,
    /// How often a cause of differences was looked into.
    causes: BTreeMap<String, usize>,
    pub(crate) findings: Vec<Finding>,
    /// Differences that were met, each as often as it was.
    pub(crate) met: BTreeMap<Kind, usize>,
    /// Where findings are written as well.
    output: Option<PathBuf>,
    known: KnownDifferences,
}

impl Report {
    /// A report whose findings are written to a file as well.
    pub(crate) fn new(known: KnownDifferences, output: Option<PathBuf>) -> Report {
        Report {
            statements: BTreeMap::new(),
            compared: 0,
            same: 0,
            both_refuse: 0,
            refused_by_other: BTreeMap::new(),
            refused: BTreeMap::new(),
            refused_examples: BTreeMap::new(),
            decided: BTreeMap::new(),
            open: BTreeMap::new(),
            seen: BTreeSet::new(),
            causes: BTreeMap::new(),
            findings: Vec::new(),
            met: BTreeMap::new(),
            output,
            known,
        }
    }

    pub(crate) fn refuse(&mut self, cause: String, statement: &str) {
        self.refused_examples.entry(cause.clone()).or_insert_with(|| statement.to_owned());
        *self.refused.entry(cause).or_default() += 1;
    }

    /// Whether a difference of this cause is worth making smaller: the first few of each are.
    pub(crate) fn is_worth_a_look(&mut self, cause: String) -> bool {
        const OF_A_CAUSE_MAX: usize = 2;
        let looked = self.causes.entry(cause).or_default();
        *looked += 1;
        *looked <= OF_A_CAUSE_MAX
    }

    /// Tells a difference, unless one like it was told.
    pub(crate) fn find(&mut self, finding: Finding) {
        match self.known.standing(&finding) {
            Some(Standing::Decision(title)) => return *self.decided.entry(title.to_owned()).or_default() += 1,
            Some(Standing::Open(title)) => return *self.open.entry(title.to_owned()).or_default() += 1,
            None => {}
        }
        if !self.seen.insert(format!("{:?} {}", finding.kind, fingerprint(&finding.statement))) {
            return;
        }
        let text = finding.shown();
        println!("{text}");
        if let Some(path) = &self.output {
            let written = OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .and_then(|mut file| file.write_all(text.as_bytes()));
            if let Err(error) = written {
                eprintln!("writing {}: {error}", path.display());
            }
        }
        self.findings.push(finding);
    }

    /// The summary of the run.
    pub(crate) fn summary(&self) -> String {
        const CAUSES_MAX: usize = 40;
        let mut text = String::new();
        let statements: usize = self.statements.values().sum();
        let share = |count: usize| 100.0 * count as f64 / self.compared.max(1) as f64;
        let refused: usize = self.refused.values().sum();
        let _ = writeln!(text, "\n{statements} statements, {} comparisons:", self.compared);
        for (name, count) in by_count(&self.statements) {
            let _ = writeln!(text, "  {count:>7}  {name}");
        }
        let _ = writeln!(text, "same {} ({:.2} %)", self.same, share(self.same));
        let _ = writeln!(text, "refused by both {} ({:.2} %)", self.both_refuse, share(self.both_refuse));
        for (cause, count) in by_count(&self.refused_by_other).into_iter().take(12) {
            let _ = writeln!(text, "  {count:>7}  {cause}");
        }
        let _ = writeln!(text, "refused by Filbert alone {refused} ({:.2} %), by cause:", share(refused));
        for (cause, count) in by_count(&self.refused).into_iter().take(CAUSES_MAX) {
            let _ = writeln!(text, "  {count:>7}  {cause}");
            if let Some(example) = self.refused_examples.get(cause) {
                let _ = writeln!(text, "           {}", example.chars().take(200).collect::<String>());
            }
        }
        for (title, counts) in
            [("differences that are decisions", &self.decided), ("differences that are known and open", &self.open)]
        {
            if !counts.is_empty() {
                let _ = writeln!(text, "{title}:");
                for (name, count) in by_count(counts) {
                    let _ = writeln!(text, "  {count:>7}  {name}");
                }
            }
        }
        if !self.known.open().is_empty() {
            let _ = writeln!(text, "known and open, whether met or not:");
            for line in self.known.open() {
                let _ = writeln!(text, "  {line}");
            }
        }
        let met: usize = self.met.values().sum();
        let _ = writeln!(
            text,
            "differences {met} ({:.2} %), {} of them unlike each other",
            share(met),
            self.findings.len()
        );
        for (kind, count) in &self.met {
            let _ = writeln!(text, "  {count:>7}  {}", kind.name());
        }
        text
    }
}

/// The statement without the names and values that are its own.
pub(crate) fn fingerprint(statement: &str) -> String {
    let mut text = crate::compare::cause("", statement);
    text.retain(|character| !character.is_ascii_digit() && character != '-');
    text
}
