//! Built-in functions, one file for each kind.
//!
//! A built-in function gets its arguments as values and returns one. Scripts declare it; the declaration has the types. Errors that end nothing
//! are reported with [`Vm::builtin_error`], those that end the calling body with [`Vm::builtin_exception`].

mod containers;
mod contents;
mod data;
mod data_bytes;
mod input;
mod input_checks;
mod json;
pub mod log;
pub mod net;
mod numbers;
mod opaques;
mod options;
mod passive;
pub(crate) use options::pass_sampling;
pub(crate) use passive::unknown_ends;
mod places;
mod reflect;
mod statistics;
mod storage;
mod store_database;
mod stores;
mod strings;
mod system;
pub(crate) mod telemetry;

pub(crate) use system::refused;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::rc::Rc;

use crate::diagnostics::Severity;
use crate::evaluate::Stop;
use crate::ids::TypeId;
use crate::support::order::{Hashes, Random, Seeds, UidPools};
use crate::value::Value;
use crate::vm::Vm;

pub use data_bytes::read_and_write;
pub(crate) use json::opaque_name;

/// A built-in function.
pub type Native = fn(&mut Vm<'_>, &[Value]) -> Result<Value, Stop>;

/// Names with their functions.
pub type Table = &'static [(&'static str, Native)];

/// All built-in functions by name.
pub struct Natives(HashMap<&'static str, Native>);

impl Default for Natives {
    fn default() -> Self {
        let mut all = HashMap::new();
        for table in TABLES {
            all.extend(table.iter().copied());
        }
        Self(all)
    }
}

impl Natives {
    /// The function of a full name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Native> {
        self.0.get(name).copied()
    }
}

const TABLES: &[Table] = &[
    strings::TABLE,
    numbers::TABLE,
    statistics::TABLE,
    system::TABLE,
    containers::TABLE,
    reflect::TABLE,
    json::TABLE,
    options::TABLE,
    passive::TABLE,
    places::TABLE,
    contents::TABLE,
    data::TABLE,
    stores::TABLE,
    opaques::TABLE,
    opaques::DIGESTS,
    storage::TABLE,
    telemetry::TABLE,
    net::TABLE,
    input::TABLE,
    log::TABLE,
    // Last: these replace those of `passive`.
    crate::bridge::NATIVES,
    crate::bridge::REQUESTS,
    crate::bridge::PACKET_NATIVES,
    crate::bridge::DECISIONS,
    crate::bridge::COUNTS,
    crate::bridge::CERTIFICATES,
    crate::bridge::CERTIFICATE_CACHE,
    crate::bridge::RECORDINGS,
];

/// State of built-in functions.
pub struct State {
    /// Time of the first packet, 0 before it.
    pub first_packet: f64,
    /// Weirds that scripts reported.
    pub(crate) weirds: options::SampledWeirds,
    /// Signatures, where there are any that the engine does not replace.
    pub(crate) signatures: Option<Rc<crate::bridge::signatures::Loaded>>,
    /// Log streams.
    pub log: log::Logs,
    /// Looks up names and addresses.
    pub(crate) resolver: crate::support::resolver::Resolver,
    /// Environment variables that scripts set.
    pub environment: BTreeMap<String, Vec<u8>>,
    /// Whether a script called `terminate`.
    pub terminated: bool,
    /// Whether the run has no packets.
    pub packetless: bool,
    /// Whether all scripts were read.
    pub began: bool,
    /// Whether `zeek_init` is over.
    pub initialized: bool,
    /// Metadata of events that scripts registered, with their types.
    pub event_metadata: HashMap<i64, TypeId>,
    /// The number of the analyzer that raised the current event; 0 for none.
    pub(crate) analyzer: u64,
    /// How often events were handled, by their functions.
    pub(crate) invocations: Vec<u64>,
    /// Those of them that report what the program says.
    pub(crate) reporters: Vec<crate::ids::FuncId>,
    /// Databases of addresses.
    pub databases: places::Databases,
    /// Stores of the Broker framework.
    pub stores: stores::Stores,
    /// Packet analyzers by the one in front and the identifier there.
    pub packet_analyzers: HashMap<(i64, u64), Value>,
    /// How often packet processing was suspended.
    pub suspended: u32,
    /// Whether the run is one of `-b`.
    pub bare: bool,
    /// Whether scripts start no processes and change no files other than logs.
    pub sandbox: bool,
    /// Random numbers.
    pub random: Random,
    /// Unique ids.
    pub uids: UidPools,
    /// Hashes under the seeds of the run.
    pub hashes: Hashes,
    /// The first number of the seeds.
    pub first_seed: u32,
    /// Addresses in the place of others.
    pub anonymizers: net::Anonymizers,
    /// Sources that are read.
    pub inputs: input::Inputs,
    /// Metrics.
    pub metrics: telemetry::Metrics,
    /// Storage backends.
    pub storage: storage::Backends,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Functions that are called when options change, by falling priority.
    pub handlers: Vec<options::Handler>,
    /// Connections, files and packets of the current run.
    pub traffic: crate::bridge::Traffic,
}

