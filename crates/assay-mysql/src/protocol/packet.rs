//! Packets: how MySQL splits a stream into messages, and the integers and strings inside them.
//!
//! A packet is one or more frames of a 3-byte length, a sequence number and a payload; a frame of exactly `FRAME_MAX`
//! bytes is continued by the next. Packets are returned straight from the bytes that arrived; only an incomplete one is
//! copied. No buffer is sized by a length that a peer merely claims. Source: MySQL internals, "MySQL Packets";
//! `sql-common/net_serv.cc`.

use std::borrow::Cow;

use assay_seam::StatementError;

/// Payload bytes at which a frame is continued by another.
pub(super) const FRAME_MAX: usize = 0xFF_FFFF;

/// The largest packet in either direction; the largest possible `max_allowed_packet`.
pub(super) const PACKET_MAX: usize = 1 << 30;

/// More than any server's longest error packet.
const ERROR_MAX: usize = 1 << 16;

/// For `violation`.
pub(super) const OUT_OF_ORDER: &str = "numbered its packets wrongly";

/// The largest packet before the login has succeeded. Greetings, challenges, keys and errors have some hundred bytes; a
/// peer that nobody has authenticated must not make us keep more than this.
const LOGIN_PACKET_MAX: usize = 1 << 20;

/// A buffer that grew beyond this is not kept for the next incomplete packet.
const KEEP_MAX: usize = 4096;

/// The error for a peer that breaks the protocol; `what` fits after "the server …".
pub(super) fn violation(what: &str) -> Box<StatementError> {
    assay_wire::violation(format!("the server broke the MySQL protocol: it {what}"))
}

/// Splits what arrives into packets.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    header: [u8; 4],
    /// Bytes of `header` that have arrived. 0 <= header_len <= 4
    header_len: u8,
    /// Payload bytes of the current frame still to come; meaningful if `header_len == 4`.
    missing: usize,
    /// Payload of the current packet, if it did not arrive in one piece.
    payload: Vec<u8>,
    /// Whether all frames of the current packet had the expected number.
    out_of_order: bool,
    /// Whether the login has succeeded: packets may be as large as the protocol allows.
    pub(super) trusted: bool,
    /// The number the next frame must have, ours or the server's.
    pub(super) sequence: u8,
}

/// One packet.
pub(super) struct Packet<'a> {
    /// Its content, without headers.
    pub(super) payload: Cow<'a, [u8]>,
    /// Whether its frames were numbered as expected. A server that gives up (shutdown, kill) does not wait for its
    /// turn.
    pub(super) in_order: bool,
}

impl Inbound {
    /// Takes the next packet off the front of `bytes`; `None` if it is not complete yet, and then all of `bytes` was
    /// consumed.
    pub(super) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Packet<'a>>, Box<StatementError>> {
        if self.header_len == 0
            && self.payload.is_empty()
            && let [a, b, c, sequence, rest @ ..] = *bytes
        {
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            if length < FRAME_MAX && length <= rest.len() {
                let (payload, rest) = rest.split_at(length);
                *bytes = rest;
                let in_order = *sequence == self.sequence;
                self.sequence = sequence.wrapping_add(1);
                return Ok(Some(Packet { payload: Cow::Borrowed(payload), in_order }));
            }
        }
        loop {
            while self.header_len < 4 {
                let Some((&first, rest)) = bytes.split_first() else { return Ok(None) };
                *bytes = rest;
                self.header[self.header_len as usize] = first;
                self.header_len += 1;
                if self.header_len == 4 {
                    let [a, b, c, sequence] = self.header;
                    self.missing = u32::from_le_bytes([a, b, c, 0]) as usize;
                    self.out_of_order |= sequence != self.sequence;
                    self.sequence = sequence.wrapping_add(1);
                    // Only an error may come out of turn, and errors are short: do not wait for the rest of this.
                    if self.out_of_order && self.missing > ERROR_MAX {
                        return Err(violation(OUT_OF_ORDER));
                    }
                    let size = self.payload.len() + self.missing;
                    if !self.trusted && size > LOGIN_PACKET_MAX {
                        return Err(violation("sent a packet larger than 1 MiB before the login"));
                    }
                    if size > PACKET_MAX {
                        return Err(violation("sent a packet larger than 1 GiB"));
                    }
                }
            }
            let (now, later) = bytes.split_at(self.missing.min(bytes.len()));
            *bytes = later;
            self.payload.extend_from_slice(now);
            self.missing -= now.len();
            if self.missing > 0 {
                return Ok(None);
            }
            self.header_len = 0;
            if self.header[..3] != [0xFF; 3] {
                let in_order = !std::mem::take(&mut self.out_of_order);
                return Ok(Some(Packet { payload: Cow::Owned(std::mem::take(&mut self.payload)), in_order }));
            }
        }
    }

    /// Returns a packet's memory for the next one that arrives in pieces.
    pub(super) fn recycle(&mut self, payload: Cow<'_, [u8]>) {
        if let Cow::Owned(mut buffer) = payload
            && buffer.capacity() <= KEEP_MAX
        {
            buffer.clear();
            self.payload = buffer;
        }
    }
}

