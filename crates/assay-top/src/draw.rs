//! The screens.

use assay_record::{Reading, ScopeKind, Status};
use assay_report::{
    Findings, IntervalFindings, ScopeFindings, TelemetryFindings, clock, count, figure as digits, in_unit,
    in_unit_per_second, ms, percent, short,
};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget, Wrap};

use crate::charts::draw_chart;
use crate::grid::{Grid, figure, figure_column, text_column, words};
use crate::seen::Seen;
use crate::server::ServerNow;
use crate::view::{Input, Screen, View};

/// Everything that is drawn, besides the user's choices.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// What is visible of the record.
    pub seen: &'a Seen,
    /// What the server says at this moment.
    pub server: &'a ServerNow,
    /// Where this comes from: a file, a URL.
    pub source: &'a str,
    /// Whether what is watched goes on.
    pub is_live: bool,
    /// The last lines for the user, such as warnings of the run.
    pub notices: &'a [String],
    /// Why there is nothing new; `None`: there is, or it is not expected.
    pub trouble: Option<&'a str>,
    /// Whether the terminal has colors, and the user wants them.
    pub color: bool,
}

/// Smaller terminals only get a line about that.
const SIZE_MIN: (u16, u16) = (60, 16);

/// Draws everything.
pub fn draw(scene: &Scene<'_>, view: &mut View, area: Rect, buffer: &mut Buffer) {
    if area.width < SIZE_MIN.0 || area.height < SIZE_MIN.1 {
        let words = format!("the terminal is too small: {} × {} is enough", SIZE_MIN.0, SIZE_MIN.1);
        return Paragraph::new(words).wrap(Wrap { trim: true }).render(area, buffer);
    }
    let [title, tabs, body, notice, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(u16::from(notice_of(scene).is_some())),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_title(scene, view, title, buffer);
    draw_tabs(view, tabs, buffer);
    view.rows = 0;
    view.row_id = None;
    let page = Page { scene, color: scene.color };
    match view.screen {
        Screen::Run => page.run(view, body, buffer),
        Screen::Waits => page.waits(view, body, buffer),
        Screen::Statements => page.statements(view, body, buffer),
        Screen::Sessions => page.sessions(view, body, buffer),
        Screen::Server => page.server(view, body, buffer),
        Screen::Machine => page.machine(view, body, buffer),
        Screen::Pooler => page.pooler(view, body, buffer),
    }
    if let Some((text, is_bad)) = notice_of(scene) {
        let style = if is_bad { colored(Color::Red, scene.color).add_modifier(Modifier::BOLD) } else { Style::new() };
        buffer.set_stringn(notice.x, notice.y, text, usize::from(notice.width), style);
    }
    draw_foot(view, foot, buffer);
    if view.help {
        draw_help(view, area, buffer);
    }
}

/// What is in a buffer, as text.
pub fn plain(buffer: &Buffer) -> String {
    let area = buffer.area;
    let line = |y: u16| {
        let cells: String = (area.x..area.right()).map(|x| buffer[(x, y)].symbol()).collect();
        cells.trim_end().to_owned() + "\n"
    };
    (area.y..area.bottom()).map(line).collect()
}

fn colored(color: Color, wanted: bool) -> Style {
    if wanted { Style::new().fg(color) } else { Style::new() }
}

fn notice_of<'a>(scene: &Scene<'a>) -> Option<(&'a str, bool)> {
    let failure = scene.seen.part.failure.as_deref();
    let trouble = scene.trouble.or(failure).map(|text| (text, true));
    trouble.or(scene.notices.last().map(|text| (text.as_str(), false)))
}

