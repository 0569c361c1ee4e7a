//! By how much does a round trip differ from the path's? Datagrams with four times, as in NTP.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration as StdDuration;

use tcpwhy_lab::path::parse_duration;
use tcpwhy_lab::{Host, Pair, PathSpec};
use tcpwhy_wire::{Duration, Instant};

use crate::plan::Plan;
use crate::{Failure, LOAD_PORT, flood, now, stamp};

/// Prints the table.
pub(crate) fn print(plan: &Plan) -> Result<(), Failure> {
    println!("\n## Round trip\n");
    println!(
        "Error of the path's round trip; the time that a program measured, above the path's; how late the link handed over.\n"
    );
    println!(
        "| path | load | pings | early | path p50 | p99 | p99.9 | max | program p50 | p99 | link p50 | p99 | p99.9 |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for rtt in &plan.rtts {
        for load_mbit in [0, 100] {
            print_row(plan, rtt, load_mbit)?;
        }
    }
    Ok(())
}

fn print_row(plan: &Plan, rtt: &str, load_mbit: u32) -> Result<(), Failure> {
    let expected = parse_duration(rtt)?;
    let pair = plan.pair(PathSpec::delay(expected), true)?;
    let stop = Arc::new(AtomicBool::new(false));
    let load = (load_mbit > 0).then(|| Load::start(&pair, load_mbit, &stop)).transpose()?;
    let responder = {
        let stop = Arc::clone(&stop);
        pair.server().enter(move || respond(&stop))?
    };
    sleep(StdDuration::from_millis(200));
    let count = plan.seconds * PINGS_PER_S;
    let samples = pair.client().enter(move || ping(count))?.join().map_err(|_| "the pinger panicked")??;
    stop.store(true, Ordering::Relaxed);
    responder.join().map_err(|_| "the responder panicked")??;
    if let Some(load) = load {
        load.check()?;
    }
    let log = pair.log();
    check(&pair, log.refused)?;

    let path = sorted(samples.iter().map(|sample| sample.path() - expected));
    let clocked = sorted(samples.iter().map(|sample| sample.clocked() - expected));
    let late = sorted(log.records.iter().filter_map(|record| Some(record.delivered? - record.path.left)));
    let early = path.iter().filter(|error| **error < Duration::ZERO).count();
    print!("| {rtt} | {load_mbit} Mb/s | {} of {count} | {early} ", path.len());
    for value in [0.5, 0.99, 0.999, 1.0] {
        print!("| {} ", share(&path, value));
    }
    for value in [0.5, 0.99] {
        print!("| {} ", share(&clocked, value));
    }
    for value in [0.5, 0.99, 0.999] {
        print!("| {} ", share(&late, value));
    }
    println!("|");
    Ok(())
}

/// The four times of a ping, as NTP names them (RFC 5905, 8): sent, received, answered, answer
/// received; and when the program read the answer.
struct Sample {
    t1: Instant,
    t2: Instant,
    t3: Instant,
    t4: Instant,
    read: Instant,
}

impl Sample {
    /// The round trip without the far program's time.
    fn path(&self) -> Duration {
        (self.t4 - self.t1) - (self.t3 - self.t2)
    }

    /// The round trip with everything.
    fn clocked(&self) -> Duration {
        self.read - self.t1
    }
}

/// Sends pings, spaced so that they match no rhythm of the load, and collects the answers.
fn ping(count: u32) -> io::Result<Vec<Sample>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((Pair::SERVER_V4, PING_PORT))?;
    socket.set_read_timeout(Some(StdDuration::from_millis(500)))?;
    stamp::enable(&socket)?;
    run_before_the_load();
    let receiver = socket.try_clone()?;
    let answers = std::thread::spawn(move || {
        let mut samples = Vec::new();
        let mut buffer = [0; 64];
        // The read times out after the last answer.
        while let Ok((24, t4)) = stamp::receive(&receiver, &mut buffer) {
            let read = now();
            let time = |at: usize| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&buffer[at..at + 8]);
                Instant::from_nanos(i64::from_ne_bytes(bytes))
            };
            samples.push(Sample { t1: time(0), t2: time(8), t3: time(16), t4, read });
        }
        samples
    });
    for n in 0..count {
        let gap_us = 1_000_000 / PINGS_PER_S + (n * 7919) % 1000;
        sleep(StdDuration::from_micros(u64::from(gap_us) - 500));
        socket.send(&now().as_nanos().to_ne_bytes())?;
    }
    answers.join().map_err(|_| io::Error::other("the receiving thread panicked"))
}

