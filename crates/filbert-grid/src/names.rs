//! Names of distributed objects and their parts: the service of maps, and the limit of a name's
//! length.

use crate::errors::GridError;

/// The name of the service of maps.
pub const MAP_SERVICE: &str = "hz:impl:mapService";

/// The maximum length, in bytes, of a name that a client sends and the member stores: the name of a
/// map, an index, an attribute, a query cache, a type or a field. Hazelcast has no such limit. A
/// name is stored several times, and once more with every registration. Settings limit the number
/// of names, so this limit bounds their memory.
pub const NAME_BYTES_MAX: usize = 1_024;

/// Checks the length of a name before it is stored. `what` is the kind of name, for example `map`.
///
/// # Errors
/// [`GridError::IllegalArgument`] for a name of more than [`NAME_BYTES_MAX`] bytes.
#[inline]
pub fn check_name(what: &str, name: &str) -> Result<(), GridError> {
    if name.len() <= NAME_BYTES_MAX { Ok(()) } else { Err(too_long(what, name.len())) }
}

#[cold]
fn too_long(what: &str, bytes: usize) -> GridError {
    GridError::IllegalArgument(format!("{what} name of {bytes} bytes, expected at most {NAME_BYTES_MAX}"))
}
