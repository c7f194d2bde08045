//! SQL/JSON paths: `$.a.b[0]`, `$[*]`, `$.*`, `$."a b"`, `$[1 to 3]`, `$[last]`, `$[?(@.a > 1)]`.

use super::document::{Kind, Node};

/// The maximum number of steps and nested conditions of a path.
const STEPS_MAX: usize = 100;
/// The maximum number of values that a path may find in a document.
const FOUND_MAX: usize = 1_000_000;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonPath {
    steps: Vec<Step>,
    /// Whether a missing value is an error.
    strict: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Member(String),
    Members,
    Items(Vec<(Place, Place)>),
    AllItems,
    Filter(Condition),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    FromStart(usize),
    FromEnd(usize),
}

impl Place {
    fn of(self, length: usize) -> Option<usize> {
        match self {
            Place::FromStart(at) => Some(at),
            Place::FromEnd(back) => length.checked_sub(back + 1),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Compare(Operand, Comparison, Operand),
    Exists(JsonPath),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(JsonPath),
    Number(f64),
    Text(String),
    Boolean(bool),
    Null,
}

/// The result of a path that should find one value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Found<'t> {
    Nothing,
    One(Node<'t>),
    Many,
}

struct Reader<'t> {
    text: &'t str,
    rest: &'t str,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, expected: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self, expected: &str) -> bool {
        self.skip();
        let Some(rest) = self.rest.strip_prefix(expected) else { return false };
        if rest.starts_with(|next: char| next.is_alphanumeric() || next == '_') {
            return false;
        }
        self.rest = rest;
        true
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, String> {
        let at = self.text.len() - self.rest.len();
        Err(format!("Invalid JSON path '{}': expected {expected} at character {}", self.text, at + 1))
    }

    fn expect(&mut self, expected: &str) -> Result<(), String> {
        if self.take(expected) { Ok(()) } else { self.wrong(expected) }
    }

    fn quoted(&mut self) -> Result<Option<String>, String> {
        self.skip();
        let Some(quote) = self.rest.chars().next().filter(|next| matches!(next, '"' | '\'')) else { return Ok(None) };
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, other)) => text.push(other),
                    None => break,
                },
                end if end == quote => {
                    self.rest = self.rest.get(at + 1..).unwrap_or_default();
                    return Ok(Some(text));
                }
                other => text.push(other),
            }
        }
        self.wrong("a closing quote")
    }

    fn name(&mut self) -> Result<String, String> {
        if let Some(name) = self.quoted()? {
            return Ok(name);
        }
        let end = self.rest.find(|next: char| !(next.is_alphanumeric() || matches!(next, '_' | '$' | '-')));
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if name.is_empty() {
            return self.wrong("a name");
        }
        self.rest = rest;
        Ok(name.to_owned())
    }

    fn whole(&mut self) -> Result<usize, String> {
        self.skip();
        let end = self.rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        match digits.parse() {
            Ok(number) => {
                self.rest = rest;
                Ok(number)
            }
            Err(_) => self.wrong("a number"),
        }
    }

    fn place(&mut self) -> Result<Place, String> {
        if self.word("last") {
            return Ok(Place::FromEnd(if self.take("-") { self.whole()? } else { 0 }));
        }
        self.whole().map(Place::FromStart)
    }

    fn steps(&mut self) -> Result<Vec<Step>, String> {
        self.depth += 1;
        let mut steps = Vec::new();
        loop {
            if steps.len() + self.depth > STEPS_MAX {
                return self.wrong("at most 100 steps");
            }
            if self.take("..") {
                return self.wrong("one step after another, not '..'");
            } else if self.take(".") {
                steps.push(if self.take("*") { Step::Members } else { Step::Member(self.name()?) });
            } else if self.take("[") {
                steps.push(self.bracket()?);
                self.expect("]")?;
            } else if self.take("?") {
                self.expect("(")?;
                steps.push(Step::Filter(self.any()?));
                self.expect(")")?;
            } else {
                break;
            }
        }
        self.depth -= 1;
        Ok(steps)
    }

    fn bracket(&mut self) -> Result<Step, String> {
        if self.take("*") {
            return Ok(Step::AllItems);
        }
        if self.take("?") {
            self.expect("(")?;
            let condition = self.any()?;
            self.expect(")")?;
            return Ok(Step::Filter(condition));
        }
        if let Some(name) = self.quoted()? {
            return Ok(Step::Member(name));
        }
        let mut ranges = Vec::new();
        loop {
            let from = self.place()?;
            let to = if self.word("to") { self.place()? } else { from };
            ranges.push((from, to));
            if !self.take(",") {
                return Ok(Step::Items(ranges));
            }
        }
    }

    fn any(&mut self) -> Result<Condition, String> {
        let mut terms = vec![self.all()?];
        while self.take("||") {
            terms.push(self.all()?);
        }
        Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Condition::Or(terms) })
    }

    fn all(&mut self) -> Result<Condition, String> {
        let mut terms = vec![self.term()?];
        while self.take("&&") {
            terms.push(self.term()?);
        }
        Ok(if terms.len() == 1 { terms.swap_remove(0) } else { Condition::And(terms) })
    }

    fn term(&mut self) -> Result<Condition, String> {
        self.depth += 1;
        if self.depth > STEPS_MAX {
            return self.wrong("at most 100 conditions within each other");
        }
        let term = if self.take("!") {
            self.expect("(")?;
            let inner = self.any()?;
            self.expect(")")?;
            Condition::Not(Box::new(inner))
        } else if self.word("exists") {
            self.expect("(")?;
            let Operand::Path(path) = self.operand()? else { return self.wrong("a path") };
            self.expect(")")?;
            Condition::Exists(path)
        } else if self.take("(") {
            let inner = self.any()?;
            self.expect(")")?;
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(term)
    }

    fn comparison(&mut self) -> Result<Condition, String> {
        let left = self.operand()?;
        let signs = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<>", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("=", Comparison::Equal),
        ];
        for (sign, comparison) in signs {
            if self.take(sign) {
                return Ok(Condition::Compare(left, comparison, self.operand()?));
            }
        }
        match left {
            Operand::Path(path) => Ok(Condition::Exists(path)),
            _ => self.wrong("a comparison"),
        }
    }

    fn operand(&mut self) -> Result<Operand, String> {
        if self.take("@") {
            return Ok(Operand::Path(JsonPath { steps: self.steps()?, strict: false }));
        }
        if let Some(text) = self.quoted()? {
            return Ok(Operand::Text(text));
        }
        for (word, operand) in
            [("true", Operand::Boolean(true)), ("false", Operand::Boolean(false)), ("null", Operand::Null)]
        {
            if self.word(word) {
                return Ok(operand);
            }
        }
        self.skip();
        let end = self.rest.find(|next: char| !matches!(next, '0'..='9' | '.' | 'e' | 'E' | '+' | '-'));
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        match digits.parse() {
            Ok(number) => {
                self.rest = rest;
                Ok(Operand::Number(number))
            }
            Err(_) => self.wrong("@, a text, a number, true, false or null"),
        }
    }
}

