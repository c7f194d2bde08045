//! The walk over a configuration's tree: every element is used by a declared setting, or noted by name and line.

use std::borrow::Cow;
use std::fmt;

use super::error::Problem;
use super::known;
use super::setting::{Kind, Setting, flag};
use super::tree::{Entry, Node, Position, Value, quote};

/// Finds the value of a variable of the environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A setting of the file that has no effect, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Dotted name of the setting, such as `map.orders.map-store`.
    pub path: String,
    /// Where its name stands.
    pub position: Position,
    /// Whether something that was asked for is missing.
    pub kind: NoticeKind,
    /// What to know about it; empty where nothing is.
    pub reason: String,
}

/// What a [`Notice`] means for the person who wrote the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeKind {
    /// The file asks for something that Filbert does not do. `--strict` refuses to start.
    Unsupported,
    /// Nothing is missing: Filbert does not need the setting.
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

/// The dotted name of a place in the tree, as shown and as a pattern in which `*` stands for names that users chose.
#[derive(Debug, Clone, Default)]
pub(crate) struct Path {
    pub(crate) shown: String,
    pub(crate) pattern: String,
}

impl Path {
    pub(crate) fn child(&self, name: &str) -> Path {
        Path { shown: join(&self.shown, name), pattern: join(&self.pattern, name) }
    }

    /// A child whose name the user chose, such as a map's.
    pub(crate) fn named(&self, name: &str) -> Path {
        Path { shown: join(&self.shown, name), pattern: join(&self.pattern, "*") }
    }

    /// An item of a list, counted from 1 as a reader counts.
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

    /// What was noted, in the order of the file.
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
                // `port: 5701` says the same as `port: {port: 5701}`.
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

    /// The entries of a table; none where nothing was written.
    pub(crate) fn table<'n>(&self, path: &Path, node: &'n Node) -> Result<&'n [Entry], Problem> {
        match &node.value {
            Value::Empty => Ok(&[]),
            Value::Table(entries) => Ok(entries),
            _ => Err(self.problem(path, node, "a table of settings")),
        }
    }

    /// The items of a list; none where nothing was written. A single text is a list of one.
    pub(crate) fn list<'n>(&self, path: &Path, node: &'n Node) -> Result<&'n [Node], Problem> {
        match &node.value {
            Value::Empty => Ok(&[]),
            Value::List(items) => Ok(items),
            Value::Text(_) => Ok(std::slice::from_ref(node)),
            Value::Table(_) => Err(self.problem(path, node, "a list")),
        }
    }

    /// A scalar with its variables replaced.
    pub(crate) fn text<'n>(&self, path: &Path, node: &'n Node, expected: &str) -> Result<Cow<'n, str>, Problem> {
        match &node.value {
            Value::Text(text) => replace_variables(text, self.environment).map_err(|variable| {
                let found = format!("${{{variable}}}, which is not set in the environment");
                self.found(path, node, found, expected.to_owned())
            }),
            _ => Err(self.problem(path, node, expected)),
        }
    }

    /// A scalar that must be `true` or `false`.
    pub(crate) fn flag(&self, path: &Path, node: &Node) -> Result<bool, Problem> {
        const EXPECTED: &str = "true or false";
        let text = self.text(path, node, EXPECTED)?;
        flag(&text).ok_or_else(|| self.found(path, node, quote(&text), EXPECTED.to_owned()))
    }

    /// Refuses a name that stands twice.
    pub(crate) fn once(&self, path: &Path, entries: &[Entry], index: usize) -> Result<(), Problem> {
        let Some(entry) = entries.get(index) else { return Ok(()) };
        match entries.iter().take(index).find(|earlier| earlier.name == entry.name) {
            Some(first) => Err(self.again(path, entry, first.position)),
            None => Ok(()),
        }
    }

    /// The problem that a node is not what it must be.
    pub(crate) fn problem(&self, path: &Path, node: &Node, expected: &str) -> Problem {
        self.found(path, node, node.describe(), expected.to_owned())
    }

    /// The problem that `found` stands where `expected` should.
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

    /// Notes an entry that no setting uses, unless it asks for nothing. `siblings` are the names it may have meant.
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

    /// Notes that what stands at a path has no effect.
    pub(crate) fn note(&mut self, path: &Path, position: Position, kind: NoticeKind, reason: &str) {
        self.notices.push(Notice { path: path.shown.clone(), position, kind, reason: reason.to_owned() });
    }
}

/// Whether `name` lies below the group `group`.
fn is_below(name: &str, group: &str) -> bool {
    name.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'))
}

/// The names that may stand in the group `above`: those of settings, some with dots, and of groups.
fn siblings<T>(settings: &[Setting<T>], above: &str) -> Vec<&'static str> {
    let below = |name: &'static str| match above {
        "" => Some(name),
        _ => name.strip_prefix(above).and_then(|rest| rest.strip_prefix('.')),
    };
    let names = settings.iter().filter_map(|setting| below(setting.name));
    names.flat_map(|name| [Some(name), name.split('.').next()]).flatten().collect()
}

/// Whether an element says of itself, or every part of it says, `enabled: false`: then nothing is asked for.
fn is_off(value: &Value) -> bool {
    let Value::Table(entries) = value else { return false };
    let says_off = |entry: &Entry| {
        entry.name == "enabled" && matches!(&entry.node.value, Value::Text(text) if flag(text) == Some(false))
    };
    entries.iter().any(says_off) || (!entries.is_empty() && entries.iter().all(|entry| is_off(&entry.node.value)))
}

/// Replaces `${NAME}` and `${NAME:default}`. The error is the name of a variable that is not set.
///
/// Java's system properties are written with dots; such a name is looked up as it is and then as a variable of the
/// environment is written: `${hz.cluster}` is `HZ_CLUSTER`.
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
