//! What the user has chosen with keys: the screen, its order and filter, the instant.

use crate::seen::WIDTHS;

/// A key, as far as one means anything here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Return.
    Enter,
    /// Escape.
    Esc,
    /// Backspace.
    Backspace,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

/// What a key asks of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing but another picture.
    Draw,
    /// To end.
    Quit,
    /// To end the run.
    Interrupt,
    /// To stop this program for now.
    Suspend,
    /// To write what is seen to a file.
    Save,
    /// To note something in the run.
    Note(String),
    /// To end a session of the server.
    EndSession(String),
}

/// A screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// Throughput, response times, errors, the generator.
    #[default]
    Run,
    /// What active sessions wait for.
    Waits,
    /// Statements of the server.
    Statements,
    /// Sessions of the server.
    Sessions,
    /// Counters and levels of the server.
    Server,
    /// CPU, devices, memory.
    Machine,
    /// The pooler in front of the server.
    Pooler,
}

impl Screen {
    /// All of them, on keys 1 to 7.
    pub const ALL: [Screen; 7] = [
        Screen::Run,
        Screen::Waits,
        Screen::Statements,
        Screen::Sessions,
        Screen::Server,
        Screen::Machine,
        Screen::Pooler,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Screen::Run => "run",
            Screen::Waits => "waits",
            Screen::Statements => "statements",
            Screen::Sessions => "sessions",
            Screen::Server => "server",
            Screen::Machine => "machine",
            Screen::Pooler => "pooler",
        }
    }
}

/// A line that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A filter of rows.
    Filter(String),
    /// A note.
    Note(String),
}

/// Seconds that an arrow moves.
const STEP_NS: u64 = 5_000_000_000;
/// Speeds of a replay.
const SPEEDS: [f64; 9] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 300.0];
/// Seconds between two pictures of what goes on.
const INTERVALS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0];
const NOTE_MAX: usize = 200;

/// The user's choices.
#[derive(Clone, Debug)]
pub struct View {
    /// The screen.
    pub screen: Screen,
    /// Help covers it.
    pub help: bool,
    /// The instant does not move.
    pub paused: bool,
    /// The instant, since the start of the run; `None`: the present.
    pub at_ns: Option<u64>,
    /// How far the run is: the instant cannot be later.
    pub length_ns: u64,
    /// A record is played; otherwise a run or a server is watched.
    pub is_replay: bool,
    /// What is watched can be interrupted from here.
    pub is_own: bool,
    /// Notes can be written.
    pub can_note: bool,
    /// Averages are those since the start, not of the visible time.
    pub whole: bool,
    /// Index into the widths of charts.
    pub width: usize,
    /// Column by which rows are sorted, modulo their number; `None`: as they come.
    pub sort: Option<usize>,
    /// Rows without this text are hidden.
    pub filter: String,
    /// The chosen row.
    pub row: usize,
    /// Number of rows, as last drawn.
    pub rows: usize,
    /// The id of the chosen row, as last drawn.
    pub row_id: Option<String>,
    /// A line that is being typed.
    pub input: Option<Input>,
    /// The session that would be ended after another key.
    pub confirm: Option<String>,
    /// A line about what has just happened.
    pub message: String,
    /// Index into the speeds of a replay.
    pub speed_number: usize,
    /// Index into the times between two pictures.
    pub interval_number: usize,
}

impl Default for View {
    fn default() -> View {
        View {
            screen: Screen::Run,
            help: false,
            paused: false,
            at_ns: None,
            length_ns: 0,
            is_replay: false,
            is_own: false,
            can_note: false,
            whole: false,
            width: 2,
            sort: None,
            filter: String::new(),
            row: 0,
            rows: 0,
            row_id: None,
            input: None,
            confirm: None,
            message: String::new(),
            speed_number: 2,
            interval_number: 2,
        }
    }
}

