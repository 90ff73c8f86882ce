//! The figures as an SVG picture: a bar for each stage, whose length is the logarithm of its nanoseconds per packet.

use std::fmt::Write;

use super::Figures;

const ROW: f64 = 17.0;
const LEFT: f64 = 330.0;
const WIDTH: f64 = 560.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 40.0;
/// Space above a group.
const GAP: f64 = 10.0;

/// One colour for each group, from a palette for colour-blind readers.
const COLOURS: [&str; 7] =
    ["#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7", "#7f7f7f"];

/// An SVG of all stages.
pub(super) fn draw(all: &[Figures]) -> String {
    let ends = || all.iter().map(Figures::range).filter(|(a, b)| a.is_finite() && b.is_finite());
    let min = ends().map(|(a, _)| a).fold(f64::INFINITY, f64::min).clamp(0.1, 1e9).log10().floor();
    let max = ends().map(|(_, b)| b).fold(1.0, f64::max).log10().ceil().max(min + 1.0);
    let x = |nanos: f64| LEFT + WIDTH * (nanos.max(0.1).log10() - min).max(0.0) / (max - min);
    let mut groups: Vec<&str> = all.iter().map(|f| f.group).collect();
    groups.dedup();
    let bottom = TOP + all.len() as f64 * ROW + groups.len() as f64 * GAP;
    let (width, height) = (LEFT + WIDTH + RIGHT, bottom + 30.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(&mut svg, LEFT, 20.0, "start", "nanoseconds a packet (median, min to max)");
    for power in min as i32..=max as i32 {
        let at = x(10_f64.powi(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#ddd\"/>"
        );
        text(&mut svg, at, bottom + 16.0, "middle", &short(10_f64.powi(power)));
    }
    let mut y = TOP;
    let mut group = 0;
    for (at, f) in all.iter().enumerate() {
        if at == 0 || all[at - 1].group != f.group {
            y += GAP;
            group += usize::from(at > 0);
        }
        let colour = COLOURS[group % COLOURS.len()];
        let (low, high) = f.range();
        let (top, middle, tall) = (y + 2.0, y + ROW / 2.0, ROW - 4.0);
        let (long, from, to) = (x(f.median()) - LEFT, x(low), x(high));
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{long:.1}\" height=\"{tall}\" fill=\"{colour}\"/>\n\
             <line x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"black\"/>"
        );
        text(&mut svg, LEFT - 6.0, y + 12.0, "end", &format!("{} {}", f.group, f.name));
        text(&mut svg, x(high) + 5.0, y + 12.0, "start", &short(f.median()));
        y += ROW;
    }
    svg.push_str("</svg>\n");
    svg
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, label: &str) {
    let label = label.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ =
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{label}</text>");
}

fn short(nanos: f64) -> String {
    match nanos {
        1e6.. => format!("{:.1} ms", nanos / 1e6),
        1e3.. => format!("{:.1} µs", nanos / 1e3),
        10.0.. => format!("{nanos:.0} ns"),
        _ => format!("{nanos:.1} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::speed::measure::Work;

    #[test]
    fn a_bar_for_each_stage() {
        let of = |group, name: &str, nanos: f64| Figures {
            group,
            name: name.into(),
            work: Work { packets: 1, bytes: 1 },
            allocations: 0.0,
            nanos: vec![nanos, nanos * 1.1],
            wall: nanos,
        };
        let svg = draw(&[of("a", "x & y", 5.0), of("a", "z", 50.0), of("b", "z", 5_000.0)]);
        assert_eq!(svg.matches("<rect x=").count(), 3);
        assert!(svg.contains("x &amp; y") && svg.ends_with("</svg>\n"));
        assert!(svg.contains(COLOURS[1]) && !svg.contains(COLOURS[2]));
        assert!(!draw(&[]).contains("NaN"));
    }
}
