//! How much memory and time can a capture cost its reader? Hostile captures are piped into `tcpwhy
//! read`.
//!
//! The small form always runs. The large one measures, with ten million packets each, for
//! docs/robustness.md:
//! `cargo test --release -p tcpwhy --test hostile -- --ignored --nocapture`.

#![cfg(target_os = "linux")]
#![expect(clippy::zombie_processes, reason = "they are waited for by wait4, which says what they have used")]

use std::io::{self, Read, Write};
use std::process::{ChildStdin, Command, Stdio};

use tcpwhy_gen::Hostile;

/// At the default settings.
const MEMORY_MAX_MB: u64 = 512;
const SMALL: u64 = 60_000;
const LARGE: u64 = 10_000_000;
/// Shapes of packets of which no header can be read.
const NOTHING: [Hostile; 8] = [
    Hostile::Vlan,
    Hostile::Extensions,
    Hostile::Pieces,
    Hostile::Slivers,
    Hostile::Overlaps,
    Hostile::Tunnels,
    Hostile::Labels,
    Hostile::Tagged,
];

/// How a run ended.
struct Cost {
    memory_mb: u64,
    said: String,
    shown: String,
}

/// Runs `tcpwhy read -` on the bytes written, which it can analyse.
fn cost(args: &[&str], write: impl FnOnce(&mut ChildStdin) -> io::Result<()>) -> Cost {
    ended(0, args, write)
}

/// Runs `tcpwhy read -` on the bytes written, and expects this exit code.
fn ended(expected: i32, args: &[&str], write: impl FnOnce(&mut ChildStdin) -> io::Result<()>) -> Cost {
    let memory = format!("{MEMORY_MAX_MB}MB");
    let args: Vec<&str> = ["-", "--memory", &memory].iter().chain(args).copied().collect();
    of(expected, &args, write)
}

/// The same for these inputs.
fn of(expected: i32, args: &[&str], write: impl FnOnce(&mut ChildStdin) -> io::Result<()>) -> Cost {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
    command.arg("read").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("tcpwhy starts");
    let [stdout, stderr] = [reader(child.stdout.take()), reader(child.stderr.take())];
    let mut stdin = child.stdin.take().expect("a pipe");
    // It stops reading once it has seen enough.
    let written = write(&mut stdin);
    assert!(written.is_ok() || written.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe));
    drop(stdin);
    let (code, memory_mb) = usage::wait(&child);
    let [shown, said] = [stdout, stderr].map(|thread| thread.join().expect("text"));
    assert_eq!(code, Some(expected), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    Cost { memory_mb, said, shown }
}

/// The start of the output. No more is kept: a child's peak memory starts from its parent's.
fn reader(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut from = from.expect("a pipe");
        let mut text = Vec::new();
        from.by_ref().take(1 << 20).read_to_end(&mut text).expect("bytes");
        io::copy(&mut from, &mut io::sink()).expect("bytes");
        String::from_utf8_lossy(&text).into_owned()
    })
}

#[test]
fn every_hostile_shape_is_read_to_its_end_with_little_memory() {
    for &hostile in Hostile::ALL {
        // Packets of which no header can be read leave nothing to analyse, and the output says so.
        let nothing = NOTHING.contains(&hostile);
        let cost = ended(if nothing { 5 } else { 0 }, &[], |to| hostile.write(SMALL, to));
        let name = hostile.name();
        // A connection that has only begun takes its block (60,000 of 3.8 KB and what goes with
        // them), and a new server its lists.
        let bound = match hostile {
            Hostile::SynFlood
            | Hostile::Spreads
            | Hostile::Causes
            | Hostile::Chorus
            | Hostile::FastOpen
            | Hostile::Jumps
            | Hostile::Unanswered
            | Hostile::Reversed
            | Hostile::SameNumber
            | Hostile::Lengths
            | Hostile::Turncoats
            | Hostile::Unending => 256,
            Hostile::Whispers | Hostile::OpenV6 | Hostile::TcpOptions | Hostile::Streams => 312,
            // As many connections, each with its requests.
            Hostile::Crowd
            | Hostile::Pushes
            | Hostile::Openings
            | Hostile::Sums
            | Hostile::Ports
            | Hostile::Moving
            | Hostile::Regulars
            | Hostile::Askers
            | Hostile::Vacant => 480,
            Hostile::Once | Hostile::Mss | Hostile::Subflows => 136,
            // The longest block is read into memory.
            _ => 72,
        };
        assert!(cost.memory_mb < bound, "{name}: {} MB", cost.memory_mb);
        let read = match hostile {
            // The blocks after one of 4 GB are found, and each is reported as damaged.
            Hostile::Blocks => "30,000 places could not be read",
            Hostile::Vlan | Hostile::Extensions => "no TCP in 60,000 packets (60,000 too-many-headers)",
            Hostile::Tunnels => "60,000 of 60,000 packets are cut off within the TCP header",
            _ if nothing => "no TCP in 60,000 packets",
            _ => "60,000 packets",
        };
        let shown = if nothing { &cost.said } else { &cost.shown };
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(read), "{name}: {shown}");
    }
}

