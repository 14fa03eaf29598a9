//! Queries outside the load: interrupted by Ctrl-C, with a line about long waits.

use assay_seam::{Nanos, ServerFacts};
use assay_telemetry::{Identity, identity_sql};

use assay_process::{interrupt, terminal};

pub use assay_client::{Client, Refused, Sent, Waiting, text, words_of};

/// The user, who may press Ctrl-C.
pub static USER: &dyn Waiting = &User;

struct User;

impl Waiting for User {
    fn is_over(&self) -> bool {
        interrupt::control().is_stopped()
    }

    fn waited(&self, server: &str, time: Nanos) {
        let seconds = time.as_secs_f64();
        terminal::say(&format!("no answer from {server} for {seconds:.0} s; press Ctrl-C to end\n"));
    }
}

/// What the server says it is: several products log in as another.
pub fn identity(client: &mut Client, patience: Nanos) -> Identity {
    let ServerFacts { product, version, .. } = client.server();
    let mut row = |sql: &str| {
        let rows = (!sql.is_empty()).then(|| client.ask(sql, patience).ok()).flatten();
        rows.map(|rows| (0..rows.columns(0)).map(|column| text(&rows, 0, column)).collect::<Vec<_>>())
    };
    let answer: Option<Vec<String>> = row(identity_sql(&product)).and_then(|row| row.into_iter().collect());
    let Some(answer) = answer else { return Identity::of_login(&product, &version) };
    let found = Identity::of_answer(&product, &version, &answer);
    match row(found.more_sql) {
        Some(more) => found.refine(&more),
        None => found,
    }
}
