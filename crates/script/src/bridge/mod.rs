//! Events of packets for scripts: what analyzers raise becomes calls of script handlers.
//!
//! ```text
//! analyzers ──Raised──▶ Handlers (a Listener) ──plan of the event──▶ values ──▶ event queue of the Vm
//!                 packet done ─────────────────────────────────────────────────▶ drain
//! ```
//!
//! | module | duty |
//! |---|---|
//! | `certificate_cache` | certificates that scripts know already |
//! | `certificates` | checks of certificates |
//! | `conn_plan` | how the record of a connection is made |
//! | `counts` | what statistics count |
//! | `decide` | which packets scripts discard, and which connections they keep |
//! | `interest` | which events scripts need |
//! | `kept` | which connections are stored |
//! | `known` | what is known of a connection, and its record |
//! | `numbers` | numbers of analyzers |
//! | `plan` | how the packed arguments of an event become script values |
//! | `signatures` | what signatures find in the traffic |
//! | `settings` | what options of scripts mean for the analysis |
//! | `shown` | whether functions look for connections that scripts have no record of |
//! | `steering` | whether scripts ask something of the analysis while packets are read |
//! | `state` | the records of connections and files, which live as long as these |
//! | `traffic` | what built-in functions know of connections, files and the packet |
//! | `used` | what handlers read of the arguments of an event |
//! | `event_route` | how an event reaches scripts |
//! | `requests` | functions that skip contents, set states of logins, match signatures, show sequence numbers |
//! | `natives` | built-in functions that look at the traffic or steer its analysis |
//!
//! What scripts ask of the analysis (`disable_analyzer`, `Files::add_analyzer`, …) becomes a
//! [`Command`], which the analysis carries out once the events that wait were handled.
//!
//! A [`Source`] reads the packets: this crate knows events only. Values of scripts are not shared with other threads, so
//! the run is kept in the thread that reads the packets, and [`Handlers`] finds it there. Analyzers run on this thread as
//! well, or, for scripts that do not [steer](steering) them, on several.

mod certificate_cache;
mod certificates;
mod conn_plan;
mod counts;
mod decide;
mod event_route;
mod file_analyzers;
mod interest;
mod kept;
mod known;
mod listening;
mod natives;
mod numbers;
mod packets;
mod plan;
mod recordings;
mod repeated;
mod requests;
mod settings;
mod shown;
pub(crate) mod signatures;
mod state;
mod steering;
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
pub(crate) use natives::{note_limit, status_due, watch};
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

/// Where packets come from: what turns them into events.
pub trait Source: Send {
    /// All events that there are.
    fn catalogue(&self) -> Vec<&'static Decl>;

    /// Opens the capture or the interface that the options name, or neither: then there are no packets, but files that
    /// scripts read.
    ///
    /// # Errors
    /// The error, in a line.
    fn open(&mut self, options: &Options) -> Result<(), String>;

    /// The type of the link of the capture by its number, where it is known before the first packet.
    fn link_type(&self, options: &Options) -> Option<u64>;

    /// How capture filters are checked.
    fn filter_check(&self) -> FilterCheck;

    /// Reads all packets on the calling thread, those of an interface until a signal comes, and delivers the events of
    /// `interest` to `listener`. Ends early once [`stops`] holds. Without packets, time advances while [`stays`] holds,
    /// until a signal comes.
    ///
    /// # Errors
    /// The error, in a line; packets read before it count.
    fn run(&mut self, start: Start, listener: Box<dyn Listener>) -> Result<(), String>;
}

/// With what packets are read.
pub struct Start {
    /// Events that have a handler.
    pub interest: Interest,
    /// Whether scripts say which analyzers start: no other ones do.
    pub scripted: bool,
    /// Whether connections that are open at the end are removed in the order of their ends, as Zeek does under
    /// seeds.
    pub in_key_order: bool,
    /// Whether scripts say that checksums are not verified.
    pub ignore_checksums: bool,
    /// Whether time follows the clock where there are no packets.
    pub follows_clock: bool,
}

/// Whether scripts want the run to go on without packets.
#[must_use]
pub fn stays() -> bool {
    RUN.with_borrow_mut(|run| {
        let Some(run) = run else { return false };
        let vm = run.machine.with(&mut run.program);
        vm.global_named("exit_only_after_terminate").truth()
    })
}

/// Whether scripts pass files to the analyzers of files themselves, which needs an analysis even without packets.
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

