//! A record as a stream: its events, one JSON text per line, in compressed frames that are appended and never
//! rewritten.
//!
//! A frame is a whole zstd frame with a checksum, so a file cut anywhere still has everything up to its last whole
//! frame, and `zstd -dc` prints all lines. The writer holds a lock on the file for as long as it is open.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use assay_measure::{Interval, Latencies, Thinner};
use assay_secret::json_without_secrets;
use zstd::zstd_safe::{self, DCtx, InBuffer, OutBuffer};

use crate::budget::Budget;
use crate::copy::{self, Copied, Extent};
use crate::disk::{self, DECOMPRESSED_BYTES_MAX, Existing, Limits, ReadError, WriteError};
use crate::event::{Ended, Event, Fold, KnownScope, Moment, WrittenSoFar};
use crate::source::Source;
use crate::stage::Stage;
use crate::status::Status;
use crate::trial::{FORMAT, Record, Tool};

/// zstd's own default: higher levels cost more time than they save space.
const ZSTD_LEVEL: i32 = 3;
/// Lines are put into one frame up to this size, so that damage costs little.
const FRAME_BYTES: usize = 1 << 20;
/// Room for the text of a frame, to begin with.
const TEXT_BYTES: usize = 1 << 18;
/// More damaged lines than these are not told one by one.
const DAMAGED_MAX: usize = 100;
/// RFC 8878, 3.1.1.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Every stream begins with these bytes.
const BEGIN: &[u8] = b"{\"started\":";

/// The events in frames.
pub(crate) fn frames(events: &[Event]) -> io::Result<Vec<u8>> {
    let (mut bytes, mut lines) = (Vec::new(), Vec::new());
    for event in events {
        lines.extend_from_slice(&public_line(event)?);
        lines.push(b'\n');
        if lines.len() >= FRAME_BYTES {
            put_frame(&mut bytes, &mut lines)?;
        }
    }
    if !lines.is_empty() {
        put_frame(&mut bytes, &mut lines)?;
    }
    Ok(bytes)
}

/// An event as a line, without its end and without passwords: whoever made it may have overlooked one in the text of a
/// statement, of a message, or of a configuration.
fn public_line(event: &Event) -> io::Result<Vec<u8>> {
    let line = serde_json::to_vec(event)?;
    Ok(match json_without_secrets(&line) {
        Cow::Owned(public) => public,
        Cow::Borrowed(_) => line,
    })
}