/// Appends one packet to `out`, split into frames if it is large; `write` appends the payload, at most `PACKET_MAX`
/// bytes. Advances `sequence`.
pub(super) fn write_packet(out: &mut Vec<u8>, sequence: &mut u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = begin_packet(out);
    write(out);
    end_packet(out, start, sequence);
}

/// Appends room for a header. The payload follows, then `end_packet` with the result.
pub(super) fn begin_packet(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    start
}

/// Writes the header, and those of further frames, of the packet that starts at `start` and extends to the end of
/// `out`.
pub(super) fn end_packet(out: &mut Vec<u8>, start: usize, sequence: &mut u8) {
    let length = out.len() - start - 4;
    let frames = length / FRAME_MAX + 1;
    out.resize(out.len() + 4 * (frames - 1), 0);
    for frame in (0..frames).rev() {
        let size = (length - frame * FRAME_MAX).min(FRAME_MAX);
        let from = start + 4 + frame * FRAME_MAX;
        let to = start + 4 + frame * (FRAME_MAX + 4);
        if frame > 0 {
            out.copy_within(from..from + size, to);
        }
        out[to - 4..to - 1].copy_from_slice(&(size as u32).to_le_bytes()[..3]);
        out[to - 1] = sequence.wrapping_add(frame as u8);
    }
    *sequence = sequence.wrapping_add(frames as u8);
}

