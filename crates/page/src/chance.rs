//! Which text is random? Numbers that hardly ever repeat, such as times that vary by some
//! microseconds.
//!
//! Searching them for repetitions takes most of the time of deflating, and finds nothing. What
//! remains is that a digit takes less than half a byte: such text becomes deflate blocks without
//! any references (RFC 1951, 3.2.7), all with one fixed code, which needs no counting.

/// Bytes of a text that are examined.
const SAMPLE_LEN: usize = 512;
/// Average length of a number with its comma: shorter numbers are few, and repeat.
const NUMBER_LEN: usize = 4;
/// One number in this many may be a repetition.
const AGAIN: usize = 6;
/// The bytes of columns, and the bits that each takes: commas and frequent first digits are most
/// common. One unused symbol makes the code complete.
const BITS: [(u8, u8); 15] = [
    (b'"', 6),
    (b',', 3),
    (b'-', 4),
    (b'0', 4),
    (b'1', 3),
    (b'2', 3),
    (b'3', 4),
    (b'4', 4),
    (b'5', 4),
    (b'6', 4),
    (b'7', 4),
    (b'8', 4),
    (b'9', 4),
    (b'[', 6),
    (b']', 6),
];
/// The end-of-block symbol, after all bytes.
const END: usize = 256;
const END_BITS: u8 = 6;
/// The bits for the code length of each byte: most bytes occur in no column and have length 0.
const BITS_OF_BITS: [(u8, u8); 5] = [(0, 1), (4, 2), (3, 3), (1, 4), (6, 4)];
/// The order of these in the block (RFC 1951, 3.2.7), up to the last that is not 0.
const ORDER: [u8; 18] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1];

/// Whether a text consists of numbers of columns, few of them repeated. If its beginning does not
/// look like that, the rest is not examined.
pub(crate) fn wrote(text: &[u8]) -> bool {
    let sample = &text[..text.len().min(SAMPLE_LEN)];
    let (mut seen, mut numbers, mut again) = ([0_u64; 64], 0, 0);
    for number in sample.split(|byte| *byte == b',') {
        let hash = number.iter().fold(0_u64, |hash, byte| (hash << 5).wrapping_add(hash ^ u64::from(*byte)));
        let hash = (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
        let bit = 1 << (hash % 64);
        again += usize::from(seen[hash / 64] & bit != 0);
        seen[hash / 64] |= bit;
        numbers += 1;
    }
    let is_of_columns = |byte: &u8| byte.wrapping_sub(b'0') < 10 || matches!(byte, b',' | b'-' | b'[' | b']');
    sample.len() == SAMPLE_LEN
        && numbers * NUMBER_LEN <= SAMPLE_LEN
        && again * AGAIN <= numbers
        && text.iter().fold(true, |all, byte| all & is_of_columns(byte))
}

/// The code: bits in the order in which they are written, and their number.
pub(crate) struct Code {
    bytes: [(u8, u8); 256],
    end: (u8, u8),
    /// The beginning of each block.
    head: Bits,
}

impl Default for Code {
    fn default() -> Self {
        let mut lens = [0; END + 1];
        for (byte, bits) in &BITS {
            lens[usize::from(*byte)] = *bits;
        }
        lens[END] = END_BITS;
        let codes = codes(&lens);
        let mut bytes = [(0, 0); 256];
        bytes.copy_from_slice(&codes[..END]);
        Self { bytes, end: codes[END], head: head(&lens) }
    }
}

impl Code {
    /// Writes a block, and ends at a byte boundary.
    pub(crate) fn write(&self, text: &[u8], to: &mut Vec<u8>) {
        // At most six bits per byte.
        to.reserve(text.len() / 4 * 3 + 128);
        let mut bits = Bits { bytes: std::mem::take(to), ..Bits::default() };
        bits.bytes.extend_from_slice(&self.head.bytes);
        (bits.waiting, bits.count) = (self.head.waiting, self.head.count);
        for eight in text.chunks(8) {
            for byte in eight {
                bits.put(self.bytes[usize::from(*byte)]);
            }
            bits.flush();
        }
        bits.put(self.end);
        // An empty stored block starts at a byte boundary.
        bits.put((0, 3));
        bits.flush();
        if bits.count > 0 {
            bits.put((0, 8 - bits.count as u8));
            bits.flush();
        }
        bits.bytes.extend_from_slice(&[0, 0, 0xff, 0xff]);
        *to = bits.bytes;
    }
}

/// Bits, the first ones in the lowest positions.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    waiting: u64,
    count: u32,
}

