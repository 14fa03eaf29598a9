//! Help beyond what clap writes: commands grouped by purpose, examples, and the few options that `-h` shows.

use clap::Command;

/// The commands by purpose.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Measure", &["run", "top", "note", "prepare", "check", "cleanup", "exec", "list", "sql", "olap", "io"]),
    ("Compare", &["show", "compare", "explain", "duel", "bisect", "report", "tag"]),
    ("Many records", &["library", "history", "serve"]),
    ("Servers and machines", &["db", "server", "agent", "fleet"]),
    ("Experiments", &["lab"]),
    ("Write your own", &["new", "lua", "schema"]),
    ("Compatibility", &["sysbench", "pgbench"]),
    ("Shell", &["completions", "manual"]),
];

/// Examples of a command, with what each is for. A test runs them: `postgres://app@localhost/bench` stands for a
/// server, `a.json.zst` and `b.json.zst` for records.
pub const EXAMPLES: &[(&str, &[(&str, &str)])] = &[
    (
        "run",
        &[
            ("assay run oltp_read_write", "on SQLite: nothing to install"),
            (
                "assay run tpcc --db postgres://app@localhost/bench --prepare --warehouses 10 --time 5m",
                "load if needed",
            ),
            ("assay run oltp_read_only --db postgres://app@localhost/bench --sessions 1,2,4,8,16", "a ladder"),
            ("assay run tpcc --db postgres://app@localhost/bench --find-rate 'new_order.p95 < 50ms'", "the capacity"),
            ("assay run --again a.json.zst --sessions 32", "repeat a run with one difference"),
        ],
    ),
    (
        "top",
        &[
            ("assay top", "the run in progress"),
            ("assay top a.json.zst --speed 10", "replay a record"),
            ("assay top --db postgres://app@localhost/bench", "a server without a load"),
        ],
    ),
    ("note", &[("assay note 'dropped the index'", "a mark in the record of the run in progress")]),
    ("prepare", &[("assay prepare tpcc --db postgres://app@localhost/bench --warehouses 10", "")]),
    ("check", &[("assay check tpcc --db postgres://app@localhost/bench", "")]),
    ("cleanup", &[("assay cleanup tpcc --db postgres://app@localhost/bench", "")]),
    ("exec", &[("assay exec tpcc isolation --db postgres://app@localhost/bench", "the isolation tests of clause 3.4")]),
    ("list", &[("assay list", "the workloads"), ("assay list metrics", "what can be shown, with units and sources")]),
    ("show", &[("assay show a.json.zst", ""), ("assay show -v a.json.zst", "with every option and rule")]),
    (
        "compare",
        &[
            ("assay compare a.json.zst b.json.zst", "the first is the baseline"),
            ("assay compare --baseline a.json.zst --candidate b.json.zst --fail-if 'tps < -5%'", "for CI"),
        ],
    ),
    ("explain", &[("assay explain a.json.zst b.json.zst", "what moved together with the throughput")]),
    ("duel", &[("assay duel '--sessions 8' '--sessions 16' --common 'oltp_read_write --time 10s'", "")]),
    (
        "bisect",
        &[(
            "assay bisect 'oltp_read_write --server {} --prepare --time 30s' --versions postgres:9.6..18",
            "the first slower version",
        )],
    ),
    (
        "report",
        &[
            ("assay report a.json.zst --html page.html", ""),
            ("assay report a.json.zst b.json.zst --chart boxes --svg charts", ""),
        ],
    ),
    ("tag", &[("assay tag a.json.zst disk=nvme", "")]),
    (
        "db",
        &[
            ("assay db add prod postgres://app@localhost/bench", "then: assay run tpcc --db prod"),
            ("assay db add prod postgres://app@localhost/bench --force --password-command 'pass show db/prod'", ""),
            ("assay db list", ""),
            ("assay db test prod", "version, latency, rights, limits"),
            ("assay db remove prod", ""),
        ],
    ),
    (
        "library",
        &[
            ("assay library", "all records below this folder"),
            ("assay library workload=oltp_read_write since=30d 'p95<10ms'", "those of a question"),
            ("assay library workload=oltp_read_write --paths", "for others: assay compare $(assay library … --paths)"),
        ],
    ),
    (
        "history",
        &[
            ("assay history", "throughput of everything below this folder, record by record"),
            ("assay history workload=oltp_read_write --metric p95 --by version", ""),
            ("assay history --by day --format markdown --fail-if-worse", "for CI"),
        ],
    ),
    ("serve", &[("assay serve --listen 127.0.0.1:8642", "pages over all records below this folder, until Ctrl-C")]),
    (
        "server",
        &[
            ("assay server start postgres:17", "installs it if needed"),
            ("assay server list", ""),
            ("assay server stop", ""),
        ],
    ),
    ("sql", &[("assay sql --db postgres://app@localhost/bench 'select 1' 'select 2'", "which one is faster?")]),
    ("olap", &[("assay olap flights --db postgres://app@localhost/bench", "after: assay prepare flights")]),
    ("io", &[("assay io --size 8G --direct", "in this folder, past the page cache")]),
    (
        "lab",
        &[
            ("assay lab list", "the recipes"),
            ("assay lab plan versions --scale tiny", "what would be done, and how long it takes"),
            ("assay lab run versions --scale tiny", ""),
            ("assay lab show", "tables and charts of the last experiment"),
        ],
    ),
    ("agent", &[("assay agent --nats nats://10.0.0.5:4222", "on each load machine")]),
    ("fleet", &[("assay fleet status --nats nats://10.0.0.5:4222", "")]),
    (
        "new",
        &[
            ("assay new workload transfers", "then: assay run ./transfers.lua"),
            ("assay new workload jobs --from queue", "a copy of a built-in workload"),
            ("assay new recipe commits", "then: assay lab run ./commits.toml --scale tiny"),
        ],
    ),
    ("lua", &[("assay lua stubs assay.lua", "for lua-language-server: list it in workspace.library")]),
    ("schema", &[("assay schema recipe", "for taplo: `assay new recipe` writes it, too")]),
    ("completions", &[("assay completions bash", "for ~/.bashrc: source <(assay completions bash)")]),
    ("manual", &[("assay manual man", "then: man -l man/assay-run.1")]),
];

