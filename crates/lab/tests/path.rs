//! Do the elements of a path do to the real kernel's TCP what they say? Judged by the applications'
//! own clocks.
#![cfg(target_os = "linux")]

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tcpwhy_lab::{Error, HostSpec, Pair, PairOptions, PathSpec};

/// Times are measured: one laboratory at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Lab {
    pair: Pair,
    _alone: MutexGuard<'static, ()>,
}

/// A laboratory with these elements, the delay first; `None` if the machine does not allow one.
fn lab(rtt_ms: i64, forward: &[&str], backward: &[&str], server: HostSpec) -> Option<Lab> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut path = PathSpec::delay(tcpwhy_wire::Duration::from_millis(rtt_ms));
    path.forward.extend(forward.iter().map(|line| line.parse().expect("an element")));
    path.backward.extend(backward.iter().map(|line| line.parse().expect("an element")));
    match Pair::build(&PairOptions { path, server, ..PairOptions::default() }) {
        Ok(pair) => Some(Lab { pair, _alone: alone }),
        Err(error @ Error::NotPermitted { .. }) => {
            skip(&error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl Lab {
    /// Runs a server that handles one connection and a client that starts when it listens.
    fn run<T: Send + 'static>(
        &self,
        serve: impl FnOnce(TcpStream) -> io::Result<()> + Send + 'static,
        client: impl FnOnce(SocketAddr) -> io::Result<T> + Send + 'static,
    ) -> T {
        let address = SocketAddr::from((Pair::SERVER_V4, 80));
        let listener = self.pair.server().enter(move || TcpListener::bind(address));
        let listener = listener.expect("a thread").join().expect("no panic").expect("a listener");
        let server = self.pair.server().enter(move || serve(listener.accept()?.0)).expect("a thread");
        let client = self.pair.client().enter(move || client(address)).expect("a thread");
        let answer = client.join().expect("no panic").expect("the client succeeds");
        server.join().expect("no panic").expect("the server succeeds");
        answer
    }
}

#[expect(clippy::disallowed_methods, reason = "the application's own clock is the truth here")]
fn timed<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<(Duration, T)> {
    let start = Instant::now();
    let done = work()?;
    Ok((start.elapsed(), done))
}

/// Never earlier than theory, and within `extra_ms` of it in one run of six: a busy machine may
/// stop any of them for any length of time.
fn assert_takes(theory_ms: u64, extra_ms: u64, mut measured: impl FnMut() -> Duration) {
    let theory = Duration::from_millis(theory_ms);
    let mut tries = Vec::new();
    for _ in 0..6 {
        let took = measured();
        assert!(took >= theory, "{took:?} is earlier than {theory:?}");
        if took < theory + Duration::from_millis(extra_ms) {
            return;
        }
        tries.push(took);
    }
    panic!("{tries:?} are all much later than {theory:?}");
}

/// Reads messages of `len` bytes and answers each with one byte.
fn answer(mut stream: TcpStream, len: usize) -> io::Result<()> {
    let mut message = vec![0; len];
    loop {
        match stream.read_exact(&mut message) {
            Ok(()) => stream.write_all(&[1])?,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

#[test]
fn a_handshake_takes_one_round_trip_and_the_log_agrees() {
    let Some(lab) = lab(26, &[], &[], HostSpec::default()) else { return };
    assert_takes(26, 30, || lab.run(|_| Ok(()), |address| Ok(timed(|| TcpStream::connect(address))?.0)));
    std::thread::sleep(Duration::from_millis(60));
    let log = lab.pair.log();
    assert!(log.records.len() >= 3 && log.refused == 0 && log.omitted == 0);
    for record in &log.records {
        let delivered = record.delivered.expect("nothing is dropped here");
        assert!(delivered >= record.path.left, "never early");
        assert_eq!((record.path.left - record.path.entered).as_nanos(), 13_000_000);
    }
    assert_eq!(lab.pair.client().overruns().expect("counters"), 0);
}

#[test]
fn a_transfer_takes_its_bits_time() {
    let Some(lab) = lab(2, &["rate 20mbit queue 1m"], &[], HostSpec::default()) else { return };
    let transfer = || {
        lab.run(
            |mut stream| {
                let mut all = Vec::new();
                stream.read_to_end(&mut all)?;
                stream.write_all(&[1])
            },
            |address| {
                let mut stream = TcpStream::connect(address)?;
                let (took, ()) = timed(|| {
                    stream.write_all(&vec![0; 1_000_000])?;
                    stream.shutdown(std::net::Shutdown::Write)?;
                    stream.read_exact(&mut [0])
                })?;
                Ok(took)
            },
        )
    };
    // 691 segments of 1448 bytes with 52 bytes of headers: 8.29 Mbit at 20 Mb/s, and the round
    // trip. The hosts may add waits of their own, such as a delayed ACK, but not in every run.
    assert_takes(416, 30, transfer);
}

#[test]
fn a_lost_syn_costs_the_initial_timeout() {
    let Some(lab) = lab(20, &["loss syn 1"], &[], HostSpec::default()) else { return };
    // RFC 6298, 2: one second. The kernel's timer wheel rounds it up by as much as an eighth of its
    // level (64 ms), and a busy machine adds to that. Only the first SYN is dropped: there is no
    // second try.
    let took = lab.run(|_| Ok(()), |address| Ok(timed(|| TcpStream::connect(address))?.0));
    assert!(took >= Duration::from_millis(1_020) && took < Duration::from_millis(1_900), "{took:?}");
    let log = lab.pair.log();
    assert_eq!(log.records.iter().filter(|record| record.delivered.is_none()).count(), 1);
}

#[test]
fn a_windows_like_server_holds_a_split_write_for_200_ms() {
    // A host that acknowledges at once, with a policy element that does not.
    let server = || HostSpec { quickack: true, ..HostSpec::default() };
    let ask = |nodelay: bool| {
        move |address| {
            let mut stream = TcpStream::connect(address)?;
            stream.set_nodelay(nodelay)?;
            let round = |stream: &mut TcpStream| {
                stream.write_all(&[0; 30])?;
                stream.write_all(&[0; 70])?;
                stream.read_exact(&mut [0])
            };
            round(&mut stream)?;
            Ok(timed(|| round(&mut stream))?.0)
        }
    };
    let serve = |stream| answer(stream, 100);
    let Some(windows) = lab(2, &[], &["acks windows-7"], server()) else { return };
    assert_takes(202, 30, || windows.run(serve, ask(false)));
    drop(windows);
    let Some(windows) = lab(2, &[], &["acks windows-7"], server()) else { return };
    assert_takes(2, 30, || windows.run(serve, ask(true)));
    drop(windows);
    // TcpAckFrequency=1: only the round trip that Nagle costs is left.
    let Some(immediate) = lab(2, &[], &["acks every 1"], server()) else { return };
    assert_takes(4, 30, || immediate.run(serve, ask(false)));
}

#[test]
fn a_host_has_its_own_settings_and_the_machine_keeps_its_own() {
    let setting = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
    let machine = std::fs::read_to_string(setting).expect("the machine's setting");
    let other = if machine.trim() == "1" { "0" } else { "1" };
    let server = HostSpec {
        sysctl: vec![("net.ipv4.tcp_slow_start_after_idle".to_owned(), other.to_owned())],
        congestion: Some("reno".to_owned()),
        ..HostSpec::default()
    };
    let Some(lab) = lab(0, &[], &[], server) else { return };
    let host = lab.pair.server().enter(move || std::fs::read_to_string(setting)).expect("a thread");
    assert_eq!(host.join().expect("no panic").expect("the host's setting").trim(), other);
    assert_eq!(std::fs::read_to_string(setting).expect("the machine's setting"), machine);
    lab.run(
        |stream| {
            assert_eq!(rustix::net::sockopt::tcp_congestion(&stream)?, "reno");
            Ok(())
        },
        |address| {
            let stream = TcpStream::connect(address)?;
            assert_eq!(rustix::net::sockopt::tcp_congestion(&stream)?, "cubic");
            Ok(())
        },
    );
}

#[test]
fn an_impossible_setting_names_itself() {
    let build = |server| {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Pair::build(&PairOptions { server, ..PairOptions::default() }).map(drop)
    };
    let wrong =
        [("net.ipv4.no_such_setting", "net.ipv4.no_such_setting"), ("kernel.hostname", "only net.* is")];
    for (key, why) in wrong {
        let server = HostSpec { sysctl: vec![(key.to_owned(), "1".to_owned())], ..HostSpec::default() };
        match build(server) {
            Err(error @ Error::NotPermitted { .. }) => skip(&error),
            Err(error) => assert!(error.to_string().contains(why), "{error}"),
            Ok(()) => panic!("{key} was set"),
        }
    }
    match build(HostSpec { congestion: Some("nonesuch".to_owned()), ..HostSpec::default() }) {
        Err(error @ Error::NotPermitted { .. }) => skip(&error),
        Err(error) => assert!(error.to_string().contains("nonesuch"), "{error}"),
        Ok(()) => panic!("there is no such congestion control"),
    }
}

#[test]
fn both_hosts_see_whole_super_segments_only_where_nothing_needs_packets() {
    for (element, split) in [(&[][..], false), (&["rate 1gbit"][..], true)] {
        let Some(lab) = lab(2, element, &[], HostSpec::default()) else { return };
        lab.run(
            |mut stream| stream.read_exact(&mut vec![0; 100_000]),
            |address: SocketAddr| TcpStream::connect(address)?.write_all(&vec![0; 100_000]),
        );
        std::thread::sleep(Duration::from_millis(20));
        let longest = lab.pair.log().records.iter().map(|record| record.path.len).max();
        assert_eq!(longest <= Some(1500), split, "{element:?}: {longest:?}");
    }
}

#[test]
fn the_link_runs_before_programs_with_precedence() {
    // Applications inherit the priority of the thread that starts the laboratory. One that writes
    // without a pause must not hold up its own packets.
    let checked = std::thread::spawn(|| {
        if !tcpwhy_lab::take_precedence() {
            return skip(&"only root may take precedence");
        }
        let Some(lab) = lab(2, &[], &[], HostSpec::default()) else { return };
        // Once it has carried a packet, it has set itself up.
        lab.run(
            |mut stream| stream.write_all(b"x"),
            |address: SocketAddr| TcpStream::connect(address)?.read_exact(&mut [0]),
        );
        let threads = std::fs::read_dir("/proc/self/task").expect("/proc");
        let stats =
            threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("stat")).ok());
        let link = stats.filter(|stat| stat.contains("(link)")).map(|stat| rt_priority(&stat)).max();
        assert!(link > Some(1), "{link:?}");
    });
    checked.join().expect("the link has precedence");
}

/// A host takes no copy of this process's memory: otherwise every later write to it, including the
/// link's, would have to wait for all processors.
#[test]
fn memory_stays_writable_beside_a_host() {
    let mut memory = vec![1_u8; 64 << 20];
    let Some(lab) = lab(2, &[], &[], HostSpec::default()) else { return };
    let before = faults();
    memory.iter_mut().step_by(4096).for_each(|byte| *byte += 1);
    let faults = faults() - before;
    assert!(faults < 32, "{faults} faults, of {} pages", memory.len() / 4096);
    drop(lab);
}

/// Page faults of the calling thread, from its line in /proc.
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("a thread has its file in /proc");
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    behind_name
        .split_whitespace()
        .nth(7)
        .and_then(|field| field.parse().ok())
        .expect("minflt is the tenth field")
}

/// Field 40 of `/proc/PID/stat`.
fn rt_priority(stat: &str) -> u32 {
    let after_name = stat.rsplit_once(") ").expect("a name in brackets").1;
    after_name.split(' ').nth(37).expect("40 fields").parse().expect("a number")
}

#[test]
fn addresses_are_fixed() {
    // Documentation and scenarios name them.
    assert_eq!(
        [Pair::CLIENT_V4, Pair::SERVER_V4],
        [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)]
    );
}

#[expect(clippy::disallowed_methods, reason = "CI is where a test may not be skipped")]
fn skip(reason: &dyn Display) {
    assert!(std::env::var("CI").is_err(), "skipped in CI: {reason}");
    eprintln!("skipping: {reason}");
}
