//! What does the kernel itself know about a connection? `TCP_INFO`, from a socket or as sock_diag's
//! attribute.
//!
//! The structure only ever grows at its end (include/uapi/linux/tcp.h), and every C library has a
//! different length of it. So it is read by offset from the bytes that the kernel returned, and
//! fields that an older kernel lacks are `None`.

use std::os::fd::AsFd;

use crate::sys;

/// Defines the fields once: name, type in the kernel's structure, offset.
macro_rules! tcp_info {
    ($($(#[$doc:meta])* $field:ident: $kind:ty = $offset:literal,)*) => {
        /// The kernel's view of one connection, with the kernel's own names. When serialised, a
        /// field that is left out is zero, and `null` is a field that the kernel lacks.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct TcpInfo {
            $($(#[$doc])*
            #[cfg_attr(feature = "serde", serde(default = "zero", skip_serializing_if = "is_zero"))]
            pub $field: Option<$kind>,)*
        }

        impl TcpInfo {
            /// Parses `bytes`, in this machine's byte order.
            pub fn parse(bytes: &[u8]) -> Self {
                Self { $($field: bytes.get($offset..).and_then(|rest| rest.first_chunk()).map(|b| <$kind>::from_ne_bytes(*b)),)* }
            }

            #[cfg(test)]
            const LAYOUT: &'static [(&'static str, usize, usize)] =
                &[$((stringify!($field), $offset, size_of::<$kind>()),)*];
        }
    };
}

tcp_info! {
    /// `TCP_ESTABLISHED` = 1, ...
    state: u8 = 0,
    /// Open, Disorder, CWR, Recovery, Loss: 0 to 4.
    ca_state: u8 = 1,
    /// Retransmission timeouts in a row without an answer.
    retransmits: u8 = 2,
    /// Zero-window probes in a row without an answer.
    probes: u8 = 3,
    /// Exponent of the retransmission timer's backoff.
    backoff: u8 = 4,
    /// Time stamps 1, SACK 2, window scaling 4, ECN 8.
    options: u8 = 5,
    /// Window scale exponents: two fields of four bits; see [`TcpInfo::rcv_wscale`].
    window_scales: u8 = 6,
    /// Bit 0: the delivery rate was measured while the application had nothing more to send.
    delivery_flags: u8 = 7,
    /// Retransmission timeout, us.
    rto: u32 = 8,
    /// Delayed acknowledgement timeout, us.
    ato: u32 = 12,
    /// MSS for sending, bytes.
    snd_mss: u32 = 16,
    /// Estimate of the peer's segment size, bytes.
    rcv_mss: u32 = 20,
    /// Segments in flight.
    unacked: u32 = 24,
    /// Segments selectively acknowledged.
    sacked: u32 = 28,
    /// Segments believed lost.
    lost: u32 = 32,
    /// Segments retransmitted and still in flight.
    retrans: u32 = 36,
    /// Time since data was last sent, ms.
    last_data_sent: u32 = 44,
    /// Time since data was last received, ms.
    last_data_recv: u32 = 52,
    /// Time since an acknowledgement was last received, ms.
    last_ack_recv: u32 = 56,
    /// Path MTU, bytes.
    pmtu: u32 = 60,
    /// How far the advertised window may grow now, bytes.
    rcv_ssthresh: u32 = 64,
    /// Smoothed round trip, us.
    rtt: u32 = 68,
    /// Its variation, us.
    rttvar: u32 = 72,
    /// Slow start threshold, segments.
    snd_ssthresh: u32 = 76,
    /// Congestion window, segments.
    snd_cwnd: u32 = 80,
    /// MSS announced to the peer, bytes.
    advmss: u32 = 84,
    /// Reordering tolerated, segments.
    reordering: u32 = 88,
    /// Round trip as the receiver estimates it, us.
    rcv_rtt: u32 = 92,
    /// The target of receive buffer tuning, bytes.
    rcv_space: u32 = 96,
    /// Segments retransmitted over the connection's life.
    total_retrans: u32 = 100,
    /// Pacing rate, bytes/s; all ones is none.
    pacing_rate: u64 = 104,
    /// Bytes acknowledged by the peer.
    bytes_acked: u64 = 120,
    /// Bytes received.
    bytes_received: u64 = 128,
    /// Segments sent.
    segs_out: u32 = 136,
    /// Segments received.
    segs_in: u32 = 140,
    /// Bytes written and not yet sent.
    notsent_bytes: u32 = 144,
    /// Smallest round trip, us.
    min_rtt: u32 = 148,
    /// Segments received that carry data.
    data_segs_in: u32 = 152,
    /// Segments sent that carry data.
    data_segs_out: u32 = 156,
    /// Latest delivery rate, bytes/s.
    delivery_rate: u64 = 160,
    /// Time with data to send or in flight, us.
    busy_time: u64 = 168,
    /// Time limited by the peer's window, us.
    rwnd_limited: u64 = 176,
    /// Time limited by the own send buffer, us.
    sndbuf_limited: u64 = 184,
    /// Segments delivered.
    delivered: u32 = 192,
    /// Of these, marked by ECN.
    delivered_ce: u32 = 196,
    /// Bytes sent, retransmissions included.
    bytes_sent: u64 = 200,
    /// Bytes retransmitted.
    bytes_retrans: u64 = 208,
    /// Duplicates that the peer reported (RFC 2883).
    dsack_dups: u32 = 216,
    /// Reordering events.
    reord_seen: u32 = 220,
    /// Segments received out of order.
    rcv_ooopack: u32 = 224,
    /// The peer's window, scaled, bytes.
    snd_wnd: u32 = 228,
    /// The own window, scaled, bytes.
    rcv_wnd: u32 = 232,
    /// Retransmission timeouts over the connection's life.
    total_rto: u16 = 240,
    /// Recoveries from them.
    total_rto_recoveries: u16 = 242,
    /// Time spent in them, ms.
    total_rto_time: u32 = 244,
}

