//! The same seed gives every session the same statements, as the server received them.

use std::collections::BTreeMap;

use testkit::{Server, ServerSetup};

use crate::common::Folder;
use crate::on_every_version;

/// By session, in the order of sending: the statements that use tables, with their parameters inserted.
fn statements(server: &Server, tag: &str) -> Vec<Vec<String>> {
    let mut sessions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in server.log_tail(usize::MAX).lines() {
        let Some((session, said)) = line.strip_prefix(&format!("{tag}|")).and_then(|rest| rest.split_once('|')) else {
            continue;
        };
        let sent = sessions.entry(session.to_owned()).or_default();
        match said.split_once(": ") {
            // `statement: TEXT` or `execute NAME: TEXT`; names differ between connections.
            Some(("LOG", rest)) => sent.push(rest.split_once(": ").map_or(rest, |(_, text)| text).replace('\'', "")),
            // `Parameters: $1 = '7', $2 = '8'`, of the previous statement.
            Some(("DETAIL", rest)) => {
                let text = sent.last_mut().unwrap();
                for (number, value) in rest.split('$').filter_map(|part| part.split_once(" = ")) {
                    *text = text.replace(&format!("${number}"), value.split('\'').nth(1).unwrap());
                }
            }
            _ => {}
        }
    }
    let touching = |sent: Vec<String>| sent.into_iter().filter(|text| text.contains(" sbtest")).collect::<Vec<_>>();
    sessions.into_values().map(touching).filter(|sent| !sent.is_empty()).collect()
}

/// Sessions whose statements match those of one in `others`, up to the length of the shorter one.
fn alike(one: &[Vec<String>], others: &[Vec<String>]) -> usize {
    let same = |a: &Vec<String>, b: &Vec<String>| a.iter().zip(b).all(|(a, b)| a == b);
    one.iter().filter(|session| others.iter().any(|other| same(session, other))).count()
}

#[test]
fn the_same_seed_sends_the_same_statements() {
    on_every_version(|kind| {
        let config = ["log_statement = all", "log_line_prefix = '%a|%c|'"].map(str::to_owned).to_vec();
        let server = kind.start(&ServerSetup { config, ..ServerSetup::default() }).unwrap();
        let folder = Folder::new();
        let common = format!("oltp_read_write --db {} --tables 3 --table-size 1000", server.url("app"));
        folder.expect(&format!("prepare {common}"), 0);
        let runs = [("first", 7), ("second", 7), ("other", 8), ("simple", 7)].map(|(tag, seed)| {
            // One worker and two: the seed counts, not which worker drives the session.
            let workers = if tag == "second" { 1 } else { 2 };
            let prepared = if tag == "simple" { "off" } else { "on" };
            let url = format!("{}?application_name={tag}", server.url("app"));
            let line = common.replace(&server.url("app"), &url);
            folder.expect(
                &format!(
                    "run {line} --sessions 3 --transactions 30 --seed {seed} --workers {workers} --prepared {prepared} \
                     --ignore-errors 23505 --no-record"
                ),
                0,
            );
            statements(&server, tag)
        });
        let [first, second, other, simple] = runs;
        assert!(first.len() == 3 && first.iter().all(|session| session.len() > 10), "{first:?}");
        assert_eq!(alike(&first, &second), 3, "{first:?}\n{second:?}");
        assert_eq!(alike(&first, &simple), 3, "{first:?}\n{simple:?}");
        assert_eq!(alike(&first, &other), 0, "{first:?}\n{other:?}");
    });
}
