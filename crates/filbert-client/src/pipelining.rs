//! Many calls in flight from one task, their results in the order in which they were added.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

/// Keeps up to `depth` calls in flight.
///
/// A [`Call`](crate::Call) is sent when it is made; [`add`](Pipelining::add) takes it over and returns when there is
/// room for another one. No task is spawned and nothing is allocated per call.
///
/// ```no_run
/// # async fn example(map: filbert_client::Map<i32, String>) -> Result<(), filbert_client::ClientError> {
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
    /// Futures that are not finished, with their places among the results.
    running: VecDeque<(usize, F)>,
    results: Vec<Option<F::Output>>,
}

impl<F: Future + Unpin> Pipelining<F> {
    /// Room for `depth` calls in flight, at least one.
    pub fn new(depth: usize) -> Self {
        let depth = depth.max(1);
        Self { depth, running: VecDeque::with_capacity(depth), results: Vec::new() }
    }

    /// Takes a call over, and returns when fewer than `depth` are in flight: so there are never more than `depth`, and
    /// a pipeline of depth 1 is the same as one call after the other.
    ///
    /// # Cancel safety
    ///
    /// The call is taken over at the first poll; dropping the future afterwards loses nothing.
    pub async fn add(&mut self, call: F) {
        self.running.push_back((self.results.len(), call));
        self.results.push(None);
        if self.running.len() >= self.depth {
            let room = self.depth - 1;
            poll_fn(|context| self.poll_until(context, room)).await;
        }
    }

    /// Calls in flight.
    pub fn in_flight(&self) -> usize {
        self.running.len()
    }

    /// Waits for all calls and returns their results in the order of adding. The pipeline is empty again and can be
    /// used further.
    pub async fn results(&mut self) -> Vec<F::Output> {
        poll_fn(|context| self.poll_until(context, 0)).await;
        // Every place is filled when nothing is running.
        std::mem::take(&mut self.results).into_iter().flatten().collect()
    }

    /// Ready when at most `at_most` calls are in flight. The oldest is looked at first, and mostly finishes first; the
    /// others are only looked at when it is not.
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
