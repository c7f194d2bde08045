//! The interface of a server: executes statements directly or prepared.

use crate::outcome::Outcome;
use crate::postgres::{Connection, Parameter};

/// A server that executes statements.
pub(crate) trait Server {
    /// Executes one statement without parameters.
    fn run(&mut self, text: &str) -> Outcome;

    /// Prepares a statement and executes it `times` times.
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
