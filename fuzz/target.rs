//! One file for all targets: each is a binary with the name of a function in `steadfast-fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| steadfast_fuzz::run(env!("CARGO_BIN_NAME"), data));
