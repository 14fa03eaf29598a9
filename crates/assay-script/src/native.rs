//! Rust functions called by the Lua prelude, by address through LuaJIT's FFI.
//!
//! None of these functions touches the `lua_State`, raises a Lua error or panics: a compiled trace calls them like any
//! C function. They get the state's `Shared` block and find the running session's part in it; a result code tells the
//! prelude, which raises errors itself. Pointers to text are valid until the next call.

use std::ffi::{c_char, c_int, c_void};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::slice;
use std::sync::{Arc, LazyLock};

use assay_isolation::{STAMP_MAX, STAMP_SHIFT, Version, log};
use assay_seam::{Cell, Rows};

use crate::front::{ScriptFront, Severity};
use crate::library::Library;
use crate::plain::{PlainRun, Program};
use crate::random::{Distribution, Rng, Tausworthe, Zipf, permute};

/// Shared between a state's Lua code and Rust. The first three fields are `struct assay_shared` of `core.lua`.
#[repr(C)]
pub(crate) struct Shared {
    /// Index in the prelude's `sessions` of the running session: slot + 1; 0: none.
    pub(crate) session: u32,
    length: u32,
    text: *const u8,
    /// The part of the session that runs or ran last; `idle` if there is none. Never null.
    pub(crate) native: *mut Native,
    /// For finalizers of a script that run while no session does.
    idle: Box<Native>,
    pub(crate) distribution: Distribution,
    pub(crate) zipf: Zipf,
    /// Sessions of the whole run. >= 1
    pub(crate) sessions: u32,
    /// Seeds the permutation behind `unique()`.
    pub(crate) unique_seed: u32,
    /// Names of transaction types.
    pub(crate) types: Vec<String>,
    /// Names of counters.
    pub(crate) counters: Vec<String>,
    /// Users served in turn by the sessions of the state, by number; those served by other states are unused.
    pub(crate) terminals: Vec<Terminal>,
    /// Keys that were acknowledged (`assay.acknowledge`), not taken yet.
    pub(crate) acknowledged: Vec<Key>,
    /// Whether a session of the state has ever left marks.
    pub(crate) marked: bool,
    /// Whether a session of the state has ever noted operations for a history.
    pub(crate) has_history: bool,
    pub(crate) library: Arc<Library>,
    front: Option<Arc<dyn ScriptFront>>,
    /// What sessions counted since the engine's last call.
    pub(crate) counted: [u64; 8],
    /// Programs without Lua, by number.
    programs: Vec<Rc<Program>>,
    /// Start of a session's share of the counter behind `unique()`.
    pub(crate) unique_from: u32,
    scratch: Vec<u8>,
}

/// Sessions outside the run draw their unique numbers from the other half.
const APART: u32 = 1 << 31;

/// A session's part outside Lua.
pub(crate) struct Native {
    pub(crate) rng: Rng,
    /// Its place in a program without Lua.
    pub(crate) plain: Option<PlainRun>,
    /// A saved state of `rng`, to repeat its numbers.
    kept: Option<Rng>,
    /// For `math.random`, separate so that scripts using both are reproducible.
    math_rng: Rng,
    /// LuaJIT's own generator, for a front that wants it.
    tausworthe: Tausworthe,
    /// The next member of this session's share of the counter behind `unique()`.
    unique_next: u32,
    pub(crate) counters: [u64; 8],
    pub(crate) marks: Marks,
    /// Operations of the current attempt of a transaction, in the form of `assay_isolation::log`.
    pub(crate) history: Vec<u64>,
    /// The next value that it appends or writes: no other session has it.
    history_value: u64,
    /// The terminal it is serving.
    pub(crate) terminal: Option<u32>,
    /// By connection number.
    pub(crate) results: Vec<LiveResult>,
    /// By loader number. Boxed: Lua holds their addresses.
    #[expect(clippy::vec_box, reason = "Lua holds the addresses of the rows")]
    pub(crate) loaders: Vec<Box<Rows>>,
}

/// A key that a server acknowledged, as the script's own numbers; unused ones are not numbers.
pub type Key = [f64; 5];

/// A user without a session of its own: what is kept between its transactions outside Lua.
pub(crate) struct Terminal {
    rng: Rng,
    math_rng: Rng,
    /// `assay.think` since it was last served, in seconds.
    pub(crate) think: f64,
    /// Whether the transaction is being retried: its earlier think time counts unless the script sets it again.
    pub(crate) again: bool,
}

impl Terminal {
    /// Its random numbers are its own, whichever session serves it.
    pub(crate) fn new(seed: u64, number: u32) -> Terminal {
        let stream = u64::from(number) | 1 << 33;
        Terminal { rng: Rng::new(seed, stream), math_rng: Rng::new(seed, stream | 1 << 32), think: 0.0, again: false }
    }
}

