//! The copy at the end of a long record, for comparisons and pages: everything of its intervals and telemetry, with the
//! histograms of intervals thinned to what pages show.
//!
//! Decoding an hour of intervals and telemetry takes most of the time of a comparison, and decoding their histograms
//! most of the time of a page, so the stream of such a run ends with a copy of them in columns. It is in a skippable
//! zstd frame (RFC 8878, 3.1.2), over which every program passes that decompresses the record. The events remain the
//! truth: a copy is made from those in the file, has the length and the checksum of all bytes before it, and is ignored
//! unless both fit. docs/record.md describes it.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom, Write};

use assay_measure::{ByClass, EncodedHistogram, Interval, Latencies, TargetInterval};

use crate::columns::{ColumnReader, ColumnWriter};
use crate::disk::{COMPRESSED_BYTES_MAX, DECOMPRESSED_BYTES_MAX};
use crate::stage::Stage;
use crate::telemetry::{Scope, Series, Telemetry, WaitEvent, Waits};
use crate::trial::Record;

/// Shorter records are read quickly without a copy, which would be a large part of them.
pub(crate) const LONG_BYTES: u64 = 512 << 10;
/// Begins our skippable frame; its length in four bytes follows.
const MAGIC: [u8; 4] = 0x184d_2a5a_u32.to_le_bytes();
const HEAD_BYTES: u64 = 8;
/// Ends it, with the version of what is in it: one with another end is not read.
const TAG: [u8; 8] = *b"assaycp2";
/// Lengths of what is before the frame and of the text in it, the checksum of what is before the frame, and the tag.
const TAIL_BYTES: usize = 8 + 8 + 4 + TAG.len();
/// Larger than a processor's innermost caches help with, and small enough for the next ones.
const PART_BYTES: usize = 256 << 10;
/// zstd's own default, as for events.
const ZSTD_LEVEL: i32 = 3;

/// Whether these bytes, of which there may be too few, begin a frame without events: a copy, or something that another
/// program has put there.
pub(crate) fn may_be_skippable(bytes: &[u8]) -> bool {
    let begin = &bytes[..bytes.len().min(MAGIC.len())];
    begin.first().is_some_and(|first| first & 0xf0 == MAGIC[0] & 0xf0) && begin[1..] == MAGIC[1..begin.len()]
}

/// The frame with this text, for a stream whose bytes so far have this length and this checksum. `None`: it would be
/// larger than readers accept.
pub(crate) fn frame(text: &[u8], before: Extent) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = [MAGIC, [0; 4]].concat();
    let mut encoder = zstd::Encoder::new(&mut bytes, ZSTD_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.write_all(text)?;
    encoder.finish()?;
    bytes.extend(before.bytes.to_le_bytes());
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(before.checksum.to_le_bytes());
    bytes.extend(TAG);
    if bytes.len() as u64 > COMPRESSED_BYTES_MAX || text.len() as u64 > DECOMPRESSED_BYTES_MAX {
        return Ok(None);
    }
    let length = (bytes.len() as u64 - HEAD_BYTES) as u32;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    Ok(Some(bytes))
}

/// The beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) bytes: u64,
    /// CRC-32.
    pub(crate) checksum: u32,
}

impl Extent {
    /// The first bytes of `from`, or all if there are fewer.
    pub(crate) fn of(from: &mut impl Read, bytes: u64) -> io::Result<Extent> {
        let (mut checksum, mut read, mut part) = (crc32fast::Hasher::new(), 0, vec![0; PART_BYTES]);
        while read < bytes {
            let wanted = part.len().min(usize::try_from(bytes - read).unwrap_or(usize::MAX));
            match from.read(&mut part[..wanted])? {
                0 => break,
                length => {
                    checksum.update(&part[..length]);
                    read += length as u64;
                }
            }
        }
        Ok(Extent { bytes: read, checksum: checksum.finalize() })
    }
}

