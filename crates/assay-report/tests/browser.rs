//! Pages as a reader sees them: in a headless browser, at two widths, in dark mode and on paper.

#[path = "../../assay-record/tests/example/mod.rs"]
mod example;
mod hostile;

use std::path::Path;

use assay_record::*;
use assay_report::*;
use example::example;
use hostile::hostile;
use serde_json::Value;
use testkit::{Browser, BrowserView};

const WIDE: BrowserView = BrowserView { width: 1400, height: 900, dark: false };
const NARROW: BrowserView = BrowserView { width: 390, height: 800, dark: false };

/// Scrolls to every visible chart, as a reader would; returns how many are drawn then.
const DRAWN: &str = "new Promise((done) => { const figures = [...document.querySelectorAll('figure')]; let [at, patience] = [0, 600]; \
    const drawn = (figure) => figure.dataset.drawn || !figure.checkVisibility(); \
    const step = () => { while (at < figures.length && drawn(figures[at])) at++; \
    if (at === figures.length || patience-- === 0) return done(figures.filter((figure) => figure.dataset.drawn).length); \
    figures[at].scrollIntoView(); setTimeout(step, 20); }; step(); })";

struct Page {
    browser: Browser,
}

impl Page {
    fn open(&mut self, records: &[Record], view: BrowserView) {
        let file = |number: usize| format!("r{number}.json.zst");
        let records = records.iter().enumerate().map(|(number, record)| (file(number), findings(record)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        std::fs::write(&path, html(&report(records.collect()), &[])).unwrap();
        self.browser.open(&path, view).unwrap();
        assert_eq!(self.browser.requests(), [format!("file://{}", path.display())]);
    }

    #[track_caller]
    fn check(&mut self, expression: &str, expected: impl Into<Value>) {
        assert_eq!(self.browser.evaluate(expression).unwrap(), expected.into(), "{expression}");
    }

    /// Nothing is clipped, no errors; keeps a screenshot for people to look at.
    #[track_caller]
    fn is_sound(&mut self, name: &str) {
        // Charts adapt to the window's width in its next frame; frames are only made when something looks.
        self.browser.screenshot().unwrap();
        self.browser.evaluate("new Promise((done) => setTimeout(done, 100)).then(() => 0)").unwrap();
        let wide = "[...document.querySelectorAll('body *')].filter((one) => !one.closest('.wide, svg') && \
            one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 200))";
        self.check(wide, Value::Array(vec![]));
        self.browser.evaluate("scrollTo(0, 0)").unwrap();
        let picture = self.browser.screenshot().unwrap();
        std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}.png")), picture).unwrap();
        assert_eq!(self.browser.complaints(), [""; 0]);
    }
}

/// One browser for all tests: starting it takes longer than everything they do.
#[test]
fn a_page_can_be_read_zoomed_printed_and_used_by_keyboard() {
    if !Browser::present() {
        return;
    }
    let mut page = Page { browser: Browser::start().unwrap() };
    one_record(&mut page);
    empty_seconds(&mut page);
    long_tables(&mut page);
    several_records(&mut page);
    hostile_records(&mut page);
    a_library_of_ten_thousand_records(&mut page);
}

fn one_record(page: &mut Page) {
    page.open(&[example()], WIDE);
    page.check("document.querySelector('h1').textContent", "120,000 spm with 64 sessions, shop p99 4.96 ms");
    // The workload's own measure of throughput comes first.
    page.check("document.querySelectorAll('.figures dd')[0].textContent", "120,000 per min");
    page.check("document.querySelectorAll('.figures dd')[1].textContent", "2,400 tx/s");
    page.check(DRAWN, 10);
    // The result is on the first screen, however many warnings there are.
    page.browser.evaluate("scrollTo(0, 0)").unwrap();
    page.check("document.querySelector('.figures').getBoundingClientRect().bottom < innerHeight", true);
    page.check("document.querySelector('details.warning').open", false);
    page.check(
        "[...document.querySelectorAll('.warning')].map((one) => one.textContent.includes('failed')).at(-1)",
        true,
    );
    // Something was painted on every canvas.
    page.check(
        "[...document.querySelectorAll('canvas')].every((canvas) => new Uint32Array(canvas.getContext('2d') \
            .getImageData(0, 0, canvas.width, canvas.height).data.buffer).some((pixel) => pixel !== 0))",
        true,
    );
    // By keyboard: to the first second, further, zoom in, and back.
    let readout = "document.querySelector('#chart-throughput-1 .readout').textContent";
    let output = "document.querySelector('#chart-throughput-1 .value').textContent";
    let whole = "document.querySelector('#chart-throughput-1 .tools button').hidden";
    page.browser.evaluate("document.querySelector('#chart-throughput-1 .plot').focus()").unwrap();
    page.browser.press("ArrowRight").unwrap();
    page.check(readout, "0:01 · 16 sessions · 6 errors");
    // What a screen reader hears includes the values.
    let heard = "document.querySelector('#chart-throughput-1 .heard').textContent";
    page.check(heard, "0:01, transactions/s 1,200, due/s 1,300, 16 sessions, 6 errors");
    page.check(output, "1,200");
    page.browser.press("End").unwrap();
    page.check(output, "2,400");
    page.check(whole, true);
    page.browser.press("Home").unwrap();
    page.browser.press("+").unwrap();
    page.check(whole, false);
    page.browser.press("0").unwrap();
    page.check(whole, true);
    // A line can be hidden, and the table has what the chart has.
    page.browser.evaluate("document.querySelectorAll('#chart-latency-1 .legend button')[1].click()").unwrap();
    page.check("document.querySelectorAll('#chart-latency-1 .legend button')[1].getAttribute('aria-pressed')", "false");
    page.browser.evaluate("document.querySelector('#chart-throughput-1 .behind').open = true").unwrap();
    let cells = "new Promise((done) => setTimeout(() => done([...document.querySelectorAll( \
        '#chart-throughput-1 .behind tbody td')].map((cell) => cell.textContent).join(' '))))";
    page.check(cells, "1 1,200 1,300 2 1,200 1,300 3.1 2,400 2,600 4.1 2,400 2,600");
    // Every chart can be saved, and the address has the part that is shown.
    let saved = "new Promise((done) => { const saved = []; URL.createObjectURL = (one) => (saved.push(one), '#'); \
        HTMLAnchorElement.prototype.click = () => {}; const tools = document.querySelectorAll('#chart-throughput-1 .tools button'); \
        [...tools].filter((one) => ['CSV', 'SVG', 'PNG'].includes(one.textContent)).forEach((one) => one.click()); \
        const look = () => saved.length < 3 ? setTimeout(look, 20) : done(saved.map((one) => one.type).sort().join(' ')); look(); })";
    page.check(saved, "image/png image/svg+xml text/csv");
    page.browser.evaluate("document.querySelector('#chart-latency-1 .plot').focus()").unwrap();
    page.browser.press("+").unwrap();
    let linked = "new Promise((done) => { const look = () => /^#chart-latency-1&from=[0-9.]+&to=[0-9.]+$/.test(location.hash) \
        ? done(true) : setTimeout(look, 20); look(); })";
    page.check(linked, true);
    page.browser.evaluate("location.hash = '#chart-latency-1&from=0&to=2'").unwrap();
    let zoomed = "new Promise((done) => { const look = () => document.querySelector('#chart-latency-1 .tools button').hidden \
        ? setTimeout(look, 20) : done(true); look(); })";
    page.check(zoomed, true);
    page.browser.press("0").unwrap();
    // Any two lines can be drawn over each other.
    page.browser.evaluate("document.querySelector('.explore .plot').scrollIntoView()").unwrap();
    let explored = "new Promise((done) => { const look = () => document.querySelector('.explore canvas') ? done(true) \
        : setTimeout(look, 20); look(); })";
    page.check(explored, true);
    page.is_sound("wide");
    page.browser.resize(BrowserView { dark: true, ..WIDE }).unwrap();
    page.check("getComputedStyle(document.body).backgroundColor", "rgb(20, 22, 26)");
    page.is_sound("dark");
    page.browser.resize(NARROW).unwrap();
    page.check("document.querySelector('#chart-throughput-1 .plot').clientWidth <= 390", true);
    // No cell is a column of syllables.
    let tall = "[...document.querySelectorAll('td')].filter((one) => one.checkVisibility() && \
        one.getBoundingClientRect().height > 4.5 * parseFloat(getComputedStyle(one).lineHeight)).map((one) => one.textContent)";
    page.check(tall, Value::Array(vec![]));
    page.is_sound("narrow");
    assert!(page.browser.pdf().unwrap().starts_with(b"%PDF"));
    page.is_sound("after-print");
    // On paper nothing scrolls, so nothing may be wider than the paper.
    page.browser.print_preview(718).unwrap();
    page.browser.evaluate("dispatchEvent(new Event('beforeprint'))").unwrap();
    page.is_sound("paper");
    page.check(
        "[...document.querySelectorAll('.wide, canvas')].filter((one) => one.checkVisibility() && \
            (one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > innerWidth + 1)).length",
        0,
    );
}

fn empty_seconds(page: &mut Page) {
    let mut record = example();
    record.stages[0].intervals[1].response = Latencies::default();
    page.open(&[record], WIDE);
    page.check(DRAWN, 10);
    page.browser.evaluate("document.querySelector('#chart-heat-1 .plot').focus()").unwrap();
    page.browser.press("ArrowRight").unwrap();
    page.browser.press("ArrowRight").unwrap();
    let readout = "document.querySelector('#chart-heat-1 .readout').textContent.split(' · ').at(-1)";
    page.check(readout, "no transactions");
}

/// A table of tens of thousands of rows is built only as far as it is read.
fn long_tables(page: &mut Page) {
    let mut record = example();
    record.stages.truncate(1);
    let stage = &mut record.stages[0];
    let interval = stage.intervals[0].clone();
    stage.measured_ns = 3_600_000_000_000;
    stage.intervals =
        (0..3600).map(|second| Interval { start_ns: second * 1_000_000_000, ..interval.clone() }).collect();
    page.open(&[record], WIDE);
    let heat = "document.querySelector('#chart-heat-1 .behind')";
    page.browser.evaluate(&format!("{heat}.open = true")).unwrap();
    let rows = format!("new Promise((done) => setTimeout(() => done({heat}.querySelectorAll('tbody tr').length)))");
    page.check(&rows, 500);
    page.browser.evaluate(&format!("{heat}.querySelector('button').click()")).unwrap();
    page.check(&rows, 1000);
    // Types, statements and errors never change in it: they are closed.
    page.check(DRAWN, 5);
    page.check("document.querySelector('#chart-throughput-1 .legend').textContent.includes('median of 91 s')", true);
}

fn several_records(page: &mut Page) {
    let mut other = example();
    other.manifest.session_sql = vec!["SET synchronous_commit TO off".into()];
    page.open(&[example(), other], WIDE);
    page.check("document.querySelectorAll('div.record').length", 2);
    page.check("document.querySelector('#record-2 summary').textContent", "SET synchronous_commit TO off");
    page.check("document.querySelectorAll('#chart-throughput-all').length", 1);
    // Charts of the single records are drawn when they are opened.
    page.check(DRAWN, 7);
    page.browser.evaluate("document.querySelector('#record-2 > details').open = true").unwrap();
    page.check(DRAWN, 13);
    page.is_sound("several");
}

fn hostile_records(page: &mut Page) {
    page.open(&[hostile(), hostile(), example()], NARROW);
    page.browser.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)").unwrap();
    page.browser.evaluate(DRAWN).unwrap();
    page.check("document.querySelectorAll('img').length", 0);
    page.check("document.querySelectorAll('script').length", 3);
    page.check("document.querySelectorAll('a:not([href^=\"#\"])').length", 0);
    page.is_sound("hostile");
}