/// The session serves terminal `number`, or none, from now on. Terminals that do not exist are ignored.
pub(crate) fn serve(shared: &mut Shared, native: &mut Native, number: Option<u32>) {
    for turn in [native.terminal, number] {
        if let Some(terminal) = turn.and_then(|number| shared.terminals.get_mut(number as usize)) {
            std::mem::swap(&mut terminal.rng, &mut native.rng);
            std::mem::swap(&mut terminal.math_rng, &mut native.math_rng);
        }
    }
    native.terminal = number;
}

/// What a script noted about its current transaction, counted if that succeeds.
#[derive(Debug, Default)]
pub struct Marks {
    /// `assay.rolled_back()`: it ends rolled back, as intended.
    pub rolled_back: bool,
    /// The front's Lua has given it up: it counts as failed.
    pub failed: bool,
    /// The front's Lua does not even start it: it counts as dropped.
    pub dropped: bool,
    /// `assay.count`, in the order of `LuaState::counter_names`; may be shorter.
    pub counts: Vec<u64>,
    /// Its line in the journal (`assay.journal`), NaN for missing values; empty: none.
    pub line: Vec<f64>,
}

impl Marks {
    /// Clears them, keeps the memory.
    pub fn clear(&mut self) {
        (self.rolled_back, self.failed, self.dropped) = (false, false, false);
        self.counts.fill(0);
        self.line.clear();
    }
}

/// A connection's result.
#[derive(Debug, Default)]
pub(crate) struct LiveResult {
    /// Counts statements; a result object of an older one is stale.
    pub(crate) serial: u32,
    pub(crate) rows: Option<Box<Rows>>,
    /// `rs:free()` was called.
    freed: bool,
}

impl Shared {
    pub(crate) fn new(
        library: &Arc<Library>,
        name: &str,
        seed: u64,
        sessions: u32,
        distribution: Distribution,
    ) -> Shared {
        let mut idle = Box::new(Native::new(seed, u32::MAX, 0));
        Shared {
            session: 0,
            length: 0,
            text: std::ptr::null(),
            native: &raw mut *idle,
            idle,
            distribution,
            zipf: Zipf::new(distribution.zipfian_exponent),
            sessions: sessions.max(1),
            unique_seed: Rng::new(seed, u64::MAX).next() as u32,
            types: vec![name.to_owned()],
            counters: Vec::new(),
            terminals: Vec::new(),
            acknowledged: Vec::new(),
            marked: false,
            has_history: false,
            library: Arc::clone(library),
            front: None,
            counted: [0; 8],
            programs: Vec::new(),
            unique_from: 0,
            scratch: Vec::new(),
        }
    }

    /// `apart`: whether the sessions are outside the run: the main one, reports.
    pub(crate) fn with_front(self, front: Option<Arc<dyn ScriptFront>>, apart: bool) -> Shared {
        Shared { front, unique_from: if apart { APART } else { 0 }, ..self }
    }

    /// No session runs, and the one that ran last may go away.
    pub(crate) fn rest(&mut self) {
        self.session = 0;
        self.native = &raw mut *self.idle;
    }

    fn give(&mut self, text: *const u8, length: usize) {
        self.text = text;
        self.length = length as u32;
    }
}

impl Native {
    pub(crate) fn new(seed: u64, number: u32, unique_from: u32) -> Native {
        Native {
            rng: Rng::new(seed, u64::from(number)),
            plain: None,
            kept: None,
            math_rng: Rng::new(seed, u64::from(number) | 1 << 32),
            tausworthe: Tausworthe::new(0.0),
            unique_next: number.wrapping_add(unique_from),
            counters: [0; 8],
            marks: Marks::default(),
            history: Vec::new(),
            history_value: (stamp(seed) << STAMP_SHIFT) + u64::from(number) + 1,
            terminal: None,
            results: Vec::new(),
            loaders: Vec::new(),
        }
    }

    /// The entry of connection `number`, created if it is new.
    pub(crate) fn live(&mut self, number: u32) -> &mut LiveResult {
        let index = number as usize;
        if index >= self.results.len() {
            self.results.resize_with(index + 1, LiveResult::default);
        }
        &mut self.results[index]
    }

    fn result(&self, connection: u32, serial: u32) -> Option<&Rows> {
        let live = self.results.get(connection as usize)?;
        live.rows.as_deref().filter(|_| live.serial == serial && !live.freed)
    }
}

impl LiveResult {
    /// A statement begins: the previous result is stale. Returns its rows to the pool.
    pub(crate) fn begin(&mut self) -> Option<Box<Rows>> {
        self.serial = self.serial.wrapping_add(1);
        self.freed = false;
        self.rows.take()
    }
}

