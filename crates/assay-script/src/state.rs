//! One `lua_State` and its sessions.
//!
//! A session is a coroutine of the prelude (`src/lua/*.lua`), which runs the script and yields numbers that encode its
//! request; `Ask` names them. Resuming pushes the answer, switches the shared block to the session and calls
//! `lua_resume`: our side allocates nothing once the scratch space has grown.
//!
//! Memory: LuaJIT's collector runs as garbage accumulates. Its final phase walks all coroutines of the state at once,
//! so a state should hold some hundred sessions, not ten thousand (`sessions_per_state` in assay-engine).

use std::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, OnceLock};

use assay_luajit as lua;
use assay_luajit::lua_State;
use assay_seam::{Dialect, Nanos, Operation, RowsPool, RowsWanted, StatementId, Value};

use crate::asked::Ask;
use crate::declared::{Declared, declaration, read_declared};
use crate::failure::ScriptError;
use crate::front::ScriptFront;
use crate::guard::{Guard, GuardWatch};
use crate::native::{FUNCTIONS, Key, Marks, Native, Shared};
use crate::plain::{Leave, PlainDraws, PlainStep, PlainTexts};
use crate::prelude;
use crate::random::Distribution;
use crate::request::{Answer, ConnectionNumber, Failure, Request, Slot};
use crate::script::Script;
use crate::stack::{
    UNSUITABLE, WANTED, failure, push_answer, push_bytes, push_option, push_value, read_parameters, text_at,
};
use assay_options::OptionValue;

/// One `lua_State` with its sessions. Not `Send`: made and used in one thread.
pub struct LuaState {
    pub(crate) lua: *mut lua_State,
    /// From `Box::into_raw`; Lua has its address, too. Freed after the state is closed.
    pub(crate) shared: *mut Shared,
    watch: Arc<GuardWatch>,
    pub(crate) sessions: Vec<Option<Coroutine>>,
    /// Parameters of the last `Execute` returned. The lifetime is erased: see `LuaState::operation`.
    parameters: Vec<Value<'static>>,
    /// The text that a plain program handed out last.
    text: Vec<u8>,
    /// The texts that a plain program drew for its statement.
    texts: PlainTexts,
    generation: u64,
    pub(crate) seed: u64,
    /// Declarations of the program.
    pub(crate) declared: Arc<OnceLock<Declared>>,
}

/// A session, as seen from Rust.
pub(crate) struct Coroutine {
    /// Anchored in the prelude's `sessions`.
    thread: *mut lua_State,
    /// From `Box::into_raw`: while the session runs, native functions access it through `Shared`.
    pub(crate) native: *mut Native,
    /// The connection of the operation whose reply is awaited.
    asked: u32,
    /// Whether it wants only the first columns of the first row.
    wants_row: bool,
    ended: bool,
    /// Its requests come from the plain program in `native`, and Lua waits for that to end.
    is_plain: bool,
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `add_session`, freed only here; the session will not run again.
        drop(unsafe { Box::from_raw(self.native) });
    }
}

/// A new collection starts when memory has grown to this many percent of what the last one left.
const GC_PAUSE: c_int = 125;
/// Collector speed relative to allocation, percent.
const GC_STEP: c_int = 300;

/// What a state is created for.
pub(crate) struct Opening<'a> {
    pub(crate) entry: &'a str,
    pub(crate) entry_name: &'a str,
    pub(crate) command: Option<&'a str>,
    pub(crate) options: Option<&'a [(String, OptionValue)]>,
    pub(crate) driver: Dialect,
    pub(crate) seed: u64,
    pub(crate) sessions: u32,
    pub(crate) distribution: Distribution,
    pub(crate) argv: &'a [String],
    pub(crate) front: Option<Arc<dyn ScriptFront>>,
}