/// The text of the copy at the end of `file`. `None`: there is none, it is longer than `text_max`, or it does not fit
/// the bytes before it.
pub(crate) fn text_of(file: &mut (impl Read + Seek), text_max: u64) -> Option<Vec<u8>> {
    let end = file.seek(SeekFrom::End(0)).ok()?;
    let mut tail = [0; TAIL_BYTES];
    file.seek(SeekFrom::Start(end.checked_sub(TAIL_BYTES as u64)?)).ok()?;
    file.read_exact(&mut tail).ok()?;
    let number = |at: usize| u64::from_le_bytes(tail[at..at + 8].try_into().expect("8 bytes"));
    let (begin, text_bytes) = (number(0), number(8));
    let checksum = u32::from_le_bytes(tail[16..20].try_into().expect("4 bytes"));
    let length = end.checked_sub(begin)?;
    let fits =
        tail[20..] == TAG && length <= COMPRESSED_BYTES_MAX && text_bytes <= text_max.min(DECOMPRESSED_BYTES_MAX);
    if !fits || length < HEAD_BYTES + TAIL_BYTES as u64 {
        return None;
    }
    file.seek(SeekFrom::Start(0)).ok()?;
    if Extent::of(file, begin).ok()? != (Extent { bytes: begin, checksum }) {
        return None;
    }
    let mut frame = vec![0; usize::try_from(length).ok()?];
    file.read_exact(&mut frame).ok()?;
    let (head, rest) = frame.split_at(HEAD_BYTES as usize);
    if head[..4] != MAGIC || head[4..] != ((length - HEAD_BYTES) as u32).to_le_bytes() {
        return None;
    }
    let text = zstd::bulk::decompress(&rest[..rest.len() - TAIL_BYTES], text_bytes as usize).ok()?;
    (text.len() as u64 == text_bytes).then_some(text)
}

/// The text of a copy. `lines`: all events of the record but intervals and readings. `None`: a record that no run
/// leaves. `has_histograms`: those of its intervals are thinned; false: it has none.
pub(crate) fn text(lines: &[u8], record: &Record, has_histograms: bool) -> Option<Vec<u8>> {
    let mut to = ColumnWriter::default();
    to.text(lines);
    to.number(record.stages.len() as u64);
    for stage in &record.stages {
        put_intervals(&mut to, &stage.intervals)?;
    }
    to.text(&if has_histograms { histograms(&record.stages) } else { Vec::new() });
    if let Some(telemetry) = &record.telemetry {
        to.text(&serde_json::to_vec(&without_values(telemetry)).ok()?);
        for scope in &telemetry.scopes {
            put_scope(&mut to, scope)?;
        }
    }
    Some(to.into_bytes())
}

/// A copy that was read.
pub(crate) struct Copied<'a> {
    /// The events of the record that are neither intervals nor readings.
    pub(crate) lines: &'a [u8],
    columns: ColumnReader<'a>,
}

impl<'a> Copied<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Option<Copied<'a>> {
        let mut columns = ColumnReader::new(text);
        Some(Copied { lines: columns.text()?, columns })
    }

    /// Adds intervals and telemetry to the record of `lines`; `None`: they are not those of this record, or histograms
    /// are wanted that it does not have.
    pub(crate) fn put_into(mut self, record: &mut Record, with_histograms: bool) -> Option<()> {
        let from = &mut self.columns;
        if from.number()? != record.stages.len() as u64 {
            return None;
        }
        for Stage { intervals, .. } in &mut record.stages {
            *intervals = take_intervals(from)?;
        }
        let histograms = from.text()?;
        if with_histograms {
            take_histograms(histograms, &mut record.stages)?;
        }
        if !from.is_at_end() {
            let mut telemetry: Telemetry = serde_json::from_slice(from.text()?).ok()?;
            telemetry.scopes.iter_mut().try_for_each(|scope| take_scope(from, scope))?;
            record.telemetry = Some(telemetry);
        }
        from.is_at_end().then_some(())
    }
}

/// What few intervals have: the place of one, its errors, its servers.
type Rare = (usize, BTreeMap<String, u64>, Vec<TargetInterval>);