/// The state's block and the running session's part.
///
/// # Safety
/// `shared` is the pointer given to the prelude at the state's birth, which lives as long as the state; the prelude
/// keeps it. `native` is the running session's or `idle` (`LuaState::remove` calls `rest`), and nothing else refers to
/// either meanwhile (`LuaState::advance` keeps no reference across `lua_resume`).
unsafe fn parts<'a>(shared: *mut Shared) -> (&'a mut Shared, &'a mut Native) {
    // SAFETY: as above; the two do not overlap.
    unsafe { (&mut *shared, &mut *(*shared).native) }
}

/// Every function the prelude binds, by name.
pub(crate) const FUNCTIONS: &[(&str, *const c_void)] = &[
    ("random_default", random_default as *const c_void),
    ("random_uniform", random_uniform as *const c_void),
    ("random_gaussian", random_gaussian as *const c_void),
    ("random_special", random_special as *const c_void),
    ("random_pareto", random_pareto as *const c_void),
    ("random_zipfian", random_zipfian as *const c_void),
    ("random_unique", random_unique as *const c_void),
    ("random_uint64", random_uint64 as *const c_void),
    ("random_double", random_double as *const c_void),
    ("random_fill", random_fill as *const c_void),
    ("random_varied", random_varied as *const c_void),
    ("random_alphanumeric", random_alphanumeric as *const c_void),
    ("random_seed", random_seed as *const c_void),
    ("math_random", math_random as *const c_void),
    ("tausworthe_random", tausworthe_random as *const c_void),
    ("math_seed", math_seed as *const c_void),
    ("front_print", front_print as *const c_void),
    ("front_message", front_message as *const c_void),
    ("front_database", front_database as *const c_void),
    ("front_exit", front_exit as *const c_void),
    ("counter_add", counter_add as *const c_void),
    ("counter_value", counter_value as *const c_void),
    ("module_text", module_text as *const c_void),
    ("stand_in", stand_in as *const c_void),
    ("installed_text", installed_text as *const c_void),
    ("type_index", type_index as *const c_void),
    ("count_index", count_index as *const c_void),
    ("count_add", count_add as *const c_void),
    ("mark_rolled_back", mark_rolled_back as *const c_void),
    ("mark_ending", mark_ending as *const c_void),
    ("random_keep", random_keep as *const c_void),
    ("random_again", random_again as *const c_void),
    ("front_now", front_now as *const c_void),
    ("front_figures", front_figures as *const c_void),
    ("plain_new", plain_new as *const c_void),
    ("plain_begin", plain_begin as *const c_void),
    ("plain_set", plain_set as *const c_void),
    ("plain_bind", plain_bind as *const c_void),
    ("plain_value", plain_value as *const c_void),
    ("plain_left", plain_left as *const c_void),
    ("plain_take_back", plain_take_back as *const c_void),
    ("plain_keep", plain_keep as *const c_void),
    ("result_label", result_label as *const c_void),
    ("mark_line", mark_line as *const c_void),
    ("acknowledge", acknowledge as *const c_void),
    ("history_append", history_append as *const c_void),
    ("history_list", history_list as *const c_void),
    ("history_write", history_write as *const c_void),
    ("history_replaced", history_replaced as *const c_void),
    ("history_read", history_read as *const c_void),
    ("history_counter", history_counter as *const c_void),
    ("history_count", history_count as *const c_void),
    ("history_total", history_total as *const c_void),
    ("terminal_number", terminal_number as *const c_void),
    ("terminal_serve", terminal_serve as *const c_void),
    ("terminal_think", terminal_think as *const c_void),
    ("result_cell", result_cell as *const c_void),
    ("result_free", result_free as *const c_void),
    ("result_rows", result_rows as *const c_void),
    ("result_columns", result_columns as *const c_void),
    ("rows_new", rows_new as *const c_void),
    ("rows_address", rows_address as *const c_void),
    ("rows_null", rows_null as *const c_void),
    ("rows_number", rows_number as *const c_void),
    ("rows_int64", rows_int64 as *const c_void),
    ("rows_text", rows_text as *const c_void),
    ("rows_random_text", rows_random_text as *const c_void),
    ("rows_filled_text", rows_filled_text as *const c_void),
    ("rows_size", rows_size as *const c_void),
    ("rows_clear", rows_clear as *const c_void),
];

unsafe extern "C" fn random_default(shared: *mut Shared, low: u32, high: u32) -> u32 {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    native.rng.draw(low, high, &shared.distribution, &mut shared.zipf)
}

unsafe extern "C" fn random_uniform(shared: *mut Shared, low: u32, high: u32) -> u32 {
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.rng.uniform(low, high)
}

unsafe extern "C" fn random_gaussian(shared: *mut Shared, low: u32, high: u32) -> u32 {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    native.rng.gaussian(low, high, shared.distribution.iterations)
}

