//! Which connections and exchanges are listed one by one, against a listing of all of them?

use std::collections::BTreeSet;

use tcpwhy_core::report::{Connection, Report};
use tcpwhy_core::{Analysis, LADDERS_MAX, Listing, Options};
use tcpwhy_wire::{Endpoint, Flags, Instant, Segment, Seq, TcpOptions};

const SERVER: Endpoint = Endpoint::v4([10, 0, 0, 2], 80);
const CONNECTIONS: u16 = 400;
const HOSTS: u16 = 7;
const EXCHANGES: u32 = 12;

/// One connection after another, each with as many exchanges; the server of the n-th takes n
/// microseconds more for each.
fn report(listing: Listing) -> Report {
    let mut analysis = Analysis::new(Options { listing, ..Options::default() });
    let mut packet = 0;
    for n in 0..CONNECTIONS {
        let client = Endpoint::v4([10, 0, 1, (n % HOSTS) as u8], 40_000 + n);
        let mut at_us = i64::from(n) * 1_000_000;
        let mut send =
            |from_client: bool, after_us: i64, flags: u8, [seq, ack]: [u32; 2], payload_len: u32| {
                packet += 1;
                at_us += after_us;
                let (src, dst) = if from_client { (client, SERVER) } else { (SERVER, client) };
                analysis.on_segment(&Segment {
                    packet,
                    at: Instant::from_nanos(at_us * 1_000),
                    src,
                    dst,
                    seq: Seq(seq),
                    ack: Seq(ack),
                    window: 64_000,
                    flags: Flags(flags),
                    payload_len,
                    options: TcpOptions::default(),
                    ip_id: None,
                    ttl: 64,
                    damaged: false,
                });
            };
        send(true, 0, Flags::SYN, [0, 0], 0);
        send(false, 1_000, Flags::SYN | Flags::ACK, [0, 1], 0);
        send(true, 10, Flags::ACK, [1, 1], 0);
        for k in 0..EXCHANGES {
            let seq = 1 + 10 * k;
            send(true, 10, Flags::ACK | Flags::PSH, [seq, seq], 10);
            send(false, 2_000 + i64::from(n), Flags::ACK | Flags::PSH, [seq, seq + 10], 10);
        }
        let end = 1 + 10 * EXCHANGES;
        send(true, 10, Flags::ACK | Flags::FIN, [end, end], 0);
        send(false, 1_000, Flags::ACK | Flags::FIN, [end, end + 1], 0);
        send(true, 10, Flags::ACK, [end + 1, end + 1], 0);
    }
    analysis.finish()
}

fn ids<'a>(connections: impl IntoIterator<Item = &'a Connection>) -> BTreeSet<u64> {
    connections.into_iter().map(|connection| connection.id).collect()
}

/// A thinned list has the connections of the exchanges it shows, those that findings show, and four
/// times as many of the most expensive ones as can be drawn. It counts those left out.
#[test]
fn a_thinned_list_leaves_out_what_it_shows_nothing_of() {
    let all = report(Listing::UpTo(u64::MAX));
    let billed: u64 = all.connections.iter().map(|connection| connection.billed).sum();
    assert_eq!((all.connections.len(), billed), (400, 400 * 13));
    assert_eq!((all.omitted.connections, all.omitted.exchanges), (0, 0));

    let thinned = report(Listing::Thinned(100));
    let mut by_cost: Vec<&Connection> = all.connections.iter().collect();
    by_cost.sort_by_key(|connection| std::cmp::Reverse(connection.cost()));
    let mut wanted = ids(by_cost.into_iter().take(4 * LADDERS_MAX));
    wanted.extend(thinned.findings.iter().map(|finding| finding.worst.0));
    wanted.extend(ids(thinned.connections.iter().filter(|connection| !connection.exchanges.is_empty())));
    assert_eq!(ids(&thinned.connections), wanted);
    assert!(wanted.len() < 400, "nothing is left out");
    assert_eq!(thinned.clients, [(SERVER, u64::from(HOSTS))].into());

    let shown = thinned.connections.iter().flat_map(|connection| &connection.exchanges).count() as u64;
    assert!((50..=100).contains(&shown), "{shown} exchanges");
    assert_eq!(thinned.omitted.connections, 400 - wanted.len() as u64);
    assert_eq!(thinned.omitted.exchanges, billed - shown);
    for connection in &thinned.connections {
        let whole = all.connection(connection.id);
        assert_eq!(whole.map(|whole| &whole.bill), Some(&connection.bill));
        let has = |exchange| whole.is_some_and(|whole| whole.exchanges.contains(exchange));
        assert!(connection.exchanges.iter().all(has), "an exchange is another one in the thinned list");
    }
}

/// Whatever the limit, the listed exchanges are the earliest, within a connection and over all.
#[test]
fn a_limited_list_has_the_earliest_exchanges() {
    let listed = |report: &Report| -> Vec<(u64, u64)> {
        let of = |connection: &Connection| {
            let id = connection.id;
            connection.exchanges.iter().map(move |exchange| (id, exchange.n)).collect::<Vec<_>>()
        };
        report.connections.iter().flat_map(of).collect()
    };
    let all = listed(&report(Listing::UpTo(u64::MAX)));
    for most in [0, 1, 5, 12, 13, 14, 100, 5_199, 5_200] {
        assert_eq!(listed(&report(Listing::UpTo(most))), all[..most as usize], "at most {most}");
    }
}
