//! The information about the door that the console shows.

use crate::config::HttpConfig;
use crate::console::{Sources, Warning, WarningLevel};
use crate::shared::Shared;

/// Collects the console's sources.
pub(crate) fn sources(shared: &Shared) -> Sources {
    Sources { warnings: warnings(&shared.config) }
}

fn warnings(config: &HttpConfig) -> Vec<Warning> {
    if !config.users.is_empty() || config.listen.ip().is_loopback() {
        return Vec::new();
    }
    let title = "Everybody who reaches this page may do anything".to_owned();
    let text = format!(
        "HTTP is served on {} and no users are configured. Configure users, or listen on a loopback address.",
        config.listen
    );
    vec![Warning { level: WarningLevel::Warning, title, text }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_door_without_users_is_warned_of() {
        let listen = "0.0.0.0:4200".parse().unwrap();
        assert_eq!(warnings(&HttpConfig { listen, ..HttpConfig::default() }).len(), 1);
        assert_eq!(warnings(&HttpConfig::default()), []);
    }
}