/// Appends a frame with the text, and empties that.
pub(crate) fn put_frame(bytes: &mut Vec<u8>, lines: &mut Vec<u8>) -> io::Result<()> {
    let mut encoder = zstd::Encoder::new(bytes, ZSTD_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.write_all(lines)?;
    encoder.finish()?;
    lines.clear();
    Ok(())
}

/// A whole record in frames.
pub(crate) fn whole(record: &Record) -> io::Result<Vec<u8>> {
    frames(&WrittenSoFar::begin(record, Moment::Underway).0)
}

/// A whole record in frames, with its copy if it is long.
pub(crate) fn whole_with_copy(record: &Record) -> io::Result<Vec<u8>> {
    let mut bytes = whole(record)?;
    bytes.extend(copy_of(&mut io::Cursor::new(&bytes), Some(record))?.unwrap_or_default());
    Ok(bytes)
}

/// The copy for the end of this stream, made from what is in it. `None`: it is short, or has no end of its own.
/// `known`: the record, if somebody has read it before; decoding histograms again takes as long as everything else.
fn copy_of(stream: &mut (impl Read + Seek), known: Option<&Record>) -> io::Result<Option<Vec<u8>>> {
    let length = stream.seek(SeekFrom::End(0))?;
    if length < copy::LONG_BYTES {
        return Ok(None);
    }
    let mut lines = match known {
        Some(_) => Lines::of(Part::Figures),
        None => {
            stream.seek(SeekFrom::Start(0))?;
            let head = read(&mut Source::of(Path::new("stream"), &mut *stream, length), Part::Head);
            // What is kept of intervals follows from totals, which are at the end.
            let thinners = head.map(|head| head.record.stages.iter().map(thinner).collect());
            Lines { thinners: thinners.unwrap_or_default(), ..Lines::of(Part::Whole) }
        }
    };
    lines.others = Some(Vec::new());
    stream.seek(SeekFrom::Start(0))?;
    let Ok((mut found, others)) = read_lines(&mut Source::of(Path::new("stream"), &mut *stream, length), lines) else {
        return Ok(None);
    };
    if found.record.status == Status::Running || found.whole_bytes != length || !found.is_compressed {
        return Ok(None);
    }
    let has_histograms = known.is_none_or(|known| take_histograms(&mut found.record.stages, &known.stages));
    let Some(text) = copy::text(&others, &found.record, has_histograms) else { return Ok(None) };
    stream.seek(SeekFrom::Start(0))?;
    copy::frame(&text, Extent::of(stream, length)?)
}

fn thinner(stage: &Stage) -> Thinner {
    Thinner::new(stage.total.transactions.iter().map(|one| &one.response))
}

/// Gives intervals without histograms those of `known`, thinned; false: they are not the same intervals.
fn take_histograms(stages: &mut [Stage], known: &[Stage]) -> bool {
    let exact = |of: &Latencies| (of.count, of.min_ns, of.max_ns, of.sum_ns, of.over);
    let take = |thinner: &Thinner, one: &mut Interval, known: &Interval| {
        let thinned = thinner.thinned(&known.response).filter(|thinned| exact(thinned) == exact(&one.response));
        thinned.map(|thinned| one.response = thinned).is_some()
    };
    stages.len() == known.len()
        && stages.iter_mut().zip(known).all(|(stage, known)| {
            let thinner = thinner(stage);
            let are_as_many = stage.intervals.len() == known.intervals.len();
            let mut both = stage.intervals.iter_mut().zip(&known.intervals);
            are_as_many && both.all(|(one, known)| take(&thinner, one, known))
        })
}

/// A part of a record from the copy at its end. `None`: it has none that fits.
pub(crate) fn read_copy(path: &Path, part: Part) -> Option<Record> {
    let mut file = disk::open_file(path).ok()?;
    let limits = Limits::of(file.metadata().ok()?.len());
    of_copy(path, &copy::text_of(&mut file, limits.text)?, part)
}

/// A part of the record whose copy has this text.
pub(crate) fn of_copy(path: &Path, text: &[u8], part: Part) -> Option<Record> {
    let copied = Copied::of(text)?;
    let mut lines = Lines::of(part);
    lines.take(path, copied.lines).ok()?;
    let mut record = lines.finish(path).ok()??;
    match part {
        Part::Head => {}
        Part::Figures => copied.put_into(&mut record, false)?,
        Part::Thinned => copied.put_into(&mut record, true)?,
        Part::Whole => return None,
    }
    Some(record)
}

/// Why frames end before the bytes do.
#[derive(Debug)]
pub(crate) enum FrameEnd {
    /// The rest of a frame is missing.
    Cut,
    /// This is not a frame, or it is damaged.
    Damaged,
    /// More text than any record has.
    TooLarge,
}

/// Decompresses frames, one after another, into the same memory.
#[derive(Default)]
pub(crate) struct Frames {
    context: DCtx<'static>,
    /// The last text, and room for a longer one.
    text: Vec<u8>,
}

impl Frames {
    /// The lines of the next frame, and its length in bytes.
    pub(crate) fn next(&mut self, bytes: &[u8], text_max: u64) -> Result<(&[u8], usize), FrameEnd> {
        let begins = bytes.len().min(ZSTD_MAGIC.len());
        if bytes[..begins] != ZSTD_MAGIC[..begins] {
            return skippable_bytes(bytes).map(|length| (&[][..], length));
        }
        let length = zstd_safe::find_frame_compressed_size(bytes).map_err(|_| FrameEnd::Cut)?;
        let (mut input, mut end) = (InBuffer::around(&bytes[..length]), 0);
        loop {
            // With room for all of it, zstd copies nothing.
            if end == self.text.len() {
                self.text.resize((2 * end).max(TEXT_BYTES), 0);
            }
            let mut output = OutBuffer::around_pos(&mut self.text[..], end);
            let left = self.context.decompress_stream(&mut output, &mut input).map_err(|_| FrameEnd::Damaged)?;
            end = output.pos();
            match left {
                _ if end as u64 > text_max => return Err(FrameEnd::TooLarge),
                0 => return Ok((&self.text[..end], length)),
                _ if end < self.text.len() => return Err(FrameEnd::Damaged),
                _ => {}
            }
        }
    }
}

/// Length of a frame without lines.
fn skippable_bytes(bytes: &[u8]) -> Result<usize, FrameEnd> {
    match copy::may_be_skippable(bytes) {
        true => zstd_safe::find_frame_compressed_size(bytes).map_err(|_| FrameEnd::Cut),
        false => Err(FrameEnd::Damaged),
    }
}

/// The lines of a text, without their ends and without empty ones.
fn lines_of(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let next = move || {
        let from = text;
        let length = text.skip_until(b'\n').expect("memory can be read");
        (length > 0).then(|| from[..length].strip_suffix(b"\n").unwrap_or(&from[..length]))
    };
    std::iter::from_fn(next).filter(|line| !line.is_empty())
}

/// Whether this is a stream, compressed or not; false if it is cut within its first frame.
pub(crate) fn is_stream<R: Read>(source: &mut Source<R>) -> Result<bool, ReadError> {
    loop {
        let held = source.held();
        let is_compressed = held.starts_with(&ZSTD_MAGIC);
        let has_frame = is_compressed && zstd_safe::find_frame_compressed_size(held).is_ok();
        if has_frame {
            let mut begin = [0; BEGIN.len()];
            let is_read = zstd::Decoder::with_buffer(held).is_ok_and(|mut text| text.read_exact(&mut begin).is_ok());
            return Ok(is_read && begin == BEGIN);
        }
        if !is_compressed && held.len() >= BEGIN.len() {
            return Ok(held.starts_with(BEGIN));
        }
        if !source.more()? {
            return Ok(false);
        }
    }
}

/// A stream that was read.
pub(crate) struct ReadStream {
    pub(crate) record: Record,
    /// Length of its whole frames, without a copy at its end.
    pub(crate) whole_bytes: u64,
    /// Whether something other than a cut frame follows them.
    pub(crate) is_damaged: bool,
    pub(crate) is_compressed: bool,
}

/// How much of a record is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything.
    Whole,
    /// Everything, but a copy may have thinned the histograms of intervals.
    Thinned,
    /// Everything but the histograms of intervals, which are most of the work of reading a long record.
    Figures,
    /// Without intervals and telemetry, which are most of a record, and with the histograms of response times alone.
    Head,
}

