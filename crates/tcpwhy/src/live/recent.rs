//! Which packets passed in the last seconds? pcapng blocks as they were written, not parsed here:
//! to be saved, or read by a sandboxed reader.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// At most this many bytes, however short the time.
const BYTES_MAX: usize = 64 << 20;

/// The last packets of a capture; clones share them.
#[derive(Clone)]
pub(crate) struct Recent(Arc<Mutex<Kept>>);

struct Kept {
    span: Duration,
    /// The file's beginning, which describes it.
    head: Arc<[u8]>,
    blocks: VecDeque<(Instant, Arc<[u8]>)>,
    bytes: usize,
}

/// The packets at the time of the request.
pub(crate) struct Snapshot {
    head: Arc<[u8]>,
    blocks: Vec<Arc<[u8]>>,
    /// How far back it goes.
    pub(crate) span: Duration,
}

impl Recent {
    /// Starts empty.
    pub(crate) fn new(span: Duration) -> Self {
        Self(Arc::new(Mutex::new(Kept { span, head: Arc::default(), blocks: VecDeque::new(), bytes: 0 })))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No thread panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds whole blocks; the first ones are the head of the file.
    pub(crate) fn add(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let now = now();
        let mut kept = self.kept();
        if kept.head.is_empty() {
            kept.head = bytes.into();
            return;
        }
        kept.blocks.push_back((now, bytes.into()));
        kept.bytes += bytes.len();
        while let Some((at, first)) = kept.blocks.front()
            && (kept.bytes > BYTES_MAX || now.duration_since(*at) > kept.span)
        {
            let length = first.len();
            kept.bytes -= length;
            kept.blocks.pop_front();
        }
    }

    /// The packets up to now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = now();
        let kept = self.kept();
        let recent = || kept.blocks.iter().filter(|(at, _)| now.duration_since(*at) <= kept.span);
        let span = recent().next().map_or(Duration::ZERO, |(first, _)| now.duration_since(*first));
        Snapshot {
            head: Arc::clone(&kept.head),
            blocks: recent().map(|(_, block)| Arc::clone(block)).collect(),
            span,
        }
    }
}

impl Snapshot {
    /// Writes them as a file.
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.head)?;
        self.blocks.iter().try_for_each(|block| to.write_all(block))
    }
}

#[expect(clippy::disallowed_methods, reason = "how long packets are kept is a matter of the clock")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_and_the_last_blocks_are_kept() {
        let recent = Recent::new(Duration::from_millis(200));
        let written = |recent: &Recent| {
            let mut out = Vec::new();
            recent.snapshot().write(&mut out).map(|()| String::from_utf8_lossy(&out).into_owned()).ok()
        };
        recent.add(b"head ");
        recent.add(b"old ");
        std::thread::sleep(Duration::from_millis(300));
        recent.add(b"new");
        assert_eq!(written(&recent).as_deref(), Some("head new"));
        let block = vec![b'x'; BYTES_MAX / 2];
        for _ in 0..3 {
            recent.add(&block);
        }
        assert!(recent.kept().bytes <= BYTES_MAX);
    }
}
