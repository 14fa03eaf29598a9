//! The whole terminal, for views that are drawn: taken over, drawn on, given back.
//!
//! Drawn on stderr, because stdout is for results. While it is taken, other lines for the user wait, and appear when it
//! is given back, which a panic does, too. A terminal that goes away is an error of the next call.

use std::io::{self, Stderr, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use assay_top::Key;
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
}

static TAKEN: AtomicBool = AtomicBool::new(false);

impl Screen {
    /// Takes the terminal over.
    pub fn open() -> io::Result<Screen> {
        if !terminal::stderr_is_terminal() {
            return Err(io::Error::other("stderr is not a terminal"));
        }
        take()?;
        match Terminal::with_options(CrosstermBackend::new(io::stderr()), TerminalOptions::default()) {
            Ok(terminal) => Ok(Screen { terminal }),
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
        if !event::poll(within)? {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => key_of(key).map(Some),
            Event::Resize(..) => Some(None),
            _ => None,
        })
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
