//! The watchdog's view of a `LuaState`: which script line has blocked the worker, and a way to interrupt it.
//!
//! Lua runs no other code while it loops. But another thread may install a debug hook, which LuaJIT calls at the
//! running code's next instruction, even in compiled loops (`assay-luajit` builds it so). A C function that blocks
//! cannot be interrupted.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_luajit as lua;

/// A handle on one `LuaState` for another thread. May outlive the state.
#[derive(Clone, Debug)]
pub struct Guard {
    watch: Arc<GuardWatch>,
}

/// What the watched state and its guards share.
#[derive(Debug)]
pub(crate) struct GuardWatch {
    /// Odd while Lua runs.
    generation: AtomicU64,
    /// The generation whose position is wanted; 0: none.
    inspect: AtomicU64,
    /// The generation to interrupt; 0: none.
    interrupt: AtomicU64,
    /// Whether the hook was installed and has not removed itself since, and how often it has been called: once by the
    /// last time that `install` looked, and until now.
    is_hooked: AtomicBool,
    calls_seen: AtomicU64,
    calls: AtomicU64,
    message: Mutex<String>,
    /// With the resume that it belongs to.
    place: Mutex<Option<(u64, String)>>,
    /// Null once the state is closed.
    lua: Mutex<LuaPointer>,
}

#[derive(Debug)]
struct LuaPointer(*mut lua::lua_State);

// SAFETY: the pointer is only used for `lua_sethook`, which LuaJIT allows at any time ("can be called
// asynchronously"), and under the lock that `GuardWatch::close` takes before the state goes away.
unsafe impl Send for LuaPointer {}

/// The key in the Lua registry under which the hook finds its `GuardWatch`.
static KEY: u8 = 0;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guard {
    pub(crate) fn new(watch: &Arc<GuardWatch>) -> Guard {
        Guard { watch: Arc::clone(watch) }
    }

    /// Changes with every resume and its end; odd while Lua runs. One relaxed load.
    pub fn generation(&self) -> u64 {
        self.watch.generation.load(Ordering::Relaxed)
    }

    /// Makes the Lua code that runs in resume `generation` report its position; `place` returns it a moment later. Does
    /// nothing if that resume is over. A C function that blocks reports only when it returns. To be repeated until
    /// there is a position.
    pub fn inspect(&self, generation: u64) {
        self.watch.inspect.store(generation, Ordering::Release);
        self.install();
    }

    /// The position found by an inspection of this resume: `file:line: in function 'name'` (or `<file:line>` for a
    /// function without a name). Returned once.
    pub fn place(&self, generation: u64) -> Option<String> {
        lock(&self.watch.place).take().filter(|(of, _)| *of == generation).map(|(_, place)| place)
    }

    /// Raises a Lua error with this message in the script code that runs in resume `generation`, again and again until
    /// the resume ends, so that no `pcall` of the script can catch it for good.
    pub fn interrupt(&self, generation: u64, message: &str) {
        message.clone_into(&mut lock(&self.watch.message));
        self.watch.interrupt.store(generation, Ordering::Release);
        self.install();
    }

    /// Installs the hook, unless it is being called already. LuaJIT may be switching between interpreter and compiled
    /// code at this moment, and then it forgets to call the hook: so callers repeat this until the hook has done its
    /// work, and a hook that is not called is removed first, which makes LuaJIT build its dispatch table anew.
    fn install(&self) {
        let calls = self.watch.calls.load(Ordering::Relaxed);
        let is_called = self.watch.calls_seen.swap(calls, Ordering::Relaxed) != calls;
        if self.watch.is_hooked.swap(true, Ordering::AcqRel) && is_called {
            return;
        }
        let pointer = lock(&self.watch.lua);
        if !pointer.0.is_null() {
            // SAFETY: the state is open, since `close` needs the lock we hold; see `LuaPointer`.
            unsafe {
                lua::lua_sethook(pointer.0, None, 0, 0);
                lua::lua_sethook(pointer.0, Some(hook), lua::LUA_MASKCOUNT, 1);
            }
        }
    }
}

impl GuardWatch {
    /// Watches a state and lets the hook find this.
    ///
    /// # Safety
    /// `state` is open, and `close` is called before it is closed.
    pub(crate) unsafe fn new(state: *mut lua::lua_State) -> Arc<GuardWatch> {
        let watch = Arc::new(GuardWatch {
            generation: AtomicU64::new(0),
            inspect: AtomicU64::new(0),
            interrupt: AtomicU64::new(0),
            is_hooked: AtomicBool::new(false),
            calls_seen: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            message: Mutex::default(),
            place: Mutex::default(),
            lua: Mutex::new(LuaPointer(state)),
        });
        // SAFETY: the caller's promise; the registry gets one entry.
        unsafe {
            lua::lua_pushlightuserdata(state, (&raw const KEY).cast_mut().cast());
            lua::lua_pushlightuserdata(state, Arc::as_ptr(&watch).cast_mut().cast());
            lua::lua_rawset(state, lua::LUA_REGISTRYINDEX);
        }
        watch
    }

