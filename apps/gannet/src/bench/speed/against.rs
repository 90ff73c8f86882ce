//! Other programs on the same traces, in the same run: dnsjit, tcpdump and tshark, if they are
//! installed.
//!
//! Each program is compared with gannet's corresponding work: reading records (dnsjit's `mmpcap`,
//! or `zmmpcap` for compressed traces), reading and dissecting headers (the same with
//! `filter.layer`), copying a capture (tcpdump), and a whole analysis (tshark, which prints a line
//! a packet, where gannet writes its logs). For dnsjit, only the CPU and wall time of reading
//! count; for tcpdump and tshark, those of the whole process.

use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use nix::sys::resource::UsageWho;
use nix::sys::resource::getrusage;
use nix::sys::time::TimeValLike;

use super::stages;

/// The cost of another program, next to gannet's cost of the same work.
#[derive(Clone, Debug)]
pub(super) struct OtherProgram {
    pub(super) trace: String,
    /// The work that both do.
    pub(super) task: &'static str,
    pub(super) program: String,
    /// Nanoseconds per packet of the other program.
    pub(super) nanos: f64,
    /// Nanoseconds per packet of gannet.
    pub(super) own: f64,
    /// Wall time of both per packet, where it was measured.
    pub(super) wall: Option<(f64, f64)>,
}

impl OtherProgram {
    /// The ratio of its time to gannet's.
    pub(super) fn times(&self) -> f64 {
        self.nanos / self.own
    }
}

/// Reads a capture the given number of times, and prints the packets and nanoseconds of each run: CPU
/// and wall time.
const SCRIPT: &str = r#"
local file, layers, times, compression = arg[2], arg[3] == "layers", tonumber(arg[4]), arg[5]
local ffi = require("ffi")
require("dnsjit.core.receiver_h")
ffi.cdef("long labs(long); struct gannet_ts { long s, ns; }; int clock_gettime(int, struct gannet_ts *);")
local ts = ffi.new("struct gannet_ts")
local function wall()
    ffi.C.clock_gettime(1, ts)
    return tonumber(ts.s) * 1e9 + tonumber(ts.ns)
end
-- Whatever it is called with, it does next to nothing.
local null = ffi.cast("core_receiver_t", ffi.C.labs)
local sink = { receive = function() return null, nil end }
for _ = 1, times do
    local input = require(compression and "dnsjit.input.zmmpcap" or "dnsjit.input.mmpcap").new()
    if compression then input[compression](input) end
    if input:open(file) ~= 0 then os.exit(1) end
    if layers then
        local layer = require("dnsjit.filter.layer").new()
        layer:receiver(sink)
        input:receiver(layer)
    else
        input:receiver(sink)
    end
    local begun, clock = os.clock(), wall()
    input:run()
    print(tonumber(input:packets()), (os.clock() - begun) * 1e9, wall() - clock)
end
"#;

/// Runs that take longer are not repeated.
const MAX_REPEATED: Duration = Duration::from_secs(5);

pub(super) fn run(
    out: &mut impl Write,
    traces: &[PathBuf],
    folder: &Path,
    runs: usize,
) -> anyhow::Result<Vec<OtherProgram>> {
    let mut all = Vec::new();
    for trace in traces {
        all.extend(readers(trace, folder, runs)?);
        all.extend(programs(trace, folder, runs)?);
    }
    if all.is_empty() {
        return Ok(all);
    }
    writeln!(
        out,
        "\n{:<18} {:<10} {:<28} {:>9} {:>9} {:>8} {:>9} {:>9} {:>8}",
        "trace", "task", "program", "ns/packet", "gannet's", "times", "wall", "gannet's", "times"
    )?;
    for o in &all {
        let (trace, times) = (o.trace.as_str(), o.times());
        write!(
            out,
            "{trace:<18} {:<10} {:<28} {:>9.1} {:>9.1} {times:>8.2}",
            o.task, o.program, o.nanos, o.own
        )?;
        if let Some((other, own)) = o.wall {
            write!(out, " {other:>9.1} {own:>9.1} {:>8.2}", other / own)?;
        }
        writeln!(out)?;
    }
    Ok(all)
}

/// Whether a program can be started.
fn is_installed(program: &str) -> bool {
    let installed = Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok();
    if !installed {
        crate::terminal::Terminal::new(false).note(&format_args!("{program} is not installed"));
    }
    installed
}