/// Whether the scripts ended in an error, or with `exit`: connections that are open are not ended either.
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
    traffic.reads = has_packets && !is_live;
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
    let is_now = is_live || !has_packets && follows_clock;
    let now = if is_now { crate::vm::events::wall_clock() } else { 0.0 };
    machine.state.first_packet = now;
    let mut is_cut = false;
    let mut result = machine.with(&mut program).begin(now, is_live || !has_packets);
    if result.is_ok() && !machine.stop_requested {
        let (mut interest, stores_all) = interest::of(&machine.with(&mut program), source);
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
            over: false,
            drained: false,
            flushed: is_live.then(Instant::now),
            // Over live traffic, packets are rare at first.
            has_begun: !has_packets || is_live,
            has_time: false,
            stop: None,
        };
        RUN.set(Some(Box::new(run)));
        let read = source.run(
            Start { interest, scripted, in_key_order, ignore_checksums, follows_clock },
            Box::new(Handlers { affinity }),
        );
        let goes_on = !has_packets && !stops() && stays();
        let Some(mut run) = RUN.take() else { return 1 };
        for (path, error) in run.machine.state.traffic.dumps.finish() {
            run.machine.out.add_failure(&path, error);
        }
        let Run { program: p, machine: m, stop, .. } = *run;
        (program, machine) = (p, m);
        is_cut = read.is_err();
        if let Err(message) = read {
            let mut vm = machine.with(&mut program);
            vm.m.out.flush();
            vm.report(crate::diagnostics::Severity::Error, &message);
        }
        // A signal ended a run that goes on by itself.
        machine.state.terminated |= is_live || goes_on;
        machine.stop_requested |= is_live || goes_on;
        result = match stop {
            Some(stop) => Err(stop),
            None => machine.with(&mut program).after_packets(),
        };
    }
    let mut vm = machine.with(&mut program);
    let status = vm.end(result);
    let status = vm.end_output(status);
    if is_cut && status == 0 { 1 } else { status }
}

/// Rows and output of live traffic are in their files after this time at the latest.
const FLUSH: Duration = Duration::from_millis(500);

/// Seconds of the latest time that packets have.
const LATEST: f64 = 9e9;

/// A run that is going on.
struct Run {
    program: Program,
    machine: Machine,
    /// How events reach scripts, each at its number.
    routes: Vec<Option<Rc<EventRoute>>>,
    states: States,
    /// Whether all connections are stored, and not only those that scripts may keep.
    stores_all: bool,
    /// Whether scripts ask which analyzer raised an event.
    names_analyzers: bool,
    matching: Option<Matching>,
    /// The input ended: what is scheduled is due with the next drain.
    over: bool,
    /// Events of the current packet were drained.
    drained: bool,
    /// When logs and output were last flushed, of live traffic.
    flushed: Option<Instant>,
    /// The main loop has begun.
    has_begun: bool,
    /// The analysis reported that time begins.
    has_time: bool,
    /// How the scripts ended before the packets did.
    stop: Option<Stop>,
}

thread_local! {
    static RUN: RefCell<Option<Box<Run>>> = const { RefCell::new(None) };
}

