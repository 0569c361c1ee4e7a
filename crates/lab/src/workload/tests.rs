//! Do agents work against the kernel over plain loopback, which any user may use?

use super::*;

fn workload(client: &str, server: &str) -> Workload {
    Workload { port: 0, ..Workload::new(client.parse().unwrap(), server.parse().unwrap()) }
}

fn run_here(client: &str, server: &str) -> Run {
    let run = run(&workload(client, server), &Here, &Here).unwrap();
    assert_eq!(run.failure(), None);
    run
}

/// Which calls moved how many bytes.
fn calls(log: &ConnectionLog) -> Vec<(Op, u64)> {
    log.events.iter().filter_map(|event| Some((event.op, event.bytes?))).collect()
}

#[test]
fn an_exchange_is_logged_at_both_ends() {
    let run = run_here(
        "connect\nrepeat 3 every 5ms\nwrite 20\nthink 2ms\nwrite 100\nread 64\nend",
        "accept\nrepeat\nread 120\nthink 3ms\nwrite 64\nend",
    );
    let ([client], [server]) = (&run.client.connections[..], &run.server.connections[..]) else { panic!() };
    assert_eq!((client.local, client.peer), (server.peer, server.local));
    assert_eq!(calls(client), [(Op::Write, 20), (Op::Write, 100), (Op::Read, 64)].repeat(3));
    let received: u64 = calls(server).iter().filter(|(op, _)| *op == Op::Read).map(|(_, n)| n).sum();
    assert_eq!(received, 360);
    // Time moves forward, and thinking takes the requested time.
    for log in [client, server] {
        assert!(log.events.is_sorted_by_key(|event| event.start_ns));
        assert!(log.events.iter().all(|event| event.start_ns <= event.end_ns));
    }
    let thoughts: Vec<i64> =
        server.events.iter().filter(|e| e.op == Op::Think).map(|e| e.end_ns - e.start_ns).collect();
    assert_eq!(thoughts.len(), 3);
    assert!(thoughts.iter().all(|ns| (3_000_000..30_000_000).contains(ns)), "{thoughts:?}");
    // Exchanges begin on the grid: the third not before 10 ms after the first.
    let writes: Vec<i64> = client.events.iter().filter(|e| e.bytes == Some(20)).map(|e| e.start_ns).collect();
    assert!(writes[2] - writes[0] >= 9_500_000, "{writes:?}");
    // TCP_INFO before each exchange and at both ends of the connection.
    assert_eq!(client.samples.len(), 1 + 3 + 1);
    let bytes_sent: Vec<_> = client.samples.iter().map(|sample| sample.tcp_info.bytes_sent).collect();
    assert_eq!(bytes_sent, [0, 0, 120, 240, 360].map(Some));
}

#[test]
fn every_kind_of_write_arrives() {
    let run = run_here(
        "nodelay on\nconnect\nwrite 100 more\nwrite 1000 in 300\nwritev 20 100\nsendfile 100k in 30k\ncork on\nwrite 7\n\
         cork off\nshutdown\nread all",
        "accept\nread all by 1000\nwrite 10",
    );
    let client = calls(&run.client.connections[0]);
    assert_eq!(
        client[..7],
        [
            (Op::WriteMore, 100),
            (Op::Write, 300),
            (Op::Write, 300),
            (Op::Write, 300),
            (Op::Write, 100),
            (Op::Writev, 120),
            (Op::Sendfile, 30 << 10),
        ]
    );
    let sent: u64 = client.iter().filter(|(op, _)| op.writes()).map(|(_, n)| n).sum();
    let server = calls(&run.server.connections[0]);
    let received: u64 = server.iter().filter(|(op, _)| *op == Op::Read).map(|(_, n)| n).sum();
    assert_eq!((sent, received), (100 + 1000 + 120 + (100 << 10) + 7, sent));
    assert!(server.iter().all(|(op, n)| *op != Op::Read || *n <= 1000));
    assert_eq!(client.last(), Some(&(Op::Read, 0)), "the server closed in answer");
}

/// 4 MB at 320 Mbit/s take 100 ms; the first ten segments, of 64 KB here, are not paced
/// (tcp_update_skb_after_send).
#[test]
fn a_pacing_rate_holds_what_is_written() {
    let run = run_here("connect\nwrite 10\nread 4m", "pacing 320mbit\naccept\nread 10\nwrite 4m");
    let events = &run.client.connections[0].events;
    let (Some(asked), Some(last)) =
        (events.iter().find(|e| e.op == Op::Write), events.iter().rfind(|e| e.op == Op::Read))
    else {
        panic!("{events:?}")
    };
    assert!(last.end_ns - asked.start_ns >= 80_000_000, "{events:?}");
}

#[test]
fn reconnecting_gives_connections_that_match_at_both_ends() {
    let run = run_here(
        "rcvbuf 64k\nrepeat 3\nconnect\nwrite 10\nread 10\nclose\nend",
        "repeat\naccept\nrepeat\nread 10\nwrite 10\nend\nclose\nend",
    );
    assert_eq!((run.client.connections.len(), run.server.connections.len()), (3, 3));
    for (client, server) in run.client.connections.iter().zip(&run.server.connections) {
        assert_eq!((client.local, client.peer), (server.peer, server.local));
    }
}

#[test]
fn a_reset_is_a_failed_call_and_not_a_crash() {
    let run = run(&workload("connect\nwrite 10\nread 1", "accept\nread 10\nreset"), &Here, &Here).unwrap();
    assert_eq!(run.failure(), Some("the client's Read: Connection reset by peer (os error 104)"));
    let events = &run.client.connections[0].events;
    assert!(events.iter().any(|e| e.op == Op::Read && e.note.is_some()), "{events:?}");
}

#[test]
fn a_script_that_waits_for_ever_ends_at_its_limit() {
    let mut workload = workload("connect\nread 1", "accept\nread 1");
    workload.call_limit = StdDuration::from_millis(100);
    let run = run(&workload, &Here, &Here).unwrap();
    assert!(run.failure().is_some_and(|failure| failure.contains("Read")), "{:?}", run.failure());
}

#[test]
fn a_client_that_never_connects_does_not_keep_the_server_waiting() {
    let run = run_here("think 1ms", "accept\nread 1");
    assert_eq!(run.server.connections, []);
}
