//! Which end of a connection is which, where there is one of something for each?

use crate::words::cause::Side;

/// Who sent the SYN.
pub(crate) const CLIENT: usize = 0;
/// Who accepted it.
pub(crate) const SERVER: usize = 1;

/// What a bill calls this end.
pub(crate) fn side(end: usize) -> Side {
    if end == CLIENT { Side::Client } else { Side::Server }
}
