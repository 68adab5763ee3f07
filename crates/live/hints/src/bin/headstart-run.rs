//! The program `headstart-run`: `headstart run` without Python, which takes longer to start than many commands to run.

use std::env;
use std::ffi::OsString;
use std::panic;

use headstart_hints::command::{end, fault, main as run};

fn main() {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    // Not caught: the program is built without what unwinds, which would be read from the disk with it.
    panic::set_hook(Box::new(|panic| end(fault(&panic.to_string()))));
    end(run(&words))
}
