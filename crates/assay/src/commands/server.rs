//! `assay server …`: starts, lists, stops and removes servers.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, SystemTime};

use assay_lab::binaries::{self, BinarySource};
use assay_lab::product::Origin;
use assay_lab::{Account, Description, Fault, Home, Server, Status, Topology, image, topology};
use assay_process::diagnostics::{Exit, Trouble};
use assay_process::interrupt;
use assay_process::terminal;
use assay_process::url_text;
use assay_run::assignment::Assignment;
use assay_run::lab;
use assay_spec::OutputSpec;
use assay_spec::values::display_duration;

use crate::command_line::{self, ImageOptions, Invocation, ServerAction, ServerOptions, StartOptions, StopOptions};

/// Runs the requested action.
pub fn run(options: &ServerOptions) -> Result<Exit, Trouble> {
    Home::check()?;
    let home = assay_products::home();
    match &options.action {
        ServerAction::Start(options) => start(&home, options),
        ServerAction::List => list(&home),
        ServerAction::Stop(options) => stop(&home, options),
        ServerAction::Restart { name, patience } => {
            Server::open(&home, name)?.restart(Duration::from_nanos(patience.0))?;
            terminal::say(&format!("{name} restarted\n"));
            Ok(Exit::Success)
        }
        ServerAction::Kill { name } => {
            Server::open(&home, name)?.kill()?;
            terminal::say(&format!("killed {name}\n"));
            Ok(Exit::Success)
        }
        ServerAction::Log { name, lines } => {
            let server = Server::open(&home, name)?;
            terminal::result(&(server.log_tail(usize::try_from(*lines).unwrap_or(usize::MAX)) + "\n"))?;
            Ok(Exit::Success)
        }
        ServerAction::Sources { product } => sources(&home, product.as_deref()),
        ServerAction::Images(options) => images(&home, options),
        ServerAction::Shell { name } => shell(&home, name),
    }
}

fn start(home: &Home, options: &StartOptions) -> Result<Exit, Trouble> {
    lab::tell_of_stale(home);
    let description = options.description()?;
    let say = |words: &str| terminal::say(&format!("{words}\n"));
    let kept = match &options.prepare {
        None => lab::Kept::new(Topology::start(home, &description, &say)?),
        Some(line) => prepared(home, description, line, &say)?,
    };
    if interrupt::control().is_stopped() {
        return Ok(interrupt::exit());
    }
    let started = kept.topology();
    terminal::say(&told(started));
    terminal::result(&format!("{}\n", started.url()))?;
    kept.let_stay()?;
    Ok(Exit::Success)
}

/// A server with loaded data: from an image, or loaded now and kept as one.
fn prepared(home: &Home, description: Description, line: &str, say: &dyn Fn(&str)) -> Result<lab::Kept, Trouble> {
    let mut assignment = prepare_of(line, &description.wanted.product)
        .map_err(|trouble| Trouble { cause: format!("--prepare {line}: {}", trouble.cause), ..trouble })?;
    let words = assignment.spec.words().split_off(1);
    let load = |topology: &Topology| {
        assignment.spec.target.urls = vec![topology.primary.url("app").into()];
        assay_run::prepare::run(&assignment, &OutputSpec::default(), None).map(drop)
    };
    lab::load_once(home, &description, &words, say, load)?.start(home, description, say)
}

/// What the arguments of `assay prepare` ask for, without a database.
fn prepare_of(line: &str, product: &str) -> Result<Assignment, Trouble> {
    let words = url_text::shell_words(line).map_err(Trouble::usage)?;
    let words = ["assay".to_owned(), "prepare".to_owned()].into_iter().chain(words);
    // Dialects have options of their own.
    let words = words.chain([format!("--db={}", assay_products::url_of_product(product))]).map(Into::into);
    let Some(Invocation { assignment: Some(mut assignment), .. }) = command_line::parse(words)? else {
        return Err(Trouble::usage("not a workload followed by its options"));
    };
    if assignment.spec.target.urls.len() > 1 {
        return Err(Trouble::usage("--db is the server that is started"));
    }
    assignment.spec.target.urls.clear();
    Ok(assignment)
}

/// Information about servers that were just started.
fn told(started: &Topology) -> String {
    let state = started.primary.snapshot();
    let title = started.primary.product().map_or("", |product| product.title());
    let took: Duration = started.timings.iter().map(|timing| timing.took).sum();
    let name = &state.name;
    let mut text = format!(
        "{title} {} is running as {name} (user {}, {}), started in {:.1} s\n",
        state.binaries.version,
        state.account.name,
        origin(state.binaries.origin),
        took.as_secs_f64()
    );
    text += &format!("  files: {}\n", started.primary.folder().display());
    if let Some(url) = started.primary.second_url("app") {
        text += &format!("  also: {url}\n");
    }
    for replica in &started.replicas {
        text += &format!("  replica: {}\n", replica.url("app"));
    }
    for front in &started.fronts {
        text += &format!("  {}: {}\n", front.snapshot().binaries.product, front.url("app"));
    }
    if let Some(restored) = started.restored.filter(|restored| restored.bytes > 0) {
        let method = if restored.method == image::Method::Reflink { "shared blocks" } else { "copied" };
        text += &format!("  data: {} MB {method} in {:.1} s\n", restored.bytes >> 20, restored.took.as_secs_f64());
    }
    text += &lab::differences(&started.in_effect);
    text + &format!("  stop it: assay server stop {name} --remove\n")
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Named => "named binaries",
        Origin::Installed => "installed",
        Origin::Fetched => "fetched",
        Origin::Container => "container image",
    }
}

