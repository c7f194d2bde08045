//! Which members hold which group. A pure function: all members come to the same.

use std::cmp::Reverse;

/// Changes who holds the groups so that each is held by as many members as it should be and nobody holds much more than others, with as
/// few moves as that takes. The first of a group's members is to lead it; leaders are spread evenly.
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

/// Gives groups that are held by too few the members that hold least.
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

/// Moves groups from members that hold most to those that hold least, until they differ by one at most.
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

/// Puts one of a group's members first, so that all lead as many groups as others, or one more, as far as who holds what allows.
fn spread_leaders(places: &mut [Vec<u64>], members: &[u64]) {
    while let Some(way) = way_to_less(places, members) {
        for pair in way.windows(2) {
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

/// A way from a member to one that leads two groups less, or fewer: each hands a group that it leads to the next, which holds that group.
/// One hand-over may not be enough: both may share no group.
fn way_to_less(places: &[Vec<u64>], members: &[u64]) -> Option<Vec<u64>> {
    let leads = |id: u64| places.iter().filter(|held| held.first() == Some(&id)).count();
    let mut from: Vec<(usize, u64)> = members.iter().map(|id| (leads(*id), *id)).collect();
    from.sort_by_key(|(led, id)| (Reverse(*led), *id));
    from.iter().find_map(|(most, start)| {
        let mut ways = vec![vec![*start]];
        let mut at = 0;
        // Breadth first: the shortest way, and each member once.
        while let Some(way) = ways.get(at).cloned() {
            at += 1;
            let last = *way.last()?;
            if leads(last) + 2 <= *most {
                return Some(way);
            }
            let holders = places.iter().filter(|held| held.first() == Some(&last)).flat_map(|held| held.iter().skip(1));
            for next in holders {
                if !ways.iter().any(|way| way.contains(next)) {
                    ways.push(way.iter().copied().chain([*next]).collect());
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
