//! Raises the events of TCP segments.

use gannet_base::Dir;
use gannet_flow::Conn;
use gannet_flow::tcp::Consumer;
use gannet_flow::tcp::Repeated;
use gannet_flow::tcp::Step;
use gannet_wire::Tcp;
use gannet_wire::TcpFlags;

use super::Session;
use crate::packet::build;
use crate::packet::events::*;

/// Whether an event of segments has a listener.
#[inline]
pub(super) fn wants_segments(session: &Session<'_>) -> bool {
    session.wants::<TcpPacket<'_>>()
        || session.wants::<TcpOption>()
        || session.wants::<TcpOptions<'_>>()
        || session.wants::<TcpSequences>()
}

/// Raises the events of a step.
#[cold]
pub(super) fn raise(session: &mut Session<'_>, conn: &mut Conn, step: &Step<'_>) {
    match *step {
        Step::Syn => {
            if let Some(pkt) = session.env.syn.take() {
                session.raise(conn, |c| ConnectionSynPacket { c, pkt });
            }
        }
        Step::FirstAck => session.raise(conn, |c| ConnectionFirstAck { c }),
        Step::Rejected => session.raise(conn, |c| ConnectionRejected { c }),
        Step::Reset => session.raise(conn, |c| ConnectionReset { c }),
        Step::Partial => session.raise(conn, |c| PartialConnection { c }),
        Step::Segment { from, segment, seq, ack, last } => {
            let [orig, resp] = last.map(u64::from);
            session.raise(conn, |c| TcpSequences { c, orig, resp });
            raise_segment(session, conn, from, segment, (seq, ack));
        }
        Step::End(from) => {
            let is_orig = from.is_orig();
            session.raise(conn, |c| ConnectionEof { c, is_orig });
        }
        Step::Finished { half: true } => session.raise(conn, |c| ConnectionHalfFinished { c }),
        Step::Finished { half: false } => session.raise(conn, |c| ConnectionFinished { c }),
        Step::Repeated { times: 1, .. } => {}
        Step::Repeated { what, from, times } => {
            let (is_orig, threshold) = (from.is_orig(), u64::from(times));
            match what {
                Repeated::Retransmission => {
                    session.raise(conn, |c| TcpMultipleRetransmissions { c, is_orig, threshold });
                }
                Repeated::Gap => session.raise(conn, |c| TcpMultipleGap { c, is_orig, threshold }),
                Repeated::ZeroWindow => {
                    session.raise(conn, |c| TcpMultipleZeroWindows { c, is_orig, threshold });
                }
                Repeated::BadChecksum => {
                    session.raise(conn, |c| TcpMultipleChecksumErrors { c, is_orig, threshold });
                }
            }
        }
    }
}

fn raise_segment(
    session: &mut Session<'_>,
    conn: &mut Conn,
    from: Dir,
    s: &Tcp<'_>,
    (seq, ack): (u64, u64),
) {
    let is_orig = from.is_orig();
    if session.wants::<TcpPacket<'_>>() {
        let flags = build::flag_letters(s.flags.0);
        let ack = if s.flags.any(TcpFlags::ACK) { ack } else { 0 };
        let (len, payload) = (u64::from(s.payload_len), s.payload);
        session.raise(conn, |c| TcpPacket { c, is_orig, flags: &flags, seq, ack, len, payload });
    }
    if !s.options.is_empty() && (session.wants::<TcpOption>() || session.wants::<TcpOptions<'_>>())
    {
        let options = build::raw_options(s.options);
        for (kind, len, _) in &options {
            let (opt, optlen) = (u64::from(*kind), *len as u64);
            session.raise(conn, |c| TcpOption { c, is_orig, opt, optlen });
        }
        if session.wants::<TcpOptions<'_>>() {
            raise_options(session, conn, is_orig, &options);
        }
    }
}

/// Raises the event of all options with their fields. As in Zeek, only this event checks their
/// lengths.
#[cold]
fn raise_options(
    session: &mut Session<'_>,
    conn: &mut Conn,
    is_orig: bool,
    options: &[(u8, usize, &[u8])],
) {
    for (kind, len, _) in options {
        if let Some(name) = build::wrong_length(*kind, *len) {
            Consumer::weird(session, conn, name, &len.to_string(), "TCP");
        }
    }
    let options = options.iter().map(|(kind, len, data)| build::option(*kind, *len, data));
    session.raise(conn, |c| TcpOptions { c, is_orig, options: options.collect() });
}
