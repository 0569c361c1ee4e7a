//! How do several threads draw up a page's data, and deflate it while it is written?
//!
//! One thread writes numbers as text, piece by piece, and others deflate the pieces: the file is
//! the same as from a single thread.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

use tcpwhy::threads::USEFUL_MAX;
use tcpwhy_page::{Deflated, Deflater, Page, file};

/// Pieces that may wait for each thread.
const PIECES_AHEAD: usize = 4;

/// Hands out pieces to the threads in turn.
struct Dealer {
    hands: Vec<SyncSender<Vec<u8>>>,
    dealt: usize,
}

impl Write for Dealer {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let hand = &self.hands[self.dealt % self.hands.len()];
        hand.send(piece.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.dealt += 1;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Calls `make` for each of `count` items on up to `threads` threads: each takes the next item that
/// is free.
pub(crate) fn each(count: usize, make: &(dyn Fn(usize) + Sync), threads: usize) {
    let next = AtomicUsize::new(0);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count);
    let work = || std::iter::from_fn(take).for_each(make);
    thread::scope(|scope| {
        for _ in 1..threads.min(USEFUL_MAX).min(count) {
            // If the system gives no more threads, the existing ones do all the work.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
}

/// Writes the page on this many threads.
pub(crate) fn write(page: &Page<'_>, to: impl Write, threads: usize) -> io::Result<()> {
    if threads < 2 {
        return file::write(page, to);
    }
    let start = |_| {
        let ((hand, pieces), (out, deflated)) = (sync_channel(PIECES_AHEAD), channel());
        // If the system gives no thread, a single one writes the page.
        thread::Builder::new().spawn(move || deflate(&pieces, &out)).ok().map(|_| (hand, deflated))
    };
    let Some(started) = (0..threads.min(USEFUL_MAX)).map(start).collect::<Option<Vec<_>>>() else {
        return file::write(page, to);
    };
    let (hands, deflated): (Vec<_>, Vec<Receiver<Deflated>>) = started.into_iter().unzip();
    let mut dealer = Dealer { hands, dealt: 0 };
    file::write_plain(page, &mut dealer)?;
    file::around(page.is_served(), to, |gzip| {
        (0..dealer.dealt).try_for_each(|piece| {
            let deflated = deflated[piece % deflated.len()].recv();
            gzip.put(&deflated.map_err(|_| io::ErrorKind::BrokenPipe)?)
        })
    })
}

fn deflate(pieces: &Receiver<Vec<u8>>, out: &Sender<Deflated>) {
    let mut deflater = Deflater::default();
    for piece in pieces {
        if out.send(deflater.deflate(&piece)).is_err() {
            break;
        }
    }
}