impl LuaState {
    /// Compiles the script without running it.
    pub(crate) fn open(script: &Script, opening: &Opening<'_>) -> Result<LuaState, ScriptError> {
        let shared = Shared::new(&script.library, &script.name, opening.seed, opening.sessions, opening.distribution)
            .with_front(opening.front.clone(), !matches!(opening.entry, "thread" | "function"));
        // SAFETY: a fresh state, used by this thread only. Errors inside Lua are caught by `run`'s protected calls;
        // calls outside them at most allocate, and LuaJIT ends the process when memory runs out there.
        unsafe {
            let lua = lua::luaL_newstate();
            assert!(!lua.is_null(), "out of memory for a Lua state");
            lua::luaL_openlibs(lua);
            // Until the prelude is loaded: the time of collections affects the order in which tables are walked.
            lua::lua_gc(lua, lua::LUA_GCSTOP, 0);
            lua::lua_gc(lua, lua::LUA_GCSETPAUSE, GC_PAUSE);
            lua::lua_gc(lua, lua::LUA_GCSETSTEPMUL, GC_STEP);
            let watch = GuardWatch::new(lua);
            let state = LuaState {
                lua,
                shared: Box::into_raw(Box::new(shared)),
                watch,
                sessions: Vec::new(),
                parameters: Vec::new(),
                text: Vec::new(),
                texts: PlainTexts::default(),
                generation: 0,
                seed: opening.seed,
                declared: Arc::default(),
            };
            state.push_core(script, opening);
            let overlay = opening.front.as_ref().map_or(&[][..], |front| front.overlay());
            for part in prelude::parts(overlay) {
                if prelude::load(lua, part) != lua::LUA_OK {
                    return Err(state.error_on_top());
                }
                lua::lua_pushvalue(lua, 1);
                state.run(1, 0)?;
            }
            lua::lua_gc(lua, lua::LUA_GCRESTART, 0);
            // core.script = core.compile_script(text, display, built_in)
            lua::lua_getfield_(lua, 1, c"compile_script".as_ptr());
            push_bytes(lua, &script.source.text);
            push_bytes(lua, script.source.display.as_bytes());
            lua::lua_pushboolean(lua, c_int::from(script.built_in().is_some()));
            state.run(3, 2)?;
            if lua::lua_type(lua, -2) == lua::LUA_TNIL {
                return Err(state.error_on_top());
            }
            lua::lua_settop(lua, -2);
            lua::lua_setfield(lua, 1, c"script".as_ptr());
            Ok(state)
        }
    }

    /// Leaves the prelude's `core` table at the bottom of the main stack, where it stays.
    ///
    /// # Safety
    /// The main stack is empty.
    unsafe fn push_core(&self, script: &Script, opening: &Opening<'_>) {
        let lua = self.lua;
        let (path, cpath) = (script.library.search_path(script.folder().as_deref()), script.library.search_cpath());
        let installed =
            script.library.installed.as_ref().and_then(|installed| installed.folder.to_str()).unwrap_or("\0");
        // SAFETY: every push is matched by the `set` after it.
        unsafe {
            lua::lua_createtable(lua, 0, 32);
            let set = |name: &CStr| lua::lua_setfield(lua, 1, name.as_ptr());
            lua::lua_createtable(lua, 0, FUNCTIONS.len() as c_int);
            for (name, address) in FUNCTIONS {
                push_bytes(lua, name.as_bytes());
                lua::lua_pushlightuserdata(lua, address.cast_mut());
                lua::lua_rawset(lua, -3);
            }
            set(c"addresses");
            lua::lua_pushlightuserdata(lua, self.shared.cast::<c_void>());
            set(c"shared");
            for (name, text) in [
                (c"path", path.as_str()),
                (c"cpath", &cpath),
                (c"script_path", &script.given),
                (c"installed", installed),
                (c"driver", opening.driver.name),
                (c"entry", opening.entry),
                (c"entry_name", opening.entry_name),
            ] {
                push_bytes(lua, text.as_bytes());
                set(name);
            }
            lua::lua_pushboolean(lua, c_int::from(opening.driver.backslash_escapes));
            set(c"backslash_escapes");
            if let Some(bytes) = opening.driver.load_bytes_max {
                lua::lua_pushnumber(lua, bytes as f64);
                set(c"load_bytes_max");
            }
            lua::lua_createtable(lua, 0, opening.driver.globals.len() as c_int);
            for (name, value) in opening.driver.globals {
                push_bytes(lua, name.as_bytes());
                push_value(lua, value);
                lua::lua_rawset(lua, -3);
            }
            set(c"driver_globals");
            lua::lua_pushnumber(lua, f64::from(opening.sessions));
            set(c"sessions_in_all");
            // A script found as a module gets its name, as with `require`.
            if script.source.display != script.given {
                push_bytes(lua, script.given.as_bytes());
                set(c"module");
            }
            if let Some(command) = opening.command {
                push_bytes(lua, command.as_bytes());
                set(c"command");
            }
            if let Some(module) = script.built_in() {
                push_bytes(lua, module.as_bytes());
                set(c"built_in");
            }
            lua::lua_createtable(lua, opening.argv.len() as c_int, 1);
            for (i, argument) in opening.argv.iter().enumerate() {
                push_bytes(lua, argument.as_bytes());
                lua::lua_rawseti_(lua, -2, i as c_int);
            }
            set(c"argv");
            if let Some(options) = opening.options {
                lua::lua_createtable(lua, 0, options.len() as c_int);
                for (key, value) in options {
                    push_bytes(lua, key.as_bytes());
                    push_option(lua, value);
                    lua::lua_rawset(lua, -3);
                }
                set(c"options");
            }
        }
    }

