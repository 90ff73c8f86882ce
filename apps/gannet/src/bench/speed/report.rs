//! The figures as a table.

use std::io;
use std::io::Write;

use super::Figures;

pub(super) fn head(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<46} {:>10} {:>8} {:>9} {:>8} {:>7} {:>12}",
        "stage", "packets/s", "Gbit/s", "ns/packet", "wall", "spread", "alloc/1000"
    )
}

/// Writes one stage; an empty line precedes a new group.
pub(super) fn line(out: &mut impl Write, f: &Figures, last: Option<&Figures>) -> io::Result<()> {
    if last.is_some_and(|l| l.group != f.group) {
        writeln!(out)?;
    }
    writeln!(
        out,
        "{:<46} {:>10} {:>8.2} {:>9.1} {:>8.1} {:>6.1}% {:>12.1}",
        format!("{} {}", f.group, f.name),
        rate(f.rate()),
        f.gigabits(),
        f.median(),
        f.wall,
        100.0 * f.spread(),
        f.allocations
    )?;
    out.flush()
}

/// A rate in thousands or millions.
fn rate(value: f64) -> String {
    if value >= 1e6 { format!("{:.2} M", value / 1e6) } else { format!("{:.1} k", value / 1e3) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::speed::measure::Work;

    #[test]
    fn a_line() {
        let mut figures = Figures {
            group: "reading",
            name: "mapped".into(),
            work: Work { packets: 1_000, bytes: 125_000 },
            allocations: 3.0,
            nanos: vec![9.0, 10.0, 11.0],
            wall: 5.5,
        };
        let mut out = Vec::new();
        line(&mut out, &figures, None).unwrap();
        figures.group = "writing";
        figures.nanos = vec![10_000.0];
        line(&mut out, &figures.clone(), Some(&Figures { group: "reading", ..figures })).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> =
            text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(
            lines[0],
            ["reading", "mapped", "100.00", "M", "100.00", "10.0", "5.5", "20.0%", "3.0"]
        );
        assert_eq!(lines[1], [""; 0]);
        assert_eq!(
            lines[2],
            ["writing", "mapped", "100.0", "k", "0.10", "10000.0", "5.5", "0.0%", "3.0"]
        );
    }
}
