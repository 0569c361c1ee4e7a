//! See `tcpwhy_fuzz::targets::filter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tcpwhy_fuzz::targets::filter(data));
