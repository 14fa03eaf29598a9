//! One `lua_State` and the sessions that live in it.
//!
//! A session is a coroutine of the prelude (`src/lua/*.lua`), which runs the script and yields numbers that say what
//! it asks; `Asked` names them. Resuming pushes the answer, switches the shared block to the session and calls
//! `lua_resume`: nothing is allocated on our side once the scratch space has grown.
//!
//! Memory: LuaJIT's collector runs as garbage arises. Its final phase walks all coroutines of the state at once, so a
//! state should hold some hundred sessions, not ten thousand (`sessions_per_state` in assay-engine).

use std::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, OnceLock};

use assay_luajit as lua;
use assay_luajit::lua_State;
use assay_seam::{Nanos, Operation, RowsPool, StatementId, Value};

use crate::declared::{Declared, declaration, read_declared};
use crate::failure::ScriptError;
use crate::guard::{Guard, Watch};
use crate::host::{Host, Severity};
use crate::native::{FUNCTIONS, Key, Marks, Native, Shared, Terminal, serve};
use crate::program::{Program, Script, TopLevel};
use crate::random::Distribution;
use crate::request::{Answer, ConnectionNumber, Failure, Request, Slot};
use crate::stack::{UNSUITABLE, failure, push_answer, push_bytes, push_option, read_parameters, text_at};
use assay_options::OptionValue;

/// What the sessions of a state are to do, and what they see.
#[derive(Clone, Debug)]
pub struct Setup {
    /// `sysbench.cmdline.command`; empty: there is none.
    pub command: String,
    /// What each session runs.
    pub entry: Entry,
    /// Everything in `sysbench.opt`, core options included; keys as `OptionDeclaration::key`.
    pub options: Vec<(String, OptionValue)>,
    /// The name of the driver: `pgsql`, `mysql`, `sqlite`.
    pub driver: &'static str,
    /// The run's seed.
    pub seed: u64,
    /// Sessions of the whole run, all states together; numbers given to `add_session` are below it. >= 1
    pub sessions: u32,
    /// For `sysbench.rand`.
    pub distribution: Distribution,
    /// `sysbench.cmdline.argv`, the program's name first.
    pub argv: Vec<String>,
    /// Where scripts print; `None`: they ask the engine, `Request::Log`. With a host, the top level of the one session of
    /// a `Frame` or of a `Function` is silent: loading the program has printed what it prints.
    pub host: Option<Arc<dyn Host>>,
}

/// What a session runs after the script's top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `thread_init` → `Request::Ready` → `thread_run` → `thread_done`.
    Thread,
    /// The entry of `sysbench.cmdline.commands` or the global function of this name: once, without arguments.
    Function(String),
    /// `init` → `Request::Ready` → (the run; answer when it is over: `Report` for the last report's hook, as with
    /// `Reports`, then `Done`) → `done`, in one environment. Each may be absent.
    Frame,
    /// Nothing more.
    TopLevel,
    /// What the top level declared becomes known to the program. The top level sees no options.
    Declare,
    /// Report hooks: `Request::Ready`, and again after each `Answer::Report`; ends on `Answer::Done`.
    Reports,
}

/// One `lua_State` with its sessions. Not `Send`: made and used in one thread.
pub struct State {
    lua: *mut lua_State,
    /// From `Box::into_raw`; Lua holds its address too. Freed after the state is closed.
    shared: *mut Shared,
    watch: Arc<Watch>,
    sessions: Vec<Option<Coroutine>>,
    /// Parameters of the `Execute` handed out last. The lifetime is erased: see `State::operation`.
    parameters: Vec<Value<'static>>,
    generation: u64,
    seed: u64,
    /// Of the program.
    declared: Arc<OnceLock<Declared>>,
}

