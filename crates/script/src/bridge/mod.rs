//! Delivers the events that analyzers raise to script handlers.
//!
//! ```text
//! analyzers ──Raised──▶ Handlers (a Listener) ──plan of the event──▶ values ──▶ event queue of the Vm
//!                 packet done ─────────────────────────────────────────────────▶ drain
//! ```
//!
//! | module | duty |
//! |---|---|
//! | `certificate_cache` | certificates that scripts have cached |
//! | `certificates` | verification of certificates |
//! | `conn_plan` | creation and refresh of `connection` records |
//! | `counts` | counters that statistics functions return |
//! | `decide` | which packets scripts discard, and which connections they keep alive |
//! | `interest` | which events scripts need |
//! | `stored_conns` | which connections are stored |
//! | `known` | stored state of a connection, and its record |
//! | `numbers` | ids of analyzers (`aid`) |
//! | `plan` | conversion of the packed arguments of an event to script values |
//! | `signatures` | signature matching on the traffic |
//! | `settings` | script options that configure the analysis |
//! | `conn_id_flow` | whether functions look up connections that scripts have no record of |
//! | `steering` | whether scripts send requests to the analysis while packets are read |
//! | `state` | the records of connections and files, one for the lifetime of each |
//! | `traffic` | current connections, files and packet, for built-in functions |
//! | `used` | which parts of an event's arguments its handlers read |
//! | `event_route` | how an event reaches scripts |
//! | `file_analyzers` | analyzers that scripts attached to files |
//! | `file_contents` | data events, hashes and entropy of files |
//! | `requests` | functions that skip contents, set login states, match signatures, return sequence numbers |
//! | `natives` | built-in functions that read the traffic or steer its analysis |
//!
//! A request of a script to the analysis (`disable_analyzer`, `Files::add_analyzer`, …) becomes a
//! [`Command`], which the analysis executes after the queued events were handled.
//!
//! A [`Source`] reads the packets: this crate only handles events. Script values cannot be shared between threads, so
//! the run is stored in a thread-local of the thread that reads the packets, where [`Handlers`] finds it. Analyzers run on
//! this thread as well, or, for scripts that do not [steer](steering) them, on several threads.

mod certificate_cache;
mod certificates;
mod conn_id_flow;
mod conn_plan;
mod counts;
mod decide;
mod event_route;
mod file_analyzers;
mod file_contents;
mod interest;
mod known;
mod natives;
mod numbers;
mod packets;
mod plan;
mod recordings;
mod repeated;
mod requests;
mod settings;
pub(crate) mod signatures;
mod state;
mod steering;
mod stored_conns;
mod traffic;
mod used;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use gannet_base::Time;
use gannet_event::{Command, Decl, Interest, Listener, Raised, ThreadAffinity, Value as Head};

use crate::command::Options;
use crate::evaluate::Stop;
use crate::program::Program;
use crate::value::Value;
use crate::vm::{Machine, Vm};

pub(crate) use certificate_cache::TABLE as CERTIFICATE_CACHE;
pub(crate) use certificates::TABLE as CERTIFICATES;
pub(crate) use counts::TABLE as COUNTS;
pub(crate) use decide::TABLE as DECISIONS;
use event_route::{EventRoute, Kind};
pub(crate) use natives::TABLE as NATIVES;
pub(crate) use natives::{record_limit_in_history, status_due, watch};
pub use packets::FilterCheck;
pub(crate) use packets::TABLE as PACKET_NATIVES;
pub(crate) use packets::end_capture;
pub(crate) use recordings::TABLE as RECORDINGS;
pub(crate) use requests::TABLE as REQUESTS;
pub(crate) use settings::setting_changed;
use signatures::Matching;
use state::States;
pub use traffic::Traffic;
use traffic::{Names, Pace};

/// A source of packets, which turns them into events.
pub trait Source: Send {
    /// All events that the source can raise.
    fn catalogue(&self) -> Vec<&'static Decl>;

    /// Opens the capture or the interface that the options name. If they name neither, the source has no packets and only
    /// analyzes files that scripts read.
    ///
    /// # Errors
    /// Returns the error as one line.
    fn open(&mut self, options: &Options) -> Result<(), String>;

