//! Arbitrary bytes as a trace of the format `blkparse`.

#![no_main]

use headstart_trace::fuzz_parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| {
    // An error is a fine answer; a panic, a hang or a broken promise of the reader is not.
    let _ = fuzz_parse("blkparse", content);
});
