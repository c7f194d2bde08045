//! Measures the time from the start of the program to its first answer, as a client observes it.
//!
//! `cargo run --release -p filbert --example start_time [runs]` repeatedly starts the `filbert`
//! binary next to this example. "Ready" is the ready line on standard output. "Answer" is the time
//! when the server closes a connection after an invalid greeting, which proves that it reads and
//! processes input.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "an example that measures, run by hand"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn main() {
    let runs = std::env::args().nth(1).map_or(20, |runs| runs.parse().unwrap());
    let mut times: Vec<(Duration, Duration)> = (0..runs).map(|_| measure()).collect();
    times.sort_by_key(|(_, answer)| *answer);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (ready, answer) = times[times.len() / 2];
    println!("median of {runs} starts: ready after {:.1} ms, first answer after {:.1} ms", ms(ready), ms(answer));
    println!("slowest first answer: {:.1} ms", ms(times[times.len() - 1].1));
}

fn measure() -> (Duration, Duration) {
    let binary = std::env::current_exe().unwrap().with_file_name("../filbert");
    let start = Instant::now();
    let mut child = Command::new(binary)
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("ready: Hazelcast clients on ").map(str::to_owned))
        .unwrap();
    let ready = start.elapsed();
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(b"???").unwrap();
    let _ = connection.read(&mut [0; 64]);
    let answer = start.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    (ready, answer)
}
