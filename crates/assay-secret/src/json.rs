//! JSON documents without passwords.

use std::borrow::Cow;

use crate::mask::{HIDDEN, is_secret, masked, may_hold_secret};

/// A JSON text in which every string has lost its passwords, and every string below a key such as `my_password` is
/// hidden. Anything else, and what is not JSON, stays as it is. Cost: one pass, unless a word that goes with passwords
/// occurs.
pub fn json_without_secrets(json: &[u8]) -> Cow<'_, [u8]> {
    if !may_hold_secret(json) {
        return Cow::Borrowed(json);
    }
    let (mut kept, mut from, mut at) = (Vec::new(), 0, 0);
    let mut is_below_secret = false;
    while let Some(start) = json[at..].iter().position(|byte| *byte == b'"').map(|found| at + found) {
        let Some(end) = end_of_string(json, start) else { break };
        // A number, a list or an object between a key and here: the key was of that.
        let between = json[at..start].iter().all(|byte| byte.is_ascii_whitespace() || *byte == b':');
        let literal = &json[start..end];
        let is_key = json[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
        at = end;
        if is_key {
            let inner = std::str::from_utf8(&literal[1..literal.len() - 1]);
            is_below_secret = inner.is_ok_and(is_secret);
            continue;
        }
        let hidden = match is_below_secret && between && literal.len() > 2 {
            true => Some(HIDDEN.to_owned()),
            false if may_hold_secret(literal) => without_secrets(literal),
            false => None,
        };
        is_below_secret = false;
        if let Some(hidden) = hidden {
            kept.extend_from_slice(&json[from..start]);
            kept.extend_from_slice(&serde_json::to_vec(&hidden).expect("a text becomes JSON"));
            from = end;
        }
    }
    match from {
        0 => Cow::Borrowed(json),
        _ => {
            kept.extend_from_slice(&json[from..]);
            Cow::Owned(kept)
        }
    }
}

/// The text of a literal without its passwords; `None`: it has none.
fn without_secrets(literal: &[u8]) -> Option<String> {
    let text: String = serde_json::from_slice(literal).ok()?;
    let hidden = masked(&text);
    (hidden != text).then_some(hidden)
}

/// The position after the string that begins at `start`; `None`: it has no end.
fn end_of_string(json: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match json.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_a_document_loses_its_passwords() {
        for (written, shown) in [
            (r#"{"a":"b","n":[1,2.5,null],"e":""}"#, r#"{"a":"b","n":[1,2.5,null],"e":""}"#),
            (
                r#"{"url":"pg://a:s3cret@h","my_password" : "s3cret"}"#,
                r#"{"url":"pg://a:***@h","my_password" : "***"}"#,
            ),
            (r#"{"password":"","token":5,"x":"s"}"#, r#"{"password":"","token":5,"x":"s"}"#),
            (r#"{"password":[1,"s"]}"#, r#"{"password":[1,"s"]}"#),
            (r#"["password=\"s3 cret\" \\ x"]"#, r#"["password=\"***\" \\ x"]"#),
            (r#"{"file":"a = 1\nc = 'host=h password=s3cret'\n"}"#, r#"{"file":"a = 1\nc = 'host=h password=***'\n"}"#),
            (r#"not "JSON with password=s3"#, r#"not "JSON with password=s3"#),
        ] {
            let text = json_without_secrets(written.as_bytes());
            assert_eq!(std::str::from_utf8(&text).unwrap(), shown);
            assert_eq!(json_without_secrets(&text), text);
        }
    }
}
