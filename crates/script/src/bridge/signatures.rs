//! Signatures over packets: passes data of the analysis to the matcher, and its matches to scripts and the analysis.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use gannet_base::{Proto, Uid};
use gannet_event::{Command, ConnCommand, ConnState, Raised, Value as Head};

use super::requests::MatchRequest;
use super::state::{States, first_connection};
use crate::evaluate::Stop;
use crate::ids::{FuncId, GlobalId};
use crate::signature::states;
use crate::signature::{
    Action, Condition, Connection, Headers, Host, Item, Kind, MatchContext, Rule, Signatures,
};
use crate::types::Tag;
use crate::value::{Record, Value, Vector};
use crate::vm::Vm;

/// The signatures of a program, with the events and conditions that they refer to.
pub(crate) struct Loaded {
    pub(crate) signatures: Signatures,
    /// Events, and whether they have a parameter for the end of the match.
    pub(crate) events: Vec<(FuncId, bool)>,
    /// Functions and variables that conditions evaluate.
    pub(crate) conditions: Vec<GlobalId>,
}

/// Protocol events whose arguments are matched against patterns of these kinds.
const ITEMS: &[(&str, &[Kind])] = &[
    ("http_request", &[Kind::HttpRequest]),
    ("http_header", &[Kind::HttpRequestHeader, Kind::HttpReplyHeader]),
    ("http_begin_entity", &[Kind::HttpRequestBody, Kind::HttpReplyBody]),
    ("http_entity_data", &[Kind::HttpRequestBody, Kind::HttpReplyBody]),
    ("http_end_entity", &[Kind::HttpRequestBody, Kind::HttpReplyBody]),
    ("ftp_request", &[Kind::Ftp]),
    ("finger_request", &[Kind::Finger]),
];

impl Loaded {
    /// Whether signatures need an event of the analysis.
    pub(super) fn needs(&self, event: &str) -> bool {
        if event.starts_with("gannet::signature_") {
            return self.signatures.has_connections();
        }
        let item = ITEMS.iter().find(|(name, _)| *name == event);
        item.is_some_and(|(_, kinds)| kinds.iter().any(|kind| self.signatures.has(*kind)))
    }
}

/// The state of signature matching.
pub(super) struct Matching {
    loaded: Rc<Loaded>,
    conns: HashMap<Uid, ConnMatches>,
    /// Pending actions of rules that matched, in order. Those after the start of an analyzer wait until that has read the data
    /// so far.
    effects: VecDeque<Effect>,
    limits: Limits,
    buffers_data: bool,
}

/// Limits of the data that is matched in a connection (`dpd_buffer_size` and others).
struct Limits {
    bytes: u64,
    chunks: u64,
    only_beginning: bool,
    late_match_stops: bool,
}

/// Matching state of a connection.
#[derive(Default)]
struct ConnMatches {
    conn: Connection,
    stage: Stage,
    /// The data so far, in chunks, each with whether the originator sent it.
    data: Vec<(bool, Vec<u8>)>,
    bytes: u64,
    chunks: u64,
    /// Whether an HTTP body of each side has begun.
    has_body: [bool; 2],
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// Data is buffered for analyzers that are started later.
    #[default]
    Buffering,
    /// Data is matched, not buffered.
    Matching,
    /// Data is ignored.
    Done,
}

enum Effect {
    Event(FuncId, Vec<Value>),
    Start(String),
}

impl Matching {
    pub(super) fn new(vm: &Vm<'_>, loaded: Rc<Loaded>) -> Self {
        let limits = Limits {
            bytes: vm.global_named("dpd_buffer_size").count(),
            chunks: vm.global_named("dpd_max_packets").count(),
            only_beginning: vm.global_named("dpd_match_only_beginning").truth(),
            late_match_stops: vm.global_named("dpd_late_match_stop").truth(),
        };
        let buffers_data = loaded.signatures.starts_analyzers();
        let (conns, effects) = (HashMap::new(), VecDeque::new());
        Self { loaded, conns, effects, limits, buffers_data }
    }

