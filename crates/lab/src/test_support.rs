//! What do the laboratory's tests share?

/// Reports that a test did not run, and why. In CI, where everything it needs is installed, that is
/// a failure.
#[expect(clippy::disallowed_methods, reason = "CI is where a test may not be skipped")]
pub(crate) fn skip(test: &str, reason: &dyn std::fmt::Display) {
    assert!(std::env::var("CI").is_err(), "{test} was skipped in CI: {reason}");
    eprintln!("skipping {test}: {reason}");
}
