//! The cost of one message: decoding a get request, encoding its response, and splitting a
//! pipelined batch into messages.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use filbert_wire::{CorrelationId, Limits, Message, Request as _, Response as _, Split, Splitter, table::map};

const KEY: &[u8] = &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf9, 0, 0, 0, 42];

fn get_request(out: &mut Vec<u8>, correlation: i64) {
    map::get::Request { name: "entries", key: KEY, thread_id: 1 }.encode(CorrelationId(correlation), 203, out);
}

fn codec(criterion: &mut Criterion) {
    let mut request = Vec::new();
    get_request(&mut request, 1);
    criterion.bench_function("decode Map.get", |bencher| {
        bencher.iter(|| {
            let message = Message::parse(black_box(&request))?;
            message.decode::<map::get::Request<'_>>().map(|get| (get.key.len(), get.thread_id))
        });
    });

    let value = [7; 100];
    let mut out = Vec::with_capacity(1024);
    criterion.bench_function("encode the response of Map.get, 100 bytes", |bencher| {
        bencher.iter(|| {
            out.clear();
            map::get::Response { response: Some(black_box(&value)) }.encode(CorrelationId(1), &mut out);
            out.len()
        });
    });

    let mut batch = Vec::new();
    (0..100).for_each(|correlation| get_request(&mut batch, correlation));
    let mut group = criterion.benchmark_group("a batch of 100 Map.get");
    group.throughput(Throughput::Elements(100));
    group.bench_function("split", |bencher| {
        bencher.iter(|| for_each_message(black_box(&batch), |message| message.len()));
    });
    group.bench_function("split and decode", |bencher| {
        bencher.iter(|| {
            for_each_message(black_box(&batch), |bytes| {
                let get = Message::parse(bytes).and_then(|message| message.decode::<map::get::Request<'_>>());
                get.map_or(0, |get| get.key.len())
            })
        });
    });
    group.finish();
}

fn for_each_message(mut bytes: &[u8], mut visit: impl FnMut(&[u8]) -> usize) -> usize {
    let mut splitter = Splitter::new(Limits::default());
    let mut total = 0;
    while let Ok(Some(Split::Whole(length))) = splitter.split(bytes) {
        let Some((message, rest)) = bytes.split_at_checked(length) else { break };
        total += visit(message);
        bytes = rest;
    }
    total
}

criterion_group!(benches, codec);
criterion_main!(benches);
