//! What is billed of a capture, with everything listed.

use std::path::Path;

use tcpwhy::input::{self, Inputs};
use tcpwhy_core::{Analysis, Listing, Options, Report};

pub(crate) fn bill(capture: &Path) -> Report {
    let mut analysis = Analysis::new(Options { listing: Listing::UpTo(u64::MAX), ..Options::default() });
    let summary = Inputs::open(&[capture]).for_each_captured(
        &input::Options::default(),
        |_| {},
        |segment, captured| analysis.on_captured(segment, captured),
    );
    assert!(!summary.is_failure() && !summary.truncated(), "{}: {summary:?}", capture.display());
    analysis.finish()
}
