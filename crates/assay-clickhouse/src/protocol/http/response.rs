//! A response of an HTTP server, read piece by piece: its head, and its body without chunks and compression.
//!
//! Nothing is kept but an incomplete head or line. The body goes to the caller as it arrives.
//!
//! Source: RFC 9112 (HTTP/1.1); ClickHouse's documentation, "HTTP Interface".

use assay_seam::{Nanos, ServerReads};

use super::coding::{Coding, Decoder};

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// More bytes are needed.
    Incomplete,
    /// The head is complete.
    Head,
    /// A part of the body was appended.
    Body,
    /// The response is complete.
    End,
}

/// What a head says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) content: Content,
    /// X-ClickHouse-Exception-Code; 0: none.
    pub(super) exception: u32,
    /// Rows that an INSERT wrote, by X-ClickHouse-Summary.
    pub(super) written_rows: Option<u64>,
    /// What was read until the head was sent, likewise.
    pub(super) reads: Option<ServerReads>,
    /// How long the server keeps the idle connection, if it says so.
    pub(super) keeps: Option<Nanos>,
    /// The server closes the connection after the response.
    pub(super) closes: bool,
    length: Length,
    coding: Coding,
}

/// What a body holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Content {
    /// Blocks.
    Native,
    /// Plain text: of a statement without a result, or of an error.
    #[default]
    Plain,
    /// Rows in another format, by its media type.
    Other(String),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Length {
    /// Whatever comes until the server closes the connection.
    #[default]
    Open,
    Known(u64),
    Chunked,
}

/// A response, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Response {
    state: State,
    /// The head, or a line, as far as it has arrived.
    text: Vec<u8>,
    head: Head,
    decoder: Option<Decoder>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// `line`: where its last line begins in `text`.
    Head {
        line: usize,
    },
    /// Bytes of the body, or of a chunk, that are missing.
    Data(u64),
    ChunkSize,
    /// The line end after a chunk.
    ChunkEnd,
    /// Lines after the last chunk, of which so many bytes may still come.
    Trailer(usize),
    /// Nothing is missing.
    Done,
    #[default]
    Idle,
}

/// Bytes of a head, without the lines that report progress, or of lines after the last chunk.
const HEAD_MAX: usize = 1 << 16;
const HEADERS_MAX: usize = 100;
/// Bytes of a line before a chunk.
const LINE_MAX: usize = 1 << 10;
/// Digits of a chunk's size: 2⁶⁰ bytes.
const DIGITS_MAX: usize = 15;
/// Compressed bytes that are read at a time: they can become a thousand times as many.
const COMPRESSED_PIECE: usize = 1 << 12;

impl Response {
    /// Expects the next response.
    pub(super) fn begin(&mut self) {
        self.state = State::Head { line: 0 };
        self.text.clear();
        self.decoder = None;
    }

    /// Its head, once it was read.
    pub(super) fn head(&self) -> &Head {
        &self.head
    }

    /// Whether only the end of the connection tells where the body ends.
    pub(super) fn is_open_ended(&self) -> bool {
        self.head.length == Length::Open
    }