/// A session, seen from outside.
struct Coroutine {
    /// Anchored in the prelude's `sessions`.
    thread: *mut lua_State,
    /// From `Box::into_raw`: while the session runs, native functions reach it through `Shared`.
    native: *mut Native,
    /// The connection of the operation whose reply is awaited.
    asked: u32,
    ended: bool,
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` in `add_session`, freed only here; the session will not run again.
        drop(unsafe { Box::from_raw(self.native) });
    }
}

/// The part of the prelude that runs first; what the front adds comes next.
const CORE: (&CStr, &str) = (c"=assay/core", include_str!("lua/core.lua"));

/// The other parts, in the order they run.
const PRELUDE: [(&CStr, &str); 7] = [
    (c"=assay/foreign", include_str!("lua/foreign.lua")),
    (c"=assay/rand", include_str!("lua/rand.lua")),
    (c"=assay/sql", include_str!("lua/sql.lua")),
    (c"=assay/load", include_str!("lua/load.lua")),
    (c"=assay/legacy", include_str!("lua/legacy.lua")),
    (c"=assay/report", include_str!("lua/report.lua")),
    (c"=assay/session", include_str!("lua/session.lua")),
];

/// A new collection starts when memory has grown to this many percent of what the last one left.
const GC_PAUSE: c_int = 125;
/// Collector speed relative to allocation, percent.
const GC_STEP: c_int = 300;

/// What a state is made for.
struct Opening<'a> {
    entry: &'a str,
    entry_name: &'a str,
    command: Option<&'a str>,
    options: Option<&'a [(String, OptionValue)]>,
    driver: &'a str,
    seed: u64,
    sessions: u32,
    distribution: Distribution,
    argv: &'a [String],
    host: Option<Arc<dyn Host>>,
    /// The top level prints nothing.
    silent: bool,
}

impl Opening<'_> {
    /// What `--luajit-cmd` asks of the compiler.
    fn compiler_command(&self) -> Option<&'static str> {
        self.host.as_ref()?;
        let (_, value) = self.options?.iter().find(|(key, _)| key == "luajit_cmd")?;
        match value {
            OptionValue::Text(command) => match command.as_str() {
                "on" => Some("jit.on()"),
                "off" => Some("jit.off()"),
                "flush" => Some("jit.flush()"),
                _ => None,
            },
            _ => None,
        }
    }
}

impl State {
    /// Compiles the script. Runs none of it.
    pub fn new(program: &Program, setup: &Setup) -> Result<State, ScriptError> {
        let (entry, entry_name) = match &setup.entry {
            Entry::Thread => ("thread", ""),
            Entry::Function(name) => ("function", name.as_str()),
            Entry::Frame => ("frame", ""),
            Entry::TopLevel => ("top_level", ""),
            Entry::Declare => ("declare", ""),
            Entry::Reports => ("reports", ""),
        };
        let alone = matches!(setup.entry, Entry::Frame) || (entry == "function" && setup.sessions <= 1);
        let mut state = State::open(
            &program.script,
            &Opening {
                entry,
                entry_name,
                command: Some(setup.command.as_str()).filter(|command| !command.is_empty()),
                options: Some(&setup.options),
                driver: setup.driver,
                seed: setup.seed,
                sessions: setup.sessions,
                distribution: setup.distribution,
                argv: &setup.argv,
                host: setup.host.clone(),
                silent: alone,
            },
        )?;
        state.declared = Arc::clone(&program.declared);
        Ok(state)
    }

    fn open(script: &Script, opening: &Opening<'_>) -> Result<State, ScriptError> {
        let shared = Shared::new(&script.library, &script.name, opening.seed, opening.sessions, opening.distribution)
            .with_host(opening.host.clone(), !matches!(opening.entry, "thread" | "function"));
        // SAFETY: a fresh state, used by this thread only. Errors inside Lua are caught by `run`'s protected calls;
        // what is called outside of them allocates at most, and LuaJIT ends the process when memory runs out there.
        unsafe {
            let lua = lua::luaL_newstate();
            assert!(!lua.is_null(), "out of memory for a Lua state");
            lua::luaL_openlibs(lua);
            // Until the prelude is there: what is collected when decides the order in which tables are walked.
            lua::lua_gc(lua, lua::LUA_GCSTOP, 0);
            lua::lua_gc(lua, lua::LUA_GCSETPAUSE, GC_PAUSE);
            lua::lua_gc(lua, lua::LUA_GCSETSTEPMUL, GC_STEP);
            let watch = Watch::new(lua);
            let state = State {
                lua,
                shared: Box::into_raw(Box::new(shared)),
                watch,
                sessions: Vec::new(),
                parameters: Vec::new(),
                generation: 0,
                seed: opening.seed,
                declared: Arc::default(),
            };
            state.push_core(script, opening);
            let overlay = opening.host.as_ref().map_or(&[][..], |host| host.overlay());
            for (name, text) in [CORE].iter().chain(overlay).chain(&PRELUDE) {
                if lua::luaL_loadbuffer(lua, text.as_ptr().cast(), text.len(), name.as_ptr()) != lua::LUA_OK {
                    return Err(state.error_on_top());
                }
                lua::lua_pushvalue(lua, 1);
                state.run(1, 0)?;
            }
            lua::lua_gc(lua, lua::LUA_GCRESTART, 0);
            // core.script = core.compile(text, display, built_in)
            lua::lua_getfield_(lua, 1, c"compile".as_ptr());
            push_bytes(lua, &script.source.text);
            push_bytes(lua, script.source.display.as_bytes());
            lua::lua_pushboolean(lua, c_int::from(script.built_in().is_some()));
            state.run(3, 2)?;
            if lua::lua_type(lua, -2) == lua::LUA_TNIL {
                if let Some(host) = &opening.host {
                    host.message(Severity::Fatal, &String::from_utf8_lossy(text_at(lua, -1)));
                }
                return Err(state.error_on_top());
            }
            lua::lua_settop(lua, -2);
            lua::lua_setfield(lua, 1, c"script".as_ptr());
            if let Some(text) = opening.compiler_command() {
                lua::luaL_loadbuffer(lua, text.as_ptr().cast(), text.len(), c"=assay/compiler".as_ptr());
                state.run(0, 0)?;
            }
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
                (c"driver", opening.driver),
                (c"entry", opening.entry),
                (c"entry_name", opening.entry_name),
            ] {
                push_bytes(lua, text.as_bytes());
                set(name);
            }
            // Each session loads the same: the first to do so says what.
            let announces =
                opening.host.is_some() && !opening.silent && matches!(opening.entry, "declare" | "top_level");
            for (name, value) in
                [(c"hosted", opening.host.is_some()), (c"silent", opening.silent), (c"announces", announces)]
            {
                lua::lua_pushboolean(lua, c_int::from(value));
                set(name);
            }
            lua::lua_pushnumber(lua, f64::from(opening.sessions));
            set(c"sessions_in_all");
            // A script found as a module is told its name, as by `require`.
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

    /// Makes session `number` (from 0, unique in the run). Its first `resume` (with `Answer::Done`) runs the top level.
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
        let session = Coroutine { thread, native, asked: 0, ended: false };
        match free {
            Some(index) => self.sessions[index] = Some(session),
            None => self.sessions.push(Some(session)),
        }
        Ok(Slot(index as u32))
    }

    /// Runs a session until its next request. Panics when there is no such session or it has ended.
    #[inline]
    pub fn resume(&mut self, slot: Slot, answer: Answer, pool: &mut RowsPool) -> Request<'_> {
        let asked = self.advance(slot, answer, pool);
        self.request(slot, asked, pool)
    }

    /// Answers a session and runs it until it asks. What it asks lies on its stack.
    fn advance(&mut self, slot: Slot, answer: Answer, pool: &mut RowsPool) -> Asked {
        let session = self.sessions[slot.0 as usize].as_mut().expect("the slot came from add_session");
        assert!(!session.ended, "a session that has ended is not resumed");
        let thread = session.thread;
        // SAFETY: the thread is suspended and ours. Nothing borrowed from its stack is alive, since the last request
        // borrowed `self`. `shared` and `native` live as long as the state and the session; no reference to them is
        // held while Lua runs.
        unsafe {
            // A thread that has not begun holds its function.
            if lua::lua_status(thread) == lua::LUA_YIELD {
                lua::lua_settop(thread, 0);
            }
            let mut count = push_answer(thread, &mut *session.native, session.asked, answer, pool);
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
                        let asked = Asked::from_number(lua::lua_tonumber(thread, 1));
                        session.ended = matches!(asked, Asked::Finished | Asked::Died) || status == lua::LUA_OK;
                        asked
                    }
                    lua::LUA_YIELD => {
                        session.ended = true;
                        Asked::Stray
                    }
                    _ => {
                        session.ended = true;
                        Asked::Broken
                    }
                };
                if !matches!(asked, Asked::Execute | Asked::Defer) {
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

    /// What a session asks, read from its stack.
    fn request(&mut self, slot: Slot, asked: Asked, pool: &mut RowsPool) -> Request<'_> {
        let session = self.sessions[slot.0 as usize].as_mut().expect("it was just resumed");
        let thread = session.thread;
        // SAFETY: the thread is suspended; its stack, and so the strings on it, stay until it is resumed, which needs
        // `&mut self` that the request borrows. `native` is only used here and while Lua runs.
        unsafe {
            let number = |index| lua::lua_tonumber(thread, index);
            match asked {
                Asked::Connect => Request::Connect(ConnectionNumber(number(2) as u32), text_at(thread, 3)),
                Asked::Disconnect | Asked::Reconnect => {
                    let connection = number(2) as u32;
                    if let Some(rows) = (*session.native).live(connection).begin() {
                        pool.put(rows);
                    }
                    if asked == Asked::Disconnect {
                        Request::Disconnect(ConnectionNumber(connection))
                    } else {
                        Request::Reconnect(ConnectionNumber(connection))
                    }
                }
                Asked::Query | Asked::Prepare | Asked::Execute | Asked::Defer | Asked::Close | Asked::Load => {
                    let connection = number(2) as u32;
                    session.asked = connection;
                    let live = (*session.native).live(connection);
                    if asked != Asked::Close
                        && let Some(rows) = live.begin()
                    {
                        pool.put(rows);
                    }
                    let native = session.native;
                    let operation = self.operation(thread, native, asked);
                    match asked {
                        Asked::Defer => Request::Defer(ConnectionNumber(connection), operation),
                        _ => Request::Operation(ConnectionNumber(connection), operation),
                    }
                }
                Asked::Rollback | Asked::Flush => {
                    let connection = number(2) as u32;
                    session.asked = connection;
                    if let Some(rows) = (*session.native).live(connection).begin() {
                        pool.put(rows);
                    }
                    match asked {
                        Asked::Flush => Request::Flush(ConnectionNumber(connection)),
                        _ => Request::Rollback(ConnectionNumber(connection)),
                    }
                }
                Asked::Ready => Request::Ready,
                Asked::Next => {
                    // A transaction is over, and its results with it: an idle session holds no row buffers.
                    for live in &mut (*session.native).results {
                        if let Some(rows) = live.rows.take() {
                            pool.put(rows);
                        }
                    }
                    Request::Next
                }
                Asked::Type => Request::Type(number(2) as u32),
                Asked::Failed => Request::Failed(failure(thread)),
                Asked::Stop => Request::Stop,
                Asked::Sleep => Request::Sleep(Nanos::from_secs_f64(number(2))),
                Asked::Claim => Request::Claim(text_at(thread, 2)),
                Asked::Barrier => Request::Barrier,
                Asked::Expect => Request::Expect(number(2) as u64),
                Asked::Log => Request::Log(text_at(thread, 2)),
                Asked::Declare => Request::Declare(declaration(thread)),
                Asked::Finished => Request::Finished { success: lua::lua_toboolean(thread, 2) != 0 },
                Asked::Died => Request::Died(failure(thread)),
                Asked::Declared => match read_declared(thread) {
                    Ok(declared) => {
                        let _ = self.declared.set(declared);
                        Request::Finished { success: true }
                    }
                    Err(error) => Request::Died(Failure { message: error.message, ..Failure::default() }),
                },
                Asked::Stray => Request::Died(Failure {
                    message: "coroutine.yield was called outside of a coroutine of the script".to_owned(),
                    ..Failure::default()
                }),
                // Even the handler failed: out of memory, or out of stack.
                Asked::Broken => Request::Died(Failure {
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
    unsafe fn operation<'a>(&'a mut self, thread: *mut lua_State, native: *mut Native, asked: Asked) -> Operation<'a> {
        // SAFETY: the caller's promise.
        unsafe {
            let statement = || StatementId(lua::lua_tonumber(thread, 3) as u32);
            match asked {
                Asked::Query => Operation::Query { sql: text_at(thread, 3) },
                Asked::Prepare => Operation::Prepare { statement: statement(), sql: text_at(thread, 4) },
                Asked::Execute | Asked::Defer => {
                    Operation::Execute { statement: statement(), parameters: &self.parameters }
                }
                Asked::Load => {
                    let loader = lua::lua_tonumber(thread, 5) as usize;
                    Operation::Load {
                        table: text_at(thread, 3),
                        columns: text_at(thread, 4),
                        rows: &(&(*native).loaders)[loader],
                    }
                }
                _ => Operation::Close { statement: statement() },
            }
        }
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

    /// Whether any session has left marks so far: while none has, there is nothing to look for after a transaction.
    #[inline]
    pub fn has_marks(&self) -> bool {
        // SAFETY: as above.
        unsafe { (*self.shared).marked }
    }

    /// Before the first session: those of the run serve `terminals` users in turn. User `n` is made ready by session
    /// `n` modulo the sessions of the run, and served by sessions of that state.
    pub fn serve_terminals(&mut self, terminals: u32) {
        // SAFETY: `core` lies at the bottom of the main stack; `shared` lives as long as `self`, and no Lua code runs
        // while `self` is borrowed.
        unsafe {
            (*self.shared).terminals = (0..terminals).map(|number| Terminal::new(self.seed, number)).collect();
            lua::lua_pushnumber(self.lua, f64::from(terminals));
            lua::lua_setfield(self.lua, 1, c"terminals".as_ptr());
        }
    }

    /// The session runs a transaction of this terminal next: its random numbers, and what scripts see of it.
    pub fn enter_terminal(&mut self, slot: Slot, terminal: u32) {
        self.turn(slot, Some(terminal));
    }

    /// The session's transaction is over; whose it was.
    pub fn leave_terminal(&mut self, slot: Slot) -> Option<u32> {
        self.turn(slot, None)
    }

    fn turn(&mut self, slot: Slot, terminal: Option<u32>) -> Option<u32> {
        let session = self.sessions[slot.0 as usize].as_ref().expect("the slot came from add_session");
        // SAFETY: both live as long as the session and the state, and no Lua code runs while `self` is borrowed.
        unsafe {
            let before = (*session.native).terminal;
            serve(&mut *self.shared, &mut *session.native, terminal);
            before
        }
    }

    /// The session's transaction is run again: if it says again how long its user will think, that is not to be added.
    pub fn run_again(&mut self, slot: Slot) {
        let session = self.sessions[slot.0 as usize].as_ref().expect("the slot came from add_session");
        // SAFETY: as for `turn`.
        let (terminal, terminals) = unsafe { ((*session.native).terminal, &mut (*self.shared).terminals) };
        if let Some(terminal) = terminal.and_then(|number| terminals.get_mut(number as usize)) {
            terminal.again = true;
        }
    }

    /// How long a terminal wanted to think since this was asked last (`assay.think`).
    pub fn take_think(&mut self, terminal: u32) -> Nanos {
        // SAFETY: `shared` lives as long as `self`, and no Lua code runs while `self` is borrowed.
        let terminals = unsafe { &mut (*self.shared).terminals };
        terminals.get_mut(terminal as usize).map_or(Nanos::ZERO, |terminal| {
            terminal.again = false;
            Nanos::from_secs_f64(std::mem::take(&mut terminal.think))
        })
    }

    /// What was acknowledged since this was asked last (`assay.acknowledge`).
    pub fn take_acknowledged(&mut self) -> Vec<Key> {
        // SAFETY: `shared` lives as long as `self`, and no Lua code runs while `self` is borrowed.
        unsafe { std::mem::take(&mut (*self.shared).acknowledged) }
    }

    /// What the session noted about the transaction it runs, or ran last. To be cleared when that is over.
    pub fn marks(&mut self, slot: Slot) -> &mut Marks {
        let session = self.sessions[slot.0 as usize].as_ref().expect("the slot came from add_session");
        // SAFETY: `native` lives as long as the session, and no Lua code runs while `self` is borrowed.
        unsafe { &mut (*session.native).marks }
    }

    /// What the session counted itself with `sb_counter_inc`/`sb_counter_add`, in the order of `SB_CNT_*`.
    pub fn counters(&self, slot: Slot) -> [u64; 8] {
        let session = self.sessions[slot.0 as usize].as_ref().expect("the slot came from add_session");
        // SAFETY: `native` lives as long as the session, and no Lua code runs while `self` is borrowed.
        unsafe { (*session.native).counters }
    }

    /// What all sessions counted themselves since this was last asked, in the order of `SB_CNT_*`.
    pub fn take_counted(&mut self) -> [u64; 8] {
        // SAFETY: `shared` lives as long as `self`, and no Lua code runs while `self` is borrowed.
        unsafe { std::mem::take(&mut (*self.shared).counted) }
    }

    /// Forgets a session, wherever it is. Its slot is reused.
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

impl Drop for State {
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

/// What a session asks for: `core.ask` in `src/lua/core.lua`, in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Connect,
    Disconnect,
    Reconnect,
    Query,
    Prepare,
    Execute,
    Close,
    Load,
    Ready,
    Next,
    Type,
    Failed,
    Stop,
    Sleep,
    Claim,
    Barrier,
    Expect,
    Log,
    Finished,
    Died,
    Declared,
    Declare,
    Rollback,
    Defer,
    Flush,
    /// The script yielded something of its own.
    Stray,
    /// Lua gave up on the coroutine.
    Broken,
}

impl Asked {
    #[inline]
    fn from_number(number: f64) -> Asked {
        use Asked::*;
        const ORDER: [Asked; 25] = [
            Connect, Disconnect, Reconnect, Query, Prepare, Execute, Close, Load, Ready, Next, Type, Failed, Stop,
            Sleep, Claim, Barrier, Expect, Log, Finished, Died, Declared, Declare, Rollback, Defer, Flush,
        ];
        ORDER.get((number as usize).wrapping_sub(1)).copied().unwrap_or(Stray)
    }
}

/// Runs a script's top level in a state of its own, and reads what it declared; `None` when it would use the database,
/// and may.
pub(crate) fn declare(script: &Script, top: &TopLevel) -> Result<Option<Declared>, ScriptError> {
    let mut state = State::open(
        script,
        &Opening {
            entry: "declare",
            entry_name: "",
            command: top.command.as_deref(),
            options: None,
            driver: top.driver,
            seed: 0,
            sessions: 1,
            distribution: Distribution::default(),
            argv: &top.argv,
            host: top.host.clone(),
            silent: false,
        },
    )?;
    let slot = state.add_session(0)?;
    let mut pool = RowsPool::default();
    loop {
        let asked = state.advance(slot, Answer::Done, &mut pool);
        match asked {
            // What it prints now, every session will print again.
            Asked::Log | Asked::Type | Asked::Expect | Asked::Declare => {}
            Asked::Declared => {
                let thread = state.sessions[slot.0 as usize].as_ref().expect("it was just resumed").thread;
                // SAFETY: the thread is suspended with the five values of `entries.declare` above the request's number.
                return unsafe { read_declared(thread) }.map(Some);
            }
            Asked::Finished => return Ok(Some(Declared::default())),
            Asked::Died | Asked::Stray | Asked::Broken => {
                let Request::Died(failure) = state.request(slot, asked, &mut pool) else {
                    unreachable!("asked to die")
                };
                return Err(ScriptError::from(&failure));
            }
            // Without a command the top level is all there is, and it may use the database: `Entry::TopLevel` runs it.
            _ if top.command.is_none() => return Ok(Some(Declared::default())),
            _ if top.host.is_some() => return Ok(None),
            _ => {
                let mut error = ScriptError::from_message(
                    "the script uses the database (or waits) at its top level, outside of any function",
                    "",
                );
                error.file = Some(script.source.display.clone());
                error.hint = Some("connect in `thread_init()`, or in the function of a command".to_owned());
                return Err(error);
            }
        }
    }
}
