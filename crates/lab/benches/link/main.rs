//! How closely does the link follow its path? Prints the tables of docs/link.md: `cargo bench -p
//! tcpwhy-lab --bench link`.
//!
//! Programs on both hosts stamp their own datagrams and read their interfaces' counters. The link's
//! own records are only printed for comparison.

mod plan;
mod round_trip;
mod stamp;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration as StdDuration;

use rustix::time::{ClockId, clock_gettime};
use tcpwhy_lab::{Pair, PathSpec};
use tcpwhy_wire::{Duration, Instant};

use plan::Plan;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    // `cargo test --all-targets` runs benchmarks too, without this flag.
    if !std::env::args().any(|arg| arg == "--bench") {
        println!("the link's benchmark takes four minutes: cargo bench -p tcpwhy-lab --bench link");
        return Ok(());
    }
    let plan = Plan::read()?;
    let before = processor_times()?;
    if plan.runs("round-trip") {
        round_trip::print(&plan)?;
    }
    if plan.runs("rate") {
        println!("\n## Rate\n");
        println!("| rate | packets | measured, Mb/s | error |");
        println!("|---|---|---|---|");
        for mbit in [1, 3, 10, 30, 100, 300, 1000] {
            rate(&plan, mbit)?;
        }
    }
    if plan.runs("throughput") {
        println!("\n## Throughput of one TCP connection, cubic, no elements\n");
        println!("| super-segments | Gbit/s |");
        println!("|---|---|");
        for tso in [true, false] {
            throughput(&plan, tso)?;
        }
    }
    let after = processor_times()?;
    println!(
        "\nMeanwhile other programs took {:.0} % of the processors and the hypervisor {:.1} %.",
        100.0 * (after.busy - before.busy - (after.own - before.own)) / (after.all - before.all),
        100.0 * (after.stolen - before.stolen) / (after.all - before.all),
    );
    Ok(())
}

/// Sends datagrams of this many full packets (fragments, if more than one) at a rate until told to
/// stop; returns how many.
fn flood(mbit: u32, packets: u32, stop: &AtomicBool) -> io::Result<u64> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect((Pair::SERVER_V4, LOAD_PORT))?;
    // Every fragment repeats the 20 bytes of the IP header; UDP's header has 8 bytes.
    let datagram = vec![0; (packets * (PACKET_LEN - 20) - 8) as usize];
    let start = now();
    let mut sent: u64 = 0;
    while !stop.load(Ordering::Relaxed) {
        let due_bits = (now() - start).as_nanos().unsigned_abs() * u64::from(mbit) / 1_000;
        while sent * u64::from(packets * PACKET_LEN) * 8 < due_bits {
            socket.send(&datagram)?;
            sent += 1;
        }
        sleep(StdDuration::from_micros(500));
    }
    Ok(sent)
}

/// Offers more than a link carries and measures what arrives, by the interface counter at the far
/// end.
fn rate(plan: &Plan, mbit: u32) -> Result<(), Failure> {
    let link = format!("rate {mbit}mbit queue 200ms");
    let path = PathSpec { forward: vec![link.parse()?], ..PathSpec::default() };
    let pair = plan.pair(path, true)?;
    let stop = Arc::new(AtomicBool::new(false));
    let sending = Arc::clone(&stop);
    // At higher rates one call of a program sends more packets, so that the sender is not what is
    // measured.
    let packets = (mbit / 25).clamp(1, 40);
    // It is never read: a full buffer costs the machine the least. Without the socket the sender
    // would be refused.
    let _unread = pair
        .server()
        .enter(|| UdpSocket::bind(("0.0.0.0", LOAD_PORT)))?
        .join()
        .map_err(|_| "the binding thread panicked")??;
    let sender = pair.client().enter(move || flood(mbit + mbit.div_ceil(4), packets, &sending))?;
    sleep(StdDuration::from_millis(500));
    let span = StdDuration::from_secs(u64::from(plan.seconds.div_ceil(4)));
    let interface = pair.server().interface();
    let counted = pair.server().enter(move || -> io::Result<_> {
        let first = next_arrival(interface)?;
        sleep(span);
        Ok((first, next_arrival(interface)?))
    })?;
    let ((bytes_before, first), (bytes_after, last)) =
        counted.join().map_err(|_| "the counting thread panicked")??;
    stop.store(true, Ordering::Relaxed);
    sender.join().map_err(|_| "the sender panicked")??;
    let bytes = bytes_after - bytes_before;
    let measured = bytes as f64 * 8.0 / (last - first).as_nanos() as f64 * 1e3;
    let error = (measured / f64::from(mbit) - 1.0) * 100.0;
    println!("| {mbit} Mb/s | {} | {measured:.4} | {error:+.3} % |", bytes / u64::from(PACKET_LEN));
    Ok(())
}

