//! Mutated DiskSim files: a mutated file gives a drive, or a one-line error, quickly.
//!
//! 2,000 inputs, or HEADSTART_FUZZ_INPUTS. A failure prints the number of the input, which is the seed of its
//! mutations.

use headstart_diskspecs::fuzz_import;

use crate::mutate::run;
use crate::toy_files::changed;

#[test]
fn mutated_diskspecs() {
    let parts = [
        changed("toy.parv", &[("source toy.diskspecs", "source f1")]),
        changed("toy.diskspecs", &[("source toy.model", "source f2")]),
        changed("toy.model", &[("toy.seek", "f3")]),
        changed("toy.seek", &[]),
    ];
    let seeds =
        [parts.join("\0").into_bytes(), parts[1..].join("\0").replace("f2", "f1").replace("f3", "f2").into_bytes()];
    run("diskspecs", &seeds, |content| fuzz_import(content).map(|_| ()).map_err(|error| error.to_string()));
}
