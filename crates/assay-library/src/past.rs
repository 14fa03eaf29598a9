//! Records with one figure and their settings, for histories.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use assay_record::Time;
use assay_report::{HistoryRecord, Metric, SettingKind};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params_from_iter};

use crate::index::{Library, LibraryError};
use crate::query::{BadFilter, Filter};
use crate::schema::COLUMNS;

/// Records with a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// The figure.
    pub metric: Metric,
    /// Complete records that have it, in no order; copies of a trial count once.
    pub records: Vec<HistoryRecord>,
}

type Settings = Arc<Vec<(SettingKind, String, String)>>;

impl Library {
    /// The records that match all `filters`, with this figure. `None`: no record has it; `known` has the names of those
    /// that there are.
    pub fn past(
        &self,
        filters: &[Filter],
        metric: &str,
        now: Time,
    ) -> Result<Result<Option<Past>, BadFilter>, LibraryError> {
        let (condition, values) = match self.condition(filters, now).map_err(|source| self.failed(source))? {
            Ok(condition) => condition,
            Err(bad) => return Ok(Err(bad)),
        };
        self.past_where(&condition, values, metric).map(Ok).map_err(|source| self.failed(source))
    }

    /// The names of all figures.
    pub fn metrics(&self) -> Result<Vec<String>, LibraryError> {
        let all = || -> Result<Vec<String>, rusqlite::Error> {
            let mut statement = self.connection.prepare("SELECT name FROM metric ORDER BY name")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        all().map_err(|source| self.failed(source))
    }

    fn past_where(&self, condition: &str, values: Vec<Value>, metric: &str) -> Result<Option<Past>, rusqlite::Error> {
        let of = "SELECT id, of FROM metric WHERE name = ?";
        let known: Option<(i64, String)> =
            self.connection.query_row(of, [metric], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((id, of)) = known else { return Ok(None) };
        let Ok(of) = serde_json::from_str::<Metric>(&of) else { return Ok(None) };
        let figure = match COLUMNS.iter().find(|(name, _)| *name == metric) {
            Some((_, column)) => (*column).to_owned(),
            None => format!("(SELECT value FROM figure g WHERE g.metric = {id} AND g.record = r.id)"),
        };
        let of_records = format!(
            "SELECT r.id, f.path, r.started_ms, {figure}, r.machine, r.workload, r.product, r.version, r.identity \
             FROM record r JOIN file f ON f.id = r.id \
             WHERE r.outcome = 'complete' AND {condition} GROUP BY r.trial ORDER BY r.started_ms"
        );
        let mut of_tags = self.connection.prepare("SELECT key, value FROM tag WHERE record = ?")?;
        let mut statement = self.connection.prepare(&of_records)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut known: HashMap<i64, Settings> = HashMap::new();
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            let Some(value) = row.get::<_, Option<f64>>(3)? else { continue };
            let (id, identity): (i64, i64) = (row.get(0)?, row.get(8)?);
            let settings = match known.get(&identity) {
                Some(settings) => Arc::clone(settings),
                None => Arc::clone(known.entry(identity).or_insert(self.settings(identity)?)),
            };
            let tags = of_tags.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
            records.push(HistoryRecord {
                path: row.get(1)?,
                started: Time::from_unix_ms(row.get::<_, i64>(2)?.unsigned_abs()),
                value,
                machine: row.get(4)?,
                workload: row.get(5)?,
                product: row.get(6)?,
                version: row.get(7)?,
                tags: tags.collect::<Result<BTreeMap<_, _>, _>>()?,
                settings,
            });
        }
        Ok(Some(Past { metric: of, records }))
    }

    fn settings(&self, identity: i64) -> Result<Settings, rusqlite::Error> {
        let of = "SELECT s.kind, s.name, s.value FROM identity_setting i JOIN setting s ON s.id = i.setting \
                  WHERE i.identity = ? ORDER BY s.kind, s.name";
        let mut statement = self.connection.prepare_cached(of)?;
        let all = statement.query_map([identity], |row| {
            let kind = match row.get::<_, String>(0)?.as_str() {
                "work" => SettingKind::Work,
                "generator" => SettingKind::Generator,
                "session" => SettingKind::Session,
                "tag" => SettingKind::Tag,
                _ => SettingKind::Server,
            };
            Ok((kind, row.get(1)?, row.get(2)?))
        })?;
        all.collect::<Result<Vec<_>, _>>().map(Arc::new)
    }
}
