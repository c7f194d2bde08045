//! Our own bulk loader. It generates the request bodies in advance and sends them over two
//! connections.

use std::fmt::Write;
use std::sync::Mutex;
use std::time::Instant;

use crate::error::{BenchError, Result};
use crate::http::Endpoint;

/// The number of connections, each with one request in flight. It is the number of cores of the
/// measured machines.
const CONNECTIONS: usize = 2;

const TITLES: &[&str] = &["", "", "", "", "", "", "Dr. ", "Mrs. "];
const FIRST: &[&str] =
    &["Paul", "Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Margaret", "Niklaus", "Frances"];
const LAST: &[&str] =
    &["Lovelace", "Hopper", "Turing", "Dijkstra", "Liskov", "Knuth", "Hamilton", "Wirth", "Allen", "Hoare"];
const CITIES: &[&str] = &["London", "Arlington", "Wilmslow", "Nuenen", "Los Angeles", "Stanford", "Boston", "Zürich"];

/// A range of generated rows.
pub(super) struct Rows {
    /// The seed of all random choices.
    pub(super) seed: u64,
    /// The number of the first row.
    pub(super) first: u64,
    /// The number of rows.
    pub(super) count: u64,
}

/// A hash of a number (SplitMix64, Steele, Lea and Flood 2014).
fn mixed(number: u64) -> u64 {
    let mut value = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn pick<'t>(of: &[&'t str], random: u64) -> &'t str {
    let index = usize::try_from(random % of.len().max(1) as u64).unwrap_or(0);
    of.get(index).copied().unwrap_or_default()
}

/// Generates the bodies of the insert requests.
pub(super) fn bodies(table: &str, rows: &Rows, bulk_rows: u64) -> Vec<Vec<u8>> {
    let mut bodies = Vec::new();
    let end = rows.first + rows.count;
    let mut next = rows.first;
    while next < end {
        let last = (next + bulk_rows).min(end);
        let mut body = format!(
            "{{\"stmt\": \"INSERT INTO {table} (id, name, email, city, age) VALUES (?, ?, ?, ?, ?)\", \"bulk_args\": ["
        );
        for number in next..last {
            let random = mixed(rows.seed.wrapping_add(number));
            let (title, first, second) = (pick(TITLES, random), pick(FIRST, random >> 8), pick(LAST, random >> 16));
            let (city, age) = (pick(CITIES, random >> 24), (random >> 32) % 90);
            let separator = if number == next { "" } else { "," };
            // Writing to a text cannot fail.
            let _ = write!(
                body,
                "{separator}[\"{random:016x}-{number}\",\"{title}{first} {second}\",\"{first}.{second}@example.org\",\"{city}\",{age}]"
            );
        }
        body.push_str("]}");
        bodies.push(body.into_bytes());
        next = last;
    }
    bodies
}

/// Sends the bodies and checks that every row was inserted. Returns the elapsed time in seconds.
pub(super) fn send(endpoint: &Endpoint, bodies: Vec<Vec<u8>>) -> Result<f64> {
    let waiting = Mutex::new(bodies);
    let begun = Instant::now();
    let work = || -> Result<()> {
        let connection = endpoint.connection();
        loop {
            let body = match waiting.lock() {
                Ok(mut waiting) => waiting.pop(),
                Err(_) => None,
            };
            let Some(body) = body else { return Ok(()) };
            let answer = connection.post(&body)?;
            let results = answer.get("results").and_then(|results| results.as_array());
            let refused = results.and_then(|rows| {
                rows.iter().find(|row| row.get("rowcount").and_then(|count| count.as_i64()) != Some(1))
            });
            if results.is_none() || refused.is_some() {
                let what = format!("a bulk insert answered {}", refused.unwrap_or(&answer));
                return Err(BenchError::Wrong { target: "filbert".to_owned(), what });
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(_) => {
                Err(BenchError::Program { program: "the loader".to_owned(), what: "a thread panicked".to_owned() })
            }
        })
    })?;
    Ok(begun.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_and_have_every_row_once() {
        let rows = Rows { seed: 1, first: 5, count: 2_500 };
        let mut ids = std::collections::BTreeSet::new();
        for body in bodies("t", &rows, 1_000) {
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            for row in body["bulk_args"].as_array().unwrap() {
                assert_eq!(row.as_array().unwrap().len(), 5);
                assert!(ids.insert(row[0].as_str().unwrap().to_owned()));
            }
        }
        assert_eq!(ids.len(), 2_500);
    }
}
