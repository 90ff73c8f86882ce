//! Location and autonomous system of addresses, from MaxMind databases.

use std::net::Ipv6Addr;
use std::os::unix::fs::MetadataExt as _;
use std::time::SystemTime;

use super::{Table, arg};
use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::support::mmdb::{Database, Value as Found};
use crate::value::{Record, Value};
use crate::vm::Vm;

type Result<T> = std::result::Result<T, Stop>;

/// The open databases.
#[derive(Default)]
pub struct Databases {
    locations: OpenDatabase,
    systems: OpenDatabase,
}

/// A database and its file.
#[derive(Default)]
struct OpenDatabase {
    path: String,
    version: Option<FileVersion>,
    /// Network time of the last check for a changed file.
    checked: f64,
    database: Option<Database>,
    reported: bool,
}

/// Identifies the content of a file, to detect that it was replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    modified: SystemTime,
}

impl FileVersion {
    fn read(path: &str) -> Option<Self> {
        let data = std::fs::metadata(path).ok()?;
        Some(Self { inode: data.ino(), modified: data.modified().ok()? })
    }
}

/// A kind of database.
#[derive(Clone, Copy)]
enum Kind {
    Locations,
    Systems,
}

impl Kind {
    fn state<'v>(self, vm: &'v mut Vm<'_>) -> &'v mut OpenDatabase {
        match self {
            Self::Locations => &mut vm.m.state.databases.locations,
            Self::Systems => &mut vm.m.state.databases.systems,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Locations => "GeoIP location database",
            Self::Systems => "GeoIP ASN database",
        }
    }

    /// Default file names, by preference.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Locations => &["mmdb_city_db", "mmdb_country_db"],
            Self::Systems => &["mmdb_asn_db"],
        }
    }
}

/// The functions of this file.
pub(super) const TABLE: Table = &[
    ("mmdb_open_location_db", |vm, a| {
        let path = arg(a, 0).text();
        Ok(Value::Bool(open(vm, Kind::Locations, &path)))
    }),
    ("mmdb_open_asn_db", |vm, a| {
        let path = arg(a, 0).text();
        Ok(Value::Bool(open(vm, Kind::Systems, &path)))
    }),
    ("lookup_location", |vm, a| {
        let paths: &[&[&str]] = &[
            &["country", "iso_code"],
            &["subdivisions", "0", "iso_code"],
            &["city", "names", "en"],
            &["location", "latitude"],
            &["location", "longitude"],
        ];
        lookup_record(vm, a, Kind::Locations, paths)
    }),
    ("lookup_autonomous_system", |vm, a| {
        let paths: &[&[&str]] =
            &[&["autonomous_system_number"], &["autonomous_system_organization"]];
        lookup_record(vm, a, Kind::Systems, paths)
    }),
];

/// A record with the values at these paths of the database; fields without a value are unset.
fn lookup_record(vm: &mut Vm<'_>, args: &[Value], kind: Kind, paths: &[&[&str]]) -> Result<Value> {
    let ty = vm.result_type();
    let unset = vec![Value::Unset; paths.len()];
    let loaded = ensure_open(vm, kind);
    let address = arg(args, 0).addr_bytes().map(Ipv6Addr::from);
    let fields = match (&kind.state(vm).database, address) {
        (Some(database), Some(address)) if loaded => paths
            .iter()
            .map(|path| match database.get(address, path) {
                Some(Found::Text(text)) => Value::string(text),
                Some(Found::Double(number)) => Value::Double(number),
                Some(Found::Number(number)) => Value::Count(number),
                Some(Found::Other) | None => Value::Unset,
            })
            .collect(),
        _ => unset,
    };
    Ok(Value::Record(Record::new(ty, fields)))
}

/// Opens a database file; returns whether it succeeded. Reports a file that is not a valid database.
fn open(vm: &mut Vm<'_>, kind: Kind, path: &str) -> bool {
    let now = vm.m.now;
    let version = FileVersion::read(path);
    let bytes = std::fs::read(path).ok();
    let missing = bytes.is_none();
    let database = bytes.and_then(Database::new);
    let failed = !missing && database.is_none();
    let opened = database.is_some();
    let state = kind.state(vm);
    state.reported &= !opened;
    (state.database, state.version, state.checked) = (database, version, now);
    path.clone_into(&mut state.path);
    if failed {
        let why = "The MaxMind DB file contains invalid metadata";
        vm.report(Severity::Info, format!("Failed to open MaxMind DB: {path} [{why}]"));
    }
    opened
}

/// Opens the database that options name, if none is open or its file has changed.
fn ensure_open(vm: &mut Vm<'_>, kind: Kind) -> bool {
    let interval = vm.global_named("mmdb_stale_check_interval").double();
    let now = vm.m.now;
    let state = kind.state(vm);
    let known = state.path.clone();
    let opened = if known.is_empty() {
        candidates(vm, kind).into_iter().any(|path| open(vm, kind, &path))
    } else if state.database.is_none() {
        open(vm, kind, &known)
    } else if interval >= 0.0 && now - state.checked >= interval {
        state.checked = now;
        let (before, after) = (state.version, FileVersion::read(&known));
        if before == after {
            true
        } else {
            if let (Some(before), Some(after)) = (before, after) {
                let inode = before.inode != after.inode;
                let what = if inode { "Inode" } else { "Modification time" };
                let text = format!("{what} change detected for MaxMind DB [{known}]");
                vm.report(Severity::Info, text);
            }
            vm.report(Severity::Info, format!("Closing stale MaxMind DB [{known}]"));
            open(vm, kind, &known)
        }
    } else {
        true
    };
    if !opened && !std::mem::replace(&mut kind.state(vm).reported, true) {
        vm.builtin_error(format!("Failed to open {}", kind.description()));
    }
    opened
}

/// File names from the options, in the order in which they are tried.
fn candidates(vm: &Vm<'_>, kind: Kind) -> Vec<String> {
    let names: Vec<String> = kind.names().iter().map(|name| vm.global_named(name).text()).collect();
    let own = vm.global_named("mmdb_dir").text();
    let mut paths = Vec::new();
    if !own.is_empty() {
        paths.extend(names.iter().map(|name| format!("{own}/{name}")));
    }
    let fallbacks = vm.global_named("mmdb_dir_fallbacks");
    let fallbacks: Vec<String> = fallbacks
        .vector()
        .map(|vector| vector.items().iter().map(Value::text).collect())
        .unwrap_or_default();
    for name in &names {
        paths.extend(fallbacks.iter().map(|folder| format!("{folder}/{name}")));
    }
    paths
}