    /// The link type of the capture, if it is known before the first packet.
    fn link_type(&self, options: &Options) -> Option<u64>;

    /// The function that checks capture filters.
    fn filter_check(&self) -> FilterCheck;

    /// Reads all packets on the calling thread (from an interface: until a signal arrives) and delivers the events of
    /// `interest` to `listener`. Returns early once [`stops`] is true. Without packets, time advances while [`keeps_running`] is true,
    /// until a signal arrives.
    ///
    /// # Errors
    /// Returns the error as one line; packets read before it count.
    fn run(&mut self, options: RunOptions, listener: Box<dyn Listener>) -> Result<(), String>;
}

/// Parameters of [`Source::run`].
pub struct RunOptions {
    /// Events that have a handler.
    pub interest: Interest,
    /// Whether only the analyzers that scripts register are started.
    pub scripted: bool,
    /// Whether connections that are still open at the end are removed in the order of their endpoints, as Zeek does under
    /// seeds.
    pub in_key_order: bool,
    /// Whether scripts disable the verification of checksums (`ignore_checksums`).
    pub ignore_checksums: bool,
    /// Whether network time follows the wall clock while no packets arrive.
    pub follows_clock: bool,
}

/// Whether scripts keep the run alive without packets (`exit_only_after_terminate`).
#[must_use]
pub fn keeps_running() -> bool {
    RUN.with_borrow_mut(|run| {
        let Some(run) = run else { return false };
        let vm = run.machine.with(&mut run.program);
        vm.global_named("exit_only_after_terminate").truth()
    })
}

/// Whether scripts pass files to file analyzers themselves, which needs an analysis even without packets.
pub(crate) fn reads_files(vm: &Vm<'_>) -> bool {
    vm.find_global("Input::add_analysis").is_some_and(|global| vm.p.globals[global].uses > 0)
}

/// Whether scripts ended the run: no more packets are read.
#[must_use]
pub fn stops() -> bool {
    RUN.with_borrow(|run| {
        run.as_ref().is_some_and(|run| run.stop.is_some() || run.machine.stop_requested)
    })
}

/// Whether the scripts ended in an error or with `exit`: connections that are still open are not ended then.
#[must_use]
pub fn failed() -> bool {
    RUN.with_borrow(|run| run.as_ref().is_some_and(|run| run.stop.is_some()))
}

