//! What a request that fails is answered: CrateDB's exceptions, codes and HTTP statuses, from one table.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use filbert_grid::ErrorKind;
use filbert_grid::query::{SqlError, SqlErrorCode};
use serde_json::json;

/// Tells browsers that they may ask for a name and a password.
const REALM: HeaderValue = HeaderValue::from_static("Basic realm=\"Filbert\"");

/// An error as CrateDB tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The name of CrateDB's exception, which stands before the message.
    pub(crate) exception: &'static str,
    /// CrateDB's code.
    pub(crate) code: u32,
    /// HTTP status.
    pub(crate) status: u16,
}

const fn facts(exception: &'static str, code: u32, status: u16) -> Facts {
    Facts { exception, code, status }
}

const PARSE: Facts = facts("SQLParseException", 4000, 400);
const VALIDATION: Facts = facts("ColumnValidationException", 4003, 400);
const UNSUPPORTED: Facts = facts("UnsupportedFeatureException", 4004, 400);
const UNAUTHORIZED: Facts = facts("UnauthorizedException", 4010, 401);
const FORBIDDEN: Facts = facts("MissingPrivilegeException", 4030, 403);
const NOT_FOUND: Facts = facts("ResourceUnknownException", 4040, 404);
const RELATION_UNKNOWN: Facts = facts("RelationUnknown", 4041, 404);
const OBJECT_EXISTS: Facts = facts("DuplicateObjectException", 40910, 409);
const KILLED: Facts = facts("JobKilledException", 5005, 500);
const UNAVAILABLE: Facts = facts("NodeNotAvailableException", 5030, 503);
const TOO_MANY: Facts = facts("TooManyRequestsException", 4290, 429);
const TOO_LARGE: Facts = facts("ContentTooLargeException", 4000, 413);
const UNHANDLED: Facts = facts("UnhandledServerException", 5000, 500);

/// The table: what CrateDB calls a SQLSTATE.
#[rustfmt::skip]
fn of_sqlstate(sqlstate: &str) -> Option<Facts> {
    Some(match sqlstate {
        "0A000" => UNSUPPORTED,
        "23502" | "23514" => VALIDATION,
        "23505" => facts("DuplicateKeyException", 4091, 409),
        "25006" => facts("ReadOnlyException", 4031, 403),
        "26000" | "34000" | "42704" => NOT_FOUND,
        "28000" | "28P01" => UNAUTHORIZED,
        "2BP01" => facts("DependentObjectsExists", 40013, 400),
        "3F000" => facts("SchemaUnknownException", 4045, 404),
        "40001" => facts("VersionConflictException", 4092, 409),
        "42501" => facts("MissingPrivilegeException", 4011, 401),
        "42602" => facts("InvalidRelationName", 4002, 400),
        "42611" | "42701" => facts("InvalidColumnNameException", 4008, 400),
        "42702" | "42725" => facts("AmbiguousColumnException", 4006, 400),
        "42703" => facts("ColumnUnknownException", 4043, 404),
        "42710" | "42723" | "42P06" => OBJECT_EXISTS,
        "42809" => facts("OperationOnInaccessibleRelationException", 4007, 400),
        "42883" => facts("UnsupportedFunctionException", 4004, 400),
        "42P01" => RELATION_UNKNOWN,
        "42P07" => facts("RelationAlreadyExists", 4093, 409),
        "53000" | "53300" | "53400" => TOO_MANY,
        "53200" => facts("CircuitBreakingException", 5000, 500),
        "54000" => TOO_LARGE,
        "57014" => KILLED,
        "57P01" | "57P03" | "08006" => UNAVAILABLE,
        _ => return None,
    })
}

/// What CrateDB calls an error: by its SQLSTATE where that is known exactly, else by its code, else by its kind.
pub(crate) fn facts_of(error: &SqlError) -> Facts {
    if let Some(facts) = error.sqlstate.and_then(of_sqlstate) {
        return facts;
    }
    let by_class = |sqlstate: &str| match sqlstate.get(..2) {
        Some("22" | "42" | "0B" | "21") => PARSE,
        Some("23") => VALIDATION,
        Some("40" | "25" | "55") => facts("VersionConflictException", 4092, 409),
        Some("53") => TOO_MANY,
        _ => UNHANDLED,
    };
    match error.code {
        SqlErrorCode::Parsing | SqlErrorCode::DataException | SqlErrorCode::IndexInvalid => {
            error.sqlstate.map_or(PARSE, by_class)
        }
        SqlErrorCode::ObjectNotFound => error.sqlstate.map_or(RELATION_UNKNOWN, |_| NOT_FOUND),
        SqlErrorCode::Cancelled | SqlErrorCode::Timeout => KILLED,
        SqlErrorCode::ConnectionProblem => UNAVAILABLE,
        SqlErrorCode::Generic => {
            let sqlstate = error.sqlstate();
            of_sqlstate(sqlstate).unwrap_or_else(|| by_class(sqlstate))
        }
    }
}

