//! What can be measured from a series of numbers? One estimator in each file: a clock's rate, a round trip,
//! a timer, a bottleneck, a beat. Each takes numbers and gives numbers; what a sender is and what a wait was
//! is decided elsewhere.

pub(crate) mod beat;
pub(crate) mod bottleneck;
pub(crate) mod bursts;
pub(crate) mod credit;
pub(crate) mod goes_on;
pub(crate) mod grid;
pub(crate) mod growth;
pub(crate) mod histogram;
pub(crate) mod ip_id;
pub(crate) mod large;
pub(crate) mod maybe;
pub(crate) mod mss;
pub(crate) mod own_beat;
pub(crate) mod own_time;
pub(crate) mod polls;
pub(crate) mod rate;
pub(crate) mod released;
pub(crate) mod rounds;
pub(crate) mod rto;
pub(crate) mod short_deque;
pub(crate) mod stamp_clock;
pub(crate) mod stamp_drift;
pub(crate) mod stamp_jump;
pub(crate) mod stamp_pacing;
pub(crate) mod stamp_step;
mod tick_band;
pub(crate) mod ticks;
pub(crate) mod timer_hits;
pub(crate) mod tsecr_rtt;
pub(crate) mod window_scale;
