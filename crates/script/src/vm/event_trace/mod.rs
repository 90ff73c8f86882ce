//! The event trace (`--event-trace`): a script that raises the events of a run again, without its packets.
//!
//! Before the handlers of an event run, its arguments are compared with their last [`snapshot`]; additions and changes become
//! statements ([`construct`]). The comparison is repeated after the handlers: these changes come from scripts, and the trace marks
//! them. The script has a handler for each event of the run, which applies the changes, raises the event, sets network time and
//! raises the next handler. Events that scripts raise are omitted: the same scripts raise them again.
//!
//! Whether a variable is global is known after the last event, so the script is kept in memory, with every value that is an
//! argument of an event, and written at the end of the run.

mod constant;
mod construct;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::rc::Rc;

use super::{QueuedEvent, Vm};
use crate::evaluate::Stop;
use crate::ids::FuncId;
use crate::value::Value;
use constant::{Kind, seconds};
use snapshot::{Object, Snapshot};

/// The module of the script, and of its handlers.
const MODULE: &str = "__EventTrace";

/// A statement that constructs or changes a value.
struct Change {
    /// The object that the statement constructs or changes.
    object: Object,
    /// The text after the name of the object, or the whole statement if `has_left_side` is false.
    text: String,
    has_left_side: bool,
    /// The type of the object if the statement declares its variable.
    declares: Option<String>,
}

/// A traced event.
struct TracedEvent {
    /// The name of the handler that raises the event.
    handler: String,
    /// The expression that raises the event with its arguments.
    call: String,
    time: f64,
    before: Vec<Change>,
    /// Changes by the handlers of the event.
    after: Vec<Change>,
}

/// An assignment of an object to a part of itself, which is added once the object is constructed.
struct Deferred {
    owner: Value,
    accessor: String,
    value: Value,
}

/// The state of a trace.
pub(crate) struct EventTrace {
    file: File,
    path: String,
    events: Vec<TracedEvent>,
    /// Events that scripts have raised.
    raised_by_scripts: HashSet<FuncId>,
    /// Whether the current event is traced.
    is_open: bool,
    /// Whether the handlers of the current event have run: changes are theirs.
    is_after: bool,
    /// Names of variables.
    names: HashMap<Object, String>,
    snapshots: HashMap<Object, Rc<Snapshot>>,
    /// Objects created in the current step.
    fresh: Vec<Object>,
    /// Objects created in earlier steps.
    known: HashSet<Object>,
    /// Objects used in more than one step: their variables are global.
    shared: HashSet<Object>,
    /// Objects under construction, the outermost first.
    open: Vec<Object>,
    deferred: Vec<Deferred>,
    /// The time of the first event.
    base: Option<f64>,
    constants: BTreeMap<Kind, BTreeSet<String>>,
    /// Number of values that no script can construct.
    unsupported: u64,
    /// Whether changes of deeply nested values were omitted.
    is_cut: bool,
}

