//! Is a capture so short, and are its packets so large, that keeping all of them takes less time
//! than reading some of them again?

use tcpwhy_wire::capture::{Event, Reader};

use super::buffer::Buffer;
use super::reading::Reading;
use super::{Input, Inputs};

/// Bytes of the file that are examined, and the average packet size that counts as large.
const LOOKED_AT: u64 = 256 << 10;
const LARGE: u64 = 512;

impl Inputs {
    /// Whether this is one uncompressed file of large packets, with an estimated number of at most
    /// `packets`.
    pub fn is_short(&self, packets: u64) -> bool {
        let [Input { reading: Ok(reading), .. }] = &*self.inputs else { return false };
        packet_len(reading).is_some_and(|[len, mean]| mean >= LARGE && len / mean <= packets)
    }
}

/// The length of a file, and the average length of the packets at its beginning; `None` if it
/// cannot be known.
fn packet_len(reading: &Reading) -> Option<[u64; 2]> {
    let mut source = reading.source_again()?;
    let len = source.searchable_len().ok()??;
    let (mut reader, mut buffer, mut packets) = (Reader::new(), Buffer::small(), 0);
    while reader.offset() < LOOKED_AT {
        let step = reader.next(buffer.unread(), buffer.at_eof());
        let consumed = step.consumed;
        let more = match step.event {
            Event::Packet(_) => {
                packets += 1;
                None
            }
            Event::Skipped => None,
            Event::NeedMore(more) => Some(more),
            Event::Damaged(_) | Event::End => break,
        };
        buffer.consume(consumed);
        if let Some(more) = more {
            buffer.fill(&mut source, more).ok()?;
        }
    }
    Some([len, reader.offset().checked_div(packets)?])
}
