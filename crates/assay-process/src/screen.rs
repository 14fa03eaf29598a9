//! The whole terminal, for views that are drawn: taken over, drawn on, given back.
//!
//! Drawn on stderr, because stdout is for results. While it is taken, other lines for the user wait, and appear when it
//! is given back, which a panic does, too. A terminal that goes away is an error of the next call.

use std::fs::File;
use std::io::{self, IsTerminal, Stderr, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay_top::Key;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions};

use crate::terminal;

/// The terminal, taken over. It is given back when this is dropped.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    /// Where keys come from.
    keys: File,
}

static TAKEN: AtomicBool = AtomicBool::new(false);

impl Screen {
    /// Takes the terminal over.
    pub fn open() -> io::Result<Screen> {
        if !terminal::stderr_is_terminal() {
            return Err(io::Error::other("stderr is not a terminal"));
        }
        let keys = keys()?;
        take()?;
        match Terminal::with_options(CrosstermBackend::new(io::stderr()), TerminalOptions::default()) {
            Ok(terminal) => Ok(Screen { terminal, keys }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws a picture, and returns it.
    pub fn draw(&mut self, picture: impl FnOnce(Rect, &mut Buffer)) -> io::Result<Buffer> {
        let drawn = self.terminal.draw(|frame| picture(frame.area(), frame.buffer_mut()))?;
        Ok(drawn.buffer.clone())
    }

    /// Waits for a key: `Some(None)` is a change of the size, `None` is nothing within the time.
    pub fn key(&mut self, within: Duration) -> io::Result<Option<Option<Key>>> {
        // Keys that were read together with an earlier one are there already.
        let is_there = self.has_event()? || self.is_readable(within)? && self.has_event()?;
        if !is_there {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => key_of(key).map(Some),
            Event::Resize(..) => Some(None),
            _ => None,
        })
    }

    /// From a terminal that has gone, the library would read nothing for ever.
    fn has_event(&self) -> io::Result<bool> {
        self.is_readable(Duration::ZERO)?;
        event::poll(Duration::ZERO)
    }

    /// Whether there is something to read, or a signal came, such as that of a new size.
    fn is_readable(&self, within: Duration) -> io::Result<bool> {
        let mut watched = [PollFd::new(self.keys.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
        match poll(&mut watched, timeout) {
            Err(Errno::EINTR) => return Ok(true),
            found => found?,
        };
        let found = watched[0].revents().unwrap_or(PollFlags::empty());
        if found.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) {
            return Err(io::Error::other("it has gone"));
        }
        Ok(found.contains(PollFlags::POLLIN))
    }

    /// Gives the terminal back, stops this process until somebody continues it, and takes it over again.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGTSTP)?;
        take()?;
        self.terminal.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// As crossterm chooses it.
fn keys() -> io::Result<File> {
    let stdin = io::stdin();
    if stdin.is_terminal() { Ok(stdin.as_fd().try_clone_to_owned()?.into()) } else { File::open("/dev/tty") }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    terminal::hold(true);
    execute!(io::stderr(), EnterAlternateScreen, cursor::Hide).inspect_err(|_| restore())
}

/// Gives the terminal back, if it is taken: also before the process ends in another way.
pub fn restore() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(io::stderr(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
    let _ = io::stderr().flush();
    terminal::hold(false);
}

fn key_of(key: KeyEvent) -> Option<Key> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c') if control => Key::Interrupt,
        KeyCode::Char('z') if control => Key::Suspend,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