/// Runs a program over the packets of `source`, from `zeek_init` to `zeek_done`. Returns the exit status.
pub fn run(
    mut program: Program,
    mut machine: Machine,
    options: &Options,
    source: &mut dyn Source,
) -> i32 {
    let is_live = options.interface.is_some();
    let has_packets = is_live || options.capture.is_some();
    machine.state.packetless = !has_packets;
    let traffic = &mut machine.state.traffic;
    traffic.reads_capture = has_packets && !is_live;
    traffic.is_live = is_live;
    traffic.capture =
        options.capture.as_ref().or(options.interface.as_ref()).cloned().unwrap_or_default();
    traffic.raised = source.catalogue().iter().map(|decl| decl.name).collect();
    traffic.filters.check = Some(source.filter_check());
    traffic.write.clone_from(&options.write);
    traffic.link_type = source.link_type(options);
    traffic.pace = options.pseudo_realtime.map(|speed| Pace {
        began: Instant::now(),
        first: 0.0,
        speed: speed as f64 / 1000.0,
    });
    let follows_clock = machine.with(&mut program).follows_wall_clock();
    let uses_wall_clock = is_live || !has_packets && follows_clock;
    let now = if uses_wall_clock { crate::vm::events::wall_clock() } else { 0.0 };
    machine.state.first_packet = now;
    let mut is_incomplete = false;
    let mut result = machine.with(&mut program).begin(now, is_live || !has_packets);
    if result.is_ok() && !machine.stop_requested {
        let (mut interest, stores_all) = interest::select(&machine.with(&mut program), source);
        let scripted =
            machine.with(&mut program).function_named("Analyzer::__register_for_port").is_some();
        let in_key_order = machine.state.uids.is_deterministic();
        let salt = machine.with(&mut program).global_named("digest_salt");
        let traffic = &mut machine.state.traffic;
        traffic.names = in_key_order.then(|| Names::new(salt.str_bytes()));
        settings::pass(&mut machine.with(&mut program));
        let ignore_checksums = machine.with(&mut program).global_named("ignore_checksums").truth();
        let states = States::default();
        let matching = machine.state.signatures.clone();
        let matching = matching.map(|all| Matching::new(&machine.with(&mut program), all));
        let names_analyzers = interest::calls(&machine.with(&mut program), &["current_analyzer"]);
        let affinity = steering::affinity(&machine.with(&mut program), options, &interest, source);
        if !decide::has_discarders(&machine.with(&mut program)) {
            // Until a filter of addresses is installed, no packet is discarded.
            let catalogue = source.catalogue();
            let question = catalogue.iter().find(|decl| decl.name == "gannet::discard_packet");
            question.into_iter().for_each(|decl| interest.remove(decl.id));
        }
        let run = Run {
            program,
            machine,
            routes: Vec::new(),
            states,
            stores_all,
            names_analyzers,
            matching,
            input_ended: false,
            drained: false,
            flushed: is_live.then(Instant::now),
            // Over live traffic, packets are rare at first.
            has_begun: !has_packets || is_live,
            has_time: false,
            stop: None,
        };
        RUN.set(Some(Box::new(run)));
        let read = source.run(
            RunOptions { interest, scripted, in_key_order, ignore_checksums, follows_clock },
            Box::new(Handlers { affinity }),
        );
        let runs_on = !has_packets && !stops() && keeps_running();
        let Some(mut run) = RUN.take() else { return 1 };
        for (path, error) in run.machine.state.traffic.dumps.finish() {
            run.machine.out.add_failure(&path, error);
        }
        let Run { program: p, machine: m, stop, .. } = *run;
        (program, machine) = (p, m);
        is_incomplete = read.is_err();
        if let Err(message) = read {
            let mut vm = machine.with(&mut program);
            vm.m.out.flush();
            vm.report(crate::diagnostics::Severity::Error, &message);
        }
        // A signal ended a run that has no end of its own.
        machine.state.terminated |= is_live || runs_on;
        machine.stop_requested |= is_live || runs_on;
        result = match stop {
            Some(stop) => Err(stop),
            None => machine.with(&mut program).after_packets(),
        };
    }
    let mut vm = machine.with(&mut program);
    let status = vm.end(result);
    let status = vm.end_output(status);
    if is_incomplete && status == 0 { 1 } else { status }
}

/// Maximum delay until rows and output of live traffic are written to their files.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);

/// Maximum timestamp of a packet, in seconds.
const MAX_TIME: f64 = 9e9;

/// The state of a run.
struct Run {
    program: Program,
    machine: Machine,
    /// Routes of events, by the id of their declaration.
    routes: Vec<Option<Rc<EventRoute>>>,
    states: States,
    /// Whether all connections are stored, not only those whose record scripts may keep.
    stores_all: bool,
    /// Whether scripts query the analyzer that raised an event.
    names_analyzers: bool,
    matching: Option<Matching>,
    /// Set when the input has ended: timers expire with the next drain.
    input_ended: bool,
    /// Set when the events of the current packet were drained.
    drained: bool,
    /// When logs and output were last flushed; `None` unless the traffic is live.
    flushed: Option<Instant>,
    /// Set when the main loop has started.
    has_begun: bool,
    /// Set after the first [`Kind::TimeBegins`].
    has_time: bool,
    /// How the scripts ended, if before the last packet.
    stop: Option<Stop>,
}

thread_local! {
    static RUN: RefCell<Option<Box<Run>>> = const { RefCell::new(None) };
}

/// The listener that delivers events to the run of this thread.
struct Handlers {
    affinity: ThreadAffinity,
}