impl EventTrace {
    /// Creates the file of a trace.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub(crate) fn create(path: &str) -> std::io::Result<Self> {
        Ok(Self {
            file: File::create(path)?,
            path: path.to_owned(),
            events: Vec::new(),
            raised_by_scripts: HashSet::new(),
            is_open: false,
            is_after: false,
            names: HashMap::new(),
            snapshots: HashMap::new(),
            fresh: Vec::new(),
            known: HashSet::new(),
            shared: HashSet::new(),
            open: Vec::new(),
            deferred: Vec::new(),
            base: None,
            constants: BTreeMap::new(),
            unsupported: 0,
            is_cut: false,
        })
    }

    /// Excludes an event that scripts raise.
    pub(crate) fn raised_by_script(&mut self, func: FuncId) {
        self.raised_by_scripts.insert(func);
    }

    fn add(&mut self, change: Change) {
        let Some(event) = self.events.last_mut() else { return };
        if self.is_after { &mut event.after } else { &mut event.before }.push(change);
    }

    /// Ends a step: its objects are known to the next ones.
    fn end_step(&mut self) {
        self.known.extend(self.fresh.drain(..));
    }

    /// An expression for a time: relative to the first event unless it is earlier.
    fn time(&mut self, time: f64) -> String {
        let base = self.base.unwrap_or(0.0);
        if time < base.max(1e6) || !time.is_finite() {
            return format!("double_to_time({})", seconds(time));
        }
        let base = *self.base.get_or_insert(time);
        if time == base {
            "double_to_time(__base_time)".to_owned()
        } else {
            format!("double_to_time(__base_time + {})", seconds(time - base))
        }
    }

    /// The whole script.
    fn script(&mut self) -> String {
        let mut text = String::new();
        if self.events.is_empty() {
            return text;
        }
        let _ = write!(text, "module {MODULE};\n\n");
        if let Some(base) = self.base {
            let _ = write!(text, "global __base_time = {base:.6};\n\n");
        }
        for event in &self.events {
            let _ = writeln!(text, "global {}: event();", event.handler);
        }
        let first = self.events.first().map_or("", |event| &event.handler);
        let _ = write!(
            text,
            "\nevent zeek_init() &priority=-999999\n\t{{\n\tevent {MODULE}::{first}();\n\t}}\n"
        );
        let events = std::mem::take(&mut self.events);
        for (index, event) in events.iter().enumerate() {
            let from_scripts = match index.checked_sub(1).and_then(|before| events.get(before)) {
                Some(before) => &before.after[..],
                None => &[],
            };
            let next = events.get(index + 1).map(|next| next.handler.as_str());
            self.handler(&mut text, from_scripts, event, next);
        }
        self.list_constants(&mut text);
        text
    }

    /// Appends the handler that raises one event, then `next`.
    fn handler(
        &mut self,
        text: &mut String,
        from_scripts: &[Change],
        event: &TracedEvent,
        next: Option<&str>,
    ) {
        let note = |is_of_script| if is_of_script { " # from script" } else { "" };
        let changes = || {
            let scripts = from_scripts.iter().map(|change| (change, true));
            scripts.chain(event.before.iter().map(|change| (change, false)))
        };
        text.push('\n');
        for (change, is_of_script) in changes() {
            if let Some(ty) = &change.declares
                && self.shared.contains(&change.object)
            {
                let note = note(is_of_script);
                let _ = writeln!(text, "global {}: {ty};{note}", self.variable(change.object));
            }
        }
        let _ = write!(text, "event {}()\n\t{{\n", event.handler);
        for (change, is_of_script) in changes() {
            let name = if change.has_left_side { self.variable(change.object) } else { "" };
            let (local, ty) = match &change.declares {
                Some(ty) if !self.shared.contains(&change.object) => ("local ", format!(": {ty}")),
                _ => ("", String::new()),
            };
            let _ = writeln!(text, "\t{local}{name}{ty}{};{}", change.text, note(is_of_script));
        }
        if changes().next().is_some() {
            text.push('\n');
        }
        let _ = write!(text, "\tevent {};\n\n", event.call);
        if let Some(next) = next {
            let time = self.time(event.time);
            let _ = writeln!(text, "\tset_network_time({time});\n\tevent {MODULE}::{next}();");
        }
        text.push_str("\t}\n");
    }

    fn variable(&self, object: Object) -> &str {
        self.names.get(&object).map_or("", String::as_str)
    }

    /// Appends a list of constants as comments: the values to replace when a trace is adapted to other hosts and names.
    fn list_constants(&mut self, text: &mut String) {
        if self.base.is_some() {
            self.constants.entry(Kind::Time).or_default();
        }
        for (kind, constants) in &self.constants {
            let _ = writeln!(text, "\n# constants of type {}:", kind.name());
            if let (Kind::Time, Some(base)) = (kind, self.base) {
                let _ = writeln!(text, "#\t__base_time = {base:.6}");
            }
            for constant in constants {
                let _ = writeln!(text, "#\t{constant}");
            }
        }
    }
}

