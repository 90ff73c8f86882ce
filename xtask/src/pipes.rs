//! `cargo xtask pipes`: scripts and replay compared with dnsjit, drool and dnsperf, on the same
//! capture in the same hour.
//!
//! The capture is generated: 100,000 queries per second from many clients, with names of many
//! lengths, each query answered a little later. Peers run scripts in `benchsuite/pipes/` that use
//! dnsjit's public functions; queries are sent to an echo server on loopback that counts them.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::net::UdpSocket;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use anyhow::Context;
use anyhow::ensure;
use gannet_base::Time;
use gannet_capture::Format;
use gannet_capture::LinkType;
use gannet_capture::Packet;
use gannet_capture::WriteOptions;
use gannet_capture::Writer;
use nix::sys::signal::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::measure::measure;
use crate::workspace;
use crate::workspace::Profile;
use crate::workspace::print;
use crate::workspace::say;

/// Measure scripts and replay against dnsjit, drool and dnsperf, where they are installed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Queries in the capture, 100,000 a second
    #[arg(long, default_value_t = 500_000)]
    queries: u32,
    /// Runs of each, in turn, of which the best counts
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// A built gannet, instead of building a release
    #[arg(long)]
    gannet: Option<PathBuf>,
    /// dnsjit, 1.2.3 or later
    #[arg(long, default_value = "dnsjit")]
    dnsjit: String,
    /// Folder of its examples
    #[arg(long, default_value = "/usr/share/doc/dnsjit/examples")]
    examples: PathBuf,
    /// Lines to measure, of which one word is enough; without it all
    #[arg(long)]
    only: Vec<String>,
}

/// Nanoseconds between queries.
const GAP: i64 = 10_000;
/// Number of queries between a query and its answer.
const ANSWER_DELAY: u32 = 20;
/// Number of clients of the capture, and of the capture with many clients.
const CLIENTS: u32 = 200;
const MANY_CLIENTS: u32 = 5000;
/// Number of different names; most queries are for a few of them.
const NAMES: u32 = 20_000;

struct Bench<'a> {
    args: &'a Args,
    gannet: String,
    /// Path of the capture with queries and answers.
    both: String,
    /// Path of the capture with only queries.
    queries: String,
    /// Path of the capture with only queries, from many clients.
    many: String,
    table: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let gannet = match &args.gannet {
        Some(path) => path.clone(),
        None => Profile::Dist.build_with("lua")?,
    };
    let folder = workspace::target().join("pipes");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let text = |path: PathBuf| path.to_str().map(str::to_owned).context("a path is no UTF-8");
    let mut bench = Bench {
        args,
        gannet: text(gannet)?,
        both: text(folder.join("both.pcap"))?,
        queries: text(folder.join("queries.pcap"))?,
        many: text(folder.join("many.pcap"))?,
        table: "| line | gannet | peer | times | bar |\n|---|---|---|---|---|\n".to_owned(),
    };
    make(Path::new(&bench.both), args.queries, CLIENTS, true)?;
    make(Path::new(&bench.queries), args.queries, CLIENTS, false)?;
    make(Path::new(&bench.many), args.queries, MANY_CLIENTS, false)?;
    bench.stages()?;
    let own = |name: &str| workspace::root().join("benchsuite/pipes").join(name);
    bench.script("count by qname", "count", &own("count-dnsjit.lua"), 10.0)?;
    bench.script("join", "join", &own("join-dnsjit.lua"), 10.0)?;
    // The script for this that is part of dnsjit.
    let example = &args.examples.join("qr-multi-pcap-state.lua");
    if example.is_file() {
        bench.script("join, its example", "join", example, 10.0)?;
    } else {
        say(&format!("skipped: no {}", example.display()));
    }
    bench.ring()?;
    let (few, many) = (bench.queries.clone(), bench.many.clone());
    bench.full_speed("one client", &few, &["--clients", "1"])?;
    bench.full_speed("200 clients", &few, &[])?;
    bench.full_speed("5,000 clients", &many, &[])?;
    bench.original(1)?;
    bench.original(2)?;
    print(&bench.table);
    fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())
}

