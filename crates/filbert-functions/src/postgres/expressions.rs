//! Translates PostgreSQL's regular expressions, and patterns of `SIMILAR TO`, to those of the
//! `regex` crate.
//!
//! The translation preserves the meaning: `.` is any character, `\d` an ASCII digit, `\m` the start
//! of a word. Features that the crate does not support are rejected: back references and
//! look-around.

use std::iter::Peekable;
use std::str::Chars;

/// The result of a translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) pattern: String,
    /// Whether the match that ends first is wanted, because the first quantifier is lazy.
    pub(super) is_shortest: bool,
    /// Whether alternatives with a common first character, or a mix of lazy and greedy quantifiers,
    /// make the content of groups uncertain.
    pub(super) is_mixed: bool,
    /// The number of groups.
    pub(super) groups: usize,
}

/// The reason why an expression is not translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is invalid: PostgreSQL's text after "invalid regular expression: ".
    Invalid(&'static str),
    /// It uses an unsupported feature.
    Unserved(&'static str),
}

/// Options that are given as letters, or at the start of an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) ignores_case: bool,
    /// `.` and `[^..]` do not match a line break.
    stops_at_lines: bool,
    /// `^` and `$` match at line breaks.
    anchors_at_lines: bool,
    is_expanded: bool,
    is_literal: bool,
    /// `g`: all matches.
    pub(super) is_global: bool,
}

impl Options {
    /// Reads option letters; returns an unknown letter as the error.
    pub(super) fn read(mut self, letters: &str) -> Result<Options, char> {
        for letter in letters.chars() {
            match letter {
                'i' => self.ignores_case = true,
                'c' => self.ignores_case = false,
                'n' | 'm' => (self.stops_at_lines, self.anchors_at_lines) = (true, true),
                'p' => (self.stops_at_lines, self.anchors_at_lines) = (true, false),
                'w' => (self.stops_at_lines, self.anchors_at_lines) = (false, true),
                's' => (self.stops_at_lines, self.anchors_at_lines) = (false, false),
                'x' => self.is_expanded = true,
                't' => self.is_expanded = false,
                'q' => self.is_literal = true,
                'g' => self.is_global = true,
                other => return Err(other),
            }
        }
        Ok(self)
    }
}

/// The maximum depth of nested groups and brackets.
const DEPTH_MAX: usize = 100;
/// The maximum number of repetitions, as in PostgreSQL.
const REPETITIONS_MAX: u32 = 255;
/// The white space of `iswspace`, without no-break spaces.
const SPACE: &str = r"\t-\r \x{85}\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}";
const WORD: &str = r"\p{Alphabetic}\p{N}_";
const DIGIT: &str = "0-9";

/// Translates an expression.
pub(super) fn translate(text: &str, options: Options) -> Result<Translated, Fault> {
    let mut options = options;
    let mut text = text;
    if let Some(rest) = text.strip_prefix("***") {
        match (rest.strip_prefix('='), rest.strip_prefix(':')) {
            (Some(rest), _) => (options.is_literal, text) = (true, rest),
            (_, Some(rest)) => text = rest,
            _ => return Err(Fault::Invalid("quantifier operand invalid")),
        }
    }
    if !options.is_literal
        && let Some(rest) = text.strip_prefix("(?")
        && let Some((letters, rest)) = rest.split_once(')')
        && !letters.is_empty()
        && letters.chars().all(|letter| letter.is_ascii_lowercase())
    {
        options = options.read(letters).map_err(|_| Fault::Invalid("invalid embedded option"))?;
        text = rest;
    }
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str("(?");
    for (is_set, letter) in
        [(options.ignores_case, 'i'), (options.anchors_at_lines, 'm'), (!options.stops_at_lines, 's')]
    {
        if is_set {
            out.push(letter);
        }
    }
    if out.len() == 2 {
        out.clear();
    } else {
        out.push(')');
    }
    if options.is_literal {
        out.push_str(&regex::escape(text));
        return Ok(Translated { pattern: out, is_shortest: false, is_mixed: false, groups: 0 });
    }
    let mut parser = Parser {
        chars: text.chars().peekable(),
        out,
        options,
        groups: 0,
        depth: 0,
        has_lazy: false,
        has_greedy: false,
        has_similar_alternatives: false,
    };
    let is_lazy = parser.alternatives()?;
    if parser.chars.peek().is_some() {
        return Err(Fault::Invalid("parentheses () not balanced"));
    }
    Ok(Translated {
        is_shortest: is_lazy == Some(true),
        is_mixed: parser.has_similar_alternatives || (parser.has_lazy && parser.has_greedy),
        groups: parser.groups,
        pattern: parser.out,
    })
}