    /// The state is about to close: no guard touches it after this call.
    pub(crate) fn close(&self) {
        lock(&self.lua).0 = ptr::null_mut();
    }

    /// Lua starts or stops running. One relaxed store; only the state's thread calls this.
    #[inline]
    pub(crate) fn step(&self, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
    }
}

/// Called by Lua, in the state's thread, before its next instruction.
unsafe extern "C-unwind" fn hook(state: *mut lua::lua_State, activation: *mut lua::lua_Debug) {
    // SAFETY: Lua calls with a live state and activation record. Values that own memory live in `attend` and
    // `push_message`, which have returned when `lua_error` leaves this frame.
    unsafe {
        lua::lua_pushlightuserdata(state, (&raw const KEY).cast_mut().cast::<c_void>());
        lua::lua_rawget(state, lua::LUA_REGISTRYINDEX);
        let watch: *const GuardWatch = lua::lua_touserdata(state, -1).cast_const().cast();
        lua::lua_settop(state, -2);
        if watch.is_null() {
            return;
        }
        (*watch).calls.fetch_add(1, Ordering::Relaxed);
        match attend(state, activation, &*watch) {
            Attention::Done => {
                (*watch).is_hooked.store(false, Ordering::Release);
                lua::lua_sethook(state, None, 0, 0);
            }
            Attention::Wait => {}
            Attention::Raise => {
                push_message(state, activation, &*watch);
                lua::lua_error(state);
            }
        }
    }
}

enum Attention {
    /// Nothing more to do: the hook can be removed.
    Done,
    /// Our own prelude runs and must not be interrupted: wait until the script runs again, or the resume ends.
    Wait,
    Raise,
}

/// # Safety
/// As for `hook`.
unsafe fn attend(state: *mut lua::lua_State, activation: *mut lua::lua_Debug, watch: &GuardWatch) -> Attention {
    let generation = watch.generation.load(Ordering::Relaxed);
    if watch.inspect.compare_exchange(generation, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        // SAFETY: the caller's promise.
        *lock(&watch.place) = Some((generation, unsafe { script_place(state) }));
    }
    if watch.interrupt.load(Ordering::Acquire) != generation {
        return Attention::Done;
    }
    // SAFETY: the caller's promise.
    unsafe {
        lua::lua_getinfo(state, c"S".as_ptr(), activation);
        if is_script(&*activation) { Attention::Raise } else { Attention::Wait }
    }
}

/// Pushes `file:line: message`.
///
/// # Safety
/// As for `hook`.
unsafe fn push_message(state: *mut lua::lua_State, activation: *mut lua::lua_Debug, watch: &GuardWatch) {
    // SAFETY: the caller's promise; `text` is copied by Lua.
    unsafe {
        lua::lua_getinfo(state, c"Sl".as_ptr(), activation);
        let text = format!("{}: {}", place_of(&*activation), lock(&watch.message));
        lua::lua_pushlstring_(state, text.as_ptr().cast(), text.len());
    }
}

fn is_script(activation: &lua::lua_Debug) -> bool {
    // SAFETY: `lua_getinfo` with `S` has set `source` to a string.
    let source = unsafe { CStr::from_ptr(activation.source) }.to_bytes();
    !source.starts_with(b"=assay/") && source != b"=[C]"
}

fn place_of(activation: &lua::lua_Debug) -> String {
    // SAFETY: `lua_getinfo` with `S` has filled `short_src`, which ends with a zero.
    let file = unsafe { CStr::from_ptr(activation.short_src.as_ptr()) };
    format!("{}:{}", file.to_string_lossy(), activation.currentline)
}

/// The innermost frame of the script.
///
/// # Safety
/// As for `hook`.
unsafe fn script_place(state: *mut lua::lua_State) -> String {
    // SAFETY: `lua_Debug` is plain data; Lua fills it before it is read. `state` is the caller's promise.
    unsafe {
        let mut activation: lua::lua_Debug = std::mem::zeroed();
        let mut level = 0;
        while lua::lua_getstack(state, level, &mut activation) != 0 {
            lua::lua_getinfo(state, c"Sln".as_ptr(), &mut activation);
            if is_script(&activation) {
                let place = place_of(&activation);
                // A name is the caller's; for functions called by our prelude it means nothing.
                let mut caller: lua::lua_Debug = std::mem::zeroed();
                let named = !activation.name.is_null()
                    && lua::lua_getstack(state, level + 1, &mut caller) != 0
                    && lua::lua_getinfo(state, c"S".as_ptr(), &mut caller) != 0
                    && is_script(&caller);
                if !named {
                    let file = CStr::from_ptr(activation.short_src.as_ptr()).to_string_lossy();
                    return format!("{place}: in function <{file}:{}>", activation.linedefined);
                }
                return format!("{place}: in function '{}'", CStr::from_ptr(activation.name).to_string_lossy());
            }
            level += 1;
        }
    }
    "outside of the script's own code".to_owned()
}
