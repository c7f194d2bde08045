//! Commands of a log from a member that wants harm: what is read is written again alike, and can be applied to a partition.
#![no_main]

use filbert_data::PartitionId;
use filbert_store::{Decoder, Encoder, MapId, MapSettings, NoLayouts, NoObserver, Partition, PartitionSettings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    read_and_apply(data);
    // Most inputs get past the version.
    read_and_apply(&[&[1], data].concat());
});

fn read_and_apply(data: &[u8]) {
    let Ok(decoder) = Decoder::new(data) else { return };
    let mut partition = Partition::new(PartitionSettings { id: PartitionId(0), hash_seed: 1 });
    partition.create_map(MapId(0), MapSettings::default());
    let mut again = Encoder::default();
    for command in decoder {
        let Ok((id, command)) = command else { break };
        again.push(id, &command).expect("what was read can be written");
        partition.apply_logged(&command, &NoLayouts, &mut NoObserver);
    }
    let written = again.take();
    assert!(written.is_empty() || data.starts_with(&written), "there is one way to write a command");
}
