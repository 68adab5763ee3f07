//! Makes system calls of other programs fail, for tests in other languages: `testing/calls.rs`.
//!
//! Prints the number of ways to fail. Then, for each line PROCESS NUMBER WAY FOLDER of stdin, it prints "ready" when
//! the process is traced and, at its end, the call that failed, or nothing if there were fewer calls. Prints "error:
//! ..." if the process cannot be traced.

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