unsafe extern "C" fn random_special(shared: *mut Shared, low: u32, high: u32) -> u32 {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    native.rng.special(low, high, &shared.distribution)
}

unsafe extern "C" fn random_pareto(shared: *mut Shared, low: u32, high: u32) -> u32 {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    native.rng.pareto(low, high, shared.distribution.pareto_h)
}

unsafe extern "C" fn random_zipfian(shared: *mut Shared, low: u32, high: u32) -> u32 {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    native.rng.zipfian(low, high, &mut shared.zipf)
}

/// Never the same in a run until 2³² were drawn: each session counts in steps of the number of sessions.
unsafe extern "C" fn random_unique(shared: *mut Shared) -> u32 {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    let count = native.unique_next;
    native.unique_next = count.wrapping_add(shared.sessions);
    permute(count, shared.unique_seed)
}

unsafe extern "C" fn random_uint64(shared: *mut Shared) -> u64 {
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.rng.next()
}

unsafe extern "C" fn random_double(shared: *mut Shared) -> f64 {
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.rng.double()
}

/// `target` has room for `length` bytes, as `format` has.
unsafe extern "C" fn random_fill(shared: *mut Shared, format: *const u8, length: usize, target: *mut u8) {
    // SAFETY: see `parts`; the prelude gives a Lua string and a buffer at least as long.
    let (format, target) =
        unsafe { (slice::from_raw_parts(format, length), slice::from_raw_parts_mut(target, length)) };
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.rng.fill(format, target);
}

/// `target` has room for `high` bytes; `low <= high`.
unsafe extern "C" fn random_varied(shared: *mut Shared, low: u32, high: u32, target: *mut u8) -> u32 {
    // SAFETY: see `parts`; the prelude has reserved `high` bytes.
    let target = unsafe { slice::from_raw_parts_mut(target, high as usize) };
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.rng.varied(low.min(high), high, target) as u32
}

/// `target` has room for `high` bytes; `low <= high`.
unsafe extern "C" fn random_alphanumeric(shared: *mut Shared, low: u32, high: u32, target: *mut u8) -> u32 {
    // SAFETY: see `parts`; the prelude has reserved `high` bytes.
    let target = unsafe { slice::from_raw_parts_mut(target, high as usize) };
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.rng.alphanumeric(low.min(high), high, target) as u32
}

/// From now on the session, or the terminal it serves, draws from the stream of this text.
unsafe extern "C" fn random_seed(shared: *mut Shared, text: *const u8, length: usize) {
    // SAFETY: see `parts`; the text is a Lua string.
    let (native, text) = unsafe { (parts(shared).1, slice::from_raw_parts(text, length)) };
    native.rng = Rng::of_text(text, 0);
    native.math_rng = Rng::of_text(text, 1);
}

/// Random numbers from here on can be drawn again, by `random_again`.
unsafe extern "C" fn random_keep(shared: *mut Shared) {
    // SAFETY: see `parts`.
    let native = unsafe { parts(shared) }.1;
    native.kept = Some(native.rng.clone());
}

unsafe extern "C" fn random_again(shared: *mut Shared) {
    // SAFETY: see `parts`.
    let native = unsafe { parts(shared) }.1;
    if let Some(kept) = &native.kept {
        native.rng = kept.clone();
    }
}

unsafe extern "C" fn math_random(shared: *mut Shared) -> f64 {
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.math_rng.double()
}

unsafe extern "C" fn tausworthe_random(shared: *mut Shared) -> f64 {
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.tausworthe.double()
}

unsafe extern "C" fn math_seed(shared: *mut Shared, seed: f64) {
    // SAFETY: see `parts`.
    let native = unsafe { parts(shared) }.1;
    (native.math_rng, native.tausworthe) = (Rng::new(seed.to_bits(), 0), Tausworthe::new(seed));
}

unsafe extern "C" fn front_print(shared: *mut Shared, text: *const u8, length: usize) {
    // SAFETY: see `parts`; the text is a Lua string.
    let (shared, text) = unsafe { (parts(shared).0, slice::from_raw_parts(text, length)) };
    if let Some(front) = &shared.front {
        front.print(text);
    }
}

unsafe extern "C" fn front_message(shared: *mut Shared, severity: u32, text: *const u8, length: usize) {
    // SAFETY: see `parts`; the text is a Lua string.
    let (shared, text) = unsafe { (parts(shared).0, slice::from_raw_parts(text, length)) };
    if let (Some(front), Some(severity)) = (&shared.front, Severity::ALL.get(severity as usize)) {
        front.message(*severity, &String::from_utf8_lossy(text));
    }
}

unsafe extern "C" fn front_now(shared: *mut Shared) -> f64 {
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.0.front.as_ref().map_or(0.0, |front| front.now())
}