impl Handlers {
    fn with(f: impl FnOnce(&mut Run) -> Result<(), Stop>) {
        RUN.with_borrow_mut(|run| {
            if let Some(run) = run
                && run.stop.is_none()
                && let Err(stop) = f(run)
                && stop != Stop::Error
            {
                run.stop = Some(stop);
            }
        });
    }
}

impl Listener for Handlers {
    fn affinity(&self) -> ThreadAffinity {
        self.affinity
    }

    fn event(&mut self, event: &Raised<'_>) {
        Self::with(|run| run.event(event));
    }

    fn packet(&mut self, time: Time, number: u64) {
        Self::with(|run| {
            run.machine.state.traffic.number = number;
            run.packet(plan::seconds(time.as_nanos()))
        });
    }

    fn packets_from(&self) -> Time {
        RUN.with_borrow(|run| run.as_ref().map_or(Time::MIN, |run| run.packets_from()))
    }

    fn commands(&mut self, to: &mut Vec<Command>) {
        RUN.with_borrow_mut(|run| {
            let Some(run) = run else { return };
            to.append(&mut run.machine.state.traffic.commands);
            run.machine.state.traffic.file_analyzers.apply_requests();
            if run.stop.is_some() || run.machine.stop_requested {
                to.push(Command::Stop);
            }
        });
    }

    fn drained(&mut self) {
        Self::with(Run::drained);
    }

    fn decide(&mut self, question: &Raised<'_>) -> bool {
        let mut answer = false;
        Self::with(|run| {
            let mut vm = run.machine.with(&mut run.program);
            answer = decide::answer(&mut vm, &mut run.states, question)?;
            Ok(())
        });
        answer
    }
}

