//! The report as an SVG image: rates in the upper plot, latencies in the lower one, over time.

use std::fmt::Write;
use std::time::Duration;

use crate::Interval;
use crate::Report;
use crate::table::time;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 90.0;
const TOP: f64 = 50.0;
/// Vertical gap between the two plots.
const GAP: f64 = 70.0;

/// A line of a plot: name, colour, one value per interval.
type Line<'a> = (&'a str, &'a str, Vec<Option<f64>>);

pub(crate) fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    write_all(report, &mut out).unwrap_or_default();
    out
}

fn write_all(r: &Report, out: &mut String) -> std::fmt::Result {
    let (intervals, every) = r.intervals();
    let seconds = every.as_secs_f64();
    let rate = |f: fn(&Interval) -> u64| -> Vec<_> {
        intervals.iter().map(|i| Some(f(i) as f64 / seconds)).collect()
    };
    let latency = |q: f64| -> Vec<_> {
        let at =
            |i: &Interval| (!i.latency.is_empty()).then(|| i.latency.value_at_quantile(q) as f64);
        intervals.iter().map(at).collect()
    };
    let rates = [
        ("sent", "#1f6fb2", rate(|i| i.counts.sent)),
        ("answered", "#2a8f4a", rate(|i| i.counts.answered)),
        ("lost", "#c03a2b", rate(|i| i.counts.lost)),
    ];
    let latencies = [
        ("p50", "#2a8f4a", latency(0.5)),
        ("p99", "#d08a1a", latency(0.99)),
        ("max", "#c03a2b", latency(1.0)),
    ];
    let (width, height) = (WIDTH + LEFT + 30.0, TOP + 2.0 * HEIGHT + GAP + 50.0);
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">"
    )?;
    writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>")?;
    let title = format!("{} to {}, {}", r.input, r.target, r.timing);
    writeln!(out, "<text x=\"{LEFT}\" y=\"20\" font-size=\"15\">{}</text>", escape(&title))?;
    let span = seconds * intervals.len() as f64;
    let count = |v: f64| format!("{v:.0}/s");
    plot(out, TOP, "queries a second", &rates, span, &count)?;
    let clock = |v: f64| time(Duration::from_nanos(v as u64));
    plot(out, TOP + HEIGHT + GAP, "latency", &latencies, span, &clock)?;
    writeln!(out, "</svg>")
}

fn plot(
    out: &mut String,
    top: f64,
    title: &str,
    lines: &[Line<'_>],
    span: f64,
    label: &dyn Fn(f64) -> String,
) -> std::fmt::Result {
    let values = || lines.iter().flat_map(|l| l.2.iter().flatten());
    let most = axis_end(values().copied().fold(0.0, f64::max));
    writeln!(out, "<text x=\"{LEFT}\" y=\"{}\">{title}</text>", top - 8.0)?;
    for tick in 0..=4 {
        let part = f64::from(tick) / 4.0;
        let y = top + HEIGHT * (1.0 - part);
        let right = LEFT + WIDTH;
        writeln!(out, "<path d=\"M{LEFT} {y}H{right}\" stroke=\"#ddd\"/>")?;
        let (x, y) = (LEFT - 6.0, y + 4.0);
        writeln!(
            out,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{}</text>",
            label(most * part)
        )?;
        let (x, y) = (LEFT + WIDTH * part, top + HEIGHT + 16.0);
        let at = time(Duration::from_secs_f64(span * part));
        writeln!(out, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{at}</text>")?;
    }
    for (index, (name, colour, values)) in lines.iter().enumerate() {
        let step = WIDTH / values.len().max(1) as f64;
        let mut path = String::new();
        let mut pen = 'M';
        for (at, value) in values.iter().enumerate() {
            match value {
                Some(value) => {
                    let (x, y) =
                        (LEFT + step * (at as f64 + 0.5), top + HEIGHT * (1.0 - value / most));
                    write!(path, "{pen}{x:.1} {y:.1}")?;
                    pen = 'L';
                }
                None => pen = 'M',
            }
        }
        writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" \
             stroke-linecap=\"round\"/>"
        )?;
        let (x, y) = (LEFT + WIDTH - 90.0 * (lines.len() - index) as f64, top - 8.0);
        writeln!(out, "<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{name}</text>")?;
    }
    Ok(())
}

/// The upper end of an axis that four ticks divide evenly: the next of 1, 2, 4, 5, 8 times a power
/// of ten.
fn axis_end(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0];
    steps.iter().map(|s| s * power).find(|v| *v >= value).unwrap_or(10.0 * power)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        let ends = [0.0, 0.9, 1.0, 3.0, 47_000.0, 81.0].map(axis_end);
        assert_eq!(ends, [1.0, 1.0, 1.0, 4.0, 50_000.0, 100.0]);
    }

    #[test]
    fn file_names_are_escaped() {
        assert_eq!(escape("a<b&c>"), "a&lt;b&amp;c&gt;");
    }
}
