//! Session settings: names, defaults and kinds, as in PostgreSQL.

use filbert_dialect::catalog_of;
use filbert_grid::query::{Dialect, Session, SqlError, SqlErrorCode};

/// The version of PostgreSQL with the same system relations and protocol.
pub(crate) const SERVER_VERSION: &str = concat!("14.0 (Filbert ", env!("CARGO_PKG_VERSION"), ")");
/// The version of CrateDB with the same system relations.
pub(crate) const CRATE_VERSION: &str = "5.10.0";

/// The result of `version()`.
pub(crate) fn version(dialect: Dialect) -> String {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let own = env!("CARGO_PKG_VERSION");
    match dialect {
        Dialect::Crate => format!("CrateDB {CRATE_VERSION} (Filbert {own}, {system} {machine})"),
        _ => format!("PostgreSQL 14.0 (Filbert {own}) on {machine}-{system}, compiled by rustc, 64-bit"),
    }
}

/// The kind of a setting's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Bool,
    Int(i64, i64),
    /// Milliseconds.
    Time,
    OneOf(&'static [&'static str]),
    /// A read-only setting.
    Fixed,
}

/// A setting.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    default: &'static str,
    kind: Kind,
    pub(crate) category: &'static str,
    pub(crate) description: &'static str,
}

const fn setting(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    category: &'static str,
    description: &'static str,
) -> Setting {
    Setting { name, default, kind, category, description }
}

const CONNECTION: &str = "Client Connection Defaults";
const PRESET: &str = "Preset Options";
const QUERY: &str = "Query Tuning";
const ISOLATION: Kind = Kind::OneOf(&["read uncommitted", "read committed", "repeatable read", "serializable"]);
const LEVELS: Kind = Kind::OneOf(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice", "warning", "error",
]);