    /// Handles an event of the analysis. Returns whether only signatures need it.
    pub(super) fn event(
        &mut self,
        vm: &mut Vm<'_>,
        states: &mut States,
        event: &Raised<'_>,
    ) -> Result<bool, Stop> {
        let name = event.decl.name;
        let Some(what) = name.strip_prefix("gannet::signature_") else {
            if self.loaded.needs(name) {
                self.protocol_item(vm, states, event)?;
            } else if name == "connection_flipped"
                && let Some(matched) =
                    first_connection(event).and_then(|state| self.conns.get_mut(&state.uid))
            {
                matched.data.iter_mut().for_each(|(is_orig, _)| *is_orig = !*is_orig);
            }
            return Ok(false);
        };
        let Some(state) = first_connection(event) else { return Ok(true) };
        let mut matched = self.conns.remove(&state.uid).unwrap_or_default();
        let args = arguments(event);
        let is_orig = matches!(args.get(1), Some(Some(Head::Bool(true))));
        let loaded = Rc::clone(&self.loaded);
        let all = &loaded.signatures;
        let mut host = ScriptHost::new(vm, states, state, &loaded, &mut self.effects);
        match (what, &args[..]) {
            ("packet", [.., version, header, payload, protocol]) => {
                let headers = Headers {
                    version: as_u8(version),
                    header: bytes(header),
                    payload: bytes(payload),
                    protocol: as_u8(protocol),
                };
                all.begin(&mut matched.conn, is_orig, Some(&headers), &mut host);
                // Analyzers that it starts read its data, which follows.
                if state.proto == Proto::Udp {
                    let stop = host.stop;
                    self.queue_events(vm);
                    self.conns.insert(state.uid, matched);
                    return stop.map_or(Ok(true), Err);
                }
                // Without data, analyzers have nothing to read before the events that follow.
                if matched.data.is_empty() {
                    let stop = host.stop;
                    while !self.effects.is_empty() {
                        self.flush(vm, state, &mut matched);
                    }
                    self.conns.insert(state.uid, matched);
                    return stop.map_or(Ok(true), Err);
                }
            }
            ("data", [.., contents]) => {
                let contents = bytes(contents);
                let next = buffer(&mut matched, &self.limits, self.buffers_data, is_orig, contents);
                let fresh = state.proto == Proto::Icmp;
                let item =
                    Item { kind: Kind::Payload, data: contents, begins: false, ends: false, fresh };
                all.feed(&mut matched.conn, is_orig, &item, &mut host);
                if state.proto == Proto::Udp {
                    all.clear(&mut matched.conn, is_orig, &mut host);
                }
                let stop = host.stop;
                self.flush(vm, state, &mut matched);
                if next == Stage::Done {
                    matched.data = Vec::new();
                    let what = ConnCommand::Unmatched;
                    vm.m.state.traffic.commands.push(command(state, what));
                }
                matched.stage = next;
                self.conns.insert(state.uid, matched);
                return stop.map_or(Ok(true), Err);
            }
            ("end", _) => {
                all.finish(&mut matched.conn, &mut host);
                let stop = host.stop;
                // Analyzers that start here receive no further data.
                while !self.effects.is_empty() {
                    self.flush(vm, state, &mut matched);
                }
                return stop.map_or(Ok(true), Err);
            }
            _ => {}
        }
        let stop = host.stop;
        self.flush(vm, state, &mut matched);
        self.conns.insert(state.uid, matched);
        stop.map_or(Ok(true), Err)
    }