impl View {
    /// A view that plays a record of this length from its start, `speed` times as fast as it happened.
    pub fn replay(length_ns: u64, at_ns: u64, speed: f64) -> View {
        let nearest =
            |one: &f64, other: &f64| (one.ln() - speed.ln()).abs().total_cmp(&(other.ln() - speed.ln()).abs());
        let nearest = SPEEDS.iter().copied().min_by(nearest).unwrap_or(1.0);
        let at = SPEEDS.iter().position(|known| *known == nearest).unwrap_or(2);
        View { is_replay: true, at_ns: Some(at_ns.min(length_ns)), length_ns, speed_number: at, ..View::default() }
    }

    /// How much faster than it happened a record is played.
    pub fn speed(&self) -> f64 {
        SPEEDS[self.speed_number]
    }

    /// Seconds between two pictures.
    pub fn interval_s(&self) -> f64 {
        INTERVALS[self.interval_number]
    }

    /// The visible length of time.
    pub fn width_ns(&self) -> u64 {
        WIDTHS[self.width]
    }

    /// Time has passed: a replay goes on.
    pub fn passed(&mut self, ns: u64) {
        if let (true, false, Some(at)) = (self.is_replay, self.paused, &mut self.at_ns) {
            let step = (ns as f64 * SPEEDS[self.speed_number]) as u64;
            *at = at.saturating_add(step).min(self.length_ns);
        }
    }

    /// A key was pressed.
    pub fn key(&mut self, key: Key) -> Action {
        self.message.clear();
        if key == Key::Interrupt {
            return if self.is_own { Action::Interrupt } else { Action::Quit };
        }
        if key == Key::Suspend {
            return Action::Suspend;
        }
        if let Some(id) = self.confirm.take() {
            return match key {
                Key::Char('y' | 'Y') => Action::EndSession(id),
                _ => {
                    self.message = "nothing was ended".to_owned();
                    Action::Draw
                }
            };
        }
        if self.input.is_some() {
            return self.typed(key);
        }
        if self.help {
            self.help = false;
            return if key == Key::Char('q') { Action::Quit } else { Action::Draw };
        }
        match key {
            Key::Char('q') => return Action::Quit,
            Key::Char('w') => return Action::Save,
            Key::Char('?' | 'h') => self.help = true,
            Key::Char(digit @ '1'..='7') => {
                let number = digit as usize - '1' as usize;
                self.screen = Screen::ALL[number];
                (self.row, self.sort) = (0, None);
            }
            Key::Char(' ') => self.pause(),
            Key::Char('+' | '=') => self.faster(true),
            Key::Char('-') => self.faster(false),
            Key::Char(']') => self.width = (self.width + 1).min(WIDTHS.len() - 1),
            Key::Char('[') => self.width = self.width.saturating_sub(1),
            Key::Char('t') => self.whole = !self.whole,
            Key::Char('s') => self.sort = Some(self.sort.map_or(0, |sort| sort + 1)),
            Key::Char('/') => self.input = Some(Input::Filter(self.filter.clone())),
            Key::Char('n') if self.can_note => self.input = Some(Input::Note(String::new())),
            Key::Char('n') => self.message = "notes belong to a run in progress".to_owned(),
            Key::Char('k') if self.screen == Screen::Sessions => self.confirm = self.row_id.clone(),
            Key::Char('k') => self.message = "sessions are ended on screen 4".to_owned(),
            Key::Esc => {
                self.filter.clear();
                self.sort = None;
            }
            Key::Up => self.row = self.row.saturating_sub(1),
            Key::Down => self.row = (self.row + 1).min(self.rows.saturating_sub(1)),
            Key::PageUp => self.row = self.row.saturating_sub(10),
            Key::PageDown => self.row = (self.row + 10).min(self.rows.saturating_sub(1)),
            Key::Left => self.seek(|at| at.saturating_sub(STEP_NS)),
            Key::Right => self.seek(|at| at.saturating_add(STEP_NS)),
            Key::Home => self.seek(|_| 0),
            Key::End => {
                // Back to the present, or the end of a record.
                self.at_ns = self.is_replay.then_some(self.length_ns);
                self.paused = self.is_replay && self.paused;
            }
            Key::Char(_) | Key::Enter | Key::Backspace | Key::Interrupt | Key::Suspend => {}
        }
        Action::Draw
    }

