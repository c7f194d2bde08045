//! The program `filbert`: a member that Hazelcast's clients connect to.
//!
//! It is the embedded API with a command line and signal handling. The library describes the parts.

mod program;

use std::process::ExitCode;

/// Chosen by measurement (`cargo run --release -p filbert-store --example memory`, and
/// `memory_mimalloc`). Each of a million entries of 12 + 112 bytes has an overhead of 50 bytes
/// instead of 60. The memory of a cleared map returns to the operating system, which did not happen
/// before.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    program::main()
}
