//! Measures the parsing of bulk requests alone: `cargo bench -p filbert-http --bench bulk_parse`.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::time::Instant;

/// The number of rows of one body. `cr8` sends this number by default.
const ROWS: usize = 1000;
const ROUNDS: usize = 500;

fn main() {
    let rows: Vec<String> = (0..ROWS)
        .map(|id| {
            let day = 1_500_000_000_000_i64 + i64::try_from(id).unwrap_or(0) * 1000;
            format!(r#"["{id:036}", "Dr. Paul Example-{id}", {id}, {}.5, {day}, true]"#, id * 7)
        })
        .collect();
    let body = format!(
        r#"{{"stmt": "insert into users (id, name, n, score, born, active) values (?, ?, ?, ?, ?, ?)", "bulk_args": [{}]}}"#,
        rows.join(", ")
    );
    let body = body.as_bytes();
    let expected = ROWS * 6;
    let started = Instant::now();
    for _ in 0..ROUNDS {
        if filbert_http::probe::count_values(body) != expected {
            println!("not all values were parsed");
            return;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let rows = (ROWS * ROUNDS) as f64 / seconds;
    let bytes = (body.len() * ROUNDS) as f64 / seconds;
    println!("{} bytes, {ROWS} rows: {:.2} million rows/s, {:.0} MB/s", body.len(), rows / 1e6, bytes / 1e6);
}
