//! The runtime of groups in production: tokio, with a clock that includes the time for which the
//! machine was suspended.
//!
//! A lease guarantees that no other member leads yet. tokio's clock (`CLOCK_MONOTONIC`) stops while
//! a machine is suspended, or while a virtual machine is moved: after an hour, a leader would find
//! its lease still valid, and serve values that other members have changed long ago.
//! `CLOCK_BOOTTIME` does not stop. Sleeping tasks are woken by tokio's clock. Therefore each sleep
//! checks the other clock every [`LOOK_AGAIN`].

use std::future::Future;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use openraft::{AsyncRuntime, OptionalSend, TokioRuntime};
use rustix::time::{ClockId, clock_gettime};

/// The maximum delay of an overdue sleep after a suspension.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Sleeps of at least this length end at a multiple of [`ROUND`].
const ROUNDED_MIN: Duration = Duration::from_millis(16);
/// The groups of a member tick independently, 50 times a second each. With rounding, the ticks of
/// several groups wake the thread once.
const ROUND: Duration = Duration::from_millis(8);

/// An instant since the machine started, suspensions included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootInstant(Duration);

impl openraft::Instant for BootInstant {
    fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        // Neither number is ever negative.
        BootInstant(Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32))
    }
}

impl BootInstant {
    fn rounded_up(self) -> Self {
        let round_ns = ROUND.as_nanos();
        let rounded_ns = self.0.as_nanos().div_ceil(round_ns) * round_ns;
        BootInstant(Duration::from_nanos(u64::try_from(rounded_ns).unwrap_or(u64::MAX)))
    }
}

impl Add<Duration> for BootInstant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        BootInstant(self.0.saturating_add(duration))
    }
}

impl AddAssign<Duration> for BootInstant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for BootInstant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        BootInstant(self.0.saturating_sub(duration))
    }
}

impl SubAssign<Duration> for BootInstant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl Sub for BootInstant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// A sleep until an instant of the boot clock.
pub struct BootSleep {
    deadline: BootInstant,
    sleep: Pin<Box<tokio::time::Sleep>>,
}

impl BootSleep {
    fn until(deadline: BootInstant) -> Self {
        let now = <BootInstant as openraft::Instant>::now();
        let deadline = if deadline - now < ROUNDED_MIN { deadline } else { deadline.rounded_up() };
        let left = deadline - now;
        BootSleep { deadline, sleep: Box::pin(tokio::time::sleep(left.min(LOOK_AGAIN))) }
    }
}

impl Future for BootSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let left = self.deadline - <BootInstant as openraft::Instant>::now();
            if left.is_zero() {
                return Poll::Ready(());
            }
            self.sleep = Box::pin(tokio::time::sleep(left.min(LOOK_AGAIN)));
        }
    }
}

/// A future with a time limit.
pub struct BootTimeout<F> {
    future: Pin<Box<F>>,
    sleep: BootSleep,
}

impl<F: Future> Future for BootTimeout<F> {
    type Output = Result<F::Output, TimeIsOver>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = self.future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(&mut self.sleep).poll(cx).map(|()| Err(TimeIsOver))
    }
}

/// A future did not complete in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it took longer than it may")]
pub struct TimeIsOver;

/// tokio, with the clock of [`BootInstant`]. Groups are started within an existing tokio runtime.
/// This type starts no runtime for them.
#[derive(Debug)]
pub struct BootRuntime(TokioRuntime);

impl AsyncRuntime for BootRuntime {
    type JoinError = <TokioRuntime as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::JoinHandle<T>;
    type Sleep = BootSleep;
    type Instant = BootInstant;
    type TimeoutError = TimeIsOver;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = BootTimeout<T>;
    type ThreadLocalRng = <TokioRuntime as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <TokioRuntime as AsyncRuntime>::Mpsc;
    type Watch = <TokioRuntime as AsyncRuntime>::Watch;
    type Oneshot = <TokioRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        TokioRuntime::spawn(future)
    }

    fn sleep(duration: Duration) -> BootSleep {
        BootSleep::until(<BootInstant as openraft::Instant>::now() + duration)
    }

    fn sleep_until(deadline: BootInstant) -> BootSleep {
        BootSleep::until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> BootTimeout<F> {
        BootTimeout { future: Box::pin(future), sleep: Self::sleep(duration) }
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: BootInstant, future: F) -> BootTimeout<F> {
        BootTimeout { future: Box::pin(future), sleep: BootSleep::until(deadline) }
    }

    fn is_panic(error: &Self::JoinError) -> bool {
        error.is_panic()
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        TokioRuntime::thread_rng()
    }

    fn new(threads: usize) -> Self {
        BootRuntime(TokioRuntime::new(threads))
    }

    fn block_on<F: Future<Output = T>, T>(&mut self, future: F) -> T {
        self.0.block_on(future)
    }
}

#[cfg(test)]
mod tests {
    use openraft::Instant;

    use super::*;

    #[test]
    fn time_goes_on_and_a_sleep_ends_at_its_moment_or_later() {
        BootRuntime::new(1).block_on(async {
            for sleep_ms in [0, 1, 700] {
                let deadline = BootInstant::now() + Duration::from_millis(sleep_ms);
                BootRuntime::sleep_until(deadline).await;
                assert!(BootInstant::now() >= deadline);
            }
        });
    }

    #[test]
    fn what_is_there_in_time_is_returned_and_what_is_not_ends() {
        BootRuntime::new(1).block_on(async {
            let ready = BootRuntime::timeout(Duration::from_secs(3_600), async { 7 });
            assert_eq!(ready.await, Ok(7));
            let never = BootRuntime::timeout(Duration::from_millis(1), std::future::pending::<()>());
            assert_eq!(never.await, Err(TimeIsOver));
        });
    }

    #[test]
    fn a_machine_was_not_up_for_shorter_than_the_clock_that_stops_says() {
        let stops = clock_gettime(ClockId::Monotonic);
        let stops = Duration::new(stops.tv_sec.unsigned_abs(), 0);
        assert!(BootInstant::now() >= BootInstant(stops));
    }
}
