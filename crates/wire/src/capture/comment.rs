//! How does a packet of a pcapng capture get a comment, without changing anything else?
//!
//! The block is copied with one more option (opt_comment); everything else in it stays. Other kinds
//! of blocks do not hold packet comments.

const PACKET: u32 = 2;
const ENHANCED_PACKET: u32 = 6;
/// Type and length.
const HEAD_LEN: usize = 8;
/// Body bytes before the packet, in both kinds of block.
const FIELDS_LEN: usize = 20;
/// A longer comment does not fit an option's length field.
const COMMENT_LEN_MAX: usize = 65_532;

/// The block with a comment before its other options. `None` if it is not a packet block, or one
/// without options.
pub fn with_comment(block: &[u8], comment: &str) -> Option<Vec<u8>> {
    let len = u32::try_from(block.len()).ok()?;
    let field = |at: usize| block.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    // The block has been read before, so its length shows the byte order.
    let is_little = u32::from_le_bytes(field(4)?) == len;
    let number =
        |at: usize| field(at).map(|b| if is_little { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) });
    if number(4)? != len || ![PACKET, ENHANCED_PACKET].contains(&number(0)?) {
        return None;
    }
    let captured = number(HEAD_LEN + 12)? as usize;
    let options = (HEAD_LEN + FIELDS_LEN).checked_add(captured.checked_next_multiple_of(4)?)?;
    let rest = block.get(options..block.len().checked_sub(4)?)?;
    let text = &comment.as_bytes()[..comment.floor_char_boundary(COMMENT_LEN_MAX)];
    let padding = text.len().next_multiple_of(4) - text.len();
    // Without options there is no end-of-options mark either.
    let end: &[u8] = if rest.is_empty() { &[0; 4] } else { &[] };
    let longer = u32::try_from(4 + text.len() + padding + end.len()).ok()?;
    let (short, long) = if is_little {
        (u16::to_le_bytes as fn(u16) -> _, u32::to_le_bytes as fn(u32) -> _)
    } else {
        (u16::to_be_bytes as fn(u16) -> _, u32::to_be_bytes as fn(u32) -> _)
    };
    let total = long(len.checked_add(longer)?);
    let mut out = Vec::with_capacity(block.len() + longer as usize);
    out.extend(&block[..4]);
    out.extend(total);
    out.extend(&block[HEAD_LEN..options]);
    out.extend(short(1));
    out.extend(short(text.len() as u16));
    out.extend(text);
    out.extend(&[0; 3][..padding]);
    out.extend(rest);
    out.extend(end);
    out.extend(total);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of five bytes, as a big-endian machine writes it, with a comment already.
    const BIG: &[u8] = &[
        0, 0, 0, 6, 0, 0, 0, 52, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 9, 0, 0, 0, 5, 0, 0, 0, 60, // fields
        1, 2, 3, 4, 5, 0, 0, 0, // packet
        0, 1, 0, 2, b'h', b'i', 0, 0, 0, 0, 0, 0, // options
        0, 0, 0, 52,
    ];

    #[test]
    fn the_comment_is_put_in_front_and_all_else_stays() {
        let long = with_comment(BIG, "abcde").unwrap_or_default();
        assert_eq!(long.len(), BIG.len() + 12);
        assert_eq!(long[..4], BIG[..4]);
        assert_eq!((&long[4..8], &long[60..]), (&[0, 0, 0, 64][..], &[0, 0, 0, 64][..]));
        assert_eq!(long[8..36], BIG[8..36]);
        assert_eq!(long[36..48], [0, 1, 0, 5, b'a', b'b', b'c', b'd', b'e', 0, 0, 0]);
        assert_eq!(long[48..60], BIG[36..48]);
    }

    #[test]
    fn what_is_no_packet_or_is_cut_gets_none() {
        assert_eq!(with_comment(&[], "a"), None);
        assert_eq!(with_comment(&BIG[..40], "a"), None);
        let mut other = BIG.to_vec();
        other[3] = 5;
        assert_eq!(with_comment(&other, "a"), None);
        let mut liar = BIG.to_vec();
        liar[20..24].fill(0xff);
        assert_eq!(with_comment(&liar, "a"), None);
    }
}
