//! The engine as its users see it: segments in, bills out. Every case is a packet log; every expected figure is
//! arithmetic over the log's own numbers.

mod accepting;
mod invariants;
mod loopback;
mod packet_log;
mod plain;
mod seen;
mod seen_again;
mod senders;
mod servers;
mod slow_link;
mod spoken;
mod standing_still;
mod unanswered;

mod both_speak;
mod buffers;
mod causes;
mod concurrent;
mod conduct;
mod details;
mod distance;
mod fast_open;
mod field;
mod field2;
mod flows;
mod frames;
mod generate;
mod holds;
mod in_flight;
mod listening;
mod memory;
mod midway;
mod missing;
mod properties;
mod pushes;
mod rare;
mod readers;
mod repairs;
mod repeats;
mod roles;
mod traps;
mod triggers;
mod troubles;
mod wild;
mod windows;