struct Parser<'t> {
    chars: Peekable<Chars<'t>>,
    out: String,
    options: Options,
    groups: usize,
    depth: usize,
    has_lazy: bool,
    has_greedy: bool,
    has_similar_alternatives: bool,
}

/// Whether the shortest match is preferred; `None` if it does not matter.
type Laziness = Option<bool>;

impl Parser<'_> {
    fn alternatives(&mut self) -> Result<Laziness, Fault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Fault::Invalid("regular expression is too complex"));
        }
        let mut starts = vec![self.first_letter()];
        let mut laziness = self.branch()?;
        while self.chars.next_if_eq(&'|').is_some() {
            self.out.push('|');
            starts.push(self.first_letter());
            self.branch()?;
            laziness = Some(false);
        }
        if starts.len() > 1 {
            let are_known = starts.iter().all(Option::is_some);
            starts.sort_unstable();
            let count = starts.len();
            starts.dedup();
            self.has_similar_alternatives |= !are_known || starts.len() < count;
        }
        self.depth -= 1;
        Ok(laziness)
    }

    fn branch(&mut self) -> Result<Laziness, Fault> {
        let mut laziness = None;
        loop {
            self.skip_comments();
            match self.chars.peek() {
                None | Some('|') => return Ok(laziness),
                Some(')') if self.depth > 1 => return Ok(laziness),
                _ => {}
            }
            let (inner, is_constraint) = self.atom()?;
            self.skip_comments();
            let quantified = self.quantifier(is_constraint)?;
            laziness = laziness.or(quantified).or(inner);
        }
    }

    /// The first character of every match of the next branch, if it is known.
    fn first_letter(&self) -> Option<char> {
        let mut ahead = self.chars.clone();
        let first = ahead.next().filter(|char| char.is_ascii_alphanumeric() && !self.options.ignores_case)?;
        match ahead.next() {
            Some('*' | '?' | '{') => None,
            _ => Some(first),
        }
    }

    fn skip_comments(&mut self) {
        if !self.options.is_expanded {
            return;
        }
        while let Some(char) = self.chars.next_if(|char| char.is_whitespace() || *char == '#') {
            if char == '#' {
                while self.chars.next_if(|char| *char != '\n').is_some() {}
            }
        }
    }

    /// An atom or a constraint; returns its laziness, and whether it is a constraint.
    fn atom(&mut self) -> Result<(Laziness, bool), Fault> {
        let Some(char) = self.chars.next() else { return Ok((None, false)) };
        match char {
            '(' => return self.group().map(|laziness| (laziness, false)),
            ')' => return Err(Fault::Invalid("parentheses () not balanced")),
            '[' => return self.bracket().map(|is_constraint| (None, is_constraint)),
            '.' => self.out.push('.'),
            '^' | '$' => {
                self.out.push(char);
                return Ok((None, true));
            }
            '*' | '+' | '?' => return Err(Fault::Invalid("quantifier operand invalid")),
            '{' if self.chars.peek().is_some_and(char::is_ascii_digit) => {
                return Err(Fault::Invalid("quantifier operand invalid"));
            }
            '\\' => return self.escape().map(|is_constraint| (None, is_constraint)),
            other => self.literal(other),
        }
        Ok((None, false))
    }

    fn literal(&mut self, char: char) {
        push_literal(char, &mut self.out);
    }

    fn group(&mut self) -> Result<Laziness, Fault> {
        if self.chars.next_if_eq(&'?').is_some() {
            match self.chars.next() {
                Some(':') => self.out.push_str("(?:"),
                Some('=' | '!' | '<') => return Err(Fault::Unserved("lookahead and lookbehind are not served")),
                _ => return Err(Fault::Invalid("quantifier operand invalid")),
            }
        } else {
            self.groups += 1;
            self.out.push('(');
        }
        let laziness = self.alternatives()?;
        if self.chars.next() != Some(')') {
            return Err(Fault::Invalid("parentheses () not balanced"));
        }
        self.out.push(')');
        Ok(laziness)
    }

    /// A quantifier, if one follows.
    fn quantifier(&mut self, is_constraint: bool) -> Result<Laziness, Fault> {
        let Some((least, most)) = self.bounds()? else { return Ok(None) };
        if is_constraint {
            return Err(Fault::Invalid("quantifier operand invalid"));
        }
        match most {
            Some(most) if most == least => self.out.push_str(&format!("{{{least}}}")),
            Some(most) => self.out.push_str(&format!("{{{least},{most}}}")),
            None => self.out.push_str(&format!("{{{least},}}")),
        }
        let is_lazy = self.chars.next_if_eq(&'?').is_some();
        let is_fixed = most == Some(least);
        if is_lazy {
            self.out.push('?');
            self.has_lazy = true;
        } else if !is_fixed {
            self.has_greedy = true;
        }
        if self.bounds()?.is_some() {
            return Err(Fault::Invalid("quantifier operand invalid"));
        }
        Ok(match (is_lazy, is_fixed) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }

    /// The repetition of an atom: `*`, `+`, `?`, `{m}`, `{m,}` or `{m,n}`.
    fn bounds(&mut self) -> Result<Option<(u32, Option<u32>)>, Fault> {
        let bounds = match self.chars.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                let mut ahead = self.chars.clone();
                ahead.next();
                // Otherwise the brace is a literal.
                return match ahead.peek().is_some_and(char::is_ascii_digit) {
                    true => self.numbers().map(Some),
                    false => Ok(None),
                };
            }
            _ => return Ok(None),
        };
        self.chars.next();
        Ok(Some(bounds))
    }

    fn numbers(&mut self) -> Result<(u32, Option<u32>), Fault> {
        let wrong = Err(Fault::Invalid("invalid repetition count(s)"));
        self.chars.next();
        let least = self.number().unwrap_or(0);
        let most = match self.chars.next_if_eq(&',') {
            Some(_) => self.number(),
            None => Some(least),
        };
        let is_range = most.is_none_or(|most| least <= most);
        if self.chars.next() != Some('}') || !is_range || least.max(most.unwrap_or(0)) > REPETITIONS_MAX {
            return wrong;
        }
        Ok((least, most))
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = None;
        while let Some(digit) = self.chars.next_if(char::is_ascii_digit).and_then(|digit| digit.to_digit(10)) {
            number = Some(u32::min(number.unwrap_or(0) * 10 + digit, REPETITIONS_MAX + 1));
        }
        number
    }

    /// The rest of an escape; returns whether it is a constraint.
    fn escape(&mut self) -> Result<bool, Fault> {
        let Some(char) = self.chars.next() else { return Err(Fault::Invalid("invalid escape \\ sequence")) };
        let constraint = match char {
            'A' => r"\A",
            'Z' => r"\z",
            'm' => r"\b{start}",
            'M' => r"\b{end}",
            'y' => r"\b",
            'Y' => r"\B",
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                let (class, newline) = class_of(char, self.options.stops_at_lines);
                self.out.push_str(&format!("[{class}{newline}]"));
                return Ok(false);
            }
            '1'..='9' => return Err(Fault::Unserved("back references are not served")),
            other => {
                let literal = self.escaped(other)?;
                self.literal(literal);
                return Ok(false);
            }
        };
        self.out.push_str(constraint);
        Ok(true)
    }

    /// The character of an escape.
    fn escaped(&mut self, char: char) -> Result<char, Fault> {
        let wrong = Fault::Invalid("invalid escape \\ sequence");
        Ok(match char {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'c' => match self.chars.next() {
                Some(letter) => char::from_u32(u32::from(letter) & 0x1f).unwrap_or('\0'),
                None => return Err(wrong),
            },
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'u' => self.code(16, 4, 4).ok_or(wrong)?,
            'U' => self.code(16, 8, 8).ok_or(wrong)?,
            'x' => self.code(16, 1, 255).ok_or(wrong)?,
            '0' => self.code(8, 0, 2).ok_or(wrong)?,
            other if other.is_alphanumeric() => return Err(wrong),
            other => other,
        })
    }

    fn code(&mut self, radix: u32, least: usize, most: usize) -> Option<char> {
        let (mut code, mut digits) = (0_u32, 0);
        while digits < most
            && let Some(digit) = self.chars.next_if(|char| char.is_digit(radix)).and_then(|char| char.to_digit(radix))
        {
            code = code.checked_mul(radix)?.checked_add(digit)?;
            digits += 1;
        }
        if digits < least { None } else { char::from_u32(code) }
    }

    /// The rest of a bracket expression; returns whether it is a constraint.
    fn bracket(&mut self) -> Result<bool, Fault> {
        let unbalanced = Fault::Invalid("brackets [] not balanced");
        for (written, constraint) in [("[:<:]]", r"\b{start}"), ("[:>:]]", r"\b{end}")] {
            let mut ahead = self.chars.clone();
            if written.chars().all(|char| ahead.next() == Some(char)) {
                self.chars = ahead;
                self.out.push_str(constraint);
                return Ok(true);
            }
        }
        let is_negated = self.chars.next_if_eq(&'^').is_some();
        self.out.push_str(if is_negated { "[^" } else { "[" });
        let mut is_first = true;
        loop {
            let char = self.chars.next().ok_or(unbalanced.clone())?;
            if char == ']' && !is_first {
                break;
            }
            is_first = false;
            let Some(start) = self.item(char)? else { continue };
            let mut ahead = self.chars.clone();
            let is_range = ahead.next() == Some('-') && ahead.peek().is_some_and(|next| *next != ']');
            if !is_range {
                push_in_class(start, &mut self.out);
                continue;
            }
            self.chars.next();
            let char = self.chars.next().ok_or(unbalanced.clone())?;
            let Some(end) = self.item(char)? else { return Err(Fault::Invalid("invalid character range")) };
            if end < start {
                return Err(Fault::Invalid("invalid character range"));
            }
            push_in_class(start, &mut self.out);
            self.out.push('-');
            push_in_class(end, &mut self.out);
        }
        if is_negated && self.options.stops_at_lines {
            self.out.push_str(r"\n");
        }
        self.out.push(']');
        Ok(false)
    }

    /// A character within brackets; `None` for a class, which is written directly.
    fn item(&mut self, char: char) -> Result<Option<char>, Fault> {
        match (char, self.chars.peek()) {
            ('[', Some(':')) => {
                let name = self.named(':')?;
                self.out.push_str(match name.as_str() {
                    "alpha" => r"\p{Alphabetic}",
                    "digit" => DIGIT,
                    "alnum" => r"\p{Alphabetic}\p{N}",
                    "upper" => r"\p{Lu}\p{Lt}",
                    "lower" => r"\p{Ll}",
                    "space" => SPACE,
                    "blank" => r"\t \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{205f}\x{3000}",
                    "punct" => "[:punct:]",
                    "cntrl" => r"\p{Cc}",
                    "xdigit" => "[:xdigit:]",
                    "graph" => r"\x21-\x7e\p{L}\p{M}\p{N}\p{P}\p{S}",
                    "print" => r"\x20-\x7e\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}",
                    "word" => WORD,
                    "ascii" => r"\x00-\x7f",
                    _ => return Err(Fault::Invalid("invalid character class")),
                });
                Ok(None)
            }
            ('[', Some(sign @ ('.' | '='))) => {
                let sign = *sign;
                let name = self.named(sign)?;
                let mut chars = name.chars();
                match (chars.next(), chars.next()) {
                    (Some(char), None) => Ok(Some(char)),
                    _ => Err(Fault::Unserved("collating elements of names are not served")),
                }
            }
            ('\\', _) => {
                let Some(char) = self.chars.next() else { return Err(Fault::Invalid("invalid escape \\ sequence")) };
                match char {
                    'd' | 's' | 'w' => {
                        let (class, _) = class_of(char, false);
                        self.out.push_str(class);
                        Ok(None)
                    }
                    'D' | 'S' | 'W' => Err(Fault::Invalid("invalid escape \\ sequence")),
                    other => self.escaped(other).map(Some),
                }
            }
            (other, _) => Ok(Some(other)),
        }
    }

    /// The name in `[:name:]`, from after the first bracket.
    fn named(&mut self, sign: char) -> Result<String, Fault> {
        self.chars.next();
        let mut name = String::new();
        loop {
            match self.chars.next() {
                Some(found) if found == sign && self.chars.peek() == Some(&']') && !name.is_empty() => {
                    self.chars.next();
                    return Ok(name);
                }
                Some(other) => name.push(other),
                None => return Err(Fault::Invalid("brackets [] not balanced")),
            }
        }
    }
}

