//! Environment variables that override Filbert's own properties of the file:
//! `FILBERT_LOCK_WAITERS_MAX` sets `filbert.lock.waiters.max`.

use super::error::ConfigError;
use super::member::Draft;
use super::properties::PROPERTIES;
use super::tree::quote;
use super::variable_name;
use super::walk::Environment;

/// The prefix of Filbert's own properties.
const OWN: &str = "filbert.";

/// Returns the environment variable that overrides a property, if there is one.
pub(crate) fn variable(property: &str) -> Option<String> {
    property.starts_with(OWN).then(|| variable_name(property))
}

/// Overrides properties of the file with environment variables.
pub(crate) fn override_from(environment: Environment<'_>, draft: &mut Draft) -> Result<(), ConfigError> {
    for setting in PROPERTIES {
        let Some(name) = variable(setting.name) else { continue };
        let Some(text) = environment(&name) else { continue };
        if let Err(expected) = setting.read_text(draft, text.trim()) {
            return Err(ConfigError::Value { name, found: quote(&text), expected });
        }
    }
    Ok(())
}