/// All settings, by name.
pub(crate) const SETTINGS: &[Setting] = &[
    setting("application_name", "", Kind::Text, CONNECTION, "The name of the program that asks."),
    setting("block_size", "8192", Kind::Fixed, PRESET, "Told for clients that ask."),
    setting("bytea_output", "hex", Kind::OneOf(&["hex"]), CONNECTION, "How bytes are written."),
    setting("client_encoding", "UTF8", Kind::Text, CONNECTION, "The client's character set; only UTF8."),
    setting("client_min_messages", "notice", LEVELS, CONNECTION, "Which messages clients are sent."),
    setting("datestyle", "ISO, MDY", Kind::Text, CONNECTION, "How dates are written; always ISO."),
    setting("default_table_access_method", "heap", Kind::Text, CONNECTION, "Accepted."),
    setting("default_tablespace", "", Kind::Text, CONNECTION, "Accepted."),
    setting("default_transaction_deferrable", "off", Kind::Bool, CONNECTION, "Accepted."),
    setting("default_transaction_isolation", "read committed", ISOLATION, CONNECTION, "Accepted."),
    setting("default_transaction_read_only", "off", Kind::Bool, CONNECTION, "Whether transactions change nothing."),
    setting("enable_hashjoin", "on", Kind::Bool, QUERY, "Accepted."),
    setting("enable_seqscan", "on", Kind::Bool, QUERY, "Accepted."),
    setting("error_on_unknown_object_key", "on", Kind::Bool, CONNECTION, "Accepted."),
    setting("escape_string_warning", "on", Kind::Bool, CONNECTION, "Accepted."),
    setting("extra_float_digits", "1", Kind::Int(1, 3), CONNECTION, "Floats are written to be read back."),
    setting("filbert.dialect", "postgres", Kind::Fixed, CONNECTION, "Whose SQL is spoken; chosen when connecting."),
    setting("geqo", "on", Kind::Bool, QUERY, "Accepted."),
    setting("idle_in_transaction_session_timeout", "0", Kind::Time, CONNECTION, "Accepted."),
    setting("in_hot_standby", "off", Kind::Fixed, PRESET, "Whether this is a standby."),
    setting("integer_datetimes", "on", Kind::Fixed, PRESET, "Moments are whole numbers of microseconds."),
    setting("intervalstyle", "postgres", Kind::OneOf(&["postgres"]), CONNECTION, "How intervals are written."),
    setting("is_superuser", "on", Kind::Fixed, PRESET, "Whether the user may do everything."),
    setting("jit", "off", Kind::Bool, QUERY, "Accepted."),
    setting("lc_collate", "C", Kind::Fixed, PRESET, "Texts are ordered by their code points."),
    setting("lc_ctype", "C", Kind::Fixed, PRESET, "Accepted."),
    setting("lc_messages", "C", Kind::Text, CONNECTION, "The language of messages."),
    setting("lc_monetary", "C", Kind::Text, CONNECTION, "Accepted."),
    setting("lc_numeric", "C", Kind::Text, CONNECTION, "Accepted."),
    setting("lc_time", "C", Kind::Text, CONNECTION, "Accepted."),
    setting(
        "lock_timeout",
        "0",
        Kind::Time,
        CONNECTION,
        "How long to wait for an advisory lock; 0 = as long as it takes.",
    ),
    setting("max_connections", "5000", Kind::Fixed, PRESET, "Connections at most."),
    setting("max_function_args", "100", Kind::Fixed, PRESET, "Told for clients that ask."),
    setting("max_identifier_length", "63", Kind::Fixed, PRESET, "Told for clients that ask; longer names are taken."),
    setting("max_index_keys", "32", Kind::Fixed, PRESET, "Told for clients that ask."),
    setting("optimizer", "on", Kind::Bool, QUERY, "Accepted."),
    setting("plan_cache_mode", "auto", Kind::Text, QUERY, "Accepted."),
    setting("row_security", "on", Kind::Bool, CONNECTION, "Accepted."),
    setting("search_path", "\"$user\", public", Kind::Text, CONNECTION, "Where names without a schema are looked for."),
    setting("server_encoding", "UTF8", Kind::Fixed, PRESET, "The server's character set."),
    setting("server_version", SERVER_VERSION, Kind::Fixed, PRESET, "The version of PostgreSQL that clients find."),
    setting("server_version_num", "140000", Kind::Fixed, PRESET, "The same as a number."),
    setting("session_authorization", "", Kind::Fixed, CONNECTION, "Who asks."),
    setting("standard_conforming_strings", "on", Kind::Bool, CONNECTION, "Backslashes in texts are plain."),
    setting("statement_timeout", "0", Kind::Time, CONNECTION, "How long a statement may run; 0 = as long as it takes."),
    setting("synchronize_seqscans", "on", Kind::Bool, CONNECTION, "Accepted."),
    setting("synchronous_commit", "on", Kind::Text, CONNECTION, "Accepted."),
    setting("timezone", "UTC", Kind::Text, CONNECTION, "The time zone of timestamps with one."),
    setting("transaction_isolation", "read committed", ISOLATION, CONNECTION, "Accepted."),
    setting("transaction_read_only", "off", Kind::Bool, CONNECTION, "Whether this transaction changes nothing."),
    setting("transaction_timeout", "0", Kind::Time, CONNECTION, "Accepted."),
    setting("wal_level", "logical", Kind::Fixed, PRESET, "Told for clients that ask."),
    setting("work_mem", "4MB", Kind::Text, QUERY, "Accepted."),
    setting("xmloption", "content", Kind::Text, CONNECTION, "Accepted."),
];

impl Setting {
    /// Its default.
    pub(crate) fn default_value(&self, session: Option<&Session>, dialect: Dialect) -> String {
        match self.name {
            "filbert.dialect" => dialect.name().to_owned(),
            "search_path" if dialect == Dialect::Crate => "doc".to_owned(),
            "session_authorization" => session.map_or("filbert", Session::user).to_owned(),
            _ => self.default.to_owned(),
        }
    }

    /// Whether it is read-only.
    pub(crate) fn is_fixed(&self) -> bool {
        self.kind == Kind::Fixed
    }

    /// The unit of its values.
    pub(crate) fn unit(&self) -> Option<&'static str> {
        (self.kind == Kind::Time).then_some("ms")
    }

    /// The name of the kind of its values.
    pub(crate) fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Text | Kind::Fixed => "string",
            Kind::Bool => "bool",
            Kind::Int(..) | Kind::Time => "integer",
            Kind::OneOf(_) => "enum",
        }
    }
}