/// Each announces that it needs a megabyte or two; none may take in advance what another one needs.
#[test]
fn twenty_compressed_files_are_read_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let files: Vec<_> = (0..20).map(|n| directory.path().join(format!("{n}.pcap.zst"))).collect();
    for file in &files {
        let mut to = zstd::Encoder::new(std::fs::File::create(file).expect("a file"), 3).expect("zstd");
        Hostile::Crowd.write(2_000, &mut to).expect("a capture");
        to.finish().expect("a capture");
    }
    for count in [1, 4, 10, 20] {
        let output = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
            .arg("read")
            .args(&files[..count])
            .output()
            .expect("tcpwhy runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{count} files: {said}");
    }
}

/// Of a million questions, only those shown are kept.
#[test]
fn questions_in_words_take_no_more_memory_than_is_allowed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("x.pcap");
    Hostile::Unanswered
        .write(SMALL / 2, &mut std::fs::File::create(&file).expect("a file"))
        .expect("a capture");
    let args = ["--memory", "64MB", "--show-requests", "--json", file.to_str().expect("a plain name")];
    let cost = of(0, &args, |_| Ok(()));
    assert!(cost.memory_mb < 136, "{} MB", cost.memory_mb);
}

/// First it is checked whether several inputs saw the same connections.
#[test]
fn many_files_take_no_more_memory_than_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let files: Vec<_> = (0..12).map(|n| directory.path().join(format!("{n}.pcap"))).collect();
    for file in &files {
        Hostile::Moving
            .write(SMALL / 2, &mut std::fs::File::create(file).expect("a file"))
            .expect("a capture");
    }
    let [one, several] = [1, files.len()].map(|count| {
        let names = files[..count].iter().map(|file| file.to_str().expect("a plain name"));
        of(0, &["--memory", "64MB"].into_iter().chain(names).collect::<Vec<_>>(), |_| Ok(()))
    });
    assert!(several.said.contains("too many connections to detect"), "{}", several.said);
    // The packet numbers and buffers of twelve files.
    assert!(
        several.memory_mb < one.memory_mb + 24,
        "{} MB for one, {} MB for twelve",
        one.memory_mb,
        several.memory_mb
    );
}

#[test]
fn connections_beyond_the_limit_are_closed_and_counted() {
    let flood = |to: &mut ChildStdin| Hostile::SynFlood.write(SMALL, to);
    let limited = cost(&["--max-connections", "1000"], flood);
    assert!(limited.memory_mb < 48, "{}", limited.memory_mb);
    let words = limited.shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let (said, times) = words.split_once("because of --memory or --max-connections (").unwrap_or_default();
    assert!(said.contains("connections were dropped before their end"), "{words}");
    let closed: u64 = times.split(' ').next().unwrap_or_default().replace(',', "").parse().unwrap_or(0);
    // Up to a quarter more may be open for a moment; an eighth of the limit is evicted at a time.
    assert!((SMALL - 1_300..SMALL).contains(&closed), "{closed}");
    assert!(!cost(&[], flood).shown.contains("--max-connections"));
}

