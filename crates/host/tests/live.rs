//! Does a live capture contain exactly the packets that passed, by the kernel's counts? Judged by
//! the kernel's own counters (/proc/net/snmp), by tcpdump, and by what the test itself sent. Each
//! test has its own network namespace.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};

use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags};
use tcpwhy_host::capture::{Capture, Description, Error, Filter, Options, Packet, Sink, Stats};
use tcpwhy_wire::capture::{Event, LinkType, Reader};

/// The bytes a test's sink has written.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The fields of a captured packet that these tests check.
#[derive(Debug)]
struct Seen {
    at_ns: i64,
    link: LinkType,
    ports: [u16; 2],
    flags: u8,
    payload: usize,
}

impl Buffer {
    /// Reads the capture back: Ethernet, or the link type of `any`, and IPv4 without options.
    fn packets(&self) -> Vec<Seen> {
        let bytes = self.0.lock().unwrap();
        let (mut reader, mut rest, mut packets) = (Reader::new(), bytes.as_slice(), Vec::new());
        loop {
            let step = reader.next(rest, true);
            rest = &rest[step.consumed..];
            match step.event {
                Event::Packet(packet) => {
                    let ip = &packet.data[if packet.link == LinkType::LINUX_SLL2 { 20 } else { 14 }..];
                    let tcp = &ip[20..];
                    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
                    packets.push(Seen {
                        at_ns: packet.at.as_nanos(),
                        link: packet.link,
                        ports: [u16::from_be_bytes([tcp[0], tcp[1]]), u16::from_be_bytes([tcp[2], tcp[3]])],
                        flags: tcp[13],
                        payload: total - 20 - usize::from(tcp[12] >> 4) * 4,
                    });
                }
                Event::Skipped => {}
                Event::End => return packets,
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Runs `test` on a thread with its own network namespace; if that is not possible, says so and
/// returns.
fn in_namespace(name: &str, test: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            #[expect(
                unsafe_code,
                reason = "this thread lives for one test and shares nothing that depends on its namespace"
            )]
            // SAFETY: only the network namespace of this short-lived thread changes.
            let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) };
            if let Err(error) = unshared {
                skip(name, &format!("a network namespace of its own ({error}): run as root"));
                return;
            }
            ip(&["link", "set", "lo", "up"]);
            test();
        });
        if let Err(panic) = run.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

#[expect(clippy::disallowed_methods, reason = "CI is where a test may not be skipped")]
fn skip(name: &str, needs: &str) {
    assert!(std::env::var("CI").is_err(), "{name} was skipped in CI: it needs {needs}");
    eprintln!("skipping {name}: it needs {needs}");
}

fn ip(arguments: &[&str]) {
    assert!(Command::new("ip").args(arguments).status().expect("iproute2 is installed").success());
}

/// The namespace's count of TCP segments received. On loopback each segment is received once.
fn segments_received() -> u64 {
    let snmp = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let mut lines = snmp.lines().filter(|line| line.starts_with("Tcp:")).map(|line| line.split(' '));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    names.zip(values).find(|(name, _)| *name == "InSegs").unwrap().1.parse().unwrap()
}

/// `rounds` times 100 bytes one way and 40 bytes back, then the client closes, then the server.
fn exchanges(rounds: u32) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    for _ in 0..rounds {
        client.write_all(&[1; 100]).unwrap();
        server.read_exact(&mut [0; 100]).unwrap();
        server.write_all(&[2; 40]).unwrap();
        client.read_exact(&mut [0; 40]).unwrap();
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(server.read(&mut [0; 1]).unwrap(), 0);
    drop(server);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    port
}

