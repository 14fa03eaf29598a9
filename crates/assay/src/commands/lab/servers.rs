//! What an experiment needs of this machine, checked before it starts: programs, known settings, disk space.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use assay_lab::{Account, Home, binaries, image};
use assay_recipe::{Action, Recipe, Server};

use crate::commands::lab::setup::{Lines, description};
use crate::commands::lab::trial::loading;
use crate::diagnostics::Trouble;
use crate::lab;

/// The part of `plan` about servers.
pub(super) struct Found {
    /// A line for each product and for everything that is missing.
    pub(super) text: String,
    /// A line about the disk.
    pub(super) disk: String,
}

/// Checks the servers of all cells. Missing programs are reported; an unknown setting is an error.
pub(super) fn look(recipe: &Recipe, lines: &[Lines]) -> Result<Found, Trouble> {
    let home = Home::usual();
    let mut products: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut checked: Vec<&Server> = Vec::new();
    let mut images = BTreeMap::new();
    let (mut copies, mut unknown) = (0, BTreeSet::new());
    for (cell, lines) in recipe.cells.iter().zip(lines) {
        let mut of_cell = 0;
        for (name, server) in &cell.setup.server {
            let Some(product) = &server.product else {
                products.entry(format!("{name}: already running")).or_insert(None);
                continue;
            };
            let missing = missing(&home, server)?;
            let is_here = missing.is_none();
            let known = products.entry(product.clone()).or_insert(None);
            *known = known.take().or(missing);
            if !is_here {
                continue;
            }
            let described = description(server)?;
            let programs = described.find_binaries(&home, &|_| {})?;
            if !checked.contains(&server) {
                described.check_settings(&programs)?;
                checked.push(server);
            }
            let Some(words) = &lines.prepare else { continue };
            let loading = loading(&described, &cell.setup, words, &programs)?;
            let line = words.join(" ");
            let key = loading.contents(&programs, &line, &lab::hash_of_workload(words.first()))?.key();
            let kept = image::list(&home)?.into_iter().find(|one| one.key == key);
            match kept {
                Some(kept) => {
                    images.insert(key, kept.bytes);
                    of_cell += kept.bytes * u64::from(1 + server.replicas);
                }
                None => {
                    unknown.insert(key);
                }
            }
        }
        copies = copies.max(of_cell);
    }
    let mut text = String::new();
    for (product, missing) in &products {
        text += &match missing {
            None => format!("  {product}\n"),
            Some(reason) => format!("  {product}: missing: {reason}\n"),
        };
    }
    for (name, server) in &recipe.cells[0].setup.server {
        if server.replicas > 0 {
            text += &format!("  {} behind {name}\n", count(server.replicas as usize, "replica"));
        }
        let fronts: Vec<&str> = server.front.keys().map(String::as_str).collect();
        if !fronts.is_empty() {
            text += &format!("  {} before {name}\n", fronts.join(", "));
        }
    }
    let drops = recipe.steps.iter().any(|step| step.action == Action::DropCaches);
    if drops && !nix::unistd::geteuid().is_root() {
        text += "  drop_caches: missing: only root can empty the page cache\n";
    }
    Ok(Found { text, disk: disk(&home, &images, copies, unknown.len()) })
}

/// Why the server's program is not available, or its description cannot be applied here.
fn missing(home: &Home, server: &Server) -> Result<Option<String>, Trouble> {
    let described = match description(server) {
        Err(trouble) => return Ok(Some(trouble.cause)),
        Ok(described) => described,
    };
    if described.binaries.is_some() {
        return Ok(None);
    }
    let wanted = &described.wanted;
    let all = binaries::sources(home, binaries::product(&wanted.product)?, &Account::choose(None)?);
    let fits = all.iter().any(|source| wanted.fits(&binaries::version_of(source)));
    Ok((!fits).then(|| format!("see `assay server sources {}`", wanted.product)))
}

/// `images`: bytes of existing ones. `copies`: of the data of one trial. `unknown`: images that do not exist yet.
fn disk(home: &Home, images: &BTreeMap<String, u64>, copies: u64, unknown: usize) -> String {
    let free = Command::new("df").args(["--output=avail", "-B1"]).arg(existing(&home.cache)).output().ok();
    let free = free.and_then(|output| {
        String::from_utf8_lossy(&output.stdout).lines().nth(1).and_then(|line| line.trim().parse::<u64>().ok())
    });
    let free = free.map_or(String::new(), |free| format!("; {} free in {}", size(free), home.cache.display()));
    let kept: u64 = images.values().sum();
    match (images.is_empty(), unknown) {
        (true, 0) => String::new(),
        (true, _) => format!("disk: unknown until the data has been loaded once{free}\n"),
        (false, 0) => {
            format!("disk: {} for images, {} for a trial{free}\n", size(kept), size(copies))
        }
        (false, more) => format!(
            "disk: {} for images, {} for a trial; {} not loaded yet{free}\n",
            size(kept),
            size(copies),
            count(more, "image")
        ),
    }
}

/// The folder itself, or its nearest existing parent.
fn existing(path: &std::path::Path) -> &std::path::Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(path)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        more => format!("{:.1} GB", more as f64 / 1e9),
    }
}

/// `3 cells`.
pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