/// A setting's name as PostgreSQL writes it: most are in lower case.
pub(crate) fn shown_name(name: &str) -> &str {
    match name {
        "datestyle" => "DateStyle",
        "intervalstyle" => "IntervalStyle",
        "timezone" => "TimeZone",
        other => other,
    }
}

/// Whether a setting belongs to the open transaction.
pub(super) fn is_of_transaction(name: &str) -> bool {
    matches!(name, "transaction_read_only" | "transaction_isolation")
}

/// The default of a transaction's setting.
pub(super) fn default_of_transaction(session: &Session, dialect: Dialect, name: &str) -> String {
    value_of(Some(session), dialect, &format!("default_{name}")).unwrap_or_default()
}

fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(name))
}

/// A setting's value in a session; `None` = the setting does not exist.
pub(crate) fn value_of(session: Option<&Session>, dialect: Dialect, name: &str) -> Option<String> {
    if let Some(session) = session.filter(|_| is_of_transaction(name)) {
        return match name {
            "transaction_read_only" => Some(if session.is_read_only() { "on" } else { "off" }.to_owned()),
            _ => session.setting(name).or_else(|| Some(default_of_transaction(session, dialect, name))),
        };
    }
    let set = session.and_then(|session| session.setting(name));
    match find(name) {
        Some(setting) if setting.is_fixed() => Some(setting.default_value(session, dialect)),
        Some(setting) => set.or_else(|| Some(setting.default_value(session, dialect))),
        None => set,
    }
}

/// Checks a new value of a setting, and returns it in its display form.
///
/// # Errors
/// The setting does not exist, is read-only, or does not accept the value.
pub(crate) fn check(name: &str, value: &str, dialect: Dialect) -> Result<String, SqlError> {
    let Some(setting) = find(name) else {
        // Names with a dot are user-defined. CrateDB's dialect accepts all names, because its
        // further settings have no effect here.
        if name.contains('.') || dialect == Dialect::Crate {
            return Ok(value.to_owned());
        }
        return Err(unknown(name));
    };
    let refused = |expected: String| {
        let text = format!("invalid value for parameter {:?}: {value:?}, expected {expected}", setting.name);
        SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("22023")
    };
    match setting.kind {
        Kind::Fixed => {
            let text = format!("parameter {:?} cannot be changed", setting.name);
            Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("55P02"))
        }
        Kind::Bool if setting.name == "standard_conforming_strings" && truth(value) == Some(false) => {
            let text = "backslashes in texts are plain: standard_conforming_strings is always on";
            Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("0A000"))
        }
        Kind::Bool => truth(value)
            .map(|truth| if truth { "on" } else { "off" }.to_owned())
            .ok_or_else(|| refused("on or off".into())),
        Kind::Int(least, most) => match value.trim().parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number.to_string()),
            _ => Err(refused(format!("a number from {least} to {most}"))),
        },
        Kind::Time => match milliseconds(value) {
            Some(0) => Ok("0".to_owned()),
            Some(_) => Ok(value.trim().to_owned()),
            None => Err(refused("a time such as 500ms, 10s or 5min".into())),
        },
        Kind::OneOf(values) => {
            let known = values.iter().find(|known| known.eq_ignore_ascii_case(value.trim()));
            known.map(|known| (*known).to_owned()).ok_or_else(|| refused(format!("one of {}", values.join(", "))))
        }
        Kind::Text if setting.name == "client_encoding" => {
            let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
            match plain.to_ascii_lowercase().as_str() {
                "utf8" | "unicode" | "sqlascii" => Ok("UTF8".to_owned()),
                _ => Err(refused("UTF8".into())),
            }
        }
        Kind::Text if setting.name == "timezone" && dialect == Dialect::Postgres => {
            let zone = filbert_data::dates::Zone::of_setting(value);
            zone.map(|zone| zone.name().to_owned()).ok_or_else(|| refused("the name of a time zone".into()))
        }
        Kind::Text if setting.name == "datestyle" => date_style(value).ok_or_else(|| {
            let text = format!("DateStyle {value:?} is not served, only \"ISO, MDY\"");
            SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("0A000")
        }),
        Kind::Text => Ok(value.to_owned()),
    }
}