    /// Reads on, and takes what was read off `bytes`. An error fits after "the server …".
    pub(super) fn read(&mut self, bytes: &mut &[u8], out: &mut Vec<u8>) -> Result<Event, String> {
        loop {
            match self.state {
                State::Idle => return Ok(Event::Incomplete),
                State::Done => return self.end(out),
                State::Head { line } => {
                    if !self.take_line(bytes, HEAD_MAX)? {
                        return Ok(Event::Incomplete);
                    }
                    let last = &self.text[line..];
                    if last.trim_ascii().is_empty() {
                        return self.on_head().map(|()| Event::Head);
                    }
                    // During a long query there are as many of these as it takes tenths of a second.
                    if has_name(last, b"x-clickhouse-progress") {
                        self.text.truncate(line);
                    }
                    self.state = State::Head { line: self.text.len() };
                }
                State::Data(0) if self.head.length == Length::Chunked => {
                    self.text.clear();
                    self.state = State::ChunkEnd;
                }
                State::Data(0) => return self.end(out),
                State::Data(missing) if bytes.is_empty() => {
                    self.state = State::Data(missing);
                    return Ok(Event::Incomplete);
                }
                State::Data(missing) => {
                    let most = if self.decoder.is_some() { COMPRESSED_PIECE } else { usize::MAX };
                    let length = bytes.len().min(most).min(usize::try_from(missing).unwrap_or(usize::MAX));
                    let (piece, rest) = bytes.split_at(length);
                    *bytes = rest;
                    self.state = State::Data(missing - length as u64);
                    match &mut self.decoder {
                        None => out.extend_from_slice(piece),
                        Some(decoder) => decoder.read(piece, out)?,
                    }
                    return Ok(Event::Body);
                }
                State::ChunkSize => {
                    if !self.take_line(bytes, LINE_MAX)? {
                        return Ok(Event::Incomplete);
                    }
                    let size = chunk_size(&self.text)?;
                    self.text.clear();
                    self.state = if size == 0 { State::Trailer(HEAD_MAX) } else { State::Data(size) };
                }
                State::ChunkEnd => {
                    if !self.take_line(bytes, LINE_MAX)? {
                        return Ok(Event::Incomplete);
                    }
                    if !self.text.trim_ascii().is_empty() {
                        return Err("sent a chunk that is longer than its size".to_owned());
                    }
                    self.text.clear();
                    self.state = State::ChunkSize;
                }
                State::Trailer(limit) => {
                    if !self.take_line(bytes, limit)? {
                        return Ok(Event::Incomplete);
                    }
                    let is_last = self.text.trim_ascii().is_empty();
                    let length = self.text.len();
                    self.text.clear();
                    if is_last {
                        return self.end(out);
                    }
                    self.state = State::Trailer(limit - length);
                }
            }
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<Event, String> {
        let Some(decoder) = self.decoder.take() else {
            self.state = State::Idle;
            return Ok(Event::End);
        };
        self.state = State::Done;
        decoder.finish(out).map(|()| Event::Body)
    }

    /// Appends bytes to `text` up to the end of a line; false: it has not arrived yet.
    fn take_line(&mut self, bytes: &mut &[u8], max: usize) -> Result<bool, String> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
        if self.text.len() + line.len() > max {
            return Err(format!("sent more than {max} bytes of headers"));
        }
        self.text.extend_from_slice(line);
        *bytes = rest;
        // A proxy in between may see other lines where one of us is content with less.
        if end.is_some() && !self.text.ends_with(b"\r\n") {
            return Err("ended a line of HTTP without a carriage return".to_owned());
        }
        Ok(end.is_some())
    }

    fn on_head(&mut self) -> Result<(), String> {
        self.head = read_head(&self.text)?;
        self.text.clear();
        self.decoder = Decoder::new(self.head.coding);
        self.state = match self.head.length {
            Length::Chunked => State::ChunkSize,
            Length::Known(length) => State::Data(length),
            Length::Open => State::Data(u64::MAX),
        };
        Ok(())
    }
}

fn read_head(text: &[u8]) -> Result<Head, String> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    match parsed.parse(text) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err("sent half a head".to_owned()),
        Err(error) => return Err(format!("did not answer in HTTP: {error}")),
    }
    let mut head = Head {
        status: parsed.code.unwrap_or_default(),
        reason: parsed.reason.unwrap_or_default().to_owned(),
        // HTTP/1.0 keeps no connection unless it says so; such an answer comes from a proxy.
        closes: parsed.version == Some(0),
        ..Head::default()
    };
    check_once(parsed.headers)?;
    for header in parsed.headers.iter() {
        let value = header.value.trim_ascii();
        let text = || String::from_utf8_lossy(value).into_owned();
        match header.name.to_ascii_lowercase().as_str() {
            "transfer-encoding" if value.eq_ignore_ascii_case(b"chunked") => head.length = Length::Chunked,
            "transfer-encoding" => return Err(format!("sent a body in the transfer encoding {}", text())),
            "content-length" => {
                let length = number(value).ok_or_else(|| format!("sent the content length {:?}", text()))?;
                head.length = Length::Known(length);
            }
            "content-encoding" => {
                head.coding = Coding::of(value).ok_or_else(|| format!("encoded a body as {}", text()))?
            }
            "content-type" => head.content = content(value),
            "x-clickhouse-format" if value == b"Native" => head.content = Content::Native,
            "x-clickhouse-exception-code" => head.exception = number(value).unwrap_or(1) as u32,
            "x-clickhouse-summary" => {
                head.written_rows = field(value, b"\"written_rows\"");
                let reads = field(value, b"\"read_rows\"").zip(field(value, b"\"read_bytes\""));
                head.reads = reads.map(|(rows, bytes)| ServerReads { rows, bytes });
            }
            "connection" if value.eq_ignore_ascii_case(b"close") => head.closes = true,
            "connection" if value.eq_ignore_ascii_case(b"keep-alive") => head.closes = false,
            "keep-alive" => head.keeps = field(value, b"timeout").map(Nanos::from_secs),
            _ => {}
        }
    }
    Ok(head)
}

