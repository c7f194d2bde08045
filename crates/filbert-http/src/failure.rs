//! The responses of failed requests: CrateDB's exceptions, codes and HTTP statuses, from one table.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use filbert_grid::ErrorKind;
use filbert_grid::query::{SqlError, SqlErrorCode};
use serde_json::json;

/// Makes browsers ask for a name and a password.
const REALM: HeaderValue = HeaderValue::from_static("Basic realm=\"Filbert\"");

/// The description of an error in CrateDB's error dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorDescription {
    /// The name of CrateDB's exception. It precedes the message.
    pub(crate) exception: &'static str,
    /// CrateDB's error code.
    pub(crate) code: u32,
    /// The HTTP status.
    pub(crate) status: u16,
}

const fn description(exception: &'static str, code: u32, status: u16) -> ErrorDescription {
    ErrorDescription { exception, code, status }
}

const PARSE: ErrorDescription = description("SQLParseException", 4000, 400);
const VALIDATION: ErrorDescription = description("ColumnValidationException", 4003, 400);
const UNSUPPORTED: ErrorDescription = description("UnsupportedFeatureException", 4004, 400);
const UNAUTHORIZED: ErrorDescription = description("UnauthorizedException", 4010, 401);
const FORBIDDEN: ErrorDescription = description("MissingPrivilegeException", 4030, 403);
const NOT_FOUND: ErrorDescription = description("ResourceUnknownException", 4040, 404);
const RELATION_UNKNOWN: ErrorDescription = description("RelationUnknown", 4041, 404);
const OBJECT_EXISTS: ErrorDescription = description("DuplicateObjectException", 40910, 409);
const KILLED: ErrorDescription = description("JobKilledException", 5005, 500);
const UNAVAILABLE: ErrorDescription = description("NodeNotAvailableException", 5030, 503);
const TOO_MANY: ErrorDescription = description("TooManyRequestsException", 4290, 429);
const TOO_LARGE: ErrorDescription = description("ContentTooLargeException", 4000, 413);
const UNHANDLED: ErrorDescription = description("UnhandledServerException", 5000, 500);

/// The table: CrateDB's description of a SQLSTATE.
#[rustfmt::skip]
fn of_sqlstate(sqlstate: &str) -> Option<ErrorDescription> {
    Some(match sqlstate {
        "0A000" => UNSUPPORTED,
        "23502" | "23514" => VALIDATION,
        "23505" => description("DuplicateKeyException", 4091, 409),
        "25006" => description("ReadOnlyException", 4031, 403),
        "26000" | "34000" | "42704" => NOT_FOUND,
        "28000" | "28P01" => UNAUTHORIZED,
        "2BP01" => description("DependentObjectsExists", 40013, 400),
        "3F000" => description("SchemaUnknownException", 4045, 404),
        "40001" => description("VersionConflictException", 4092, 409),
        "42501" => description("MissingPrivilegeException", 4011, 401),
        "42602" => description("InvalidRelationName", 4002, 400),
        "42611" | "42701" => description("InvalidColumnNameException", 4008, 400),
        "42702" | "42725" => description("AmbiguousColumnException", 4006, 400),
        "42703" => description("ColumnUnknownException", 4043, 404),
        "42710" | "42723" | "42P06" => OBJECT_EXISTS,
        "42809" => description("OperationOnInaccessibleRelationException", 4007, 400),
        "42883" => description("UnsupportedFunctionException", 4004, 400),
        "42P01" => RELATION_UNKNOWN,
        "42P07" => description("RelationAlreadyExists", 4093, 409),
        "53000" | "53300" | "53400" => TOO_MANY,
        "53200" => description("CircuitBreakingException", 5000, 500),
        "54000" => TOO_LARGE,
        "57014" => KILLED,
        "57P01" | "57P03" | "08006" => UNAVAILABLE,
        _ => return None,
    })
}

