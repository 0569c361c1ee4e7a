//! What is kept of an exchange until the report decides which are shown?

use crate::bill::compact::CompactBill;
use crate::tally::thinning;
use crate::words::report::Exchange;

/// An exchange that may be shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ListedExchange {
    pub connection: u64,
    /// The packet that closed it.
    pub packet: u64,
    /// Without its bill.
    pub exchange: Exchange,
    pub bill: CompactBill,
}

impl ListedExchange {
    pub(crate) fn is_kept_by(&self, level: u32) -> bool {
        thinning::keeps(level, self.exchange.packets, self.exchange.elapsed)
    }

    pub(crate) fn shown(self) -> Exchange {
        Exchange { bill: self.bill.into_lines(), ..self.exchange }
    }
}
