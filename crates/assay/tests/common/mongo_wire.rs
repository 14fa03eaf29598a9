//! Messages of MongoDB's protocol, for servers that tests put in front of real ones.

use std::io::Read;
use std::net::TcpStream;

/// The length at the beginning of a message or a document.
pub(crate) fn length(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize
}

/// A whole message; `None` once the other side has closed.
pub(crate) fn receive(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut message = vec![0; 4];
    from.read_exact(&mut message).ok()?;
    message.resize(length(&message), 0);
    from.read_exact(&mut message[4..]).ok()?;
    Some(message)
}

/// A document of these elements.
pub(crate) fn closed(fields: &[u8]) -> Vec<u8> {
    let mut document = (fields.len() as u32 + 5).to_le_bytes().to_vec();
    document.extend_from_slice(fields);
    document.push(0);
    document
}

/// An element of a document.
pub(crate) fn element(kind: u8, name: &str, value: &[u8]) -> Vec<u8> {
    [&[kind], name.as_bytes(), &[0], value].concat()
}

/// A text, as an element.
pub(crate) fn text(name: &str, value: &str) -> Vec<u8> {
    let length = (value.len() as u32 + 1).to_le_bytes();
    element(2, name, &[&length, value.as_bytes(), &[0]].concat())
}

/// Names and whole elements of a document.
pub(crate) fn elements(document: &[u8]) -> Vec<(String, &[u8])> {
    let (mut all, mut at) = (Vec::new(), 4);
    while document[at] != 0 {
        let name = document[at + 1..].split(|byte| *byte == 0).next().unwrap();
        let value = at + 2 + name.len();
        let size = match document[at] {
            0x01 | 0x09 | 0x11 | 0x12 => 8,
            0x02 => 4 + length(&document[value..]),
            0x03 | 0x04 => length(&document[value..]),
            0x05 => 5 + length(&document[value..]),
            0x07 => 12,
            0x08 => 1,
            0x0A => 0,
            0x10 => 4,
            other => panic!("an element of type {other}"),
        };
        all.push((String::from_utf8_lossy(name).into_owned(), &document[at..value + size]));
        at = value + size;
    }
    all
}

/// The answer to a message.
pub(crate) fn answer(message: &[u8], fields: &[u8]) -> Vec<u8> {
    let document = closed(fields);
    let mut reply = (21 + document.len() as u32).to_le_bytes().to_vec();
    reply.extend_from_slice(&[0; 4]);
    reply.extend_from_slice(&message[4..8]);
    reply.extend_from_slice(&2013_i32.to_le_bytes());
    reply.extend_from_slice(&[0; 5]);
    reply.extend_from_slice(&document);
    reply
}

/// The greeting of a server with these elements instead of its own of the same names; other replies are left as they
/// are.
pub(crate) fn greeting_with(mut reply: Vec<u8>, instead: &[Vec<u8>]) -> Vec<u8> {
    let opcode = i32::from_le_bytes(reply[12..16].try_into().unwrap());
    let start = if opcode == 2013 { 21 } else { 36 };
    let own = elements(&reply[start..]);
    if !own.iter().any(|one| one.0 == "ismaster" || one.0 == "isWritablePrimary") {
        return reply;
    }
    let new: Vec<u8> = instead.concat();
    let names: Vec<String> = elements(&closed(&new)).into_iter().map(|one| one.0).collect();
    let kept = own.iter().filter(|one| !names.contains(&one.0)).flat_map(|one| one.1);
    let fields: Vec<u8> = kept.copied().chain(new).collect();
    reply.truncate(start);
    reply.extend_from_slice(&closed(&fields));
    let size = reply.len() as u32;
    reply[..4].copy_from_slice(&size.to_le_bytes());
    reply
}