/// `numbers`: `length` of them.
unsafe extern "C" fn front_figures(shared: *mut Shared, what: u32, numbers: *const f64, length: usize) {
    // SAFETY: see `parts`; the front's Lua has an array of as many numbers.
    let (shared, numbers) = unsafe { (parts(shared).0, slice::from_raw_parts(numbers, length)) };
    if let Some(front) = &shared.front {
        front.figures(what, numbers);
    }
}

unsafe extern "C" fn front_database(shared: *mut Shared) {
    // SAFETY: see `parts`.
    if let Some(front) = unsafe { parts(shared) }.0.front.as_ref() {
        front.database();
    }
}

unsafe extern "C" fn front_exit(shared: *mut Shared, code: c_int) {
    // SAFETY: see `parts`.
    if let Some(front) = unsafe { parts(shared) }.0.front.as_ref() {
        front.exit(code);
    }
}

/// The number of the program with this text, or -1 where it is none.
unsafe extern "C" fn plain_new(shared: *mut Shared, text: *const u8, length: usize) -> c_int {
    // SAFETY: see `parts`; the text is a Lua string.
    let (shared, text) = unsafe { (parts(shared).0, slice::from_raw_parts(text, length)) };
    let Some(program) = str::from_utf8(text).ok().and_then(Program::parse) else { return -1 };
    shared.programs.push(Rc::new(program));
    shared.programs.len() as c_int - 1
}

/// The running session is at the beginning of this program, which exists.
unsafe extern "C" fn plain_begin(shared: *mut Shared, program: c_int) {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    let program = usize::try_from(program).ok().and_then(|program| shared.programs.get(program));
    native.plain = program.map(PlainRun::new);
}

unsafe extern "C" fn plain_set(shared: *mut Shared, variable: u32, value: f64) {
    // SAFETY: see `parts`.
    if let Some(run) = &mut unsafe { parts(shared) }.1.plain {
        run.set(variable as usize, value as i64);
    }
}

unsafe extern "C" fn plain_bind(shared: *mut Shared, command: u32, statement: u32) {
    // SAFETY: see `parts`.
    if let Some(run) = &mut unsafe { parts(shared) }.1.plain {
        run.bind(command as usize, statement);
    }
}

unsafe extern "C" fn plain_value(shared: *mut Shared, variable: u32) -> i64 {
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.plain.as_ref().map_or(0, |run| run.value(variable as usize))
}

/// Transactions that the session has not begun.
unsafe extern "C" fn plain_left(shared: *mut Shared) -> f64 {
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.plain.as_ref().map_or(0.0, |run| run.left as f64)
}

/// The random numbers of the transaction that the session's program is in will be drawn again.
unsafe extern "C" fn plain_take_back(shared: *mut Shared) {
    // SAFETY: see `parts`.
    let native = unsafe { parts(shared) }.1;
    if let Some(run) = &native.plain {
        run.take_back(&mut native.rng);
    }
}

/// The same, by `random_again`; until then, the numbers go on.
unsafe extern "C" fn plain_keep(shared: *mut Shared) {
    // SAFETY: see `parts`.
    let native = unsafe { parts(shared) }.1;
    if let Some(run) = &native.plain {
        let mut kept = native.rng.clone();
        run.take_back(&mut kept);
        native.kept = Some(kept);
    }
}

unsafe extern "C" fn counter_add(shared: *mut Shared, kind: c_int, amount: u64) {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    let Ok(kind) = usize::try_from(kind) else { return };
    for counters in [&mut native.counters, &mut shared.counted] {
        if let Some(counter) = counters.get_mut(kind) {
            *counter = counter.wrapping_add(amount);
        }
    }
}

unsafe extern "C" fn counter_value(shared: *mut Shared, kind: c_int) -> u64 {
    // SAFETY: see `parts`.
    let (_, native) = unsafe { parts(shared) };
    usize::try_from(kind).ok().and_then(|kind| native.counters.get(kind)).copied().unwrap_or(0)
}

/// 1 and the text of the built-in module, or 0.
unsafe extern "C" fn module_text(shared: *mut Shared, name: *const u8, length: usize) -> c_int {
    // SAFETY: see `parts`; the name is a Lua string.
    let (shared, name) = unsafe { (parts(shared).0, slice::from_raw_parts(name, length)) };
    let Some(text) = std::str::from_utf8(name).ok().and_then(|name| shared.library.module(name)) else { return 0 };
    shared.give(text.as_ptr(), text.len());
    1
}

/// 1 and the text of the built-in that replaces the file at this path, or 0.
unsafe extern "C" fn stand_in(shared: *mut Shared, path: *const u8, length: usize) -> c_int {
    // SAFETY: see `parts`; the path is a Lua string.
    let (shared, path) = unsafe { (parts(shared).0, slice::from_raw_parts(path, length)) };
    let module = std::str::from_utf8(path).ok().and_then(|path| shared.library.stand_in(path));
    let Some((_, text)) = module else { return 0 };
    shared.give(text.as_ptr(), text.len());
    1
}