/// What runs where on the left, how far it is on the right.
fn draw_title(scene: &Scene<'_>, view: &View, area: Rect, buffer: &mut Buffer) {
    let (seen, found) = (scene.seen, &scene.seen.part);
    let mut facts = vec![format!("assay top: {}", if found.workload.is_empty() { "no load" } else { &found.workload })];
    for target in found.targets.iter().take(1).filter(|target| !target.product.is_empty()) {
        let version = target.version.split_whitespace().next().unwrap_or_default();
        facts.push(format!("{} {version}", target.product));
    }
    if found.targets.len() > 1 {
        facts.push(format!("{} servers", found.targets.len()));
    }
    if found.targets.iter().all(|target| target.product.is_empty()) && !scene.server.name.is_empty() {
        facts.push(scene.server.name.clone());
    }
    if let Some(stage) = seen.of_stage().filter(|_| !found.workload.is_empty()) {
        facts.push(if stage.sessions == 1 { "1 session".into() } else { format!("{} sessions", stage.sessions) });
        facts.extend(stage.open.map(|open| format!("{} tx/s due", digits(open.rate_per_s))));
    }
    facts.push(scene.source.to_owned());
    let left = facts.join(" · ");
    let planned = seen.planned_ns.map(|ns| format!(" of {}", clock(ns))).unwrap_or_default();
    let stage =
        if seen.stage.1 > 1 { format!("step {} of {}, ", seen.stage.0 + 1, seen.stage.1) } else { String::new() };
    let state = match (view.is_replay, view.paused, found.status) {
        (true, true, _) => "replay, paused".to_owned(),
        (true, false, _) => format!("replay ×{}", view.speed()),
        (false, true, _) => "paused".to_owned(),
        (false, false, Status::Running) if scene.is_live => "live".to_owned(),
        (false, false, Status::Running) => "no news".to_owned(),
        (false, false, Status::Complete) => "complete".to_owned(),
        (false, false, Status::Interrupted) => "interrupted".to_owned(),
        (false, false, Status::Failed) => "failed".to_owned(),
    };
    let right = format!(" {stage}{}{planned}  {state}", clock(seen.to_ns));
    let room = usize::from(area.width).saturating_sub(right.chars().count());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let left = assay_report::visible(&left, false);
    buffer.set_stringn(area.x, area.y, left, room, bold);
    buffer.set_stringn(area.x + room as u16, area.y, &right, usize::from(area.width) - room, bold);
}

fn draw_tabs(view: &View, area: Rect, buffer: &mut Buffer) {
    let mut spans = Vec::new();
    for (number, screen) in Screen::ALL.iter().enumerate() {
        let style = if *screen == view.screen { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        spans.push(Span::styled(format!("{} {}", number + 1, screen.name()), style));
        spans.push(Span::raw("  "));
    }
    if !view.filter.is_empty() {
        spans.push(Span::raw(format!("filter: {}", view.filter)));
    }
    Line::from(spans).render(area, buffer);
}

fn draw_foot(view: &View, area: Rect, buffer: &mut Buffer) {
    let mut reversed = Style::new();
    let text = if let Some(id) = &view.confirm {
        reversed = reversed.add_modifier(Modifier::REVERSED);
        format!("end session {id}, with its transaction? y: yes, any other key: no")
    } else if let Some(input) = &view.input {
        match input {
            Input::Filter(text) => format!("rows with: {text}▏ (Enter, Esc)"),
            Input::Note(text) => format!("note: {text}▏ (Enter, Esc)"),
        }
    } else if !view.message.is_empty() {
        view.message.clone()
    } else {
        let window = match view.whole {
            true => "since the start".to_owned(),
            false => format!("last {}", clock(view.width_ns())),
        };
        let note = if view.can_note { "  n note" } else { "" };
        format!("? help  q quit  space pause  t {window}  / filter  s sort{note}  w write")
    };
    buffer.set_stringn(area.x, area.y, assay_report::visible(&text, false), usize::from(area.width), reversed);
}

fn draw_help(view: &View, area: Rect, buffer: &mut Buffer) {
    let (plus, arrows) = match view.is_replay {
        true => ("faster, slower", "5 s back, forward"),
        false => ("longer, shorter time between two pictures", "5 s back, forward; pauses"),
    };
    let end = if view.is_replay { "to the start, the end" } else { "to the start, the present" };
    let quit = if view.is_own { "leave this view; the run goes on" } else { "quit" };
    let keys = [
        ("1 … 7", "run, waits, statements, sessions, server, machine, pooler"),
        ("space", "pause"),
        ("+ -", plus),
        ("← →", arrows),
        ("Home End", end),
        ("[ ]", "shorter, longer time in charts"),
        ("t", "figures of the visible time, or since the start"),
        ("↑ ↓ PgUp PgDn", "choose a row"),
        ("s", "sort by the next column"),
        ("/", "only rows with a text; Esc: all rows, as they come"),
        ("k", "on screen 4: end the chosen session, after a question"),
        ("n", "note in the run and its record"),
        ("w", "write what is seen to a file"),
        ("q", quit),
        ("Ctrl-C", if view.is_own { "end the run" } else { "quit" }),
    ];
    let width = area.width.min(76);
    let height = area.height.min(keys.len() as u16 + 2);
    let place = Rect::new(area.x + (area.width - width) / 2, area.y + (area.height - height) / 2, width, height);
    Clear.render(place, buffer);
    let lines: Vec<Line> = keys.iter().map(|(key, what)| Line::from(format!(" {key:<14} {what}"))).collect();
    Paragraph::new(lines).block(Block::bordered().title(" keys ")).render(place, buffer);
}

/// One screen.
struct Page<'a> {
    scene: &'a Scene<'a>,
    color: bool,
}