impl Default for State {
    fn default() -> Self {
        let mut bytes = [0; 80];
        for (index, chunk) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            use std::hash::{BuildHasher as _, RandomState};
            *chunk = RandomState::new().hash_one(index).to_le_bytes();
        }
        let hashes = Seeds::from_bytes(bytes).hashes();
        Self {
            first_packet: 0.0,
            weirds: options::SampledWeirds::default(),
            signatures: None,
            log: log::Logs::default(),
            resolver: Default::default(),
            environment: BTreeMap::new(),
            terminated: false,
            packetless: false,
            began: false,
            initialized: false,
            event_metadata: HashMap::new(),
            packet_analyzers: HashMap::new(),
            databases: places::Databases::default(),
            stores: stores::Stores::default(),
            suspended: 0,
            analyzer: 0,
            invocations: Vec::new(),
            reporters: Vec::new(),
            bare: false,
            sandbox: false,
            random: system::random(),
            uids: UidPools::of_instance(hashes, u64::from(std::process::id())),
            hashes,
            first_seed: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            anonymizers: net::Anonymizers::default(),
            inputs: input::Inputs::default(),
            metrics: telemetry::Metrics::default(),
            storage: storage::Backends::default(),
            command: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
            handlers: Vec::new(),
            traffic: crate::bridge::Traffic::default(),
        }
    }
}

impl State {
    /// Whether something outside of scripts is asked for news with each packet.
    pub(crate) fn is_polled(&self) -> bool {
        self.inputs.is_read() || self.stores.are_open() || self.log.is_rotating()
    }

    /// Uses seeds: random numbers, ids, hashes and the order of tables follow from them.
    pub fn seed(&mut self, seeds: &Seeds) {
        self.hashes = seeds.hashes();
        self.first_seed = seeds.random;
        self.uids = UidPools::deterministic(self.hashes);
        self.random = Random::deterministic(seeds.random);
        crate::value::order::set_hashes(Some(self.hashes));
    }
}

/// An argument; unset where it was not given.
#[must_use]
pub fn arg(args: &[Value], index: usize) -> &Value {
    args.get(index).unwrap_or(&Value::Unset)
}

/// The arguments of a function that takes some of them as strings of C: each of these that contains a NUL is an error, and
/// [`WITH_NUL`] takes its place.
pub(crate) fn c_strings<'a>(
    vm: &mut Vm<'_>,
    args: &'a [Value],
    which: &[usize],
) -> Cow<'a, [Value]> {
    let mut args = Cow::Borrowed(args);
    for index in which {
        if has_nul(vm, arg(&args, *index).str_bytes())
            && let Some(value) = args.to_mut().get_mut(*index)
        {
            *value = Value::string(WITH_NUL);
        }
    }
    args
}

/// Reports an error if a string contains a NUL: as a string of C it would end there.
pub(crate) fn has_nul(vm: &mut Vm<'_>, text: &[u8]) -> bool {
    let found = text.contains(&0);
    if found {
        let mut shown = b"string with embedded NUL: \"".to_vec();
        crate::value::describe::escape_into(&mut shown, text);
        shown.push(b'"');
        vm.report(Severity::Error, shown);
    }
    found
}

/// What stands for a string with a NUL where a string of C is needed.
pub(crate) const WITH_NUL: &str = "<string-with-NUL>";

/// An empty table that keeps the order of insertion.
pub(crate) fn ordered_table(vm: &mut Vm<'_>, ty: TypeId) -> Value {
    let attrs = crate::value::table::TableAttrs { ordered: true, ..Default::default() };
    vm.new_table(ty, Some(Rc::new(attrs)))
}

/// Prepares what needs the whole program, before `zeek_init`.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn prepare(vm: &mut Vm<'_>) -> Result<(), Stop> {
    let missing = vm.global_named("EventMetadata::add_missing_remote_network_timestamp").truth();
    if missing && !vm.global_named("EventMetadata::add_network_timestamp").truth() {
        let text = "Setting EventMetadata::add_missing_remote_network_timestamp is only valid together with EventMetadata::add_network_timestamp";
        vm.report(Severity::Fatal, text);
        return Err(Stop::Fatal);
    }
    log::rotate_leftovers(vm)
}

/// Ends background work: logs are closed.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn finish(vm: &mut Vm<'_>) -> Result<(), Stop> {
    // What readers still have to say is reported.
    input::poll(vm)?;
    log::close_all(vm)
}

/// Writes what databases of stores do not have yet.
pub fn save_stores(vm: &mut Vm<'_>) {
    stores::commit(vm, true);
}

/// Whether background work keeps the process alive.
#[must_use]
pub fn has_work(vm: &Vm<'_>) -> bool {
    vm.m.whens.has_lookups()
}

/// Polls activities outside of scripts; returns whether there were any.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn poll(vm: &mut Vm<'_>) -> Result<bool, Stop> {
    // Packets without events have none.
    let log = &mut vm.m.state.log;
    log.polls = (log.polls + 1).max(vm.m.state.traffic.number);
    stores::commit(vm, false);
    log::poll_rotations(vm)?;
    input::poll(vm)
}

/// What `as` makes of the data of a message; none where that does not fit, or where the value is no such data.
pub fn cast_data(vm: &mut Vm<'_>, value: &Value, ty: TypeId) -> Option<Value> {
    data::unwrap(vm, value)?.value(vm, ty)
}

/// How an opaque value that holds data of a message is shown; none of others.
pub(crate) fn data_text(opaque: &crate::value::OpaqueValue) -> Option<Vec<u8>> {
    data::text(opaque)
}
