//! Makes calls of other programs fail, for tests in other languages: `testing/calls.rs`.
//!
//! Says on a line how many ways to fail there are. Then of each line of stdin, PROCESS NUMBER WAY FOLDER, it says "ready" when the process is
//! traced, and how that ended when it has: the call, or nothing if there were fewer. "error: ..." if it cannot be traced.

use std::io::stdin;
use std::path::Path;

use headstart_host::testing::calls::{drive, FAULTS};

fn main() {
    println!("{}", FAULTS.len());
    for line in stdin().lines().map_while(Result::ok) {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap_or_default();
        let mut number = || word().parse::<usize>().expect("a number");
        let (process, call, way) = (number(), number(), number());
        match drive(process as i32, Path::new(word()), call, FAULTS[way], || println!("ready")) {
            Ok(None) => println!(),
            Ok(Some(call)) => println!("{:?} at {call}", FAULTS[way]),
            Err(errno) => println!("error: {errno}"),
        }
    }
}
