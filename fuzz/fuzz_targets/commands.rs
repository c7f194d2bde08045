//! Commands of a log from a hostile member: each command that was read is written again without a
//! change, and can be applied to a partition.
#![no_main]

use filbert_data::PartitionId;
use filbert_store::{Decoder, Encoder, MapId, MapSettings, NoLayouts, NoObserver, Partition, PartitionSettings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    read_and_apply(data);
    // With a valid version, so that most inputs reach the commands.
    read_and_apply(&[&[1], data].concat());
});

fn read_and_apply(data: &[u8]) {
    let Ok(decoder) = Decoder::new(data) else { return };
    let mut partition = Partition::new(PartitionSettings { id: PartitionId(0), hash_seed: 1, exact_read_times: false });
    partition.create_map(MapId(0), MapSettings::default());
    let mut again = Encoder::default();
    let mut commands = Vec::new();
    for (id, command) in decoder.map_while(Result::ok) {
        again.push(id, &command).expect("what was read can be written");
        partition.apply_logged(&command, &NoLayouts, &mut NoObserver);
        commands.push((id, command));
    }
    let written = again.take();
    let read: Result<Vec<_>, _> = Decoder::new(&written).and_then(Iterator::collect);
    assert_eq!(read, Ok(commands), "what was written is read again");
}
