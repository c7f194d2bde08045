//! The settings with which a session begins, and the settings that are reported to its client.

use std::hash::{DefaultHasher, Hash, Hasher};

use filbert_data::dates::Zone;
use filbert_grid::query::{Dialect, SETTING_BYTES, Session};

use crate::{
    error::{Failure, Outcome, PgError, sqlstate},
    wire::{Out, Parameters},
};

/// The maximum number of characters of the `options` parameter that are read.
const VALUE_BYTES_MAX: usize = 8 << 10;

/// The setting with which a client chooses the SQL dialect of its statements when it connects.
const DIALECT: &str = "filbert.dialect";

/// The settings that are reported to clients when they change, with their defaults.
const REPORTED: [(&str, &str); 11] = [
    ("application_name", ""),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("default_transaction_read_only", "off"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "on"),
    ("server_encoding", "UTF8"),
    ("standard_conforming_strings", "on"),
    ("TimeZone", "UTC"),
];

/// The parameters with which a client begins its session.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) dialect: Dialect,
    settings: Vec<(String, String)>,
    /// Unknown options of the protocol.
    pub(crate) unknown_options: Vec<String>,
    /// The minor version of the protocol.
    pub(crate) minor: u16,
}

impl Opening {
    /// Reads the parameters of the first message.
    ///
    /// # Errors
    /// There is no user, the options are malformed, or the client asks for replication or for an
    /// unsupported value: of an encoding, a dialect, a time zone, or a style of dates or intervals.
    pub(crate) fn read(parameters: Parameters<'_>) -> Outcome<Opening> {
        let (user, database, settings, unknown_options, minor) = Default::default();
        let mut opening = Opening { user, database, dialect: Dialect::Postgres, settings, unknown_options, minor };
        for (name, value) in parameters.iter() {
            match name {
                "user" => opening.user = value.to_owned(),
                "database" => opening.database = value.to_owned(),
                "options" => opening.settings.extend(options(value)?),
                "replication" => match value {
                    "" | "false" | "off" | "no" | "0" => {}
                    _ => return refuse(sqlstate::FEATURE_NOT_SUPPORTED, "replication is not supported"),
                },
                name if name.starts_with("_pq_.") => opening.unknown_options.push(name.to_owned()),
                name => opening.settings.push((name.to_owned(), value.to_owned())),
            }
        }
        if opening.user.is_empty() {
            return refuse(sqlstate::INVALID_AUTHORIZATION, "no PostgreSQL user name specified in startup packet");
        }
        if opening.database.is_empty() {
            opening.database.clone_from(&opening.user);
        }
        if let Some((_, encoding)) =
            opening.settings.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("client_encoding"))
        {
            *encoding = known_encoding(encoding)?;
        }
        for (name, value) in &mut opening.settings {
            known_dates(name, value)?;
        }
        if let Some((_, name)) = opening.settings.iter().rev().find(|(name, _)| name.eq_ignore_ascii_case(DIALECT)) {
            opening.dialect = known_dialect(name)?;
        }
        Ok(opening)
    }

    /// The number of bytes that the parameters take until the session ends.
    pub(crate) fn bytes(&self) -> usize {
        let settings = self.settings.iter().map(|(name, value)| SETTING_BYTES + name.len() + value.len());
        settings.sum::<usize>() + SETTING_BYTES + self.user.len() + self.database.len()
    }

    /// The settings that are reported when the session begins.
    pub(crate) fn reported(&self, program_version: &str) -> impl Iterator<Item = (&'static str, String)> {
        let set = |name: &str| {
            let found = self.settings.iter().rev().find(|(set, _)| set.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        let reported = REPORTED.into_iter().map(move |(name, default)| {
            let value = if is_fixed(name) { None } else { set(name) };
            (name, value.unwrap_or_else(|| default.to_owned()))
        });
        let version = match program_version {
            "" => "14.0 (Filbert)".to_owned(),
            version => format!("14.0 (Filbert {version})"),
        };
        reported.chain([("session_authorization", self.user.clone()), ("server_version", version)])
    }

    /// The settings with which the session begins. The database is the setting `database`.
    pub(crate) fn defaults(&self) -> impl Iterator<Item = (String, String)> {
        let database = ("database".to_owned(), self.database.clone());
        self.settings.iter().cloned().chain([database])
    }
}

/// The time zone of timestamps: they are written in it, and read in it if they have none. With the
/// dialects of CrateDB and Hazelcast it is UTC.
pub(crate) fn zone(session: &Session) -> Zone {
    let name = if session.dialect() == Dialect::Postgres { session.setting("timezone") } else { None };
    name.and_then(|name| Zone::of_setting(&name)).unwrap_or(Zone::UTC)
}

/// `statement_timeout` in milliseconds, such as from `5000`, `5s` or `2min`. `None` if it is not
/// set, or 0.
pub(crate) fn statement_timeout_ms(session: &Session) -> Option<u64> {
    let text = session.setting("statement_timeout")?;
    let text = text.trim();
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let unit_ms = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_ms).filter(|timeout| *timeout > 0)
}

/// Whether a setting cannot be changed by a session.
fn is_fixed(name: &str) -> bool {
    matches!(name, "in_hot_standby" | "integer_datetimes" | "is_superuser" | "server_encoding")
}

fn refuse<T>(sqlstate: &'static str, message: impl Into<String>) -> Outcome<T> {
    Err(Failure::Fatal(PgError::new(sqlstate, message)))
}

