//! What has an exchange cost so far, and what of that is not settled yet? Charges, the accounts
//! that add them up, and the two paths of an exchange, each with its own account.

pub(crate) mod account;
pub(crate) mod asked;
pub(crate) mod charge;
pub(crate) mod compact;
pub(crate) mod covered;
pub(crate) mod early;
pub(crate) mod exchange;
pub(crate) mod held;
pub(crate) mod line;
pub(crate) mod pause;
pub(crate) mod piece;
pub(crate) mod places;
pub(crate) mod revise;
pub(crate) mod spare;
pub(crate) mod split;
pub(crate) mod suspects;
pub(crate) mod tail;
pub(crate) mod told;
pub(crate) mod usual;
pub(crate) mod waits;