    /// Handles an event of a protocol whose arguments are matched.
    fn protocol_item(
        &mut self,
        vm: &mut Vm<'_>,
        states: &mut States,
        event: &Raised<'_>,
    ) -> Result<(), Stop> {
        let Some(state) = first_connection(event) else { return Ok(()) };
        let mut matched = self.conns.remove(&state.uid).unwrap_or_default();
        let args = arguments(event);
        let flag = |at: usize| matches!(args.get(at), Some(Some(Head::Bool(true))));
        let text = |at: usize| args.get(at).map_or(&b""[..], bytes);
        let loaded = Rc::clone(&self.loaded);
        let mut host = ScriptHost::new(vm, states, state, &loaded, &mut self.effects);
        let mut feed = |conn: &mut Connection, is_orig: bool, item: Item<'_>| {
            if !conn.has_begun(is_orig) {
                loaded.signatures.begin(conn, is_orig, None, &mut host);
            }
            loaded.signatures.feed(conn, is_orig, &item, &mut host);
        };
        let whole = |kind, data| Item { kind, data, begins: true, ends: true, fresh: true };
        let conn = &mut matched.conn;
        match event.decl.name {
            "http_request" => feed(conn, true, whole(Kind::HttpRequest, text(3))),
            "http_header" => {
                let is_orig = flag(1);
                let kind = if is_orig { Kind::HttpRequestHeader } else { Kind::HttpReplyHeader };
                // Three parts, as in Zeek: a signature event reports the part that completes the match.
                let (name, value) = (text(2), text(4));
                feed(
                    conn,
                    is_orig,
                    Item { kind, data: name, begins: true, ends: false, fresh: true },
                );
                let part = |data, ends| Item { kind, data, begins: false, ends, fresh: false };
                feed(conn, is_orig, part(b": ", false));
                feed(conn, is_orig, part(value, true));
            }
            "http_begin_entity" => matched.has_body[usize::from(!flag(1))] = false,
            "http_entity_data" | "http_end_entity" => {
                let is_orig = flag(1);
                let kind = if is_orig { Kind::HttpRequestBody } else { Kind::HttpReplyBody };
                let ends = event.decl.name == "http_end_entity";
                let data = if ends { b"" } else { text(3) };
                let begins = !matched.has_body[usize::from(!is_orig)] && !ends;
                feed(conn, is_orig, Item { kind, data, begins, ends, fresh: begins });
                matched.has_body[usize::from(!is_orig)] |= !data.is_empty();
            }
            "ftp_request" => {
                let separator: &[u8] = if text(2).is_empty() { b"" } else { b" " };
                let line = [text(1), separator, text(2)].concat();
                feed(conn, true, whole(Kind::Ftp, &line));
            }
            _ => {
                let separator: &[u8] = if text(3).is_empty() { b"" } else { b"@" };
                let line = [text(2), separator, text(3)].concat();
                feed(conn, true, whole(Kind::Finger, &line));
            }
        }
        let stop = host.stop;
        self.flush(vm, state, &mut matched);
        self.conns.insert(state.uid, matched);
        stop.map_or(Ok(()), Err)
    }

    /// Matches the data that scripts passed to `match_signatures`.
    pub(super) fn match_requested(
        &mut self,
        vm: &mut Vm<'_>,
        states: &mut States,
    ) -> Result<(), Stop> {
        for request in std::mem::take(&mut vm.m.state.traffic.matches) {
            let Some((record, state)) = super::state::state_for_rules(vm, &request.key) else {
                continue;
            };
            let mut matched = self.conns.remove(&state.uid).unwrap_or_default();
            let loaded = Rc::clone(&self.loaded);
            let mut host = ScriptHost::new(vm, states, &state, &loaded, &mut self.effects);
            host.record = Some(record);
            let (conn, is_orig) = (&mut matched.conn, request.is_orig);
            if !conn.has_begun(is_orig) {
                loaded.signatures.begin(conn, is_orig, None, &mut host);
            }
            let MatchRequest { kind, begins, ends, fresh, .. } = request;
            let item = Item { kind, data: &request.data, begins, ends, fresh };
            loaded.signatures.feed(conn, is_orig, &item, &mut host);
            let stop = host.stop;
            self.flush(vm, &state, &mut matched);
            self.conns.insert(state.uid, matched);
            stop.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Queues events, up to the first analyzer to start.
    fn queue_events(&mut self, vm: &mut Vm<'_>) {
        while let Some(Effect::Event(..)) = self.effects.front() {
            if let Some(Effect::Event(func, args)) = self.effects.pop_front() {
                vm.queue_event(func, args);
            }
        }
    }

    /// Queues events and requests analyzers, up to and including the first analyzer.
    fn flush(&mut self, vm: &mut Vm<'_>, state: &ConnState, matched: &mut ConnMatches) {
        while let Some(effect) = self.effects.pop_front() {
            match effect {
                Effect::Event(func, args) => vm.queue_event(func, args),
                Effect::Start(analyzer) if matched.stage == Stage::Matching => {
                    let tag = vm.enum_named(&analyzer);
                    let key = super::state::key(&vm.m.state.traffic, state);
                    let known = vm.m.state.traffic.conns.get(&key);
                    if known.is_some_and(|known| known.uid == state.uid)
                        && let Some(record) = super::state::record_of(vm, &key)
                    {
                        let record = Value::Record(record);
                        vm.queue_named("protocol_late_match", vec![record, tag]);
                    }
                    if self.limits.late_match_stops {
                        matched.stage = Stage::Done;
                    }
                }
                Effect::Start(analyzer) => {
                    let replay = matched.data.clone();
                    let what = ConnCommand::Start { analyzer, replay };
                    vm.m.state.traffic.commands.push(command(state, what));
                    return;
                }
            }
        }
    }

    /// The types of a file, by its first bytes: changes the argument of `file_sniff`.
    pub(super) fn sniff(
        &self,
        vm: &mut Vm<'_>,
        event: &Raised<'_>,
        args: &[Value],
    ) -> Result<(), Stop> {
        let [_, Value::Record(meta)] = args else { return Ok(()) };
        let first = match arguments(event).first() {
            Some(Some(Head::File(index))) => event.file(*index).and_then(|file| file.bof.clone()),
            _ => None,
        };
        let Some(first) = first else { return Ok(()) };
        let own = self.loaded.signatures.mime_types(&first);
        if own.is_empty() {
            return Ok(());
        }
        add_types(vm, meta, own)
    }
}

/// Buffers data for analyzers that start later. Returns the stage for the data that follows.
fn buffer(
    matched: &mut ConnMatches,
    limits: &Limits,
    buffers: bool,
    is_orig: bool,
    data: &[u8],
) -> Stage {
    if matched.stage != Stage::Buffering || data.is_empty() {
        return matched.stage;
    }
    matched.bytes += data.len() as u64;
    matched.chunks += 1;
    if buffers {
        matched.data.push((is_orig, data.to_vec()));
    }
    if matched.bytes <= limits.bytes && matched.chunks <= limits.chunks {
        return Stage::Buffering;
    }
    if limits.only_beginning { Stage::Done } else { Stage::Matching }
}

fn command(state: &ConnState, what: ConnCommand) -> Command {
    let ConnState { uid, id, ip_proto, .. } = *state;
    Command::Connection { uid, id, ip_proto, what }
}

/// The arguments of an event.
fn arguments<'a>(event: &Raised<'a>) -> Vec<Option<Head<'a>>> {
    let mut reader = event.args();
    event.decl.params.iter().map(|param| reader.param(param)).collect()
}

