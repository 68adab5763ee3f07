//! Arbitrary bytes for any parser: the first byte selects it, the others are its input. The parsers are the trace formats in
//! the registry's order, the file table beside a trace, DiskSim's parameter files (parts separated by zero bytes are the files
//! `f0`, `f1`, ...), and connections of Network Block Devices (a server's or a client's).

#![no_main]

use headstart_diskspecs::fuzz_import;
use headstart_nbd::fuzz_nbd;
use headstart_trace::{fuzz_formats, fuzz_parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((selector, content)) = input.split_first() else { return };
    let formats: Vec<&str> = fuzz_formats().collect();
    // An error is a fine answer; a panic, a hang, a broken promise of a reader or a profile that is no TOML is not.
    match usize::from(*selector) % (formats.len() + 2) {
        row if row < formats.len() => _ = fuzz_parse(formats[row], content),
        row if row == formats.len() => _ = fuzz_import(content),
        _ => _ = fuzz_nbd(content),
    }
});
