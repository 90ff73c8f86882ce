//! Receive windows: their scale, zero windows, and windows that shrink.

use gannet_base::Dir;
use gannet_wire as wire;
use gannet_wire::TcpFlags;

use super::Consumer;
use super::Repeated;
use super::State;
use super::Step;
use super::Tcp;
use super::endpoint::delta;
use crate::Conn;
use crate::conn::is_power_of_ten;

impl Tcp {
    #[inline(always)]
    pub(super) fn update_window(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        s: &wire::Tcp<'_>,
        c: &mut impl Consumer,
    ) {
        let peer_state = self.endpoint(from.other()).state;
        let e = self.end(from);
        let window = u32::from(s.window) << e.window_scale;
        let rst = s.flags.any(TcpFlags::RST);
        if window == 0 && !rst && peer_state != State::Closed && e.state != State::Reset {
            e.zero_windows += 1;
            let times = e.zero_windows;
            if is_power_of_ten(times) {
                conn.note(from, b'W');
                let what = Repeated::ZeroWindow;
                self.report_step(conn, &Step::Repeated { what, from, times }, c);
            }
        }
        let e = self.end(from);
        let quiet = !s.flags.any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        if quiet
            && e.state != State::Closed
            && e.state != State::Reset
            && delta(s.seq, e.window_seq) >= 0
            && delta(s.ack, e.window_ack_seq) >= 0
        {
            let new = s.ack.wrapping_add(window);
            let old = e.window_ack_seq.wrapping_add(e.window);
            let advance = delta(new, old);
            e.window = window;
            e.window_ack_seq = s.ack;
            e.window_seq = s.seq;
            if advance < 0 && advance.wrapping_neg() >= 1 << e.window_scale {
                self.report_first_view(c);
                c.weird(conn, "window_recision", "", "");
            }
        }
    }

    pub(super) fn init_window(
        &mut self,
        conn: &mut Conn,
        from: Dir,
        s: &wire::Tcp<'_>,
        c: &mut impl Consumer,
    ) {
        match window_scale(s.options) {
            None => {
                self.end(from).window_scale = 0;
                if s.flags.any(TcpFlags::ACK) {
                    self.end(from.other()).window_scale = 0;
                }
            }
            Some(scale) => {
                if scale > 14 && !conn.did_weird() {
                    c.weird(conn, "TCP_scale_range", &scale.to_string(), "TCP");
                }
                let e = self.end(from);
                e.window_scale = scale.min(14);
                e.window_seq = s.seq;
                e.window_ack_seq = s.ack;
                let peer = self.end(from.other());
                peer.window_seq = s.ack;
                peer.window_ack_seq = s.seq;
            }
        }
    }
}

/// Shift count of the window scale option (RFC 7323), if present.
fn window_scale(mut options: &[u8]) -> Option<u8> {
    let mut found = None;
    while let [kind, rest @ ..] = options {
        match kind {
            0 => break,
            1 => options = rest,
            _ => {
                let Some(len) = rest.first().map(|len| usize::from(*len)) else { break };
                if len == 0 || len > options.len() {
                    break;
                }
                if *kind == 3 && len >= 3 {
                    found = Some(options[2]);
                }
                options = &options[len..];
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_counts_whatever_follows_it() {
        let cases: [(&[u8], Option<u8>); 6] = [
            (&[2, 4, 5, 180, 1, 3, 3, 7], Some(7)),
            (&[3, 3, 7, 0], Some(7)),
            // An option without space for its length, a length that does not fit, and no options.
            (&[3, 3, 7, 8], Some(7)),
            (&[3, 3, 7, 8, 10, 0], Some(7)),
            (&[3, 3, 7, 8, 0, 3, 3, 9], Some(7)),
            (&[8, 10, 0, 3, 3, 7], None),
        ];
        for (options, scale) in cases {
            assert_eq!(window_scale(options), scale, "{options:?}");
        }
    }
}