fn bytes<'a>(head: &Option<Head<'a>>) -> &'a [u8] {
    match head {
        Some(Head::String(text)) => text,
        _ => b"",
    }
}

fn as_u8(head: &Option<Head<'_>>) -> u8 {
    match head {
        Some(Head::Count(number)) => u8::try_from(*number).unwrap_or_default(),
        _ => 0,
    }
}

/// Adds types to the `fa_metadata` of a file.
fn add_types(vm: &mut Vm<'_>, meta: &Rc<Record>, own: Vec<(i64, Vec<u8>)>) -> Result<(), Stop> {
    let names = ["mime_type", "mime_types", "inferred"];
    let [mime, types, inferred] = super::plan::field_offsets(vm, meta.ty(), names);
    let (Some(mime), Some(types), Some(inferred)) = (mime, types, inferred) else { return Ok(()) };
    let Some(record) = vm.p.types.record(meta.ty()) else { return Ok(()) };
    let Some(list) = record.fields.get(types).map(|field| field.ty) else { return Ok(()) };
    let Some(element) = vm.p.types.element(list) else { return Ok(()) };
    let [strength, name] = super::plan::field_offsets(vm, element, ["strength", "mime"]);
    let (Some(strength), Some(name)) = (strength, name) else { return Ok(()) };
    let mut all = own;
    if let Value::Vector(known) = meta.get(types) {
        for item in known.items().iter() {
            if let Some(record) = item.record() {
                all.push((record.get(strength).int(), record.get(name).str_bytes().to_vec()));
            }
        }
    }
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    all.dedup();
    let mut items = Vec::with_capacity(all.len());
    for (at, (number, text)) in all.iter().enumerate() {
        // Of types with the same strength the list contains the last, as in Zeek; the first is the type.
        if all.get(at + 1).is_some_and(|(next, _)| next == number) {
            continue;
        }
        let item = vm.new_record(element, &[], Vec::new())?;
        if let Some(record) = item.record() {
            record.set(strength, Value::Int(*number));
            record.set(name, Value::string(text));
        }
        items.push(item);
    }
    if let Some((_, first)) = all.first() {
        meta.set(mime, Value::string(first));
    }
    meta.set(types, Value::Vector(Vector::new(list, items)));
    meta.set(inferred, Value::Bool(true));
    Ok(())
}

/// Executes conditions and actions of rules.
struct ScriptHost<'a, 'b> {
    vm: &'a mut Vm<'b>,
    states: &'a mut States,
    state: &'a ConnState,
    loaded: &'a Loaded,
    effects: &'a mut VecDeque<Effect>,
    /// The record of the connection, if it differs from `state`.
    record: Option<Rc<Record>>,
    stop: Option<Stop>,
}

impl<'a, 'b> ScriptHost<'a, 'b> {
    fn new(
        vm: &'a mut Vm<'b>,
        states: &'a mut States,
        state: &'a ConnState,
        loaded: &'a Loaded,
        effects: &'a mut VecDeque<Effect>,
    ) -> Self {
        Self { vm, states, state, loaded, effects, record: None, stop: None }
    }