/// The record of a stream. A cut or damaged one ends with its last whole frame.
pub(crate) fn read<R: Read>(source: &mut Source<R>, part: Part) -> Result<ReadStream, ReadError> {
    read_lines(source, Lines::of(part)).map(|(found, _)| found)
}

/// As `read`, and the `others` of `lines`.
fn read_lines<R: Read>(source: &mut Source<R>, mut lines: Lines) -> Result<(ReadStream, Vec<u8>), ReadError> {
    let path = source.path();
    let too_large = || ReadError::TooLarge { path: path.to_owned(), limit_bytes: DECOMPRESSED_BYTES_MAX };
    let limits = source.limits();
    lines.budget = Budget::new(limits.values);
    let mut frames = Frames::default();
    // `at` is after a frame that may follow the last one with events.
    let (mut at, mut whole_bytes, mut broken) = (0, 0, None);
    while source.held().len() < ZSTD_MAGIC.len() && source.more()? {}
    let is_compressed = source.held().starts_with(&ZSTD_MAGIC);
    if !is_compressed {
        // Decompressed by another program. A line that is cut has no end.
        while source.more()? {}
        let bytes = source.held();
        at = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        lines.take(path, &bytes[..at]).map_err(|error| lines.error(error, source))?;
        whole_bytes = at;
        broken = (at < bytes.len()).then_some(FrameEnd::Cut);
        source.pass(source.held().len());
    }
    while broken.is_none() && (!source.held().is_empty() || source.more()?) {
        let left = DECOMPRESSED_BYTES_MAX.checked_sub(lines.taken_bytes).ok_or_else(too_large)?;
        match frames.next(source.held(), left.min(limits.text)) {
            Ok((text, length)) => {
                lines.take(path, text).map_err(|error| lines.error(error, source))?;
                at += length;
                if !copy::may_be_skippable(source.held()) {
                    whole_bytes = at;
                }
                source.pass(length);
            }
            Err(FrameEnd::TooLarge) if left > limits.text => return Err(source.too_much(limits.text)),
            Err(FrameEnd::TooLarge) => return Err(too_large()),
            Err(FrameEnd::Cut) if source.more()? => {}
            Err(reason) => broken = Some(reason),
        }
    }
    let is_damaged = matches!(broken, Some(FrameEnd::Damaged));
    let others = lines.take_others();
    let mut record = lines.finish(path)?.ok_or_else(|| ReadError::CutOff { path: path.to_owned() })?;
    if is_damaged && record.status == Status::Running {
        record.failure = Some(format!("the record is damaged after its first {at} bytes: what followed is lost"));
    }
    Ok((ReadStream { record, whole_bytes: whole_bytes as u64, is_damaged, is_compressed }, others))
}