impl Page<'_> {
    fn seen(&self) -> &Seen {
        self.scene.seen
    }

    fn found(&self) -> &Findings {
        &self.scene.seen.part
    }

    /// Lines of text on top; returns what is left below.
    fn lines(&self, lines: &[String], area: Rect, buffer: &mut Buffer) -> Rect {
        let mut y = area.y;
        for line in lines {
            if y >= area.bottom() {
                break;
            }
            let text = assay_report::visible(line, false);
            buffer.set_stringn(area.x, y, text, usize::from(area.width), Style::new());
            y += 1;
        }
        Rect { y, height: area.bottom() - y, ..area }
    }

    /// Charts side by side on top, as many as leave `below` lines free; returns what is left.
    fn charts(&self, names: &[&str], below: u16, area: Rect, buffer: &mut Buffer) -> Rect {
        const HEIGHT: u16 = 9;
        let charts: Vec<_> = names.iter().filter_map(|name| self.seen().chart(name)).collect();
        let room = area.height.saturating_sub(below).max(area.height / 2);
        let rows = (room / HEIGHT).clamp(1, charts.len().div_ceil(2).max(1) as u16);
        if charts.is_empty() || area.height < HEIGHT {
            return area;
        }
        let height = (room / rows).min(16);
        for (number, pair) in charts.chunks(2).take(usize::from(rows)).enumerate() {
            let y = area.y + height * number as u16;
            let line = Rect { y, height, ..area };
            let parts = Layout::horizontal(vec![Constraint::Fill(1); pair.len()]).spacing(1).split(line);
            for (chart, part) in pair.iter().zip(parts.iter()) {
                draw_chart(chart, self.seen().from_ns, *part, buffer, self.color);
            }
        }
        let used = height * (charts.len().div_ceil(2) as u16).min(rows);
        Rect { y: area.y + used, height: area.height - used, ..area }
    }

    // ---- 1: the run

    fn run(&self, view: &mut View, area: Rect, buffer: &mut Buffer) {
        let Some(stage) = self.seen().of_stage() else {
            let words = ["nothing has been measured yet: sessions are connecting, or tables are loaded".to_owned()];
            self.lines(&words, area, buffer);
            return;
        };
        let Some(last) = stage.intervals.last() else {
            let mut lines = Vec::new();
            match self.found().workload.is_empty() {
                true => lines.push("without a load, throughput and response times are not known".to_owned()),
                false => lines.push("no interval is over yet".to_owned()),
            }
            for scope in self.seen().scopes(ScopeKind::Server) {
                let now = |name: &str| Some(format!("{name} {}/s", short(now_of(scope.metric(name)?)?)));
                let facts: Vec<String> = ["commits", "rollbacks", "statements"].into_iter().filter_map(now).collect();
                lines.extend((!facts.is_empty()).then(|| format!("the server's own counters: {}", facts.join("  "))));
            }
            let left = self.lines(&lines, area, buffer);
            self.charts(&["active", "waits", "cpu", "log", "checkpoint", "servercpu"], 0, left, buffer);
            return;
        };
        let left = self.lines(&self.figures(last), area, buffer);
        let (types, is_so_far) = self.types();
        let errors = self.errors();
        let below = types.height() + 1 + errors.len() as u16;
        let left = self.charts(&["throughput", "latency", "trouble", "types"], below, left, buffer);
        let title = match is_so_far {
            true => "by type, since the start of the step",
            false => "by type, in the visible time; percentiles by type are known at a step's end",
        };
        let left = self.lines(&[title.to_owned()], left, buffer);
        let [table, rest] = Layout::vertical([Constraint::Max(types.height()), Constraint::Fill(1)]).areas(left);
        types.draw(table, buffer, view);
        self.lines(&errors, rest, buffer);
    }

    /// The last interval, in words.
    fn figures(&self, last: &IntervalFindings) -> Vec<String> {
        let classes = &last.qps_by_class;
        let response = &last.response;
        let seconds = (last.end_ns - last.start_ns) as f64 / 1e9;
        let rate = |count: u64| short(count as f64 / seconds.max(1e-9));
        let mut second = format!(
            "errors/s {}  retries/s {}  failed/s {}  reconnects/s {}",
            rate(last.errors),
            rate(last.retries),
            rate(last.failed),
            rate(last.reconnects)
        );
        let is_open = self.seen().of_stage().is_some_and(|stage| stage.open.is_some() || stage.queue.is_some());
        if is_open {
            let due = last.due_per_s.map_or_else(|| "–".to_owned(), short);
            second += &format!("  due/s {due}  backlog {}", count(last.backlog));
        }
        let cpus = self.found().cpus;
        let mut generator = format!("generator {} of {cpus} CPUs", digits(last.cpus_used));
        if let Some(sums) = &self.seen().sums
            && let Some(lag) = sums.stages.first().map(|stage| stage.total.lag)
            && lag.count > 0
        {
            generator += &format!("  lag so far p99 {} ms, worst {} ms", ms(lag.p99_ns), ms(lag.max_ns));
        }
        vec![
            format!(
                "tx/s {}  stmt/s {} (read {} write {} other {})  sessions {}",
                short(last.tps),
                short(last.qps),
                short(classes.read),
                short(classes.write),
                short(classes.other),
                last.sessions
            ),
            format!(
                "response ms: p50 {}  p95 {}  p99 {}  slowest {}",
                ms(response.p50_ns),
                ms(response.p95_ns),
                ms(response.p99_ns),
                ms(response.max_ns)
            ),
            second,
            generator,
        ]
    }

    /// Transaction types, and whether the figures are those since the start of the step.
    fn types(&self) -> (Grid, bool) {
        let sums = self.seen().sums.as_ref().and_then(|sums| sums.stages.first());
        let mut grid = Grid::new([
            text_column("type", 20),
            figure_column("tx/s", 8),
            figure_column("share", 6),
            figure_column("p50 ms", 8),
            figure_column("p95 ms", 8),
            figure_column("p99 ms", 8),
            figure_column("failed", 7),
            figure_column("retries", 8),
        ]);
        let Some(stage) = sums.or(self.seen().of_stage()) else { return (grid, false) };
        let all: u64 = stage.total.types.iter().map(|one| one.transactions).sum();
        for one in stage.total.types.iter().filter(|one| one.transactions > 0 || one.failed > Some(0)) {
            let time = |ns: Option<u64>| figure(ns.map(|ns| ns as f64), |ns| ms(Some(ns as u64)));
            let number = |number: Option<u64>| figure(number.map(|n| n as f64), |n| count(n as u64));
            let (failed, retries) = if sums.is_some() { (one.failed, one.retries) } else { (None, None) };
            let name = if one.name.is_empty() { &self.found().workload } else { &one.name };
            let share = (all > 0).then(|| one.transactions as f64 / all as f64);
            grid.row(
                name.clone(),
                vec![
                    words(name),
                    figure(Some(one.tps), short),
                    figure(share, percent),
                    time(one.response.p50_ns),
                    time(one.response.p95_ns),
                    time(one.response.p99_ns),
                    number(failed),
                    number(retries),
                ],
            );
        }
        (grid, sums.is_some())
    }

    /// Errors since the start of the step, by code.
    fn errors(&self) -> Vec<String> {
        const MOST: usize = 6;
        let stage = self.seen().sums.as_ref().and_then(|sums| sums.stages.first());
        let errors = stage.into_iter().flat_map(|stage| &stage.total.errors_by_kind);
        let line = |error: &assay_report::ErrorFindings| {
            let code = if error.code.is_empty() { String::new() } else { format!(" {}", error.code) };
            format!("{:>8} × {}{code}: {}", count(error.count), error.class, error.message)
        };
        errors.take(MOST).map(line).collect()
    }

    // ---- 2: waits

    fn waits(&self, view: &mut View, area: Rect, buffer: &mut Buffer) {
        let Some(scope) = self.seen().scopes(ScopeKind::Server).find(|scope| scope.waits.is_some()) else {
            let why = self.absent("waits");
            self.lines(&[format!("waits of sessions are not known: {why}")], area, buffer);
            return;
        };
        let mut grid = Grid::new([
            text_column("what active sessions wait for", 40),
            figure_column("now", 8),
            figure_column("mean", 8),
            figure_column("share", 7),
            text_column("", 0),
        ])
        .choosable();
        for (number, event) in scope.waits.iter().flatten().enumerate() {
            let now = scope.wait_points.last().and_then(|(_, sessions)| sessions.get(number)).copied();
            grid.row(
                event.event.clone(),
                vec![
                    words(&event.event),
                    figure(now, digits),
                    figure(Some(event.sessions), digits),
                    figure(Some(event.share), percent),
                    words(""),
                ],
            );
        }
        let left = self.charts(&["waits", "active"], grid.height() + 1, area, buffer);
        let left = self.lines(&["sessions, by 10 looks per second; CPU: not waiting".to_owned()], left, buffer);
        grid.draw(left, buffer, view);
    }

    /// Why a metric is absent.
    fn absent(&self, metric: &str) -> String {
        let known = self.found().sampling.iter().flat_map(|sampling| &sampling.absent);
        let reason = known.filter(|one| one.metric == metric).map(|one| one.reason.clone()).next();
        let embedded = self.found().targets.iter().any(|target| target.place == assay_record::Place::Embedded);
        reason.unwrap_or_else(|| match (&self.found().sampling, embedded) {
            (_, true) => "the database is embedded in the generator".to_owned(),
            (None, _) => "the record has no telemetry (--telemetry off, or no sample yet)".to_owned(),
            (Some(_), _) => "no sample in the visible time".to_owned(),
        })
    }

    // ---- 3: statements

    fn statements(&self, view: &mut View, area: Rect, buffer: &mut Buffer) {
        let mut lines = Vec::new();
        if let Some(last) = self.seen().of_stage().and_then(|stage| stage.intervals.last()) {
            let classes = &last.qps_by_class;
            lines.push(format!(
                "the load: {} statements/s (read {}, write {}, other {})",
                short(last.qps),
                short(classes.read),
                short(classes.write),
                short(classes.other)
            ));
        }
        for scope in self.seen().scopes(ScopeKind::Server) {
            let now = |name: &str| scope.metric(name).and_then(now_of);
            if let Some(statements) = now("statements") {
                let time = now("statement_us").map(|us| format!(", {} s of execution per second", digits(us / 1e6)));
                lines.push(format!("the server: {} statements/s{}", short(statements), time.unwrap_or_default()));
            }
        }
        let left = self.lines(&lines, area, buffer);
        let statements = match &self.scene.server.statements {
            Ok(statements) => statements,
            Err(reason) => {
                self.lines(&[String::new(), format!("single statements: {reason}")], left, buffer);
                return;
            }
        };
        let (seconds, mut rows) = statements.since(view.whole);
        rows.sort_by(|one, other| other.time_us.total_cmp(&one.time_us));
        if seconds == 0.0 {
            self.lines(&["single statements: known after the second reading".to_owned()], left, buffer);
            return;
        }
        let since = if view.whole { "since the first reading" } else { "since the last reading" };
        let title = format!("by execution time {since}, {} s", digits(seconds));
        let left = self.lines(&[title], left, buffer);
        let mut grid = Grid::new([
            figure_column("calls/s", 9),
            figure_column("ms/s", 8),
            figure_column("mean ms", 8),
            figure_column("rows/s", 9),
            figure_column("misses/s", 8),
            text_column("statement", 0),
        ])
        .choosable();
        let per_s = |value: f64| if seconds > 0.0 { Some(value / seconds) } else { None };
        for row in rows {
            grid.row(
                row.id.clone(),
                vec![
                    figure(per_s(row.calls), short),
                    figure(per_s(row.time_us / 1e3), short),
                    figure((row.calls > 0.0).then(|| row.time_us / row.calls / 1e3), short),
                    figure(per_s(row.rows), short),
                    figure(row.misses.and_then(per_s), short),
                    words(row.text),
                ],
            );
        }
        grid.draw(left, buffer, view);
    }

    // ---- 4: sessions

    fn sessions(&self, view: &mut View, area: Rect, buffer: &mut Buffer) {
        let sessions = match &self.scene.server.sessions {
            Ok(sessions) => sessions,
            Err(reason) => {
                self.lines(&[format!("sessions: {reason}")], area, buffer);
                return;
            }
        };
        let wide = area.width >= 120;
        let (user, state, wait) = if wide { (14, 20, 26) } else { (9, 11, 15) };
        let mut columns = vec![text_column("id", 8), text_column("user", user)];
        if wide {
            columns.extend([text_column("database", 14), text_column("client", 22)]);
        }
        columns.extend([
            text_column("state", state),
            text_column("wait", wait),
            figure_column("age s", 7),
            text_column("statement", 0),
        ]);
        let mut grid = Grid::new(columns).choosable();
        for session in sessions {
            let mut cells = vec![words(&session.id), words(&session.user)];
            if wide {
                cells.extend([words(&session.database), words(&session.client)]);
            }
            cells.extend([
                words(&session.state),
                words(&session.wait),
                figure(session.age_s, digits),
                words(&session.statement),
            ]);
            grid.row(session.id.clone(), cells);
        }
        let end = match &self.scene.server.cannot_end {
            None => "k: end the chosen one".to_owned(),
            Some(reason) => format!("none can be ended: {reason}"),
        };
        let number = if sessions.len() == 1 { "1 session".into() } else { format!("{} sessions", sessions.len()) };
        let title = format!("{number} of the server, as it lists them now; {end}");
        let left = self.lines(&[title], area, buffer);
        grid.draw(left, buffer, view);
    }

    // ---- 5 to 7: metrics

    fn server(&self, view: &mut View, area: Rect, buffer: &mut Buffer) {
        let grid = self.metrics(ScopeKind::Server, |name| !name.starts_with("pooler_") && !is_of_process(name));
        if grid.is_empty() {
            let why = self.absent("commits");
            self.lines(&[format!("metrics of the server are not known: {why}")], area, buffer);
            return;
        }
        let names = ["checkpoint", "hits", "log", "pages", "dirty", "purge"];
        let left = self.charts(&names, grid.height().min(area.height / 2), area, buffer);
        grid.draw(left, buffer, view);
    }

    fn machine(&self, view: &mut View, area: Rect, buffer: &mut Buffer) {
        let mut grid = self.metrics(ScopeKind::Machine, |_| true);
        for (id, cells) in self.metrics(ScopeKind::Server, is_of_process).into_rows() {
            grid.row(id, cells);
        }
        let mut lines = Vec::new();
        if let Some(last) = self.seen().of_stage().and_then(|stage| stage.intervals.last()) {
            let of_server = self.seen().scopes(ScopeKind::Server).filter_map(|scope| now_of(scope.metric("cpu_us")?));
            let of_server: Vec<String> = of_server.map(|us| format!("server {}", digits(us / 1e6))).collect();
            let all = [format!("generator {}", digits(last.cpus_used))].into_iter().chain(of_server);
            let all = all.collect::<Vec<_>>().join(", ");
            lines.push(format!("CPUs used in the last interval, of {}: {all}", self.found().cpus));
        }
        if grid.is_empty() {
            let why = match self.seen().scopes(ScopeKind::Machine).next() {
                Some(_) => self.absent("cpu_user_us"),
                None => "it is another one, or no sample was taken; `--host-metrics` reads its exporter".to_owned(),
            };
            lines.push(format!("metrics of the server's machine are not known: {why}"));
            self.lines(&lines, area, buffer);
            return;
        }
        let left = self.lines(&lines, area, buffer);
        let names = ["cpu", "servercpu", "device", "memory", "pressure"];
        let left = self.charts(&names, grid.height().min(left.height / 2), left, buffer);
        grid.draw(left, buffer, view);
    }

    fn pooler(&self, view: &mut View, area: Rect, buffer: &mut Buffer) {
        let grid = self.metrics(ScopeKind::Server, |name| name.starts_with("pooler_") || is_of_replicas(name));
        let mut lines = Vec::new();
        let has = |wanted: fn(&str) -> bool| {
            let mut scopes = self.seen().scopes(ScopeKind::Server);
            scopes.any(|scope| scope.metrics.iter().any(|one| wanted(&one.metric)))
        };
        if !has(|name| name.starts_with("pooler_")) {
            let absent = self.found().sampling.iter().flat_map(|sampling| &sampling.absent);
            let reason = absent.filter(|one| one.metric.starts_with("pooler_")).map(|one| one.reason.clone()).next();
            let reason = reason.unwrap_or_else(|| "none is watched; `--pooler URL` names its admin console".to_owned());
            lines.push(format!("no figures of a pooler: {reason}"));
        }
        if !has(is_of_replicas) {
            lines.push("no lag of replicas: the server has none, or only they know it (MySQL, MariaDB)".to_owned());
        }
        let left = self.lines(&lines, area, buffer);
        if !grid.is_empty() {
            grid.draw(left, buffer, view);
        }
    }

    /// Metrics of all servers or machines, with those that are absent and why.
    fn metrics(&self, kind: ScopeKind, is_wanted: impl Fn(&str) -> bool) -> Grid {
        let mut grid = Grid::new([
            text_column("metric", 28),
            figure_column("now", 12),
            figure_column("mean", 12),
            figure_column("per tx", 9),
            figure_column("max", 12),
            text_column("source", 0),
        ])
        .choosable();
        let scopes: Vec<&ScopeFindings> = self.seen().scopes(kind).collect();
        let several = scopes.len() > 1;
        for scope in scopes {
            let name = |metric: &str| match several {
                true => format!("{metric} {}", scope.target + 1),
                false => metric.to_owned(),
            };
            for one in scope.metrics.iter().filter(|one| is_wanted(&one.metric)) {
                let is_counter = one.reading == Reading::Counter;
                let show = |value: f64| match is_counter {
                    true => in_unit_per_second(one, value),
                    false => in_unit(one, value),
                };
                let mean = if is_counter { one.per_s } else { one.mean };
                let most = one.points.iter().filter_map(|point| point.value).reduce(f64::max);
                grid.row(
                    name(&one.metric),
                    vec![
                        words(name(&one.metric)),
                        figure(now_of(one), show),
                        figure(mean, show),
                        figure(one.per_transaction, |value| in_unit(one, value)),
                        figure(most, show),
                        words(&one.source),
                    ],
                );
            }
            for one in scope.absent.iter().filter(|one| is_wanted(&one.metric)) {
                grid.row(name(&one.metric), missing(&name(&one.metric), &one.reason));
            }
        }
        let absent = self.found().sampling.iter().flat_map(|sampling| &sampling.absent);
        for one in
            absent.filter(|one| one.scope == kind && is_wanted(&one.metric) && !grid.is_empty()).collect::<Vec<_>>()
        {
            grid.row(one.metric.clone(), missing(&one.metric, &one.reason));
        }
        grid
    }
}

fn missing(metric: &str, reason: &str) -> Vec<crate::grid::Cell> {
    let none = || figure(None, digits);
    vec![words(metric), none(), none(), none(), none(), words(format!("absent: {reason}"))]
}

/// The last value, if the last sample has one.
fn now_of(one: &TelemetryFindings) -> Option<f64> {
    one.points.iter().next_back().and_then(|point| point.value)
}

fn is_of_replicas(name: &str) -> bool {
    name.starts_with("replica_")
}

/// What the kernel says about the server's processes.
fn is_of_process(name: &str) -> bool {
    const OF_PROCESS: [&str; 7] =
        ["cpu_us", "cpu_wait_us", "processes", "cycles", "instructions", "dtlb_load_misses", "llc_load_misses"];
    OF_PROCESS.contains(&name) || name.starts_with("cgroup_") || name.starts_with("hardware_")
}