/// The class of an escape letter within brackets; the second part is added to a negated one.
fn class_of(letter: char, stops_at_lines: bool) -> (&'static str, &'static str) {
    let newline = if stops_at_lines { r"\n" } else { "" };
    match letter {
        'd' => (DIGIT, ""),
        's' => (SPACE, ""),
        'w' => (WORD, ""),
        'D' => ("^0-9", newline),
        'S' => (r"^\t-\r \x{85}\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}", ""),
        _ => (r"^\p{Alphabetic}\p{N}_", newline),
    }
}

fn push_literal(char: char, out: &mut String) {
    let mut buffer = [0; 4];
    out.push_str(&regex::escape(char.encode_utf8(&mut buffer)));
}

fn push_in_class(char: char, out: &mut String) {
    if char.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(char);
}

/// A pattern of `SIMILAR TO` as a PostgreSQL regular expression over the whole text.
pub(super) fn of_similar(pattern: &str, escape: Option<char>) -> Result<String, Fault> {
    let parts = similar_parts(pattern, escape, false)?;
    match parts.as_slice() {
        [whole] => Ok(format!("^(?:{whole})$")),
        _ => Ok(format!("^(?:{})$", parts.concat())),
    }
}

/// A pattern of `substring(text SIMILAR pattern ESCAPE escape)` as a regular expression with one
/// group, which matches the result. `"` after the escape character splits it into three parts, the
/// first as short as possible.
pub(super) fn of_similar_part(pattern: &str, escape: Option<char>) -> Result<String, Fault> {
    let parts = similar_parts(pattern, escape, true)?;
    match parts.as_slice() {
        [whole] => Ok(format!("^({whole})$")),
        [before, wanted, after] => Ok(format!("^(?:{before})({wanted})(?:{after})$")),
        [before, wanted] => Ok(format!("^(?:{before})({wanted})$")),
        _ => Err(Fault::Invalid("SQL regular expression may not contain more than two escape-double-quote separators")),
    }
}

