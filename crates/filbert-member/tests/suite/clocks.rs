//! A member with a clock that is an hour off: it works like any other member, no entry without an
//! expiry is lost, and all members hold the same state.

use std::sync::Arc;

use crate::common::data::{found, have_all, is_whole, put, put_for};
use crate::common::{join_all, listen, listen_in, stop, stop_all, until};
use filbert_grid::{Clock, Environment, Expiry, GridConfig, Millis, SystemClock};
use filbert_member::{Member, MemberSettings};

/// A clock with an offset in milliseconds.
struct Off(SystemClock, i64);

impl Clock for Off {
    fn now(&self) -> Millis {
        self.0.now().plus(self.1)
    }
}

const HOUR_MS: i64 = 3_600_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_whose_clock_is_an_hour_off_is_one_like_others() {
    for off_ms in [HOUR_MS, -HOUR_MS] {
        let environment = Environment { clock: Arc::new(Off(SystemClock::new(), off_ms)), random_seed: 7 };
        let (settings, config) = (MemberSettings::default(), GridConfig::default());
        let mut starting = vec![listen_in(environment, settings.clone(), config.clone()).await.unwrap()];
        for _ in 0..2 {
            starting.push(listen(settings.clone(), config.clone()).await.unwrap());
        }
        let addresses: Vec<String> = starting.iter().map(|member| member.address().to_owned()).collect();
        let mut members = join_all(starting, &addresses).await;
        until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
        let leads = |member: &Member| member.groups().iter().filter(|status| status.leads).count();
        until("each leads its part", || members.iter().all(|member| leads(member) * 3 == member.groups().len())).await;
        {
            let all: Vec<&Member> = members.iter().collect();
            put(&all, 0..200).await;
            // A time to live of three hours: these entries exist whichever member leads next.
            put_for(&all, 200..400, Expiry { ttl_ms: 3 * HOUR_MS, max_idle_ms: 0 }).await;
            assert_eq!(found(&all, 0..400).await.len(), 400);
            let states = |member: &Member| {
                (0..member.groups().len() as u32).map(|it| member.group_state(it)).collect::<Vec<_>>()
            };
            let same = || all.iter().all(|member| states(member) == states(all[0]));
            until("all hold the same", || have_all(&all) && same()).await;
        }
        // Other members lead its groups now, by their own clocks.
        stop(members.remove(0)).await;
        let left: Vec<&Member> = members.iter().collect();
        put(&left, 400..500).await;
        assert_eq!(found(&left, 0..500).await.len(), 500);
        stop_all(members).await;
    }
}