/// Where a body ends, and what it is, must be said once: two readers could choose differently.
fn check_once(headers: &[httparse::Header<'_>]) -> Result<(), String> {
    const ONCE: [&str; 4] = ["content-length", "transfer-encoding", "content-encoding", "content-type"];
    let count = |name: &str| headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name)).count();
    if let Some(name) = ONCE.into_iter().find(|name| count(name) > 1) {
        return Err(format!("sent the header {name} twice"));
    }
    match count(ONCE[0]) + count(ONCE[1]) {
        2 => Err("sent a content length and chunks in one response".to_owned()),
        _ => Ok(()),
    }
}

fn content(value: &[u8]) -> Content {
    let kind = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    match kind {
        b"application/octet-stream" => Content::Native,
        b"text/plain" => Content::Plain,
        other => Content::Other(String::from_utf8_lossy(other).into_owned()),
    }
}

fn has_name(line: &[u8], name: &[u8]) -> bool {
    line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name) && line[name.len()] == b':'
}

/// The number that follows `name` and `:"` or `=`.
fn field(text: &[u8], name: &[u8]) -> Option<u64> {
    let start = text.windows(name.len()).position(|window| window == name)? + name.len();
    let rest = text[start..].trim_ascii_start();
    let rest = rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b"="))?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    number(&rest[..digits])
}

