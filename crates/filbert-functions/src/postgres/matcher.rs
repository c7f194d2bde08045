//! Regular expressions: compiled once for each thread, and matched as in PostgreSQL.
//!
//! PostgreSQL takes the longest of the matches that start first (or the shortest, if the first
//! quantifier is lazy). The `regex` crate takes the first one by the order of its alternatives and
//! quantifiers. Both agree on whether a match exists and where it starts. An automaton that follows
//! all alternatives finds where it ends. The content of groups comes from the crate if it is
//! certain to be the same, and is rejected otherwise.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use datafusion::common::Result;
use regex::Regex;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind};

use super::expressions::{Fault, Options, translate};
use super::{refused, unserved};

/// The number of expressions that a thread keeps.
const KEPT_MAX: usize = 64;

/// The byte range of a match.
pub(super) type Span = (usize, usize);

/// A compiled expression.
pub(super) struct Matcher {
    regex: Regex,
    /// The automaton that finds ends; `None` if it cannot be built.
    automaton: Option<(DFA, RefCell<Cache>)>,
    is_shortest: bool,
    is_mixed: bool,
    pub(super) groups: usize,
    pub(super) is_global: bool,
}

thread_local! {
    static KEPT: RefCell<HashMap<(String, String), Rc<Matcher>>> = RefCell::new(HashMap::new());
}

/// A translation, or its error.
pub(super) fn valid<T>(translated: Result<T, Fault>) -> Result<T> {
    translated.map_err(|fault| match fault {
        Fault::Invalid(text) => refused("2201B", format!("invalid regular expression: {text}")),
        Fault::Unserved(text) => unserved(format!("regular expressions: {text}")),
    })
}

/// Runs a function with a compiled expression.
pub(super) fn with<T>(pattern: &str, letters: &str, act: impl FnOnce(&Matcher) -> Result<T>) -> Result<T> {
    let key = (pattern.to_owned(), letters.to_owned());
    let kept = KEPT.with_borrow(|kept| kept.get(&key).cloned());
    let matcher = match kept {
        Some(matcher) => matcher,
        None => {
            let matcher = Rc::new(Matcher::new(pattern, letters)?);
            KEPT.with_borrow_mut(|kept| {
                if kept.len() >= KEPT_MAX {
                    kept.clear();
                }
                kept.insert(key, matcher.clone());
            });
            matcher
        }
    };
    act(&matcher)
}

impl Matcher {
    /// Compiles a PostgreSQL expression with option letters.
    pub(super) fn new(pattern: &str, letters: &str) -> Result<Matcher> {
        let options = Options::default()
            .read(letters)
            .map_err(|letter| refused("22023", format!("invalid regular expression option: \"{letter}\"")))?;
        let translated = valid(translate(pattern, options))?;
        let regex = Regex::new(&translated.pattern)
            .map_err(|_| refused("2201B", "invalid regular expression: regular expression is too complex"))?;
        let automaton = DFA::builder()
            .configure(DFA::config().match_kind(MatchKind::All).unicode_word_boundary(true))
            .build(&translated.pattern)
            .ok()
            .map(|automaton| {
                let cache = automaton.create_cache();
                (automaton, RefCell::new(cache))
            });
        Ok(Matcher {
            regex,
            automaton,
            is_shortest: translated.is_shortest,
            is_mixed: translated.is_mixed,
            groups: translated.groups,
            is_global: options.is_global,
        })
    }

    /// Whether a text has a match.
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The first match from a position.
    pub(super) fn find(&self, text: &str, from: usize) -> Result<Option<Span>> {
        if from > text.len() {
            return Ok(None);
        }
        let Some(found) = self.regex.find_at(text, from) else { return Ok(None) };
        let start = found.start();
        let end = self.automaton.as_ref().and_then(|(automaton, cache)| {
            let input = Input::new(text).range(start..).anchored(Anchored::Yes).earliest(self.is_shortest);
            automaton.try_search_fwd(&mut cache.borrow_mut(), &input).ok().flatten().map(|end| end.offset())
        });
        match end {
            Some(end) => Ok(Some((start, end))),
            None if !self.is_mixed => Ok(Some((start, found.end()))),
            None => Err(unserved("the end of a match of this regular expression cannot be told")),
        }
    }

    /// The first match from a position, followed by its groups.
    pub(super) fn captures(&self, text: &str, from: usize) -> Result<Option<Vec<Option<Span>>>> {
        let Some(whole) = self.find(text, from)? else { return Ok(None) };
        if self.groups == 0 {
            return Ok(Some(vec![Some(whole)]));
        }
        let found = self.regex.captures_at(text, from);
        let spans = found
            .map(|found| found.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect::<Vec<_>>());
        match spans.filter(|spans| !self.is_mixed && spans.first() == Some(&Some(whole))) {
            Some(spans) => Ok(Some(spans)),
            None => Err(unserved(
                "groups of a regular expression whose alternatives begin alike, or with lazy and greedy quantifiers, \
                 are not served",
            )),
        }
    }

    /// The first group of the crate's first match, for expressions over the whole text.
    pub(super) fn first_group(&self, text: &str) -> Option<String> {
        self.regex.captures(text)?.get(1).map(|group| group.as_str().to_owned())
    }

    /// All matches with their groups from a position; only the first one unless `is_global`.
    pub(super) fn all(&self, text: &str, from: usize, is_global: bool) -> Result<Vec<Vec<Option<Span>>>> {
        let mut all = Vec::new();
        let mut at = from;
        while let Some(found) = self.captures(text, at)? {
            let Some((start, end)) = found.first().copied().flatten() else { break };
            all.push(found);
            if !is_global {
                break;
            }
            at = next(text, start, end);
        }
        Ok(all)
    }

    /// Like [`Matcher::all`], without groups.
    pub(super) fn spans(&self, text: &str, from: usize) -> Result<Vec<Span>> {
        let mut all = Vec::new();
        let mut at = from;
        while let Some((start, end)) = self.find(text, at)? {
            all.push((start, end));
            at = next(text, start, end);
        }
        Ok(all)
    }
}

/// The start of the next search: after a match, or one character further after an empty match.
fn next(text: &str, start: usize, end: usize) -> usize {
    if end > start {
        return end;
    }
    end + text.get(end..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> Option<String> {
        let matcher = Matcher::new(pattern, "").unwrap();
        let (start, end) = matcher.find(text, 0).unwrap()?;
        text.get(start..end).map(str::to_owned)
    }

    #[test]
    fn the_longest_match_is_taken() {
        for (pattern, text, expected) in [
            ("a|ab", "xab", "ab"),
            ("a?(ab)?", "ab", "ab"),
            ("a*?", "aaa", ""),
            ("a+?b*", "aabb", "a"),
            ("(foo|foobar)(bar)?", "foobarbar", "foobarbar"),
            (r"\yé\y", "a é", "é"),
        ] {
            assert_eq!(found(pattern, text).as_deref(), Some(expected), "{pattern}");
        }
        assert_eq!(found("x", "abc"), None);
    }

    #[test]
    fn groups_are_told_where_they_are_certain() {
        let groups = |pattern: &str, text: &str| {
            let found = Matcher::new(pattern, "").unwrap().captures(text, 0);
            found.map(|found| found.map(|spans| spans.len()))
        };
        assert_eq!(groups("(b.)(r)", "foobar").unwrap(), Some(3));
        assert_eq!(groups("(bar|foo)", "foobar").unwrap(), Some(2));
        assert!(groups("(a|ab)(c|bcd)(d*)", "abcd").is_err());
        assert!(groups("a?(ab)?", "ab").is_err());
    }
}