/// A request that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    facts: Facts,
    message: String,
    /// What more can be told to somebody who asks for `error_trace`.
    trace: String,
    /// Whether the connection cannot be used any more, since what follows on it is not a request.
    closes: bool,
}

impl Failure {
    fn new(facts: Facts, message: impl Into<String>) -> Failure {
        Failure { facts, message: message.into(), trace: String::new(), closes: false }
    }

    /// The request cannot be understood.
    pub(crate) fn parse(message: impl Into<String>) -> Failure {
        Failure::new(PARSE, message)
    }

    /// The request is understood and not served.
    pub(crate) fn unsupported(message: impl Into<String>) -> Failure {
        Failure::new(UNSUPPORTED, message)
    }

    /// Nothing is served under the path.
    pub(crate) fn no_such_path(path: &str) -> Failure {
        Failure::new(NOT_FOUND, format!("nothing is served at {path:?}"))
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(NOT_FOUND, message)
    }

    /// Whoever asks may not.
    pub(crate) fn forbidden(message: impl Into<String>) -> Failure {
        Failure::new(FORBIDDEN, message)
    }

    /// The path is served, and not by this method.
    pub(crate) fn wrong_method(method: &str, expected: &str) -> Failure {
        Failure::new(Facts { status: 405, ..PARSE }, format!("{method} is not served here, expected {expected}"))
    }

    /// The member is stopping, or what was to answer is gone.
    pub(crate) fn unavailable(message: impl Into<String>) -> Failure {
        Failure::new(UNAVAILABLE, message)
    }

    /// A defect.
    pub(crate) fn unhandled(message: impl Into<String>) -> Failure {
        Failure::new(UNHANDLED, message)
    }

    /// A page of another server sends it.
    pub(crate) fn strange_origin(origin: &str) -> Failure {
        let message = format!("pages of {origin:?} may not send requests here, see the setting origins");
        Failure { closes: true, ..Failure::new(FORBIDDEN, message) }
    }

    /// It is sent to a name that may be a stranger's.
    pub(crate) fn strange_host(host: &str) -> Failure {
        let message = format!(
            "requests to the name {host:?} are refused, since a page of a strange server may send them: use this server's address, or add \
             the name to the setting hosts (filbert.http.hosts)"
        );
        Failure { closes: true, ..Failure::new(FORBIDDEN, message) }
    }

    /// Passwords were wrong too often.
    pub(crate) fn too_many_guesses(error: filbert_listen::TooManyGuesses) -> Failure {
        Failure { closes: true, ..Failure::new(TOO_MANY, error.to_string()) }
    }

    /// Name and password are not those of a user.
    pub(crate) fn unauthorized(name: &str) -> Failure {
        let message = if name.is_empty() {
            "this server has users: send \"Authorization: Basic\" with a name and a password".to_owned()
        } else {
            format!("password authentication failed for user {name:?}")
        };
        Failure { closes: true, ..Failure::new(UNAUTHORIZED, message) }
    }

    /// The header `Authorization` cannot be read.
    pub(crate) fn bad_credentials() -> Failure {
        let message = "the header Authorization cannot be read, expected \"Basic\" and name:password in Base64";
        Failure { closes: true, ..Failure::new(UNAUTHORIZED, message) }
    }

    /// A body is longer than any may be.
    pub(crate) fn body_too_large(limit: usize) -> Failure {
        let message = format!("the body has more than {limit} bytes, the most that body_bytes_max allows");
        Failure { closes: true, ..Failure::new(TOO_LARGE, message) }
    }

    /// A statement has more values than it may have.
    pub(crate) fn too_many_values(limit: usize) -> Failure {
        Failure::new(
            PARSE,
            format!("a statement of the body has more than {limit} values, the most that parameters_max allows"),
        )
    }

    /// The body did not arrive.
    pub(crate) fn body_missing(message: impl Into<String>) -> Failure {
        Failure { closes: true, ..Failure::new(Facts { status: 408, ..PARSE }, message) }
    }

