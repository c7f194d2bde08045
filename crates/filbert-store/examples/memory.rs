//! Measures the memory of an entry in addition to its key and value: the growth of the resident
//! memory, with the system's allocator.
//!
//! `cargo run --release -p filbert-store --example memory`. The example `memory_mimalloc` is the
//! comparison. Linux only, because it reads /proc/self/status.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints its findings")]

use filbert_data::PartitionId;
use filbert_store::{
    Caller, Change, Command, Expiry, MapId, MapSettings, Millis, NoObserver, Partition, PartitionSettings, PutMode,
};

const ENTRIES: u32 = 1_000_000;
const PARTITIONS: u32 = 271;
const KEY_BYTES: usize = 12;
const VALUE_BYTES: usize = 112;
const MAP: MapId = MapId(0);
const NOW: Millis = Millis(1_700_000_000_000);

fn main() {
    measure("system allocator");
}

/// Fills, rewrites and empties 271 partitions, and prints the memory after each step.
pub(crate) fn measure(allocator: &str) {
    println!("{allocator}: {ENTRIES} entries of {KEY_BYTES} + {VALUE_BYTES} bytes in {PARTITIONS} partitions");
    let mut partitions: Vec<Partition> = (0..PARTITIONS).map(new_partition).collect();
    let empty_bytes = resident_bytes();
    for partition in &mut partitions {
        partition.create_map(MAP, MapSettings::default());
    }
    println!("  271 empty maps: {} bytes each", resident_bytes().saturating_sub(empty_bytes) / PARTITIONS as usize);
    for key in 0..ENTRIES {
        apply(&mut partitions, key, VALUE_BYTES, Expiry::DEFAULT, PutMode::Set);
    }
    report("filled", empty_bytes, VALUE_BYTES, &partitions);
    for key in 0..ENTRIES {
        apply(&mut partitions, key, VALUE_BYTES, Expiry::DEFAULT, PutMode::Put);
    }
    report("every value replaced by put", empty_bytes, VALUE_BYTES, &partitions);
    for key in 0..ENTRIES {
        apply(&mut partitions, key, VALUE_BYTES, Expiry::ttl(3_600_000), PutMode::Set);
    }
    report("every entry with a time to live", empty_bytes, VALUE_BYTES, &partitions);
    for partition in &mut partitions {
        let command = Command { map: MAP, now: NOW, caller: Caller::default(), change: Change::Clear };
        partition.apply(&command, &mut NoObserver);
    }
    let owned: usize = partitions.iter().map(Partition::bytes).sum();
    println!("  cleared: {} KiB resident above the start, {owned} bytes owned", resident_kib_above(empty_bytes));
    // Allocators that return memory with a delay do so when they are used again.
    for round in 0..20u8 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::hint::black_box((0..1_000).map(|size| vec![round; size]).collect::<Vec<_>>());
    }
    println!("  a moment later: {} KiB resident above the start", resident_kib_above(empty_bytes));
}

fn new_partition(id: u32) -> Partition {
    Partition::new(PartitionSettings { id: PartitionId(id), hash_seed: 0x5eed, exact_read_times: false })
}

fn apply(partitions: &mut [Partition], number: u32, value_bytes: usize, expiry: Expiry, mode: PutMode) {
    let mut key = [0u8; KEY_BYTES];
    key[KEY_BYTES - 4..].copy_from_slice(&number.to_be_bytes());
    let value = vec![number as u8; value_bytes];
    // Any even distribution over the partitions is sufficient.
    let index = (number.wrapping_mul(0x9e37_79b1) as u64 * u64::from(PARTITIONS)) >> 32;
    let change = Change::Put { key: &key, value: &value, expiry, mode };
    if let Some(partition) = partitions.get_mut(index as usize) {
        partition.apply(&Command { map: MAP, now: NOW, caller: Caller::default(), change }, &mut NoObserver);
    }
}

fn report(what: &str, empty_bytes: usize, value_bytes: usize, partitions: &[Partition]) {
    let payload = ENTRIES as usize * (KEY_BYTES + value_bytes);
    let owned: usize = partitions.iter().map(Partition::bytes).sum();
    let overhead = |bytes: usize| (bytes as f64 - payload as f64) / f64::from(ENTRIES);
    println!(
        "  {what}: {:.1} bytes of overhead per entry resident, {:.1} by the store's own count",
        overhead(resident_bytes() - empty_bytes),
        overhead(owned)
    );
}

fn resident_kib_above(start_bytes: usize) -> usize {
    resident_bytes().saturating_sub(start_bytes) / 1024
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kib.unwrap_or_default() * 1024
}
