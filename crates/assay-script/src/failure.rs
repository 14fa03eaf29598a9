//! Why a script could not be loaded or run, with the position in it.

use crate::request::Failure;

/// A script's error.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.render())]
pub struct ScriptError {
    /// What went wrong, without the position.
    pub message: String,
    /// The script file, as named on the command line or by `require`.
    pub file: Option<String>,
    /// Counted from 1.
    pub line: Option<u32>,
    /// One frame per line, the script's own only, innermost first; may be empty.
    pub traceback: String,
    /// What to do about it, if known.
    pub hint: Option<String>,
}

impl ScriptError {
    /// From Lua's message: the position is split off its front.
    pub fn from_message(message: &str, traceback: &str) -> ScriptError {
        let (place, text) =
            split_place(message).map_or((None, message), |(file, line, text)| (Some((file, line)), text));
        ScriptError {
            message: text.to_owned(),
            file: place.map(|(file, _)| file.to_owned()),
            line: place.map(|(_, line)| line),
            traceback: traceback.to_owned(),
            hint: None,
        }
    }

    /// `file:line`: of the message, or else of the first call.
    pub fn place(&self) -> Option<String> {
        // An error that asks for a restart has only its line.
        let call = ScriptError::from_message(&format!("{}: ", self.traceback.lines().next().unwrap_or_default()), "");
        let of = |error: &ScriptError| Some(format!("{}:{}", error.file.as_ref()?, error.line?));
        of(self).or_else(|| of(&call))
    }

    /// `file:line: message`, then the traceback, indented. The caller shows the hint.
    fn render(&self) -> String {
        let mut text = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{file}:{line}: {}", self.message),
            (Some(file), None) => format!("{file}: {}", self.message),
            _ => self.message.clone(),
        };
        for frame in self.traceback.lines() {
            text.push_str("\n  ");
            text.push_str(frame);
        }
        text
    }
}

/// Splits `file:line: text` at the first `:digits: `.
fn split_place(message: &str) -> Option<(&str, u32, &str)> {
    let first_line = message.lines().next()?;
    for (colon, _) in first_line.match_indices(':') {
        let rest = &message[colon + 1..];
        if let Some((digits, text)) = rest.split_once(": ")
            && let Ok(line) = digits.parse()
        {
            return Some((&message[..colon], line, text)).filter(|_| colon > 0);
        }
    }
    None
}

impl From<&Failure> for ScriptError {
    fn from(failure: &Failure) -> ScriptError {
        ScriptError::from_message(&failure.message, &failure.traceback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_taken_off_the_front_of_a_message() {
        let error =
            ScriptError::from_message("./a:b.lua:12: no such table: t:3: x", "./a:b.lua:12: in function 'event'");
        assert_eq!((error.file.as_deref(), error.line), (Some("./a:b.lua"), Some(12)));
        assert_eq!(error.message, "no such table: t:3: x");
        assert_eq!(error.to_string(), "./a:b.lua:12: no such table: t:3: x\n  ./a:b.lua:12: in function 'event'");
        assert_eq!(ScriptError::from_message("no place here", "").to_string(), "no place here");
    }
}