/// The format of dates, and the order of their parts: only one is supported.
fn date_style(value: &str) -> Option<String> {
    let served = ["iso", "mdy", "us", "noneuro", "noneuropean", "default"];
    let mut words = value.split([',', ' ']).filter(|word| !word.is_empty());
    words.all(|word| served.contains(&word.to_ascii_lowercase().as_str())).then(|| "ISO, MDY".to_owned())
}

/// The error for an unknown setting.
pub(crate) fn unknown(name: &str) -> SqlError {
    let text = format!("unrecognized configuration parameter {name:?}");
    SqlError::new(SqlErrorCode::ObjectNotFound, text).with_sqlstate("42704")
}

fn truth(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// A duration in PostgreSQL's notation, in milliseconds.
fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    let unit: u64 = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" | "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The statement timeout of a session; `None` = not set.
pub(crate) fn statement_timeout_ms(session: &Session) -> Option<u64> {
    milliseconds(&session.setting("statement_timeout")?).filter(|timeout| *timeout > 0)
}

/// The time for which a session waits for a lock; `None` = not set.
pub(crate) fn lock_timeout_ms(session: &Session) -> Option<u64> {
    milliseconds(&session.setting("lock_timeout")?).filter(|timeout| *timeout > 0)
}

/// The database name that a session sees. For PostgreSQL's clients it is the one that they
/// connected to.
pub(crate) fn database(session: Option<&Session>, dialect: Dialect) -> String {
    let asked_for = session.filter(|_| dialect == Dialect::Postgres).and_then(|session| session.setting("database"));
    asked_for.unwrap_or_else(|| catalog_of(dialect).to_owned())
}

/// The search path of a session; with `implicit` also the schemas that are always searched.
pub(crate) fn search_path(session: Option<&Session>, dialect: Dialect, implicit: bool) -> Vec<String> {
    let path = value_of(session, dialect, "search_path").unwrap_or_default();
    let names =
        path.split(',').map(|name| name.trim().trim_matches('"')).filter(|name| !name.is_empty() && *name != "$user");
    let mut schemas: Vec<String> = names.map(str::to_owned).collect();
    if implicit && !schemas.iter().any(|schema| schema == "pg_catalog") {
        schemas.insert(0, "pg_catalog".to_owned());
    }
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        let of = |name, value| check(name, value, Dialect::Postgres).map_err(|error| error.sqlstate());
        for (name, value, expected) in [
            ("DateStyle", "ISO", Ok("ISO, MDY")),
            ("DateStyle", "iso, dmy", Err("0A000")),
            ("DateStyle", "German", Err("0A000")),
            ("extra_float_digits", "3", Ok("3")),
            ("extra_float_digits", "30", Err("22023")),
            ("statement_timeout", "5s", Ok("5s")),
            ("statement_timeout", "x", Err("22023")),
            ("jit", "1", Ok("on")),
            ("client_encoding", "utf-8", Ok("UTF8")),
            ("client_encoding", "latin1", Err("22023")),
            ("server_version", "9", Err("55P02")),
            ("nonsense", "9", Err("42704")),
            ("my.own", "9", Ok("9")),
        ] {
            assert_eq!(of(name, value), expected.map(str::to_owned), "{name} = {value}");
        }
        assert!(SETTINGS.is_sorted_by_key(|setting| setting.name));
        assert_eq!(milliseconds("2min"), Some(120_000));
    }

    #[test]
    fn a_session_shows_what_it_set_or_the_default() {
        let session = Session::new(Dialect::Postgres, "ann");
        assert_eq!(value_of(Some(&session), Dialect::Postgres, "TimeZone"), Some("UTC".into()));
        session.set("timezone", Some("Europe/Vienna".into())).unwrap();
        assert_eq!(value_of(Some(&session), Dialect::Postgres, "TimeZone"), Some("Europe/Vienna".into()));
        assert_eq!(value_of(Some(&session), Dialect::Postgres, "session_authorization"), Some("ann".into()));
        assert_eq!(search_path(Some(&session), Dialect::Postgres, true), ["pg_catalog", "public"]);
        assert_eq!(statement_timeout_ms(&session), None);
    }
}