fn a_library_of_ten_thousand_records(page: &mut Page) {
    const NUMBER: u64 = 10_000;
    let workload = |number: u64| ["tpcc", "oltp_read_only"][number as usize % 2].to_owned();
    let version = |number: u64| ["15.14", "16.10", "17.6"][(number * 3 / NUMBER) as usize].to_owned();
    let tps = |number: u64| 1000.0 + (number * 7919 % 101) as f64;
    let started = |number: u64| Time::from_unix_ms(1_767_225_600_000 + number * 600_000);
    let tags = |number: u64| [("commit".to_owned(), format!("c{number:05}"))].into();
    let entries: Vec<LibraryEntry> = (0..NUMBER)
        .map(|number| LibraryEntry {
            path: format!("{number:05} \u{e4}.json.zst"),
            started: started(number),
            elapsed_ns: 10_000_000_000,
            outcome: if number % 100 == 99 { "failed" } else { "complete" }.into(),
            workload: workload(number),
            task: "run".into(),
            product: "PostgreSQL".into(),
            version: version(number),
            machine: format!("lab{}", number % 7),
            sessions: "16".into(),
            tps: Some(tps(number)),
            p95_ns: Some(6.5e6),
            tags: tags(number),
        })
        .collect();
    let records: Vec<HistoryRecord> = (0..NUMBER)
        .map(|number| HistoryRecord {
            path: format!("{number:05}.json.zst"),
            started: started(number),
            value: tps(number),
            machine: format!("lab{}", number % 7),
            workload: workload(number),
            product: "PostgreSQL".into(),
            version: version(number),
            tags: tags(number),
            settings: std::sync::Arc::default(),
        })
        .collect();
    let history = |by| {
        let metric = Metric { name: "tps".into(), unit: MetricUnit::PerSecond, better: Better::Higher };
        history(records.clone(), &HistoryAsked { metric, by, margin: 0.03, notes: Vec::new() })
    };
    let (by_time, by_version) = (history(HistoryBy::Time), history(HistoryBy::Version));
    let html = library_html(&entries, &by_time, &by_version, |_| None);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.html");
    std::fs::write(&path, html).unwrap();
    page.browser.open(&path, WIDE).unwrap();
    assert_eq!(page.browser.requests(), [format!("file://{}", path.display())]);
    let number = "document.getElementById('number').textContent";
    let rows = "document.querySelectorAll('#rows tr').length";
    page.check(number, "10,000 of 10,000 records");
    page.check(rows, 200);
    // The latest first, with a link that leads to its file.
    let first = "document.querySelector('#rows tr td:last-child a').getAttribute('href')";
    page.check(first, "09999%20%C3%A4.json.zst");
    page.browser.evaluate("document.getElementById('more').click()").unwrap();
    page.check(rows, 400);
    let choose = |column: u32, value: &str| {
        format!(
            "(() => {{ const one = document.querySelector('[data-filter=\"{column}\"]'); one.value = '{value}'; \
            one.dispatchEvent(new Event('change')); }})()"
        )
    };
    page.browser.evaluate(&choose(6, "failed")).unwrap();
    page.check(number, "100 of 10,000 records");
    page.browser.evaluate(&choose(6, "")).unwrap();
    // All words must be there; sorting by throughput.
    page.browser
        .evaluate(
            "(() => { const one = document.getElementById('words'); one.value = 'TPCC commit=c0001'; \
             one.dispatchEvent(new Event('input')); })()",
        )
        .unwrap();
    page.check(number, "5 of 10,000 records");
    page.browser.evaluate("document.querySelector('th[data-sort=\"4\"]').click()").unwrap();
    let column =
        "[...document.querySelectorAll('#rows td:nth-child(5)')].map((td) => Number(td.textContent.replace(',', '')))";
    page.check(
        &format!("(() => {{ const all = {column}; return all.every((one, at) => !at || all[at - 1] >= one); }})()"),
        true,
    );
    // The grid: tests and machines by versions.
    page.check(
        "[...document.querySelectorAll('.grid th')].map((th) => th.textContent).join(' ')",
        "what 15.14 16.10 17.6",
    );
    page.check("document.querySelectorAll('.grid tbody tr').length", 14);
    page.check("document.querySelectorAll('.grid tbody td.figure').length", 42);
    page.is_sound("library");
}
