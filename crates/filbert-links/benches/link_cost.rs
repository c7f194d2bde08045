//! The cost of a call: two members in one process over loopback, with sequential and with
//! concurrent calls.
//!
//! `cargo bench -p filbert-links --bench link_cost`

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for the command line")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use filbert_cluster::{BoxFuture, Lane, MemberId};
use filbert_links::{Channel, Identity, LinkSettings, Links, Peer, Refusal, Service};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpListener;

struct Echo;

impl Service for Echo {
    fn answer(&self, _: Peer, _: Channel, request: Bytes) -> BoxFuture<Result<Bytes, Refusal>> {
        Box::pin(std::future::ready(Ok(request)))
    }
}

fn member(id: u64) -> Links {
    let (cluster, incarnation) = ("cost".to_owned(), uuid::Uuid::new_v4());
    let identity = Identity { cluster, incarnation, partitions: 271, groups: 24, versions: 1..=1 };
    let links = Links::start(LinkSettings::default(), identity, Arc::new(Echo)).unwrap();
    links.become_member(MemberId(id), uuid::Uuid::from_u128(1)).unwrap();
    links
}

fn cpu() -> Duration {
    let read = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    // The CPU time of the first thread only: the runtime has no other thread.
    Duration::from_nanos(read.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

async fn measure(links: &Links, at_once: usize, bytes: usize, calls: usize) {
    let request = Bytes::from(vec![7; bytes]);
    let call = || links.call(MemberId(2), Channel::Consensus(Lane::Data), request.clone());
    let (begin, cpu_before) = (Instant::now(), cpu());
    let mut waiting: FuturesUnordered<_> = (0..at_once).map(|_| call()).collect();
    for _ in 0..calls {
        waiting.next().await.unwrap().unwrap();
        waiting.push(call());
    }
    let took = begin.elapsed();
    while let Some(answer) = waiting.next().await {
        answer.unwrap();
    }
    let cpu_us = (cpu() - cpu_before).as_secs_f64() * 1e6 / calls as f64;
    let (us, rate) = (took.as_secs_f64() * 1e6 / calls as f64, calls as f64 / took.as_secs_f64());
    println!(
        "{bytes:>7} bytes, {at_once:>4} at once: {cpu_us:>7.2} us of CPU on both sides, {us:>7.2} us each, {rate:>8.0}/s"
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (one, two) = (member(1), member(2));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    one.addresses().set(MemberId(2), listener.local_addr().unwrap());
    two.serve(listener);
    measure(&one, 1, 100, 1_000).await;
    for (at_once, calls) in [(1, 50_000), (8, 200_000), (64, 500_000), (512, 500_000)] {
        measure(&one, at_once, 100, calls).await;
    }
    measure(&one, 8, 256 << 10, 20_000).await;
    println!("{:?}", one.statistics().of(filbert_links::Kind::Data));
}
