//! See `tcpwhy_fuzz::targets::tracker`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tcpwhy_fuzz::targets::tracker(data));