fn number(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// The size in a chunk's first line. What follows a `;` means nothing to us.
fn chunk_size(line: &[u8]) -> Result<u64, String> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let is_size = (1..=DIGITS_MAX).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
    let size = std::str::from_utf8(digits).ok().filter(|_| is_size);
    size.and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| format!("sent the chunk size {:?}", String::from_utf8_lossy(&digits[..digits.len().min(20)])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a response in pieces of this size; what was read, and whether it has ended.
    fn read(text: &[u8], piece: usize) -> Result<(Head, Vec<u8>, bool), String> {
        let (mut response, mut out, mut ended) = (Response::default(), Vec::new(), false);
        response.begin();
        for mut bytes in text.chunks(piece) {
            loop {
                match response.read(&mut bytes, &mut out)? {
                    Event::Incomplete => break,
                    Event::End => ended = true,
                    Event::Head | Event::Body => {}
                }
            }
        }
        Ok((response.head().clone(), out, ended))
    }

    fn check(text: &str, wanted: Result<(&str, bool), &str>) -> Head {
        let whole = read(text.as_bytes(), text.len());
        for piece in 1..text.len() {
            assert_eq!(read(text.as_bytes(), piece), whole, "{text:?} in pieces of {piece}");
        }
        let found = whole.as_ref().map(|(_, body, ended)| (std::str::from_utf8(body).unwrap(), *ended));
        assert_eq!(found.map_err(String::as_str), wanted, "{text:?}");
        whole.map(|(head, ..)| head).unwrap_or_default()
    }

    #[test]
    fn bodies_end_by_their_length_or_their_last_chunk() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Ok(("abc", true)));
        check("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", Ok(("abc", false)));
        check("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Ok(("", true)));
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n00B;x=y\r\ncdefghijklm\r\n";
        check(chunks, Ok(("abcdefghijklm", false)));
        check(&format!("{chunks}0\r\nExpires: never\r\n\r\n"), Ok(("abcdefghijklm", true)));
        check("HTTP/1.0 400 Bad Request\r\n\r\nwrong port", Ok(("wrong port", false)));
    }

    #[test]
    fn a_head_says_what_follows() {
        let head = check(
            "HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\nContent-Type: application/octet-stream\r\nContent-Length: 0\r\n\
             X-ClickHouse-Progress: {\"read_rows\":\"1\"}\r\nX-ClickHouse-Progress: {\"read_rows\":\"2\"}\r\n\
             X-ClickHouse-Summary: {\"read_rows\":\"7\",\"read_bytes\":\"56\",\"written_rows\":\"12\",\"written_bytes\":\"9\"}\r\n\
             Keep-Alive: timeout=3, max=9999\r\n\r\n",
            Ok(("", true)),
        );
        let expected = Head {
            status: 200,
            reason: "OK".into(),
            content: Content::Native,
            written_rows: Some(12),
            reads: Some(ServerReads { rows: 7, bytes: 56 }),
            keeps: Some(Nanos::from_secs(3)),
            length: Length::Known(0),
            ..Head::default()
        };
        assert_eq!(head, expected);
        let head =
            check("HTTP/1.1 500 Oh\r\nX-ClickHouse-Exception-Code: 60\r\nConnection: close\r\n\r\n", Ok(("", false)));
        assert_eq!((head.status, head.exception, head.closes), (500, 60, true));
        let head = check(
            "HTTP/1.1 200 OK\r\nContent-Type: text/csv; charset=UTF-8\r\nContent-Length: 0\r\n\r\n",
            Ok(("", true)),
        );
        assert_eq!(head.content, Content::Other("text/csv".into()));
    }

    #[test]
    fn a_long_query_may_report_its_progress_as_often_as_it_likes() {
        let progress = "X-ClickHouse-Progress: {\"read_rows\":\"2752512\"}\r\n".repeat(10_000);
        let text = format!("HTTP/1.1 200 OK\r\n{progress}Content-Length: 0\r\n\r\n");
        assert!(read(text.as_bytes(), 1000).unwrap().2);
    }

    #[test]
    fn a_server_that_means_harm_is_refused() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for (text, reason) in [
            (format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(20_000)), "sent more than 65536 bytes of headers"),
            ("x".repeat(70_000), "sent more than 65536 bytes of headers"),
            (format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(101)), "did not answer in HTTP: too many headers"),
            ("SSH-2.0-OpenSSH\r\n\r\n".to_owned(), "did not answer in HTTP: invalid HTTP version"),
            (format!("{chunked}x\r\n"), "sent the chunk size \"x\""),
            (format!("{chunked}-1\r\n"), "sent the chunk size \"-1\""),
            (format!("{chunked}\r\n"), "sent the chunk size \"\""),
            (format!("{chunked}FFFFFFFFFFFFFFFFF\r\n"), "sent the chunk size \"FFFFFFFFFFFFFFFFF\""),
            (format!("{chunked}{}", "1".repeat(2000)), "sent more than 1024 bytes of headers"),
            (format!("{chunked}1\r\nab\r"), "sent a chunk that is longer than its size"),
            ("HTTP/1.1 200 OK\nContent-Length: 0\n\n".to_owned(), "ended a line of HTTP without a carriage return"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n".to_owned(), "ended a line of HTTP without"),
            (format!("{chunked}1\na\n0\n\n"), "ended a line of HTTP without"),
            (format!("{chunked}0\r\nExpires: never\n\r\n"), "ended a line of HTTP without"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\n".to_owned(),
                "sent the header content-length twice",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n".to_owned(),
                "sent the header content-length twice",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
                "sent a content length and chunks",
            ),
            (format!("{chunked}0\r\n{}", "A: b\r\n".repeat(20_000)), "sent more than"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".to_owned(), "sent the content length \"-1\""),
            ("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n".to_owned(), "encoded a body as br"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned(),
                "sent a body in the transfer encoding gzip",
            ),
        ] {
            // A whole line is needed to see that a chunk is too long.
            let text = if text.ends_with("ab\r") { text + "\n" } else { text };
            let error = read(text.as_bytes(), 1000).unwrap_err();
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
