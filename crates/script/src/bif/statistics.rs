//! Statistics of the process and of events, for scripts that log them.

use super::Table;
use crate::evaluate::Stop;
use crate::value::{Record, Value};
use crate::vm::Vm;
use crate::vm::events::wall_clock;

type Result<T> = std::result::Result<T, Stop>;

/// The functions of this file.
pub(super) const TABLE: Table =
    &[("get_event_stats", event_stats), ("get_proc_stats", process_stats)];

/// `get_event_stats`: numbers of queued and of dispatched events.
fn event_stats(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let dispatched: u64 = vm.m.state.invocations.iter().sum();
    let queued = dispatched + vm.m.queue.waiting() as u64;
    let values = [queued, dispatched].map(Value::Count);
    Ok(Value::Record(Record::new(vm.result_type(), values.into())))
}

/// `get_proc_stats`: resource usage of this process; zeros where the kernel does not report it.
fn process_stats(vm: &mut Vm<'_>, _: &[Value]) -> Result<Value> {
    let read = |name: &str| std::fs::read_to_string(name).unwrap_or_default();
    let process = Process::parse(&read("/proc/self/stat"), &read("/proc/self/status"));
    let uptime = read("/proc/uptime");
    let uptime = uptime.split(' ').next().and_then(|text| text.parse::<f64>().ok());
    let elapsed = uptime.map_or(0.0, |uptime| (uptime - process.started).max(0.0));
    let values = vec![
        Value::Bool(false),
        Value::Time(wall_clock() - elapsed),
        Value::Interval(elapsed),
        Value::Interval(process.user),
        Value::Interval(process.system),
        Value::Count(process.memory),
        Value::Count(process.minor_faults),
        Value::Count(process.major_faults),
        Value::Count(0),
        Value::Count(0),
        Value::Count(0),
        Value::Count(process.switches),
    ];
    Ok(Value::Record(Record::new(vm.result_type(), values)))
}

/// Fields of `/proc/self/stat` and `/proc/self/status` (proc(5)).
#[derive(Debug, Default, PartialEq)]
struct Process {
    /// Start time of the process, in seconds since boot.
    started: f64,
    /// CPU time in user mode, in seconds.
    user: f64,
    /// CPU time in the kernel, in seconds.
    system: f64,
    minor_faults: u64,
    major_faults: u64,
    /// Peak memory usage, in bytes.
    memory: u64,
    /// Involuntary context switches.
    switches: u64,
}

/// Clock ticks per second in `/proc`, on every supported platform.
const TICKS: f64 = 100.0;

impl Process {
    fn parse(stat: &str, status: &str) -> Self {
        // After the name in parentheses, which may contain any character: the state, and numbers.
        let numbers = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let number = |field: usize| {
            let text = numbers.split_ascii_whitespace().nth(field - 3);
            text.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default()
        };
        let line = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let text = line.and_then(|rest| rest.split_ascii_whitespace().next());
            text.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default()
        };
        Self {
            started: number(22) as f64 / TICKS,
            user: number(14) as f64 / TICKS,
            system: number(15) as f64 / TICKS,
            minor_faults: number(10),
            major_faults: number(12),
            memory: line("VmHWM:") * 1024,
            switches: line("nonvoluntary_ctxt_switches:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        let stat = "7 (a) name) R 1 7 7 0 -1 4194304 110 0 3 0 250 75 0 0 20 0 1 0 4200 1000 20";
        let status = "Name:\ta\nVmHWM:\t    20 kB\nnonvoluntary_ctxt_switches:\t9\n";
        let expected = Process {
            started: 42.0,
            user: 2.5,
            system: 0.75,
            minor_faults: 110,
            major_faults: 3,
            memory: 20_480,
            switches: 9,
        };
        assert_eq!(Process::parse(stat, status), expected);
        assert_eq!(Process::parse("", ""), Process::default());
    }
}
