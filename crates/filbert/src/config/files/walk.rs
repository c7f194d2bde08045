//! Walks the configuration tree. Each element is used by a declared setting, or reported with its
//! name and line. Only elements that request nothing are skipped.

use std::borrow::Cow;
use std::fmt;

use super::error::Problem;
use super::known;
use super::setting::{Kind, Setting, flag};
use super::tree::{Entry, Node, Position, Value, quote};

/// Returns the value of an environment variable.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A setting of the file without an effect, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Dotted name of the setting, such as `map.orders.map-store`.
    pub path: String,
    /// The position of its name.
    pub position: Position,
    /// Whether a requested feature is missing.
    pub kind: NoticeKind,
    /// An explanation. Empty if there is none.
    pub reason: String,
}

/// The meaning of a [`Notice`] for the author of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// The file requests a feature that Filbert does not have. With `--strict` the member does not
    /// start.
    Unsupported,
    /// Nothing is missing: Filbert works without the setting.
    NotNeeded,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            NoticeKind::Unsupported => "not supported",
            NoticeKind::NotNeeded => "not needed",
        };
        write!(f, "line {}: {} is {what}", self.position.line, self.path)?;
        if self.reason.is_empty() { Ok(()) } else { write!(f, ": {}", self.reason) }
    }
}

/// The dotted name of a tree position: as shown to users, and as a pattern in which `*` replaces
/// names that users chose.
#[derive(Debug, Clone, Default)]
pub(crate) struct Path {
    pub(crate) shown: String,
    pub(crate) pattern: String,
}

impl Path {
    pub(crate) fn child(&self, name: &str) -> Path {
        Path { shown: join(&self.shown, name), pattern: join(&self.pattern, name) }
    }

    /// A child with a name that the user chose, such as a map name.
    pub(crate) fn named(&self, name: &str) -> Path {
        Path { shown: join(&self.shown, name), pattern: join(&self.pattern, "*") }
    }

    /// An item of a list. The shown number counts from 1.
    pub(crate) fn item(&self, index: usize) -> Path {
        Path { shown: format!("{}[{}]", self.shown, index + 1), pattern: self.pattern.clone() }
    }
}

fn join(start: &str, name: &str) -> String {
    if start.is_empty() { name.to_owned() } else { format!("{start}.{name}") }
}

