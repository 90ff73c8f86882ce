//! Built-in functions, one file for each area.
//!
//! A built-in function receives its arguments as values and returns one value. Scripts declare its types. Errors that do not end the caller
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
pub(crate) use opaques::randomness;
pub(crate) use options::pass_sampling;
pub(crate) use passive::unknown_ends;
mod geolocation;
mod reflect;
mod statistics;
mod storage;
mod store_database;
mod stores;
mod strings;
mod system;
pub(crate) mod telemetry;

pub(crate) use system::refused_in_sandbox;

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

/// Names and functions.
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
    /// The function with this full name.
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
    geolocation::TABLE,
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
    // Last: these replace functions of `passive`.
    crate::bridge::NATIVES,
    crate::bridge::REQUESTS,
    crate::bridge::PACKET_NATIVES,
    crate::bridge::DECISIONS,
    crate::bridge::COUNTS,
    crate::bridge::CERTIFICATES,
    crate::bridge::CERTIFICATE_CACHE,
    crate::bridge::RECORDINGS,
];

/// State of the built-in functions.
pub struct State {
    /// Timestamp of the first packet, 0 before it.
    pub first_packet: f64,
    /// Sampling of weirds that scripts reported.
    pub(crate) weirds: options::SampledWeirds,
    /// Signatures that are not replaced by analyzers of the engine; `None` if there are none.
    pub(crate) signatures: Option<Rc<crate::bridge::signatures::Loaded>>,
    /// Log streams.
    pub log: log::Logs,
    /// Resolver of host names and addresses.
    pub(crate) resolver: crate::support::resolver::Resolver,
    /// Environment variables that scripts set.
    pub environment: BTreeMap<String, Vec<u8>>,
    /// Whether a script called `terminate` or a signal ended the run.
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
    /// Number of times each event was handled, by function.
    pub(crate) invocations: Vec<u64>,
    /// The functions of `reporter_error` and similar events.
    pub(crate) reporters: Vec<crate::ids::FuncId>,
    /// Databases of locations and autonomous systems.
    pub databases: geolocation::Databases,
    /// Stores of the Broker framework.
    pub stores: stores::Stores,
    /// Packet analyzers by parent analyzer and identifier.
    pub packet_analyzers: HashMap<(i64, u64), Value>,
    /// Number of active suspensions of packet processing.
    pub suspended: u32,
    /// Whether the run has the option `-b`.
    pub bare: bool,
    /// Whether scripts may not start processes or change files other than logs.
    pub sandbox: bool,
    /// Random number generator.
    pub random: Random,
    /// Generator of unique ids.
    pub uids: UidPools,
    /// Hash functions that depend on the seeds of the run.
    pub hashes: Hashes,
    /// The first of the seeds.
    pub first_seed: u32,
    /// Anonymizers of addresses.
    pub anonymizers: net::Anonymizers,
    /// Input streams.
    pub inputs: input::Inputs,
    /// Metrics.
    pub metrics: telemetry::Metrics,
    /// Storage backends.
    pub storage: storage::Backends,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Option change handlers, by descending priority.
    pub handlers: Vec<options::Handler>,
    /// Current connections, files and packets.
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
            databases: geolocation::Databases::default(),
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
    /// Whether external sources must be polled at each packet.
    pub(crate) fn is_polled(&self) -> bool {
        self.inputs.is_read() || self.stores.are_open() || self.log.is_rotating()
    }

    /// Sets the seeds, on which random numbers, ids, hashes and the order of tables depend.
    pub fn seed(&mut self, seeds: &Seeds) {
        self.hashes = seeds.hashes();
        self.first_seed = seeds.random;
        self.uids = UidPools::deterministic(self.hashes);
        self.random = Random::deterministic(seeds.random);
        crate::value::order::set_hashes(Some(self.hashes));
    }
}

/// The argument at `index`; unset if it is missing.
#[must_use]
pub fn arg(args: &[Value], index: usize) -> &Value {
    args.get(index).unwrap_or(&Value::Unset)
}

/// The arguments of a function that passes some of them to C as strings: reports an error for each of these that contains a NUL, and
/// replaces it with [`WITH_NUL`].
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

/// Reports an error if a string contains a NUL, which would end it as a C string.
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

/// Replacement of a string with a NUL where a C string is needed.
pub(crate) const WITH_NUL: &str = "<string-with-NUL>";

/// An empty table that keeps its insertion order.
pub(crate) fn ordered_table(vm: &mut Vm<'_>, ty: TypeId) -> Value {
    let attrs = crate::value::table::TableAttrs { ordered: true, ..Default::default() };
    vm.new_table(ty, Some(Rc::new(attrs)))
}

/// Initialization that needs the whole program, before `zeek_init`.
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

/// Ends background work and closes logs.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn finish(vm: &mut Vm<'_>) -> Result<(), Stop> {
    // Reports the last messages of readers.
    input::poll(vm)?;
    log::close_all(vm)
}

/// Writes pending changes of stores to their databases.
pub fn save_stores(vm: &mut Vm<'_>) {
    stores::commit(vm, true);
}

/// Whether background work keeps the process alive.
#[must_use]
pub fn has_work(vm: &Vm<'_>) -> bool {
    vm.m.whens.has_lookups()
}

/// Polls external sources; returns whether any was active.
///
/// # Errors
/// [`Stop`] where the program stops.
pub fn poll(vm: &mut Vm<'_>) -> Result<bool, Stop> {
    // Packets without events are not polled, but count as polls.
    let log = &mut vm.m.state.log;
    log.polls = (log.polls + 1).max(vm.m.state.traffic.number);
    if vm.m.state.stores.are_open() {
        stores::commit(vm, false);
    }
    log::poll_rotations(vm)?;
    if !vm.m.state.inputs.is_read() {
        return Ok(false);
    }
    input::poll(vm)
}

/// Converts Broker data to a type for `as`; `None` if it does not fit, or if the value is not Broker data.
pub fn cast_data(vm: &mut Vm<'_>, value: &Value, ty: TypeId) -> Option<Value> {
    data::unwrap(vm, value)?.value(vm, ty)
}

/// The text of an opaque value that holds Broker data; `None` for other opaque values.
pub(crate) fn data_text(opaque: &crate::value::OpaqueValue) -> Option<Vec<u8>> {
    data::text(opaque)
}