fn known_encoding(name: &str) -> Outcome<String> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    match plain.as_str() {
        "utf8" | "unicode" | "sqlascii" => Ok("UTF8".to_owned()),
        _ => refuse(sqlstate::INVALID_PARAMETER, format!("client_encoding {name:?} is not supported, expected UTF8")),
    }
}

/// Checks and normalizes the settings of date, time and interval formats.
fn known_dates(name: &str, value: &mut String) -> Outcome {
    let is_served = |served: &[&str]| {
        let mut words = value.split([',', ' ']).filter(|word| !word.is_empty());
        words.all(|word| served.iter().any(|served| word.eq_ignore_ascii_case(served)))
    };
    let known = match name.to_ascii_lowercase().as_str() {
        "timezone" => Zone::of_setting(value).map(|zone| zone.name().to_owned()),
        "datestyle" if is_served(&["iso", "mdy", "us", "noneuro", "noneuropean", "default"]) => {
            Some("ISO, MDY".to_owned())
        }
        "intervalstyle" if is_served(&["postgres"]) => Some("postgres".to_owned()),
        "datestyle" | "intervalstyle" => None,
        _ => return Ok(()),
    };
    match known {
        Some(known) => {
            *value = known;
            Ok(())
        }
        None => refuse(sqlstate::INVALID_PARAMETER, format!("invalid value for parameter {name:?}: {value:?}")),
    }
}

fn known_dialect(name: &str) -> Outcome<Dialect> {
    let Some(dialect) = Dialect::of_name(name) else {
        let message = format!("{DIALECT} {name:?} is not known, expected postgres, crate or hazelcast");
        return refuse(sqlstate::INVALID_PARAMETER, message);
    };
    Ok(dialect)
}

/// Parses `-c name=value --name=value`. A backslash escapes a space that is part of a value.
fn options(text: &str) -> Outcome<Vec<(String, String)>> {
    let mut words = vec![String::new()];
    let mut chars = text.chars().take(VALUE_BYTES_MAX);
    while let Some(char) = chars.next() {
        match (char, words.last_mut()) {
            ('\\', Some(word)) => word.extend(chars.next()),
            (' ', _) => words.push(String::new()),
            (char, Some(word)) => word.push(char),
            (_, None) => {}
        }
    }
    let mut settings = Vec::new();
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let assignment = match word.strip_prefix("--") {
            Some(assignment) => assignment.to_owned(),
            None if word == "-c" => words.next().unwrap_or_default(),
            None => word.strip_prefix("-c").unwrap_or_default().to_owned(),
        };
        match assignment.split_once('=') {
            Some((name, value)) => settings.push((name.replace('-', "_"), value.to_owned())),
            None => {
                return refuse(
                    sqlstate::SYNTAX_ERROR,
                    format!("invalid command-line argument for server process: {word}"),
                );
            }
        }
    }
    Ok(settings)
}

/// The settings that were last reported to the client, as hashes: a value may be as long as the
/// limit of the session.
#[derive(Debug)]
pub(crate) struct Reported(Vec<(&'static str, u64)>);

impl Reported {
    pub(crate) fn new(session: &Session) -> Reported {
        Reported(
            REPORTED
                .iter()
                .filter(|(name, _)| !is_fixed(name))
                .map(|(name, default)| (*name, hash_of(&current(session, name, default))))
                .collect(),
        )
    }

    /// Reports changed settings to the client.
    pub(crate) fn report(&mut self, session: &Session, out: &mut Out) {
        for (name, reported_hash) in &mut self.0 {
            let default = REPORTED.iter().find(|(reported, _)| reported == name).map_or("", |(_, default)| default);
            let value = current(session, name, default);
            let hash = hash_of(&value);
            if hash != *reported_hash {
                out.parameter_status(name, &value);
                *reported_hash = hash;
            }
        }
    }
}

fn hash_of(value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn current(session: &Session, name: &str, default: &str) -> String {
    session.setting(name).unwrap_or_else(|| default.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Startup;

    #[test]
    fn timeouts_have_units() {
        let session = Session::new(Dialect::Postgres, "ann");
        assert_eq!(statement_timeout_ms(&session), None);
        for (text, expected) in
            [("5000", Some(5000)), ("2 s", Some(2000)), ("3min", Some(180_000)), ("0", None), ("x", None)]
        {
            session.set("statement_timeout", Some(text.into())).unwrap();
            assert_eq!(statement_timeout_ms(&session), expected, "{text}");
        }
    }

    #[test]
    fn options_are_settings() {
        let found = options(r"-c geqo=off --search-path=a\ b  -cx=1").unwrap();
        let expected = [("geqo", "off"), ("search_path", "a b"), ("x", "1")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for text in ["-c", "-d 5", "x"] {
            assert!(options(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_dialect_is_chosen_when_connecting() {
        let dialect = |options: &str| {
            let message = format!("\0\u{3}\0\0user\0ann\0options\0{options}\0\0");
            let Ok(Startup::Session { parameters, .. }) = Startup::decode(message.as_bytes()) else { panic!() };
            Opening::read(parameters).map(|opening| opening.dialect).ok()
        };
        assert_eq!(dialect(""), Some(Dialect::Postgres));
        assert_eq!(dialect("-c filbert.dialect=Hazelcast"), Some(Dialect::Hazelcast));
        assert_eq!(dialect("-c filbert.dialect=crate"), Some(Dialect::Crate));
        assert_eq!(dialect("-c filbert.dialect=latin"), None);
    }
}
