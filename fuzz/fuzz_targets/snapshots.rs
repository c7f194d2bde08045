//! Pages of a snapshot from a hostile member: unchanged, and as the items of a valid frame with a
//! valid checksum. If a partition results, a snapshot of it must give the same partition.
#![no_main]

use filbert_data::PartitionId;
use filbert_store::{Import, NoLayouts, Partition, PartitionSettings};
use libfuzzer_sys::fuzz_target;

const SETTINGS: PartitionSettings = PartitionSettings { id: PartitionId(0), hash_seed: 1, exact_read_times: false };
/// The head of a group's snapshot that has no last entry, no members and no origins.
const HEAD: [u8; 15] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fuzz_target!(|data: &[u8]| {
    let _refused = Import::new(SETTINGS).page(data);
    filbert_cluster::fuzz::read_snapshot(data.chunks(64));
    let one = vec![framed(0, true, data)];
    let (first, last) = data.split_at(data.len() / 2);
    for pages in [one, vec![framed(0, false, first), framed(1, true, last)]] {
        take_over(&pages);
        // As a group sends them: after a header, each with its partition.
        let framed: Vec<Vec<u8>> = pages.iter().map(|page| [&[0; 4], page.as_slice()].concat()).collect();
        let pages = framed.iter().map(Vec::as_slice);
        filbert_cluster::fuzz::read_snapshot([&HEAD as &[u8]].into_iter().chain(pages).chain([&[] as &[u8]]));
    }
});

fn take_over(pages: &[Vec<u8>]) {
    let mut import = Import::new(SETTINGS);
    if pages.iter().try_for_each(|page| import.page(page)).is_err() {
        return;
    }
    let mut partition = import.finish(&NoLayouts).expect("the last page has come");
    let state = partition.logged_state();
    let again = copied(&mut partition);
    assert_eq!(again.logged_state(), state, "a snapshot of a partition is the same");
}

fn copied(partition: &mut Partition) -> Partition {
    assert!(partition.begin_export());
    let mut import = Import::new(SETTINGS);
    let (mut page, mut more) = (Vec::new(), true);
    while more {
        more = partition.export_page(&mut page, 64);
        import.page(&page).expect("what a partition writes can be read");
    }
    import.finish(&NoLayouts).expect("the last page has come")
}

/// A page as `filbert_store` frames it.
fn framed(number: u64, is_last: bool, items: &[u8]) -> Vec<u8> {
    let mut page = b"FbSn".to_vec();
    page.extend_from_slice(&1u16.to_le_bytes());
    page.extend_from_slice(&u16::from(is_last).to_le_bytes());
    page.extend_from_slice(&number.to_le_bytes());
    let crc = crc32fast::hash(&[&page, items].concat());
    page.extend_from_slice(&crc.to_le_bytes());
    page.extend_from_slice(items);
    page
}
