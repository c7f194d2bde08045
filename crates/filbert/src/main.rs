//! The program `filbert`: a member that Hazelcast's clients connect to.
//!
//! It is the embedded API with a command line and signal handling. The library describes the parts.

mod allocator;
mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::set_options();
    program::main()
}