/// Lines on their way into a record.
struct Lines {
    part: Part,
    fold: Fold,
    /// Lines that are neither intervals nor readings, as far as they count; `None`: not wanted.
    others: Option<Vec<u8>>,
    /// Thin the histograms of intervals, by stage.
    thinners: Vec<Thinner>,
    /// The last totals of a stage in progress: most are replaced, and need not be decoded.
    so_far: Vec<u8>,
    /// Length of the lines that were decoded: what a reader keeps in memory.
    taken_bytes: u64,
    /// Number of lines so far, and the number of that in `so_far`.
    number: u64,
    so_far_number: u64,
    /// What the values may still need.
    budget: Budget,
    /// Numbers of lines that are not events.
    damaged: Vec<u64>,
}

impl Lines {
    fn of(part: Part) -> Lines {
        let (fold, others, so_far) = (Fold::default(), None, Vec::new());
        let (thinners, budget, damaged) = (Vec::new(), Budget::new(u64::MAX), Vec::new());
        Lines { part, fold, others, thinners, so_far, taken_bytes: 0, number: 0, so_far_number: 0, budget, damaged }
    }

    /// The error of a line: of one that needs too much, what that means for the file.
    fn error<R: Read>(&self, error: ReadError, source: &Source<'_, R>) -> ReadError {
        if self.budget.is_exceeded() { source.too_much(source.limits().values) } else { error }
    }

