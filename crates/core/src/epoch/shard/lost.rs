//! To which connection does a segment belong that its receiver drops, and what of it counts?

use tcpwhy_wire::Segment;

use super::{FINISHED, Shard};
use crate::flow::ends::CLIENT;

impl Shard {
    /// What counts of a segment with a wrong checksum: it begins no connection and ends none.
    #[cold]
    pub(super) fn as_lost(&self, hash: u32, segment: &Segment) -> Option<Segment> {
        let slot = self.table.find(hash, |slot| {
            slot < FINISHED && {
                let [client, server] = self.connections.get(slot).ends.get();
                [[client, server], [server, client]].contains(&[segment.src, segment.dst])
            }
        })?;
        let connection = self.connections.get(slot);
        connection.as_lost(segment, usize::from(segment.src != connection.ends.end(CLIENT)))
    }
}