#[test]
fn a_known_exchange_is_captured_packet_for_packet() {
    in_namespace("a_known_exchange_is_captured_packet_for_packet", || {
        let out = Buffer::default();
        let before = segments_received();
        let capture = Capture::start(Options::new("lo"), out.clone()).unwrap();
        let port = exchanges(50);
        let stats = capture.stop().unwrap();
        let packets = out.packets();

        assert_eq!(stats.packets, segments_received() - before, "the kernel's count");
        assert_eq!((stats.dropped, stats.unread, stats.interrupted), (0, 0, None));
        assert_eq!(packets.len() as u64, stats.packets);
        assert!(packets.iter().all(|p| p.link == LinkType::ETHERNET && p.ports.contains(&port)));
        assert_eq!(packets[0].flags, 0x02, "SYN first");
        assert_eq!(packets[1].flags, 0x12, "SYN-ACK second");
        assert_eq!(packets.iter().filter(|p| p.flags & 0x01 != 0).count(), 2, "a FIN from each");
        let bytes = |to_server: bool| {
            packets.iter().filter(|p| (p.ports[1] == port) == to_server).map(|p| p.payload).sum::<usize>()
        };
        assert_eq!((bytes(true), bytes(false)), (50 * 100, 50 * 40));
        assert!(packets.is_sorted_by_key(|p| p.at_ns), "time stamps are monotone");
        assert!(stats.started.as_nanos() <= packets[0].at_ns);
        assert!(packets[packets.len() - 1].at_ns <= stats.stopped.as_nanos());
        let data: Vec<_> = packets.iter().filter(|p| p.payload > 0).map(|p| p.payload).collect();
        assert_eq!(data, [100, 40].repeat(50), "request and reply in turn");
    });
}

