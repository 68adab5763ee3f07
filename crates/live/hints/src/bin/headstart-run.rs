//! The program `headstart-run`: `headstart run` without Python, which takes longer to start than many commands to run.

use std::env;
use std::ffi::OsString;
use std::panic;
use std::sync::{Arc, Mutex, PoisonError};

use headstart_hints::command::{end, fault, main as run};

fn main() {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let said = Arc::new(Mutex::new(String::new()));
    let kept = said.clone();
    panic::set_hook(Box::new(move |panic| {
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    let status = panic::catch_unwind(|| run(&words));
    end(status.unwrap_or_else(|_| fault(&said.lock().unwrap_or_else(PoisonError::into_inner))))
}