fn list(home: &Home) -> Result<Exit, Trouble> {
    lab::tell_of_stale(home);
    let row = |server: &Server| {
        let state = server.snapshot();
        let what = format!("{} {}", state.binaries.product, state.binaries.version);
        let urls: Vec<String> = [server.url("app")].into_iter().chain(server.second_url("app")).collect();
        [state.name, what, server.status().name().to_owned(), urls.join(" "), server.folder().display().to_string()]
    };
    let rows = assay_lab::server::all(home).iter().map(row).collect();
    terminal::result(&assay_report::listing(["name", "server", "state", "url", "files"], &[], rows))?;
    Ok(Exit::Success)
}

fn stop(home: &Home, options: &StopOptions) -> Result<Exit, Trouble> {
    let mut servers = Vec::new();
    if options.all_stale {
        servers.extend(topology::stale(home));
    }
    for name in &options.names {
        servers.extend(topology::group(home, name)?);
    }
    if options.names.is_empty() && !options.all_stale {
        return Err(Trouble::usage("no server given").hint("`assay server list` shows them"));
    }
    for server in servers {
        let stale = server.status() == Status::Stale;
        let ended = server.stop(Duration::from_nanos(options.patience.0))?;
        let by = match ended.by {
            None => "was not running".to_owned(),
            Some(signal) => format!("{signal}, {:.1} s", ended.took.as_secs_f64()),
        };
        let removed = options.remove || stale;
        if removed {
            server.remove()?;
        }
        terminal::say(&format!("stopped {} ({by}){}\n", server.name(), if removed { " and removed it" } else { "" }));
    }
    Ok(Exit::Success)
}

fn sources(home: &Home, named: Option<&str>) -> Result<Exit, Trouble> {
    let account = Account::choose(None)?;
    let products = match named {
        Some(name) => vec![home.products.product(name)?],
        None => home.products.databases.clone(),
    };
    let mut rows = Vec::new();
    for product in products {
        for source in binaries::sources(home, product, &account) {
            let version = binaries::version_of(&source).to_string();
            let (what, place) = match &source {
                BinarySource::Here(found) => (origin(found.origin).to_owned(), found.program.display().to_string()),
                BinarySource::Catalog(_, artifact) => {
                    let start = format!("assay server start {}:{version}", product.name());
                    (format!("can be downloaded, {} MB", artifact.megabytes), start)
                }
                BinarySource::Container(image) => {
                    (format!("image of {}", image.engine), format!("--binaries container:{}", image.name))
                }
            };
            rows.push([product.name().to_owned(), version, what, place]);
        }
    }
    let heads = ["product", "version", "source", "path, or command that downloads and starts it"];
    terminal::result(&assay_report::listing(heads, &[], rows))?;
    Ok(Exit::Success)
}

fn images(home: &Home, options: &ImageOptions) -> Result<Exit, Trouble> {
    for key in &options.remove {
        image::remove(home, key)?;
        terminal::say(&format!("removed image {key}\n"));
    }
    for key in &options.verify {
        image::verify(home, key)?;
        terminal::say(&format!("image {key} is intact\n"));
    }
    if !options.remove.is_empty() || !options.verify.is_empty() {
        return Ok(Exit::Success);
    }
    let all = image::list(home)?;
    let row = |image: &image::Image| {
        let of = if image.contents.prepared.is_empty() { "empty" } else { &*image.contents.prepared };
        let age = SystemTime::now().duration_since(image.used).unwrap_or_default();
        let age = assay_seam::Nanos::from_secs(age.as_secs());
        [
            image.key.clone(),
            format!("{} MB", image.bytes >> 20),
            format!("{} ago", display_duration(age)),
            of.to_owned(),
        ]
    };
    let rows = all.iter().map(row).collect();
    terminal::result(&assay_report::listing(["image", "size", "used", "of"], &[], rows))?;
    let sum: u64 = all.iter().map(|image| image.bytes).sum();
    let bound = image::bound()?;
    terminal::say(&format!("{} MB of {} MB ({})\n", sum >> 20, bound >> 20, image::BOUND_VARIABLE));
    Ok(Exit::Success)
}

fn shell(home: &Home, name: &str) -> Result<Exit, Trouble> {
    let server = Server::open(home, name)?;
    if server.status() != Status::Running {
        return Err(Fault::usage(format!("{name} is not running")).hint(format!("assay server restart {name}")).into());
    }
    let Some((program, arguments)) = server.client() else {
        let url = server.url("app");
        terminal::say("no client program for this server is installed; connect with this URL, no password needed:\n");
        terminal::result(&format!("{url}\n"))?;
        return Ok(Exit::Success);
    };
    // The client replaces this process, including terminal and signals.
    let error = Command::new(&program).args(arguments).exec();
    Err(Trouble::environment(format!("cannot run {}: {error}", program.display())))
}