    /// Calls the function below `arguments` values on the main stack.
    ///
    /// # Safety
    /// They are there.
    unsafe fn run(&self, arguments: c_int, results: c_int) -> Result<(), ScriptError> {
        // SAFETY: the caller's promise; a protected call lets no Lua error pass.
        unsafe {
            if lua::lua_pcall(self.lua, arguments, results, 0) == lua::LUA_OK {
                return Ok(());
            }
            Err(self.error_on_top())
        }
    }

    /// # Safety
    /// The main stack is not empty.
    unsafe fn error_on_top(&self) -> ScriptError {
        // SAFETY: the caller's promise.
        let message = unsafe { text_at(self.lua, -1) };
        ScriptError::from_message(&String::from_utf8_lossy(message), "")
    }

    /// Creates session `number` (from 0, unique in the run). Its first `resume` (with `Answer::Done`) runs the top
    /// level.
    pub fn add_session(&mut self, number: u32) -> Result<Slot, ScriptError> {
        let free = self.sessions.iter().position(Option::is_none);
        let index = free.unwrap_or(self.sessions.len());
        // SAFETY: `core` lies at the bottom of the main stack; the prelude keeps the thread in its `sessions`.
        let thread = unsafe {
            lua::lua_getfield_(self.lua, 1, c"add_session".as_ptr());
            lua::lua_pushnumber(self.lua, (index + 1) as f64);
            lua::lua_pushnumber(self.lua, f64::from(number));
            let made = self.run(2, 1);
            let thread = lua::lua_tothread(self.lua, -1);
            lua::lua_settop(self.lua, 1);
            made?;
            thread
        };
        // SAFETY: `shared` lives as long as the state.
        let unique_from = unsafe { (*self.shared).unique_from };
        let native = Box::into_raw(Box::new(Native::new(self.seed, number, unique_from)));
        let session = Coroutine { thread, native, asked: 0, wants_row: false, ended: false, is_plain: false };
        match free {
            Some(index) => self.sessions[index] = Some(session),
            None => self.sessions.push(Some(session)),
        }
        Ok(Slot(index as u32))
    }