    /// The body is in a form that is not read.
    pub(crate) fn wrong_encoding(encoding: &str) -> Failure {
        let message = format!("a body with Content-Encoding {encoding:?} cannot be read, expected none or \"gzip\"");
        Failure { closes: true, ..Failure::new(Facts { status: 415, ..PARSE }, message) }
    }

    /// The same, with the connection closed after it.
    #[must_use]
    pub(crate) fn closing(self) -> Failure {
        Failure { closes: true, ..self }
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> u16 {
        self.facts.status
    }

    /// CrateDB's code.
    pub(crate) fn code(&self) -> u32 {
        self.facts.code
    }

    /// The message with CrateDB's exception around it.
    pub(crate) fn message(&self) -> String {
        format!("{}[{}]", self.facts.exception, self.message)
    }

    /// The answer; `with_trace` as the client asked.
    pub(crate) fn response(&self, with_trace: bool) -> Response {
        let mut body = json!({"error": {"message": self.message(), "code": self.facts.code}});
        if with_trace && let Some(body) = body.as_object_mut() {
            let trace =
                if self.trace.is_empty() { self.message() } else { format!("{}\n{}", self.message(), self.trace) };
            body.insert("error_trace".to_owned(), trace.into());
        }
        let status = StatusCode::from_u16(self.facts.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, REALM);
        }
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.response(false)
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        let mut trace = format!("SQLSTATE {}", error.sqlstate());
        if let Some(position) = error.position {
            trace.push_str(&format!("\nat character {position} of the statement"));
        }
        if let Some(suggestion) = &error.suggestion {
            trace.push_str(&format!("\nthis may help: {suggestion}"));
        }
        Failure { trace, ..Failure::new(facts_of(&error), error.message) }
    }
}

/// There is no room for a body, or for what is made of it.
impl From<filbert_grid::Exhausted> for Failure {
    fn from(exhausted: filbert_grid::Exhausted) -> Failure {
        Failure { closes: true, ..Failure::new(TOO_MANY, exhausted.to_string()) }
    }
}

impl From<filbert_grid::GridError> for Failure {
    fn from(error: filbert_grid::GridError) -> Failure {
        SqlError::from(error).into()
    }
}

/// An error for a value that cannot be taken, whatever the statement.
pub(crate) fn data_error(message: impl Into<String>) -> SqlError {
    SqlError { kind: ErrorKind::IllegalArgument, ..SqlError::new(SqlErrorCode::DataException, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(error: SqlError) -> (u32, u16) {
        let facts = facts_of(&error);
        (facts.code, facts.status)
    }

    #[test]
    fn errors_have_the_codes_that_crate_db_gives_them() {
        let error = |code| SqlError::new(code, "x");
        assert_eq!(code(error(SqlErrorCode::Parsing)), (4000, 400));
        assert_eq!(code(error(SqlErrorCode::Parsing).with_sqlstate("42601")), (4000, 400));
        assert_eq!(code(error(SqlErrorCode::Parsing).with_sqlstate("42703")), (4043, 404));
        assert_eq!(code(error(SqlErrorCode::ObjectNotFound)), (4041, 404));
        assert_eq!(code(error(SqlErrorCode::ObjectNotFound).with_sqlstate("3F000")), (4045, 404));
        assert_eq!(code(error(SqlErrorCode::Generic).with_sqlstate("23505")), (4091, 409));
        assert_eq!(code(error(SqlErrorCode::Generic).with_sqlstate("42P07")), (4093, 409));
        assert_eq!(code(error(SqlErrorCode::DataException).with_sqlstate("22012")), (4000, 400));
        assert_eq!(code(error(SqlErrorCode::Cancelled)), (5005, 500));
        assert_eq!(code(error(SqlErrorCode::Generic)), (4000, 400));
        assert_eq!(code(filbert_grid::GridError::NotActive.into()), (5030, 503));
        let full = filbert_grid::GridError::OutOfMemory { needed: 1, used: 2, max: 2 };
        assert_eq!(code(full.into()), (5000, 500));
        assert_eq!(code(filbert_grid::GridError::Internal("x".into()).into()), (5000, 500));
    }

    #[test]
    fn a_message_names_the_exception() {
        let failure = Failure::from(SqlError::new(SqlErrorCode::Parsing, "no such word").at(3));
        assert_eq!(failure.message(), "SQLParseException[no such word]");
        assert_eq!(failure.code(), 4000);
        assert_eq!(failure.response(true).status(), 400);
    }
}
