//! A task of a plan.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use gannet_capture::Access;
use gannet_capture::Stream;
use gannet_log::Type;
use serde_json::Value;
use serde_json::json;

use crate::Error;
use crate::Scan;
use crate::Settings;
use crate::births::OwnedConnections;
use crate::output::Ownership;
use crate::scan::TaskScope;

/// Version of the JSON format.
const VERSION: u64 = 1;

/// Logs that cannot be divided although they have a uid, or for another reason than logs without a uid.
const INDIVISIBLE: [(&str, &str); 11] = [
    ("capture_loss", "it covers all traffic at once"),
    ("dhcp", "its rows combine messages of several connections"),
    ("notice", "repeated notices are suppressed across connections"),
    ("ocsp", "its rows do not refer to connections"),
    ("pe", "its rows do not refer to connections"),
    ("software", "it has one row for each new version in all traffic"),
    ("tunnel", "a tunnel may have started before the captures that a task reads"),
    ("unknown_protocols", "it counts packets of all traffic"),
    ("weird", "repeated weirds are sampled across connections"),
    ("weird_stats", "it counts all traffic"),
    ("x509", "a certificate has one row for all its connections"),
];

/// Checks that tasks can write a log, which requires that each row belongs to one connection.
///
/// # Errors
/// The reason why they cannot.
pub fn divisible(log: &str) -> Result<(), &'static str> {
    if let Some((_, why)) = INDIVISIBLE.iter().find(|(name, _)| *name == log) {
        return Err(why);
    }
    let schemas = gannet_engine::schemas();
    let Some(schema) = schemas.iter().find(|s| s.path == log) else { return Err("unknown log") };
    match schema.fields.iter().any(|f| f.name == "uid" && matches!(f.ty, Type::Scalar(_))) {
        true => Ok(()),
        false => Err("its rows do not refer to connections"),
    }
}

/// A file that a task reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Size when the tasks were planned, in bytes.
    pub bytes: u64,
    /// Whether the task owns the connections that begin in the file.
    pub is_own: bool,
}

/// A part of an analysis, which can run on any machine and be repeated with the same rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Index of the task, from 0.
    pub index: usize,
    /// Number of tasks in the plan.
    pub of: usize,
    /// Files of the warm-up, own files and files of the run-on, in chronological order.
    pub files: Vec<TaskFile>,
    /// Number of packets of the whole stream before the first file.
    pub before: u64,
    /// Packet numbers of the own files: start (inclusive) and end (exclusive).
    pub packets: (u64, u64),
    /// Start (inclusive) and end (exclusive) of the time in which it owns rows without a connection, in nanoseconds
    /// since 1970.
    pub span: (i64, i64),
    /// Options of the analysis.
    pub settings: Settings,
}

impl Task {
    /// Starts the analysis.
    ///
    /// # Errors
    /// If a file has changed since the tasks were planned, or the settings are not valid.
    pub fn scan(&self) -> Result<Scan, Error> {
        for file in &self.files {
            let read = fs::metadata(&file.path);
            let io = |source| gannet_capture::Error::Io { file: file.path.clone(), source };
            let now = read.map_err(io)?.len();
            if now != file.bytes {
                let (file, planned) = (file.path.clone(), file.bytes);
                return Err(Error::Changed { file, planned, now });
            }
        }
        let has_conn = self.settings.paths().contains(&"conn");
        let mut settings = self.settings.clone();
        if !has_conn {
            settings.logs.get_or_insert_default().push("conn".to_owned());
        }
        let scope = TaskScope {
            ownership: Ownership {
                connections: Arc::new(OwnedConnections::new(self.packets.0..self.packets.1)),
                span: self.span,
                hides_conn: !has_conn,
            },
            end: self.packets.1,
            files: self.files.iter().filter(|f| f.is_own).map(|f| f.path.clone()).collect(),
        };
        let paths: Vec<_> = self.files.iter().map(|f| f.path.clone()).collect();
        let before = self.before;
        let open = move || {
            let options = gannet_capture::Options { access: Access::Read, ..Default::default() };
            let mut stream = Stream::open(&paths, options)?;
            stream.set_packets_before(before);
            Ok(stream)
        };
        Scan::with_scope(&settings, open, Some(scope))
    }

    /// Converts to JSON.
    pub fn to_json(&self) -> Value {
        let file = |f: &TaskFile| json!({"path": f.path, "bytes": f.bytes, "own": f.is_own});
        json!({
            "gannet_task": VERSION,
            "index": self.index,
            "of": self.of,
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
            "before": self.before,
            "packets": [self.packets.0, self.packets.1],
            "span": [self.span.0, self.span.1],
            "settings": self.settings.to_json(),
        })
    }

    /// Converts from JSON.
    ///
    /// # Errors
    /// If it is not a task of this version.
    pub fn from_json(value: &Value) -> Result<Self, Error> {
        let invalid = |name: &str| Error::Invalid { what: "task", why: name.to_owned() };
        if value["gannet_task"].as_u64() != Some(VERSION) {
            return Err(invalid("it is not a task of this version of gannet"));
        }
        let number = |v: &Value, name| v.as_u64().ok_or_else(|| invalid(name));
        let time = |v: &Value| v.as_i64().ok_or_else(|| invalid("span"));
        let file = |v: &Value| {
            Some(TaskFile {
                path: v["path"].as_str()?.into(),
                bytes: v["bytes"].as_u64()?,
                is_own: v["own"].as_bool()?,
            })
        };
        let files = value["files"].as_array().ok_or_else(|| invalid("files"))?;
        let files = files.iter().map(|v| file(v).ok_or_else(|| invalid("files")));
        let packets = &value["packets"];
        Ok(Self {
            index: number(&value["index"], "index")? as usize,
            of: number(&value["of"], "of")? as usize,
            files: files.collect::<Result<_, _>>()?,
            before: number(&value["before"], "before")?,
            packets: (number(&packets[0], "packets")?, number(&packets[1], "packets")?),
            span: (time(&value["span"][0])?, time(&value["span"][1])?),
            settings: Settings::from_json(&value["settings"])?,
        })
    }
}
