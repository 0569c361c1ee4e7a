//! How long are HTTP/2's own frames, in plain text and in TLS records?
//!
//! Source: RFC 9113, 6; RFC 8446, 5.2; RFC 5288, 3.

/// What a record adds to its contents: nothing, TLS 1.3, TLS 1.2.
pub(super) const RECORDS: [u32; 3] = [0, 22, 29];
pub(super) const SETTINGS_ACK: u32 = 9;
pub(super) const WINDOW_UPDATE: u32 = 13;
pub(super) const PING: u32 = 17;
/// An unencrypted record (RFC 8446, D.4).
pub(super) const CHANGE_CIPHER_SPEC: u32 = 6;
/// A bit for each length of a possible SETTINGS acknowledgement or PING.
pub(super) const FRAME_LENGTHS: u64 = {
    let (mut lengths, mut n) = (0, 0);
    while n < RECORDS.len() {
        let record = RECORDS[n];
        lengths |= 1 << (SETTINGS_ACK + record) | 1 << (PING + record);
        lengths |= 1 << (SETTINGS_ACK + WINDOW_UPDATE + record);
        n += 1;
    }
    lengths
};
/// Those of PING alone.
const PING_LENGTHS: u64 = 1 << PING | 1 << (PING + RECORDS[1]) | 1 << (PING + RECORDS[2]);
/// What ends a session is so long (RFC 8446, 6 and 5.2; RFC 5288, 3): it may answer nothing.
pub(super) const ALERTS: [u64; 2] = [24, 31];
/// OpenSSL's two tickets take 510 bytes; a longer message may be the reply. Source: measured, OpenSSL
/// 3.0.
pub(super) const TICKETS_MAX: u32 = 520;
/// No SETTINGS are this long, even with what a server sends along with them.
pub(super) const LONG_MIN: u32 = 500;
/// One segment hardly ever holds more frames than this, and the sum of more could be any length.
const FRAMES_TOGETHER: u32 = 3;
/// A client that reads a stream sends this many WINDOW_UPDATEs before it hears more. Source: measured, nghttp2 1.52.
const WINDOWS_MAX: u32 = 4;
/// ... except for the WINDOW_UPDATEs of a server. Source: none written down.
const MANY: u32 = 40;

/// The frames that a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holds {
    pub settings: bool,
    pub ping: bool,
    pub more: bool,
}

/// Whether `len` bytes may be a PING and nothing else.
#[inline]
pub(super) const fn is_as_long_as_ping(len: u32) -> bool {
    len < u64::BITS && PING_LENGTHS >> len & 1 == 1
}

pub(super) fn holds(len: u32, record: u32) -> Option<Holds> {
    let sum = |len: u32, most: u32| {
        let counts = (0..=2).flat_map(|pings| (0..=2).map(move |updates| (pings, updates)));
        let fits = |&(pings, updates): &(u32, u32)| {
            (1..=most).contains(&(pings + updates)) && pings * PING + updates * WINDOW_UPDATE == len
        };
        counts.into_iter().find(fits).map(|(pings, updates)| Holds {
            settings: false,
            ping: pings > 0,
            more: pings + updates > 1,
        })
    };
    // Several frames in one record, or two records of one frame each.
    let two = || sum(len.checked_sub(2 * record)?, 2).filter(|holds| record > 0 && holds.more);
    sum(len.checked_sub(record)?, FRAMES_TOGETHER).or_else(two)
}

/// A record of many WINDOW_UPDATEs: a server may send one for each piece that it has read.
pub(super) fn many_windows(len: u32, record: u32) -> Option<Holds> {
    let frames = len.checked_sub(record).filter(|_| record > 0)?;
    let many = (2..=MANY).contains(&(frames / WINDOW_UPDATE)) && frames.is_multiple_of(WINDOW_UPDATE);
    many.then_some(Holds { settings: false, ping: false, more: true })
}

/// The overhead of the TLS record, if `len` bytes are one record of WINDOW_UPDATEs and nothing else.
pub(super) fn record_of_windows(len: u32) -> Option<u32> {
    let holds = |record: &u32| (1..=FRAMES_TOGETHER).any(|windows| record + windows * WINDOW_UPDATE == len);
    RECORDS[1..].iter().copied().find(holds)
}

/// Whether so many bytes, of which these came first, are a window in a record of TLS, and another one.
pub(super) fn are_windows(first: u32, bytes: u64) -> bool {
    let is_window = RECORDS.iter().any(|&record| record > 0 && first == record + WINDOW_UPDATE);
    is_window && bytes == 2 * u64::from(first)
}

/// Whether so many bytes may be nothing but HTTP/2's own frames, not encrypted.
pub(super) fn may_be_windows(bytes: u64) -> bool {
    let windows = (1..=u64::from(WINDOWS_MAX)).any(|windows| bytes == windows * u64::from(WINDOW_UPDATE));
    windows || u32::try_from(bytes).is_ok_and(|len| len == SETTINGS_ACK || holds(len, 0).is_some())
}

/// The index of the record type, if so many bytes may acknowledge SETTINGS.
pub(super) fn acknowledging(len: u32) -> Option<usize> {
    RECORDS
        .iter()
        .position(|record| [SETTINGS_ACK, SETTINGS_ACK + WINDOW_UPDATE].map(|of| of + record).contains(&len))
}

/// Whether so many TLS bytes may be the alert that ends the session, alone or after HTTP/2's GOAWAY
/// without a reason (RFC 9113, 6.8).
pub(super) fn is_goodbye(bytes: u64) -> bool {
    let goaway = |record: u32| u64::from(PING + record);
    ALERTS
        .iter()
        .zip(&RECORDS[1..])
        .any(|(&alert, &record)| bytes == alert || bytes == alert + goaway(record))
}

/// Whether so many TLS bytes may be a PING of HTTP/2.
pub(super) fn is_ping(bytes: u64) -> bool {
    RECORDS[1..].iter().any(|&record| bytes == u64::from(record + PING))
}

/// Whether so many TLS bytes may be nothing but HTTP/2's own frames.
pub(super) fn is_control(bytes: u64) -> bool {
    let of = |record: u32, len: u32| len == record + SETTINGS_ACK || holds(len, record).is_some();
    u32::try_from(bytes).is_ok_and(|len| RECORDS.iter().any(|&record| record > 0 && of(record, len)))
}
