//! Which index does each end of a connection have?

use crate::words::cause::Side;

/// The end that sent the SYN.
pub(crate) const CLIENT: usize = 0;
/// The end that accepted it.
pub(crate) const SERVER: usize = 1;

/// The end's name in a bill.
pub(crate) fn side(end: usize) -> Side {
    if end == CLIENT { Side::Client } else { Side::Server }
}
