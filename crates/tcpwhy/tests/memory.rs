//! Does the budget's accounting match the allocator's within a tenth? Hostile shapes that fill a
//! small budget, on one thread and on eight.
//!
//! The accounted total decides what is discarded. Memory held besides (the segments of two epochs,
//! and slots that wait for the next connection) is known as well: unaccounted memory would have no
//! bound.

#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "an allocator that counts is made of unsafe functions")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::BufWriter;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tcpwhy::input::{self, Inputs};
use tcpwhy::threads::Engine;
use tcpwhy_core::{Listing, Options};
use tcpwhy_gen::Hostile;

/// What is in use, and its peak.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does all of it; here only sizes are added up.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MEMORY: usize = 96_000_000;
const PACKETS: u64 = 250_000;
/// Buffers of the input and of the program itself.
const BESIDE: usize = 2_000_000;
/// If exchanges are listed: those of an epoch being worked on, and the report made of all of them.
const LISTS: usize = 24_000_000;
/// With the lists of a page, and of a document.
const LISTED: [Listing; 2] = [Listing::Thinned(10_000), Listing::UpTo(20_000)];
/// The shapes that aim at state kept from epoch to epoch.
const SHAPES: [Hostile; 17] = [
    Hostile::SynFlood,
    Hostile::Servers,
    Hostile::Open,
    Hostile::OpenV6,
    Hostile::Flights,
    Hostile::Finished,
    Hostile::Once,
    Hostile::Spreads,
    Hostile::Crowd,
    Hostile::Whispers,
    Hostile::Moving,
    Hostile::Vacant,
    Hostile::Leavers,
    Hostile::Regulars,
    Hostile::Askers,
    Hostile::Causes,
    Hostile::Lengths,
];

#[test]
fn the_allocator_has_given_what_the_budget_counts() {
    let (mut wrong, mut most) = (Vec::new(), 0);
    let plain = SHAPES.map(|hostile| (hostile, Listing::None));
    let listed = [Hostile::Crowd, Hostile::Mss, Hostile::Lengths]
        .into_iter()
        .flat_map(|hostile| LISTED.map(|listing| (hostile, listing)));
    for (hostile, listing) in plain.into_iter().chain(listed) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        hostile.write(PACKETS, &mut BufWriter::new(file.as_file_mut())).expect("a capture");
        for threads in [1, 8] {
            let before = LIVE.load(Relaxed);
            PEAK.store(before, Relaxed);
            let options = Options { listing, memory: MEMORY, ..Options::default() };
            let mut engine = Engine::new(options, threads);
            let inputs = Inputs::open(&[file.path()]);
            let read = inputs.for_each_decoded(
                &input::Options::default(),
                |_| {},
                |_, decoded, captured| engine.on_decoded(decoded, captured),
            );
            assert_eq!(read.packets(), PACKETS);
            let (counted, held) = (engine.counted_bytes(), engine.held_bytes());
            let live = LIVE.load(Relaxed) - before;
            drop(engine.finish());
            let peak = PEAK.load(Relaxed) - before;
            let said = format!(
                "{:<10} {listing:?} {threads} threads: {:>6.1} MB allocated, {:>6.1} MB counted, {:>6.1} MB held, {:>6.1} MB at most",
                hostile.name(),
                live as f64 / 1e6,
                counted as f64 / 1e6,
                held as f64 / 1e6,
                peak as f64 / 1e6
            );
            println!("{said}");
            most = most.max(live);
            let lists = if listing == Listing::None { 0 } else { LISTS };
            // The segments that wait for several threads are not among what the budget bounds.
            let most_allowed = if threads == 1 { MEMORY / 10 * 11 } else { MEMORY / 8 * 9 };
            if live > held / 10 * 11 + BESIDE + lists || peak > most_allowed + lists {
                wrong.push(said);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(most > MEMORY / 2, "the budget was not tried: {most} bytes");
}
