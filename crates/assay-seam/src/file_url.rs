//! URLs of embedded databases: `scheme:FILE?parameter=value&…`.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::database::TargetError;
use crate::url::{Undecodable, decoded};

/// Such a URL, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUrl {
    /// Never empty, never `:memory:`.
    pub path: String,
    /// In the order written.
    pub parameters: Vec<(String, String)>,
}

impl FileUrl {
    /// Parses a URL of this scheme. `file`: an example of a file's name; `memory`: what is wrong with `:memory:`. An
    /// error names the part that is wrong.
    pub fn parse(url: &str, scheme: &str, file: &str, memory: &str) -> Result<FileUrl, TargetError> {
        let rest = url.strip_prefix(scheme).and_then(|rest| rest.strip_prefix(':'));
        let rest = rest.ok_or_else(|| refuse(format!("{url} is not a {scheme}: URL"), None))?;
        let (written, query) = rest.split_once('?').unwrap_or((rest, ""));
        let example = || Some(format!("write {scheme}:{file} or {scheme}:/var/tmp/{file}"));
        let path = match written.strip_prefix("//") {
            None => decode(written)?,
            Some(rest) if rest.starts_with('/') => decode(rest)?,
            Some(_) => return Err(refuse(format!("a {scheme}: URL has no host"), example())),
        };
        if path.is_empty() || path.ends_with('/') {
            return Err(refuse(format!("a {scheme}: URL needs a file"), example()));
        }
        if path == ":memory:" {
            let hint = format!("for a database in memory, use a file such as {scheme}:/dev/shm/{file}");
            return Err(refuse(format!("{scheme}::memory: {memory}"), Some(hint)));
        }
        if path.contains('\0') {
            return Err(refuse("a file name cannot contain a NUL byte".into(), None));
        }
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let parameters = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        });
        Ok(FileUrl { path, parameters: parameters.collect::<Result<_, _>>()? })
    }

    /// The URL that is parsed as this file with these parameters.
    pub fn shown<'p>(scheme: &str, path: &str, parameters: impl Iterator<Item = (&'p str, String)>) -> String {
        let mut url = format!("{scheme}:{}", utf8_percent_encode(path, ESCAPED));
        for (i, (name, value)) in parameters.enumerate() {
            url.push(if i == 0 { '?' } else { '&' });
            url += &format!("{name}={}", utf8_percent_encode(&value, ESCAPED));
        }
        url
    }
}

fn refuse(message: String, hint: Option<String>) -> TargetError {
    TargetError { message, hint, is_missing: false }
}

fn decode(text: &str) -> Result<String, TargetError> {
    decoded(text).map_err(|reason| match reason {
        Undecodable::Percent => {
            refuse(format!("{text:?} has a % without two hexadecimal digits"), Some("write %25 for %".into()))
        }
        Undecodable::Text => refuse(format!("{text:?} is not UTF-8 once decoded"), None),
    })
}

/// Characters that would be misread when the shown URL is parsed again.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#').add(b'&').add(b' ');