fn put_intervals(to: &mut ColumnWriter, all: &[Interval]) -> Option<()> {
    to.number(all.len() as u64);
    let each = |to: &mut ColumnWriter, of: fn(&Interval) -> u64| to.column(all.iter().map(of));
    let known = |to: &mut ColumnWriter, of: fn(&Interval) -> Option<u64>| to.optional(all.iter().map(of));
    each(to, |one| one.start_ns);
    each(to, |one| one.length_ns);
    each(to, |one| one.transactions.len() as u64);
    let types = all.iter().map(|one| one.transactions.len()).max().unwrap_or(0);
    for number in 0..types {
        to.column(all.iter().filter_map(|one| one.transactions.get(number).copied()));
    }
    each(to, |one| one.statements.read);
    each(to, |one| one.statements.write);
    each(to, |one| one.statements.other);
    each(to, |one| one.errors);
    each(to, |one| one.retries);
    each(to, |one| one.failed);
    each(to, |one| one.reconnects);
    known(to, |one| one.due);
    each(to, |one| one.backlog);
    known(to, |one| one.backlog_max);
    known(to, |one| one.first_done_ns);
    known(to, |one| one.last_done_ns);
    each(to, |one| u64::from(one.sessions));
    each(to, |one| one.cpu_ns);
    known(to, |one| one.cpu_wait_ns);
    each(to, |one| one.response.count);
    each(to, |one| one.response.min_ns);
    each(to, |one| one.response.max_ns);
    each(to, |one| one.response.sum_ns as u64);
    each(to, |one| (one.response.sum_ns >> 64) as u64);
    each(to, |one| one.response.over);
    let is_rare = |one: &Interval| !one.errors_by_class.is_empty() || !one.targets.is_empty();
    let rare = |(at, one): (usize, &Interval)| (at, one.errors_by_class.clone(), one.targets.clone());
    let rare: Vec<Rare> = all.iter().enumerate().filter(|(_, one)| is_rare(one)).map(rare).collect();
    to.text(&serde_json::to_vec(&rare).ok()?);
    Some(())
}

fn take_intervals(from: &mut ColumnReader) -> Option<Vec<Interval>> {
    let length = from.length()?;
    let (start_ns, length_ns) = (from.column(length)?, from.column(length)?);
    let types = from.column(length)?;
    let mut transactions: Vec<Vec<u64>> = vec![Vec::new(); length];
    for number in 0..types.iter().copied().max().unwrap_or(0) {
        let having = || types.iter().zip(0..).filter(|(types, _)| **types > number).map(|(_, at): (_, usize)| at);
        for (at, count) in having().zip(from.column(having().count())?) {
            transactions[at].push(count);
        }
    }
    let (read, write, other) = (from.column(length)?, from.column(length)?, from.column(length)?);
    let (errors, retries) = (from.column(length)?, from.column(length)?);
    let (failed, reconnects) = (from.column(length)?, from.column(length)?);
    let (due, backlog, backlog_max) = (from.optional(length)?, from.column(length)?, from.optional(length)?);
    let (first_done_ns, last_done_ns) = (from.optional(length)?, from.optional(length)?);
    let (sessions, cpu_ns, cpu_wait_ns) = (from.small_column(length)?, from.column(length)?, from.optional(length)?);
    let (count, min_ns, max_ns) = (from.column(length)?, from.column(length)?, from.column(length)?);
    let (sum_low, sum_high, over) = (from.column(length)?, from.column(length)?, from.column(length)?);
    let interval = |(at, transactions)| Interval {
        start_ns: start_ns[at],
        length_ns: length_ns[at],
        transactions,
        statements: ByClass { read: read[at], write: write[at], other: other[at] },
        errors: errors[at],
        retries: retries[at],
        failed: failed[at],
        reconnects: reconnects[at],
        due: due[at],
        backlog: backlog[at],
        backlog_max: backlog_max[at],
        first_done_ns: first_done_ns[at],
        last_done_ns: last_done_ns[at],
        errors_by_class: BTreeMap::new(),
        targets: Vec::new(),
        sessions: sessions[at],
        cpu_ns: cpu_ns[at],
        cpu_wait_ns: cpu_wait_ns[at],
        response: {
            let sum_ns = u128::from(sum_high[at]) << 64 | u128::from(sum_low[at]);
            let mut response = Latencies::of(count[at], (min_ns[at], max_ns[at]), sum_ns, None);
            response.over = over[at];
            response
        },
    };
    let mut all: Vec<Interval> = transactions.into_iter().enumerate().map(interval).collect();
    let rare: Vec<Rare> = serde_json::from_slice(from.text()?).ok()?;
    for (at, errors_by_class, targets) in rare {
        let one = all.get_mut(at)?;
        (one.errors_by_class, one.targets) = (errors_by_class, targets);
    }
    Some(all)
}

