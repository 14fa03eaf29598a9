//! What other users of this machine see of the arguments: `ps` shows them without passwords, and those of shells that
//! we start, too.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::process::Command;

use assay_record::{masked, without_secrets};

use crate::events;

/// Overwrites passwords in the arguments of this process. Where the kernel does not allow that, they stay.
pub fn hide_passwords() {
    let words = events::all_arguments();
    let texts: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let hidden = without_secrets(&texts);
    if hidden == texts {
        return;
    }
    let Some((start, end)) = place() else { return };
    let Ok(memory) = File::options().write(true).open("/proc/self/mem") else { return };
    let mut at = start;
    for ((word, text), hidden) in words.iter().zip(&texts).zip(&hidden) {
        let length = word.as_bytes().len();
        if text != hidden {
            let mut bytes = hidden.clone().into_bytes();
            bytes.resize(length, 0);
            if at + length as u64 > end || memory.write_all_at(&bytes, at).is_err() {
                return;
            }
        }
        at += length as u64 + 1;
    }
}

/// Where the arguments are in memory: fields 48 and 49 of proc(5)'s stat.
fn place() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may contain anything; the state follows it, and is field 3.
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split_whitespace().skip(48 - 3);
    let mut next = || fields.next()?.parse::<u64>().ok();
    let (start, end) = (next()?, next()?);
    (start > 0 && start < end).then_some((start, end))
}

/// A shell that executes a line. One with a password is not an argument, but in the environment, which only its owner
/// can read.
pub fn shell(line: &str) -> Command {
    const VARIABLE: &str = "ASSAY_SHELL_LINE";
    let mut command = Command::new("/bin/sh");
    match masked(line) == line {
        true => command.args(["-c", line]),
        false => command
            .args(["-c", "line=$ASSAY_SHELL_LINE; unset ASSAY_SHELL_LINE; eval \"unset line; $line\""])
            .env(VARIABLE, line),
    };
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_a_password_is_executed_and_no_argument() {
        for line in [
            "printf %s \"it's 5\"; printf %s \"${line-unset}${ASSAY_SHELL_LINE-unset}\"",
            "printf %s \"it's 5\"; : --my-password s3cret; printf %s \"${line-unset}${ASSAY_SHELL_LINE-unset}\"",
        ] {
            let mut command = shell(line);
            let is_argument = command.get_args().any(|word| word.to_string_lossy().contains("s3cret"));
            let output = command.output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), "it's 5unsetunset", "{line}");
            assert!(!is_argument);
        }
    }
}
