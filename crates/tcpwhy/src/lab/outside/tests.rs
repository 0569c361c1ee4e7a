//! Does outside truth agree with what packets, calls and samples show by hand?

use tcpwhy_host::TcpInfo;
use tcpwhy_lab::workload::{Event, Op, Sample};

use super::class::Class;
use super::phase::Phase;
use super::rows::{Row, Rows};
use super::spent::Spent;

const MS: i64 = 1_000_000;
const DELAY: i64 = 10 * MS;

/// Entered the path at this ms, with this offset and length; delivered 10 ms later.
fn row(entered_ms: i64, offset: i64, payload: i64) -> Row {
    let at = entered_ms * MS;
    Row { starts: at, ends: at, offset, payload, delivered: Some(at + DELAY), delayed: DELAY, queued: 0 }
}

fn lost(row: Row) -> Row {
    Row { delivered: None, ..row }
}

/// A call that writes.
fn write(start_ms: i64, end_ms: i64, offset: u64, bytes: u64) -> Event {
    let (start_ns, end_ns) = (start_ms * MS, end_ms * MS);
    Event { op: Op::Write, start_ns, end_ns, bytes: Some(bytes), offset: Some(offset), note: None }
}

/// The kernel's samples, every 2 ms from one time to another.
fn says(from_ms: i64, until_ms: i64, unacked: u32, unsent: u32, acked: u64) -> Vec<Sample> {
    let tcp_info = TcpInfo {
        ca_state: Some(0),
        unacked: Some(unacked),
        snd_cwnd: Some(10),
        snd_mss: Some(1448),
        notsent_bytes: Some(unsent),
        bytes_acked: Some(acked),
        snd_wnd: Some(65_536),
        ..TcpInfo::default()
    };
    (from_ms..until_ms).step_by(2).map(|at| Sample { at_ns: at * MS, tcp_info }).collect()
}

/// What a phase from time 0 was spent on, in whole ms of certain time, and the uncertain time.
fn spent(data: Vec<Row>, samples: &[Sample], writes: &[Event], end: i64) -> (Vec<(Class, i64)>, i64) {
    let rows = Rows { data, syns: Vec::new(), delay: DELAY };
    let mut spent = Spent::default();
    let phase = Phase { rows: &rows, samples, writes: writes.iter().collect() };
    phase.spend(0, end, &mut spent).expect("all bytes arrive");
    let classes = Class::ALL.into_iter().map(|class| (class, spent.certain(class) / MS));
    (classes.filter(|(_, ms)| *ms > 0).collect(), spent.open().iter().map(|(_, ns)| ns / MS).sum())
}

#[test]
fn a_small_segment_that_waits_in_an_open_window_is_held() {
    let samples = says(0, 40, 1, 80, 0);
    let writes = [write(0, 0, 0, 20), write(0, 0, 20, 80)];
    let (certain, open) = spent(vec![row(0, 0, 20), row(40, 20, 80)], &samples, &writes, 100);
    assert_eq!(certain, [(Class::Trip, 10), (Class::Held, 40)]);
    assert_eq!(open, 0);
}

#[test]
fn before_its_call_nothing_but_the_application_keeps_a_segment() {
    let samples = says(0, 40, 0, 0, 20);
    let writes = [write(0, 0, 0, 20), write(40, 40, 20, 80)];
    let (certain, _) = spent(vec![row(0, 0, 20), row(40, 20, 80)], &samples, &writes, 100);
    assert_eq!(certain, [(Class::Trip, 10), (Class::App, 40)]);
}

#[test]
fn a_pause_within_a_hold_may_be_either() {
    let samples = [says(0, 20, 1, 0, 0), says(20, 40, 1, 80, 0)].concat();
    let writes = [write(0, 0, 0, 20), write(20, 20, 20, 80)];
    let (certain, open) = spent(vec![row(0, 0, 20), row(40, 20, 80)], &samples, &writes, 100);
    assert_eq!(certain, [(Class::Trip, 10), (Class::Held, 20)]);
    assert_eq!(open, 20);
}

#[test]
fn an_answer_from_before_the_call_says_nothing_about_the_time_after_it() {
    let writes = [write(0, 0, 0, 20), write(25, 25, 20, 80)];
    let (certain, open) = spent(vec![row(0, 0, 20), row(26, 20, 80)], &says(0, 25, 1, 0, 0), &writes, 100);
    assert_eq!(certain, [(Class::Trip, 10)]);
    assert!((24..=25).contains(&open), "the application or Nagle: {open} ms");
}

#[test]
fn what_is_sent_again_is_repaired() {
    let writes = [write(0, 0, 0, 100)];
    let data = vec![lost(row(0, 0, 100)), row(200, 0, 100)];
    let (certain, _) = spent(data, &says(0, 200, 1, 0, 0), &writes, 100);
    assert_eq!(certain, [(Class::Trip, 10), (Class::Repair, 200)]);
}

#[test]
fn full_segments_wait_for_the_window_that_is_full() {
    let writes = [write(0, 0, 0, 28_960)];
    let flight = |at, from: i64| (from..from + 10).map(move |n| row(at, n * 1448, 1448));
    let data: Vec<Row> = flight(0, 0).chain(flight(20, 10)).collect();
    let (certain, _) = spent(data.clone(), &says(0, 20, 10, 14_480, 0), &writes, 28_960);
    assert_eq!(certain, [(Class::Trip, 10), (Class::Window, 20)]);

    // During the call, nothing is left to send: the send buffer is full.
    let writes = [write(0, 20, 0, 28_960)];
    let (certain, _) = spent(data, &says(0, 20, 6, 0, 0), &writes, 28_960);
    assert_eq!(certain, [(Class::Trip, 10), (Class::SendBuffer, 20)]);
}

/// A server that reads more slowly than a request arrives does not block in its reads: data
/// arriving meanwhile comes at its pace.
#[test]
fn what_comes_while_a_server_reads_may_wait_for_its_reader() {
    let writes = [write(0, 0, 0, 28_960)];
    let flight = |at, from: i64| (from..from + 10).map(move |n| row(at, n * 1448, 1448));
    let rows = Rows { data: flight(0, 0).chain(flight(40, 10)).collect(), syns: Vec::new(), delay: DELAY };
    let closed = says(0, 40, 0, 14_480, 0).into_iter().map(|mut sample| {
        sample.tcp_info.snd_wnd = Some(14_480);
        sample
    });
    let samples: Vec<Sample> = closed.collect();
    let phase = Phase { rows: &rows, samples: &samples, writes: writes.iter().collect() };
    let mut spent = Spent::default();
    assert_eq!(phase.read_slowly(10 * MS, 28_960, &mut spent), Some(50 * MS));
    let either = Class::Receiver.bit() | Class::App.bit();
    assert!(spent.open().contains(&(either, 30 * MS)), "{spent}");
    // All of it had arrived: the rest is the server's own time.
    let mut spent = Spent::default();
    assert_eq!(phase.read_slowly(60 * MS, 28_960, &mut spent), Some(60 * MS));
    assert_eq!(spent.told(), 0);
}

#[test]
fn bytes_are_there_when_the_last_hole_is_filled() {
    let data = vec![lost(row(0, 0, 10)), row(1, 10, 10), row(30, 0, 10), row(40, 10, 10)];
    let rows = Rows { data, syns: Vec::new(), delay: DELAY };
    assert_eq!(rows.completes(20).and_then(|row| row.delivered), Some(40 * MS));
    assert!(rows.completes(21).is_none());
}
