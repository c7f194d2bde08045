//! The name that was probably meant.

/// Names longer than this are not compared: the time grows with the product of the lengths.
const CHARACTERS_MAX: usize = 128;

/// The nearest of some names to one that is not among them: the same but for case, else within a third of its length in
/// letters changed, left out, put in or swapped.
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
