//! The limit of open files of the process. Each connection is one open file.

use std::io;

/// Raises the soft limit of open files to the hard limit, on Linux only. Shells and service
/// managers set a soft limit of about 1,024, far below the number of connections that front doors
/// accept. Only programs should call this: a library leaves the limit to the program that uses it.
///
/// # Errors
/// The operating system rejects the change. Then connections beyond the old limit are rejected.
pub fn allow_as_many_files_as_possible() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(())
}
