//! Options of an analysis, which can be written as JSON.

use std::num::NonZero;
use std::sync::Arc;

use arrow_schema::Schema;
use gannet_base::Subnet;
use gannet_columns::TimeUnit;
use gannet_engine::Options;
use gannet_filter::Filter;
use gannet_log::Field;
use gannet_log::Selection;
use serde_json::Value;
use serde_json::json;

use crate::Error;

/// Default maximum number of rows in a batch.
const BATCH_ROWS: usize = 16 << 10;

/// Options of an analysis. The defaults are those of `gannet analyze`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Logs and groups of logs; `None` selects the default logs.
    pub logs: Option<Vec<String>>,
    /// Optional columns to write.
    pub columns: Vec<String>,
    /// Filter; only packets that match are analysed.
    pub filter: Option<String>,
    /// Do not verify checksums.
    pub ignore_checksums: bool,
    /// Local networks; `None` stands for the private networks.
    pub local_nets: Option<Vec<String>>,
    /// Compute hashes of all files.
    pub hash_files: bool,
    /// Analyse the protocols that LDAP and PostgreSQL carry.
    pub inner_protocols: bool,
    /// Seed of uids.
    pub seed: u64,
    /// Seed of Community IDs.
    pub community_seed: u16,
    /// Number of analysis threads; `None` stands for one per core, and one thread for small captures. Not in the JSON.
    pub threads: Option<NonZero<u8>>,
    /// Maximum number of rows in a batch. Not in the JSON.
    pub batch_rows: usize,
    /// Unit of timestamps.
    pub times: TimeUnit,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            logs: None,
            columns: Vec::new(),
            filter: None,
            ignore_checksums: false,
            local_nets: None,
            hash_files: false,
            inner_protocols: false,
            seed: 0,
            community_seed: 0,
            threads: None,
            batch_rows: BATCH_ROWS,
            times: TimeUnit::Microseconds,
        }
    }
}

impl Settings {
    /// Converts to the options of an engine.
    ///
    /// # Errors
    /// If a log or column does not exist, or a filter or network is not valid.
    pub fn options(&self) -> Result<Options, Error> {
        for name in self.logs.iter().flatten() {
            let is_group = Selection::GROUPS.iter().any(|(group, _)| group == name);
            if !is_group && gannet_engine::schemas().iter().all(|s| s.path != name) {
                return Err(Error::NoLog(name.clone()));
            }
        }
        for name in &self.columns {
            let matches_name = |f: &Field| f.optional && f.name == name;
            if !gannet_engine::schemas().iter().any(|s| s.fields.iter().any(matches_name)) {
                return Err(Error::NoColumn(name.clone()));
            }
        }
        let nets = |nets: &Vec<String>| {
            let net = |net: &String| {
                let why = || format!("'{net}' is not a network");
                net.parse::<Subnet>().map_err(|_| Error::Invalid { what: "network", why: why() })
            };
            nets.iter().map(net).collect::<Result<_, _>>()
        };
        Ok(Options {
            ignore_checksums: self.ignore_checksums,
            filter: self.filter.as_deref().map(Filter::parse).transpose()?,
            logs: gannet_log::Options {
                columns: self.columns.clone(),
                selection: self.selection(),
                ..gannet_log::Options::default()
            },
            local_nets: self.local_nets.as_ref().map(nets).transpose()?,
            community_seed: self.community_seed,
            seed: self.seed,
            hash_files: self.hash_files,
            inner_protocols: self.inner_protocols,
            ..Options::default()
        })
    }