impl Run {
    fn event(&mut self, event: &Raised<'_>) -> Result<(), Stop> {
        let route = self.route(event.decl);
        if route.kind == Kind::InputEnds {
            self.finish_packet()?;
        }
        let mut vm = self.machine.with(&mut self.program);
        if route.is_counted {
            let state = &mut vm.m.state;
            state.traffic.counts.event(&mut state.metrics, event);
        }
        match route.kind {
            Kind::PacketBytes => return packets::bytes(&mut vm, event),
            Kind::PacketSeen => {
                packets::seen(&mut vm.m.state.traffic, event);
                return Ok(());
            }
            Kind::TcpOptions => {
                let mut reader = event.args();
                let options = event.decl.params.first().and_then(|param| reader.param(param));
                if let Some(Head::String(options)) = options {
                    vm.m.state.traffic.tcp_options = options.to_vec();
                }
                return Ok(());
            }
            Kind::GeneveOptions => {
                if let Some(options) = event.args().bytes() {
                    vm.m.state.traffic.geneve_options.insert(0, options.to_vec());
                }
                return Ok(());
            }
            Kind::PppoeSession => {
                vm.m.state.traffic.pppoe_session = event.args().count();
                return Ok(());
            }
            Kind::ConnectionNoted => {
                requests::note(&mut vm.m.state.traffic, event);
                return Ok(());
            }
            Kind::FileData => return file_contents::data(&mut vm, &mut self.states, event),
            Kind::StreamContents => {
                recordings::write(&mut vm, event);
                return Ok(());
            }
            Kind::FileViolation => {
                return file_contents::violation(&mut vm, &mut self.states, event);
            }
            Kind::FileLimit => return file_contents::limit(&mut vm, &mut self.states, event),
            _ => {}
        }
        if let Some(matching) = &mut self.matching
            && matching.event(&mut vm, &mut self.states, event)?
        {
            return Ok(());
        }
        match route.kind {
            Kind::InputEnds => {
                self.input_ended = true;
                self.states.is_over = true;
                vm.m.state.traffic.packet = None;
                if vm.m.state.traffic.reads_capture {
                    let path = Value::string(&vm.m.state.traffic.capture);
                    vm.queue_named("Pcap::file_done", vec![path]);
                }
            }
            // The first such event precedes the timers that expire with the packet.
            Kind::TimeBegins if !std::mem::replace(&mut self.has_time, true) => return Ok(()),
            Kind::AnalyzerPlanned => return self.states.analyzer_planned(&mut vm, event),
            Kind::AnalyzersNumbered => return self.states.analyzers_numbered(&mut vm, event),
            _ => {}
        }
        let stopped = &mut vm.m.state.traffic.stopped;
        if !stopped.is_empty()
            && is_file_event(event.decl.name)
            && let Some(file) = state::first_file(event)
            && stopped.contains(&file.fuid)
        {
            if route.kind == Kind::FileRemoved {
                stopped.remove(&file.fuid);
                self.states.mark_ended(&vm.m.state.traffic, event);
            }
            return Ok(());
        }
        if route.kind == Kind::Certificate
            && certificate_cache::is_cached(&mut vm, &mut self.states, event)?
        {
            return Ok(());
        }
        if route.kind == Kind::ConnectionBegins {
            natives::begin_status(&mut vm, &mut self.states, event)?;
        }
        let Some(plan) = &route.plan else {
            return if route.is_noted { self.states.note(&mut vm, event) } else { Ok(()) };
        };
        let mut args = vm.m.spare_args();
        args.reserve_exact(plan.count);
        Value::append_unset(&mut args, plan.count);
        let mut reader = event.args();
        for ((slot, plan), param) in plan.params.iter().zip(event.decl.params) {
            let value = plan.param(&mut vm, &mut self.states, event, &mut reader, param)?;
            if let Some(arg) = slot.and_then(|slot| args.get_mut(slot)) {
                *arg = value;
            }
        }
        let mut uid = None;
        if let Some((ty, is_looked_up)) = plan.temporary {
            let state = state::first_connection(event);
            uid = state.map(|state| state.uid);
            if route.is_noted {
                self.states.note(&mut vm, event)?;
            }
            if let (Some(state), true) = (state, is_looked_up)
                && (self.stores_all || self.states.is_stored(&mut vm, ty, state))
            {
                self.states.store(&mut vm, ty, state)?;
            }
        } else if matches!(route.kind, Kind::ConnectionRemoved | Kind::FileRemoved) {
            self.states.mark_ended(&vm.m.state.traffic, event);
        }
        match route.kind {
            Kind::RawPacket => {
                vm.m.state.traffic.header = args.first().cloned().unwrap_or_default();
            }
            Kind::AnalyzerInfo => numbers::note(&mut vm, &args),
            Kind::WebSocketBegins => numbers::note_websocket(&mut vm, &args),
            Kind::FileRemoved => {
                vm.m.state.traffic.certificate_cache.forget(event);
                file_contents::end(&mut vm, event, args.first());
            }
            Kind::FileSniff => {
                if let Some(matching) = &self.matching {
                    matching.sniff(&mut vm, event, &args)?;
                }
            }
            Kind::Contents(transport) if !packets::delivers(&vm, transport, &args) => return Ok(()),
            _ => {}
        }
        let analyzer = if self.names_analyzers { numbers::analyzer_id(&vm, event) } else { 0 };
        vm.queue_event_of(plan.func, args, uid, analyzer);
        if route.kind == Kind::FileBegins {
            // Handlers decide which further events the file raises.
            self.states.forget(&mut vm.m.state.traffic);
            vm.drain()?;
            self.states.invalidate_current();
        }
        Ok(())
    }

    /// The route of an event, which is computed once.
    fn route(&mut self, decl: &'static Decl) -> Rc<EventRoute> {
        let index = usize::from(decl.id.get());
        if let Some(Some(route)) = self.routes.get(index) {
            return Rc::clone(route);
        }
        let vm = self.machine.with(&mut self.program);
        let route = Rc::new(EventRoute::new(&vm, decl, self.stores_all));
        if self.routes.len() <= index {
            self.routes.resize(index + 1, None);
        }
        if let Some(slot) = self.routes.get_mut(index) {
            *slot = Some(Rc::clone(&route));
        }
        route
    }

    /// Handles the remaining events of the previous packet, as in an iteration of Zeek's main loop.
    fn finish_packet(&mut self) -> Result<(), Stop> {
        let mut vm = self.machine.with(&mut self.program);
        if !std::mem::take(&mut self.drained) {
            vm.drain()?;
        }
        vm.drain()?;
        vm.before_packet()
    }

