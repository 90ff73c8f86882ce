use gannet_base::Dir;

use super::events::MysqlAuthMoreData;
use super::events::MysqlAuthPlugin;
use super::events::MysqlAuthSwitchRequest;
use super::events::MysqlChangeUser;
use super::events::MysqlCommandRequest;
use super::events::MysqlEof;
use super::events::MysqlError;
use super::events::MysqlHandshake;
use super::events::MysqlOk;
use super::events::MysqlResultFields;
use super::events::MysqlServerVersion;
use super::events::MysqlSslRequest;
use super::message;
use super::message::Greeting;
use super::message::HEADER;
use super::message::Login;
use super::message::capability;
use super::rows::Rows;
use crate::Analyze;
use crate::Context;
use crate::Replay;
use crate::Tag;
use crate::support::Bytes;
use crate::support::Frames;
use crate::support::RecordFault;

/// Maximum number of bytes of a packet that are parsed; the rest of a longer packet is skipped.
const MAX_PACKET: usize = 256 << 10;

/// Kind of the server's next packet, after the login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Nothing,
    Status,
    Column,
    ColumnOrEnd,
    ColumnCount,
    EndThenRows,
    Rows,
    Anything,
}

/// The analyzer of one connection.
pub struct Analyzer {
    frames: [Frames; 2],
    version: u8,
    /// The server's last sequence number.
    sequence: u8,
    logged_in: bool,
    /// The client's next packet continues the login.
    more_login: bool,
    expect: Expect,
    columns: u32,
    columns_left: u32,
    capabilities: u32,
    server_query_attributes: bool,
    rows: Rows,
    /// TLS has begun, or bytes are missing: later data cannot be parsed.
    is_opaque: bool,
}

impl Analyzer {
    /// Creates the analyzer of a new connection.
    pub fn new(_cx: &mut Context<'_>) -> Self {
        Self {
            frames: [Frames::new(MAX_PACKET), Frames::new(MAX_PACKET)],
            version: 0,
            sequence: 0,
            logged_in: false,
            more_login: false,
            expect: Expect::Status,
            columns: 0,
            columns_left: 0,
            capabilities: 0,
            server_query_attributes: false,
            rows: Rows::default(),
            is_opaque: false,
        }
    }

    fn packet(&mut self, cx: &mut Context<'_>, from: Dir, frame: &[u8]) -> Result<(), RecordFault> {
        let body = &frame[HEADER..];
        match (from, self.logged_in) {
            (Dir::Orig, false) if self.more_login => {
                cx.raise(|c| MysqlAuthMoreData { c, is_orig: true, data: body });
                Ok(())
            }
            (Dir::Orig, false) => self.login(cx, body),
            (Dir::Orig, true) => self.command(cx, body),
            (Dir::Resp, false) => {
                let sequence = frame[HEADER - 1];
                let first = sequence == 0 && self.sequence != 255;
                self.sequence = sequence;
                if first { self.greeting(cx, body) } else { self.login_reply(cx, body) }
            }
            (Dir::Resp, true) => {
                self.sequence = frame[HEADER - 1];
                self.reply(cx, body, message::length(frame))
            }
        }
    }

    fn greeting(&mut self, cx: &mut Context<'_>, body: &[u8]) -> Result<(), RecordFault> {
        match Greeting::parse(body)? {
            Greeting::Version { version, server, query_attributes, plugin } => {
                cx.report(&mut self.rows, |c| MysqlServerVersion { c, ver: server });
                if let Some((name, data)) = plugin {
                    cx.raise(|c| MysqlAuthPlugin {
                        c,
                        is_orig: false,
                        name,
                        data: data.concat().into(),
                    });
                }
                self.version = version;
                if version == 10 {
                    self.server_query_attributes = query_attributes;
                }
            }
            Greeting::Error(error) => {
                self.version = body[0];
                self.error(cx, error);
            }
        }
        Ok(())
    }

