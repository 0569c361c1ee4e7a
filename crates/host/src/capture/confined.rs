//! When can a capture give up its rights? Once the interface is open, which is when the sink
//! begins.

use std::io;

use super::{Description, Packet, Sink, Stats};

/// A sink that first calls a function once.
pub(super) struct Confined<S, F> {
    sink: S,
    confine: Option<F>,
}

impl<S, F> Confined<S, F> {
    pub(super) const fn new(sink: S, confine: F) -> Self {
        Self { sink, confine: Some(confine) }
    }
}

impl<S: Sink, F: FnOnce() -> io::Result<()> + Send + 'static> Sink for Confined<S, F> {
    fn begin(&mut self, description: &Description) -> io::Result<()> {
        if let Some(confine) = self.confine.take() {
            confine()?;
        }
        self.sink.begin(description)
    }

    fn packet(&mut self, packet: Packet<'_>) -> io::Result<()> {
        self.sink.packet(packet)
    }

    fn idle(&mut self) -> io::Result<()> {
        self.sink.idle()
    }

    fn end(&mut self, stats: &Stats) -> io::Result<()> {
        self.sink.end(stats)
    }
}
