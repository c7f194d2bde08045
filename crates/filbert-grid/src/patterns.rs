//! Name patterns of map settings: finds the pattern that matches a name best.
//!
//! A pattern has one `*`, which matches any text, including the empty one. The best match is the
//! pattern with the most characters besides the `*`, as in Hazelcast's default matcher.

use crate::errors::GridError;

/// Rejects patterns that can never match as intended.
///
/// # Errors
/// [`GridError::InvalidConfiguration`] for a pattern with more than one `*`.
pub(crate) fn check(pattern: &str) -> Result<(), GridError> {
    if pattern.matches('*').count() > 1 {
        return Err(GridError::InvalidConfiguration(format!("map pattern {pattern:?} has several *, expected one")));
    }
    Ok(())
}

/// The pattern that matches `name` best, if any does.
///
/// # Errors
/// [`GridError::AmbiguousPattern`] if two patterns match equally well.
pub(crate) fn best_match<'a>(
    patterns: impl Iterator<Item = &'a str>,
    name: &str,
) -> Result<Option<&'a str>, GridError> {
    let mut best: Option<(usize, &'a str)> = None;
    let mut rival: Option<&'a str> = None;
    for pattern in patterns {
        let Some(score) = literal_characters_matched(pattern, name) else { continue };
        match best {
            Some((best_score, _)) if score < best_score => {}
            Some((best_score, _)) if score == best_score => rival = Some(pattern),
            _ => {
                best = Some((score, pattern));
                rival = None;
            }
        }
    }
    match (best, rival) {
        (Some((_, one)), Some(other)) => {
            // The patterns come from a hash table. They are sorted, so that the text is always the
            // same.
            let (first, second) = if one <= other { (one, other) } else { (other, one) };
            Err(GridError::AmbiguousPattern {
                name: name.to_owned(),
                first: first.to_owned(),
                second: second.to_owned(),
            })
        }
        (best, _) => Ok(best.map(|(_, pattern)| pattern)),
    }
}

fn literal_characters_matched(pattern: &str, name: &str) -> Option<usize> {
    let (prefix, suffix) = pattern.split_once('*')?;
    let rest = name.strip_prefix(prefix)?;
    rest.ends_with(suffix).then_some(prefix.len() + suffix.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_best(patterns: &[&str], name: &str, expected: Option<&str>) {
        assert_eq!(best_match(patterns.iter().copied(), name), Ok(expected));
    }

    #[test]
    fn the_pattern_with_the_most_literal_characters_wins() {
        check_best(&["orders-*", "orders-eu-*", "*"], "orders-eu-1", Some("orders-eu-*"));
        check_best(&["orders-*", "*-archive"], "orders-archive", Some("*-archive"));
        check_best(&["a*z"], "az", Some("a*z"));
        check_best(&["*"], "", Some("*"));
    }

    #[test]
    fn a_prefix_and_a_suffix_do_not_overlap() {
        check_best(&["aba*aba"], "aba", None);
        check_best(&["aba*ba"], "ababa", Some("aba*ba"));
    }

    #[test]
    fn a_pattern_without_a_star_matches_nothing_but_its_own_name() {
        check_best(&["orders"], "orders-1", None);
    }

    #[test]
    fn two_patterns_that_fit_equally_well_are_refused() {
        let error = best_match(["*-b", "a-*"].into_iter(), "a-b").unwrap_err();
        assert_eq!(
            error.to_string(),
            "map name \"a-b\" matches the patterns \"*-b\" and \"a-*\" equally well, expected one best match"
        );
    }

    #[test]
    fn a_better_pattern_settles_a_draw_of_worse_ones() {
        check_best(&["*-b", "a-*", "a-b*"], "a-b", Some("a-b*"));
        check_best(&["a-b*", "*-b", "a-*"], "a-b", Some("a-b*"));
    }

    #[test]
    fn several_stars_are_a_configuration_error() {
        assert!(check("a*b*").is_err());
        assert!(check("a*b").is_ok());
    }
}
