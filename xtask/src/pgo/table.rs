//! The table of builds: the cost of each on each trace.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

use anyhow::Context;
use anyhow::bail;
use anyhow::ensure;

use super::Args;
use super::Variant;
use super::folder;
use super::tools;
use crate::bench::head;
use crate::measure::measure;
use crate::snapshot::valgrind;
use crate::workspace;
use crate::workspace::print;
use crate::workspace::say;

/// A build, measured on one trace.
struct Line {
    variant: Variant,
    /// CPU seconds of every run, sorted.
    cpu: Vec<f64>,
    /// Number of instructions, if a counter is available.
    instructions: Option<u64>,
}

impl Line {
    fn median(&self) -> f64 {
        self.cpu.get(self.cpu.len() / 2).copied().unwrap_or_default()
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    for trace in &args.table {
        ensure!(trace.is_file(), "{}: no such trace", trace.display());
    }
    let mut variants = requested_variants(&args.only)?;
    if let Err(error) = tools::bolt() {
        // A variant requested by name fails in its build if it is not possible.
        if args.only.is_empty() {
            say(&format!("skipped: bolt: {error}"));
            variants.retain(|v| !v.layout);
        }
    }
    let mut built = Vec::new();
    for variant in variants {
        built.push((variant, variant.build(args)?));
    }
    let mut text = head("Builds", "cargo xtask pgo --table TRACE...", &[]);
    text.push_str(WORDS);
    for trace in &args.table {
        let lines = measured(trace, &built, args.runs)?;
        text.push_str(&render(trace, &lines)?);
    }
    print(&text);
    if args.keep {
        let path = workspace::root().join("benchsuite/pgo.md");
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        say(&format!("kept in {}", path.display()));
    }
    Ok(())
}

const WORDS: &str = "
CPU is the median of user and system time, with minimum and maximum; builds run in turn, so that
other activity of the machine affects all alike, and memory is touched before each run, so that no run
pays for memory that the host has reclaimed; logs of earlier runs are removed. Instructions are those of
user space in one run, counted by valgrind. `plain` is cargo's own release profile, except that a panic
aborts the process; `bolt` has machine code in the order in which it runs; `native` may use all features
of the processor above. No build was trained on the traces measured here.
";

fn requested_variants(only: &[String]) -> anyhow::Result<Vec<Variant>> {
    for name in only {
        let names: Vec<_> = Variant::all().map(Variant::name).collect();
        if !names.contains(name) {
            bail!("--only: there is no build '{name}'; there are {}", names.join(", "));
        }
    }
    let takes = |v: &Variant| only.is_empty() || only.contains(&v.name());
    Ok(Variant::all().filter(takes).collect())
}

fn measured(trace: &Path, built: &[(Variant, PathBuf)], runs: usize) -> anyhow::Result<Vec<Line>> {
    let logs = folder().join("table-logs");
    let words = |command: &Path| {
        let words = ["analyze", "-C", "-q", "-t", "1", "-o"].map(str::to_owned);
        let mut all = vec![command.display().to_string()];
        all.extend(words);
        all.extend([logs.display().to_string(), trace.display().to_string()]);
        all
    };
    let mut lines: Vec<_> = built
        .iter()
        .map(|(variant, path)| {
            let instructions = valgrind(&words(path));
            Line { variant: *variant, cpu: Vec::new(), instructions }
        })
        .collect();
    for _ in 0..runs.max(1) {
        for (line, (_, path)) in lines.iter_mut().zip(built) {
            // Existing logs would be emptied first, and flushed to disk at the end, by file systems
            // that guard against data loss.
            if logs.exists() {
                fs::remove_dir_all(&logs).with_context(|| logs.display().to_string())?;
            }
            line.cpu.push(measure(&words(path))?.cpu.as_secs_f64());
        }
    }
    lines.iter_mut().for_each(|l| l.cpu.sort_by(f64::total_cmp));
    Ok(lines)
}

fn render(trace: &Path, lines: &[Line]) -> anyhow::Result<String> {
    let name = trace.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "\n## {name}\n\n| build | CPU s | least to most | of plain | instructions | of plain |\n\
         |---|---|---|---|---|---|\n"
    );
    let plain = lines.iter().find(|l| l.variant.name() == "plain");
    let change = |own: f64, base: f64| format!("{:+.1} %", 100.0 * (own / base - 1.0));
    for line in lines {
        let base = plain.map(Line::median).filter(|b| *b > 0.0);
        let counted = line.instructions.zip(plain.and_then(|p| p.instructions));
        let range = line.cpu.first().zip(line.cpu.last());
        writeln!(
            text,
            "| {} | {:.3} | {} | {} | {} | {} |",
            line.variant.name(),
            line.median(),
            range.map_or_else(String::new, |(a, b)| format!("{a:.3} to {b:.3}")),
            base.map_or_else(String::new, |b| change(line.median(), b)),
            line.instructions.map_or_else(|| "-".into(), |n| format!("{:.0} M", n as f64 / 1e6)),
            counted.map_or_else(|| "-".into(), |(n, b)| change(n as f64, b as f64)),
        )?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_builds_are_checked() {
        assert_eq!(requested_variants(&[]).unwrap().len(), 10);
        assert_eq!(requested_variants(&["pgo+lto".to_owned()]).unwrap().len(), 1);
        let said = requested_variants(&["fast".to_owned()]).unwrap_err().to_string();
        assert!(said.contains("'fast'") && said.contains("plain-native"), "{said}");
    }

    #[test]
    fn a_table_shows_the_change() {
        let line = |lto, cpu| Line {
            variant: Variant { lto, profile: lto, layout: false, native: false },
            cpu: vec![cpu, cpu, cpu * 2.0],
            instructions: lto.then_some(5_000_000),
        };
        let text = render(Path::new("x.pcap"), &[line(false, 1.0), line(true, 0.8)]).unwrap();
        assert!(
            text.contains("| pgo+lto | 0.800 | 0.800 to 1.600 | -20.0 % | 5 M | - |"),
            "{text}"
        );
    }
}