#[test]
fn the_same_packets_as_tcpdump() {
    in_namespace("the_same_packets_as_tcpdump", || {
        let Ok(mut tcpdump) = Command::new("tcpdump")
            .args(["-i", "lo", "--immediate-mode", "-s", "128", "-nnq", "--nano", "-tt", "-l", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
        else {
            return skip("the_same_packets_as_tcpdump", "tcpdump");
        };
        // It prints this once it listens. With its default snapshot length its ring would hold only
        // 16 packets.
        let mut said = [0; 4096];
        let mut started = String::new();
        while !started.contains("listening on") {
            let n = tcpdump.stderr.as_mut().unwrap().read(&mut said).unwrap();
            assert_ne!(n, 0, "tcpdump ended: {started}");
            started += &String::from_utf8_lossy(&said[..n]);
        }
        let out = Buffer::default();
        let capture = Capture::start(Options::new("lo"), out.clone()).unwrap();
        exchanges(20);
        let stats = capture.stop().unwrap();
        // It loses the lines it has not printed when told to end, so first they are read up to the
        // expected number.
        let (lines, printed) = mpsc::channel();
        let stdout = BufReader::new(tcpdump.stdout.take().unwrap());
        let printer = std::thread::spawn(move || {
            let packets = stdout.lines().map_while(Result::ok).filter(|line| line.contains(" IP "));
            packets.for_each(|line| lines.send(line).unwrap());
        });
        let mut theirs: Vec<String> = Vec::new();
        while (theirs.len() as u64) < stats.packets {
            match printed.recv_timeout(std::time::Duration::from_secs(5)) {
                Ok(line) => theirs.push(line),
                Err(_) => break,
            }
        }
        Command::new("kill").args(["-INT", &tcpdump.id().to_string()]).status().unwrap();
        printer.join().unwrap();
        theirs.extend(printed.try_iter());
        tcpdump.wait().unwrap();
        let time_ns = |line: &String| {
            let (seconds, nanos) = line.split(' ').next().unwrap().split_once('.').unwrap();
            seconds.parse::<i64>().unwrap() * 1_000_000_000 + nanos.parse::<i64>().unwrap()
        };
        let theirs: Vec<i64> = theirs.iter().map(time_ns).collect();
        let ours: Vec<i64> = out.packets().iter().map(|p| p.at_ns).collect();
        assert_eq!(theirs.len() as u64, stats.packets);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            // Two taps, one packet: each takes its own time stamp if the kernel has not set one
            // before.
            assert!((ours - theirs).abs() < 1_000_000, "{ours} {theirs}");
        }
    });
}

#[test]
fn stop_loses_nothing_of_a_burst_that_has_just_passed() {
    in_namespace("stop_loses_nothing_of_a_burst_that_has_just_passed", || {
        for _ in 0..5 {
            let out = Buffer::default();
            let before = segments_received();
            let capture = Capture::start(Options::new("lo"), out.clone()).unwrap();
            exchanges(3000);
            let stats = capture.stop().unwrap();
            let passed = segments_received() - before;
            assert!(passed > 6000);
            assert_eq!((stats.packets, stats.dropped, stats.unread), (passed, 0, 0));
            assert_eq!(out.packets().len() as u64, passed);
        }
    });
}

#[test]
fn what_does_not_fit_the_ring_is_counted() {
    /// Takes nothing until it is told to.
    struct Stuck(mpsc::Receiver<()>, u64);
    impl Sink for Stuck {
        fn begin(&mut self, _: &Description) -> std::io::Result<()> {
            Ok(())
        }
        fn packet(&mut self, _: Packet<'_>) -> std::io::Result<()> {
            if self.1 == 0 {
                let _ = self.0.recv();
            }
            self.1 += 1;
            Ok(())
        }
        fn idle(&mut self) -> std::io::Result<()> {
            Ok(())
        }
        fn end(&mut self, stats: &Stats) -> std::io::Result<()> {
            assert_eq!(self.1, stats.packets);
            Ok(())
        }
    }
    in_namespace("what_does_not_fit_the_ring_is_counted", || {
        let (release, held) = mpsc::channel();
        let before = segments_received();
        let options = Options { ring_bytes: 1 << 20, ..Options::new("lo") };
        let capture = Capture::start_into(options, Stuck(held, 0)).unwrap();
        exchanges(5000);
        release.send(()).unwrap();
        let stats = capture.stop().unwrap();
        assert!(stats.dropped > 0, "a ring of 1 MiB cannot hold 10,000 packets");
        assert_eq!(stats.packets + stats.dropped, segments_received() - before);
    });
}

#[test]
fn a_port_filter_keeps_the_rest_out() {
    in_namespace("a_port_filter_keeps_the_rest_out", || {
        let out = Buffer::default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let filter = Filter { port: Some(port), ..Filter::default() };
        let capture = Capture::start(Options { filter, ..Options::new("lo") }, out.clone()).unwrap();
        exchanges(10);
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        drop(listener.accept().unwrap());
        drop(client);
        capture.stop().unwrap();
        let packets = out.packets();
        assert!(packets.len() >= 5, "{packets:?}");
        assert!(packets.iter().all(|p| p.ports.contains(&port)), "{packets:?}");
    });
}

#[test]
fn the_file_says_what_it_is() {
    in_namespace("the_file_says_what_it_is", || {
        let out = Buffer::default();
        let options = Options { comment: "tcpwhy live -i lo".to_owned(), ..Options::new("lo") };
        Capture::start(options, out.clone()).unwrap().stop().unwrap();
        let bytes = out.0.lock().unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        for part in
            ["tcpwhy live -i lo", concat!("tcpwhy ", env!("CARGO_PKG_VERSION")), release.trim(), "tcp on lo"]
        {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    });
}

#[test]
fn an_error_names_what_is_missing_and_what_would_allow_it() {
    in_namespace("an_error_names_what_is_missing_and_what_would_allow_it", || {
        let error = Capture::start(Options::new("eth7"), std::io::sink()).unwrap_err();
        assert!(!error.is_impossible_here());
        assert_eq!(error.to_string(), "there is no interface \"eth7\" here; there are: lo");

        ip(&["link", "set", "lo", "down"]);
        let error = Capture::start(Options::new("lo"), std::io::sink()).unwrap_err();
        assert_eq!(error.to_string(), "the interface lo is down: `ip link set lo up`");

        let mut capabilities = rustix::thread::capabilities(None).unwrap();
        capabilities.effective.remove(CapabilitySet::NET_RAW);
        rustix::thread::set_capabilities(None, capabilities).unwrap();
        let error = Capture::start(Options::new("lo"), std::io::sink()).unwrap_err();
        assert!(matches!(error, Error::NotPermitted { .. }) && error.is_impossible_here());
        let text = error.to_string();
        assert!(text.contains("CAP_NET_RAW") && text.contains("setcap cap_net_raw+ep"), "{text}");
    });
}

#[test]
fn an_interface_that_goes_away_is_reported_and_what_it_gave_is_kept() {
    in_namespace("an_interface_that_goes_away_is_reported_and_what_it_gave_is_kept", || {
        let out = Buffer::default();
        let capture = Capture::start(Options::new("lo"), out.clone()).unwrap();
        exchanges(5);
        ip(&["link", "set", "lo", "down"]);
        std::thread::sleep(std::time::Duration::from_millis(100));
        let stats = capture.stop().unwrap();
        assert_eq!(stats.interrupted.as_deref(), Some("Network is down (os error 100)"));
        assert!(stats.packets >= 15);
        assert_eq!(out.packets().len() as u64, stats.packets);
    });
}

#[test]
fn an_interface_that_is_made_anew_is_captured_again_without_any_right() {
    in_namespace("an_interface_that_is_made_anew_is_captured_again_without_any_right", || {
        // Multicast listener reports have an extension header, and the filter does not look past
        // it.
        let _ = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        let made = |number: &str| {
            ip(&["link", "add", "a0", "type", "veth", "peer", "name", "b0"]);
            for name in ["a0", "b0"] {
                ip(&[
                    "addr",
                    "add",
                    &format!("10.9.{number}.{}/24", if name == "a0" { 1 } else { 2 }),
                    "dev",
                    name,
                ]);
                ip(&["link", "set", name, "up"]);
            }
        };
        made("1");
        for interface in ["a0", "a0,lo"] {
            let out = Buffer::default();
            let into = out.clone();
            let start = move || {
                Capture::start_confined(Options::new(interface), into, || {
                    let none = CapabilitySet::empty();
                    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
                    Ok(rustix::thread::set_capabilities(None, none)?)
                })
            };
            let started = std::thread::scope(|scope| scope.spawn(start).join());
            let capture = started.expect("no panic").expect("it starts");
            let counts = capture.counts();
            ip(&["link", "del", "a0"]);
            std::thread::sleep(std::time::Duration::from_millis(400));
            made("2");
            std::thread::sleep(std::time::Duration::from_millis(600));
            // No host answers at that address, but the SYN passes the new a0 all the same.
            let neighbour = ["neigh", "replace", "10.9.2.9", "lladdr", "02:00:00:00:00:09", "dev", "a0"];
            ip(&neighbour);
            let target = std::net::SocketAddr::from(([10, 9, 2, 9], 4_242));
            let _ = TcpStream::connect_timeout(&target, std::time::Duration::from_millis(300));
            let stats = capture.stop().unwrap();
            assert!(stats.packets >= 1, "{interface}: {stats:?}");
            assert_eq!(counts.packets(), stats.packets);
            assert!(out.packets().iter().all(|packet| packet.ports.contains(&4_242)), "{interface}");
        }
    });
}

#[test]
fn packets_that_never_stop_coming_are_handed_on_all_the_same() {
    in_namespace("packets_that_never_stop_coming_are_handed_on_all_the_same", || {
        let out = Buffer::default();
        let capture = Capture::start(Options::new("lo"), out.clone()).unwrap();
        // An exchange every 10 ms: the ring is never empty for the 40 ms after which a sink is
        // idle, and the sink's buffer is never full.
        let mut seen = 0;
        for _ in 0..100 {
            exchanges(1);
            std::thread::sleep(std::time::Duration::from_millis(10));
            seen = out.packets().len();
            if seen > 0 {
                break;
            }
        }
        assert!(seen > 0, "none within a second");
        capture.stop().unwrap();
    });
}
