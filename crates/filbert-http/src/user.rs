//! The user of a request: from `Authorization: Basic`, or from `X-User` if no users are configured.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use filbert_listen::Guesses;

use crate::config::HttpUser;
use crate::failure::Failure;

/// The user of requests without a name, CrateDB's superuser.
const DEFAULT_USER: &str = "crate";

/// The user of a request, as an extension for its handlers.
#[derive(Clone, Debug)]
pub(crate) struct User(pub(crate) String);

/// Returns the user of a request.
///
/// # Errors
/// There are users, and the request has no right name and password. Or its address has sent too
/// many wrong passwords. Or its header `Authorization` is malformed.
pub(crate) fn user_of(
    headers: &HeaderMap,
    users: &[HttpUser],
    guesses: &Guesses,
    address: IpAddr,
) -> Result<String, Failure> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let credentials = text(AUTHORIZATION.as_str()).map(credentials).transpose()?;
    if users.is_empty() {
        let named = credentials.map(|(name, _)| name).or_else(|| text("x-user").map(str::to_owned));
        return Ok(named.filter(|name| !name.is_empty()).unwrap_or_else(|| DEFAULT_USER.to_owned()));
    }
    // Browsers send their first request without a password. It does not count as a guess.
    let Some((name, password)) = credentials else { return Err(Failure::unauthorized("")) };
    let guess = guesses.begin(address, &name).map_err(Failure::too_many_guesses)?;
    // Every user is compared, so that the duration does not reveal the existing names.
    let known = users.iter().fold(false, |known, user| {
        known | (same(user.name.as_bytes(), name.as_bytes()) & same(user.password.as_bytes(), password.as_bytes()))
    });
    if !known {
        return Err(Failure::unauthorized(&name));
    }
    guess.right();
    Ok(name)
}

/// The name and password of `Basic` credentials.
fn credentials(header: &str) -> Result<(String, String), Failure> {
    let refused = || Failure::bad_credentials();
    let (scheme, value) = header.trim().split_once(' ').ok_or_else(refused)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(refused());
    }
    let decoded = STANDARD.decode(value.trim()).map_err(|_| refused())?;
    let decoded = String::from_utf8(decoded).map_err(|_| refused())?;
    let (name, password) = decoded.split_once(':').unwrap_or((&decoded, ""));
    Ok((name.to_owned(), password.to_owned()))
}

/// Compares secrets in a time that depends only on their lengths.
fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use filbert_listen::GuessLimits;

    use super::*;

    fn user(users: &[HttpUser], headers: &[(&'static str, &str)]) -> Result<String, u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let guesses = Guesses::new(GuessLimits::default());
        user_of(&map, users, &guesses, [127, 0, 0, 1].into()).map_err(|failure| failure.status())
    }

    #[test]
    fn without_users_everybody_is_who_they_say() {
        assert_eq!(user(&[], &[]), Ok("crate".into()));
        assert_eq!(user(&[], &[("x-user", "ann")]), Ok("ann".into()));
        assert_eq!(user(&[], &[("x-user", "ann"), ("authorization", "Basic Ym9iOmI=")]), Ok("bob".into()));
        assert_eq!(user(&[], &[("authorization", "Bearer Ym9iOmI=")]), Err(401));
    }

    #[test]
    fn users_must_show_their_password() {
        let users = [("ann", "a"), ("bob", "b")]
            .map(|(name, password)| HttpUser { name: name.into(), password: password.into() });
        assert_eq!(user(&users, &[("authorization", "basic Ym9iOmI=")]), Ok("bob".into()));
        assert_eq!(user(&users, &[("authorization", "Basic Ym9iOmE=")]), Err(401));
        assert_eq!(user(&users, &[("authorization", "Basic Ym9i")]), Err(401));
        assert_eq!(user(&users, &[("authorization", "Basic %%")]), Err(401));
        assert_eq!(user(&users, &[("x-user", "bob")]), Err(401));
        assert_eq!(user(&users, &[]), Err(401));
    }
}
