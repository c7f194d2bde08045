//! What a server must be able to do to be asked: run a text, and run it prepared.

use crate::outcome::Outcome;
use crate::postgres::{Connection, Parameter};

/// A server that statements are sent to.
pub(crate) trait Server {
    /// Runs one statement that has no parameters.
    fn run(&mut self, text: &str) -> Outcome;

    /// Prepares a statement, and runs it so often.
    fn prepare_and_run(&mut self, text: &str, parameters: &[Parameter], binary: bool, times: usize) -> Vec<Outcome>;
}

impl Server for Connection {
    fn run(&mut self, text: &str) -> Outcome {
        Connection::run(self, text)
    }

    fn prepare_and_run(&mut self, text: &str, parameters: &[Parameter], binary: bool, times: usize) -> Vec<Outcome> {
        Connection::prepare_and_run(self, text, parameters, binary, times)
    }
}
