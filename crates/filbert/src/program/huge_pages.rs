//! Huge pages: the operating system hands out memory in pages of 2 MiB instead of 4 KiB.
//!
//! mimalloc requests them. If a freed part of 64 KiB is used again, the operating system then
//! returns the 2 MiB around it. Queries free memory on other threads, scattered over many pages of
//! 2 MiB. So a member held many times the memory that it used, see
//! `docs/decisions/0033-no-huge-pages.md`.

/// Has the process get no huge pages from now on.
#[cfg(target_os = "linux")]
pub(crate) fn disable() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::warn!("huge pages cannot be disabled, and memory may grow beyond its limit: {error}");
    }
}

/// Other systems have no such pages.
#[cfg(not(target_os = "linux"))]
pub(crate) fn disable() {}
