//! Where does the next packet begin, from the middle of a capture?
//!
//! Records have no mark, so a record is accepted only if it leads to the next one, and so on over a
//! stretch longer than any packet: payload may look like records, but not beyond its own packet's
//! end.

/// A chain of records over this many bytes is accepted. No packet in use is longer (`GSO_MAX_SIZE`
/// is 512 KiB, and captured packets of 64 KiB or more are already rare), and a chain inside a
/// packet ends with it.
const BELIEVED_LEN: usize = 512 << 10;
/// At the end of the capture, and if the last record is cut off, this many records are enough.
const BELIEVED_RECORDS: usize = 4;

/// A buffer of this length contains the beginning of a packet that can be found, unless the capture
/// is damaged there.
pub const RESYNC_LEN: usize = 2 * BELIEVED_LEN;

/// The first place at which a record certainly begins. `record_len` returns the length of the
/// record that starts with these bytes, or `None` if none can. Records start at multiples of
/// `step`.
pub(super) fn find(
    buf: &[u8],
    at_eof: bool,
    step: usize,
    record_len: impl Fn(&[u8]) -> Option<usize>,
) -> Option<usize> {
    // Chains that meet continue alike: each place is examined once, whatever the bytes.
    let mut refuted = vec![false; buf.len() + 1];
    let mut chain = Vec::new();
    for start in (0..buf.len()).step_by(step) {
        chain.clear();
        let (mut at, mut longest) = (start, 0);
        let believed = loop {
            let rest = &buf[at..];
            if refuted[at] {
                break false;
            }
            if at - start >= BELIEVED_LEN {
                break true;
            }
            if rest.is_empty() {
                break at_eof && chain.len() >= BELIEVED_RECORDS;
            }
            let Some(len) = record_len(rest) else { break false };
            chain.push(at);
            if len > rest.len() {
                break at_eof && chain.len() > BELIEVED_RECORDS;
            }
            longest = longest.max(len);
            at += len;
        };
        if believed {
            // The chain may have begun inside a packet, with a crafted header that leads out of it.
            return chain.into_iter().find(|at| *at >= start + longest);
        }
        for at in &chain {
            refuted[*at] = true;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records whose first byte is their length, zero for "none".
    fn len(bytes: &[u8]) -> Option<usize> {
        bytes.first().map(|len| usize::from(*len)).filter(|len| *len > 0)
    }

    #[test]
    fn a_chain_is_believed_where_it_is_long_or_ends_with_the_capture() {
        let records = [&[9, 0, 0, 0, 0, 0, 0, 0, 0][..]; 100].concat();
        assert_eq!(find(&records, true, 1, len), Some(9));
        assert_eq!(find(&records[3..], true, 1, len), Some(6 + 9));
        assert_eq!(find(&records, false, 1, len), None, "there may be something else behind it");
        assert_eq!(find(&records[..32], true, 1, len), None, "three records and a part of one");
        assert_eq!(find(&records[..41], true, 1, len), Some(9));
        let long = records.repeat(RESYNC_LEN / 900 + 1);
        assert_eq!(find(&long[4..RESYNC_LEN], false, 1, len), Some(5 + 9));
    }

    #[test]
    fn a_header_inside_of_a_packet_that_leads_out_of_it_is_not_given() {
        let mut records = [&[9, 0, 0, 0, 0, 0, 0, 0, 0][..]; 100].concat();
        records[5] = 4;
        assert_eq!(find(&records[4..], true, 1, len), Some(14), "not the one at 1, nor its own at 5");
    }

    #[test]
    fn nothing_is_found_in_what_leads_nowhere() {
        assert_eq!(find(&[], true, 1, len), None);
        assert_eq!(find(&vec![0; 1 << 20], true, 1, len), None);
        // Each place leads to the next, and all of them to a wrong end: examined once each, this
        // takes no time.
        let mut leads = vec![1; BELIEVED_LEN - 1];
        leads.push(0);
        assert_eq!(find(&leads, true, 1, len), None);
    }
}
