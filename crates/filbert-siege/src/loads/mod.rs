//! The loads: one table for each kind, and one line for each load where possible.
//!
//! To add a load, add a line with the name for `--only`. The names of all objects that a load
//! creates begin with `siege`, so that they are removed.

// One line per load is the most readable form, even with long statements.
#[rustfmt::skip]
mod full;
#[rustfmt::skip]
mod functions;
mod hazelcast;
#[rustfmt::skip]
mod http;
#[rustfmt::skip]
mod planning;
mod postgres;
#[rustfmt::skip]
mod queries;
mod sessions;

use anyhow::Result;
use tokio::task::JoinSet;

use crate::load::Load;

/// All loads, by kind.
pub(crate) fn all() -> Vec<Load> {
    let kinds = [
        functions::loads(),
        planning::loads(),
        queries::loads(),
        postgres::loads(),
        http::loads(),
        hazelcast::loads(),
        sessions::loads(),
        full::loads(),
    ];
    kinds.into_iter().flatten().collect()
}

/// Runs this number of tasks concurrently and returns their results. The first failure ends all
/// tasks.
async fn crowd<T, F>(count: usize, one: impl Fn(usize) -> F) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for index in 0..count {
        tasks.spawn(one(index));
    }
    let mut all = Vec::with_capacity(count);
    while let Some(result) = tasks.join_next().await {
        all.push(result??);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_different_and_can_be_typed() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|load| load.name).collect();
        assert_eq!(names.len(), all.len(), "two loads have one name");
        let is_plain =
            |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        assert!(names.iter().all(|name| is_plain(name) && name.len() <= 36), "{names:?}");
    }

    #[test]
    fn every_kind_has_a_load_of_the_short_form() {
        use clap::ValueEnum;
        let all = all();
        for kind in crate::load::Kind::value_variants() {
            assert!(all.iter().any(|load| load.kind == *kind && load.is_short), "{kind:?}");
        }
    }
}
