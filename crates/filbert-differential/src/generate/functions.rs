//! The table of functions and operators, `functions.txt`, for the generator.

use anyhow::{Context, Result, bail};

use crate::random::Random;
use crate::tree::{Dialect, Type};

/// The texts of the tables.
const POSTGRES: &str = include_str!("functions.txt");
const HAZELCAST: &str = include_str!("functions_hazelcast.txt");

/// The operand in a place of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Type(Type),
    /// Any type of a family, the same type in all places.
    Any(Family),
    /// The operand with this number again.
    Again(usize),
    /// A special-purpose literal.
    Special(Special),
}

/// A family of types that a pattern accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Any,
    Number,
    Integer,
    Float,
}

/// Kinds of special-purpose literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Small,
    Count,
    Pattern,
    Regex,
    Field,
    TimeField,
    Trunc,
    Format,
    NumberFormat,
    Key,
    Path,
    Zone,
    JsonPath,
    /// A number in quotes, beside a `numeric`.
    Number,
    /// An array of such numbers.
    Numbers,
}

/// A line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// The pattern, with `{0}`, `{1}` .. for its operands.
    pub(crate) pattern: String,
    pub(crate) places: Vec<Place>,
    pub(crate) result: Place,
    pub(crate) inexact: bool,
}

/// The parsed table.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    pub(crate) dialect: Dialect,
    pub(crate) scalar: Vec<Function>,
    pub(crate) aggregate: Vec<Function>,
    pub(crate) window: Vec<Function>,
}

impl Family {
    fn named(name: &str) -> Option<Family> {
        Some(match name {
            "any" => Family::Any,
            "num" => Family::Number,
            "int" => Family::Integer,
            "float" => Family::Float,
            _ => return None,
        })
    }

    pub(crate) fn has(self, kind: Type) -> bool {
        match self {
            Family::Any => true,
            Family::Number => kind.is_number(),
            Family::Integer => matches!(kind, Type::Int2 | Type::Int4 | Type::Int8),
            Family::Float => kind.is_float(),
        }
    }

    pub(crate) fn pick(self, random: &mut Random, dialect: Dialect) -> Type {
        let types: Vec<Type> = dialect.types().iter().copied().filter(|kind| self.has(*kind)).collect();
        random.pick(&types).copied().unwrap_or(Type::Int4)
    }
}

impl Special {
    fn named(name: &str) -> Option<Special> {
        Some(match name {
            "small" => Special::Small,
            "count" => Special::Count,
            "pattern" => Special::Pattern,
            "regex" => Special::Regex,
            "field" => Special::Field,
            "timefield" => Special::TimeField,
            "trunc" => Special::Trunc,
            "format" => Special::Format,
            "numberformat" => Special::NumberFormat,
            "key" => Special::Key,
            "path" => Special::Path,
            "zone" => Special::Zone,
            "jsonpath" => Special::JsonPath,
            "number" => Special::Number,
            "numbers" => Special::Numbers,
            _ => return None,
        })
    }
}

impl Place {
    fn named(name: &str) -> Option<Place> {
        let again = || name.strip_prefix('=')?.parse().ok().map(Place::Again);
        Type::named(name)
            .map(Place::Type)
            .or_else(|| Family::named(name).map(Place::Any))
            .or_else(|| Special::named(name).map(Place::Special))
            .or_else(again)
    }
}

impl Functions {
    /// Parses the table of a dialect.
    pub(crate) fn read(dialect: Dialect) -> Result<Functions> {
        let mut functions = Functions { dialect, scalar: Vec::new(), aggregate: Vec::new(), window: Vec::new() };
        let table = match dialect {
            Dialect::Postgres => POSTGRES,
            Dialect::Hazelcast => HAZELCAST,
        };
        let mut section = "";
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("# ")) {
            if line.starts_with('[') && line.ends_with(']') {
                section = line;
                continue;
            }
            let (weight, function) = read_line(line).with_context(|| format!("reading the line {line:?}"))?;
            let kept = match section {
                "[scalar]" => &mut functions.scalar,
                "[aggregate]" => &mut functions.aggregate,
                "[window]" => &mut functions.window,
                _ => bail!("{line:?} is in no section"),
            };
            kept.extend(std::iter::repeat_n(function, weight));
        }
        Ok(functions)
    }
}

impl Function {
    /// Whether the function can have this result type.
    pub(crate) fn gives(&self, kind: Type) -> bool {
        match self.result {
            Place::Type(result) => result == kind,
            Place::Any(family) => family.has(kind),
            Place::Again(_) | Place::Special(_) => false,
        }
    }
}

fn read_line(line: &str) -> Result<(usize, Function)> {
    let (line, inexact) = line.strip_suffix(" ~").map_or((line, false), |line| (line, true));
    let (pattern, result) = line.rsplit_once(" -> ").context("it has no result")?;
    let result = Place::named(result).with_context(|| format!("{result:?} is no type"))?;
    let weighted = pattern.split_once("* ").and_then(|(weight, rest)| Some((weight.parse().ok()?, rest)));
    let (weight, pattern) = weighted.unwrap_or((1, pattern));
    let (mut numbered, mut places, mut rest) = (String::new(), Vec::new(), pattern);
    while let Some((before, after)) = rest.split_once('{') {
        numbered.push_str(before);
        let (name, after) = after.split_once('}').context("a place does not end")?;
        match Place::named(name).with_context(|| format!("{name:?} is no place"))? {
            Place::Again(index) => numbered.push_str(&format!("{{{index}}}")),
            place => {
                numbered.push_str(&format!("{{{}}}", places.len()));
                places.push(place);
            }
        }
        rest = after;
    }
    numbered.push_str(rest);
    Ok((weight, Function { pattern: numbered, places, result, inexact }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_can_be_read() {
        let functions = Functions::read(Dialect::Postgres).unwrap();
        assert!(Functions::read(Dialect::Hazelcast).unwrap().scalar.len() > 100);
        assert!(functions.scalar.len() > 300 && functions.aggregate.len() > 50 && functions.window.len() > 10);
        assert!(Type::ALL.into_iter().all(|kind| functions.scalar.iter().any(|function| function.gives(kind))));
    }

    #[test]
    fn places_are_numbered() {
        let (weight, function) = read_line("3* f({int4}, {any}, {=0}) -> any ~").unwrap();
        assert_eq!((weight, function.pattern.as_str(), function.inexact), (3, "f({0}, {1}, {0})", true));
        assert_eq!(function.places, [Place::Type(Type::Int4), Place::Any(Family::Any)]);
        assert!(function.gives(Type::Uuid));
    }
}
