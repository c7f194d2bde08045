//! The results of a run: counts, causes of rejections, and differences. Each difference is reported
//! once.

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
    /// The number of statements, by name.
    pub(crate) statements: BTreeMap<String, usize>,
    /// The number of comparisons. A statement is executed in several ways.
    pub(crate) compared: usize,
    pub(crate) same: usize,
    pub(crate) both_refuse: usize,
    /// Rejections by the other server, by cause. They show whether the generated statements are
    /// useful.
    pub(crate) refused_by_other: BTreeMap<String, usize>,
    pub(crate) refused: BTreeMap<String, usize>,
    /// An example statement for each cause.
    refused_examples: BTreeMap<String, String>,
    pub(crate) decided: BTreeMap<String, usize>,
    pub(crate) open: BTreeMap<String, usize>,
    seen: BTreeSet<String>,
    /// The number of investigated differences, by cause.
    causes: BTreeMap<String, usize>,
    pub(crate) findings: Vec<Finding>,
    /// The number of differences, by kind.
    pub(crate) met: BTreeMap<Kind, usize>,
    /// A file to which findings are appended.
    output: Option<PathBuf>,
    known: KnownDifferences,
}

impl Report {
    /// Creates a report. Findings are also appended to the file `output`.
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

    /// Whether a difference of this cause should be minimized. Only the first few of each cause
    /// are.
    pub(crate) fn is_worth_a_look(&mut self, cause: String) -> bool {
        const OF_A_CAUSE_MAX: usize = 2;
        let looked = self.causes.entry(cause).or_default();
        *looked += 1;
        *looked <= OF_A_CAUSE_MAX
    }

    /// Reports a difference, unless a similar difference was reported.
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

/// The statement without its own names and values.
pub(crate) fn fingerprint(statement: &str) -> String {
    let mut text = crate::compare::cause("", statement);
    text.retain(|character| !character.is_ascii_digit() && character != '-');
    text
}
