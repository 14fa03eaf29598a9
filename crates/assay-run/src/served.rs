//! The page of a report that grows: `assay run --serve`, and `assay serve RECORD`.
//!
//! One thread takes the events of the run, which never waits for it, and counts versions. The page is made when a
//! viewer asks for it, once per version for all of them; new versions are announced so rarely that making pages takes a
//! three-hundredth of a CPU. Nothing can be changed through it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use assay_io::process::Usage;
use assay_process::diagnostics::Trouble;
use assay_process::events;
use assay_process::web::{self, Answer, Version, Versions};
use assay_record::{Event, Fold, Follow, Record, Status};

use crate::identity;

const HTML: &str = "text/html; charset=utf-8";
/// A new version at most this often.
const VERSION_EVERY: Duration = Duration::from_secs(2);
/// Making pages takes at most one part in this many of a CPU.
const SHARE: u32 = 300;
/// After the run, viewers get this long to fetch the last page.
const LAST_WITHIN: Duration = Duration::from_secs(5);
/// Between two looks at a record that grows.
const LOOK: Duration = Duration::from_secs(1);

/// A page that is served until the process ends.
#[derive(Clone)]
pub struct Served {
    shared: Arc<Shared>,
    /// Where it is, for a browser.
    pub url: String,
}

struct Shared {
    /// Its name in the report.
    name: Mutex<String>,
    course: Mutex<Course>,
    made: Mutex<Made>,
    versions: Versions,
}

/// What is known of the run.
#[derive(Default)]
struct Course {
    fold: Fold,
    /// The record of a run that is over.
    whole: Option<Record>,
}

#[derive(Default)]
struct Made {
    /// The page, and its version.
    page: Option<(u64, Arc<str>)>,
    /// CPU time of the last one.
    cost: Duration,
    /// Versions that a viewer has fetched up to now.
    fetched: u64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Served {
    /// Serves the run of this process, and those after it; a second call continues with the first one's page.
    pub fn own(address: SocketAddr) -> Result<Served, Trouble> {
        if let Some(served) = OWN.get() {
            return Ok(served.clone());
        }
        let served = Served::begin(address)?;
        let (shared, events) = (Arc::clone(&served.shared), events::subscribe());
        let _ = std::thread::Builder::new().name("page".to_owned()).spawn(move || take(&shared, &events));
        Ok(OWN.get_or_init(|| served).clone())
    }

    /// Serves a record, while it grows and afterwards.
    pub fn record(address: SocketAddr, path: &Path) -> Result<Served, Trouble> {
        let whole = Record::read(path)?;
        let mut follow = (whole.status == Status::Running).then(|| Follow::open(path)).transpose()?;
        let served = Served::begin(address)?;
        *locked(&served.shared.name) = path.display().to_string();
        let shared = Arc::clone(&served.shared);
        let Some(follow) = &mut follow else {
            served.over(whole);
            return Ok(served);
        };
        for event in follow.news()? {
            locked(&shared.course).fold.take(event);
        }
        let (sender, events) = mpsc::channel();
        let mut follow = Follow::open(path)?;
        let _ = std::thread::Builder::new().name("record".to_owned()).spawn(move || {
            while let Ok(news) = follow.news() {
                let is_over = news.iter().any(|event| matches!(event, Event::Ended(_)));
                if news.into_iter().any(|event| sender.send(Arc::new(event)).is_err()) || is_over {
                    return;
                }
                std::thread::sleep(LOOK);
            }
        });
        let _ = std::thread::Builder::new().name("page".to_owned()).spawn(move || take(&shared, &events));
        Ok(served)
    }

    fn begin(address: SocketAddr) -> Result<Served, Trouble> {
        let shared = Arc::new(Shared {
            name: Mutex::default(),
            course: Mutex::default(),
            made: Mutex::default(),
            versions: Versions::default(),
        });
        let answering = Arc::clone(&shared);
        let answer = move |path: &str| match path {
            "/" => Answer::of(HTML, assay_report::live_html()),
            "/report" => match answering.page() {
                Some(page) => Answer::of(HTML, page.as_bytes()),
                None => Answer::missing("nothing has been measured yet"),
            },
            "/events" => answering.versions.answer(),
            _ => Answer::missing("nothing is here"),
        };
        let listening = web::serve(address, "pages", answer).map_err(|error| {
            Trouble::environment(format!("cannot serve the page at {address}"))
                .detail(error.to_string())
                .hint("choose another address or port with --serve=ADDRESS:PORT")
        })?;
        Ok(Served { shared, url: listening.url })
    }

    /// A run begins; its record will have this name.
    pub fn begins(&self, name: String) {
        *locked(&self.shared.name) = name;
        locked(&self.shared.course).whole = None;
    }

    /// A run is over: the page is its report.
    pub fn over(&self, mut record: Record) {
        identity::complete(&mut record);
        locked(&self.shared.course).whole = Some(record);
        self.shared.announce(false);
    }

    /// The process is about to end: viewers get the last page.
    pub fn finish() {
        let Some(served) = OWN.get() else { return };
        let is_watched = served.shared.versions.viewers() > 0;
        served.shared.announce(true);
        let last = served.shared.versions.newest().number;
        let begun = Instant::now();
        while is_watched && begun.elapsed() < LAST_WITHIN {
            std::thread::sleep(Duration::from_millis(20));
            if locked(&served.shared.made).fetched >= last {
                // The answer is on its way.
                std::thread::sleep(Duration::from_millis(200));
                return;
            }
        }
    }
}

/// The page of this process's runs.
static OWN: OnceLock<Served> = OnceLock::new();

impl Shared {
    fn announce(&self, is_last: bool) {
        let number = self.versions.newest().number + 1;
        self.versions.set(Version { number, is_last });
    }

    /// The newest page; `None`: nothing has begun.
    fn page(&self) -> Option<Arc<str>> {
        let mut made = locked(&self.made);
        let number = self.versions.newest().number;
        if let Some((known, page)) = &made.page
            && *known == number
        {
            let page = Arc::clone(page);
            made.fetched = number;
            return Some(page);
        }
        let before = Usage::of_thread().cpu();
        let name = locked(&self.name).clone();
        let course = locked(&self.course);
        let findings = match (&course.whole, course.fold.record()) {
            (Some(record), _) | (None, Some(record)) => assay_report::findings(record),
            (None, None) => return None,
        };
        drop(course);
        let report = assay_report::report(vec![(name, findings)]);
        let page: Arc<str> = assay_report::html(&report, &[]).into();
        made.cost = Duration::from_nanos((Usage::of_thread().cpu() - before).0);
        made.page = Some((number, Arc::clone(&page)));
        made.fetched = number;
        Some(page)
    }
}

/// Takes events, and announces versions.
fn take(shared: &Shared, events: &Receiver<Arc<Event>>) {
    let (mut told, mut is_new) = (None::<Instant>, false);
    loop {
        match events.recv_timeout(Duration::from_millis(500)) {
            Ok(event) => {
                is_new |= matches!(*event, Event::Interval(_) | Event::Ended(_) | Event::StageEnded(_));
                locked(&shared.course).fold.take(Arc::unwrap_or_clone(event));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return shared.announce(true),
        }
        let every = (locked(&shared.made).cost * SHARE).max(VERSION_EVERY);
        if is_new && told.is_none_or(|at| at.elapsed() >= every) {
            (told, is_new) = (Some(Instant::now()), false);
            shared.announce(false);
        }
    }
}
