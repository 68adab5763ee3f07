//! The program `headstart-run`: `headstart run` without Python, which takes longer to start than many commands take to
//! run.

use std::env;
use std::ffi::OsString;
use std::panic;

use headstart_hints::command::{end, fault, main as run};
use headstart_host::child::outlive;

fn main() {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    // Panics are not caught: the program is built without unwinding, whose code would be read from the disk, too. The
    // command goes on.
    panic::set_hook(Box::new(|panic| {
        let fault = fault(&panic.to_string());
        end(outlive().unwrap_or(fault))
    }));
    end(run(&words))
}
