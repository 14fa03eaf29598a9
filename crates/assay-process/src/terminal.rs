//! Output to people and pipes: results to stdout, everything else to stderr.
//!
//! What servers, scripts, records, recipes and file names contain goes through `say` and `result`, and cannot act on
//! the terminal: see `assay_report::visible`.
//!
//! A closed pipe (`assay list | head -1`) is not an error: the rest is not written. Color is used only on a terminal,
//! and never when `NO_COLOR` is set.

use std::io::{Error, ErrorKind, IsTerminal, Write};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use assay_record::{json_without_secrets, text_without_secrets};
use assay_report::{View, visible};

/// Bold red, for errors.
pub const RED: &str = "1;31";
/// Bold yellow, for warnings.
pub const YELLOW: &str = "1;33";
/// Cyan, for advice.
pub const CYAN: &str = "36";

/// `text` in a color, or unchanged.
pub fn paint(text: &str, color: &str, wanted: bool) -> String {
    if wanted { format!("\u{1b}[{color}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Whether stderr is a terminal with color.
pub fn stderr_color() -> bool {
    stderr_is_terminal() && color_is_welcome()
}

/// Whether the user and the terminal want color.
pub fn color_is_welcome() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !refused && !dumb
}

/// The view of a result: as wide as the terminal, with color if it has any; always the same in a pipe.
pub fn view(verbose: bool) -> View {
    if !std::io::stdout().is_terminal() {
        return View { verbose, ..View::default() };
    }
    let width = width(terminal_size::terminal_size_of(std::io::stdout()));
    View { width, color: color_is_welcome(), verbose, ..View::default() }
}

/// View of stderr.
pub fn stderr_view() -> View {
    let width = width(terminal_size::terminal_size_of(std::io::stderr()));
    View { width, color: stderr_color(), ..View::default() }
}

fn width(size: Option<(terminal_size::Width, terminal_size::Height)>) -> usize {
    let width = size.map_or(View::default().width, |(width, _)| usize::from(width.0));
    width.clamp(*View::WIDTHS.start(), *View::WIDTHS.end())
}

/// Whether stderr is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Writes to stderr. Control characters become visible, except those of our colors, and passwords are hidden: the text
/// may contain what a server or a file says. Errors are ignored: there is nowhere left to report them.
pub fn say(text: &str) {
    let text = text_without_secrets(text);
    let text = visible(&text, stderr_color());
    let mut held = held();
    match &mut *held {
        // A loop of warnings must not fill the memory.
        Some(waiting) if waiting.len() < HELD_MAX => waiting.push_str(&text),
        Some(_) => {}
        None => _ = std::io::stderr().lock().write_all(text.as_bytes()),
    }
}

/// Bytes of lines that wait for the terminal.
const HELD_MAX: usize = 1 << 20;

/// What was said while a view has the terminal; `None`: no view has it.
fn held() -> MutexGuard<'static, Option<String>> {
    static HELD: Mutex<Option<String>> = Mutex::new(None);
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A view takes the terminal, or gives it back: then everything appears that was said meanwhile.
pub(crate) fn hold(taken: bool) {
    let before = std::mem::replace(&mut *held(), taken.then(String::new));
    let _ = std::io::stderr().lock().write_all(before.unwrap_or_default().as_bytes());
}

/// Where the output of a program that we start goes: to stderr, because stdout is for the result.
pub fn aside() -> Stdio {
    Stdio::from(std::io::stderr())
}

/// A warning on stderr, in one line.
pub fn warn(words: &str) {
    say(&format!("{} {words}\n", paint("warning:", YELLOW, stderr_color())));
}

/// A result could not be written.
#[derive(Debug)]
pub struct Unwritable(pub Error);

/// Writes a result to stdout, with control characters and passwords as in `say`. A closed pipe ends it quietly; a full
/// disk is an error.
pub fn result(text: &str) -> Result<(), Unwritable> {
    let color = std::io::stdout().is_terminal() && color_is_welcome();
    let text = match text.starts_with(['{', '[']) {
        true => String::from_utf8_lossy(&json_without_secrets(text.as_bytes())).into_owned(),
        false => text_without_secrets(text),
    };
    result_bytes(visible(&text, color).as_bytes())
}

/// Writes a result that is not text, or not ours, unchanged.
pub fn result_bytes(bytes: &[u8]) -> Result<(), Unwritable> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Unwritable(error)),
        _ => Ok(()),
    }
}
