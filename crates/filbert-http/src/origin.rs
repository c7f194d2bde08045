//! Whether a request may come from the page that a browser shows.
//!
//! Any page may have a browser post to any address, without being able to read the answer: a statement that drops a table needs no
//! answer. Browsers say where such a request comes from, so those of strange pages are refused. Tools send no origin.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method};

use crate::HttpConfig;
use crate::failure::Failure;

/// Checks the origin of a request that may change something.
///
/// # Errors
/// It comes from a page that is not this server's, and not one of the configured origins.
pub(crate) fn check(method: &Method, headers: &HeaderMap, config: &HttpConfig) -> Result<(), Failure> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = text(ORIGIN) else { return Ok(()) };
    if method.is_safe() || config.origins.iter().any(|allowed| allowed == origin) {
        return Ok(());
    }
    let host = text(HOST).unwrap_or_default();
    let is_own = origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host));
    // A name that leads here need not be this machine's: whoever owns it decides where it leads.
    let is_known = !config.listen.ip().is_loopback() || is_local(host);
    if is_own && is_known { Ok(()) } else { Err(Failure::strange_origin(origin)) }
}

/// Whether a host is given by its address, or is this machine by name.
fn is_local(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name.eq_ignore_ascii_case("localhost") || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn may(origin: Option<&str>, host: &str, config: &HttpConfig) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        assert!(check(&Method::GET, &headers, config).is_ok());
        check(&Method::POST, &headers, config).is_ok()
    }

    #[test]
    fn tools_and_the_own_page_may_post() {
        let config = HttpConfig::default();
        assert!(may(None, "127.0.0.1:4200", &config));
        for host in ["127.0.0.1:4200", "localhost:4200", "LOCALHOST:4200", "[::1]:4200", "127.0.0.1"] {
            assert!(may(Some(&format!("http://{host}")), host, &config), "{host}");
        }
    }

    #[test]
    fn strange_pages_may_not() {
        let config = HttpConfig::default();
        assert!(!may(Some("http://evil.example"), "127.0.0.1:4200", &config));
        assert!(!may(Some("null"), "127.0.0.1:4200", &config));
        assert!(!may(Some("http://127.0.0.1:9999"), "127.0.0.1:4200", &config));
        // A name that was made to lead to this machine.
        assert!(!may(Some("http://evil.example:4200"), "evil.example:4200", &config));
        let origins = vec!["http://evil.example".to_owned()];
        assert!(may(Some("http://evil.example"), "127.0.0.1:4200", &HttpConfig { origins, ..config }));
    }

    #[test]
    fn a_server_with_a_name_is_reached_by_it() {
        let listen = "0.0.0.0:4200".parse().unwrap();
        let config = HttpConfig { listen, ..HttpConfig::default() };
        assert!(may(Some("http://filbert.internal:4200"), "filbert.internal:4200", &config));
        assert!(!may(Some("http://evil.example"), "filbert.internal:4200", &config));
    }
}