/// 1 and the text of the built-in that was once a file at this path, or 0.
unsafe extern "C" fn installed_text(shared: *mut Shared, path: *const u8, length: usize) -> c_int {
    // SAFETY: see `parts`; the path is a Lua string.
    let (shared, path) = unsafe { (parts(shared).0, slice::from_raw_parts(path, length)) };
    let Some(text) = std::str::from_utf8(path).ok().and_then(|path| shared.library.installed(path)) else { return 0 };
    shared.give(text.as_ptr(), text.len());
    1
}

/// The number of a transaction type, a new one if its name is new.
unsafe extern "C" fn type_index(shared: *mut Shared, name: *const u8, length: usize) -> u32 {
    // SAFETY: see `parts`; the name is a Lua string.
    let (shared, name) = unsafe { (parts(shared).0, slice::from_raw_parts(name, length)) };
    index_of(name, &mut shared.types)
}

/// The number of a counter, a new one if its name is new.
unsafe extern "C" fn count_index(shared: *mut Shared, name: *const u8, length: usize) -> u32 {
    // SAFETY: see `parts`; the name is a Lua string.
    let (shared, name) = unsafe { (parts(shared).0, slice::from_raw_parts(name, length)) };
    index_of(name, &mut shared.counters)
}

fn index_of(name: &[u8], names: &mut Vec<String>) -> u32 {
    let name = String::from_utf8_lossy(name);
    let index = names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name.into_owned());
        names.len() - 1
    });
    index as u32
}

/// Allocates only when the session uses a counter for the first time.
unsafe extern "C" fn count_add(shared: *mut Shared, counter: u32, amount: f64) {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    let counts = &mut native.marks.counts;
    if counts.len() <= counter as usize {
        counts.resize(shared.counters.len().max(counter as usize + 1), 0);
    }
    let count = &mut counts[counter as usize];
    *count = count.saturating_add(amount as u64);
    shared.marked = true;
}

unsafe extern "C" fn mark_rolled_back(shared: *mut Shared) {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    native.marks.rolled_back = true;
    shared.marked = true;
}

/// 2: the transaction fails; 3: it does not even start.
unsafe extern "C" fn mark_ending(shared: *mut Shared, ending: c_int) {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    (native.marks.failed, native.marks.dropped) = (ending == 2, ending == 3);
    shared.marked = true;
}

/// Its line in the journal: `length` numbers.
unsafe extern "C" fn mark_line(shared: *mut Shared, values: *const f64, length: usize) {
    // SAFETY: see `parts`; the prelude has an array of as many numbers.
    let ((shared, native), values) = unsafe { (parts(shared), slice::from_raw_parts(values, length)) };
    native.marks.line.clear();
    native.marks.line.extend_from_slice(values);
    shared.marked = true;
}

unsafe extern "C" fn acknowledge(shared: *mut Shared, a: f64, b: f64, c: f64, d: f64, e: f64) {
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.0.acknowledged.push([a, b, c, d, e]);
}

/// The session's part, which is about to note an operation.
///
/// # Safety
/// See `parts`.
unsafe fn history<'a>(shared: *mut Shared) -> &'a mut Native {
    // SAFETY: the caller's promise.
    let (shared, native) = unsafe { parts(shared) };
    shared.has_history = true;
    native
}

/// What the values of this run's history have in common, and those of other runs on the same tables do not: the same
/// seed in another process has another one.
fn stamp(seed: u64) -> u64 {
    static PROCESS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    1 + PROCESS.hash_one(seed) % STAMP_MAX
}

/// A value that no other session has, and this one only once.
fn next_value(native: &mut Native, sessions: u32) -> u64 {
    let value = native.history_value;
    native.history_value += u64::from(sessions);
    value
}

/// A value is about to be appended to a list: which.
unsafe extern "C" fn history_append(shared: *mut Shared, key: u32) -> f64 {
    // SAFETY: see `parts`.
    let (native, sessions) = unsafe { (history(shared), (*shared).sessions) };
    let value = next_value(native, sessions);
    log::append(&mut native.history, key, value);
    value as f64
}

/// A list was read: its elements in digits, separated by commas. Their number, or −1 if it is another text.
unsafe extern "C" fn history_list(shared: *mut Shared, key: u32, text: *const u8, length: usize) -> c_int {
    // SAFETY: see `parts`; the text is a Lua string.
    let (native, text) = unsafe { (history(shared), slice::from_raw_parts(text, length)) };
    let is_list = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b',');
    if !is_list {
        return -1;
    }
    let number = |digits: &[u8]| {
        let add = |number: u64, digit: &u8| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        digits.iter().fold(0, add)
    };
    let elements = text.split(|byte| *byte == b',').filter(|digits| !digits.is_empty());
    log::read_list(&mut native.history, key, elements.clone().map(number));
    elements.count() as c_int
}

