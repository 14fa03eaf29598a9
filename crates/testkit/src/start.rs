//! Starting a server of a kind: from the kind to the plan that its module makes, to a `Server`.

use std::sync::OnceLock;

use anyhow::{Result, bail};

use crate::{Kind, Server, Settings, mysql, postgres};

impl Kind {
    /// Starts a server of this kind; returns once it answers queries. Takes about a second.
    pub fn start(self, settings: &Settings) -> Result<Server> {
        if let Err(why) = self.available() {
            bail!(why);
        }
        let start = match self {
            Kind::Postgres | Kind::Postgres18 => postgres::plan,
            Kind::MariaDb | Kind::MySql => mysql::plan,
            Kind::PgBouncer => bail!("a pgbouncer needs a server behind it: Server::pgbouncer"),
        };
        Server::start(self, |folder, port| start(self, settings, folder, port))
    }

    /// The server of this kind that all tests of this process share, with default settings. Starts on first use.
    ///
    /// Do not stop, suspend or reconfigure it. Panics when it cannot be started: ask `present` first.
    pub fn shared(self) -> &'static Server {
        static SHARED: [OnceLock<Server>; 5] = [const { OnceLock::new() }; 5];
        SHARED[self as usize].get_or_init(|| self.start(&Settings::default()).expect("the server starts"))
    }
}
