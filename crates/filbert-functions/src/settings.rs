//! Our values in the settings of DataFusion's sessions. Functions and relations find them at run
//! time.

use std::any::Any;
use std::fmt;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::{DataFusionError, Result};

/// A value that settings may contain, one of each type.
pub trait InSettings: Clone + fmt::Debug + Send + Sync + 'static {
    /// Its name among the settings, which no statement can set.
    const NAME: &'static str;
}

/// Puts a value into settings, and replaces a value of its type.
pub fn insert<T: InSettings>(options: &mut ConfigOptions, value: T) {
    options.extensions.insert(Extension(value));
}

/// The value of a type in settings.
pub fn find<T: InSettings>(options: &ConfigOptions) -> Option<&T> {
    options.extensions.get::<Extension<T>>().map(|found| &found.0)
}

#[derive(Clone, Debug)]
struct Extension<T>(T);

impl<T: InSettings> ConfigExtension for Extension<T> {
    const PREFIX: &'static str = T::NAME;
}

impl<T: InSettings> ExtensionOptions for Extension<T> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        Err(DataFusionError::Configuration(format!("{key} is not for setting")))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