/// The parts of such a pattern. The first one is lazy if there are several and `is_divided`.
fn similar_parts(pattern: &str, escape: Option<char>, is_divided: bool) -> Result<Vec<String>, Fault> {
    let separator = escape.map(|escape| format!("{escape}\""));
    let is_lazy = is_divided && separator.is_some_and(|separator| pattern.contains(&separator));
    let mut parts = vec![String::new()];
    let mut chars = pattern.chars();
    let mut is_in_brackets = false;
    while let Some(char) = chars.next() {
        let lazy = if is_lazy && parts.len() == 1 { "?" } else { "" };
        if Some(char) == escape {
            match chars.next() {
                // An escape character at the end stands for nothing.
                None => {}
                Some('"') if !is_in_brackets => parts.push(String::new()),
                Some(next) => parts.last_mut().into_iter().for_each(|part| push_escaped(next, part)),
            }
            continue;
        }
        let Some(out) = parts.last_mut() else { continue };
        if is_in_brackets {
            if char == '\\' {
                out.push('\\');
            }
            out.push(char);
            is_in_brackets = char != ']';
            continue;
        }
        match char {
            '[' => {
                out.push('[');
                is_in_brackets = true;
            }
            '%' => out.push_str(&format!(".*{lazy}")),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => push_escaped(char, out),
            '*' | '+' | '?' | '}' => out.push_str(&format!("{char}{lazy}")),
            other => out.push(other),
        }
    }
    Ok(parts)
}

