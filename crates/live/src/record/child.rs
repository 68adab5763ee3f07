//! The command: started so that the kernel follows it from its first instruction.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use headstart_types::system_says;

use crate::PathError;

/// Starts the command with our streams, environment and folder. Between fork and exec it writes its number into the first of
/// `switches` and 1 into the second: no event is lost, and none is of anyone else.
///
/// # Errors
/// There is no such program, or it cannot be started.
#[allow(unsafe_code)]
pub(super) fn start(command: &[String], switches: [File; 2]) -> Result<Child, PathError> {
    let [mut followers, mut tracing] = switches;
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]);
    let follow = move || {
        let mut digits = [0; 10];
        followers.write_all(decimal(std::process::id(), &mut digits))?;
        tracing.write_all(b"1")
    };
    // SAFETY: between fork and exec it makes system calls on open files and allocates nothing.
    unsafe { child.pre_exec(follow) };
    child.spawn().map_err(|error| {
        let allowed = "a command that can be started";
        let problem = match error.kind() {
            io::ErrorKind::NotFound => "there is no such program".to_owned(),
            _ => system_says(&error),
        };
        PathError::new(Path::new(&command[0]), problem, allowed)
    })
}

/// The number in decimal digits.
fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// As shells say it: the exit status, or 128 and the number of the signal.
pub(super) fn status(ended: ExitStatus) -> i32 {
    ended.code().unwrap_or_else(|| 128 + ended.signal().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_in_digits() {
        for number in [0, 7, 10, 4_194_303, u32::MAX] {
            assert_eq!(super::decimal(number, &mut [0; 10]), number.to_string().as_bytes());
        }
    }
}
