//! Where do packets begin again in the middle of a capture?
//!
//! Records have no mark, so that one is believed only where it leads to the next, and that to the next, over a stretch that
//! is longer than any packet: what a packet carries may look like records, but not beyond its own end.

/// A chain of records over so many bytes is believed. No packet is longer that anybody sends (`GSO_MAX_SIZE` is 512 KiB,
/// captures of 64 KiB and more are rare already), and a chain inside of one ends with it.
const BELIEVED_LEN: usize = 512 << 10;
/// At the end of the capture, and where the last record is cut off, so many records are believed.
const BELIEVED_RECORDS: usize = 4;

/// A buffer of this length has the begin of a packet that can be found, unless the capture has gone wrong there.
pub const RESYNC_LEN: usize = 2 * BELIEVED_LEN;

/// The first place of which it is certain that a record begins there. `record_len` says how long the record is that
/// starts with these bytes, or `None` where none can. Records start at multiples of `step`.
pub(super) fn find(
    buf: &[u8],
    at_eof: bool,
    step: usize,
    record_len: impl Fn(&[u8]) -> Option<usize>,
) -> Option<usize> {
    // Chains that meet go on alike: each place is looked at once, whatever the bytes.
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
            // The chain may have begun inside of a packet, with a header made to lead out of it.
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

    /// Records of one byte of length and so many bytes, zero for "none".
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
        // Each place leads to the next, and all of them to a wrong end: looked at once, this takes no time.
        let mut leads = vec![1; BELIEVED_LEN - 1];
        leads.push(0);
        assert_eq!(find(&leads, true, 1, len), None);
    }
}
