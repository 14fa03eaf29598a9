//! Names of figures and of transaction types, checked before the first trial: a misspelled one would be noticed after
//! it.

use assay_process::diagnostics::{Trouble, nearest};
use assay_telemetry::METRICS;

use crate::library;
use crate::workload::Workload;

/// Figures of every load; those of latencies have these ends.
const OF_LOAD: [&str; 8] = [
    "tps",
    "qps",
    "outage",
    "capacity",
    "cpu_per_transaction",
    "failed_per_transaction",
    "errors_per_transaction",
    "retries_per_transaction",
];
const QUANTILES: [&str; 7] = ["p50", "p90", "p95", "p99", "p999", "mean", "max"];
const FAMILIES: [&str; 3] = ["", "service_", "lag_"];

/// Refuses a figure that no trial of the workload can have. Figures that a script names itself are found in its text.
pub fn check_metric(option: &str, name: &str, workload: &Workload) -> Result<(), Trouble> {
    let texts = texts(&workload.name);
    let is_written = |word: &str| !word.is_empty() && texts.iter().any(|text| text.contains(word));
    let latencies = || FAMILIES.iter().flat_map(|family| QUANTILES.map(|quantile| format!("{family}{quantile}")));
    let known: Vec<String> = OF_LOAD.map(str::to_owned).into_iter().chain(latencies()).collect();
    let unknown = |what: &str| Trouble::usage(format!("{option} {name}: {what}"));
    let listed = "`assay list metrics` lists the figures";
    if let Some((of, figure)) = name.split_once('.') {
        let scope = of.trim_end_matches(|c: char| c.is_ascii_digit());
        if ["server", "machine", "pooler"].contains(&scope) {
            let is_known = METRICS.iter().any(|metric| figure.starts_with(metric.name));
            let near = || nearest(figure, METRICS.iter().map(|metric| metric.name));
            return match (is_known, near()) {
                (false, Some(near)) => {
                    Err(unknown("no such reading").hint(format!("did you mean {of}.{near}? {listed}")))
                }
                _ => Ok(()),
            };
        }
        check_type(&format!("{option} {name}"), of, workload)?;
        let of_type = ["tps"].into_iter().chain(QUANTILES);
        return match of_type.clone().any(|known| known == figure) {
            true => Ok(()),
            false => {
                Err(unknown("no such figure of a transaction type").hint(match nearest(figure, of_type.clone()) {
                    Some(near) => format!("did you mean {of}.{near}?"),
                    None => format!("there are: {}", of_type.collect::<Vec<_>>().join(", ")),
                }))
            }
        };
    }
    let own = name.strip_suffix("_per_transaction").unwrap_or(name);
    let is_own = !own.is_empty() && ["\"", "'"].iter().any(|quote| is_written(&format!("{quote}{own}{quote}")));
    if known.iter().any(|known| known == name) || is_own {
        return Ok(());
    }
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => Err(unknown("no such figure").hint(format!("did you mean {near}? {listed}"))),
        // A script may put a name together.
        None if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.contains('_') => Ok(()),
        None => Err(unknown("no such figure").hint(listed)),
    }
}

/// Refuses a type of transactions that the workload does not have: its own name, or one that its text names.
pub fn check_type(given: &str, name: &str, workload: &Workload) -> Result<(), Trouble> {
    let texts = texts(&workload.name);
    let program = &workload.program;
    let workload = workload.name.as_str();
    let own = std::path::Path::new(workload).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let is_own = name == workload || own.as_deref() == Some(name);
    let types: Vec<&str> = program.types().collect();
    let is_quoted = texts.iter().any(|text| ['"', '\''].iter().any(|q| text.contains(&format!("{q}{name}{q}"))));
    // A script may put names together while it runs.
    let is_open = types.is_empty() && texts.iter().any(|text| text.contains("assay.transaction"));
    if is_own || types.contains(&name) || is_quoted || is_open {
        return Ok(());
    }
    let trouble = Trouble::usage(format!("{given}: {workload} has no transactions of type {name}"));
    Err(match nearest(name, types.iter().copied()) {
        Some(near) => trouble.hint(format!("did you mean {near}?")),
        None if types.is_empty() => trouble.hint(format!("there is one type: {}", own.unwrap_or_default())),
        None => trouble.hint(format!("there are: {}", types.join(", "))),
    })
}

/// The texts of a workload: of a built-in one, those of its folder.
pub(crate) fn texts(workload: &str) -> Vec<String> {
    let all = assay_workloads::builtin();
    let folder = |path: &'static str| path.split('/').next().unwrap_or_default();
    match all.iter().find(|one| one.name == workload) {
        Some(own) if own.is_example() => vec![own.text.to_owned()],
        Some(own) => {
            all.iter().filter(|one| folder(one.path) == folder(own.path)).map(|one| one.text.to_owned()).collect()
        }
        None => library::files(workload).iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn told(name: &str, workload: &str) -> String {
        let program = library::load(workload, "run", &[], assay_products::EMBEDDED.dialect).unwrap();
        let workload = Workload { name: workload.to_owned(), program: std::sync::Arc::new(program), given: Vec::new() };
        match check_metric("--metric", name, &workload) {
            Ok(()) => "known".to_owned(),
            Err(trouble) => format!("{}; {}", trouble.cause, trouble.hints.join("; ")),
        }
    }

    #[test]
    fn figures_are_known_or_the_nearest_is_named() {
        for (name, workload) in [
            ("tps", "tpcc"),
            ("tpmC", "tpcc"),
            ("new_order.p95", "tpcc"),
            ("lag_p999", "oltp_read_write"),
            ("lines_per_transaction", "tpcc"),
            ("server.log_bytes", "tpcc"),
            ("server2.log_bytes_per_transaction", "tpcc"),
            ("errors_per_transaction", "ycsb"),
            ("insert.tps", "ycsb"),
            ("oltp_read_write.p99", "oltp_read_write"),
            ("made_up_by_a_script", "oltp_read_write"),
        ] {
            assert_eq!(told(name, workload), "known", "{name}");
        }
        let listed = "`assay list metrics` lists the figures";
        assert_eq!(told("tpx", "tpcc"), format!("--metric tpx: no such figure; did you mean tps? {listed}"));
        assert_eq!(told("p96", "tpcc").split(';').next(), Some("--metric p96: no such figure"));
        assert_eq!(told("", "tpcc"), format!("--metric : no such figure; {listed}"));
        assert_eq!(
            told("new_ordr.p95", "tpcc"),
            "--metric new_ordr.p95: tpcc has no transactions of type new_ordr; did you mean new_order?"
        );
        assert_eq!(
            told("nosuch.p95", "oltp_point_select"),
            "--metric nosuch.p95: oltp_point_select has no transactions of type nosuch; there is one type: \
             oltp_point_select"
        );
        assert_eq!(
            told("payment.p96x", "tpcc").split(';').next(),
            Some("--metric payment.p96x: no such figure of a transaction type")
        );
    }
}