/// CrateDB's description of an error: by its SQLSTATE if the table has it, else by its code, else
/// by its kind.
pub(crate) fn describe_error(error: &SqlError) -> ErrorDescription {
    if let Some(description) = error.sqlstate.and_then(of_sqlstate) {
        return description;
    }
    let by_class = |sqlstate: &str| match sqlstate.get(..2) {
        Some("22" | "42" | "0B" | "21") => PARSE,
        Some("23") => VALIDATION,
        Some("40" | "25" | "55") => description("VersionConflictException", 4092, 409),
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
    description: ErrorDescription,
    message: String,
    /// Additional information for requests with `error_trace`.
    trace: String,
    /// Whether the connection must be closed, because the following bytes on it are not a request.
    closes: bool,
}

impl Failure {
    fn new(description: ErrorDescription, message: impl Into<String>) -> Failure {
        Failure { description, message: message.into(), trace: String::new(), closes: false }
    }

    /// The request is malformed.
    pub(crate) fn parse(message: impl Into<String>) -> Failure {
        Failure::new(PARSE, message)
    }

    /// The request is valid and not supported.
    pub(crate) fn unsupported(message: impl Into<String>) -> Failure {
        Failure::new(UNSUPPORTED, message)
    }

    /// The path does not exist.
    pub(crate) fn no_such_path(path: &str) -> Failure {
        Failure::new(NOT_FOUND, format!("nothing is served at {path:?}"))
    }

    /// The object does not exist.
    pub(crate) fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(NOT_FOUND, message)
    }

    /// The client has no permission.
    pub(crate) fn forbidden(message: impl Into<String>) -> Failure {
        Failure::new(FORBIDDEN, message)
    }

    /// The path exists, but does not support the method.
    pub(crate) fn wrong_method(method: &str, expected: &str) -> Failure {
        Failure::new(
            ErrorDescription { status: 405, ..PARSE },
            format!("{method} is not served here, expected {expected}"),
        )
    }

    /// The member is stopping, or the task that should answer has ended.
    pub(crate) fn unavailable(message: impl Into<String>) -> Failure {
        Failure::new(UNAVAILABLE, message)
    }

    /// A defect of the server.
    pub(crate) fn unhandled(message: impl Into<String>) -> Failure {
        Failure::new(UNHANDLED, message)
    }

    /// A page of another server sent the request.
    pub(crate) fn foreign_origin(origin: &str) -> Failure {
        let message = format!("pages of {origin:?} may not send requests here, see the setting origins");
        Failure { closes: true, ..Failure::new(FORBIDDEN, message) }
    }

    /// The request has a `Host` that a stranger may own.
    pub(crate) fn untrusted_host(host: &str) -> Failure {
        let message = format!(
            "requests to the name {host:?} are refused, since a page of a strange server may send them: use this server's address, or add \
             the name to the setting hosts (filbert.http.hosts)"
        );
        Failure { closes: true, ..Failure::new(FORBIDDEN, message) }
    }

    /// There were too many wrong passwords.
    pub(crate) fn too_many_guesses(error: filbert_listen::TooManyGuesses) -> Failure {
        Failure { closes: true, ..Failure::new(TOO_MANY, error.to_string()) }
    }

    /// The name and the password do not belong to a user.
    pub(crate) fn unauthorized(name: &str) -> Failure {
        let message = if name.is_empty() {
            "this server has users: send \"Authorization: Basic\" with a name and a password".to_owned()
        } else {
            format!("password authentication failed for user {name:?}")
        };
        Failure { closes: true, ..Failure::new(UNAUTHORIZED, message) }
    }

    /// The header `Authorization` is malformed.
    pub(crate) fn bad_credentials() -> Failure {
        let message = "the header Authorization cannot be read, expected \"Basic\" and name:password in Base64";
        Failure { closes: true, ..Failure::new(UNAUTHORIZED, message) }
    }

    /// The body is longer than the limit.
    pub(crate) fn body_too_large(limit: usize) -> Failure {
        let message = format!("the body has more than {limit} bytes, the most that body_bytes_max allows");
        Failure { closes: true, ..Failure::new(TOO_LARGE, message) }
    }

    /// A statement has more values than the limit.
    pub(crate) fn too_many_values(limit: usize) -> Failure {
        Failure::new(
            PARSE,
            format!("a statement of the body has more than {limit} values, the most that parameters_max allows"),
        )
    }

    /// The body did not arrive completely.
    pub(crate) fn body_missing(message: impl Into<String>) -> Failure {
        Failure { closes: true, ..Failure::new(ErrorDescription { status: 408, ..PARSE }, message) }
    }

    /// The encoding of the body is not supported.
    pub(crate) fn wrong_encoding(encoding: &str) -> Failure {
        let message = format!("a body with Content-Encoding {encoding:?} cannot be read, expected none or \"gzip\"");
        Failure { closes: true, ..Failure::new(ErrorDescription { status: 415, ..PARSE }, message) }
    }

    /// Closes the connection after the response.
    #[must_use]
    pub(crate) fn closing(self) -> Failure {
        Failure { closes: true, ..self }
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> u16 {
        self.description.status
    }

    /// CrateDB's error code.
    pub(crate) fn code(&self) -> u32 {
        self.description.code
    }

    /// The message within the name of CrateDB's exception.
    pub(crate) fn message(&self) -> String {
        format!("{}[{}]", self.description.exception, self.message)
    }

    /// Builds the response. `with_trace` adds the `error_trace` that the client requested.
    pub(crate) fn response(&self, with_trace: bool) -> Response {
        let mut body = json!({"error": {"message": self.message(), "code": self.description.code}});
        if with_trace && let Some(body) = body.as_object_mut() {
            let trace =
                if self.trace.is_empty() { self.message() } else { format!("{}\n{}", self.message(), self.trace) };
            body.insert("error_trace".to_owned(), trace.into());
        }
        let status = StatusCode::from_u16(self.description.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
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
        Failure { trace, ..Failure::new(describe_error(&error), error.message) }
    }
}

/// There is not enough memory for a body, or for its parsed values.
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

/// The error of a value that no statement can use.
pub(crate) fn data_error(message: impl Into<String>) -> SqlError {
    SqlError { kind: ErrorKind::IllegalArgument, ..SqlError::new(SqlErrorCode::DataException, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(error: SqlError) -> (u32, u16) {
        let description = describe_error(&error);
        (description.code, description.status)
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
