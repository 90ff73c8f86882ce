//! The tables as an SVG picture: one panel for each figure, one line for each map.

use std::fmt::Write;

use super::Rows;
use super::measure::Cost;

/// Sizes of a panel's frame, and of the space around it, in pixels.
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 44.0;
const GAP: f64 = 36.0;

/// One colour for each map, from a palette for colour-blind readers.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#7f7f7f", "#e69f00"];

/// The title of a panel, and its figure.
type Panel = (&'static str, fn(&Cost) -> f64);

const PANELS: [Panel; 5] = [
    ("bytes an entry", |cost| cost.bytes),
    ("insert, ns", |cost| cost.nanos[0]),
    ("found, ns", |cost| cost.nanos[1]),
    ("absent, ns", |cost| cost.nanos[2]),
    ("remove, ns", |cost| cost.nanos[3]),
];

/// An SVG of all tables, one row of panels each.
pub(super) fn draw(tables: &[(&'static str, Rows)]) -> String {
    let width = LEFT + PANELS.len() as f64 * (WIDTH + LEFT);
    let height = TOP + tables.len() as f64 * (HEIGHT + TOP + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (at, (title, rows)) in tables.iter().enumerate() {
        let y = TOP + at as f64 * (HEIGHT + TOP + GAP);
        text(&mut svg, LEFT, y - 24.0, "start", &format!("{title}, by entries of a map"));
        for (at, (label, figure)) in PANELS.iter().enumerate() {
            panel(&mut svg, LEFT + at as f64 * (WIDTH + LEFT), y, label, rows, *figure);
        }
    }
    if let Some((_, costs)) = tables.first().and_then(|(_, rows)| rows.first()) {
        for (at, (name, _)) in costs.iter().enumerate() {
            let x = LEFT + at as f64 * 110.0;
            let y = height - 12.0;
            let colour = COLOURS[at % COLOURS.len()];
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{}\" width=\"18\" height=\"3\" fill=\"{colour}\"/>",
                y - 5.0
            );
            text(&mut svg, x + 24.0, y, "start", name);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, label: &str) {
    let _ =
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{label}</text>");
}

/// One figure: both axes by powers of ten.
fn panel(svg: &mut String, x: f64, y: f64, label: &str, rows: &Rows, figure: fn(&Cost) -> f64) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>"
    );
    text(svg, x + WIDTH / 2.0, y - 8.0, "middle", label);
    let figures = || rows.iter().flat_map(|(_, costs)| costs).map(|(_, cost)| figure(cost));
    let min = figures().fold(f64::INFINITY, f64::min).max(0.1).log10();
    let max = figures().fold(1.0, f64::max).log10();
    let (min, max) = ((min * 2.0).floor() / 2.0, (max * 2.0).ceil() / 2.0);
    let largest = rows.iter().map(|(size, _)| *size).max().unwrap_or(1).max(10) as f64;
    let x_of = |size: f64| x + 8.0 + (WIDTH - 16.0) * size.log10() / largest.log10();
    let y_of =
        |value: f64| y + HEIGHT - HEIGHT * (value.max(0.1).log10() - min) / (max - min).max(0.5);
    for (size, _) in rows {
        let size = *size as f64;
        if size.log10().fract() == 0.0 {
            let at = x_of(size);
            text(svg, at, y + HEIGHT + 14.0, "middle", &short(size));
        }
    }
    // 1, 3, 10, 30, ...
    for half in (min * 2.0) as i32..=(max * 2.0) as i32 {
        let value = 10_f64.powf(f64::from(half) / 2.0);
        let at = y_of(value);
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>",
            x + WIDTH
        );
        text(svg, x - 5.0, at + 4.0, "end", &short(value));
    }
    let maps = rows.first().map_or(0, |(_, costs)| costs.len());
    for map in 0..maps {
        let points = rows.iter().filter_map(|(size, costs)| {
            let (_, cost) = costs.get(map)?;
            Some(format!("{:.1},{:.1}", x_of(*size as f64), y_of(figure(cost))))
        });
        let points = points.collect::<Vec<_>>().join(" ");
        let colour = COLOURS[map % COLOURS.len()];
        let _ = writeln!(
            svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
    }
}

/// A number for an axis.
fn short(value: f64) -> String {
    match value {
        1e6.. => format!("{:.0}M", value / 1e6),
        1e3.. => format!("{:.0}K", value / 1e3),
        3.0.. => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}
