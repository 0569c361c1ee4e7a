//! Why was something not changed, and what would allow it?

use std::io;

/// Why something was not read, changed or taken back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The process or socket is not there any more.
    #[error("{0} is gone: there is nothing to change or to take back")]
    Gone(String),
    /// The rights are missing.
    #[error("{what} may not be changed by this user ({source}): {remedy}")]
    NotPermitted {
        /// What.
        what: String,
        /// What would allow it.
        remedy: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel does not know it.
    #[error("this kernel cannot do that: {what} ({source})")]
    NotThere {
        /// What is missing, and since when there is one.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// Somebody else has changed it since it was read.
    #[error("{what} is {now} now, and not {expected}: somebody else has changed it since; nothing was done")]
    ChangedSince {
        /// What.
        what: String,
        /// As it is.
        now: String,
        /// As it should be.
        expected: String,
    },
    /// The kernel took the value and has another one.
    #[error("{what}: the kernel made {now} of {wanted}; taken back")]
    NotTaken {
        /// What.
        what: String,
        /// As it is.
        now: String,
        /// As it should be.
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
    /// A value that is none.
    #[error("{0}")]
    Wrong(String),
    /// Another call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
}

impl Error {
    /// What a failed call says about `what`.
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