impl Bench<'_> {
    fn wants(&self, line: &str) -> bool {
        self.args.only.is_empty() || self.args.only.iter().any(|word| line.contains(word.as_str()))
    }

    fn has(&self, program: &str) -> bool {
        let there = Command::new(program).arg("-h").stdin(Stdio::null()).output().is_ok();
        if !there {
            say(&format!("skipped: {program} is not installed"));
        }
        there
    }

    fn row(&mut self, line: &str, own: &str, peer: &str, times: f64, bar: &str) {
        let row = format!("| {line} | {own} | {peer} | {times:.2} | {bar} |");
        say(&row);
        self.table.push_str(&row);
        self.table.push('\n');
    }

    fn peer_script(&self, name: &str) -> Vec<String> {
        let path = workspace::root().join("benchsuite/pipes").join(name);
        vec![self.args.dnsjit.clone(), path.display().to_string()]
    }

    /// Measures reading and decoding of layers with `gannet bench --against`.
    fn stages(&mut self) -> anyhow::Result<()> {
        if !self.wants("read and layer") || !self.has(&self.args.dnsjit) {
            return Ok(());
        }
        let mut command = Command::new(&self.gannet);
        command.args(["bench", "--against", &self.both]);
        for stage in ["reading", "dissecting"] {
            command.args(["--only", stage]);
        }
        let output = command.stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "gannet bench: {}", output.status);
        print(&String::from_utf8_lossy(&output.stdout));
        Ok(())
    }

    /// Compares the wall time of a script with that of dnsjit's, with one thread and with all.
    fn script(&mut self, line: &str, name: &str, peer: &Path, bar: f64) -> anyhow::Result<()> {
        if !self.wants(line) || !self.has(&self.args.dnsjit) {
            return Ok(());
        }
        for (threads, line) in [("1", format!("{line}, one thread")), ("", line.to_owned())] {
            self.script_on(threads, &line, name, peer, bar)?;
        }
        Ok(())
    }

    /// Compares scripts with this number of gannet's threads, or one for each processor.
    fn script_on(
        &mut self,
        threads: &str,
        line: &str,
        name: &str,
        peer: &Path,
        bar: f64,
    ) -> anyhow::Result<()> {
        let script = workspace::root().join(format!("benchsuite/pipes/{name}.lua"));
        let script = script.display().to_string();
        let own = [&self.gannet, "run", &script, &self.both, threads].map(str::to_owned);
        let peer = [self.args.dnsjit.clone(), peer.display().to_string(), self.both.clone()];
        let (mut least, mut peers) = (f64::MAX, f64::MAX);
        for _ in 0..self.args.runs.max(1) {
            least = least.min(measure(&own)?.wall.as_secs_f64());
            match measure(&peer) {
                Ok(cost) => peers = peers.min(cost.wall.as_secs_f64()),
                Err(error) => {
                    say(&format!("skipped: {line}: {error:#}"));
                    return Ok(());
                }
            }
        }
        let rate = |seconds: f64| {
            format!("{:.2} M messages/s", f64::from(2 * self.args.queries) / seconds / 1e6)
        };
        let (own, peer) = (rate(least), rate(peers));
        self.row(line, &own, &peer, peers / least, &format!("{bar}"));
        Ok(())
    }

    fn ring(&mut self) -> anyhow::Result<()> {
        if !self.wants("ring") || !self.has(&self.args.dnsjit) {
            return Ok(());
        }
        let words = 10_000_000;
        let mut peer = self.peer_script("ring-dnsjit.lua");
        peer.push(words.to_string());
        let own: Vec<String> =
            [&self.gannet, "bench", "ring", "--runs", "1", "--words", &words.to_string()]
                .map(str::to_owned)
                .into();
        let (mut best, mut peers) = (0.0_f64, 0.0_f64);
        for _ in 0..self.args.runs.max(1) {
            best = best.max(first_number(&output(&own)?)?);
            peers = peers.max(first_number(&output(&peer)?)?);
        }
        let show = |rate: f64| format!("{:.0} M words/s", rate / 1e6);
        self.row("ring, every word counted", &show(best), &show(peers), best / peers, "1");
        Ok(())
    }

    /// Sends all queries as fast as possible to a sink that counts them. The peers always have one
    /// client.
    fn full_speed(&mut self, who: &str, capture: &str, more: &[&str]) -> anyhow::Result<()> {
        let line = &format!("replay at full speed, {who}");
        if !self.wants(line) {
            return Ok(());
        }
        let own = ["replay", "{}", "--to", "{to}", "--timing", "max", "--no-answers"];
        let own: Vec<String> = std::iter::once(self.gannet.as_str())
            .chain(own)
            .chain(more.iter().copied())
            .map(str::to_owned)
            .collect();
        let mut dnsjit = self.peer_script("send-dnsjit.lua");
        dnsjit.extend(["{}", "{host}", "{port}"].map(str::to_owned));
        let drool = ["drool", "replay", "-n", "--no-tcp", "{}", "{host}", "{port}"];
        let drool: Vec<String> = drool.map(str::to_owned).into();
        let peers = [("dnsjit udpcli", dnsjit, "3"), ("drool", drool, "4")];
        let mut best = 0.0_f64;
        let mut rates = [0.0_f64; 2];
        for _ in 0..self.args.runs.max(1) {
            best = best.max(self.send(&own, capture)?);
            for (rate, (_, command, _)) in rates.iter_mut().zip(&peers) {
                if self.has(&command[0]) {
                    *rate = rate.max(self.send(command, capture)?);
                }
            }
        }
        let show = |rate: f64| format!("{:.0} k queries/s", rate / 1e3);
        for (rate, (name, _, bar)) in rates.into_iter().zip(peers).filter(|(r, _)| *r > 0.0) {
            let peer = format!("{name}: {}", show(rate));
            self.row(line, &show(best), &peer, best / rate, bar);
        }
        Ok(())
    }

    /// Number of queries per second that a command sends, from its run time; reports missing
    /// queries.
    fn send(&self, command: &[String], capture: &str) -> anyhow::Result<f64> {
        let sink = Sink::start(&self.gannet)?;
        let words: Vec<String> = command.iter().map(|w| sink.substitute(w, capture)).collect();
        let cost = measure(&words);
        let arrived = sink.stop()?;
        let cost = cost?;
        if arrived != u64::from(self.args.queries) {
            say(&format!("{}: {arrived} of {} arrived", words[0], self.args.queries));
        }
        Ok(f64::from(self.args.queries) / cost.wall.as_secs_f64())
    }

    /// Sends queries with the capture's timing: measures the duration, the lag of queries and the
    /// number that arrive.
    fn original(&mut self, threads: u16) -> anyhow::Result<()> {
        let line = format!("100 kqps in original time, {threads} threads");
        if !self.wants(&line) {
            return Ok(());
        }
        let sink = Sink::start(&self.gannet)?;
        let threads = threads.to_string();
        let command = ["replay", "{}", "--to", "{to}", "--json", "--no-answers", "--threads"];
        let mut words: Vec<String> =
            command.iter().map(|w| sink.substitute(w, &self.queries)).collect();
        words.insert(0, self.gannet.clone());
        words.push(threads);
        let said = output(&words);
        let arrived = sink.stop()?;
        let said = said?;
        let last = said.lines().last().unwrap_or_default();
        let report: serde_json::Value = serde_json::from_str(last).context("replay's report")?;
        let figure = |path: &str| report.pointer(path).and_then(serde_json::Value::as_f64);
        let took = figure("/gannet/sending_ns").context("no sending_ns")? / 1e9;
        let asked = figure("/gannet/scheduled_ns").context("no scheduled_ns")? / 1e9;
        let [p50, p99, most] = ["p50", "p99", "max"]
            .map(|p| figure(&format!("/gannet/send_lag/{p}")).unwrap_or(f64::NAN) / 1e3);
        let mut own = format!("{took:.4} s of {asked:.4} s, {arrived} of {}", self.args.queries);
        write!(own, " arrived, lag p50 {p50:.0} p99 {p99:.0} max {most:.0} us")?;
        self.row(&line, &own, "", took / asked, "1 +- 0.01, p99 1000 us");
        Ok(())
    }
}