/// Waits until the interface has received more; returns the total in bytes, and the time.
fn next_arrival(interface: &str) -> io::Result<(u64, Instant)> {
    let (mut before, start) = (None, now());
    loop {
        let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
        let at = now();
        let line =
            table.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'));
        let bytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        let bytes: u64 = bytes.ok_or_else(|| io::Error::other("no counters of the interface"))?;
        if before.is_some_and(|before| before != bytes) {
            return Ok((bytes, at));
        }
        if at - start > Duration::from_secs(5) {
            return Err(io::Error::other("nothing arrives"));
        }
        before = Some(bytes);
    }
}

/// One connection that sends as fast as it can.
fn throughput(plan: &Plan, tso: bool) -> Result<(), Failure> {
    let pair = plan.pair(PathSpec::default(), tso)?;
    let reader = pair.server().enter(|| -> io::Result<(u64, Duration)> {
        let (mut stream, _) = TcpListener::bind((Pair::SERVER_V4, LOAD_PORT))?.accept()?;
        let mut buffer = vec![0; 1 << 20];
        let (start, mut total) = (now(), 0);
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok((total, now() - start)),
                len => total += len as u64,
            }
        }
    })?;
    sleep(StdDuration::from_millis(100));
    let writer = pair.client().enter(|| -> io::Result<()> {
        let mut stream = TcpStream::connect((Pair::SERVER_V4, LOAD_PORT))?;
        let buffer = vec![0; 256 << 10];
        let start = now();
        while now() - start < Duration::from_secs(4) {
            stream.write_all(&buffer)?;
        }
        Ok(())
    })?;
    writer.join().map_err(|_| "the writer panicked")??;
    let (total, elapsed) = reader.join().map_err(|_| "the reader panicked")??;
    let kind = if tso { "whole" } else { "off" };
    println!("| {kind} | {:.1} |", total as f64 * 8.0 / elapsed.as_nanos() as f64);
    Ok(())
}

/// Clock ticks of all processors since boot, and of this process.
struct ProcessorTimes {
    all: f64,
    busy: f64,
    stolen: f64,
    own: f64,
}

fn processor_times() -> Result<ProcessorTimes, Failure> {
    let numbers = |text: &str, skip: usize| -> Vec<f64> {
        text.split_whitespace().skip(skip).filter_map(|word| word.parse().ok()).collect()
    };
    // proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
    let stat = std::fs::read_to_string("/proc/stat")?;
    let machine = numbers(stat.lines().next().unwrap_or_default(), 1);
    let [user, nice, system, idle, iowait, irq, softirq, stolen, ..] = machine[..] else {
        return Err("/proc/stat has fewer columns than expected".into());
    };
    // utime and stime are fields 14 and 15 of proc/self/stat; the second, in brackets, may contain
    // blanks.
    let own = std::fs::read_to_string("/proc/self/stat")?;
    let own = numbers(own.rsplit(')').next().unwrap_or_default(), 11);
    let busy = user + nice + system + irq + softirq;
    Ok(ProcessorTimes { all: busy + idle + iowait + stolen, busy, stolen, own: own.iter().take(2).sum() })
}

/// The clock of the kernel's receive stamps.
fn now() -> Instant {
    let time = clock_gettime(ClockId::Realtime);
    Instant::from_nanos(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

const LOAD_PORT: u16 = 9;
/// From the IP header on.
const PACKET_LEN: u32 = 1500;
