use gannet_base::Dir;

use super::blocks;
use super::blocks::Block;
use super::blocks::Blocks;
use super::events::Channels;
use super::events::RdpBeginEncryption;
use super::events::RdpClientClusterData;
use super::events::RdpClientCoreData;
use super::events::RdpClientNetworkData;
use super::events::RdpClientSecurityData;
use super::events::RdpConnectRequest;
use super::events::RdpGccServerCreateResponse;
use super::events::RdpNativeEncryptedData;
use super::events::RdpNegotiationFailure;
use super::events::RdpNegotiationResponse;
use super::events::RdpServerCertificate;
use super::events::RdpServerSecurity;
use super::events::SecurityData;
use super::message;
use super::message::Message;
use super::raise;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Replay;
use crate::Tag;
use crate::ssl::report_certificate;
use crate::stack::events::FileStarts;
use crate::support::Frames;
use crate::support::RecordFault;

/// Maximum length of a message, in bytes.
const MAX_MESSAGE: usize = 0xffff;
/// Maximum number of virtual channels that a client may request.
const MAX_CHANNELS: usize = 31;

/// The analyzer of RDP over TCP.
pub struct Analyzer {
    frames: [Frames; 2],
    rows: Rows,
    encryption: Option<u32>,
    /// No further data can be parsed.
    done: bool,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        let frames = [Frames::new(MAX_MESSAGE), Frames::new(MAX_MESSAGE)];
        Self { frames, rows: Rows::default(), encryption: None, done: false }
    }

    fn message(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Result<(), RecordFault> {
        match Message::parse(data)? {
            Message::Request(cookie, flags) => {
                let flags = flags.into();
                cx.report(&mut self.rows, |c| RdpConnectRequest { c, cookie, flags });
            }
            Message::Response(protocol, flags) => {
                let (security_protocol, flags) = (protocol, flags.into());
                let rows = &mut self.rows;
                cx.report(rows, |c| RdpNegotiationResponse { c, security_protocol, flags });
                if protocol > 0 {
                    self.encrypt(cx, protocol);
                }
            }
            Message::Failure(code, flags) => {
                let (failure_code, flags) = (code, flags.into());
                let rows = &mut self.rows;
                cx.report(rows, |c| RdpNegotiationFailure { c, failure_code, flags });
            }
            Message::Client(data) => {
                let blocks = blocks::client(data)?;
                self.blocks(cx, blocks)?;
            }
            Message::Server(data) => {
                let (result, blocks) = blocks::server(data)?;
                cx.confirm(Tag::Rdp);
                let result = result.into();
                cx.report(&mut self.rows, |c| RdpGccServerCreateResponse { c, result });
                self.blocks(cx, blocks)?;
            }
            Message::Confirm | Message::Other => {}
        }
        Ok(())
    }

    fn blocks(&mut self, cx: &mut Context<'_>, blocks: Blocks<'_>) -> Result<(), RecordFault> {
        for block in blocks {
            match block? {
                Block::ClientCore(core) => {
                    cx.confirm(Tag::Rdp);
                    let data = raise::core(&core);
                    cx.report(&mut self.rows, |c| RdpClientCoreData { c, data });
                }
                Block::ClientNetwork(names) if !names.is_empty() => {
                    if names.len() > MAX_CHANNELS {
                        let addl = names.len().to_string();
                        cx.weird("RDP_channels_requested_exceeds_max", &addl, None);
                    }
                    let channels = Channels(&names);
                    cx.report(&mut self.rows, |c| RdpClientNetworkData { c, channels });
                }
                Block::ServerSecurity(s) => {
                    self.certificates(cx, &s.certs);
                    let (cert_type, permanently_issued) = (s.cert_type, s.cert_permanent);
                    let rows = &mut self.rows;
                    cx.report(rows, |c| RdpServerCertificate { c, cert_type, permanently_issued });
                    if s.method > 0 && s.level > 0 {
                        self.encrypt(cx, 0);
                    }
                    cx.confirm(Tag::Rdp);
                    let (encryption_method, encryption_level) = (s.method, s.level);
                    let rows = &mut self.rows;
                    cx.report(rows, |c| RdpServerSecurity {
                        c,
                        encryption_method,
                        encryption_level,
                    });
                }
                Block::TruncatedSecurity(certs, e) => {
                    self.certificates(cx, &certs);
                    return Err(e);
                }
                Block::ClientSecurity([encryption_methods, ext_encryption_methods]) => {
                    let data = SecurityData { encryption_methods, ext_encryption_methods };
                    cx.raise(|c| RdpClientSecurityData { c, data });
                }
                Block::ClientCluster(numbers) => {
                    cx.raise(|c| RdpClientClusterData { c, data: raise::cluster(numbers) });
                }
                Block::ClientNetwork(_) | Block::Other => {}
            }
        }
        Ok(())
    }

    /// The stream is encrypted from here on; the event is raised with the next data.
    fn encrypt(&mut self, cx: &mut Context<'_>, protocol: u32) {
        self.encryption = Some(protocol);
        cx.report(&mut self.rows, |c| RdpBeginEncryption { c, security_protocol: protocol });
    }

    fn certificates(&mut self, cx: &mut Context<'_>, certs: &[&[u8]]) {
        for cert in certs {
            report_certificate(cx, "RDP", cert, true, false, 0);
            let (atype, is_orig, fuid) = (Tag::Rdp, false, None);
            cx.report(&mut self.rows, |c| FileStarts { c, atype, is_orig, fuid });
        }
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        self.rows.write_if_due(cx);
        if self.done || cx.conn.is_partial() {
            return;
        }
        match self.encryption {
            Some(0) => {
                let (orig, len) = (from.is_orig(), data.len() as u64);
                cx.raise(|c| RdpNativeEncryptedData { c, orig, len });
                return;
            }
            Some(_) => {
                self.done = true;
                // Zeek's RDP passes on no data after a gap, like the SSL analyzer after one.
                cx.start(Tag::Ssl, Replay::rest(from, data));
                return;
            }
            None => {}
        }
        let mut rest = data;
        let mut frames =
            std::mem::replace(&mut self.frames[from.index()], Frames::new(MAX_MESSAGE));
        while let Some(frame) = frames.next(&mut rest, message::length) {
            if let Err(e) = self.message(cx, frame) {
                cx.violation(Tag::Rdp, &e.to_string(), &[]);
                self.rows.write(cx);
                frames.reset();
                break;
            }
        }
        self.frames[from.index()] = frames;
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.done = true;
    }

    fn suspend(&mut self, cx: &mut Context<'_>) -> bool {
        // The row is written and remains the only one.
        let rows = std::mem::take(&mut self.rows);
        *self = Self { rows, ..Self::new(cx) };
        true
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.write(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::tests::client_settings;
    use super::super::blocks::tests::server_settings;
    use super::*;
    use crate::Piece;
    use crate::testing::Harness;
    use gannet_base::Proto;

    fn message(start: &[u8], rest: &[u8]) -> Vec<u8> {
        let mut out = vec![3, 0];
        out.extend_from_slice(&((4 + start.len() + rest.len()) as u16).to_be_bytes());
        out.extend_from_slice(start);
        out.extend_from_slice(rest);
        out
    }

    fn run(chunks: &[(Dir, Vec<u8>)]) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 3389);
        let mut a = Analyzer::new(&mut h.cx());
        for (dir, data) in chunks {
            a.stream(&mut h.cx(), *dir, data);
        }
        a.finish(&mut h.cx());
        h
    }

    const REQUEST: &[u8] = b"\x17\xe0\0\0\0\0\0Cookie: mstshash=";

    #[test]
    fn own_encryption() {
        let mut request = REQUEST.to_vec();
        request[0] = 26; // length of 6 plus 20 bytes of cookie
        let h = run(&[
            (Dir::Orig, message(&request, b"m\r\n")),
            (Dir::Resp, message(b"\x06\xd0\0\0\0\0\0", b"")),
            (Dir::Orig, message(b"\x02\xf0\x80\x7f\x65", &client_settings())),
            (Dir::Resp, message(b"\x02\xf0\x80\x7f\x66", &server_settings())),
            (Dir::Orig, b"whatever".to_vec()),
        ]);
        assert!(h.confirmed(Tag::Rdp));
        assert!(!h.violated(Tag::Rdp));
        let rows = h.rows("rdp");
        assert_eq!(rows.len(), 1);
        let r = &rows[0];
        assert_eq!((&*r["cookie"], &*r["result"]), ("m", "Success"));
        assert_eq!((&*r["security_protocol"], &*r["client_channels"]), ("RDP", "rdpdr,rdpsnd"));
        assert_eq!(r["keyboard_layout"], "English - United States");
        assert_eq!((&*r["client_build"], &*r["client_name"]), ("RDP 5.1", "HOST"));
        assert_eq!((&*r["desktop_width"], &*r["requested_color_depth"]), ("1280", "16bit"));
        assert_eq!((&*r["cert_type"], &*r["cert_count"], &*r["cert_permanent"]), ("RSA", "1", "T"));
        let encryption = (&*r["encryption_level"], &*r["encryption_method"]);
        assert_eq!(encryption, ("Client compatible", "128bit"));
    }

    #[test]
    fn repeated_channels() {
        let mut settings = client_settings();
        settings.extend_from_slice(b"\x03\xc0\x14\0\x01\0\0\0cliprdr\0\0\0\0\0");
        let h = run(&[(Dir::Orig, message(b"\x02\xf0\x80\x7f\x65", &settings))]);
        assert_eq!(h.rows("rdp")[0]["client_channels"], "cliprdr,rdpsnd");
    }

    #[test]
    fn names_that_are_no_text() {
        let mut settings = client_settings();
        let name = settings.windows(4).position(|w| w == b"H\0O\0").unwrap();
        // An unpaired surrogate is allowed, except at the end.
        settings[name..][..2].copy_from_slice(b"\x00\xdc");
        settings[name + 32 + 12..][62..64].copy_from_slice(b"\x00\xd8");
        let h = run(&[(Dir::Orig, message(b"\x02\xf0\x80\x7f\x65", &settings))]);
        assert_eq!(h.rows("rdp")[0]["client_name"], "\\xed\\xb0\\x80OST");
        assert_eq!(h.rows("weird")[0]["name"], "utf16_conversion_failed");
    }

    #[test]
    fn tls() {
        let h = run(&[
            (Dir::Orig, message(b"\x06\xe0\0\0\0\0\0", b"")),
            (Dir::Resp, message(b"\x0e\xd0\0\0\0\0\0", b"\x02\0\x08\0\x02\0\0\0")),
            (Dir::Orig, b"\x16\x03\x01".to_vec()),
            (Dir::Resp, b"\x16\x03\x01".to_vec()),
        ]);
        assert_eq!(h.starts.len(), 1);
        assert_eq!(h.starts[0].0, Tag::Ssl);
        assert_eq!(h.starts[0].1.pieces, [(Dir::Orig, Piece::Bytes(b"\x16\x03\x01".to_vec()))]);
        assert!(!h.starts[0].1.is_inner);
        let r = &h.rows("rdp")[0];
        assert_eq!((&*r["cookie"], &*r["result"]), ("(empty)", "encrypted"));
        assert_eq!(r["security_protocol"], "HYBRID");
    }

    #[test]
    fn refusals() {
        let refusal = message(b"\x0e\xd0\0\0\0\0\0", b"\x03\0\x08\0\x05\0\0\0");
        let h = run(&[(Dir::Resp, refusal), (Dir::Resp, message(b"\x0e\xd0\0", b""))]);
        assert!(h.violated(Tag::Rdp));
        assert_eq!(h.rows("rdp")[0]["result"], "HYBRID_REQUIRED_BY_SERVER");
    }
}
