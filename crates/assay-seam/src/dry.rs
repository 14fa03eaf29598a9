//! A fake database: every operation succeeds immediately, without rows.
//!
//! For measuring the script itself, and for trying a script without a server.

use crate::connection::{Connection, Exchange, Progress};
use crate::database::{Database, Dialect, TlsSettings};
use crate::endpoint::Endpoint;
use crate::facts::{ServerFacts, TlsFacts};
use crate::operation::{Operation, Reply};

/// Every statement counts as executed. `driver`: the name that scripts see.
pub fn database(driver: &'static str) -> Box<dyn Database> {
    Box::new(Dry { driver })
}

#[derive(Clone, Copy, Debug)]
struct Dry {
    driver: &'static str,
}

impl Database for Dry {
    fn dialect(&self) -> Dialect {
        Dialect::plain(self.driver)
    }

    fn display(&self) -> String {
        format!("{}: nothing (dry run)", self.driver)
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        vec![Endpoint::Embedded]
    }

    fn tls(&self) -> TlsSettings {
        TlsSettings::default()
    }

    fn connection(&self) -> Box<dyn Connection> {
        Box::new(*self)
    }
}

impl Connection for Dry {
    fn in_transaction(&self) -> bool {
        false
    }

    fn server(&self) -> ServerFacts {
        ServerFacts { product: "nothing (dry run)".to_owned(), ..ServerFacts::default() }
    }

    fn on_connected(&mut self, _: &mut Exchange<'_>) -> Progress {
        Progress::Ready
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
        Progress::Reply(Reply::default())
    }

    fn close(&mut self, _: &mut Exchange<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::RowsWanted;
    use crate::rows::RowsPool;
    use crate::time::Nanos;

    #[test]
    fn everything_succeeds_and_changes_nothing() {
        let mut connection = database("mysql").connection();
        let (mut out, mut pool) = (Vec::new(), RowsPool::default());
        let mut exchange = Exchange { out: &mut out, pool: &mut pool, now: Nanos::ZERO };
        assert!(matches!(connection.on_connected(&mut exchange), Progress::Ready));
        let progress =
            connection.execute(&Operation::Query { text: b"NONSENSE", rows: RowsWanted::Keep }, &mut exchange);
        let Progress::Reply(reply) = progress else { panic!("{progress:?}") };
        assert!(reply.rows.is_none() && reply.error.is_none() && reply.affected == 0);
        assert!(out.is_empty());
    }
}
