//! The program `filbert`: a member that Hazelcast's clients connect to.
//!
//! It is the embedded API with a command line in front and signals behind; see the library for the parts.

mod program;

use std::process::ExitCode;

/// Chosen by measurement (`cargo run --release -p filbert-store --example memory`, and `memory_mimalloc`): a million
/// entries of 12 + 112 bytes take 50 bytes each beside key and value instead of 60, and a map that was cleared gives
/// its memory back to the system instead of keeping it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    program::main()
}
