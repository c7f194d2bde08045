//! Many calls in flight from one task, with results in the order of the calls.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

/// Keeps up to `depth` calls in flight.
///
/// A [`Call`](crate::Call) is sent when it is created; [`add`](Pipelining::add) takes ownership of
/// it and returns when another call may be added. No task is spawned and nothing is allocated per
/// call.
///
/// ```no_run
/// # async fn example(
/// #     map: filbert_client::Map<i32, String>,
/// # ) -> Result<(), filbert_client::ClientError> {
/// use filbert_client::Pipelining;
///
/// let mut pipeline = Pipelining::new(100);
/// for key in 0..1000 {
///     pipeline.add(map.get(&key)).await;
/// }
/// for value in pipeline.results().await {
///     let _value: Option<String> = value?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Pipelining<F: Future + Unpin> {
    depth: usize,
    /// The unfinished futures, each with the index of its result.
    running: VecDeque<(usize, F)>,
    results: Vec<Option<F::Output>>,
}

impl<F: Future + Unpin> Pipelining<F> {
    /// Creates a pipeline for `depth` calls in flight, at least one.
    pub fn new(depth: usize) -> Self {
        let depth = depth.max(1);
        Self { depth, running: VecDeque::with_capacity(depth), results: Vec::new() }
    }

    /// Adds a call and returns when fewer than `depth` calls are in flight. There are never more
    /// than `depth` calls in flight. A pipeline of depth 1 executes one call after the other.
    ///
    /// # Cancel safety
    ///
    /// The call is added at the first poll. Dropping the future afterwards loses nothing.
    pub async fn add(&mut self, call: F) {
        self.running.push_back((self.results.len(), call));
        self.results.push(None);
        if self.running.len() >= self.depth {
            let room = self.depth - 1;
            poll_fn(|context| self.poll_until(context, room)).await;
        }
    }

    /// The number of calls in flight.
    pub fn in_flight(&self) -> usize {
        self.running.len()
    }

    /// Waits for all calls and returns their results in the order in which they were added. The
    /// pipeline is then empty and can be used again.
    pub async fn results(&mut self) -> Vec<F::Output> {
        poll_fn(|context| self.poll_until(context, 0)).await;
        // All results are present when no call is running.
        std::mem::take(&mut self.results).into_iter().flatten().collect()
    }

    /// Ready when at most `at_most` calls are in flight. Polls the oldest call first, because it
    /// usually finishes first. Polls the other calls only if the oldest is pending.
    fn poll_until(&mut self, context: &mut Context<'_>, at_most: usize) -> Poll<()> {
        let mut at = 0;
        while self.running.len() > at_most {
            let Some((place, call)) = self.running.get_mut(at) else { return Poll::Pending };
            match Pin::new(call).poll(context) {
                Poll::Ready(result) => {
                    if let Some(place) = self.results.get_mut(*place) {
                        *place = Some(result);
                    }
                    self.running.remove(at);
                }
                Poll::Pending => at += 1,
            }
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn results_come_in_the_order_of_adding() {
        let mut pipeline = Pipelining::new(3);
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..3).map(|_| oneshot::channel::<usize>()).unzip();
        let mut receivers = receivers.into_iter();
        pipeline.add(receivers.next().unwrap()).await;
        pipeline.add(receivers.next().unwrap()).await;
        assert_eq!(pipeline.in_flight(), 2);
        for (number, sender) in senders.into_iter().enumerate().rev() {
            sender.send(number).unwrap();
        }
        pipeline.add(receivers.next().unwrap()).await;
        let results: Vec<usize> = pipeline.results().await.into_iter().map(Result::unwrap).collect();
        assert_eq!(results, [0, 1, 2]);
    }

    #[tokio::test]
    async fn add_waits_while_depth_calls_are_in_flight_and_goes_on_when_any_of_them_is_done() {
        let mut pipeline = Pipelining::new(2);
        let (first, never_first) = oneshot::channel::<u8>();
        let (second, soon) = oneshot::channel::<u8>();
        pipeline.add(never_first).await;
        {
            let mut add = std::pin::pin!(pipeline.add(soon));
            let polled = poll_fn(|context| Poll::Ready(add.as_mut().poll(context))).await;
            assert!(polled.is_pending());
            second.send(2).unwrap();
            add.await;
        }
        assert_eq!(pipeline.in_flight(), 1);
        first.send(1).unwrap();
        assert_eq!(pipeline.results().await, [Ok(1), Ok(2)]);
        assert!(pipeline.results().await.is_empty());
    }

    #[tokio::test]
    async fn a_pipeline_of_depth_0_still_makes_one_call_at_a_time() {
        let mut pipeline = Pipelining::new(0);
        pipeline.add(std::future::ready(1)).await;
        assert_eq!(pipeline.in_flight(), 0);
        assert_eq!(pipeline.results().await, [1]);
    }
}