impl Bits {
    /// With seven bits waiting, there is room for eight codes.
    #[inline]
    fn put(&mut self, (code, bits): (u8, u8)) {
        self.waiting |= u64::from(code) << self.count;
        self.count += u32::from(bits);
    }

    /// Writes the whole bytes.
    #[inline]
    fn flush(&mut self) {
        let whole = self.count / 8;
        let len = self.bytes.len() + whole as usize;
        self.bytes.extend_from_slice(&self.waiting.to_le_bytes());
        self.bytes.truncate(len);
        self.waiting >>= 8 * whole;
        self.count %= 8;
    }
}

/// Not the last block, and with its own code: no lengths and one unused distance; then the code
/// length of each byte, of the end, and of the distance.
fn head(lens: &[u8; END + 1]) -> Bits {
    let mut of = [0; 19];
    for (bits, len) in &BITS_OF_BITS {
        of[usize::from(*bits)] = *len;
    }
    let codes = codes(&of);
    let mut head = Bits::default();
    for (bits, len) in [(0, 1), (2, 2), (0, 5), (0, 5), (ORDER.len() as u8 - 4, 4)] {
        head.put((bits, len));
    }
    head.flush();
    for bits in ORDER {
        head.put((of[usize::from(bits)], 3));
        head.flush();
    }
    for bits in lens.iter().chain(&[1]) {
        head.put(codes[usize::from(*bits)]);
        head.flush();
    }
    head
}

/// Shorter codes first; codes of the same length in the order of their symbols (RFC 1951, 3.2.2);
/// written from their highest bit on.
fn codes<const N: usize>(lens: &[u8; N]) -> [(u8, u8); N] {
    let mut codes = [(0, 0); N];
    let mut next = 0_u8;
    for len in 1..=7 {
        for (code, _) in codes.iter_mut().zip(lens).filter(|(_, of)| **of == len) {
            *code = (next.reverse_bits() >> (8 - len), len);
            next = next.wrapping_add(1);
        }
        next = next.wrapping_shl(1);
    }
    codes
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::DeflateDecoder;

    use super::*;

    fn numbers(count: u64, number: impl Fn(u64) -> i64) -> Vec<u8> {
        let all: Vec<String> = (0..count).map(|i| number(i).to_string()).collect();
        all.join(",").into_bytes()
    }

    /// A different number below a million for each.
    fn any(i: u64) -> i64 {
        (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i64 % 1_000_000
    }

    #[test]
    fn blocks_are_deflate_and_half_as_long() {
        let code = Code::default();
        for count in [0, 1, 2, 3, 1_000, 20_000] {
            let text = numbers(count, |i| if i % 3 == 0 { -any(i) } else { any(i) });
            let text = [text.as_slice(), b"],[3]"].concat();
            let mut blocks = vec![];
            code.write(&text, &mut blocks);
            assert!(blocks.len() < text.len() / 2 + 100, "{} of {}", blocks.len(), text.len());
            code.write(b"", &mut blocks);
            code.write(&text, &mut blocks);
            blocks.extend_from_slice(&[3, 0]);
            let mut read = Vec::new();
            DeflateDecoder::new(blocks.as_slice()).read_to_end(&mut read).expect("blocks");
            assert!(read == [text.as_slice(), &text].concat());
        }
    }

    #[test]
    fn the_code_is_complete() {
        let taken = |bits: u8| 64 >> bits;
        let bytes = BITS.iter().map(|(_, bits)| taken(*bits)).sum::<u32>();
        assert_eq!(bytes + taken(END_BITS), 64);
        assert_eq!(BITS_OF_BITS.iter().map(|(_, bits)| taken(*bits)).sum::<u32>(), 64);
    }

    #[test]
    fn chance_is_known_by_what_does_not_come_again() {
        assert!(wrote(&numbers(1_000, any)));
        assert!(wrote(&numbers(1_000, |i| -any(i))));
        assert!(!wrote(&numbers(1_000, |i| [11_584, 1_448, 23_168][i as usize % 3])));
        assert!(!wrote(&numbers(1_000, |i| any(i) % 10)));
        let with_text = [numbers(1_000, any), b"],\"ns\":[1".to_vec()].concat();
        assert!(!wrote(&with_text) && !wrote(b"") && !wrote(b"7"));
    }
}
