//! The placement of groups on members. A pure function: all members compute the same placement.

use std::cmp::Reverse;

/// Changes the placement of the groups, so that each group has the wanted number of replicas and
/// the replicas are spread evenly, with few moves. The first member of a group is to lead it.
/// Leaders are spread evenly.
pub(crate) fn place(places: &mut Vec<Vec<u64>>, groups: u32, replicas: u32, members: &[u64]) {
    places.resize(groups as usize, Vec::new());
    let wanted = (replicas.max(1) as usize).min(members.len());
    for held in places.iter_mut() {
        held.retain(|id| members.contains(id));
        held.truncate(wanted);
    }
    fill(places, wanted, members);
    level(places, members);
    spread_leaders(places, members);
}

fn load(places: &[Vec<u64>], member: u64) -> usize {
    places.iter().filter(|held| held.contains(&member)).count()
}

/// Adds the least loaded members to groups that have too few.
fn fill(places: &mut [Vec<u64>], wanted: usize, members: &[u64]) {
    for at in 0..places.len() {
        while let Some(held) = places.get(at).filter(|held| held.len() < wanted) {
            let free = members.iter().filter(|id| !held.contains(id));
            let Some(least) = free.copied().min_by_key(|id| (load(places, *id), *id)) else { break };
            if let Some(held) = places.get_mut(at) {
                held.push(least);
            }
        }
    }
}

/// Moves groups from the most loaded member to the least loaded one, until the loads differ by at
/// most one.
fn level(places: &mut [Vec<u64>], members: &[u64]) {
    loop {
        let by_load = |id: &&u64| (load(places, **id), **id);
        let (Some(most), Some(least)) = (members.iter().max_by_key(by_load), members.iter().min_by_key(by_load)) else {
            return;
        };
        if load(places, *most) <= load(places, *least) + 1 {
            return;
        }
        let movable = places.iter_mut().find(|held| held.contains(most) && !held.contains(least));
        let Some(place) = movable.and_then(|held| held.iter_mut().find(|id| **id == *most)) else { return };
        *place = *least;
    }
}

/// Reorders the members of groups, so that each member leads as many groups as the others, or one
/// more, as far as the placement allows.
fn spread_leaders(places: &mut [Vec<u64>], members: &[u64]) {
    while let Some(path) = path_to_less_loaded(places, members) {
        for pair in path.windows(2) {
            let &[from, to] = pair else { continue };
            let group = places.iter_mut().find(|held| held.first() == Some(&from) && held.contains(&to));
            if let Some(held) = group
                && let Some(place) = held.iter().position(|id| *id == to)
            {
                held.swap(0, place);
            }
        }
    }
    debug_assert!(places.iter().flatten().all(|id| members.contains(id)));
}

/// Returns a chain of members, from a member to one that leads at least two groups less. Each
/// member of the chain hands a group that it leads to the next member, which holds that group. A
/// single hand-over may not be enough, as the first and the last member may share no group.
fn path_to_less_loaded(places: &[Vec<u64>], members: &[u64]) -> Option<Vec<u64>> {
    let leads = |id: u64| places.iter().filter(|held| held.first() == Some(&id)).count();
    let mut from: Vec<(usize, u64)> = members.iter().map(|id| (leads(*id), *id)).collect();
    from.sort_by_key(|(led, id)| (Reverse(*led), *id));
    from.iter().find_map(|(most, start)| {
        let mut paths = vec![vec![*start]];
        let mut at = 0;
        // Breadth first: finds the shortest chain, and visits each member once.
        while let Some(path) = paths.get(at).cloned() {
            at += 1;
            let last = *path.last()?;
            if leads(last) + 2 <= *most {
                return Some(path);
            }
            let holders = places.iter().filter(|held| held.first() == Some(&last)).flat_map(|held| held.iter().skip(1));
            for next in holders {
                if !paths.iter().any(|path| path.contains(next)) {
                    paths.push(path.iter().copied().chain([*next]).collect());
                }
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(places: &[Vec<u64>], members: &[u64], replicas: u32) {
        let wanted = (replicas as usize).min(members.len());
        for held in places {
            assert_eq!(held.len(), wanted);
            assert!(held.iter().all(|id| members.contains(id)));
            let mut once = held.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), wanted, "a member holds a group once");
        }
        let loads: Vec<usize> = members.iter().map(|id| load(places, *id)).collect();
        let differ = |counts: &[usize]| counts.iter().max().unwrap_or(&0) - counts.iter().min().unwrap_or(&0);
        assert!(differ(&loads) <= 1, "{loads:?}");
        let leads: Vec<usize> =
            members.iter().map(|id| places.iter().filter(|held| held.first() == Some(id)).count()).collect();
        assert!(wanted < 2 || differ(&leads) <= 2, "{leads:?}");
    }

    #[test]
    fn three_members_hold_all_and_lead_a_third_each() {
        let mut places = Vec::new();
        place(&mut places, 24, 3, &[1, 2, 3]);
        let leads: Vec<usize> =
            (1..=3).map(|id| places.iter().filter(|held| held.first() == Some(&id)).count()).collect();
        assert_eq!(leads, [8, 8, 8]);
    }

    #[test]
    fn a_member_that_comes_takes_no_more_than_its_part() {
        let mut places = Vec::new();
        place(&mut places, 24, 3, &[1, 2, 3]);
        let before = places.clone();
        place(&mut places, 24, 3, &[1, 2, 3, 4]);
        let moved: usize = before
            .iter()
            .zip(&places)
            .map(|(before, after)| after.iter().filter(|id| !before.contains(id)).count())
            .sum();
        assert_eq!(moved, 18);
    }

    proptest! {
        #[test]
        fn members_come_and_go(changes in prop::collection::vec(prop::collection::btree_set(1..9_u64, 1..8), 1..8),
            groups in 1..40_u32, replicas in 1..6_u32)
        {
            let mut places = Vec::new();
            for members in changes {
                let members: Vec<u64> = members.into_iter().collect();
                place(&mut places, groups, replicas, &members);
                check(&places, &members, replicas);
            }
        }
    }
}