/// Answers pings with their own time, the time of their arrival, and the time of the answer.
fn respond(stop: &AtomicBool) -> io::Result<()> {
    let socket = UdpSocket::bind(("0.0.0.0", PING_PORT))?;
    socket.set_read_timeout(Some(StdDuration::from_millis(100)))?;
    stamp::enable(&socket)?;
    run_before_the_load();
    let mut buffer = [0; 64];
    let mut peer: Option<SocketAddr> = None;
    while !stop.load(Ordering::Relaxed) {
        if peer.is_none() {
            // The address of the first ping; on a connected socket the answers need no route
            // look-up.
            let Ok((_, from)) = socket.peek_from(&mut buffer) else { continue };
            socket.connect(from)?;
            peer = Some(from);
        }
        if let Ok((8, t2)) = stamp::receive(&socket, &mut buffer) {
            buffer[8..16].copy_from_slice(&t2.as_nanos().to_ne_bytes());
            buffer[16..24].copy_from_slice(&now().as_nanos().to_ne_bytes());
            socket.send(&buffer[..24])?;
        }
    }
    Ok(())
}

/// If the load took the processor between reading the clock and sending, that would be measured,
/// not the link.
fn run_before_the_load() {
    // Refused without CAP_SYS_NICE: the figures are then worse, not wrong.
    let _ = rustix::process::setpriority_process(None, -15);
}

/// A stream of datagrams from the client to the server.
struct Load {
    sender: JoinHandle<io::Result<u64>>,
    sink: JoinHandle<io::Result<u64>>,
}

impl Load {
    fn start(pair: &Pair, mbit: u32, stop: &Arc<AtomicBool>) -> Result<Self, Failure> {
        let (sending, sinking) = (Arc::clone(stop), Arc::clone(stop));
        let sink = pair.server().enter(move || sink(&sinking))?;
        let sender = pair.client().enter(move || flood(mbit, 1, &sending))?;
        Ok(Self { sender, sink })
    }

    /// The load counts as carried if nearly all of it arrived.
    fn check(self) -> Result<(), Failure> {
        let sent = self.sender.join().map_err(|_| "the load's sender panicked")??;
        let received = self.sink.join().map_err(|_| "the load's receiver panicked")??;
        if received + sent / 100 < sent {
            Err(format!("{received} of {sent} arrived").into())
        } else {
            Ok(())
        }
    }
}

/// Counts datagrams until told to stop.
fn sink(stop: &AtomicBool) -> io::Result<u64> {
    let socket = UdpSocket::bind(("0.0.0.0", LOAD_PORT))?;
    socket.set_read_timeout(Some(StdDuration::from_millis(300)))?;
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20)?;
    let mut buffer = [0; 2048];
    let mut count = 0;
    loop {
        match socket.recv(&mut buffer) {
            Ok(_) => count += 1,
            Err(_) if stop.load(Ordering::Relaxed) => return Ok(count),
            Err(_) => {}
        }
    }
}

/// A measurement counts only if no kernel dropped anything on its own.
fn check(pair: &Pair, refused: u64) -> Result<(), Failure> {
    let overflows = |host: &Host| -> io::Result<u64> {
        // Two lines begin with `Udp:`, names and numbers; RcvbufErrors is the fifth.
        let table = host.proc_file("net/snmp")?;
        let numbers = table.lines().filter_map(|line| line.strip_prefix("Udp:")).nth(1).unwrap_or_default();
        Ok(numbers.split_whitespace().nth(4).and_then(|number| number.parse().ok()).unwrap_or_default())
    };
    let overruns = pair.client().overruns()? + pair.server().overruns()?;
    let overflows = overflows(pair.client())? + overflows(pair.server())?;
    if overruns + refused + overflows > 0 {
        println!(
            "| overloaded: {overruns} overruns, {refused} refused, {overflows} receive buffer overflows |"
        );
    }
    Ok(())
}

fn sorted(values: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values
}

/// The value below which this share of the sorted values is.
fn share(sorted: &[Duration], share: f64) -> Duration {
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

const PINGS_PER_S: u32 = 250;
const PING_PORT: u16 = 7;