    fn login(&mut self, cx: &mut Context<'_>, body: &[u8]) -> Result<(), RecordFault> {
        let login = Login::parse(body, self.version)?;
        self.capabilities = login.capabilities;
        cx.confirm(Tag::Mysql);
        let Some(user) = login.user else {
            self.is_opaque = true;
            cx.start(Tag::Ssl, Replay::default());
            cx.raise(|c| MysqlSslRequest { c });
            return Ok(());
        };
        cx.report(&mut self.rows, |c| MysqlHandshake { c, username: user });
        raise_plugin(cx, login.plugin);
        self.more_login = login.capabilities & capability::PLUGIN_AUTH != 0;
        Ok(())
    }

    fn login_reply(&mut self, cx: &mut Context<'_>, body: &[u8]) -> Result<(), RecordFault> {
        const RECORD: &str = "Server_Connection_Phase_Packets";
        let mut b = Bytes(body);
        match message::first(&mut b, RECORD, "pkt_type")? {
            0x00 => self.ok(cx, &mut b),
            0x01 => {
                cx.raise(|c| MysqlAuthMoreData { c, is_orig: false, data: b.rest() });
                Ok(())
            }
            0xfe => {
                let name = message::text(&mut b)?;
                cx.raise(|c| MysqlAuthSwitchRequest { c, name, data: b.rest() });
                self.more_login = true;
                self.expect = Expect::Status;
                Ok(())
            }
            0xff => {
                let error = message::error(&mut b)?;
                self.error(cx, error);
                Ok(())
            }
            index => Err(RecordFault::Case { record: RECORD, index: index.into() }),
        }
    }

    fn command(&mut self, cx: &mut Context<'_>, body: &[u8]) -> Result<(), RecordFault> {
        let attributes =
            self.server_query_attributes && self.capabilities & capability::QUERY_ATTRIBUTES != 0;
        let c = message::Command::parse(body, attributes, self.capabilities)?;
        let sent = if c.code == message::CHANGE_USER { &body[1..] } else { c.arg };
        let rows = &mut self.rows;
        cx.report(rows, |conn| MysqlCommandRequest { c: conn, command: c.code.into(), arg: sent });
        if c.code == message::CHANGE_USER {
            cx.report(rows, |conn| MysqlChangeUser { c: conn, username: c.arg });
            raise_plugin(cx, c.plugin);
        }
        match c.code {
            0..=2 | 5..=8 | 0x0b..=0x10 | 0x1d | 0x1f => self.expect = Expect::Status,
            3 | 0x0a => self.expect = Expect::ColumnCount,
            4 => self.expect = Expect::ColumnOrEnd,
            9 => self.expect = Expect::Anything,
            message::CHANGE_USER => self.logged_in = false,
            _ => self.expect = Expect::Nothing,
        }
        Ok(())
    }

    fn reply(
        &mut self,
        cx: &mut Context<'_>,
        body: &[u8],
        length: usize,
    ) -> Result<(), RecordFault> {
        let mut b = Bytes(body);
        match self.expect {
            Expect::Nothing | Expect::Anything => {}
            Expect::Status => {
                match message::first(&mut b, "Command_Response_Status", "pkt_type")? {
                    0x00 => self.ok(cx, &mut b)?,
                    0xfe => self.end(cx, &mut b)?,
                    0xff => {
                        let error = message::error(&mut b)?;
                        self.error(cx, error);
                    }
                    _ => {}
                }
            }
            Expect::ColumnCount => match message::first(&mut b, "ColumnCountMeta", "byte")? {
                0x00 => self.ok(cx, &mut b)?,
                0xff => {
                    let error = message::error(&mut b)?;
                    self.error(cx, error);
                }
                first => {
                    self.columns = message::number_after(first, &mut b)? as u32;
                    self.columns_left = self.columns;
                    self.expect = Expect::Column;
                }
            },
            Expect::Column => {
                let first = message::first(&mut b, "ColumnDefinition", "dummy")?;
                message::column(first, &mut b)?;
                self.columns_left = self.columns_left.wrapping_sub(1);
                if self.columns_left == 0 {
                    self.expect = Expect::EndThenRows;
                }
            }
            Expect::ColumnOrEnd => match message::first(&mut b, "ColumnDefinitionOrEOF", "marker")?
            {
                0xfe => self.end_or_ok(cx, &mut b, length)?,
                first => message::column(first, &mut b)?,
            },
            Expect::EndThenRows => {
                if self.deprecates_eof() {
                    return self.rows(cx, &mut b, length);
                }
                message::end_of_columns(&mut b)?;
                cx.report(&mut self.rows, |c| MysqlEof { c, is_intermediate: true });
                self.begin_commands();
                self.expect = Expect::Rows;
            }
            Expect::Rows => self.rows(cx, &mut b, length)?,
        }
        Ok(())
    }