    /// Runs a session until its next request. Panics if there is no such session or it has ended.
    #[inline]
    pub fn resume(&mut self, slot: Slot, answer: Answer, pool: &mut RowsPool) -> Request<'_> {
        let session = self.sessions[slot.0 as usize].as_mut().expect("the slot came from add_session");
        let asked = if session.is_plain {
            // SAFETY: no Lua code runs; `shared` and `native` live as long as the state and the session, and nothing
            // else refers to them.
            let (shared, native) = unsafe { (&mut *self.shared, &mut *session.native) };
            let run = native.plain.as_mut().expect("a plain program runs");
            let mut draws = PlainDraws {
                rng: &mut native.rng,
                distribution: &shared.distribution,
                zipf: &mut shared.zipf,
                texts: &mut self.texts,
            };
            match run.resume(answer, &mut draws, pool) {
                Ok(step) => return self.plain_request(slot, step),
                Err((leave, answer)) => self.leave_plain(slot, leave, answer, pool),
            }
        } else {
            self.advance(slot, answer, pool)
        };
        match asked {
            Ask::Plain => {
                let step = self.begin_plain(slot, pool);
                self.plain_request(slot, step)
            }
            asked => self.request(slot, asked, pool),
        }
    }

    /// A session has asked to go on in a plain program, which has transactions to begin.
    fn begin_plain(&mut self, slot: Slot, pool: &mut RowsPool) -> PlainStep {
        let session = self.sessions[slot.0 as usize].as_mut().expect("it was just resumed");
        session.is_plain = true;
        // SAFETY: the thread is suspended with its request on the stack; `native` as in `resume`.
        let (native, connection, left) = unsafe {
            let number = |index| lua::lua_tonumber(session.thread, index);
            (&mut *session.native, number(2), number(3))
        };
        // As between any two transactions.
        for live in &mut native.results {
            if let Some(rows) = live.begin() {
                pool.put(rows);
            }
        }
        let run = native.plain.as_mut().expect("the front has begun one");
        (run.connection, run.left) = (connection as u32, left.max(1.0) as u64);
        session.asked = run.connection;
        run.next().expect("there is one left")
    }

    /// Hands the session back to Lua: why, at which command, its text if it has one, and the answer to it.
    #[cold]
    fn leave_plain(&mut self, slot: Slot, leave: Leave, answer: Answer, pool: &mut RowsPool) -> Ask {
        let session = self.sessions[slot.0 as usize].as_mut().expect("it is in a plain program");
        session.is_plain = false;
        let (thread, native, asked) = (session.thread, session.native, session.asked);
        // SAFETY: the thread is suspended and ours, and its stack has room for LUA_MINSTACK values; `native` as in
        // `resume`, and not used any more when Lua runs.
        let count = unsafe {
            lua::lua_settop(thread, 0);
            let run = (*native).plain.as_ref().expect("it runs");
            lua::lua_pushnumber(thread, f64::from(leave as u32));
            lua::lua_pushnumber(thread, run.at() as f64);
            match run.write_text(&self.texts, &mut self.text) {
                true => push_bytes(thread, &self.text),
                false => lua::lua_pushnil(thread),
            }
            3 + push_answer(thread, &mut *native, asked, &[], answer, pool)
        };
        self.go_on(slot, count)
    }

    /// What a plain program asks.
    fn plain_request(&mut self, slot: Slot, step: PlainStep) -> Request<'_> {
        let session = self.sessions[slot.0 as usize].as_ref().expect("it is in a plain program");
        // SAFETY: as in `resume`.
        let run = unsafe { (*session.native).plain.as_ref() }.expect("it runs");
        let connection = ConnectionNumber(run.connection);
        match step {
            PlainStep::Next => Request::Next,
            PlainStep::InTransaction => Request::InTransaction(connection),
            PlainStep::Execute => {
                let texts: *const PlainTexts = &raw const self.texts;
                // SAFETY: `texts` lives as long as `self`. Parameters are read while the request borrows `self`, and
                // not any more when the next one is made.
                let texts = unsafe { &*texts };
                let statement = run.statement(texts, &mut self.parameters);
                Request::Operation(
                    connection,
                    Operation::Execute { statement, parameters: &self.parameters, rows: RowsWanted::Count },
                )
            }
            PlainStep::Query => {
                run.write_text(&self.texts, &mut self.text);
                Request::Operation(connection, Operation::Query { text: &self.text, rows: RowsWanted::Count })
            }
        }
    }

    /// Answers a session and runs it until its next request, which is then on its stack.
    pub(crate) fn advance(&mut self, slot: Slot, answer: Answer, pool: &mut RowsPool) -> Ask {
        let session = self.sessions[slot.0 as usize].as_mut().expect("the slot came from add_session");
        assert!(!session.ended, "a session that has ended is not resumed");
        let thread = session.thread;
        // SAFETY: the thread is suspended and ours. Nothing borrowed from its stack is alive, since the last request
        // borrowed `self`. `native` lives as long as the session.
        let count = unsafe {
            // The text is a field of the statement that waits for its row.
            let columns = if session.wants_row { text_at(thread, WANTED) } else { &[] };
            // A thread that has not started holds its function.
            if lua::lua_status(thread) == lua::LUA_YIELD {
                lua::lua_settop(thread, 0);
            }
            push_answer(thread, &mut *session.native, session.asked, columns, answer, pool)
        };
        self.go_on(slot, count)
    }

    /// Runs a session with so many values on its stack until it asks.
    #[inline]
    fn go_on(&mut self, slot: Slot, mut count: c_int) -> Ask {
        let session = self.sessions[slot.0 as usize].as_mut().expect("its stack was just filled");
        let thread = session.thread;
        // SAFETY: as in `advance`. `shared` and `native` live as long as the state and the session; no reference to
        // them is held while Lua runs.
        unsafe {
            (*self.shared).session = slot.0 + 1;
            (*self.shared).native = session.native;
            loop {
                self.generation += 1;
                self.watch.step(self.generation);
                let status = lua::lua_resume_(thread, count);
                self.generation += 1;
                self.watch.step(self.generation);
                let asked = match status {
                    lua::LUA_YIELD | lua::LUA_OK if lua::lua_type(thread, 1) == lua::LUA_TNUMBER => {
                        let asked = Ask::from_number(lua::lua_tonumber(thread, 1));
                        session.ended = matches!(asked, Ask::Finished | Ask::Died) || status == lua::LUA_OK;
                        asked
                    }
                    lua::LUA_YIELD => {
                        session.ended = true;
                        Ask::Stray
                    }
                    _ => {
                        session.ended = true;
                        Ask::Broken
                    }
                };
                if !matches!(asked, Ask::Execute | Ask::Row | Ask::Perform | Ask::Defer | Ask::Pipe) {
                    return asked;
                }
                match read_parameters(self.lua, thread, &mut self.parameters) {
                    Ok(()) => return asked,
                    Err(reason) => {
                        lua::lua_settop(thread, 0);
                        lua::lua_pushnumber(thread, UNSUITABLE);
                        push_bytes(thread, reason.as_bytes());
                        count = 2;
                    }
                }
            }
        }
    }

    /// A session's request, read from its stack.
    pub(crate) fn request(&mut self, slot: Slot, asked: Ask, pool: &mut RowsPool) -> Request<'_> {
        let session = self.sessions[slot.0 as usize].as_mut().expect("it was just resumed");
        let thread = session.thread;
        // SAFETY: the thread is suspended; its stack, and so the strings on it, stay until it is resumed, which needs
        // `&mut self` that the request borrows. `native` is only used here and while Lua runs.
        unsafe {
            let number = |index| lua::lua_tonumber(thread, index);
            match asked {
                Ask::Connect => {
                    Request::Connect(ConnectionNumber(number(2) as u32), text_at(thread, 3), number(4) as u32)
                }
                Ask::Disconnect | Ask::Reconnect | Ask::Leave => {
                    let connection = number(2) as u32;
                    if let Some(rows) = (*session.native).live(connection).begin() {
                        pool.put(rows);
                    }
                    let connection = ConnectionNumber(connection);
                    match asked {
                        Ask::Disconnect => Request::Disconnect(connection),
                        Ask::Leave => Request::Leave(connection),
                        _ => Request::Reconnect(connection),
                    }
                }
                Ask::Query
                | Ask::Prepare
                | Ask::Execute
                | Ask::Row
                | Ask::Perform
                | Ask::Defer
                | Ask::Pipe
                | Ask::Close
                | Ask::Load => {
                    let connection = number(2) as u32;
                    (session.asked, session.wants_row) = (connection, asked == Ask::Row);
                    let live = (*session.native).live(connection);
                    if asked != Ask::Close
                        && let Some(rows) = live.begin()
                    {
                        pool.put(rows);
                    }
                    let native = session.native;
                    let operation = self.operation(thread, native, asked);
                    match asked {
                        Ask::Defer => Request::Defer(ConnectionNumber(connection), operation),
                        Ask::Pipe => Request::Pipe(ConnectionNumber(connection), operation),
                        _ => Request::Operation(ConnectionNumber(connection), operation),
                    }
                }
                Ask::Rollback | Ask::Flush | Ask::Notification => {
                    let connection = number(2) as u32;
                    (session.asked, session.wants_row) = (connection, false);
                    if let Some(rows) = (*session.native).live(connection).begin() {
                        pool.put(rows);
                    }
                    match asked {
                        Ask::Flush => Request::Flush(ConnectionNumber(connection)),
                        Ask::Notification => {
                            Request::Notification(ConnectionNumber(connection), Nanos::from_secs_f64(number(3)))
                        }
                        _ => Request::Operation(ConnectionNumber(connection), Operation::RollBack),
                    }
                }
                Ask::Synchronize => Request::Synchronize(ConnectionNumber(number(2) as u32)),
                Ask::InTransaction => Request::InTransaction(ConnectionNumber(number(2) as u32)),
                Ask::Executed => Request::Executed,
                Ask::Ready => Request::Ready,
                Ask::Next => {
                    // A transaction is over, and with it its results: an idle session holds no row buffers.
                    for live in &mut (*session.native).results {
                        if let Some(rows) = live.rows.take() {
                            pool.put(rows);
                        }
                    }
                    Request::Next
                }
                Ask::Type => Request::Type(number(2) as u32),
                Ask::Failed => Request::Failed(failure(thread)),
                Ask::Stop => Request::Stop,
                Ask::Sleep => Request::Sleep(Nanos::from_secs_f64(number(2))),
                Ask::Claim => Request::Claim(text_at(thread, 2)),
                Ask::Barrier => Request::Barrier,
                Ask::Expect => Request::Expect(number(2) as u64),
                Ask::Log => Request::Log(text_at(thread, 2)),
                Ask::Declare => Request::Declare(declaration(thread)),
                Ask::Finished => Request::Finished { success: lua::lua_toboolean(thread, 2) != 0 },
                Ask::Died => Request::Died(failure(thread)),
                Ask::Declared => match read_declared(thread) {
                    Ok(declared) => {
                        let _ = self.declared.set(declared);
                        Request::Finished { success: true }
                    }
                    Err(error) => Request::Died(Failure { message: error.message, ..Failure::default() }),
                },
                Ask::Plain => unreachable!("`resume` answers for plain programs"),
                Ask::Stray => Request::Died(Failure {
                    message: "coroutine.yield was called outside of a coroutine of the script".to_owned(),
                    ..Failure::default()
                }),
                // Even the handler failed: out of memory, or out of stack.
                Ask::Broken => Request::Died(Failure {
                    message: String::from_utf8_lossy(text_at(thread, -1)).into_owned(),
                    ..Failure::default()
                }),
            }
        }
    }

    /// The operation on a suspended session's stack.
    ///
    /// # Safety
    /// The thread is suspended, and the result does not outlive that; `native` is its session's.
    unsafe fn operation<'a>(&'a mut self, thread: *mut lua_State, native: *mut Native, asked: Ask) -> Operation<'a> {
        // SAFETY: the caller's promise.
        unsafe {
            let statement = || StatementId(lua::lua_tonumber(thread, 3) as u32);
            match asked {
                Ask::Query => Operation::Query { text: text_at(thread, 3), rows: RowsWanted::Keep },
                Ask::Prepare => Operation::Prepare { statement: statement(), text: text_at(thread, 4) },
                Ask::Execute | Ask::Row | Ask::Perform | Ask::Defer | Ask::Pipe => {
                    let rows = if asked == Ask::Perform { RowsWanted::Count } else { RowsWanted::Keep };
                    Operation::Execute { statement: statement(), parameters: &self.parameters, rows }
                }
                Ask::Load => {
                    let loader = lua::lua_tonumber(thread, 5) as usize;
                    Operation::Load {
                        table: text_at(thread, 3),
                        columns: text_at(thread, 4),
                        rows: &(&(*native).loaders)[loader],
                        frozen: lua::lua_toboolean(thread, 6) != 0,
                    }
                }
                _ => Operation::Close { statement: statement() },
            }
        }
    }

    /// What the session's top level declared; its last request was `Ask::Declared`.
    pub(crate) fn read_declared(&self, slot: Slot) -> Result<Declared, ScriptError> {
        let thread = self.sessions[slot.0 as usize].as_ref().expect("the slot came from add_session").thread;
        // SAFETY: the thread is suspended with the values of `entries.declare` above the request's number.
        unsafe { read_declared(thread) }
    }

    /// Names of transaction types in the order of their first use; index 0 is the workload's own name.
    pub fn transaction_types(&self) -> &[String] {
        // SAFETY: `shared` lives as long as `self`, and no Lua code runs while `self` is borrowed.
        unsafe { &(*self.shared).types }
    }

    /// Names of counters in the order of their first use.
    pub fn counter_names(&self) -> &[String] {
        // SAFETY: as above.
        unsafe { &(*self.shared).counters }
    }

    /// Whether any session has left marks: if not, there is nothing to look for after a transaction.
    #[inline]
    pub fn has_marks(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.shared).marked }
    }

    /// What was acknowledged since the last call (`assay.acknowledge`).
    pub fn take_acknowledged(&mut self) -> Vec<Key> {
        // SAFETY: `shared` lives as long as `self`, and no Lua code runs while `self` is borrowed.
        unsafe { std::mem::take(&mut (*self.shared).acknowledged) }
    }

    /// What the session noted about its current or last transaction. To be cleared when that is over.
    pub fn marks(&mut self, slot: Slot) -> &mut Marks {
        let session = self.sessions[slot.0 as usize].as_ref().expect("the slot came from add_session");
        // SAFETY: `native` lives as long as the session, and no Lua code runs while `self` is borrowed.
        unsafe { &mut (*session.native).marks }
    }

    /// Whether any session has noted operations for a history.
    #[inline]
    pub fn has_history(&self) -> bool {
        // SAFETY: `shared` lives as long as `self`, and no Lua code runs while `self` is borrowed.
        unsafe { (*self.shared).has_history }
    }

    /// Operations that the session noted in the current attempt of its transaction (`assay_isolation::log`). To be
    /// cleared when that is over.
    pub fn history(&mut self, slot: Slot) -> &mut Vec<u64> {
        let session = self.sessions[slot.0 as usize].as_ref().expect("the slot came from add_session");
        // SAFETY: `native` lives as long as the session, and no Lua code runs while `self` is borrowed.
        unsafe { &mut (*session.native).history }
    }

    /// What the session counted itself with `sb_counter_inc`/`sb_counter_add`, in the order of `SB_CNT_*`.
    pub fn counters(&self, slot: Slot) -> [u64; 8] {
        let session = self.sessions[slot.0 as usize].as_ref().expect("the slot came from add_session");
        // SAFETY: `native` lives as long as the session, and no Lua code runs while `self` is borrowed.
        unsafe { (*session.native).counters }
    }

    /// What all sessions counted since the last call, in the order of `SB_CNT_*`.
    pub fn take_counted(&mut self) -> [u64; 8] {
        // SAFETY: `shared` lives as long as `self`, and no Lua code runs while `self` is borrowed.
        unsafe { std::mem::take(&mut (*self.shared).counted) }
    }

    /// Drops a session in any state. Its slot is reused.
    pub fn remove(&mut self, slot: Slot, pool: &mut RowsPool) {
        let Some(session) = self.sessions[slot.0 as usize].take() else { return };
        // SAFETY: `native` lives until the session is dropped below. `core` is at the bottom of the main stack.
        unsafe {
            for live in &mut (*session.native).results {
                if let Some(rows) = live.rows.take() {
                    pool.put(rows);
                }
            }
            (*self.shared).rest();
            lua::lua_getfield_(self.lua, 1, c"remove_session".as_ptr());
            lua::lua_pushnumber(self.lua, f64::from(slot.0 + 1));
            self.run(1, 0).expect("setting a field of an existing table cannot fail");
        }
    }

    /// Bytes in use by Lua.
    pub fn memory(&self) -> usize {
        // SAFETY: asks for two numbers.
        unsafe {
            lua::lua_gc(self.lua, lua::LUA_GCCOUNT, 0) as usize * 1024
                + lua::lua_gc(self.lua, lua::LUA_GCCOUNTB, 0) as usize
        }
    }

    /// Collects all garbage now: before a run, or to measure. Takes milliseconds.
    pub fn collect_garbage(&mut self) {
        // SAFETY: finalizers of a script run protected.
        unsafe { lua::lua_gc(self.lua, lua::LUA_GCCOLLECT, 0) };
    }

    /// For the watchdog.
    pub fn guard(&self) -> Guard {
        Guard::new(&self.watch)
    }
}

impl Drop for LuaState {
    fn drop(&mut self) {
        self.watch.close();
        // SAFETY: no guard touches the state any more, and nothing of it is borrowed. Finalizers of the script run
        // here, and the functions they call find `shared` alive and at rest.
        unsafe {
            (*self.shared).rest();
            lua::lua_close(self.lua);
            self.sessions.clear();
            drop(Box::from_raw(self.shared));
        }
    }
}
