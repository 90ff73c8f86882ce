//! `conn_state`: the beginnings and ends of TCP connections.

use gannet_capture::LinkType;
use gannet_synth::frame;
use gannet_synth::frame::ACK;
use gannet_synth::frame::FIN;
use gannet_synth::frame::RST;
use gannet_synth::frame::SYN;
use gannet_synth::frame::TcpHeader;

use super::Ran;
use super::capture;
use super::client;
use super::server;

/// The state of a connection to port 80. A script is a list of segments as letters for flags:
/// capitals from the client, small letters from the server; `d` and `D` are four bytes of data.
fn state(script: &str) -> String {
    let mut seq = [100_u32, 300];
    let mut frames = Vec::new();
    for (i, word) in script.split(' ').enumerate() {
        let from = usize::from(word.starts_with(char::is_lowercase));
        let flags = word.to_ascii_uppercase().bytes().fold(0, |flags, c| {
            flags
                | match c {
                    b'S' => SYN,
                    b'F' => FIN,
                    b'R' => RST,
                    _ => ACK,
                }
        });
        let data = if word.eq_ignore_ascii_case("d") { &b"data"[..] } else { b"" };
        let header =
            TcpHeader { seq: seq[from], ack: seq[1 - from], flags, window: 9, options: &[] };
        let taken = data.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
        seq[from] += taken;
        let ends = [client(4_000), server(80)];
        let bytes = frame::tcp(ends[from], ends[1 - from], 1, header, data);
        frames.push((i as f64 / 100.0, bytes));
    }
    Ran::of(&capture(LinkType::ETHERNET, &frames)).rows("conn", "conn_state history").join(" ")
}

#[test]
fn every_state() {
    let cases = [
        ("S", "S0 S"),
        ("S ra", "REJ Sr"),
        ("S sa A", "S1 ShA"),
        ("S sa A D a d A", "S1 ShADad"),
        ("S sa A FA fa A", "SF ShAFf"),
        ("S sa A FA a", "S2 ShAFa"),
        ("S sa A fa A", "S3 ShAf"),
        ("S sa A R", "RSTO ShAR"),
        ("S sa A r", "RSTR ShAr"),
        ("S R", "RSTOS0 SR"),
        // One direction of a connection, whose port shows the role; the other one was not captured.
        ("sa r", "RSTRH ^hr"),
        ("sa fa", "SHR ^hf"),
        ("S FA", "SH SF"),
        ("D", "OTH D"),
        ("R", "OTH R"),
        ("d", "OTH ^d"),
        ("A a", "OTH Aa"),
        // Both sides reset: rejected if no data was sent.
        ("S sa A R r", "REJ ShARr"),
        ("S sa A D R r", "RSTR ShADRr"),
    ];
    let wrong: Vec<_> = cases
        .iter()
        .map(|(script, right)| (script, state(script), right))
        .filter(|(_, is, right)| is != *right)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_syn_without_the_options_it_claims_begins_a_connection() {
    let segment = |seq, flags, words: u8| {
        let header = TcpHeader { seq, ack: 0, flags, window: 9, options: &[] };
        let mut b = frame::tcp(client(4_000), server(80), 1, header, b"");
        b[46] = words << 4;
        b
    };
    let run = |words| {
        let frames = [(0.0, segment(100, SYN, 5)), (0.1, segment(900, SYN, words))];
        let ran = Ran::of(&capture(LinkType::ETHERNET, &frames));
        (ran.rows("conn", "conn_state history"), ran.weirds())
    };
    let (rows, weirds) = run(8);
    assert_eq!(rows, ["S0 S", "OTH -"]);
    assert_eq!(weirds, ["SYN_seq_jump", "truncated_header"]);
    // A header shorter than the minimum is ignored.
    assert_eq!(run(4), (vec!["S0 S".into()], vec!["bad_TCP_header_len".into()]));
}