    /// Begins a packet: fires timers.
    fn packet(&mut self, now: f64) -> Result<(), Stop> {
        if std::mem::replace(&mut self.has_begun, true) {
            self.finish_packet()?;
        } else {
            // The main loop starts with the first packet: remaining events of `zeek_init` are handled with those of the packet.
            let mut vm = self.machine.with(&mut self.program);
            vm.fire_timers(vm.m.now)?;
            vm.before_packet()?;
        }
        if self.machine.stop_requested {
            // Network time remains that of the last packet.
            return Ok(());
        }
        let mut vm = self.machine.with(&mut self.program);
        if vm.m.state.suspended > 0 {
            vm.wait_while_suspended()?;
        }
        let is_first = vm.m.state.first_packet == 0.0 && now > 0.0;
        if is_first {
            vm.m.state.first_packet = now;
        }
        if let Some(pace) = &mut vm.m.state.traffic.pace {
            if is_first {
                (pace.began, pace.first) = (Instant::now(), now);
            }
            // Packets are delayed as they were captured, divided by the speed.
            let wait = (now - pace.first) / pace.speed - pace.began.elapsed().as_secs_f64();
            if let Ok(wait) = Duration::try_from_secs_f64(wait) {
                std::thread::sleep(wait);
            }
        }
        vm.m.state.traffic.tcp_options.clear();
        vm.m.state.traffic.geneve_options.clear();
        vm.m.state.traffic.pppoe_session = None;
        vm.m.now = vm.m.now.max(now);
        let now = vm.m.now;
        vm.p.diagnostics.now.set(now);
        if let Some(flushed) = &mut self.flushed
            && flushed.elapsed() >= FLUSH_INTERVAL
        {
            *flushed = Instant::now();
            crate::bif::log::flush_all(&mut vm);
            vm.m.out.flush_all();
        }
        if is_first {
            vm.queue_named("network_time_init", Vec::new());
            // Results that wait for the first packet arrive before their `when` conditions time out.
            vm.run_triggers()?;
        }
        vm.fire_timers(now)?;
        Ok(())
    }

    /// Network time from which [`Self::packet`] must be called for each packet, even one without events: the time of the next timer,
    /// or [`Time::MIN`] if the main loop has work to do.
    fn packets_from(&self) -> Time {
        let state = &self.machine.state;
        let is_paced = self.flushed.is_some() || state.traffic.pace.is_some();
        if !self.has_begun || state.first_packet == 0.0 || is_paced || self.machine.has_work() {
            return Time::MIN;
        }
        match self.machine.queue.next_timer() {
            // Times of packets are rounded to microseconds before the comparison.
            Some(time) if time < MAX_TIME => Time::from_nanos(((time - 1e-5) * 1e9) as i64),
            _ => Time::MAX,
        }
    }

    /// Called when events were queued: at the end of a packet, or earlier if their handlers run at once.
    fn drained(&mut self) -> Result<(), Stop> {
        self.states.forget(&mut self.machine.state.traffic);
        self.drained = true;
        let mut vm = self.machine.with(&mut self.program);
        vm.drain()?;
        if !vm.m.state.traffic.matches.is_empty() {
            if let Some(matching) = &mut self.matching {
                matching.match_requested(&mut vm, &mut self.states)?;
            }
            vm.drain()?;
        }
        if std::mem::take(&mut self.input_ended) {
            vm.m.terminating = true;
            vm.fire_timers(f64::INFINITY)?;
            vm.drain()?;
            vm.drain()?;
        }
        Ok(())
    }
}

/// Whether an event is about a file itself: it is dropped for files that scripts stopped, unlike events of the file's analyzers.
fn is_file_event(event: &str) -> bool {
    matches!(
        event,
        "file_new"
            | "file_over_new_connection"
            | "file_sniff"
            | "file_timeout"
            | "file_gap"
            | "file_reassembly_overflow"
            | "file_state_remove"
            | "gannet::file_extraction_limit"
    )
}
