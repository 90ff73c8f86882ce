//! The figures as JSON, for other programs.

use std::fmt::Write;

use super::Figures;
use super::against::OtherProgram;

/// One object: the version, the stages, and the costs of other programs.
pub(super) fn render(all: &[Figures], others: &[OtherProgram]) -> String {
    let mut out =
        format!("{{\n  \"gannet\": {},\n  \"stages\": [", text(env!("CARGO_PKG_VERSION")));
    for (at, f) in all.iter().enumerate() {
        let (min, max) = f.range();
        // Writing to a string does not fail.
        write!(
            out,
            "{}\n    {{\"group\": {}, \"name\": {}, \"packets\": {}, \"bytes\": {}, \
             \"ns_per_packet\": {:.3}, \"min\": {min:.3}, \"max\": {max:.3}, \
             \"wall_ns_per_packet\": {:.3}, \"packets_per_second\": {:.0}, \"gigabits_per_second\": {:.3}, \
             \"allocations_per_1000_packets\": {:.2}}}",
            if at == 0 { "" } else { "," },
            text(f.group),
            text(&f.name),
            f.work.packets,
            f.work.bytes,
            f.median(),
            f.wall,
            f.rate(),
            f.gigabits(),
            f.allocations,
        )
        .unwrap_or_default();
    }
    out.push_str("\n  ],\n  \"against\": [");
    for (at, other) in others.iter().enumerate() {
        write!(
            out,
            "{}\n    {{\"trace\": {}, \"task\": {}, \"program\": {}, \"ns_per_packet\": {:.3}, \
             \"gannet_ns_per_packet\": {:.3}, \"times_gannet\": {:.3}{}}}",
            if at == 0 { "" } else { "," },
            text(&other.trace),
            text(other.task),
            text(&other.program),
            other.nanos,
            other.own,
            other.times(),
            other.wall.map_or_else(String::new, |(theirs, own)| format!(
                ", \"wall_ns_per_packet\": {theirs:.3}, \"gannet_wall_ns_per_packet\": {own:.3}"
            )),
        )
        .unwrap_or_default();
    }
    out.push_str("\n  ]\n}\n");
    out
}

/// A string with its quotes.
fn text(text: &str) -> String {
    let mut out = vec![b'"'];
    gannet_log::escape_json(&mut out, text.as_bytes());
    out.push(b'"');
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::speed::measure::Work;

    #[test]
    fn one_object() {
        let figures = Figures {
            group: "reading",
            name: "a \"b\".pcap".into(),
            work: Work { packets: 2, bytes: 100 },
            allocations: 0.5,
            nanos: vec![1.0, 2.0, 4.0],
            wall: 1.5,
        };
        let other = OtherProgram {
            trace: "t".into(),
            task: "copy",
            program: "tcpdump 4".into(),
            nanos: 6.0,
            own: 2.0,
            wall: Some((6.5, 1.25)),
        };
        let out = render(&[figures.clone(), figures], &[other]);
        assert!(out.contains(r#""name": "a \"b\".pcap""#), "{out}");
        assert!(out.contains("\"ns_per_packet\": 2.000, \"min\": 1.000, \"max\": 4.000"), "{out}");
        assert!(out.contains("\"wall_ns_per_packet\": 1.500"), "{out}");
        assert!(out.contains("\"times_gannet\": 3.000"), "{out}");
        assert!(out.contains("\"gannet_wall_ns_per_packet\": 1.250}"), "{out}");
        let pairs = |open, close| (out.matches(open).count(), out.matches(close).count());
        assert_eq!((pairs('{', '}'), pairs('[', ']')), ((4, 4), (2, 2)));
    }
}
