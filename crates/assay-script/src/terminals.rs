//! Users without their own session, served in turn by the sessions of a state.

use assay_luajit as lua;
use assay_seam::Nanos;

use crate::native::{Terminal, serve};
use crate::request::Slot;
use crate::state::LuaState;

impl LuaState {
    /// Must be called before the first session: the run's sessions serve `terminals` users in turn. User `n` is
    /// initialized by session `n` modulo the sessions of the run, and served by sessions of that state.
    pub fn serve_terminals(&mut self, terminals: u32) {
        // SAFETY: `core` lies at the bottom of the main stack; `shared` lives as long as `self`, and no Lua code runs
        // while `self` is borrowed.
        unsafe {
            (*self.shared).terminals = (0..terminals).map(|number| Terminal::new(self.seed, number)).collect();
            lua::lua_pushnumber(self.lua, f64::from(terminals));
            lua::lua_setfield(self.lua, 1, c"terminals".as_ptr());
        }
    }

    /// The session runs a transaction of this terminal next: with its random numbers, and its view for scripts.
    pub fn enter_terminal(&mut self, slot: Slot, terminal: u32) {
        self.turn(slot, Some(terminal));
    }

    /// The session's transaction is over; returns its terminal.
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

    /// The session's transaction is retried: if the script again says how long its user will think, that is not added.
    pub fn run_again(&mut self, slot: Slot) {
        let session = self.sessions[slot.0 as usize].as_ref().expect("the slot came from add_session");
        // SAFETY: as for `turn`.
        let (terminal, terminals) = unsafe { ((*session.native).terminal, &mut (*self.shared).terminals) };
        if let Some(terminal) = terminal.and_then(|number| terminals.get_mut(number as usize)) {
            terminal.again = true;
        }
    }

    /// How long a terminal wanted to think since the last call (`assay.think`).
    pub fn take_think(&mut self, terminal: u32) -> Nanos {
        // SAFETY: `shared` lives as long as `self`, and no Lua code runs while `self` is borrowed.
        let terminals = unsafe { &mut (*self.shared).terminals };
        terminals.get_mut(terminal as usize).map_or(Nanos::ZERO, |terminal| {
            terminal.again = false;
            Nanos::from_secs_f64(std::mem::take(&mut terminal.think))
        })
    }
}