fn push_escaped(char: char, out: &mut String) {
    if !char.is_alphanumeric() {
        out.push('\\');
    }
    out.push(char);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        let translated = translate(pattern, Options::default()).unwrap_or_else(|fault| panic!("{pattern}: {fault:?}"));
        regex::Regex::new(&translated.pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).is_match(text)
    }

    #[test]
    fn expressions_say_what_they_say_in_postgresql() {
        for (pattern, text, expected) in [
            ("a.c", "a\nc", true),
            ("^abc$", "abc\n", false),
            (r"\d", "٣", false),
            (r"[[:alpha:]]+\s[^]a]", "é b", true),
            ("a{2,}", "aa", true),
            ("a{", "a{", true),
            ("a{,2}", "a{,2}", true),
            (r"\mfoo\M", "a foo b", true),
            ("[[:<:]]foo[[:>:]]", "foobar", false),
            (r"a\.b", "axb", false),
            ("a#b& c~", "a#b& c~", true),
            ("[a-c&&~~]+$", "&~", true),
            ("(?i)ABC", "abc", true),
            ("(?n)^b.$", "a\nbc\nd", true),
            ("***=a.b", "axb", false),
            ("(?x) a b # c", "ab", true),
            ("()", "", true),
            ("a|", "b", true),
            (r"\x41\u0042", "AB", true),
            (r"[\]\-]", "-", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text:?}");
        }
        for (pattern, is_served) in [
            ("(", true),
            ("a)?", true),
            ("[a", true),
            ("*a", true),
            ("a**", true),
            ("^*", true),
            ("a{256}", true),
            ("a{2,1}", true),
            (r"\q", true),
            ("a\\", true),
            ("[[:none:]]", true),
            ("[b-a]", true),
            (r"(a)\1", false),
            ("a(?=b)", false),
            ("(?<!a)b", false),
        ] {
            let fault = translate(pattern, Options::default()).unwrap_err();
            assert_eq!(matches!(fault, Fault::Invalid(_)), is_served, "{pattern}");
        }
    }

    #[test]
    fn laziness_is_that_of_the_first_quantifier() {
        for (pattern, is_shortest, is_mixed) in [
            ("abc", false, false),
            ("a*?b", true, false),
            ("a*?b*", true, true),
            ("a+(b|c)", false, false),
            ("(a|ab)c", false, true),
            ("(.|b)c", false, true),
            ("(a*?)|b", false, true),
            ("a{2}b+?", true, false),
        ] {
            let translated = translate(pattern, Options::default()).unwrap();
            assert_eq!((translated.is_shortest, translated.is_mixed), (is_shortest, is_mixed), "{pattern}");
        }
    }

    #[test]
    fn similar_patterns_stand_for_the_whole_text() {
        for (pattern, text, expected) in [
            ("a", "abc", false),
            ("%(b|d)%", "abc", true),
            ("a.c", "axc", false),
            ("a_c", "a\nc", true),
            ("a{2}", "aa", true),
            (r"a\%", "a%", true),
            (r"a\%", "ab", false),
            ("[^a]", "b", true),
            ("a|b", "b", true),
            ("a^b$", "a^b$", true),
            ("", "", true),
        ] {
            assert_eq!(matches(&of_similar(pattern, Some('\\')).unwrap(), text), expected, "{pattern} {text:?}");
        }
    }
}