    fn typed(&mut self, key: Key) -> Action {
        let Some(input) = &mut self.input else { return Action::Draw };
        let (Input::Filter(text) | Input::Note(text)) = input;
        match key {
            Key::Char(c) if text.chars().count() < NOTE_MAX => text.push(c),
            Key::Backspace => _ = text.pop(),
            Key::Esc => self.input = None,
            Key::Enter => {
                let input = self.input.take();
                match input {
                    Some(Input::Filter(text)) => (self.filter, self.row) = (text, 0),
                    Some(Input::Note(text)) if !text.trim().is_empty() => {
                        return Action::Note(text.trim().to_owned());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Action::Draw
    }

    fn pause(&mut self) {
        self.paused = !self.paused;
        if !self.is_replay {
            self.at_ns = self.paused.then_some(self.length_ns);
        } else if !self.paused && self.at_ns == Some(self.length_ns) {
            // From the start again.
            self.at_ns = Some(0);
        }
    }

    fn faster(&mut self, faster: bool) {
        if self.is_replay {
            let now = self.speed_number;
            self.speed_number = if faster { (now + 1).min(SPEEDS.len() - 1) } else { now.saturating_sub(1) };
            self.message = format!("speed ×{}", self.speed());
        } else {
            // + makes the interval longer, as in other programs of this kind.
            let now = self.interval_number;
            self.interval_number = if faster { (now + 1).min(INTERVALS.len() - 1) } else { now.saturating_sub(1) };
            self.message = format!("a new picture every {} s", self.interval_s());
        }
    }

    /// Moves the instant; the present stands still from then on.
    fn seek(&mut self, to: impl Fn(u64) -> u64) {
        let at = to(self.at_ns.unwrap_or(self.length_ns)).min(self.length_ns);
        self.at_ns = Some(at);
        self.paused |= !self.is_replay;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, keys: &str) -> Action {
        keys.chars().fold(Action::Draw, |_, key| view.key(if key == '\n' { Key::Enter } else { Key::Char(key) }))
    }

    #[test]
    fn a_replay_is_paused_sought_and_played_faster() {
        let mut view = View::replay(60_000_000_000, 0, 1.0);
        view.passed(1_000_000_000);
        assert_eq!(view.at_ns, Some(1_000_000_000));
        press(&mut view, "+ ");
        view.passed(1_000_000_000);
        assert_eq!((view.at_ns, view.paused, view.speed()), (Some(1_000_000_000), true, 2.0));
        view.key(Key::Right);
        press(&mut view, " ");
        view.passed(1_000_000_000);
        assert_eq!(view.at_ns, Some(8_000_000_000));
        view.passed(u64::MAX);
        assert_eq!(view.at_ns, Some(60_000_000_000));
    }

    #[test]
    fn the_present_stands_still_while_paused_and_comes_back_with_end() {
        let mut view = View { length_ns: 9_000_000_000, ..View::default() };
        view.key(Key::Left);
        assert_eq!((view.at_ns, view.paused), (Some(4_000_000_000), true));
        view.key(Key::End);
        assert_eq!((view.at_ns, view.paused), (None, false));
    }

    #[test]
    fn a_session_is_ended_only_after_y() {
        let mut view = View { row_id: Some("17".into()), ..View::default() };
        assert_eq!(press(&mut view, "k"), Action::Draw);
        assert_eq!(view.confirm, None, "only on its screen");
        press(&mut view, "4k");
        assert_eq!(press(&mut view, "n"), Action::Draw);
        press(&mut view, "k");
        assert_eq!(press(&mut view, "y"), Action::EndSession("17".into()));
    }

    #[test]
    fn what_is_typed_is_a_note_or_a_filter_and_no_command() {
        let mut view = View { can_note: true, ..View::default() };
        assert_eq!(press(&mut view, "nquit q\n"), Action::Note("quit q".into()));
        assert_eq!(press(&mut view, "n  \n"), Action::Draw, "an empty one is none");
        press(&mut view, "/lock\n");
        assert_eq!(view.filter, "lock");
        view.key(Key::Esc);
        assert_eq!(view.filter, "");
        let mut replay = View::default();
        press(&mut replay, "n");
        assert_eq!((replay.input, replay.message.is_empty()), (None, false));
    }
}
