//! Mutated profiles: a mutated profile gives a drive, or a one-line error, quickly.
//!
//! 2,000 inputs of the parser, or HEADSTART_FUZZ_INPUTS. A failure prints the parser and the number of the input, which
//! is the seed of its mutations.

use std::path::Path;

use headstart_device::{overlay, Mechanical};
use headstart_types::toml_problem;
use toml::Table;

use crate::mutate::run;

#[test]
fn mutated_profiles() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = files.filter(|path| path.is_file()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(seeds.len() > 5);
    run("profile", &seeds, |content| {
        // A file that is not UTF-8 is refused before parsing.
        let text = String::from_utf8_lossy(content);
        let table: Table = text.parse().map_err(|error| toml_problem(&text, &error).1)?;
        Mechanical::from_table(overlay(table, Table::new())).map(|_| ()).map_err(|error| error.to_string())
    });
}