    fn rows(
        &mut self,
        cx: &mut Context<'_>,
        b: &mut Bytes<'_>,
        length: usize,
    ) -> Result<(), RecordFault> {
        let first = message::first(b, "Resultset", "marker")?;
        if first == 0xfe {
            self.end_or_ok(cx, b, length)?;
            self.expect = Expect::Nothing;
        } else {
            let wants = cx.wants::<MysqlResultFields<'_>>();
            let mut row = Vec::new();
            message::row(first, self.columns, b, |field| row.extend(wants.then_some(field)))?;
            cx.raise(|c| MysqlResultFields { c, row });
            self.expect = Expect::Rows;
        }
        Ok(())
    }

    fn deprecates_eof(&self) -> bool {
        self.capabilities & capability::DEPRECATE_EOF != 0
    }

    fn end_or_ok(
        &mut self,
        cx: &mut Context<'_>,
        b: &mut Bytes<'_>,
        length: usize,
    ) -> Result<(), RecordFault> {
        if self.deprecates_eof() || length > 13 { self.ok(cx, b) } else { self.end(cx, b) }
    }

    fn ok(&mut self, cx: &mut Context<'_>, b: &mut Bytes<'_>) -> Result<(), RecordFault> {
        let rows = message::ok(b)?;
        cx.report(&mut self.rows, |c| MysqlOk { c, affected_rows: rows });
        self.begin_commands();
        Ok(())
    }

    fn end(&mut self, cx: &mut Context<'_>, b: &mut Bytes<'_>) -> Result<(), RecordFault> {
        message::end(b)?;
        cx.report(&mut self.rows, |c| MysqlEof { c, is_intermediate: false });
        Ok(())
    }

    fn error(&mut self, cx: &mut Context<'_>, error: message::Error<'_>) {
        cx.report(&mut self.rows, |c| MysqlError { c, code: error.code, msg: error.message });
        self.begin_commands();
    }

    /// Starts the command phase.
    fn begin_commands(&mut self) {
        self.logged_in = true;
        self.more_login = false;
    }
}

/// Raises the event of the plugin that a client authenticates with.
fn raise_plugin(cx: &mut Context<'_>, plugin: Option<message::Plugin<'_, 1>>) {
    if let Some((name, [data])) = plugin {
        cx.raise(|c| MysqlAuthPlugin { c, is_orig: true, name, data: data.into() });
    }
}

impl Analyze for Analyzer {
    fn stream(&mut self, cx: &mut Context<'_>, from: Dir, data: &[u8]) {
        if cx.conn.is_partial() {
            return;
        }
        let mut rest = data;
        let mut frames = std::mem::replace(&mut self.frames[from.index()], Frames::new(MAX_PACKET));
        while !self.is_opaque
            && let Some(frame) = frames.next(&mut rest, message::length)
        {
            let cut = frame.len() < message::length(frame);
            if let Err(e) = self.packet(cx, from, frame)
                && !cut
            {
                cx.violation(Tag::Mysql, &e.to_string(), &[]);
                frames.reset();
                break;
            }
        }
        self.frames[from.index()] = frames;
    }