/// One connection, then endless zeros.
fn bomb(to: impl Write, zeros_mb: u64) -> io::Result<()> {
    let mut to = to;
    Hostile::OneByte.write(1_000, &mut to)?;
    let piece = vec![0; 1 << 20];
    (0..zeros_mb).try_for_each(|_| to.write_all(&piece))
}

/// Identical packets, compressed: a bomb that is a capture.
fn alike(to: impl Write, packets: u64) -> io::Result<()> {
    let mut to = to;
    let mut one = Vec::new();
    Hostile::Vlan.write(1, &mut one)?;
    to.write_all(&one)?;
    let many = one[24..].repeat(1_000);
    (0..packets / 1_000).try_for_each(|_| to.write_all(&many))
}

fn gzip(to: &mut impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut gz = flate2::write::GzEncoder::new(to, flate2::Compression::fast());
    write(&mut gz)?;
    gz.finish().map(|_| ())
}

fn zstd(to: &mut impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut zst = zstd::Encoder::new(to, 1)?;
    write(&mut zst)?;
    zst.finish().map(|_| ())
}

/// A zstd frame that asks for a window of 2 GB.
#[test]
fn a_window_of_zstd_is_bounded() {
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x02, 0x00, 0x00, 0xff, 0xff, 0xff];
    let cost = ended(1, &[], |to| to.write_all(&frame));
    assert!(cost.memory_mb < 48, "{} MB: {}", cost.memory_mb, cost.said);
    assert!(cost.said.contains("cannot read"), "{}", cost.said);
}

#[test]
#[ignore = "measures; see the module's comment"]
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn large_shapes_are_measured() {
    println!("{:<15} {:>12} {:>9} {:>9}", "shape", "packets", "seconds", "peak MB");
    let measure_with =
        |name: &str, packets: &str, args: &[&str], write: &dyn Fn(&mut ChildStdin) -> io::Result<()>| {
            let begin = std::time::Instant::now();
            let cost = cost(args, |to| write(to));
            let seconds = begin.elapsed().as_secs_f64();
            println!("{name:<15} {packets:>12} {seconds:>9.1} {:>9}", cost.memory_mb);
            assert!(cost.memory_mb < MEMORY_MAX_MB, "{name}: {} MB", cost.memory_mb);
        };
    let measure = |name: &str, packets: &str, write: &dyn Fn(&mut ChildStdin) -> io::Result<()>| {
        measure_with(name, packets, &[], write);
    };
    for hostile in [Hostile::SynFlood, Hostile::Servers, Hostile::Open, Hostile::Flights] {
        let name = format!("{} JSON", hostile.name());
        measure_with(&name, "10,000,000", &["--json"], &|to| hostile.write(LARGE, to));
    }
    for &hostile in Hostile::ALL {
        measure(hostile.name(), "10,000,000", &|to| hostile.write(LARGE, to));
    }
    measure("gzip zeros", "64 GB", &|to| gzip(to, |to| bomb(to, 64 << 10)));
    measure("zstd zeros", "64 GB", &|to| zstd(to, |to| bomb(to, 64 << 10)));
    measure("gzip alike", "10,000,000", &|to| gzip(to, |to| alike(to, LARGE)));
    measure("zstd alike", "10,000,000", &|to| zstd(to, |to| alike(to, LARGE)));
}

/// What a process has used, which the standard library does not report.
mod usage {
    #![expect(unsafe_code, reason = "wait4 is a system call with two places to write to")]

    use std::process::Child;

    /// Waits for the end: exit code and peak memory in MB.
    pub(crate) fn wait(child: &Child) -> (Option<i32>, u64) {
        let pid = i32::try_from(child.id()).expect("a process's number");
        let mut status = 0;
        // SAFETY: rusage is numbers only, for which zeros are a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live values of the types that wait4 writes.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        assert_eq!(waited, pid, "the child is there to be waited for");
        (
            libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            usage.ru_maxrss as u64 * 1024 / 1_000_000,
        )
    }
}
