//! A malicious record.

use assay_record::*;

use crate::example::example;

/// Tries to end scripts, comments, attributes, tables, fences and lines, to control terminals, to be a formula in
/// spreadsheets, to mention people.
const ATTACK: &str = "=cmd|'/c'!A1 </script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`--><!--\
    \u{202e}\x1b[31m\0```\n# h | [l](javascript:alert(3)) @all https://evil.example \\\"} 1\n";

/// A record in which every text tries to become something else.
pub(crate) fn hostile() -> Record {
    let mut record = example();
    let attack = || ATTACK.to_owned();
    record.failure = Some(attack());
    record.status = Status::Failed;
    (record.tool.name, record.tool.version) = (attack(), attack());
    let manifest = &mut record.manifest;
    (manifest.workload, manifest.command, manifest.targets) = (attack(), vec![attack()], vec![attack(), attack()]);
    (manifest.session_sql, manifest.distribution) = (vec![attack()], Some(attack()));
    manifest.options =
        [(attack(), OptionValue::Text(attack())), ("l".into(), OptionValue::List(vec![attack()]))].into();
    manifest.event_loop = Some(EventLoop { backend: attack(), fallback: Some(attack()), batch_max: 1, polls_ns: 1 });
    let environment = &mut record.environment;
    let host = &mut environment.host;
    (host.name, host.kernel, host.cpu_model) = (attack(), attack(), attack());
    for server in &mut environment.servers {
        (server.product, server.version, server.tls) = (attack(), attack(), Some(attack()));
        server.settings = [(attack(), attack())].into();
    }
    record.types = vec![attack(), attack()];
    for rule in &mut record.rules {
        (rule.name, rule.clause) = (attack(), attack());
    }
    record.rates =
        vec![Rate { name: attack(), of: None, rolled_back: false, per_ns: 60_000_000_000, nominal: Some(1.0) }];
    for stage in &mut record.stages {
        for tally in [&mut stage.total].into_iter().chain(&mut stage.targets) {
            tally.transactions.iter_mut().for_each(|one| one.name = attack());
            tally.counters.iter_mut().for_each(|one| one.name = attack());
            for error in &mut tally.errors {
                (error.origin, error.class, error.state, error.message) = (attack(), attack(), attack(), attack());
            }
        }
    }
    record
}
