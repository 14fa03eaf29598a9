//! The load of a run: how much work, and when.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use assay_seam::Nanos;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{read, values};

/// Without a given maximum, more sessions than this are not tried: servers refuse a hundred.
pub const AUTO_MAX: u32 = 64;
/// Sessions of a search for the highest rate: enough to keep a server busy, and few enough for any to accept.
pub const SESSIONS_OF_SEARCH: u32 = 64;
/// Connections shared by terminals, if none are given.
pub const CONNECTIONS: u32 = 64;

/// How much work, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoadSpec {
    /// Concurrent sessions; `None`: 1, or `SESSIONS_OF_SEARCH` for a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Sessions>,
    /// Users who share connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminals: Option<Terminals>,
    /// Connections shared by terminals; `None`: `CONNECTIONS`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::sessions")]
    pub connections: Option<u32>,
    /// Multiplier for the terminals' keying and think times; `None`: 1.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::not_negative")]
    pub think_scale: Option<f64>,
    /// Length of the measured part of each stage; 0: no limit; `None`: no limit if there is another, else a default.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "read::write_optional_duration",
        deserialize_with = "read::optional::duration"
    )]
    pub time: Option<Nanos>,
    /// Each stage ends after this many transactions.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::at_least_one")]
    pub transactions: Option<u64>,
    /// Before the measured part of each stage.
    #[serde(serialize_with = "read::write_duration", deserialize_with = "read::duration")]
    pub warmup: Nanos,
    /// Transactions due per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSpec>,
    /// File with the due time of each transaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_file: Option<PathBuf>,
    /// Promises that a search for the highest rate keeps, such as `p99 < 10ms`.
    #[serde(deserialize_with = "read::each")]
    pub find_rate: Vec<String>,
    /// Spacing of due times; `None`: constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Arrival>,
    /// Due transactions that may wait; more are dropped. `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read::optional::at_least_one")]
    pub backlog_max: Option<u64>,
    /// Time for transactions in flight to finish at the end of a stage.
    #[serde(serialize_with = "read::write_duration", deserialize_with = "read::duration")]
    pub grace: Nanos,
}

impl Default for LoadSpec {
    fn default() -> LoadSpec {
        LoadSpec {
            sessions: None,
            terminals: None,
            connections: None,
            think_scale: None,
            time: None,
            transactions: None,
            warmup: Nanos::ZERO,
            rate: None,
            rate_file: None,
            find_rate: Vec::new(),
            arrival: None,
            backlog_max: None,
            grace: Nanos::from_secs(10),
        }
    }
}

impl LoadSpec {
    /// The sessions of every stage, or the most that a search tries.
    pub fn steps(&self) -> Vec<u32> {
        match &self.sessions {
            Some(sessions) => sessions.steps.clone(),
            None if self.find_rate.is_empty() => vec![1],
            None => vec![SESSIONS_OF_SEARCH],
        }
    }

    /// The most sessions of any stage.
    pub fn sessions_max(&self) -> u32 {
        self.steps().into_iter().max().unwrap_or(1)
    }

    /// Whether the number of sessions is searched for.
    pub fn searches_sessions(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.auto)
    }

    /// Whether stages are decided by those before them.
    pub fn searches(&self) -> bool {
        self.searches_sessions() || !self.find_rate.is_empty()
    }

    /// Whether transactions are due at times that do not depend on the server.
    pub fn is_open(&self) -> bool {
        self.rate.is_some() || self.rate_file.is_some() || !self.find_rate.is_empty()
    }

    /// Whether the next transaction of a session is due when the one before is done.
    pub fn is_closed(&self) -> bool {
        !self.is_open() && self.terminals.is_none()
    }
}

/// Numbers of concurrent sessions: `8`, a ladder `1,2,4`, or a search `auto`, `auto:128`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// The steps of a ladder; for a search, the most to try. At least one.
    pub steps: Vec<u32>,
    /// Search for the knee.
    pub auto: bool,
}

impl From<u32> for Sessions {
    fn from(sessions: u32) -> Sessions {
        Sessions { steps: vec![sessions], auto: false }
    }
}

impl FromStr for Sessions {
    type Err = String;

