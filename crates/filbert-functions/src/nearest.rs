//! Suggestions for misspelt names.

/// Longer names are not compared: the time grows with the product of the lengths.
const CHARACTERS_MAX: usize = 128;

/// The most similar of some names to an unknown name: equal except for case, otherwise with an edit
/// distance of at most a third of its length. An edit changes, omits, inserts or swaps characters.
pub fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let length = name.chars().count();
    if length > CHARACTERS_MAX {
        return None;
    }
    let lower = name.to_lowercase();
    let far = (length / 3).max(1);
    names
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= far)
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
