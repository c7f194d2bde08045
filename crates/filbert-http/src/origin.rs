//! Checks the origin of requests that browsers send for pages.
//!
//! Any page can make a browser send a POST to any address, without being able to read the response.
//! A statement that drops a table needs no response. Browsers send the origin of such a request, so
//! that requests of foreign pages are refused. Tools send no origin.
//!
//! A page can also be loaded from a name that later resolves to this machine, since the owner of a
//! name decides where it resolves to (DNS rebinding). To the browser its requests have the same
//! origin: they may use any method, and the page may read the responses. The `Host` of a request
//! must therefore be a name that no stranger can own, or a name in the settings. If users need
//! passwords, this check is not necessary: the page has no password.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method};

use crate::config::HttpConfig;
use crate::failure::Failure;

/// Domains in which no stranger can register a name. They are reserved (RFC 6761, RFC 6762, RFC
/// 8375, `internal` by ICANN), or belong to Kubernetes.
const PRIVATE: [&str; 8] = ["localhost", "local", "internal", "home.arpa", "localdomain", "lan", "test", "svc"];

/// Checks the `Host` and the `Origin` of a request.
///
/// # Errors
/// The request comes from a page that is not of this server and not of a configured origin. Or its
/// `Host` is a name that a stranger may own and that is not in the settings.
pub(crate) fn check(method: &Method, headers: &HeaderMap, config: &HttpConfig) -> Result<(), Failure> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST);
    let is_known = host.is_none_or(|host| is_known(host, config));
    match text(ORIGIN) {
        Some(origin) if config.origins.iter().any(|allowed| allowed == origin) => Ok(()),
        Some(origin) => {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            let is_own = authority.zip(host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host));
            if is_own && is_known { Ok(()) } else { Err(Failure::foreign_origin(origin)) }
        }
        None if is_known || !config.users.is_empty() => Ok(()),
        // A browser would send the origin of such a request. The client is a tool, whatever name it
        // uses for this server.
        None if !method.is_safe() && text(CONTENT_TYPE).is_some_and(is_json) => Ok(()),
        None => Err(Failure::untrusted_host(host.unwrap_or_default())),
    }
}

fn is_json(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// Whether a host is an IP address, a name that no stranger can own, or a name in the settings.
fn is_known(host: &str, config: &HttpConfig) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    if name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_within =
        |parent: &str| name.strip_suffix(parent).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    if PRIVATE.iter().any(|parent| is_within(parent)) {
        return true;
    }
    // A name without a dot belongs to the local network.
    let is_of_network = !name.is_empty() && !name.contains('.');
    is_of_network
        || config.hosts.iter().map(|host| host.to_ascii_lowercase()).any(|allowed| match allowed.strip_prefix("*.") {
            Some(parent) => is_within(parent) && name != parent,
            None => name == allowed,
        })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const JSON: &str = "application/json; charset=utf-8";

    fn may(method: Method, headers: &[(axum::http::HeaderName, &str)], config: &HttpConfig) -> bool {
        let headers = headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
        check(&method, &headers.collect(), config).is_ok()
    }

    /// Whether a page may read and write.
    fn page(origin: &str, host: &str, config: &HttpConfig) -> bool {
        let all = [Method::GET, Method::POST].map(|method| may(method, &[(ORIGIN, origin), (HOST, host)], config));
        assert_eq!(all[0], all[1]);
        all[0]
    }

    #[test]
    fn tools_and_the_own_page_may_do_anything() {
        let config = HttpConfig::default();
        for host in
            ["127.0.0.1:4200", "localhost:4200", "LOCALHOST:4200", "[::1]:4200", "127.0.0.1", "192.0.2.7", "::1"]
        {
            assert!(page(&format!("http://{host}"), host, &config), "{host}");
        }
        for host in
            ["filbert", "filbert-0:4200", "db.internal:4200", "filbert.default.svc.cluster.local", "a.svc", "x.lan."]
        {
            for method in [Method::GET, Method::POST] {
                assert!(may(method, &[(HOST, host)], &config), "{host}");
            }
        }
        assert!(may(Method::GET, &[], &config), "HTTP 1.0");
    }

    #[test]
    fn foreign_pages_are_refused() {
        let config = HttpConfig::default();
        assert!(!page("http://evil.example", "127.0.0.1:4200", &config));
        assert!(!page("null", "127.0.0.1:4200", &config));
        assert!(!page("http://127.0.0.1:9999", "127.0.0.1:4200", &config));
        let origins = vec!["http://evil.example".to_owned()];
        assert!(page("http://evil.example", "evil.example:4200", &HttpConfig { origins, ..config }));
    }

    #[test]
    fn a_page_with_a_rebound_name_is_refused() {
        for listen in ["127.0.0.1:4200", "0.0.0.0:4200", "[::]:4200"] {
            let config = HttpConfig { listen: listen.parse().unwrap(), ..HttpConfig::default() };
            for host in [
                "evil.example:4200",
                "evil.example",
                "127.0.0.1.evil.example",
                "evillocal.com:80",
                "svc.example",
                "a.b:c",
            ] {
                assert!(!page(&format!("http://{host}"), host, &config), "{host}");
                // Browsers send no origin when a page reads from its own server.
                assert!(!may(Method::GET, &[(HOST, host)], &config), "{host}");
                for content_type in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
                    assert!(!may(Method::POST, &[(HOST, host), (CONTENT_TYPE, content_type)], &config), "{host}");
                }
                assert!(!may(Method::GET, &[(HOST, host), (CONTENT_TYPE, JSON)], &config), "{host}");
                assert!(may(Method::POST, &[(HOST, host), (CONTENT_TYPE, JSON)], &config), "a tool, {host}");
            }
        }
    }

    #[test]
    fn a_server_with_a_name_is_reached_by_it() {
        let hosts = vec!["Filbert.example.com".to_owned(), "*.example.org".to_owned()];
        let config = HttpConfig { hosts, ..HttpConfig::default() };
        for host in ["filbert.example.com:4200", "a.example.org", "a.b.example.org:1"] {
            assert!(page(&format!("http://{host}"), host, &config), "{host}");
            assert!(may(Method::GET, &[(HOST, host)], &config), "{host}");
        }
        for host in ["example.com", "other.example.com", "example.org", "badexample.org"] {
            assert!(!may(Method::GET, &[(HOST, host)], &config), "{host}");
        }
        assert!(!page("http://evil.example", "filbert.example.com:4200", &config));
    }

    #[test]
    fn with_passwords_any_host_is_accepted() {
        let users = vec![crate::config::HttpUser { name: "ann".into(), password: "a".into() }];
        let config = HttpConfig { users, ..HttpConfig::default() };
        assert!(may(Method::GET, &[(HOST, "filbert.example.com")], &config));
        assert!(!page("http://evil.example", "filbert.example.com", &config));
    }
}