/// What `-h` says about a command with many options: these, in short. Other commands show all of theirs.
const BRIEF: &[(&str, &[(&str, &str)])] = &[(
    "run",
    &[
        ("workload", "Built-in workload (see `assay list`) or Lua file"),
        ("db", "postgres://…, mysql://…, mariadb://…, mongodb://…, duckdb:FILE or sqlite:FILE"),
        ("server", "Start a server for this run, such as postgres:17"),
        ("sessions", "Concurrent sessions; a list such as 1,2,4 is a ladder"),
        ("time", "Measured part, such as 30s or 10m [default: 10s]"),
        ("warmup", "Before the measured part"),
        ("rate", "Transactions due per second, however slow the server is"),
        ("find-rate", "Find the highest rate that keeps 'p99 < 10ms'"),
        ("prepare", "Prepare the tables first if they are missing"),
        ("again", "Repeat the run of a record"),
        ("record", "Path of the record"),
    ],
)];

/// Adds the examples, and groups the commands.
pub(super) fn with_examples(mut command: Command) -> Command {
    for (name, _) in EXAMPLES {
        command = command.mut_subcommand(*name, |one| one.after_help(examples(name)));
    }
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// The same with only the most important options, in short: for `-h`.
pub(super) fn brief(mut command: Command) -> Command {
    for (name, kept) in BRIEF {
        command = command.mut_subcommand(*name, |one| {
            let hint = format!("All options: assay {name} --help\n\n{}", examples(name));
            let short = |argument: clap::Arg| {
                let key = argument.get_long().unwrap_or(argument.get_id().as_str()).to_owned();
                match kept.iter().find(|(option, _)| *option == key) {
                    Some((_, words)) => {
                        let takes_value = argument.get_action().takes_values() && !argument.is_positional();
                        argument.help(*words).help_heading(None).hide_default_value(takes_value)
                    }
                    None => argument.hide(true),
                }
            };
            one.mut_args(short).after_help(hint)
        });
    }
    command
}

fn examples(name: &str) -> String {
    let of = EXAMPLES.iter().find(|(command, _)| *command == name).map_or(&[][..], |(_, examples)| examples);
    let line = |(words, purpose): &(&str, &str)| match *purpose {
        "" => format!("  {words}"),
        purpose => format!("  {words}\n      {purpose}"),
    };
    format!("Examples:\n{}", of.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (purpose, names) in GROUPS {
        text += &format!("{purpose}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            text += &format!("  {name:11}  {}\n", about.unwrap_or_default());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::command_line::options::CommandLine;

    #[test]
    fn every_command_is_in_one_group_and_has_an_example() {
        let command = CommandLine::command();
        let all: BTreeSet<&str> = command.get_subcommands().map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), all);
        assert_eq!(grouped.len(), all.len());
        // These two explain themselves in their own words.
        let shown: BTreeSet<&str> = EXAMPLES.iter().map(|(name, _)| *name).chain(["sysbench", "pgbench"]).collect();
        assert_eq!(shown, all);
    }

    #[test]
    fn the_short_help_of_run_fits_a_screen() {
        let mut command = brief(with_examples(CommandLine::command())).term_width(100);
        let help = command.find_subcommand_mut("run").unwrap().render_help().to_string();
        assert!(help.lines().count() <= 36, "{} lines:\n{help}", help.lines().count());
    }
}
