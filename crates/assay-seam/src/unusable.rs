//! A database that cannot be used: its host is not found, or its options cannot be satisfied.
//!
//! For front ends whose scripts may never ask for a connection: those that do get the reason.

use crate::connection::{Connection, Exchange, Progress};
use crate::database::{Database, Dialect, TlsSettings};
use crate::endpoint::Endpoint;
use crate::error::StatementError;
use crate::facts::{ServerFacts, TlsFacts};
use crate::operation::{Operation, Reply};

/// Fails every connect with this error, without a socket. `driver`: the name that scripts see.
pub fn database(driver: &'static str, error: StatementError) -> Box<dyn Database> {
    Box::new(Unusable { driver, error })
}

#[derive(Clone, Debug)]
struct Unusable {
    driver: &'static str,
    error: StatementError,
}

impl Database for Unusable {
    fn dialect(&self) -> Dialect {
        Dialect::plain(self.driver)
    }

    fn display(&self) -> String {
        format!("{}: {}", self.driver, self.error.message)
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        vec![Endpoint::Embedded]
    }

    fn tls(&self) -> TlsSettings {
        TlsSettings::default()
    }

    fn connection(&self) -> Box<dyn Connection> {
        Box::new(self.clone())
    }
}

impl Connection for Unusable {
    fn in_transaction(&self) -> bool {
        false
    }

    fn server(&self) -> ServerFacts {
        ServerFacts::default()
    }

    fn on_connected(&mut self, _: &mut Exchange<'_>) -> Progress {
        Progress::Failed(Box::new(self.error.clone()))
    }

    fn on_bytes(&mut self, _: &[u8], _: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn on_secured(&mut self, _: &TlsFacts, _: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn on_closed(&mut self) -> bool {
        false
    }

    fn on_timeout(&mut self, _: &mut Exchange<'_>) -> Progress {
        Progress::Pending
    }

    fn execute(&mut self, _: &Operation<'_>, _: &mut Exchange<'_>) -> Progress {
        Progress::Reply(Reply::failed(self.error.clone()))
    }

    fn close(&mut self, _: &mut Exchange<'_>) {}
}
