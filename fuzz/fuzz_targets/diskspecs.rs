//! Arbitrary bytes as DiskSim's parameter files: parts separated by zero bytes are the files `f0`, `f1`, ...

#![no_main]

use headstart_device::diskspecs::fuzz_import;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|content: &[u8]| {
    // An error is a fine answer; a panic, a hang or a profile that is no TOML is not.
    let _ = fuzz_import(content);
});