    fn from_str(text: &str) -> Result<Sessions, String> {
        match text.split_once(':').map_or((text, None), |(name, max)| (name, Some(max))) {
            ("auto", max) => Ok(Sessions { steps: vec![max.map_or(Ok(AUTO_MAX), values::sessions)?], auto: true }),
            _ => Ok(Sessions { steps: text.split(',').map(values::sessions).collect::<Result<_, _>>()?, auto: false }),
        }
    }
}

impl fmt::Display for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<String> = self.steps.iter().map(u32::to_string).collect();
        write!(f, "{}{}", if self.auto { "auto:" } else { "" }, steps.join(","))
    }
}

impl Serialize for Sessions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (&self.steps[..], self.auto) {
            ([one], false) => serializer.serialize_u32(*one),
            (steps, false) => serializer.collect_seq(steps),
            (_, true) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Sessions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sessions, D::Error> {
        let words: Vec<String> = read::each(deserializer)?;
        words.join(",").parse().map_err(|reason| serde::de::Error::custom(format!("{}: {reason}", words.join(","))))
    }
}

/// How many users share connections: `100`, or `10/warehouse`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminals {
    /// Their number. 1 <= number
    pub number: u32,
    /// Times the value of this option of the workload.
    pub per: Option<String>,
}

impl FromStr for Terminals {
    type Err = String;

    fn from_str(text: &str) -> Result<Terminals, String> {
        let (number, per) = text.split_once('/').map_or((text, None), |(number, per)| (number, Some(per.to_owned())));
        Ok(Terminals { number: values::sessions(number)?, per })
    }
}

impl fmt::Display for Terminals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.per {
            Some(per) => write!(f, "{}/{per}", self.number),
            None => self.number.fmt(f),
        }
    }
}

/// Transactions due per second: `2000`, or points of a time and a rate, such as `0s:100,60s:2000`. Whether the points
/// make a rate is for the engine to say.
#[derive(Clone, Debug, PartialEq)]
pub struct RateSpec {
    /// Times since the start, and transactions per second. At least one.
    pub points: Vec<(Nanos, f64)>,
}

impl FromStr for RateSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<RateSpec, String> {
        if !text.contains(':') {
            return Ok(RateSpec { points: vec![(Nanos::ZERO, values::positive(text.trim())?)] });
        }
        let point = |text: &str| {
            let (at, per_s) = text.split_once(':').ok_or("expected TIME:RATE,…, such as 0:100,60s:2000")?;
            Ok((values::duration(at.trim())?, values::number(per_s.trim())?))
        };
        Ok(RateSpec { points: text.split(',').map(point).collect::<Result<_, String>>()? })
    }
}

impl fmt::Display for RateSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An invalid rate is read only as a point, and refused by the engine.
        if let [(Nanos::ZERO, per_s)] = self.points[..]
            && per_s > 0.0
        {
            return per_s.fmt(f);
        }
        let point = |(at, per_s): &(Nanos, f64)| format!("{}:{per_s}", values::exact_duration(*at));
        f.write_str(&self.points.iter().map(point).collect::<Vec<_>>().join(","))
    }
}

/// Spacing of due times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Equal gaps.
    Constant,
    /// Exponentially distributed gaps.
    Poisson,
}

/// Written as on a command line.
macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                read::parsed(deserializer, str::parse)
            }
        }
    )*};
}

as_text!(Terminals, RateSpec);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_can_be_read_as_it_is_written() {
        for text in ["2000", "0s:100,60s:2000", "0:00", "0:-1", "5s:1"] {
            let rate: RateSpec = text.parse().unwrap();
            assert_eq!(rate.to_string().parse(), Ok(rate), "{text}");
        }
    }

    #[test]
    fn sessions_are_a_ladder_or_to_be_found() {
        let is = |text: &str, steps: &[u32], auto| {
            assert_eq!(text.parse(), Ok(Sessions { steps: steps.to_vec(), auto }), "{text}");
        };
        is("8", &[8], false);
        is("1,2,1k", &[1, 2, 1000], false);
        is("auto", &[64], true);
        is("auto:256", &[256], true);
        for text in ["", "0", "1,,2", "auto:0", "auto:x", "automatic"] {
            assert!(text.parse::<Sessions>().is_err(), "{text}");
        }
    }
}