/// The histograms of all intervals, one after another; empty if one of them has other buckets than ours.
fn histograms(stages: &[Stage]) -> Vec<u8> {
    let mut to = ColumnWriter::default();
    for interval in stages.iter().flat_map(|stage| &stage.intervals) {
        match interval.response.encoded() {
            None => to.text(&[]),
            Some(histogram) => match histogram.counts() {
                Some(counts) => to.text(counts),
                None => return Vec::new(),
            },
        }
    }
    to.into_bytes()
}

fn take_histograms(text: &[u8], stages: &mut [Stage]) -> Option<()> {
    let mut from = ColumnReader::new(text);
    for interval in stages.iter_mut().flat_map(|stage| &mut stage.intervals) {
        let counts = from.text()?;
        if !counts.is_empty() {
            interval.response = interval.response.with_histogram(Some(EncodedHistogram::of_counts(counts)?));
        }
    }
    from.is_at_end().then_some(())
}

/// Everything of telemetry that is not a column.
fn without_values(telemetry: &Telemetry) -> Telemetry {
    let series = |series: &Series| Series {
        metric: series.metric.clone(),
        unit: series.unit,
        reading: series.reading,
        source: series.source.clone(),
        values: Vec::new(),
        own: Vec::new(),
        includes_own: series.includes_own,
    };
    let event = |event: &WaitEvent| WaitEvent { name: event.name.clone(), sessions: Vec::new() };
    let scope = |scope: &Scope| Scope {
        kind: scope.kind,
        target: scope.target,
        began_ns: Vec::new(),
        ended_ns: Vec::new(),
        series: scope.series.iter().map(series).collect(),
        absent: scope.absent.clone(),
        waits: scope
            .waits
            .as_ref()
            .map(|waits| Waits { looks: Vec::new(), events: waits.events.iter().map(event).collect() }),
        log: scope.log.clone(),
        log_left_out: scope.log_left_out,
        statements: scope.statements.clone(),
    };
    Telemetry {
        full: telemetry.full,
        every_ns: telemetry.every_ns,
        scopes: telemetry.scopes.iter().map(scope).collect(),
        cost: telemetry.cost,
        interventions: telemetry.interventions.clone(),
        plans: telemetry.plans.clone(),
    }
}

fn put_scope(to: &mut ColumnWriter, scope: &Scope) -> Option<()> {
    let samples = scope.began_ns.len();
    let fits = |series: &Series| series.values.len() <= samples && series.own.len() <= samples;
    if scope.ended_ns.len() != samples || !scope.series.iter().all(fits) {
        return None;
    }
    to.number(samples as u64);
    to.column(scope.began_ns.iter().copied());
    to.column(scope.ended_ns.iter().copied());
    for column in scope.series.iter().flat_map(|series| [&series.values, &series.own]) {
        to.number(column.len() as u64);
        to.optional(column.iter().copied());
    }
    if let Some(Waits { looks, events }) = &scope.waits {
        for column in std::iter::once(looks).chain(events.iter().map(|event| &event.sessions)) {
            to.number(column.len() as u64);
            to.column(column.iter().map(|number| u64::from(*number)));
        }
    }
    Some(())
}

fn take_scope(from: &mut ColumnReader, scope: &mut Scope) -> Option<()> {
    let samples = from.length()?;
    (scope.began_ns, scope.ended_ns) = (from.column(samples)?, from.column(samples)?);
    for column in scope.series.iter_mut().flat_map(|series| [&mut series.values, &mut series.own]) {
        let length = usize::try_from(from.number()?).ok().filter(|length| *length <= samples)?;
        *column = from.optional(length)?;
    }
    if let Some(Waits { looks, events }) = &mut scope.waits {
        for column in std::iter::once(looks).chain(events.iter_mut().map(|event| &mut event.sessions)) {
            let length = from.length()?;
            *column = from.small_column(length)?;
        }
    }
    Some(())
}
