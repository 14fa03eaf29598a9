//! pgbench's built-in scripts, as listed in its manual ("What is the "Transaction" Actually Performed in pgbench?").

/// A built-in script.
#[derive(Debug, PartialEq, Eq)]
pub struct Builtin {
    /// As on the command line.
    pub name: &'static str,
    /// As in reports, without the frame `<builtin: …>`.
    pub title: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! numbers {
    () => {
        "\\set aid random(1, 100000 * :scale)\n\\set bid random(1, 1 * :scale)\n\\set tid random(1, 10 * :scale)\n\
         \\set delta random(-5000, 5000)\n"
    };
}
macro_rules! account {
    () => {
        "UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
    };
}
macro_rules! history {
    () => {
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n"
    };
}

/// All of them, in the order in which they are listed.
pub const BUILTINS: [Builtin; 3] = [
    Builtin {
        name: "tpcb-like",
        title: "TPC-B (sort of)",
        text: concat!(
            numbers!(),
            "BEGIN;\n",
            account!(),
            "UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n",
            "UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n",
            history!(),
            "END;\n"
        ),
    },
    Builtin {
        name: "simple-update",
        title: "simple update",
        text: concat!(numbers!(), "BEGIN;\n", account!(), history!(), "END;\n"),
    },
    Builtin {
        name: "select-only",
        title: "select only",
        text: "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    },
];

impl Builtin {
    /// `<builtin: TPC-B (sort of)>`.
    pub fn shown(&self) -> String {
        format!("<builtin: {}>", self.title)
    }

    /// The output of `--show-script`.
    pub fn listing(&self) -> String {
        format!("-- {}: {}\n{}\n", self.name, self.shown(), self.text)
    }
}

/// The output of `-b list`.
pub fn list() -> String {
    let lines = BUILTINS.iter().map(|builtin| format!("  {:>13}: {}\n", builtin.name, builtin.shown()));
    format!("Available builtin scripts:\n{}\n", lines.collect::<String>())
}

/// The script whose name starts with this; or what is wrong with the name.
pub fn find(name: &str) -> Result<&'static Builtin, String> {
    let found: Vec<&Builtin> = BUILTINS.iter().filter(|builtin| builtin.name.starts_with(name)).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(format!("no builtin script found for name \"{name}\"")),
        _ => Err(format!("ambiguous builtin name: {} builtin scripts found for prefix \"{name}\"", found.len())),
    }
}