/// Measures dnsjit and gannet in alternation.
fn readers(trace: &Path, folder: &Path, runs: usize) -> anyhow::Result<Vec<OtherProgram>> {
    if !is_installed("dnsjit") {
        return Ok(Vec::new());
    }
    let script = folder.join("read.lua");
    std::fs::write(&script, SCRIPT).with_context(|| script.display().to_string())?;
    let name = name_of(trace);
    let compression = compression(&name);
    let input = if compression.is_some() { "zmmpcap" } else { "mmpcap" };
    let mut all = Vec::new();
    for (task, how, program) in [
        ("reading", "records", format!("dnsjit {input}")),
        ("dissecting", "layers", format!("dnsjit {input}, filter.layer")),
    ] {
        let mut stage = stages::opened(task, trace);
        let (mut other, mut own) = (CpuAndWall::default(), CpuAndWall::default());
        for _ in 0..runs.max(1) {
            let mut command = Command::new("dnsjit");
            let command = command.arg(&script).arg(trace).args([how, "3"]).args(compression);
            let output = command.output()?;
            other.extend(lines(&String::from_utf8_lossy(&output.stdout)));
            for _ in 0..3 {
                own.extend([stage()?]);
            }
        }
        let (Some(nanos), Some(wall)) = (min(other.0), min(other.1)) else {
            let output = format!("dnsjit does not read {name}");
            crate::terminal::Terminal::new(false).note(&output);
            continue;
        };
        let walls = Some(wall).zip(min(own.1));
        let own = min(own.0).unwrap_or(f64::NAN);
        all.push(OtherProgram { trace: name.clone(), task, program, nanos, own, wall: walls });
    }
    Ok(all)
}

/// The compression of a trace, by dnsjit's name: dnsjit does not detect it.
fn compression(name: &str) -> Option<&'static str> {
    let suffixes = [(".gz", "gzip"), (".zst", "zstd"), (".lz4", "lz4"), (".xz", "lzma")];
    suffixes.iter().find(|(suffix, _)| name.ends_with(suffix)).map(|(_, called)| *called)
}

/// CPU and wall time of several runs.
type CpuAndWall = (Vec<f64>, Vec<f64>);

/// Nanoseconds per packet, CPU and wall time, of each line that the script printed.
fn lines(output: &str) -> Vec<(f64, f64)> {
    let line = |l: &str| {
        let mut words = l.split_whitespace().map(str::parse::<f64>);
        let mut next = || words.next()?.ok();
        let (packets, cpu, wall) = (next()?, next()?, next()?);
        (packets > 0.0).then_some((cpu / packets, wall / packets))
    };
    output.lines().filter_map(line).collect()
}

/// Compares tcpdump and tshark with gannet as a separate process.
fn programs(trace: &Path, folder: &Path, runs: usize) -> anyhow::Result<Vec<OtherProgram>> {
    let gannet = std::env::current_exe()?;
    let logs = folder.join("logs");
    let packets = stages::count(trace)?.max(1) as f64;
    let mut analysis = Command::new(&gannet);
    analysis.args(["analyze", "-C", "-q", "-o"]).arg(&logs).arg(trace);
    let mut all = Vec::new();
    for program in ["tcpdump", "tshark"] {
        if !is_installed(program) {
            continue;
        }
        let mut command = Command::new(program);
        command.args(["-n", "-r"]).arg(trace);
        if program == "tcpdump" {
            command.args(["-w", "/dev/null"]);
        }
        let (mut other, mut own) = (Vec::new(), Vec::new());
        for _ in 0..runs.max(1) {
            let Some(took) = cpu_time(&mut command)? else {
                let output = format!("{program} does not read {}", name_of(trace));
                crate::terminal::Terminal::new(false).note(&output);
                break;
            };
            other.push(took.as_nanos() as f64 / packets);
            let ours = cpu_time(&mut analysis)?.context("the analysis did not go well")?;
            own.push(ours.as_nanos() as f64 / packets);
            if took > MAX_REPEATED {
                break;
            }
        }
        if let (Some(nanos), Some(own)) = (min(other), min(own)) {
            let task = "analysis";
            let program = program.to_owned();
            all.push(OtherProgram { trace: name_of(trace), task, program, nanos, own, wall: None });
        }
    }
    Ok(all)
}

/// CPU time of one run of a command, whose output is discarded; `None` if it failed.
fn cpu_time(command: &mut Command) -> anyhow::Result<Option<Duration>> {
    let before = children_cpu_time()?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = command.status().with_context(|| format!("{:?}", command.get_program()))?;
    let took = children_cpu_time()?.saturating_sub(before);
    Ok(status.success().then_some(took))
}

/// CPU time of all child processes that ended.
fn children_cpu_time() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.unsigned_abs()))
}

fn min(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.first().copied()
}

fn name_of(trace: &Path) -> String {
    trace.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_script() {
        assert_eq!(lines("1000 5000 7000\n10 20 20\n"), [(5.0, 7.0), (2.0, 2.0)]);
        assert_eq!(lines("critical: cannot open it\n0 5 5\n"), [(0.0, 0.0); 0]);
    }

    #[test]
    fn suffixes_name_the_compression() {
        assert_eq!(compression("day.pcap.zst"), Some("zstd"));
        assert_eq!(compression("day.pcap"), None);
    }

    #[test]
    fn child_processes_have_cpu_time() {
        let mut busy = Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]);
        assert!(cpu_time(&mut busy).unwrap() > Some(Duration::ZERO));
        assert_eq!(cpu_time(Command::new("sh").args(["-c", "exit 1"])).unwrap(), None);
    }
}
