//! How many files the program may have open; each connection is one.

/// Takes as many as the system allows. Shells and service managers give a program that does not ask some 1,024, far fewer
/// than the connections that the doors take. Where it is refused, connections are when there are too many.
pub(crate) fn allow_as_many_as_possible() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::Nofile).maximum;
        if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
            tracing::warn!("no more files may be opened than at the start: {error}");
        }
    }
}