fn output(command: &[String]) -> anyhow::Result<String> {
    let output = Command::new(&command[0]).args(&command[1..]).stdin(Stdio::null()).output()?;
    let words = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", command.join(" "), words.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn first_number(text: &str) -> anyhow::Result<f64> {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.parse().with_context(|| format!("'{text}' begins with no number"))
}

/// A port that was just free for UDP and TCP.
fn free_port() -> anyhow::Result<u16> {
    for _ in 0..100 {
        let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    anyhow::bail!("no port is free for both UDP and TCP")
}

/// An echo server that only counts.
struct Sink {
    server: Child,
    port: u16,
}

impl Sink {
    fn start(gannet: &str) -> anyhow::Result<Self> {
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let server = Command::new(gannet)
            .args(["replay", "--serve", &address, "--sink"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let begun = Instant::now();
        while std::net::TcpStream::connect(&address).is_err() {
            ensure!(begun.elapsed() < Duration::from_secs(5), "the echo server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Self { server, port })
    }

    fn substitute(&self, word: &str, capture: &str) -> String {
        match word {
            "{}" => capture.to_owned(),
            "{to}" => format!("127.0.0.1:{}", self.port),
            "{host}" => "127.0.0.1".to_owned(),
            "{port}" => self.port.to_string(),
            _ => word.to_owned(),
        }
    }

    /// Stops the server; returns the number of queries that it counted.
    fn stop(self) -> anyhow::Result<u64> {
        // Lets the server count the queries in its socket's buffer.
        std::thread::sleep(Duration::from_millis(200));
        let id = i32::try_from(self.server.id()).context("a process's number")?;
        kill(Pid::from_raw(id), Signal::SIGINT)?;
        let output = self.server.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(first_number(&said).context("what the echo server counted")? as u64)
    }
}

/// Writes the capture.
fn make(path: &Path, queries: u32, clients: u32, answers: bool) -> anyhow::Result<()> {
    let mut writer = Writer::create(path, WriteOptions::default())?;
    let mut number = 0;
    let mut write = |time: i64, data: &[u8]| -> anyhow::Result<()> {
        number += 1;
        let packet = Packet {
            time: Time::from_nanos(1_700_000_000_000_000_000 + time),
            wire_len: u32::try_from(data.len())?,
            link_type: LinkType::ETHERNET,
            interface: 0,
            format: Format::Pcap,
            number,
            data,
        };
        Ok(writer.write(&packet)?)
    };
    let mut frame = Vec::new();
    for index in 0..queries + if answers { ANSWER_DELAY } else { 0 } {
        let time = i64::from(index) * GAP;
        if index < queries {
            message(index, clients, false, &mut frame);
            write(time, &frame)?;
        }
        if answers && let Some(index) = index.checked_sub(ANSWER_DELAY) {
            message(index, clients, true, &mut frame);
            write(time + GAP / 2, &frame)?;
        }
    }
    writer.finish()?;
    Ok(())
}

/// The frame of a query, or of its answer.
fn message(index: u32, clients: u32, is_answer: bool, frame: &mut Vec<u8>) {
    // A few names are queried often; names have four to twenty-three letters.
    let random = index.wrapping_mul(0x9e37_79b9).rotate_left(13).wrapping_mul(0x85eb_ca6b);
    let name = (u64::from(random).pow(2) >> 32) as u32 / (u32::MAX / NAMES).max(1);
    let letters = 4 + (name * 7 % 20) as usize;
    let client = random % clients;
    let (host, port) = ([10, 0, (client >> 8) as u8, client as u8], 1024 + (index % 50_000) as u16);
    let server = [10, 1, 0, 53];
    let mut dns = Vec::with_capacity(80);
    dns.extend_from_slice(&(index as u16).to_be_bytes());
    dns.extend_from_slice(if is_answer { &[0x81, 0x80] } else { &[1, 0] });
    dns.extend_from_slice(&[0, 1, 0, u8::from(is_answer), 0, 0, 0, 0]);
    dns.push(letters as u8);
    let mut left = name;
    for _ in 0..letters {
        dns.push(b'a' + (left % 26) as u8);
        left = left / 26 + 7 * name % 1000;
    }
    dns.extend_from_slice(b"\x07example\0\0\x01\0\x01");
    if is_answer {
        dns.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 44, 0, 4, 192, 0, 2, 1]);
    }
    let len = (28 + dns.len()) as u16;
    let (from, to) =
        if is_answer { ((server, 53), (host, port)) } else { ((host, port), (server, 53)) };
    frame.clear();
    frame.extend_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0]);
    frame.extend_from_slice(&len.to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend_from_slice(&from.0);
    frame.extend_from_slice(&to.0);
    for field in [from.1, to.1, len - 20, 0] {
        frame.extend_from_slice(&field.to_be_bytes());
    }
    frame.extend_from_slice(&dns);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_and_its_answer_belong_together() {
        let (mut query, mut answer) = (Vec::new(), Vec::new());
        message(70_000, CLIENTS, false, &mut query);
        message(70_000, CLIENTS, true, &mut answer);
        assert_eq!(query.len() + 16, answer.len());
        assert_eq!(query[26..30], answer[30..34]);
        assert_eq!(query[34..36], answer[36..38]);
        // Id and question are equal.
        assert_eq!((&query[42..44], &query[54..]), (&answer[42..44], &answer[54..query.len()]));
        assert_eq!(usize::from(u16::from_be_bytes([query[16], query[17]])), query.len() - 14);
    }

    #[test]
    fn figures_are_read() {
        assert_eq!(first_number("12.5\t3\n").unwrap(), 12.5);
        assert!(first_number("none").is_err());
    }
}
