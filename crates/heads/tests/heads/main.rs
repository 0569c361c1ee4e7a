//! Are the same heads reported however their bytes arrive? Recorded and written conversations, cut
//! in every way.

mod brokers;
mod calls;
mod databases;
mod either;
mod http;
mod lines;
mod log;
mod numbered;
mod postgresql;
mod properties;
mod redis;
mod tls;
mod told;
