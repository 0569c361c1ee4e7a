//! The engine as its users see it: segments in, bills out. Every case is a packet log; every expected figure is
//! arithmetic over the log's own numbers.

mod invariants;
mod loopback;
mod packet_log;
mod seen;

mod causes;
mod field;
mod flows;
mod generate;
mod in_flight;
mod midway;
mod properties;
mod traps;
mod troubles;
