//! The session context of a statement: its session, its dialect and its declared parameter types.

use std::borrow::Cow;
use std::sync::Arc;

use filbert_data::FieldType;
use filbert_grid::ReadView;
use filbert_grid::query::{ColumnMeta, Dialect, ParameterType, Session, SqlError, SqlErrorCode};

/// The types of a statement's parameters, starting with `$1`. `None` means that the type is not
/// known before planning.
pub(crate) type ParameterTypes = [Option<ParameterType>];

/// The session context of a statement, for as long as the statement lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientContext {
    session: Option<Arc<Session>>,
    /// The parameter types that the client declared.
    types: Arc<[Option<ParameterType>]>,
    /// The columns of the result that were described to the client.
    described: Option<Arc<[ColumnMeta]>>,
    /// The places from which the statement reads the partitions.
    view: ReadView,
}

impl ClientContext {
    pub(crate) fn new(session: Option<&Arc<Session>>) -> ClientContext {
        ClientContext { session: session.cloned(), ..ClientContext::default() }
    }

    /// Returns this context with the places from which the statement reads the partitions.
    pub(crate) fn reading(self, view: ReadView) -> ClientContext {
        ClientContext { view, ..self }
    }

    /// The places from which the statement reads the partitions.
    pub(crate) fn view(&self) -> &ReadView {
        &self.view
    }

    /// Returns this context with the parameter types that the client declared.
    pub(crate) fn declaring(self, types: &ParameterTypes) -> ClientContext {
        if types.iter().all(Option::is_none) { self } else { ClientContext { types: types.into(), ..self } }
    }

    /// Returns this context with the columns that were described to the client.
    pub(crate) fn described(self, described: Option<&Arc<[ColumnMeta]>>) -> ClientContext {
        ClientContext { described: described.cloned(), ..self }
    }

    /// Checks that a statement that changes rows would return the columns that were described to
    /// the client.
    ///
    /// # Errors
    /// SQLSTATE 0A000: the table has changed since.
    pub(crate) fn check_described(&self, columns: &[ColumnMeta]) -> Result<(), SqlError> {
        check_described(self.described.as_ref(), columns)
    }

    /// The parameter types that the client declared.
    pub(crate) fn types(&self) -> &ParameterTypes {
        &self.types
    }

    /// The SQL dialect of the session.
    pub(crate) fn dialect(&self) -> Dialect {
        dialect_of(self.session.as_ref())
    }

    /// The session, if the door has one.
    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        self.session.as_ref()
    }
}

/// Checks that a statement returns the columns that were described to its client, if any were. A
/// client reads rows as they were described.
///
/// # Errors
/// SQLSTATE 0A000.
pub(crate) fn check_described(described: Option<&Arc<[ColumnMeta]>>, columns: &[ColumnMeta]) -> Result<(), SqlError> {
    let same = |described: &[ColumnMeta]| {
        described.len() == columns.len()
            && described.iter().zip(columns).all(|(described, column)| {
                described.name == column.name
                    && described.field_type == column.field_type
                    && described.pg_type == column.pg_type
            })
    };
    match described {
        Some(described) if !same(described) => {
            let text = "cached plan must not change result type: the columns of the table have changed since the \
                        statement was prepared; prepare it again";
            Err(SqlError::new(SqlErrorCode::Generic, text.to_owned()).with_sqlstate("0A000"))
        }
        _ => Ok(()),
    }
}

/// The SQL dialect of a session.
pub(crate) fn dialect_of(session: Option<&Arc<Session>>) -> Dialect {
    session.map_or_else(Dialect::default, |session| session.dialect())
}

/// The key of a plan within the plan cache of its dialect. It consists of the text, the settings
/// that plans depend on, and the parameter types that the client declared. The settings are the
/// search path for names without a schema and the time zone for timestamps in text.
pub(crate) fn plan_key<'t>(session: Option<&Arc<Session>>, text: &'t str, types: &ParameterTypes) -> Cow<'t, str> {
    let settings = session.and_then(|session| session.planned_by());
    if settings.is_none() && types.iter().all(Option::is_none) {
        return Cow::Borrowed(text);
    }
    let mut key = String::with_capacity(text.len() + 32);
    if let Some(settings) = settings {
        key.push_str(&settings);
        key.push('\0');
    }
    for declared in types {
        if let Some(declared) = declared {
            key.push_str(short_name(&declared.field_type));
            if let Some(oid) = declared.pg_type {
                key.push_str(&oid.to_string());
            }
        }
        key.push('\u{1}');
    }
    key.push_str(text);
    Cow::Owned(key)
}

/// A short name that distinguishes declared types. An array has the name of its element in
/// capitals.
fn short_name(declared: &FieldType) -> &'static str {
    let (item, is_array) = match declared {
        FieldType::Array(item) => (item.as_ref(), true),
        other => (other, false),
    };
    let (name, of_array) = match item {
        FieldType::Boolean => ("b", "B"),
        FieldType::TinyInt => ("i1", "I1"),
        FieldType::SmallInt => ("i2", "I2"),
        FieldType::Integer => ("i4", "I4"),
        FieldType::BigInt => ("i8", "I8"),
        FieldType::Real => ("f4", "F4"),
        FieldType::Double => ("f8", "F8"),
        FieldType::Decimal(_) => ("n", "N"),
        FieldType::Varchar | FieldType::Char => ("t", "T"),
        FieldType::Date => ("d", "D"),
        FieldType::Time => ("h", "H"),
        FieldType::Timestamp => ("m", "M"),
        FieldType::TimestampTz => ("z", "Z"),
        FieldType::Interval => ("v", "V"),
        FieldType::Uuid => ("u", "U"),
        FieldType::Json => ("j", "J"),
        FieldType::Binary => ("y", "Y"),
        FieldType::Object | FieldType::Array(_) => ("o", "O"),
    };
    if is_array { of_array } else { name }
}