    /// Names of the logs that are written, sorted.
    pub fn paths(&self) -> Vec<&'static str> {
        let selection = self.selection();
        let schemas = gannet_engine::schemas();
        schemas.iter().filter(|s| selection.has(s.path, s.opt_in)).map(|s| s.path).collect()
    }

    fn selection(&self) -> Selection {
        self.logs.as_ref().map_or_else(Selection::default, Selection::of)
    }

    /// Converts to JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "logs": self.logs,
            "columns": self.columns,
            "filter": self.filter,
            "ignore_checksums": self.ignore_checksums,
            "local_nets": self.local_nets,
            "hash_files": self.hash_files,
            "inner_protocols": self.inner_protocols,
            "seed": self.seed,
            "community_seed": self.community_seed,
            "nanoseconds": self.times == TimeUnit::Nanoseconds,
        })
    }

    /// Converts from JSON; missing values have their defaults.
    ///
    /// # Errors
    /// If a value has a wrong type, or a name is unknown.
    pub fn from_json(value: &Value) -> Result<Self, Error> {
        let mut settings = Self::default();
        let invalid = |why: String| Error::Invalid { what: "set of settings", why };
        let object = value.as_object().ok_or_else(|| invalid("no object".into()))?;
        for (name, value) in object {
            let wrong = || invalid(format!("{name} cannot be {value}"));
            let flag = || value.as_bool().ok_or_else(wrong);
            let number = || value.as_u64().ok_or_else(wrong);
            let texts = || {
                let text = |v: &Value| v.as_str().map(str::to_owned).ok_or_else(wrong);
                value.as_array().ok_or_else(wrong)?.iter().map(text).collect::<Result<Vec<_>, _>>()
            };
            if value.is_null() {
                continue;
            }
            match name.as_str() {
                "logs" => settings.logs = Some(texts()?),
                "columns" => settings.columns = texts()?,
                "filter" => settings.filter = Some(value.as_str().ok_or_else(wrong)?.to_owned()),
                "ignore_checksums" => settings.ignore_checksums = flag()?,
                "local_nets" => settings.local_nets = Some(texts()?),
                "hash_files" => settings.hash_files = flag()?,
                "inner_protocols" => settings.inner_protocols = flag()?,
                "seed" => settings.seed = number()?,
                "community_seed" => {
                    settings.community_seed = u16::try_from(number()?).map_err(|_| wrong())?;
                }
                "nanoseconds" if flag()? => settings.times = TimeUnit::Nanoseconds,
                "nanoseconds" => {}
                "threads" => {
                    let threads = u8::try_from(number()?).ok().and_then(NonZero::new);
                    settings.threads = Some(threads.ok_or_else(wrong)?);
                }
                "batch_rows" => {
                    let rows = usize::try_from(number()?).ok().filter(|rows| *rows > 0);
                    settings.batch_rows = rows.ok_or_else(wrong)?;
                }
                _ => return Err(invalid(format!("unknown setting {name}"))),
            }
        }
        Ok(settings)
    }
}

/// The columns of a log with these settings.
///
/// # Errors
/// If the log does not exist.
pub fn fields_of(log: &str, settings: &Settings) -> Result<Vec<Field>, Error> {
    let schemas = gannet_engine::schemas();
    let schema = schemas.into_iter().find(|s| s.path == log);
    let mut fields = schema.ok_or_else(|| Error::NoLog(log.to_owned()))?.fields;
    fields.retain(|f| !f.optional || settings.columns.iter().any(|c| c == f.name));
    Ok(fields)
}

/// The Arrow schema of a log's batches with these settings.
///
/// # Errors
/// If the log does not exist.
pub fn schema_of(log: &str, settings: &Settings) -> Result<Arc<Schema>, Error> {
    Ok(Arc::new(gannet_columns::schema(&fields_of(log, settings)?, settings.times)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_round_trip_as_json() {
        let settings = Settings {
            logs: Some(vec!["conn".into(), "dns".into()]),
            filter: Some("tcp".into()),
            seed: u64::MAX,
            local_nets: Some(vec!["10.0.0.0/8".into()]),
            times: TimeUnit::Nanoseconds,
            ..Settings::default()
        };
        let text = settings.to_json().to_string();
        let value = serde_json::from_str(&text).unwrap();
        assert_eq!(Settings::from_json(&value).unwrap(), settings);
        assert_eq!(Settings::from_json(&json!({})).unwrap(), Settings::default());
        for wrong in [json!({"logs": 1}), json!({"seed": -1}), json!({"sed": 1}), json!([])] {
            assert!(Settings::from_json(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn wrong_names_are_errors() {
        let with =
            |logs: &str| Settings { logs: Some(vec![logs.to_owned()]), ..Settings::default() };
        assert!(matches!(with("con").options(), Err(Error::NoLog(_))));
        assert_eq!(with("conn").paths(), ["conn"]);
        let settings = Settings { columns: vec!["x".into()], ..Settings::default() };
        assert!(matches!(settings.options(), Err(Error::NoColumn(_))));
        let settings = Settings { local_nets: Some(vec!["x".into()]), ..Settings::default() };
        assert!(matches!(settings.options(), Err(Error::Invalid { .. })));
    }
}
