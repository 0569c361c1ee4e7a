//! Are only packets reassembled whose every byte has arrived, in bounded memory, for any fragments
//! in any order?

use arbitrary::{Arbitrary, Unstructured};
use tcpwhy_wire::capture::{LinkType, RawPacket};
use tcpwhy_wire::decode::{Checksum, Fragments, Put, checksum};
use tcpwhy_wire::{Duration, Instant, Skip, decode};

/// The limit of Linux, plus room for one more packet.
const MEMORY_MAX: usize = (4 << 20) + (3 << 16);

#[derive(Arbitrary, Debug)]
struct Piece {
    id: u8,
    is_v6: bool,
    /// In units of eight bytes.
    at: u16,
    len: u16,
    is_last: bool,
    /// This many of its bytes are cut off.
    cut: u8,
    after_ms: u16,
}

/// The byte at this offset of a packet.
fn byte(id: u8, at: usize) -> u8 {
    (at as u8).wrapping_mul(31) ^ (at >> 8) as u8 ^ id
}

pub(super) fn pieces(data: &[u8]) {
    let (mut input, mut fragments, mut now) =
        (Unstructured::new(data), Fragments::default(), Instant::default());
    while let Ok(piece) = Piece::arbitrary(&mut input) {
        now = now + Duration::from_millis(piece.after_ms.into());
        let bytes = piece.packet();
        let data = &bytes[..bytes.len().saturating_sub(piece.cut.into())];
        let original_len = bytes.len() as u32;
        let raw = RawPacket {
            number: 1,
            at: now,
            link: LinkType::RAW,
            data,
            original_len,
            interface: 0,
            dropped: 0,
        };
        if let Put::Whole(whole, pieces) = fragments.put(&raw, Skip::Fragment) {
            assert!(pieces > 0 && whole.data.len() <= whole.original_len as usize);
            let header = if whole.data[0] >> 4 == 4 { 20 } else { 40 };
            let same =
                whole.data[header..].iter().enumerate().all(|(at, known)| *known == byte(piece.id, at));
            assert!(same, "a byte that never came");
            let _ = (decode(&whole), checksum(&whole) == Some(Checksum::Right));
        }
        assert!(fragments.memory() <= MEMORY_MAX, "{} bytes", fragments.memory());
        if input.is_empty() {
            break;
        }
    }
}

impl Piece {
    fn packet(&self) -> Vec<u8> {
        let at = usize::from(self.at % 8_192) * 8;
        let len = usize::from(self.len) % 3_000;
        let payload = (at..at + len).map(|at| byte(self.id, at));
        let more = u16::from(!self.is_last);
        let mut out = Vec::new();
        if self.is_v6 {
            out.extend([0x60, 0, 0, 0]);
            out.extend((len as u16 + 8).to_be_bytes());
            out.extend([44, 64]);
            out.extend([0xfd; 32]);
            out.extend([6, 0]);
            out.extend((at as u16 | more).to_be_bytes());
            out.extend([0, 0, 0, self.id]);
        } else {
            out.extend([0x45, 0]);
            out.extend((20 + len as u16).to_be_bytes());
            out.extend([0, self.id]);
            out.extend(((at / 8) as u16 | more << 13).to_be_bytes());
            out.extend([64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        out.extend(payload);
        out
    }
}
