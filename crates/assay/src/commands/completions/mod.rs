//! `assay completions SHELL`: completions of commands, options and values for a shell.
//!
//! The script that it prints calls this program at each completion, with the line up to the cursor, so that the
//! completions are those of the installed version, and include names that change: of databases, servers, records and
//! the options of a workload.

mod values;

use std::ffi::OsString;

use assay_process::diagnostics::{Exit, Trouble};
use assay_process::terminal;
use clap_complete::CompletionCandidate;
use clap_complete::engine::complete;

use crate::command_line::{CompletionsOptions, Shell, definition_of};

/// Prints the script, or what completes a line.
pub fn run(options: &CompletionsOptions) -> Result<Exit, Trouble> {
    let text = match &options.line {
        None => match options.shell {
            Shell::Bash => include_str!("assay.bash").to_owned(),
            Shell::Zsh => include_str!("assay.zsh").to_owned(),
            Shell::Fish => include_str!("assay.fish").to_owned(),
        },
        Some(line) => candidates(line)
            .iter()
            .filter_map(|candidate| shown(candidate, options.shell, line, options.text.as_deref()))
            .collect(),
    };
    terminal::result(&text)?;
    Ok(Exit::Success)
}

/// What completes the last word of a line; nothing if the line has an open quote.
fn candidates(line: &str) -> Vec<CompletionCandidate> {
    let Some(words) = words(line) else { return Vec::new() };
    let (last, before) = words.split_last().expect("there is at least one word");
    let mut command = values::completed(definition_of(before));
    let last = before.iter().chain([last]).map(OsString::from).collect();
    complete(&mut command, last, before.len(), std::env::current_dir().ok().as_deref()).unwrap_or_default()
}

/// The words of a line; the last one is empty if the line ends with a space.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = shlex::split(line)?;
    if words.is_empty() || (line.ends_with(char::is_whitespace) && !line.ends_with("\\ ")) {
        words.push(String::new());
    }
    Some(words)
}

/// The line for a candidate, as the shell's script expects it. `text`: what bash replaces, the end of the last word:
/// for bash, words also end at `=` and `:`.
fn shown(candidate: &CompletionCandidate, shell: Shell, line: &str, text: Option<&str>) -> Option<String> {
    let value = candidate.get_value().to_str()?;
    let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.lines().next().unwrap_or_default();
    Some(match shell {
        Shell::Bash => {
            let word = words(line)?.pop()?;
            let kept = word.strip_suffix(text.unwrap_or_default()).unwrap_or_default();
            format!("{}\n", value.strip_prefix(kept).unwrap_or(value))
        }
        Shell::Zsh => format!("{}:{help}\n", value.replace('\\', "\\\\").replace(':', "\\:")),
        Shell::Fish => format!("{value}\t{help}\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_of_a_line_is_completed() {
        assert_eq!(words("assay ru").unwrap(), ["assay", "ru"]);
        assert_eq!(words("assay run ").unwrap(), ["assay", "run", ""]);
        assert_eq!(words("assay run a\\ ").unwrap(), ["assay", "run", "a "]);
        assert_eq!(words("assay duel 'a b' ").unwrap(), ["assay", "duel", "a b", ""]);
        assert_eq!(words("assay duel 'a "), None);
    }

    #[test]
    fn bash_replaces_what_follows_a_colon_or_equals_sign() {
        let check = |value: &str, line: &str, text: &str| {
            shown(&CompletionCandidate::new(value), Shell::Bash, line, Some(text)).unwrap()
        };
        assert_eq!(check("postgres:17.2", "assay server start postgres:1", "1"), "17.2\n");
        assert_eq!(check("--db=prod", "assay run --db=", ""), "prod\n");
        assert_eq!(check("prod", "assay run --db pr", "pr"), "prod\n");
    }
}
