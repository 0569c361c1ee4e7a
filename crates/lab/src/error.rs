//! What went wrong while the laboratory was set up, and what would allow it?

use std::io;

/// A laboratory that could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A step failed.
    #[error("{attempt}: {source}")]
    Step {
        /// What was attempted, as a phrase: "open /dev/net/tun".
        attempt: String,
        /// The system's error.
        source: io::Error,
    },
    /// The machine does not allow it.
    #[error("{attempt}: not permitted. {remedy}")]
    NotPermitted {
        /// What was attempted.
        attempt: String,
        /// What would allow it.
        remedy: &'static str,
    },
    /// No packets can be captured.
    #[error(transparent)]
    Capture(#[from] tcpwhy_host::capture::Error),
    /// The path or a host setting is invalid.
    #[error("{0}")]
    Spec(String),
}

impl Error {
    /// Wraps the system's error for an attempt.
    pub(crate) fn step<E: Into<io::Error>>(attempt: impl Into<String>) -> impl FnOnce(E) -> Self {
        move |source| Self::Step { attempt: attempt.into(), source: source.into() }
    }

    /// The same if a refusal has a known remedy.
    pub(crate) fn permitted<E: Into<io::Error>>(
        attempt: impl Into<String>,
        remedy: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |source| {
            let (attempt, source) = (attempt.into(), source.into());
            match source.kind() {
                io::ErrorKind::PermissionDenied => Self::NotPermitted { attempt, remedy },
                _ => Self::Step { attempt, source },
            }
        }
    }
}