/// The listener of the run of this thread.
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
            run.machine.state.traffic.file_analyzers.change();
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
            self.loop_drains()?;
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
            Kind::FileData => return listening::data(&mut vm, &mut self.states, event),
            Kind::StreamContents => {
                recordings::write(&mut vm, event);
                return Ok(());
            }
            Kind::FileViolation => return listening::violation(&mut vm, &mut self.states, event),
            Kind::FileLimit => return listening::limit(&mut vm, &mut self.states, event),
            _ => {}
        }
        if let Some(matching) = &mut self.matching
            && matching.event(&mut vm, &mut self.states, event)?
        {
            return Ok(());
        }
        match route.kind {
            Kind::InputEnds => {
                self.over = true;
                self.states.is_over = true;
                vm.m.state.traffic.packet = None;
                if vm.m.state.traffic.reads {
                    let path = Value::string(&vm.m.state.traffic.capture);
                    vm.queue_named("Pcap::file_done", vec![path]);
                }
            }
            // The first comes before the timers that are due with the packet.
            Kind::TimeBegins if !std::mem::replace(&mut self.has_time, true) => return Ok(()),
            Kind::AnalyzerPlanned => return self.states.plan(&mut vm, event),
            Kind::AnalyzersNumbered => return self.states.number(&mut vm, event),
            _ => {}
        }
        let stopped = &mut vm.m.state.traffic.stopped;
        if !stopped.is_empty()
            && is_of_file(event.decl.name)
            && let Some(file) = state::first_file(event)
            && stopped.contains(&file.fuid)
        {
            if route.kind == Kind::FileRemoved {
                stopped.remove(&file.fuid);
                self.states.over(&vm.m.state.traffic, event);
            }
            return Ok(());
        }
        if route.kind == Kind::Certificate
            && certificate_cache::holds(&mut vm, &mut self.states, event)?
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
        if let Some((ty, is_looked_up)) = plan.brief {
            let state = state::first_connection(event);
            uid = state.map(|state| state.uid);
            if route.is_noted {
                self.states.note(&mut vm, event)?;
            }
            if let (Some(state), true) = (state, is_looked_up)
                && (self.stores_all || self.states.is_stored(&mut vm, ty, state))
            {
                self.states.mention(&mut vm, ty, state)?;
            }
        } else if matches!(route.kind, Kind::ConnectionRemoved | Kind::FileRemoved) {
            self.states.over(&vm.m.state.traffic, event);
        }
        match route.kind {
            Kind::RawPacket => {
                vm.m.state.traffic.header = args.first().cloned().unwrap_or_default();
            }
            Kind::AnalyzerInfo => numbers::note(&mut vm, &args),
            Kind::WebSocketBegins => numbers::note_websocket(&mut vm, &args),
            Kind::FileRemoved => {
                vm.m.state.traffic.certificate_cache.forget(event);
                listening::end(&mut vm, event, args.first());
            }
            Kind::FileSniff => {
                if let Some(matching) = &self.matching {
                    matching.sniff(&mut vm, event, &args)?;
                }
            }
            Kind::Contents(transport) if !packets::delivers(&vm, transport, &args) => return Ok(()),
            _ => {}
        }
        let analyzer = if self.names_analyzers { numbers::of(&vm, event) } else { 0 };
        vm.queue_event_of(plan.func, args, uid, analyzer);
        if route.kind == Kind::FileBegins {
            // Their handlers decide what is reported next.
            self.states.forget(&mut vm.m.state.traffic);
            vm.drain()?;
            self.states.refresh_again();
        }
        Ok(())
    }

    /// How an event reaches scripts, which is found once.
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

    /// The previous packet is over: its events that are left, as far as the main loop gets with them.
    fn loop_drains(&mut self) -> Result<(), Stop> {
        let mut vm = self.machine.with(&mut self.program);
        if !std::mem::take(&mut self.drained) {
            vm.drain()?;
        }
        vm.drain()?;
        vm.before_packet()
    }

    /// Another packet begins: timers are due.
    fn packet(&mut self, now: f64) -> Result<(), Stop> {
        if std::mem::replace(&mut self.has_begun, true) {
            self.loop_drains()?;
        } else {
            // The main loop begins with the first packet: what `zeek_init` left is handled with its events.
            let mut vm = self.machine.with(&mut self.program);
            vm.fire_timers(vm.m.now)?;
            vm.before_packet()?;
        }
        if self.machine.stop_requested {
            // It is the time of the last packet still.
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
            // Packets come as far apart as they were captured, or by a factor less.
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
            && flushed.elapsed() >= FLUSH
        {
            *flushed = Instant::now();
            crate::bif::log::flush_all(&mut vm);
            vm.m.out.flush_all();
        }
        if is_first {
            vm.queue_named("network_time_init", Vec::new());
            // Answers that wait for the first packet come before the timeouts of those who asked.
            vm.run_triggers()?;
        }
        vm.fire_timers(now)?;
        Ok(())
    }

    /// The network time from which each packet matters, even one without events: that of the next timer, or the time of any packet
    /// if the main loop has something to do.
    fn packets_from(&self) -> Time {
        let state = &self.machine.state;
        let is_paced = self.flushed.is_some() || state.traffic.pace.is_some();
        if !self.has_begun || state.first_packet == 0.0 || is_paced || self.machine.has_work() {
            return Time::MIN;
        }
        match self.machine.queue.next_timer() {
            // Times of packets are rounded to microseconds before they are compared.
            Some(time) if time < LATEST => Time::from_nanos(((time - 1e-5) * 1e9) as i64),
            _ => Time::MAX,
        }
    }

    /// Events that waited are queued: at the end of a packet, or before it where their handlers run at once.
    fn drained(&mut self) -> Result<(), Stop> {
        self.states.forget(&mut self.machine.state.traffic);
        self.drained = true;
        let mut vm = self.machine.with(&mut self.program);
        vm.drain()?;
        if !vm.m.state.traffic.matches.is_empty() {
            if let Some(matching) = &mut self.matching {
                matching.by_scripts(&mut vm, &mut self.states)?;
            }
            vm.drain()?;
        }
        if std::mem::take(&mut self.over) {
            vm.m.terminating = true;
            vm.fire_timers(f64::INFINITY)?;
            vm.drain()?;
            vm.drain()?;
        }
        Ok(())
    }
}

/// Whether an event is one of a file itself: scripts that stopped the file get no more of these, unlike those of its analyzers.
fn is_of_file(event: &str) -> bool {
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