/// Appends a length-encoded integer.
pub(super) fn write_lenenc(value: usize, out: &mut Vec<u8>) {
    let bytes = (value as u64).to_le_bytes();
    match value {
        0..=0xFA => out.push(value as u8),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Takes integers and strings off the front of a payload; `None` if there are too few bytes.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length-encoded integer. 0xFB (NULL in a row) and 0xFF are not integers.
    pub(super) fn lenenc(&mut self) -> Option<u64> {
        match self.u8()? {
            value @ 0..=0xFA => Some(value.into()),
            0xFC => self.u16().map(u64::from),
            0xFD => self.array().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]).into()),
            0xFE => self.u64(),
            _ => None,
        }
    }

    /// A string with a length-encoded length before it.
    pub(super) fn lenenc_bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.lenenc()?).ok()?;
        self.bytes(length)
    }

    /// A string terminated by a NUL, which is consumed.
    pub(super) fn nul_bytes(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.bytes(end)?;
        self.bytes(1)?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes payloads of these lengths, reads them back in pieces of `piece` bytes.
    fn check_round_trip(lengths: &[usize], piece: usize) {
        let mut out = Vec::new();
        let mut sequence = 0;
        for (i, &length) in lengths.iter().enumerate() {
            write_packet(&mut out, &mut sequence, |out| {
                out.extend((0..length).map(|at| (at / 251 + at + i) as u8));
            });
        }
        let mut inbound = Inbound { trusted: true, ..Inbound::default() };
        let mut found = Vec::new();
        for mut bytes in out.chunks(piece) {
            while let Some(packet) = inbound.next(&mut bytes).unwrap() {
                let i = found.len();
                assert!(packet.in_order, "packet {i}");
                assert!(packet.payload.iter().enumerate().all(|(at, &b)| b == (at / 251 + at + i) as u8), "packet {i}");
                found.push(packet.payload.len());
                inbound.recycle(packet.payload);
            }
        }
        assert_eq!(found, lengths);
        assert!(inbound.payload.capacity() <= KEEP_MAX && inbound.sequence == sequence);
    }

    #[test]
    fn packets_come_back_as_they_were_written_however_they_are_split() {
        for piece in [1, 2, 3, 4, 5, 7, 4096, 10_000] {
            check_round_trip(&[0, 1, 300, 0, 5000, 2], piece);
        }
    }

    #[test]
    fn packets_at_and_past_16_mib_are_continued_in_further_frames() {
        for length in [FRAME_MAX - 1, FRAME_MAX, FRAME_MAX + 1, 2 * FRAME_MAX, 2 * FRAME_MAX + 77] {
            check_round_trip(&[3, length, 3], 100_000);
            check_round_trip(&[length], usize::MAX);
        }
    }

    #[test]
    fn a_wrong_sequence_number_is_noticed() {
        let mut inbound = Inbound::default();
        let mut bytes: &[u8] = &[1, 0, 0, 0, 9, 1, 0, 0, 7, 9];
        assert!(inbound.next(&mut bytes).unwrap().unwrap().in_order);
        assert!(!inbound.next(&mut bytes).unwrap().unwrap().in_order);
    }

    #[test]
    fn a_long_packet_out_of_turn_is_an_error_before_the_rest_of_it_arrives() {
        let mut inbound = Inbound::default();
        let mut bytes: &[u8] = &[0xFF, 0xFF, 0x01, 7, 0xFF];
        let error = inbound.next(&mut bytes).err().expect("it is not waited for");
        assert!(error.message.ends_with(OUT_OF_ORDER), "{error:?}");
        let mut inbound = Inbound::default();
        let mut bytes: &[u8] = &[0x00, 0x01, 0x00, 7, 0xFF];
        assert!(inbound.next(&mut bytes).unwrap().is_none());
    }

    #[test]
    fn before_the_login_a_packet_has_at_most_one_mebibyte() {
        let header = |length: usize| [&(length as u32).to_le_bytes()[..3], &[0]].concat();
        for (length, is_refused) in [(LOGIN_PACKET_MAX, false), (LOGIN_PACKET_MAX + 1, true), (FRAME_MAX, true)] {
            let mut inbound = Inbound::default();
            assert_eq!(inbound.next(&mut &header(length)[..]).is_err(), is_refused, "{length}");
            let mut trusted = Inbound { trusted: true, ..Inbound::default() };
            assert!(trusted.next(&mut &header(length)[..]).is_ok(), "{length}");
        }
    }

    #[test]
    fn a_claimed_length_reserves_no_memory() {
        let mut inbound = Inbound { trusted: true, ..Inbound::default() };
        let mut bytes: &[u8] = &[0xFE, 0xFF, 0xFF, 0, 1, 2, 3];
        assert!(inbound.next(&mut bytes).unwrap().is_none());
        assert!(inbound.payload.capacity() < 100);
    }

    #[test]
    fn length_encoded_integers_read_back() {
        for value in [0, 250, 251, 255, 256, 0xFFFF, 0x1_0000, 0xFF_FFFF, 0x100_0000, usize::MAX] {
            let mut out = Vec::new();
            write_lenenc(value, &mut out);
            let mut reader = Reader(&out);
            assert_eq!((reader.lenenc(), reader.0.len()), (Some(value as u64), 0));
        }
        assert_eq!(Reader(&[0xFB]).lenenc(), None);
        assert_eq!(Reader(&[0xFE, 1]).lenenc(), None);
    }
}
