//! HTTP requests to members: SQL statements as CrateDB's tools send them, cluster status, metrics.

use std::net::SocketAddr;

use serde_json::{Value, json};
use ureq::Agent;

use crate::error::{BenchError, Result};

/// The URL for SQL statements.
#[derive(Debug, Clone)]
pub struct Endpoint {
    url: String,
}

/// A client with its own connections.
#[derive(Debug)]
pub struct Connection {
    agent: Agent,
    url: String,
}

/// Returns the status of a member's cluster.
pub fn cluster(address: SocketAddr) -> Result<Value> {
    let url = format!("http://{address}/_filbert/cluster");
    let failed = |error: ureq::Error| BenchError::Program { program: url.clone(), what: error.to_string() };
    let text = ureq::get(&url).call().map_err(failed)?.body_mut().read_to_string().map_err(failed)?;
    serde_json::from_str(&text)
        .map_err(|error| BenchError::Wrong { target: url.clone(), what: format!("{error}: {text}") })
}

/// Returns the sum of a metric over its labels, from the member's `/metrics`.
pub fn metric(address: SocketAddr, name: &str) -> Result<f64> {
    let url = format!("http://{address}/metrics");
    let failed = |error: ureq::Error| BenchError::Program { program: url.clone(), what: error.to_string() };
    let text = ureq::get(&url).call().map_err(failed)?.body_mut().read_to_string().map_err(failed)?;
    sum(&text, name)
        .ok_or_else(|| BenchError::Wrong { target: url.clone(), what: format!("there is no metric {name}") })
}

/// Returns the sum over the lines `NAME VALUE` and `NAME{LABELS} VALUE` of Prometheus' text format,
/// or `None` if there is no such line.
fn sum(text: &str, name: &str) -> Option<f64> {
    let of_line = |line: &str| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{']))?;
        rest.rsplit(' ').next()?.parse::<f64>().ok()
    };
    text.lines().filter_map(of_line).fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

impl Endpoint {
    /// The endpoint of a server.
    pub fn new(address: SocketAddr) -> Endpoint {
        Endpoint { url: format!("http://{address}/_sql") }
    }

    /// Creates a client with its own connections.
    pub fn connection(&self) -> Connection {
        // The answer contains the error of a statement, for any HTTP status.
        let agent = Agent::config_builder().http_status_as_error(false).build().into();
        Connection { agent, url: self.url.clone() }
    }

    /// Executes a statement and returns the answer.
    pub fn sql(&self, statement: &str) -> Result<Value> {
        self.connection().post(json!({ "stmt": statement }).to_string().as_bytes())
    }

    /// Executes a query with a single number as its result, and returns the number.
    pub fn count(&self, query: &str) -> Result<u64> {
        let answer = self.sql(query)?;
        let number = answer.pointer("/rows/0/0").and_then(Value::as_u64);
        number.ok_or_else(|| self.wrong(format!("{query} answered {answer}, expected one number")))
    }

    /// Returns the number of rows of a query.
    pub fn rows(&self, query: &str) -> Result<u64> {
        let answer = self.sql(query)?;
        let rows = answer.get("rows").and_then(Value::as_array);
        rows.map(|rows| rows.len() as u64)
            .ok_or_else(|| self.wrong(format!("{query} answered {answer}, expected rows")))
    }

    fn wrong(&self, what: String) -> BenchError {
        BenchError::Wrong { target: self.url.clone(), what }
    }
}

impl Connection {
    /// Posts a body and returns the answer. An error in the answer is an error.
    pub fn post(&self, body: &[u8]) -> Result<Value> {
        let failed = |error: ureq::Error| BenchError::Program { program: self.url.clone(), what: error.to_string() };
        let request = self.agent.post(&self.url).header("Content-Type", "application/json");
        let mut response = request.send(body).map_err(failed)?;
        let text = response.body_mut().with_config().limit(u64::MAX).read_to_string().map_err(failed)?;
        let wrong = |what| BenchError::Wrong { target: self.url.clone(), what };
        let answer: Value = serde_json::from_str(&text).map_err(|error| wrong(format!("{error}: {text}")))?;
        match answer.get("error") {
            None => Ok(answer),
            Some(error) => Err(wrong(format!("a statement failed: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_summed_over_its_labels() {
        let text = "# HELP sent Bytes.\nsent_total 7\nsent{kind=\"a b\"} 1.5\nsent{kind=\"c\"} 2\n";
        assert_eq!(sum(text, "sent"), Some(3.5));
        assert_eq!(sum(text, "sent_total"), Some(7.0));
        assert_eq!(sum(text, "other"), None);
    }
}