/// Most fields are zero most of the time, and samples are many.
#[cfg(feature = "serde")]
#[expect(clippy::unnecessary_wraps, reason = "serde wants a value of the field's type")]
fn zero<T: From<u8>>() -> Option<T> {
    Some(T::from(0))
}

#[cfg(feature = "serde")]
#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn is_zero<T: From<u8> + PartialEq>(field: &Option<T>) -> bool {
    *field == zero()
}

/// More than any kernel returns.
const ROOM_BYTES: usize = 512;

impl TcpInfo {
    /// The window scale that this end announced, for the peer to scale its windows.
    pub fn rcv_wscale(&self) -> Option<u8> {
        // Bit fields begin at the lower end on little-endian machines: the peer's scale first.
        self.window_scales.map(|both| if cfg!(target_endian = "little") { both >> 4 } else { both & 0xf })
    }

    /// Asks the kernel about a socket.
    ///
    /// # Errors
    /// It is not a TCP socket.
    pub fn of(socket: &impl AsFd) -> std::io::Result<Self> {
        let mut room = [0; ROOM_BYTES];
        sys::tcp_info(socket.as_fd(), &mut room).map(Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn offsets_are_those_of_the_c_library_as_far_as_it_goes() {
        macro_rules! check {
            ($($ours:literal: $theirs:ident,)*) => {$(
                let (_, offset, size) = TcpInfo::LAYOUT.iter().find(|(name, ..)| *name == $ours).unwrap();
                assert_eq!(*offset, std::mem::offset_of!(libc::tcp_info, $theirs), $ours);
                assert!(offset % size == 0, $ours);
            )*};
        }
        check! {
            "state": tcpi_state, "ca_state": tcpi_ca_state, "retransmits": tcpi_retransmits, "probes": tcpi_probes,
            "backoff": tcpi_backoff, "options": tcpi_options, "rto": tcpi_rto, "ato": tcpi_ato, "snd_mss": tcpi_snd_mss,
            "rcv_mss": tcpi_rcv_mss, "unacked": tcpi_unacked, "sacked": tcpi_sacked, "lost": tcpi_lost,
            "retrans": tcpi_retrans, "last_data_sent": tcpi_last_data_sent, "last_data_recv": tcpi_last_data_recv,
            "last_ack_recv": tcpi_last_ack_recv, "pmtu": tcpi_pmtu, "rcv_ssthresh": tcpi_rcv_ssthresh, "rtt": tcpi_rtt,
            "rttvar": tcpi_rttvar, "snd_ssthresh": tcpi_snd_ssthresh, "snd_cwnd": tcpi_snd_cwnd, "advmss": tcpi_advmss,
            "reordering": tcpi_reordering, "rcv_rtt": tcpi_rcv_rtt, "rcv_space": tcpi_rcv_space,
            "total_retrans": tcpi_total_retrans,
        }
    }

    #[test]
    fn a_connection_counts_its_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[0; 1234]).unwrap();
        server.read_exact(&mut [0; 1234]).unwrap();
        server.write_all(&[0; 77]).unwrap();
        client.read_exact(&mut [0; 77]).unwrap();
        let (ours, theirs) = (TcpInfo::of(&client).unwrap(), TcpInfo::of(&server).unwrap());
        assert_eq!((ours.state, theirs.state), (Some(1), Some(1)));
        // The reply acknowledges the request; bytes_acked counts the SYN too (tcp_snd_una_update).
        assert_eq!((ours.bytes_acked, ours.bytes_received), (Some(1235), Some(77)));
        assert_eq!((ours.bytes_sent, theirs.bytes_sent), (Some(1234), Some(77)));
        assert_eq!(theirs.bytes_received, Some(1234));
        assert_eq!((ours.data_segs_out, theirs.data_segs_in), (Some(1), Some(1)));
        assert!(ours.rto.is_some_and(|us| (200_000..1_200_000).contains(&us)), "{ours:?}");
        assert!(ours.snd_cwnd.is_some_and(|segments| segments >= 1));
        assert_eq!((ours.total_retrans, ours.rwnd_limited), (Some(0), Some(0)));
    }

    #[test]
    fn what_an_older_kernel_lacks_is_none() {
        let info = TcpInfo::parse(&[1; 104]);
        assert_eq!((info.state, info.total_retrans), (Some(1), Some(0x0101_0101)));
        assert_eq!((info.pacing_rate, info.busy_time, info.total_rto_time), (None, None, None));
    }
}
