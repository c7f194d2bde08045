//! Reads that are sent to the leader of their group, and the answers to them.
//!
//! A read changes nothing, so it is sent again until a leader has answered. Must not know the
//! content of reads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use filbert_cluster::{MemberId, TransportError};
use filbert_grid::replication::{GroupId, SubmitError};
use filbert_links::{Channel, Refusal};
use tokio::time::{sleep, timeout};

use crate::forwarding::Forwarding;

/// The first byte of a request that reads. See [`FORWARDED`](crate::forwarding::FORWARDED).
pub(crate) const READ: u8 = 0xf1;
/// The version of the header. The header precedes the read, which has a version of its own.
const VERSION: u8 = 1;
/// The bytes ahead of the read: the first byte, the version, and the version of the registry that
/// the sender knows.
const HEAD_BYTES: usize = 1 + 1 + 8;
/// The maximum time without an answer: longer than a failover takes.
const SEARCH_MAX: Duration = Duration::from_secs(5);
/// The pause between two attempts, and between two checks whether the leader is still the same.
const PAUSE: Duration = Duration::from_millis(20);

/// Sends reads to leaders, and answers the reads of other members.
pub(crate) struct LeaderReads {
    pub(crate) to: Arc<Forwarding>,
}

impl LeaderReads {
    /// The answer of the leader of a group to a read.
    ///
    /// # Errors
    /// No leader was found within the time of a failover, or it has not answered.
    pub(crate) async fn read(&self, group: GroupId, read: &[u8]) -> Result<Vec<u8>, SubmitError> {
        let begin = Instant::now();
        loop {
            let hint = match self.to.leader(group) {
                Some(leader) if leader == self.to.member => match self.read_here(read) {
                    Ok(answer) => return Ok(answer),
                    Err(why) => why,
                },
                Some(leader) => match self.read_at(leader, group, read, begin).await {
                    Ok(answer) => return Ok(answer.into()),
                    Err(why) => why,
                },
                None => "no leader of it is known".to_owned(),
            };
            if begin.elapsed() > SEARCH_MAX {
                return Err(SubmitError::NotLeader { group, hint });
            }
            sleep(PAUSE).await;
        }
    }

    fn read_here(&self, read: &[u8]) -> Result<Vec<u8>, String> {
        let Some(grid) = self.to.grid.get() else { return Err("the member is shutting down".to_owned()) };
        grid.answer_read(read).map_err(|error| error.to_string())
    }

    /// Sends a read to a leader. Stops waiting for the answer when another member leads: a member
    /// that is stopped does not answer, and keeps its connections.
    async fn read_at(&self, leader: MemberId, group: GroupId, read: &[u8], begin: Instant) -> Result<Bytes, String> {
        let mut answer = self.to.links.call(leader, Channel::Requests, self.write_request(read));
        while begin.elapsed() <= SEARCH_MAX {
            if let Ok(answer) = timeout(PAUSE, &mut answer).await {
                return answer.map_err(|error: TransportError| error.to_string());
            }
            if self.to.leader(group) != Some(leader) {
                return Err(format!("member {leader} led it until a moment ago"));
            }
        }
        Err(format!("member {leader} leads it, and does not answer"))
    }

    fn write_request(&self, read: &[u8]) -> Bytes {
        let mut out = BytesMut::with_capacity(HEAD_BYTES + read.len());
        out.put_u8(READ);
        out.put_u8(VERSION);
        out.put_u64_le(self.to.views.registry_version());
        out.put_slice(read);
        out.freeze()
    }

    /// Answers a read of another member.
    pub(crate) async fn answer(&self, request: Bytes) -> Result<Bytes, Refusal> {
        let broken = || Refusal("a read of another member cannot be decoded".to_owned());
        let version = request.get(1).copied().ok_or_else(broken)?;
        if version != VERSION {
            return Err(Refusal(format!("a read was sent in version {version}, expected version {VERSION}")));
        }
        let mut head = request.get(2..HEAD_BYTES).ok_or_else(broken)?;
        // The read may be of a map that was created recently.
        if timeout(SEARCH_MAX, self.to.followed.reached(head.get_u64_le())).await.is_err() {
            return Err(Refusal("the registry that the read was made under is not known here yet".to_owned()));
        }
        let answer = self.read_here(request.get(HEAD_BYTES..).unwrap_or_default()).map_err(Refusal)?;
        Ok(answer.into())
    }
}
