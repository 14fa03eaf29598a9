//! From an empty folder to a stopped server.

use std::fs;
use std::path::Path;
use std::time::Duration;

use assay_client::Client;
use assay_lab::fault::{At, Result};
use assay_lab::process::runs_on_it;
use assay_lab::product::{Lifecycle, Product as _, Role, ServerSetting, Settled, Site};
use assay_lab::version::Version;
use nix::sys::signal::Signal;

use super::{Mongo, set};

impl Lifecycle for Mongo {
    /// The servers make what they need in an empty folder.
    fn initialize(&self, site: &Site<'_>, _: &[ServerSetting]) -> Result<()> {
        fs::create_dir_all(site.data).at("create", site.data)?;
        site.account.own(site.data)
    }

    /// There are no users, and a database comes into being with its first collection.
    fn first_statements(&self) -> &'static [&'static str] {
        &[]
    }

    fn check_ready(&self, session: &mut Client, site: &Site<'_>, role: &Role) -> std::result::Result<(), String> {
        session.rows(r#"{"ping": 1}"#)?;
        set::check_ready(session, site, role)
    }

    fn is_data(&self, data: &Path) -> bool {
        let file = match self {
            Mongo::MongoDb => "WiredTiger",
            Mongo::FerretDb => "state.json",
        };
        data.join(file).is_file()
    }

    /// FerretDB leaves no mark.
    fn in_use(&self, data: &Path) -> Option<String> {
        runs_on_it(&fs::read_to_string(data.join("mongod.lock")).ok()?, "mongod")
    }

    fn administrator(&self, site: &Site<'_>) -> String {
        format!("mongodb://127.0.0.1:{}/admin?directConnection=true", site.port)
    }

    fn socket_url(&self, site: &Site<'_>, database: &str) -> String {
        self.url(site.port, false, database)
    }

    fn client(&self, site: &Site<'_>) -> (&'static [&'static str], Vec<String>) {
        (&["mongosh", "mongo"], vec![self.url(site.port, true, "app")])
    }

    /// No deferred work is known.
    fn settle(&self, _: &mut Client, _: &Version, _: Duration) -> std::result::Result<Settled, String> {
        Ok(Settled { reached: Vec::new(), complete: true })
    }

    fn checkpoint(&self, session: &mut Client, _: &Version, _: Duration) -> std::result::Result<Settled, String> {
        if *self == Mongo::MongoDb {
            session.rows(r#"{"fsync": 1, "$db": "admin"}"#)?;
        }
        Ok(Settled { reached: Vec::new(), complete: true })
    }

    fn stop_signals(&self) -> &'static [Signal] {
        &[Signal::SIGTERM]
    }
}