/// A value is about to be written to a register: which.
unsafe extern "C" fn history_write(shared: *mut Shared, key: u32) -> f64 {
    // SAFETY: see `parts`.
    let (native, sessions) = unsafe { (history(shared), (*shared).sessions) };
    let value = next_value(native, sessions);
    log::write(&mut native.history, key, value);
    value as f64
}

/// The version before the last write.
unsafe extern "C" fn history_replaced(shared: *mut Shared, number: f64, value: f64) {
    // SAFETY: see `parts`.
    let native = unsafe { history(shared) };
    log::replaced(&mut native.history, Version { number: number as u64, value: value as u64 });
}

/// A version of a register was read.
unsafe extern "C" fn history_read(shared: *mut Shared, key: u32, number: f64, value: f64) {
    // SAFETY: see `parts`.
    let native = unsafe { history(shared) };
    log::read(&mut native.history, key, Version { number: number as u64, value: value as u64 });
}

/// A counter was read.
unsafe extern "C" fn history_counter(shared: *mut Shared, key: u32, number: f64) {
    // SAFETY: see `parts`.
    let native = unsafe { history(shared) };
    log::read(&mut native.history, key, Version::counted(number as u64));
}

/// One is added to a counter that had this value.
unsafe extern "C" fn history_count(shared: *mut Shared, key: u32, number: f64) {
    // SAFETY: see `parts`.
    let (native, sessions) = unsafe { (history(shared), (*shared).sessions) };
    let value = next_value(native, sessions);
    log::write(&mut native.history, key, value);
    log::replaced(&mut native.history, Version::counted(number as u64));
}

/// A sum was read that never changes.
unsafe extern "C" fn history_total(shared: *mut Shared, found: f64, expected: f64) {
    // SAFETY: see `parts`.
    let native = unsafe { history(shared) };
    log::total(&mut native.history, found as i64, expected as i64);
}

/// The terminal that the session serves, or −1.
unsafe extern "C" fn terminal_number(shared: *mut Shared) -> c_int {
    // SAFETY: see `parts`.
    unsafe { parts(shared) }.1.terminal.map_or(-1, |number| number as c_int)
}

/// −1 for none.
unsafe extern "C" fn terminal_serve(shared: *mut Shared, number: c_int) {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    serve(shared, native, u32::try_from(number).ok());
}

/// Returns the sum so far, which NaN leaves alone; 0 without a terminal.
unsafe extern "C" fn terminal_think(shared: *mut Shared, seconds: f64) -> f64 {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    if let Some(terminal) = native.terminal.and_then(|number| shared.terminals.get_mut(number as usize)) {
        if seconds.is_nan() {
            return terminal.think;
        }
        let before = if std::mem::take(&mut terminal.again) { 0.0 } else { terminal.think };
        terminal.think = before + seconds;
        return terminal.think;
    }
    0.0
}

/// Writes a number of a row as scripts see it. Other cells are not written.
pub(crate) fn write_number(text: &mut Vec<u8>, cell: &Cell<'_>) {
    use std::io::Write;
    let written = match cell {
        Cell::Null | Cell::Text(_) => Ok(()),
        Cell::Int(value) => write!(text, "{value}"),
        Cell::Double(value) if value.abs() >= 1e15 || (*value != 0.0 && value.abs() < 1e-5) => {
            write!(text, "{value:e}")
        }
        Cell::Double(value) => write!(text, "{value}"),
    };
    debug_assert!(written.is_ok(), "writing to a Vec cannot fail");
}

/// 1 and the cell's text, 0 for NULL, −1 if the result is stale.
unsafe extern "C" fn result_cell(
    shared: *mut Shared,
    connection: u32,
    serial: u32,
    set: u32,
    row: u32,
    column: u32,
) -> c_int {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    let Some(rows) = native.result(connection, serial) else { return -1 };
    shared.scratch.clear();
    match rows.cell(set as usize, row as usize, column as usize) {
        None | Some(Cell::Null) => return 0,
        Some(Cell::Text(text)) => {
            shared.give(text.as_ptr(), text.len());
            return 1;
        }
        Some(number) => write_number(&mut shared.scratch, &number),
    }
    let (text, length) = (shared.scratch.as_ptr(), shared.scratch.len());
    shared.give(text, length);
    1
}

/// 1, or 0 when the result is stale or freed already.
/// 1 and the name of a column, or 0 when it is not known.
unsafe extern "C" fn result_label(shared: *mut Shared, connection: u32, serial: u32, set: u32, column: u32) -> c_int {
    // SAFETY: see `parts`.
    let (shared, native) = unsafe { parts(shared) };
    let rows = native.result(connection, serial);
    let Some(label) = rows.and_then(|rows| rows.label(set as usize, column as usize)) else { return 0 };
    shared.give(label.as_ptr(), label.len());
    1
}

