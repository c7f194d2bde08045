//! How many files a process may have open; each connection is one.

use std::io;

/// Raises the limit of this process to what the system allows it. Shells and service managers give a program that does not
/// ask some 1,024, far fewer than the connections that doors take. For programs: a library leaves the limit to who uses it.
///
/// # Errors
/// The system refuses. Then connections are refused when there are too many.
pub fn allow_as_many_files_as_possible() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(())
}