impl JsonPath {
    /// Parses a path.
    ///
    /// # Errors
    /// The text contains the position of the error in the path, and the expected syntax.
    pub(super) fn parse(text: &str) -> Result<JsonPath, String> {
        let mut reader = Reader { text, rest: text, depth: 0 };
        let strict = reader.word("strict");
        if !strict {
            reader.word("lax");
        }
        reader.expect("$")?;
        let steps = reader.steps()?;
        reader.skip();
        if !reader.rest.is_empty() {
            return reader.wrong("the end of the path");
        }
        Ok(JsonPath { steps, strict })
    }

    /// Whether the last step selects any number of values: `[*]`, `.*` and filters.
    pub(super) fn ends_in_many(&self) -> bool {
        matches!(self.steps.last(), Some(Step::Members | Step::AllItems | Step::Filter(_)))
    }

    /// The member of the top-level object that the path starts with, if the path is lax.
    pub(super) fn first_member(&self) -> Option<&str> {
        match self.steps.first() {
            Some(Step::Member(name)) if !self.strict => Some(name),
            _ => None,
        }
    }

    /// Finds the single value of the path in a document.
    ///
    /// # Errors
    /// Like [`JsonPath::find`].
    pub(super) fn find_one<'t>(&self, document: Node<'t>) -> Result<Found<'t>, String> {
        self.find_one_from(document, document, &self.steps)
    }

    /// Like [`JsonPath::find_one`], with the known value of [`JsonPath::first_member`].
    pub(super) fn find_one_after<'t>(&self, document: Node<'t>, first: Option<Node<'t>>) -> Result<Found<'t>, String> {
        match (first, self.steps.split_first()) {
            (Some(first), Some((_, steps))) => self.find_one_from(document, first, steps),
            (None, _) if document.kind() == Kind::Object => Ok(Found::Nothing),
            _ => self.find_one(document),
        }
    }

    /// Continues at a node of the document, with the remaining steps.
    fn find_one_from<'t>(&self, document: Node<'t>, mut node: Node<'t>, steps: &[Step]) -> Result<Found<'t>, String> {
        // Most paths select members of nested objects, which needs no list of results.
        for step in steps {
            match step {
                Step::Member(name) if !self.strict && node.kind() == Kind::Object => match node.member(name) {
                    Some(value) => node = value,
                    None => return Ok(Found::Nothing),
                },
                _ => {
                    return Ok(match self.find(document)?.as_slice() {
                        [] => Found::Nothing,
                        [node] => Found::One(*node),
                        _ => Found::Many,
                    });
                }
            }
        }
        Ok(Found::One(node))
    }

    /// Finds the values of the path in a document, in document order.
    ///
    /// # Errors
    /// The path is strict and a value is missing, or the path finds too many values.
    pub(super) fn find<'t>(&self, document: Node<'t>) -> Result<Vec<Node<'t>>, String> {
        let mut found = vec![document];
        for step in &self.steps {
            let mut next = Vec::new();
            for node in found {
                let before = next.len();
                step.append(node, &mut next);
                if self.strict && next.len() == before && !matches!(step, Step::Filter(_) | Step::AllItems) {
                    return Err("the strict JSON path leads to nothing".to_owned());
                }
                if next.len() > FOUND_MAX {
                    return Err(format!("the JSON path finds more than {FOUND_MAX} values"));
                }
            }
            found = next;
        }
        Ok(found)
    }
}