unsafe extern "C" fn result_free(shared: *mut Shared, connection: u32, serial: u32) -> c_int {
    // SAFETY: see `parts`.
    let (_, native) = unsafe { parts(shared) };
    if native.result(connection, serial).is_none() {
        return 0;
    }
    native.live(connection).freed = true;
    1
}

unsafe extern "C" fn result_rows(shared: *mut Shared, connection: u32, serial: u32, set: u32) -> u32 {
    // SAFETY: see `parts`.
    let (_, native) = unsafe { parts(shared) };
    native.result(connection, serial).map_or(0, |rows| rows.len(set as usize) as u32)
}

unsafe extern "C" fn result_columns(shared: *mut Shared, connection: u32, serial: u32, set: u32) -> u32 {
    // SAFETY: see `parts`.
    let (_, native) = unsafe { parts(shared) };
    native.result(connection, serial).map_or(0, |rows| rows.columns(set as usize) as u32)
}

/// The number of a new batch of rows of `columns` columns.
unsafe extern "C" fn rows_new(shared: *mut Shared, columns: u32) -> u32 {
    // SAFETY: see `parts`.
    let (_, native) = unsafe { parts(shared) };
    let mut rows = Box::<Rows>::default();
    rows.begin_set(columns as usize);
    native.loaders.push(rows);
    native.loaders.len() as u32 - 1
}

/// The address of the batch: valid as long as its session.
unsafe extern "C" fn rows_address(shared: *mut Shared, number: u32) -> *mut Rows {
    // SAFETY: see `parts`.
    let (_, native) = unsafe { parts(shared) };
    native.loaders.get_mut(number as usize).map_or(std::ptr::null_mut(), |rows| &raw mut **rows)
}

// SAFETY of the functions below: `rows` came from `rows_address` of the running session, whose loaders live as long
// as it does; a loader object cannot outlive its session's Lua environment.

unsafe extern "C" fn rows_null(rows: *mut Rows) {
    // SAFETY: as above.
    unsafe { &mut *rows }.push_null();
}

/// A whole number is stored as an integer, so that it is written without a fraction.
unsafe extern "C" fn rows_number(rows: *mut Rows, value: f64) {
    // SAFETY: as above.
    let rows = unsafe { &mut *rows };
    let whole = value as i64;
    if whole as f64 == value { rows.push_int(whole) } else { rows.push_double(value) }
}

unsafe extern "C" fn rows_int64(rows: *mut Rows, value: i64) {
    // SAFETY: as above.
    unsafe { &mut *rows }.push_int(value);
}

/// 1, or 0 if the batch cannot hold that much text.
unsafe extern "C" fn rows_text(rows: *mut Rows, text: *const u8, length: usize) -> c_int {
    // SAFETY: as above; the text is a Lua string.
    let (rows, text) = unsafe { (&mut *rows, slice::from_raw_parts(text, length)) };
    c_int::from(rows.push_text(text).is_ok())
}

/// Between `low` and `high` random letters and digits that never become a Lua string. 1, or 0 if the batch cannot hold
/// them.
unsafe extern "C" fn rows_random_text(shared: *mut Shared, rows: *mut Rows, low: u32, high: u32) -> c_int {
    // SAFETY: see `parts`; `rows` as above: a batch is boxed, so it overlaps with neither.
    let ((_, native), rows) = unsafe { (parts(shared), &mut *rows) };
    let made = rows.push_made(high as usize, |target| native.rng.alphanumeric(low.min(high), high, target));
    c_int::from(made.is_ok())
}

/// A random text in a format, which never becomes a Lua string. 1, or 0 if the batch cannot hold it.
unsafe extern "C" fn rows_filled_text(shared: *mut Shared, rows: *mut Rows, format: *const u8, length: usize) -> c_int {
    // SAFETY: see `parts`; `rows` as above: a batch is boxed, so it overlaps with neither; the format is a Lua string.
    let ((_, native), rows, format) = unsafe { (parts(shared), &mut *rows, slice::from_raw_parts(format, length)) };
    let made = rows.push_made(length, |target| {
        native.rng.fill(format, target);
        length
    });
    c_int::from(made.is_ok())
}

unsafe extern "C" fn rows_size(rows: *const Rows) -> u32 {
    // SAFETY: as above.
    unsafe { &*rows }.size() as u32
}

unsafe extern "C" fn rows_clear(rows: *mut Rows, columns: u32) {
    // SAFETY: as above.
    let rows = unsafe { &mut *rows };
    rows.clear();
    rows.begin_set(columns as usize);
}

const _: () = assert!(size_of::<c_char>() == 1);
