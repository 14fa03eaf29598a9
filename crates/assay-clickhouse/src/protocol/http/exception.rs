//! Errors in the text of a response.
//!
//! Once rows were sent, the status is 200 whatever happens later: the server then writes the error's text where the
//! next block would begin. It cannot be taken for a block: its first letters would be a column with a name of 100
//! letters and a type that does not exist.
//!
//! Three forms are known. Version 18.16 writes `Code: 60, e.displayText() = DB::Exception: Text., e.what() = …`, later
//! ones `Code: 60. DB::Exception: Text. (UNKNOWN_TABLE) (version 23.4.1.869 (official build))`; and from 25.11 on such
//! a line stands between two lines `__exception__`.

use assay_seam::StatementError;

use crate::protocol::refusal;

/// Where an error's text begins.
const START: &[u8] = b"Code: ";
/// Bytes at the end of a body that are searched: more than the text of an error, with the statement it may quote.
const SEARCHED: usize = 1 << 18;

/// The server's error in these bytes, if there is one; and its code in the header, if that is not 0.
pub(super) fn find(bytes: &[u8], code: u32) -> Option<StatementError> {
    let bytes = &bytes[bytes.len().saturating_sub(SEARCHED)..];
    let mut starts = bytes.windows(START.len()).enumerate().filter(|(_, window)| *window == START);
    let found = starts.find_map(|(at, _)| read(&bytes[at + START.len()..]));
    found.or_else(|| {
        let text = String::from_utf8_lossy(bytes);
        (code != 0).then(|| refusal::error(code as i32, text.trim()))
    })
}

/// Whether a block that cannot be read is the beginning of an error's text.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let bytes = bytes.trim_ascii_start();
    bytes.starts_with(START) || bytes.starts_with(b"__exception__")
}

fn read(text: &[u8]) -> Option<StatementError> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let code: i32 = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    let text = String::from_utf8_lossy(&text[digits..]);
    let message = text.strip_prefix(", e.displayText() = ").or_else(|| text.strip_prefix(". "))?;
    if !message.starts_with("DB::") && !message.starts_with("Coordination::") {
        return None;
    }
    let message = message.split(", e.what() = ").next().unwrap_or_default();
    let message = message.split("\r\n__exception__").next().unwrap_or_default();
    Some(refusal::error(code, without_version(message.trim_end())))
}

/// The message without its name in capitals and the server's version, which follow it in parentheses.
fn without_version(message: &str) -> &str {
    let message = match message.rfind(" (version ") {
        Some(at) if message[at..].matches(')').count() >= 1 => &message[..at],
        _ => return message,
    };
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    match message.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) {
        Some((rest, name)) if is_name(name) => rest,
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, code: u32, wanted: &str) {
        let found = find(text.as_bytes(), code).map_or("nothing".to_owned(), |error| error.to_string());
        assert_eq!(found, wanted, "{text:?}");
    }

    #[test]
    fn errors_of_all_versions_are_found() {
        let old =
            "Code: 60, e.displayText() = DB::Exception: Table default.none doesn't exist., e.what() = DB::Exception\n";
        let missing = "server: Table default.none doesn't exist (60)";
        check(old, 0, missing);
        check(&format!("\0\0Code: x\0{old}"), 0, missing);
        let new = "Code: 60. DB::Exception: Table default.none doesn't exist. (UNKNOWN_TABLE) (version 23.4.1.869 (official build))";
        check(new, 60, missing);
        check(
            &format!("\r\n__exception__\r\nrumfyutuqkncbgau\r\n{new}\r\n145 rumfyutuqkncbgau\r\n__exception__\r\n"),
            0,
            missing,
        );
        check(
            "Code: 395. DB::Exception: a (b): while executing f(x). ",
            0,
            "server: a (b): while executing f(x) (395)",
        );
        check("Poco::Exception. Something", 1000, "server: Poco::Exception. Something (1000)");
        check("Code: 7, said the postman. Code: 99999999999999", 0, "nothing");
        check("", 0, "nothing");
    }

    #[test]
    fn an_error_is_no_block() {
        assert!(begins(b"Code: 395, e") && begins(b"\r\n__exception__\r\n") && !begins(b"\x01\x01\x011\x05UInt8\x01"));
    }
}