/// One walk over one file.
pub(crate) struct Walk<'a> {
    file: &'a str,
    environment: Environment<'a>,
    notices: Vec<Notice>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(file: &'a str, environment: Environment<'a>) -> Walk<'a> {
        Walk { file, environment, notices: Vec::new() }
    }

    /// Returns the notices, in file order.
    pub(crate) fn into_notices(mut self) -> Vec<Notice> {
        self.notices.sort_by_key(|notice| notice.position);
        self.notices
    }

    /// Reads every entry of a table into `target` by the declarations in `settings`.
    pub(crate) fn section<T>(
        &mut self,
        path: &Path,
        node: &Node,
        settings: &[Setting<T>],
        target: &mut T,
    ) -> Result<(), Problem> {
        self.level(path, "", node, settings, target)
    }

    fn level<T>(
        &mut self,
        path: &Path,
        above: &str,
        node: &Node,
        settings: &[Setting<T>],
        target: &mut T,
    ) -> Result<(), Problem> {
        let entries = self.table(path, node)?;
        for (index, entry) in entries.iter().enumerate() {
            let path = path.child(&entry.name);
            let name = join(above, &entry.name);
            let setting = settings.iter().find(|setting| setting.name == name);
            let is_group = settings.iter().any(|setting| is_below(setting.name, &name));
            if (setting.is_some() || is_group)
                && let Some(first) = entries.iter().take(index).find(|earlier| earlier.name == entry.name)
            {
                return Err(self.again(&path, entry, first.position));
            }
            match (setting, &entry.node.value) {
                (Some(setting), _) => self.read(&path, &entry.node, setting, target)?,
                // `port: 5701` is short for `port: {port: 5701}`.
                (None, Value::Text(_)) if is_group => {
                    match settings.iter().find(|setting| setting.name == join(&name, &entry.name)) {
                        Some(setting) => self.read(&path, &entry.node, setting, target)?,
                        None => return Err(self.problem(&path, &entry.node, "a table of settings")),
                    }
                }
                (None, _) if is_group => self.level(&path, &name, &entry.node, settings, target)?,
                (None, _) => self.unknown(&path, entry, &siblings(settings, above)),
            }
        }
        Ok(())
    }

    fn read<T>(&mut self, path: &Path, node: &Node, setting: &Setting<T>, target: &mut T) -> Result<(), Problem> {
        if let Kind::Structure { read, .. } = &setting.kind {
            return read(target, self, path, node);
        }
        let text = self.text(path, node, &setting.expected())?;
        setting.read_text(target, &text).map_err(|expected| self.found(path, node, quote(&text), expected))
    }

    /// Returns the entries of a table. An absent value is an empty table.
    pub(crate) fn table<'n>(&self, path: &Path, node: &'n Node) -> Result<&'n [Entry], Problem> {
        match &node.value {
            Value::Empty => Ok(&[]),
            Value::Table(entries) => Ok(entries),
            _ => Err(self.problem(path, node, "a table of settings")),
        }
    }

    /// Returns the items of a list. An absent value is an empty list. A single text is a list with
    /// one item.
    pub(crate) fn list<'n>(&self, path: &Path, node: &'n Node) -> Result<&'n [Node], Problem> {
        match &node.value {
            Value::Empty => Ok(&[]),
            Value::List(items) => Ok(items),
            Value::Text(_) => Ok(std::slice::from_ref(node)),
            Value::Table(_) => Err(self.problem(path, node, "a list")),
        }
    }

    /// Returns a scalar with its variables replaced.
    pub(crate) fn text<'n>(&self, path: &Path, node: &'n Node, expected: &str) -> Result<Cow<'n, str>, Problem> {
        match &node.value {
            Value::Text(text) => replace_variables(text, self.environment).map_err(|variable| {
                let found = format!("${{{variable}}}, which is not set in the environment");
                self.found(path, node, found, expected.to_owned())
            }),
            _ => Err(self.problem(path, node, expected)),
        }
    }

    /// Returns a boolean scalar.
    pub(crate) fn flag(&self, path: &Path, node: &Node) -> Result<bool, Problem> {
        const EXPECTED: &str = "true or false";
        let text = self.text(path, node, EXPECTED)?;
        flag(&text).ok_or_else(|| self.found(path, node, quote(&text), EXPECTED.to_owned()))
    }

    /// Reports a repeated name as an error.
    pub(crate) fn once(&self, path: &Path, entries: &[Entry], index: usize) -> Result<(), Problem> {
        let Some(entry) = entries.get(index) else { return Ok(()) };
        match entries.iter().take(index).find(|earlier| earlier.name == entry.name) {
            Some(first) => Err(self.again(path, entry, first.position)),
            None => Ok(()),
        }
    }

    /// The problem that a node does not have the expected form.
    pub(crate) fn problem(&self, path: &Path, node: &Node, expected: &str) -> Problem {
        self.found(path, node, node.describe(), expected.to_owned())
    }

    /// The problem that `found` is written instead of `expected`.
    pub(crate) fn found(&self, path: &Path, node: &Node, found: String, expected: String) -> Problem {
        Problem { file: self.file.to_owned(), position: node.position, path: path.shown.clone(), found, expected }
    }

    fn again(&self, path: &Path, entry: &Entry, first: Position) -> Problem {
        Problem {
            file: self.file.to_owned(),
            position: entry.position,
            path: path.shown.clone(),
            found: "it again".to_owned(),
            expected: format!("it once (it stands on line {} too)", first.line),
        }
    }

    /// Adds a notice for an entry that no setting uses, unless the entry has no effect here.
    /// `siblings` are the known names, from which a correction is suggested.
    pub(crate) fn unknown(&mut self, path: &Path, entry: &Entry, siblings: &[&str]) {
        if known::has_no_effect(&path.pattern) || is_off(&entry.node.value) {
            return;
        }
        if let Some(why) = known::not_needed(&path.pattern) {
            self.note(path, entry.position, NoticeKind::NotNeeded, why);
            return;
        }
        let reason = match (known::reason(&path.pattern), known::nearest(&entry.name, siblings)) {
            (Some(reason), _) => reason.to_owned(),
            (None, Some(name)) => format!("did you mean {name}?"),
            (None, None) => String::new(),
        };
        self.note(path, entry.position, NoticeKind::Unsupported, &reason);
    }

    /// Adds a notice that the setting at a path has no effect.
    pub(crate) fn note(&mut self, path: &Path, position: Position, kind: NoticeKind, reason: &str) {
        self.notices.push(Notice { path: path.shown.clone(), position, kind, reason: reason.to_owned() });
    }
}

