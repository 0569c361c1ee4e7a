//! What must hold whatever the bytes? One function for each fuzz target.
//!
//! `cargo +nightly fuzz run TARGET` feeds them from libFuzzer; the test `fuzz_corpus` of the tcpwhy crate feeds them the
//! committed corpus, with any compiler.
#![forbid(unsafe_code)]

pub mod targets;