impl Vm<'_> {
    /// Runs `new_event`, then the bodies of an event, and traces it.
    #[cold]
    pub(super) fn dispatch_watched(&mut self, event: QueuedEvent) -> Result<(), Stop> {
        self.run_new_event(event.func, &event.args, event.time)?;
        if self.m.event_trace.is_none() || !self.has_bodies(event.func) {
            return self.run_event(event);
        }
        let (func, args) = (event.func, event.args.clone());
        self.trace_event(func, &args);
        let result = self.run_event(event);
        self.trace_end_of_event(func, &args);
        result
    }

    /// Whether an event is part of the trace.
    fn is_traced(&self, trace: &EventTrace, func: FuncId) -> bool {
        let is_init = || self.p.name(self.p.functions[func].name) == "zeek_init";
        self.m.now != 0.0 && !trace.raised_by_scripts.contains(&func) && !is_init()
    }

    fn trace_event(&mut self, func: FuncId, args: &[Value]) {
        let Some(mut trace) = self.m.event_trace.take() else { return };
        trace.is_open = self.is_traced(&trace, func);
        if trace.is_open {
            trace.base.get_or_insert(self.m.now);
            trace.is_after = false;
            let name = self.p.name(self.p.functions[func].name);
            let number = trace.events.len();
            trace.events.push(TracedEvent {
                handler: format!("{}_{number}__et", name.replace(':', "_")),
                call: String::new(),
                time: self.m.now,
                before: Vec::new(),
                after: Vec::new(),
            });
            let mut texts = Vec::new();
            for arg in args {
                trace.record_argument(self.p, arg);
                texts.extend(trace.name(self.p, arg));
            }
            trace.end_step();
            if let Some(event) = trace.events.last_mut() {
                event.call = format!("{name}({})", texts.join(", "));
            }
        }
        self.m.event_trace = Some(trace);
    }

    fn trace_end_of_event(&mut self, func: FuncId, args: &[Value]) {
        let Some(mut trace) = self.m.event_trace.take() else { return };
        // A handler may have raised the event itself, or ended the run.
        if std::mem::take(&mut trace.is_open) && self.is_traced(&trace, func) {
            trace.is_after = true;
            for arg in args {
                trace.record_argument(self.p, arg);
            }
            trace.end_step();
        }
        self.m.event_trace = Some(trace);
    }

    /// Writes the trace. Reports write errors and values that are unsupported or omitted.
    pub(super) fn write_event_trace(&mut self) {
        let Some(mut trace) = self.m.event_trace.take() else { return };
        let script = trace.script();
        if let Err(error) = trace.file.write_all(script.as_bytes()) {
            self.m.out.add_failure(&trace.path, error);
        }
        if trace.unsupported > 0 {
            let text = format!(
                "{}: {} values of types that scripts cannot make are marked UNSUPPORTED: the trace runs once they are \
                 replaced",
                trace.path, trace.unsupported
            );
            self.report(crate::diagnostics::Severity::Warning, text);
        }
        if trace.is_cut {
            let text = format!(
                "{}: changes of values nested deeper than {} are not in the trace",
                trace.path,
                snapshot::MAX_DEPTH
            );
            self.report(crate::diagnostics::Severity::Warning, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Input, Parser};
    use crate::program::Program;
    use crate::vm::Machine;

    /// Returns the script of a trace of two events `seen(it)` whose arguments are the globals `one` and `two`; `code` is the handler.
    fn traced(types: &str, code: &str) -> String {
        let text =
            format!("global seen: event(it: any);\n{types}\nevent seen(it: any) {{ {code} }}");
        let (mut program, mut machine) = (Program::default(), Machine::new());
        let input = Input::Text { name: "t".to_owned(), code: text.into_bytes() };
        assert!(Parser::new(&mut program, &mut machine, Vec::new()).run([input]).is_ok());
        assert_eq!(program.diagnostics.errors, 0);
        let path = std::env::temp_dir().join(format!(
            "gannet-event-trace-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        machine.trace_events(&path.to_string_lossy()).unwrap();
        machine.is_watched = true;
        machine.now = 2e9;
        let mut vm = machine.with(&mut program);
        let func = vm.function_named("seen").unwrap();
        for name in ["one", "two"] {
            let args = vec![vm.global_named(name)];
            let time = vm.m.now;
            vm.dispatch(QueuedEvent { func, args, time, uid: None, analyzer: 0 }).unwrap();
            vm.m.now += 1.5;
        }
        vm.write_event_trace();
        let script = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let begin = script.find("\nglobal __val").or_else(|| script.find("\nevent seen")).unwrap();
        script[begin..].to_owned()
    }

    #[test]
    fn objects_of_several_events_are_global_and_changes_follow() {
        let types = "type R: record { n: count; s: set[string]; };
            type Q: record { v: vector of R; };
            global one = R($n=1, $s=set(\"a\\n\"));
            global two = Q($v=vector(one));";
        let text = traced(types, "one$n = 7; add one$s[\"b\"]; delete one$s[\"a\\n\"];");
        let wanted = "
global __val0: set[string];
global __val1: R;
event seen_0__et()
	{
	__val0 = set(\"a\\n\");
	__val1 = R($n=1, $s=__val0);

	event seen(__val1);

	set_network_time(double_to_time(__base_time));
	event __EventTrace::seen_1__et();
	}

global __val3: Q;
event seen_1__et()
	{
	__val1$n = 7; # from script
	add __val0[\"b\"]; # from script
	delete __val0[\"a\\n\"]; # from script
	local __val2: vector of R = vector(__val1);
	__val3 = Q($v=__val2);

	event seen(__val3);

	}

# constants of type time:
#	__base_time = 2000000000.000000

# constants of type string:
#	\"a\\n\"
#	\"b\"
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn objects_that_contain_themselves_are_completed_after_construction() {
        let types = "type R: record { me: any &optional; t: table[count] of any &optional; };
            global one = 1;
            global two = R();";
        let text = traced(types, "two$me = two; two$t = table([3] = two);");
        let wanted = "
	local __val0: table[count] of R = table();
	__val1 = R($t=__val0);
	__val1$me = __val1;
	__val0[3] = __val1;

	event seen(__val1);
";
        assert!(text.contains(wanted), "{text}");
    }

    #[test]
    fn tables_of_several_keys_and_other_types_are_constructors() {
        let types = "global one = table([1.2.3.4, 5/tcp] = 1min, [[2001:db8::1], 6/udp] = 2sec);
            global two = set([1, T], [2, F]);";
        let text = traced(types, "");
        assert!(text.contains("[1.2.3.4, 5/tcp] = double_to_interval(60.000000)"), "{text}");
        assert!(text.contains("[[2001:db8::1], 6/udp] = double_to_interval(2.000000)"), "{text}");
        assert!(text.contains("set([1, T], [2, F])"), "{text}");
        assert!(text.contains("#\t5/tcp\n#\t6/udp\n"), "{text}");
    }
}