    fn take(&mut self, path: &Path, text: &[u8]) -> Result<(), ReadError> {
        for line in lines_of(text) {
            self.number += 1;
            match kind_of(line) {
                b"so_far" => {
                    self.so_far.clear();
                    self.so_far.extend_from_slice(line);
                    self.so_far_number = self.number;
                }
                b"interval" | b"readings" if self.part == Part::Head => {}
                kind => {
                    if kind == b"stage_ended" {
                        self.so_far.clear();
                    }
                    if let Some(others) = &mut self.others
                        && kind != b"interval"
                        && kind != b"readings"
                    {
                        others.extend_from_slice(line);
                        others.push(b'\n');
                    }
                    self.taken_bytes += line.len() as u64;
                    match self.parse(path, line, self.number)? {
                        Some(mut event) => {
                            self.thin(&mut event);
                            self.fold.take(event);
                        }
                        None if !may_be_event(line) && self.damaged.len() < DAMAGED_MAX => {
                            self.damaged.push(self.number);
                        }
                        None => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn thin(&self, event: &mut Event) {
        if let Event::Interval(one) = event
            && let Some(thinner) = self.thinners.get(one.stage as usize)
            && let Some(thinned) = thinner.thinned(&one.interval.response)
        {
            one.interval.response = thinned;
        }
    }

    fn take_others(&mut self) -> Vec<u8> {
        let mut others = self.others.take().unwrap_or_default();
        others.extend_from_slice(&self.so_far);
        others
    }

    fn finish(mut self, path: &Path) -> Result<Option<Record>, ReadError> {
        if !self.so_far.is_empty()
            && let Some(event) = self.parse(path, &self.so_far, self.so_far_number)?
        {
            self.fold.take(event);
        }
        Ok(self.fold.finish().map(|record| Record { damaged_lines: self.damaged, ..record }))
    }

    fn parse(&self, path: &Path, line: &[u8], number: u64) -> Result<Option<Event>, ReadError> {
        let line = match self.part {
            Part::Figures if kind_of(line) == b"interval" => without_histograms(line, |_| false),
            Part::Whole | Part::Thinned | Part::Figures => Cow::Borrowed(line),
            // Decoding the others is three quarters of the work of reading a head, and nobody asks a head for them.
            Part::Head => without_histograms(line, |before| before.ends_with("\"response\":")),
        };
        parse(path, &line, &self.budget).map_err(|error| match error {
            ReadError::Content { path, source } if number > 1 => ReadError::Event { path, number, source },
            error => error,
        })
    }
}

/// The line without its histograms, except for those to `keep`, by the text before the distribution.
///
/// No text of a user is mistaken for one: within a JSON string, quotes are escaped.
fn without_histograms(line: &[u8], keep: impl Fn(&str) -> bool) -> Cow<'_, [u8]> {
    const KEY: &str = "\"histogram\":\"";
    let Ok(text) = std::str::from_utf8(line) else { return Cow::Borrowed(line) };
    let (mut kept, mut from, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find(KEY) {
        let begin = at + found + KEY.len();
        let Some(length) = text[begin..].find('"') else { break };
        let end = begin + length + 1;
        // The figures of a distribution before its histogram are numbers.
        let object = text[..at + found].rfind('{').unwrap_or(0);
        if !keep(&text[..object]) {
            kept += &text[from..begin - 1];
            kept += "null";
            from = end;
        }
        at = end;
    }
    match from {
        0 => Cow::Borrowed(line),
        _ => Cow::Owned((kept + &text[from..]).into_bytes()),
    }
}

/// Whether this may be an event of a kind that was added later: an object of one field, whose name is a word.
fn may_be_event(line: &[u8]) -> bool {
    type Fields<'a> = BTreeMap<Cow<'a, str>, serde::de::IgnoredAny>;
    let is_word = |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    serde_json::from_slice::<Fields>(line)
        .is_ok_and(|fields| fields.len() == 1 && fields.keys().all(|name| is_word(name)))
}

/// The name of the event.
fn kind_of(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b'"').nth(1).unwrap_or_default()
}

impl Event {
    /// As a line of text, without its end.
    pub fn line(&self) -> String {
        let line = public_line(self).expect("events become JSON");
        String::from_utf8(line).expect("JSON is UTF-8")
    }

    /// The event of such a line; `None` if it is not one, or of a kind that was added later.
    pub fn of_line(line: &str) -> Option<Event> {
        parse(Path::new(""), line.as_bytes(), &Budget::new(Limits::of(0).values)).ok().flatten()
    }
}

/// `None`: an event of a kind that was added later.
fn parse(path: &Path, line: &[u8], budget: &Budget) -> Result<Option<Event>, ReadError> {
    const KINDS: [&[u8]; 13] = [
        b"started",
        b"connected",
        b"stage_started",
        b"interval",
        b"readings",
        b"so_far",
        b"stage_ended",
        b"ended",
        b"tagged",
        b"noted",
        b"connecting",
        b"notice",
        b"exited",
    ];
    #[derive(serde::Deserialize)]
    struct StreamHead {
        started: StartedHead,
    }
    #[derive(serde::Deserialize)]
    struct StartedHead {
        format: u64,
        tool: Tool,
    }
    let refused = |source| ReadError::Content { path: path.to_owned(), source };
    let kind = kind_of(line);
    if kind == KINDS[0] {
        // Format and writer are readable even if the rest is not.
        let StreamHead { started } = serde_json::from_slice(line).map_err(refused)?;
        if started.format != u64::from(FORMAT) {
            let StartedHead { format, tool } = started;
            return Err(ReadError::Format { path: path.to_owned(), format, tool });
        }
    }
    match KINDS.contains(&kind) {
        true => budget.read(line).map(Some).map_err(refused),
        false => Ok(None),
    }
}

/// A record that is being written.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// A device or a pipe, which gets the whole record at the end: its reader must not be able to stop the run.
    Device(File),
    /// A file that grows.
    Grows(File, Box<WrittenSoFar>),
}

impl RecordFile {
    /// Creates the file of a run that starts.
    pub fn begin(path: &Path, record: &Record, existing: Existing) -> Result<RecordFile, WriteError> {
        let failed = |source| WriteError::Io { path: path.to_owned(), source };
        if disk::is_special(path) {
            let file = File::options().append(true).open(path).map_err(failed)?;
            return Ok(RecordFile { path: path.to_owned(), sink: Sink::Device(file) });
        }
        disk::may_create(path, existing)?;
        let (events, known) = WrittenSoFar::begin(record, Moment::Underway);
        let bytes = frames(&events).map_err(failed)?;
        let file = match existing {
            Existing::Keep => disk::persist_new(disk::aside(path, path, &bytes)?, path)?,
            Existing::Replace => {
                let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
                disk::aside(path, &target, &bytes)?.persist(&target).map_err(|error| failed(error.error))?
            }
        };
        Ok(RecordFile::grows(path.to_owned(), file, known))
    }

    /// Begins a record in `folder`, with a new name chosen as by `Record::write_new`.
    pub fn begin_new(folder: &Path, record: &Record) -> Result<RecordFile, WriteError> {
        let (events, known) = WrittenSoFar::begin(record, Moment::Underway);
        let (path, file) = disk::persist_numbered(folder, record, |path| {
            frames(&events).map_err(|source| WriteError::Io { path: path.to_owned(), source })
        })?;
        Ok(RecordFile::grows(path, file, known))
    }

    fn grows(path: PathBuf, file: File, known: WrittenSoFar) -> RecordFile {
        // Where locks are not supported, nobody asks for one.
        let _ = file.try_lock();
        RecordFile { path, sink: Sink::Grows(file, Box::new(known)) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends what `record` has more than the file. If that fails, the file stays as it was, and the next call tries
    /// again.
    pub fn append(&mut self, record: &Record, moment: Moment) -> Result<(), WriteError> {
        let Sink::Grows(file, known) = &mut self.sink else { return Ok(()) };
        let failed = |source| WriteError::Io { path: self.path.clone(), source };
        let (events, now) = known.since(record, moment);
        append(file, &frames(&events).map_err(failed)?).map_err(failed)?;
        **known = now;
        Ok(())
    }

    /// The record is about to leave out the first samples of a scope, which are in the file. False: they are not.
    pub fn let_go(&mut self, scope: usize, samples: usize) -> bool {
        let Sink::Grows(_, known) = &mut self.sink else { return false };
        let known = known.telemetry.as_mut().and_then(|telemetry| telemetry.scopes.get_mut(scope));
        let known = known.filter(|known| known.samples() >= samples);
        known.map(|known| known.let_go(samples)).is_some()
    }

    /// The record has all samples again.
    pub fn take_back(&mut self) {
        if let Sink::Grows(_, known) = &mut self.sink {
            known.telemetry.iter_mut().flat_map(|telemetry| &mut telemetry.scopes).for_each(KnownScope::take_back);
        }
    }

    /// Appends events of a record that `replace` will write anew: those who follow the file see them. A device gets
    /// none.
    pub fn follow_up(&mut self, events: &[Event]) -> Result<(), WriteError> {
        let Sink::Grows(file, _) = &mut self.sink else { return Ok(()) };
        let failed = |source| WriteError::Io { path: self.path.clone(), source };
        append(file, &frames(events).map_err(failed)?).map_err(failed)
    }

    /// The run is over, and only now its record is known: it takes the file's place. Those who follow the file learn
    /// that the run has ended.
    pub fn replace(mut self, record: &Record) -> Result<PathBuf, WriteError> {
        if matches!(self.sink, Sink::Device(_)) || !self.is_in_place() {
            return self.finish(record);
        }
        if let Err(error) = record.write(&self.path) {
            self.say_why_it_ends(record, &error);
            return Err(error);
        }
        let _ = self.follow_up(&[Event::Ended(Box::new(Ended::of(record.status, record.failure.clone(), record)))]);
        Ok(self.path)
    }

    /// The run is over: the rest of the record, safely on disk. A file whose name ends in `.json` becomes one JSON
    /// text.
    pub fn finish(mut self, record: &Record) -> Result<PathBuf, WriteError> {
        let path = self.path.clone();
        let failed = |source| WriteError::Io { path: path.clone(), source };
        if let Sink::Device(mut file) = self.sink {
            let bytes = whole(record).map_err(failed)?;
            file.write_all(&bytes).and_then(|()| file.flush()).map_err(failed)?;
            return Ok(path);
        }
        if fs::symlink_metadata(&path).is_err() {
            // Somebody has deleted it.
            return record.create(&path, Existing::Keep).map(|()| path);
        }
        if !self.is_in_place() {
            return Err(WriteError::Exists { path });
        }
        if let Err(error) = self.append(record, Moment::StageEnd) {
            self.say_why_it_ends(record, &error);
            return Err(error);
        }
        let Sink::Grows(file, _) = &mut self.sink else { unreachable!("devices were handled above") };
        if !disk::is_plain(&path) {
            add_copy(file, Some(record));
        }
        file.sync_all().map_err(failed)?;
        match disk::is_plain(&path) {
            true => record.write(&path).map(|()| path),
            false => Ok(path),
        }
    }

    /// Removes it: nothing was measured.
    pub fn discard(self) {
        if let (Sink::Grows(..), true) = (&self.sink, self.is_in_place()) {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// A few bytes often fit where all the rest did not.
    fn say_why_it_ends(&mut self, record: &Record, error: &WriteError) {
        let Sink::Grows(file, _) = &mut self.sink else { return };
        let source = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
        let failure = Some(format!("the end of this record could not be written{source}"));
        let ended = Event::Ended(Box::new(Ended::of(Status::Failed, failure, record)));
        let _ = frames(&[ended]).and_then(|bytes| append(file, &bytes));
    }

    /// Whether the path still names our file.
    fn is_in_place(&self) -> bool {
        let Sink::Grows(file, _) = &self.sink else { return true };
        let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        fs::metadata(&self.path).ok().map(id) == file.metadata().ok().map(id)
    }
}

/// Appends whole frames, or nothing.
fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let length = file.seek(SeekFrom::End(0))?;
    file.write_all(bytes).inspect_err(|_| _ = file.set_len(length))
}

/// Appends the copy of a long record that is over. Without it, the record is as good, only slower to compare.
fn add_copy(file: &mut File, known: Option<&Record>) {
    let _ = copy_of(file, known).and_then(|copy| append(file, &copy.unwrap_or_default()));
}

/// Changes what is known of a finished record, such as its tags: one event more. Measurements stay as they are.
pub(crate) fn amend(path: &Path, change: impl FnOnce(&mut Record)) -> Result<(), AmendError> {
    let failed = |source| WriteError::Io { path: path.to_owned(), source };
    let mut file = File::options().read(true).write(true).open(path).map_err(failed)?;
    if matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)) {
        return Err(AmendError::Busy);
    }
    let bytes = file.metadata().map_err(failed)?.len();
    let ReadStream { mut record, whole_bytes, is_damaged, is_compressed } =
        read(&mut Source::of(path, &mut file, bytes), Part::Figures)?;
    if is_damaged {
        return Err(AmendError::Damaged);
    }
    let copied = read_copy(path, Part::Thinned);
    let known = WrittenSoFar::of(&record);
    change(&mut record);
    let events = known.since(&record, Moment::StageEnd).0;
    // An incomplete frame of a killed run, or a copy that lacks the change.
    file.set_len(whole_bytes).map_err(failed)?;
    let bytes = match is_compressed {
        true => frames(&events).map_err(failed)?,
        false => events.iter().map(|event| event.line() + "\n").collect::<String>().into(),
    };
    append(&mut file, &bytes).map_err(failed)?;
    add_copy(&mut file, copied.as_ref());
    Ok(file.sync_all().map_err(failed)?)
}

/// A stream could not be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AmendError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("its run still goes on")]
    Busy,
    #[error("it is damaged")]
    Damaged,
}

/// Reads a record while it grows.
#[derive(Debug)]
pub struct Follow {
    path: PathBuf,
    file: File,
    /// Length of the frames that were read.
    offset: u64,
}

impl Follow {
    /// From the beginning of the record at `path`.
    pub fn open(path: &Path) -> Result<Follow, ReadError> {
        let file = disk::open_file(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        Ok(Follow { path: path.to_owned(), file, offset: 0 })
    }

    /// The events since the last call; none if no frame was completed.
    pub fn news(&mut self) -> Result<Vec<Event>, ReadError> {
        let failed = |source| ReadError::Io { path: self.path.clone(), source };
        let (mut events, mut bytes, mut at) = (Vec::new(), Vec::new(), 0);
        let mut frames = Frames::default();
        let bytes_now = self.file.metadata().map_or(0, |found| found.len());
        let budget = Budget::new(Limits::of(bytes_now).values);
        // Part of a frame is read again: a writer that could not complete it takes it back.
        self.file.seek(SeekFrom::Start(self.offset)).map_err(failed)?;
        self.file.read_to_end(&mut bytes).map_err(failed)?;
        // A copy at the end has nothing new.
        while at < bytes.len() && !copy::may_be_skippable(&bytes[at..]) {
            let (text, length) = match frames.next(&bytes[at..], DECOMPRESSED_BYTES_MAX) {
                Ok(frame) => frame,
                Err(FrameEnd::Cut) => break,
                Err(FrameEnd::TooLarge) => {
                    return Err(ReadError::TooLarge { path: self.path.clone(), limit_bytes: DECOMPRESSED_BYTES_MAX });
                }
                Err(FrameEnd::Damaged) => return Err(ReadError::NotARecord { path: self.path.clone() }),
            };
            for line in lines_of(text) {
                events.extend(parse(&self.path, line, &budget)?);
            }
            at += length;
        }
        self.offset += at as u64;
        Ok(events)
    }
}
