//! Rules that need neither a server nor a script.

use assay_seam::Nanos;

use crate::{Concealed, RunSpec, Wrong};

/// Distributions of the rows that statements access.
pub(crate) const RAND_TYPES: [&str; 5] = ["uniform", "gaussian", "special", "pareto", "zipfian"];

impl RunSpec {
    /// Checks that the values fit together. The first that does not is reported.
    pub fn check(&self) -> Result<(), Wrong> {
        self.together()?;
        self.needed()?;
        self.search_is_possible()?;
        self.distribution_is_possible()
    }

    /// Values that exclude each other.
    fn together(&self) -> Result<(), Wrong> {
        let load = &self.load;
        let open = [
            ("load.rate", load.rate.is_some()),
            ("load.rate_file", load.rate_file.is_some()),
            ("load.find_rate", !load.find_rate.is_empty()),
        ];
        let find_rate = !load.find_rate.is_empty();
        let starts_server = self.server.as_ref().is_some_and(|server| !server.product.is_empty());
        let pairs = [
            ("server.product", starts_server, "target.urls", !self.target.urls.is_empty()),
            ("server.product", self.server.is_some(), "kill_check", self.kill_check.is_some()),
            ("load.terminals", load.terminals.is_some(), "load.sessions", load.sessions.is_some()),
            ("load.rate_file", load.rate_file.is_some(), "load.arrival", load.arrival.is_some()),
            ("load.rate_file", load.rate_file.is_some(), "load.warmup", load.warmup > Nanos::ZERO),
            ("load.find_rate", find_rate, "load.transactions", load.transactions.is_some()),
            ("load.find_rate", find_rate, "kill_check", self.kill_check.is_some()),
        ];
        let given = |(path, is_given): &(&'static str, bool)| is_given.then_some(*path);
        let mut opens = open.iter().filter_map(given);
        let (first, second) = (opens.next(), opens.next());
        let exclusive =
            |one: &str, other: &str| Err(Wrong::new(one, format!("{{{one}}} and {{{other}}} cannot be used together")));
        match (first, second) {
            (Some(one), Some(other)) => return exclusive(one, other),
            (Some(one), None) if load.terminals.is_some() => return exclusive("load.terminals", one),
            _ => {}
        }
        if let Some((one, _, other, _)) = pairs.into_iter().find(|(_, one, _, other)| *one && *other) {
            return exclusive(one, other);
        }
        if self.kill_check.is_some() && self.trials > 1 {
            return Err(Wrong::new("trials", "{kill_check} and {trials} cannot be used together")
                .hint("after the crash, later trials would not be comparable"));
        }
        Ok(())
    }

    /// Values that others need.
    fn needed(&self) -> Result<(), Wrong> {
        let load = &self.load;
        if let Some(server) = &self.server {
            let given = [
                ("server.binaries", server.binaries.is_some()),
                ("server.settings", !server.settings.is_empty()),
                ("server.config", server.config.is_some()),
                ("server.cpus", server.cpus.is_some()),
                ("server.memory", server.memory.is_some()),
                ("server.fronts", !server.fronts.is_empty()),
                ("server.front_settings", !server.front_settings.is_empty()),
            ];
            if server.product.is_empty() {
                let path = given.iter().find(|(_, given)| *given).map_or("server.product", |(path, _)| path);
                return Err(Wrong::new(path, format!("{{{path}}} needs a server to start"))
                    .hint("name one, such as {server.product} postgres:17"));
            }
            if server.fronts.is_empty() && !server.front_settings.is_empty() {
                return Err(Wrong::new("server.front_settings", "{server.fronts} is missing"));
            }
        }
        let path = if load.arrival.is_some() { "load.arrival" } else { "load.backlog_max" };
        if (load.arrival.is_some() || load.backlog_max.is_some()) && !load.is_open() {
            return Err(Wrong::new(path, "{load.rate} is missing")
                .hint("{load.arrival} and {load.backlog_max} need an open loop, such as {load.rate} 1000"));
        }
        let path = if load.connections.is_some() { "load.connections" } else { "load.think_scale" };
        if (load.connections.is_some() || load.think_scale.is_some()) && load.terminals.is_none() {
            return Err(Wrong::new(path, "{load.connections} and {load.think_scale} need {load.terminals}")
                .hint("terminals share connections; without them, `{load.sessions} N` opens N connections"));
        }
        if self.kill_check.is_some() && self.target.urls.is_empty() {
            return Err(Wrong::new("kill_check", "{target.urls} is missing"));
        }
        if self.kill_check.is_some() {
            self.kill_check_is_possible()?;
        }
        Ok(())
    }

    /// A crash in the middle needs a middle, and the search for lost commits one database.
    fn kill_check_is_possible(&self) -> Result<(), Wrong> {
        let load = &self.load;
        let needs = |what: &str| Err(Wrong::new("kill_check", format!("{{kill_check}} needs {what}")));
        let is_endless = load.time == Some(Nanos::ZERO) || (load.time.is_none() && load.transactions.is_some());
        match (&load.steps()[..], &self.target.urls[..]) {
            _ if load.searches_sessions() => Ok(()),
            _ if is_endless => needs("a run with {load.time}"),
            ([_, _, ..], _) => needs("a run of one stage: give one number of {load.sessions}"),
            (_, [_, _, ..]) => needs("a run on one database"),
            _ => Ok(()),
        }
    }

    /// A search compares stages of equal length.
    fn search_is_possible(&self) -> Result<(), Wrong> {
        let load = &self.load;
        if !load.searches() {
            return Ok(());
        }
        let (path, name) = match load.find_rate.is_empty() {
            true => ("load.sessions", "{load.sessions} auto"),
            false => ("load.find_rate", "{load.find_rate}"),
        };
        if load.searches_sessions() && !load.is_closed() {
            return Err(Wrong::new("load.sessions", "{load.sessions} auto needs a closed loop").hint(
                "to find the highest rate with a fixed number of sessions: `{load.find_rate} 'p99 < 10ms' {load.sessions} 64`",
            ));
        }
        if load.steps().len() > 1 {
            return Err(Wrong::new(path, format!("{name} needs one number of sessions")));
        }
        if load.time == Some(Nanos::ZERO) || load.transactions.is_some() || self.kill_check.is_some() {
            return Err(Wrong::new(path, format!("{name} needs stages of fixed length: `{{load.time}}`")));
        }
        Ok(())
    }

    fn distribution_is_possible(&self) -> Result<(), Wrong> {
        let generator = &self.generator;
        if !RAND_TYPES.contains(&generator.rand_type.as_str()) {
            let reason = format!("expected one of {}", RAND_TYPES.join(", "));
            return Err(Wrong::value("generator.rand_type", &generator.rand_type, &reason));
        }
        let ranges = [
            ("generator.rand_spec_pct", generator.rand_spec_pct, 0.0, 100.0),
            ("generator.rand_spec_res", generator.rand_spec_res, 0.0, 100.0),
            ("generator.rand_pareto_h", generator.rand_pareto_h, 1e-6, 1.0 - 1e-6),
            ("generator.rand_zipfian_exp", generator.rand_zipfian_exp, 0.0, 100.0),
        ];
        match ranges.into_iter().find(|(_, value, low, high)| !(*low..=*high).contains(value)) {
            Some((path, value, low, high)) => {
                Err(Wrong::value(path, &value.to_string(), &format!("must be between {low} and {high}")))
            }
            None => Ok(()),
        }
    }

    /// Values from which a password was removed when they were written down. One in a URL is looked up elsewhere.
    pub fn check_passwords(&self) -> Result<(), Wrong> {
        let hidden = |text: &str| text.contains("***");
        let missing = |path: String| {
            Err(Wrong::new(path.clone(), format!("the password in `{{{path}}}` was not kept: give `{{{path}}}` again")))
        };
        for (key, value) in &self.workload.options {
            if matches!(value, assay_options::OptionValue::Text(text) if text == "***") {
                return missing(format!("workload.options.{key}"));
            }
        }
        if self.kill_check.as_ref().is_some_and(|command: &Concealed| hidden(command.reveal())) {
            return missing("kill_check".to_owned());
        }
        let in_server = self.server.iter().flat_map(|server| server.settings.iter().chain(&server.front_settings));
        if in_server.map(Concealed::reveal).any(hidden) {
            return missing("server.settings".to_owned());
        }
        if self.target.session_sql.iter().map(Concealed::reveal).any(hidden) {
            return missing("target.session_sql".to_owned());
        }
        Ok(())
    }
}