    fn gap(&mut self, _cx: &mut Context<'_>, _from: Dir, _len: u64) {
        self.is_opaque = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.rows.finish(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Harness;
    use gannet_base::Proto;

    fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
        let mut out = (body.len() as u32).to_le_bytes()[..3].to_vec();
        out.push(sequence);
        out.extend_from_slice(body);
        out
    }

    fn greeting() -> Vec<u8> {
        let mut g = b"\x0a8.0\0".to_vec();
        g.extend_from_slice(&[1; 18]);
        g.extend_from_slice(b"\0\0\0");
        g.extend_from_slice(&[0; 23]);
        packet(0, &g)
    }

    fn login(flags: u32, rest: &[u8]) -> Vec<u8> {
        let mut l = flags.to_le_bytes().to_vec();
        l.extend_from_slice(&[0; 28]);
        l.extend_from_slice(rest);
        packet(1, &l)
    }

    fn run(packets: &[(Dir, Vec<u8>)]) -> Harness {
        let mut h = Harness::new(Proto::Tcp, 3306);
        let mut a = Analyzer::new(&mut h.cx());
        for (dir, data) in packets {
            a.stream(&mut h.cx(), *dir, data);
        }
        a.finish(&mut h.cx());
        h
    }

    #[test]
    fn login_queries_and_errors() {
        let (o, r) = (Dir::Orig, Dir::Resp);
        let ok = |n| packet(n, b"\0\x02\0\x02\0\0\0");
        let column = b"\x03def\x01s\x01t\x01t\x01c\x01c\x0c\x3f\0\x04\0\0\0\x03\0\0\0\0\0";
        let h = run(&[
            (r, greeting()),
            (o, login(0, b"root\0\x01x")),
            (r, ok(2)),
            (o, packet(0, b"\x03update x")),
            (r, ok(1)),
            (o, packet(0, b"\x03select c from t")),
            (r, packet(1, b"\x01")),
            (r, packet(2, column)),
            (r, packet(3, b"\xfe\0\0\x02\0")),
            (r, packet(4, b"\x031.5")),
            (r, packet(5, b"\xfe\0\0\x02\0")),
            (o, packet(0, b"\x03nonsense")),
            (r, packet(1, b"\xff\x28\x04#42000You erred")),
            (o, packet(0, b"\x0e")),
            (o, packet(0, b"\x01")),
        ]);
        assert!(h.confirmed(Tag::Mysql));
        assert!(!h.violated(Tag::Mysql));
        let rows = h.rows("mysql");
        let reported: Vec<_> = rows
            .iter()
            .map(|r| (&*r["cmd"], &*r["arg"], &*r["success"], &*r["rows"], &*r["response"]))
            .collect();
        assert_eq!(
            reported,
            [
                ("login", "root", "T", "2", "-"),
                ("query", "update x", "T", "2", "-"),
                ("query", "select c from t", "T", "0", "-"),
                ("query", "nonsense", "F", "-", "You erred"),
                ("ping", "(empty)", "-", "-", "-"),
                ("quit", "(empty)", "-", "-", "-"),
            ]
        );
    }

    #[test]
    fn tls_is_handed_on() {
        let h = run(&[(Dir::Resp, greeting()), (Dir::Orig, login(capability::SSL, b""))]);
        assert!(h.confirmed(Tag::Mysql));
        assert_eq!(h.starts.len(), 1);
        assert_eq!(h.starts[0].0, Tag::Ssl);
        assert!(h.rows("mysql").is_empty());
    }

    #[test]
    fn a_login_before_the_greeting_is_none() {
        let h = run(&[(Dir::Orig, login(0, b"root\0\x01x"))]);
        let why = "Binpac exception: binpac exception: invalid index for case: Handshake_Response_Packet: 0";
        assert_eq!(h.violations(), [(Tag::Mysql, why.to_owned())]);
    }
}