/// Whether `name` belongs to the group `group`.
fn is_below(name: &str, group: &str) -> bool {
    name.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'))
}

/// The permitted names in the group `above`: names of settings, some with dots, and names of
/// groups.
fn siblings<T>(settings: &[Setting<T>], above: &str) -> Vec<&'static str> {
    let below = |name: &'static str| match above {
        "" => Some(name),
        _ => name.strip_prefix(above).and_then(|rest| rest.strip_prefix('.')),
    };
    let names = settings.iter().filter_map(|setting| below(setting.name));
    names.flat_map(|name| [Some(name), name.split('.').next()]).flatten().collect()
}

/// Whether an element, or each of its children, contains `enabled: false`. Such an element requests
/// no feature.
fn is_off(value: &Value) -> bool {
    let Value::Table(entries) = value else { return false };
    let says_off = |entry: &Entry| {
        entry.name == "enabled" && matches!(&entry.node.value, Value::Text(text) if flag(text) == Some(false))
    };
    entries.iter().any(says_off) || (!entries.is_empty() && entries.iter().all(|entry| is_off(&entry.node.value)))
}

/// Replaces `${NAME}` and `${NAME:default}`. The error is the name of a variable that is not set.
///
/// Java's system properties have names with dots. Such a name is first looked up unchanged, then in
/// the form of an environment variable: `${hz.cluster}` becomes `HZ_CLUSTER`.
fn replace_variables<'t>(text: &'t str, environment: Environment<'_>) -> Result<Cow<'t, str>, String> {
    if !text.contains("${") {
        return Ok(Cow::Borrowed(text));
    }
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        replaced.push_str(before);
        let Some((variable, after)) = after.split_once('}') else {
            replaced.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match variable.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (variable, None),
        };
        match lookup(name, environment).or_else(|| default.map(str::to_owned)) {
            Some(value) => replaced.push_str(&value),
            None => return Err(name.to_owned()),
        }
        rest = after;
    }
    replaced.push_str(rest);
    Ok(Cow::Owned(replaced))
}

fn lookup(name: &str, environment: Environment<'_>) -> Option<String> {
    environment(name).or_else(|| environment(&super::variable_name(name)))
}

#[cfg(test)]
mod tests {
    use super::replace_variables;

    #[test]
    fn variables_are_replaced_from_the_environment() {
        let environment = |name: &str| match name {
            "CLUSTER" => Some("orders".to_owned()),
            "HZ_CLUSTER_NAME" => Some("dotted".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let check = |text: &str, expect: Result<&str, &str>| {
            let replaced = replace_variables(text, &environment);
            assert_eq!(replaced.as_deref(), expect.map_err(str::to_owned).as_ref().copied(), "{text}");
        };
        check("plain", Ok("plain"));
        check("${CLUSTER}", Ok("orders"));
        check("a-${CLUSTER}-b-${CLUSTER}", Ok("a-orders-b-orders"));
        check("${hz.cluster.name}", Ok("dotted"));
        check("${MISSING:dev}", Ok("dev"));
        check("${CLUSTER:dev}", Ok("orders"));
        check("${EMPTY}", Ok(""));
        check("${MISSING:}", Ok(""));
        check("${MISSING}", Err("MISSING"));
        check("$CLUSTER", Ok("$CLUSTER"));
        check("${CLUSTER", Ok("${CLUSTER"));
    }
}
