//! Why was something not changed, and what would allow it?

use std::io;

/// Why something was not read, changed or reverted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process or socket no longer exists.
    #[error("{0} is gone: there is nothing to change or to take back")]
    Gone(String),
    /// The user lacks the rights.
    #[error("{what} may not be changed by this user ({source}): {remedy}")]
    NotPermitted {
        /// What.
        what: String,
        /// What would allow it.
        remedy: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel does not support it.
    #[error("this kernel cannot do that: {what} ({source})")]
    NotThere {
        /// What is missing, and since which version it exists.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another user or program has changed it since it was read.
    #[error("{what} is {now} now, not {expected}: something else has changed it since; left alone")]
    ChangedSince {
        /// What.
        what: String,
        /// Its current value.
        now: String,
        /// The expected value.
        expected: String,
    },
    /// The kernel accepted the value but stored another one.
    #[error("{what}: the kernel set {now} instead of {wanted}; reverted")]
    NotTaken {
        /// What.
        what: String,
        /// Its current value.
        now: String,
        /// The requested value.
        wanted: String,
    },
    /// The journal cannot be used, so nothing is changed.
    #[error("the journal of changes {path}: {why}; nothing is changed without it")]
    Journal {
        /// Where it is.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// An invalid value.
    #[error("{0}")]
    Wrong(String),
    /// Another call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Error {
    /// Classifies a failed call on `what`.
    pub(crate) fn of(what: impl Into<String>, remedy: &'static str) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { what, remedy, source },
            Some(libc::ESRCH | libc::EBADF) => Self::Gone(what),
            _ if source.kind() == io::ErrorKind::NotFound => Self::Gone(what),
            _ => Self::System { what, source },
        }
    }
}