    /// `signature_state`
    fn value(&mut self, rule: &Rule, context: &MatchContext<'_>) -> Result<Value, Stop> {
        let (Some(ty), Some(conn)) =
            (self.vm.type_named("signature_state"), self.vm.type_named("connection"))
        else {
            return Ok(Value::Unset);
        };
        let conn = match &self.record {
            Some(record) => Value::Record(Rc::clone(record)),
            None => self.states.connection(self.vm, conn, self.state)?,
        };
        let fields = vec![
            Value::string(&*rule.id),
            conn,
            Value::Bool(context.is_orig),
            Value::Count(context.payload_size as u64),
        ];
        self.vm.new_record(ty, &[0, 1, 2, 3], fields)
    }

    fn eval(&mut self, rule: &Rule, number: u32, context: &MatchContext<'_>) -> Result<bool, Stop> {
        let global = usize::try_from(number).ok().and_then(|at| self.loaded.conditions.get(at));
        let Some(global) = global.copied() else { return Ok(false) };
        let value = self.vm.global(global);
        if let Value::Func(func) = &value {
            let state = self.value(rule, context)?;
            let data = Value::string(context.data.unwrap_or_default());
            return Ok(self.vm.call(func, &[state, data])?.truth());
        }
        if !value.is_set() {
            if let crate::symbols::GlobalKind::Function(func) = self.vm.p.globals[global].kind {
                let state = self.value(rule, context)?;
                let data = Value::string(context.data.unwrap_or_default());
                return Ok(self.vm.call_func(func, &[state, data])?.truth());
            }
            self.vm.report(crate::diagnostics::Severity::Error, "undefined value");
        }
        Ok(value.truth())
    }

    fn event(
        &mut self,
        rule: &Rule,
        (event, message): (u32, Option<&[u8]>),
        context: &MatchContext<'_>,
    ) -> Result<(), Stop> {
        let event = usize::try_from(event).ok().and_then(|at| self.loaded.events.get(at));
        let Some((func, takes_end)) = event.copied() else { return Ok(()) };
        let mut args = vec![self.value(rule, context)?];
        args.extend(message.map(Value::string));
        args.push(Value::string(context.data.unwrap_or_default()));
        if takes_end {
            args.push(Value::Count(context.end));
        }
        self.effects.push_back(Effect::Event(func, args));
        Ok(())
    }

    fn catch<T: Default>(&mut self, result: Result<T, Stop>) -> T {
        result.unwrap_or_else(|stop| {
            if stop != Stop::Error {
                self.stop = Some(stop);
            }
            T::default()
        })
    }
}

impl Host for ScriptHost<'_, '_> {
    fn holds(&mut self, rule: &Rule, condition: Condition, context: &MatchContext<'_>) -> bool {
        /// Zeek's highest endpoint state before a connection is established.
        const BEFORE: u8 = 2;
        let side = |bits: u8| {
            !(bits & states::ORIGINATOR != 0 && !context.is_orig
                || bits & states::RESPONDER != 0 && context.is_orig)
        };
        match condition {
            Condition::Tcp(bits) => {
                let established = || self.state.ends.iter().all(|end| end.state > BEFORE);
                self.state.proto == Proto::Tcp
                    && (bits & states::STATELESS != 0
                        || side(bits) && (bits & states::ESTABLISHED == 0 || established()))
            }
            Condition::Udp(bits) => {
                self.state.proto == Proto::Udp && (bits & states::STATELESS != 0 || side(bits))
            }
            Condition::SameIp => self.state.id.orig_h == self.state.id.resp_h,
            Condition::Eval(number) => {
                let result = self.eval(rule, number, context);
                self.catch(result)
            }
            Condition::IpOptions | Condition::PayloadSize(_) => false,
        }
    }

    fn act(&mut self, rule: &Rule, action: &Action, context: &MatchContext<'_>) {
        match action {
            Action::Event { event, message } => {
                let result = self.event(rule, (*event, message.as_deref()), context);
                self.catch(result);
            }
            Action::Enable { analyzer, inner } => {
                let analyzer = inner.as_ref().unwrap_or(analyzer);
                self.effects.push_back(Effect::Start(analyzer.to_string()));
            }
            // Zeek has no way to remove analyzers by signature either.
            Action::Disable { .. } | Action::Mime { .. } => {}
        }
    }
}

/// Whether a type is numeric.
pub(crate) fn is_number(tag: Tag) -> bool {
    matches!(tag, Tag::Bool | Tag::Int | Tag::Count | Tag::Enum | Tag::Port)
}