impl Step {
    fn append<'t>(&self, node: Node<'t>, found: &mut Vec<Node<'t>>) {
        let is_array = node.kind() == Kind::Array;
        match self {
            Step::Member(name) if node.kind() == Kind::Object => found.extend(node.member(name)),
            Step::Members if node.kind() == Kind::Object => found.extend(node.children().map(|(_, value)| value)),
            // Selects members of an array's elements, as if [*] had been written.
            Step::Member(_) | Step::Members if is_array => {
                node.children()
                    .filter(|(_, item)| item.kind() == Kind::Object)
                    .for_each(|(_, item)| self.append(item, found));
            }
            Step::Member(_) | Step::Members => {}
            Step::AllItems if is_array => found.extend(node.children().map(|(_, item)| item)),
            Step::Items(ranges) if is_array => {
                let items: Vec<Node<'t>> = node.children().map(|(_, item)| item).collect();
                for (from, to) in ranges {
                    let (Some(from), Some(to)) = (from.of(items.len()), to.of(items.len())) else { continue };
                    found.extend(items.iter().take(to.saturating_add(1)).skip(from));
                }
            }
            // A value that is no array counts as an array of one element.
            Step::AllItems => found.push(node),
            Step::Items(ranges) => {
                let first = ranges.iter().any(|(from, to)| from.of(1) == Some(0) && to.of(1).is_some());
                if first {
                    found.push(node);
                }
            }
            Step::Filter(condition) if is_array => {
                found.extend(node.children().map(|(_, item)| item).filter(|item| condition.holds(*item)));
            }
            Step::Filter(condition) => {
                if condition.holds(node) {
                    found.push(node);
                }
            }
        }
    }
}

impl Condition {
    fn holds(&self, node: Node<'_>) -> bool {
        match self {
            Condition::And(terms) => terms.iter().all(|term| term.holds(node)),
            Condition::Or(terms) => terms.iter().any(|term| term.holds(node)),
            Condition::Not(term) => !term.holds(node),
            Condition::Exists(path) => path.find(node).is_ok_and(|found| !found.is_empty()),
            Condition::Compare(left, comparison, right) => {
                let (left, right) = (left.values(node), right.values(node));
                left.iter().any(|left| right.iter().any(|right| comparison.holds(left, right)))
            }
        }
    }
}

/// A scalar for comparison.
enum Scalar<'t> {
    Number(f64),
    Text(std::borrow::Cow<'t, str>),
    Boolean(bool),
    Null,
}

impl Operand {
    fn values<'t>(&'t self, node: Node<'t>) -> Vec<Scalar<'t>> {
        match self {
            Operand::Number(number) => vec![Scalar::Number(*number)],
            Operand::Text(text) => vec![Scalar::Text(text.as_str().into())],
            Operand::Boolean(value) => vec![Scalar::Boolean(*value)],
            Operand::Null => vec![Scalar::Null],
            Operand::Path(path) => {
                let found = path.find(node).unwrap_or_default();
                let scalar = |node: Node<'t>| match node.kind() {
                    Kind::Number => node.text().parse().ok().map(Scalar::Number),
                    Kind::Text => Some(Scalar::Text(node.plain())),
                    Kind::Boolean => Some(Scalar::Boolean(node.text() == "true")),
                    Kind::Null => Some(Scalar::Null),
                    Kind::Object | Kind::Array => None,
                };
                found.into_iter().filter_map(scalar).collect()
            }
        }
    }
}

impl Comparison {
    fn holds(self, left: &Scalar<'_>, right: &Scalar<'_>) -> bool {
        let order = match (left, right) {
            (Scalar::Number(left), Scalar::Number(right)) => left.partial_cmp(right),
            (Scalar::Text(left), Scalar::Text(right)) => Some(left.cmp(right)),
            (Scalar::Boolean(left), Scalar::Boolean(right)) => Some(left.cmp(right)),
            (Scalar::Null, Scalar::Null) => Some(std::cmp::Ordering::Equal),
            // A null differs from everything else; other types cannot be compared.
            (Scalar::Null, _) | (_, Scalar::Null) => return self == Comparison::NotEqual,
            _ => None,
        };
        let Some(order) = order else { return false };
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}
