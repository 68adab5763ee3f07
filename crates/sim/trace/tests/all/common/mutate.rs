//! Mutations of valid input, the same for every parser, determined by a number that a failure prints.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};

use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

const INPUTS: u64 = 2_000;

/// Maximum time of one input: distinguishes a hang from a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Inputs per parser, from HEADSTART_FUZZ_INPUTS.
///
/// # Panics
/// If its value is not a number.
fn inputs() -> u64 {
    match std::env::var("HEADSTART_FUZZ_INPUTS") {
        Ok(text) => text.parse().expect("HEADSTART_FUZZ_INPUTS: a whole number"),
        Err(_) => INPUTS,
    }
}

/// Pieces of text that are likely to matter.
const PIECES: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b",",
    b" ",
    b"\"",
    b"\0",
    b"-",
    b".",
    b"*",
    b"0",
    b"1",
    b"9",
    b"e9",
    b"1e300",
    b"NaN",
    b"inf",
    b"0x",
    b"18446744073709551615",
    b"18446744073709551616",
    b"9223372036854775808",
    b"4294967296",
    b"99999999999999999999999",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0\0\0\0\0",
    b"\xef\xbb\xbf",
    b"\x1b[2J",
    b"\x80",
    b"=",
    b"{",
    b"}",
    b"[",
    b"]",
    b"[[",
    b"'",
    b"#",
    b"..",
    b"true",
    b"1e-300",
    b"-9223372036854775808",
    b"9223372036854775807",
    b"1EiB",
    b"ms",
    b"%",
    b"wait",
    b"W",
    b"C",
];

fn below(rng: &mut ChaCha8Rng, count: usize) -> usize {
    (rng.next_u64() % count.max(1) as u64) as usize
}

/// Changes `content` in one to eight places.
fn mutate(content: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    for _ in 0..1 + below(rng, 8) {
        let at = below(rng, content.len() + 1);
        let end = (at + below(rng, 24)).min(content.len());
        match below(rng, 7) {
            0 if at < content.len() => content[at] ^= 1 << below(rng, 8),
            1 if at < content.len() => content[at] = rng.next_u64() as u8,
            2 => drop(content.splice(at..at, PIECES[below(rng, PIECES.len())].iter().copied())),
            3 => drop(content.splice(at..end, PIECES[below(rng, PIECES.len())].iter().copied())),
            4 => drop(content.drain(at..end)),
            5 => {
                let copied = content[at..end].to_vec();
                let to = below(rng, content.len() + 1);
                drop(content.splice(to..to, copied));
            }
            _ => content.truncate(at),
        }
    }
}

/// One of `seeds`, mutated: the same for the same `input`.
fn mutated(seeds: &[Vec<u8>], input: u64) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(input);
    let mut content = seeds[below(&mut rng, seeds.len())].clone();
    mutate(&mut content, &mut rng);
    content
}

/// Runs `parse` on mutations of the valid `seeds`; an error must be one line without control characters.
#[allow(clippy::disallowed_methods)] // Timed to detect a hang.
pub fn run(parser: &str, seeds: &[Vec<u8>], parse: impl Fn(&[u8]) -> Result<(), String>) {
    for seed in seeds {
        assert_eq!(parse(seed), Ok(()), "the seeds of {parser} are right");
    }
    let mut right = 0;
    for input in 0..inputs() {
        let content = mutated(seeds, input);
        let begun = Instant::now();
        let parsed = catch_unwind(AssertUnwindSafe(|| parse(&content)));
        assert!(begun.elapsed() < PATIENCE, "{parser}, input {input}: {:?}", begun.elapsed());
        match parsed.unwrap_or_else(|_| panic!("{parser}, input {input}: panics")) {
            Ok(()) => right += 1,
            Err(text) => {
                let one_line = !text.is_empty() && !text.chars().any(char::is_control);
                assert!(one_line, "{parser}, input {input}: {text:?}");
            }
        }
    }
    println!("{parser}: {} inputs, {right} of them right", inputs());
}
