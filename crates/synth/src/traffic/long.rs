//! Connections with many exchanges, each of which results in a row of a log.
//!
//! A [`Dialogue`] is a protocol over one transport. [`Dialogue::play`] sends any number of
//! exchanges through one connection, at any interval, and [`Dialogue::rows`] returns the values
//! that the logs must then have, in order: this detects an analysis that loses a row or writes one
//! twice.

mod binary;
mod ldap;
mod text;

use std::fmt;
use std::net::SocketAddr;

use gannet_base::Interval;

use crate::Tcp;
use crate::Trace;

/// A protocol that is logged exchange by exchange, over one transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialogue {
    /// DNS queries and responses over UDP.
    Dns,
    /// DNS queries and responses over TCP.
    DnsTcp,
    /// HTTP requests and responses with bodies.
    Http,
    /// Mails.
    Smtp,
    /// FTP commands that are logged.
    Ftp,
    /// Modbus requests and responses.
    Modbus,
    /// MQTT messages that are published.
    Mqtt,
    /// LDAP binds and searches over TCP.
    Ldap,
    /// LDAP searches over UDP.
    LdapUdp,
    /// SIP requests and responses.
    Sip,
    /// NTP requests and responses.
    Ntp,
    /// Syslog messages.
    Syslog,
    /// DHCP leases.
    Dhcp,
    /// RADIUS requests and responses.
    Radius,
    /// DNP3 requests and responses over UDP.
    Dnp3Udp,
    /// DNP3 requests and responses over TCP.
    Dnp3,
    /// DCE-RPC calls.
    DceRpc,
    /// SMB files that are opened and closed.
    Smb,
    /// IRC channels that are joined.
    Irc,
    /// Redis commands.
    Redis,
    /// PostgreSQL queries.
    Postgresql,
    /// MySQL queries.
    Mysql,
}

/// The expected rows of a dialogue: the values of a column, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The log.
    pub log: &'static str,
    /// The column.
    pub column: &'static str,
    /// The value in each row.
    pub values: Vec<String>,
}

impl Dialogue {
    /// All dialogues.
    pub const ALL: [Self; 22] = [
        Self::Dns,
        Self::DnsTcp,
        Self::Http,
        Self::Smtp,
        Self::Ftp,
        Self::Modbus,
        Self::Mqtt,
        Self::Ldap,
        Self::LdapUdp,
        Self::Sip,
        Self::Ntp,
        Self::Syslog,
        Self::Dhcp,
        Self::Radius,
        Self::Dnp3Udp,
        Self::Dnp3,
        Self::DceRpc,
        Self::Smb,
        Self::Irc,
        Self::Redis,
        Self::Postgresql,
        Self::Mysql,
    ];

    /// The server's port.
    pub fn port(self) -> u16 {
        match self {
            Self::Dns | Self::DnsTcp => 53,
            Self::Http => 80,
            Self::Smtp => 25,
            Self::Ftp => 21,
            Self::Modbus => 502,
            Self::Mqtt => 1_883,
            Self::Ldap | Self::LdapUdp => 389,
            Self::Sip => 5_060,
            Self::Ntp => 123,
            Self::Syslog => 514,
            Self::Dhcp => 67,
            Self::Radius => 1_812,
            Self::Dnp3Udp | Self::Dnp3 => 20_000,
            Self::DceRpc => 135,
            Self::Smb => 445,
            Self::Irc => 6_667,
            Self::Redis => 6_379,
            Self::Postgresql => 5_432,
            Self::Mysql => 3_306,
        }
    }

    /// Whether it is over UDP.
    pub fn is_udp(self) -> bool {
        matches!(
            self,
            Self::Dns
                | Self::LdapUdp
                | Self::Sip
                | Self::Ntp
                | Self::Syslog
                | Self::Dhcp
                | Self::Radius
                | Self::Dnp3Udp
        )
    }

    /// Sends `count` exchanges from `client` to `server`, each `every` after the end of the one
    /// before. A TCP connection is closed at the end.
    pub fn play(
        self,
        trace: &mut Trace,
        (client, server): (SocketAddr, SocketAddr),
        count: usize,
        every: Interval,
    ) {
        trace.delays(Interval::from_micros(50), Interval::from_micros(100));
        if self.is_udp() {
            for n in 0..count {
                let (ask, answer) = self.datagrams(n);
                trace.udp(client, server, &ask);
                if let Some(answer) = answer {
                    trace.udp_reply(client, server, &answer);
                }
                trace.wait(every);
            }
            return;
        }
        let mut tcp = trace.connect(client, server);
        self.begin(&mut tcp);
        for n in 0..count {
            self.exchange(&mut tcp, n);
            tcp.wait(every);
        }
        tcp.close();
    }

    /// The expected rows of `count` exchanges with `server`.
    pub fn rows(self, server: SocketAddr, count: usize) -> Vec<Rows> {
        let of = |log, column, value: &dyn Fn(usize) -> String| Rows {
            log,
            column,
            values: (0..count).map(value).collect(),
        };
        let twice = |log, column, value: &dyn Fn(usize) -> String| Rows {
            log,
            column,
            values: (0..2 * count).map(|n| value(n / 2)).collect(),
        };
        // A login also results in a row.
        let after = |login: &str, mut rows: Rows| {
            rows.values.insert(0, login.to_owned());
            rows
        };
        match self {
            Self::Dns | Self::DnsTcp => vec![of("dns", "query", &text::dns_name)],
            Self::Http => vec![
                of("http", "uri", &|n| format!("/{n}")),
                of("files", "seen_bytes", &|n| text::body_length(n).to_string()),
            ],
            Self::Smtp => vec![of("smtp", "subject", &|n| format!("mail {n}"))],
            Self::Ftp => vec![of("ftp", "arg", &|n| format!("ftp://{}/./f{n}", server.ip()))],
            Self::Modbus => vec![twice("modbus", "tid", &|n| (n as u16).to_string())],
            Self::Mqtt => vec![of("mqtt_publish", "topic", &|n| format!("t/{n}"))],
            Self::Ldap => vec![
                of("ldap", "message_id", &|n| ldap::bind_id(n).to_string()),
                of("ldap_search", "base_object", &ldap::base),
            ],
            Self::LdapUdp => vec![of("ldap_search", "base_object", &ldap::base)],
            Self::Sip => vec![of("sip", "uri", &|n| format!("sip:u{n}@example.com"))],
            Self::Ntp => vec![twice("ntp", "xmt_time", &|n| {
                format!("{}.000000", binary::NTP_FIRST + n as u64)
            })],
            Self::Syslog => vec![of("syslog", "message", &|n| format!("message {n}"))],
            Self::Dhcp => vec![of("dhcp", "host_name", &|n| format!("h{n}"))],
            Self::Radius => vec![of("radius", "username", &|n| format!("u{n}"))],
            Self::Dnp3Udp | Self::Dnp3 => {
                vec![of("dnp3", "iin", &|n| (n as u16).to_string())]
            }
            Self::DceRpc => {
                vec![of("dce_rpc", "operation", &|n| format!("unknown-{}", binary::operation(n)))]
            }
            Self::Smb => vec![of("smb_files", "name", &|n| format!("f{n}.txt"))],
            Self::Irc => vec![of("irc", "value", &|n| format!("#c{n}"))],
            Self::Redis => vec![of("redis", "cmd.key", &|n| format!("k{n}"))],
            Self::Postgresql => {
                vec![after("-", of("postgresql", "frontend_arg", &|n| format!("select {n}")))]
            }
            Self::Mysql => vec![after("root", of("mysql", "arg", &|n| format!("select {n}")))],
        }
    }

    /// The request and the response of the `n`-th exchange, each a datagram.
    fn datagrams(self, n: usize) -> (Vec<u8>, Option<Vec<u8>>) {
        let (ask, answer) = match self {
            Self::Dns => text::dns(n),
            Self::LdapUdp => ldap::search(n),
            Self::Sip => text::sip(n),
            Self::Ntp => binary::ntp(n),
            Self::Syslog => return (format!("<13>message {n}").into_bytes(), None),
            Self::Dhcp => binary::dhcp(n),
            Self::Radius => binary::radius(n),
            _ => binary::dnp3(n),
        };
        (ask, Some(answer))
    }

    /// The messages before the first exchange.
    fn begin(self, tcp: &mut Tcp<'_>) {
        match self {
            Self::Smtp => text::smtp_begin(tcp),
            Self::Ftp => text::ftp_begin(tcp),
            Self::Mqtt => binary::mqtt_begin(tcp),
            Self::DceRpc => binary::dce_rpc_begin(tcp),
            Self::Smb => binary::smb_begin(tcp),
            Self::Irc => text::irc_begin(tcp),
            Self::Postgresql => text::postgresql_begin(tcp),
            Self::Mysql => text::mysql_begin(tcp),
            _ => {}
        }
    }

    fn exchange(self, tcp: &mut Tcp<'_>, n: usize) {
        let framed = |m: &[u8]| [&(m.len() as u16).to_be_bytes()[..], m].concat();
        let (ask, answer) = match self {
            Self::DnsTcp => {
                let (ask, answer) = text::dns(n);
                (framed(&ask), framed(&answer))
            }
            Self::Http => text::http(n),
            Self::Smtp => return text::smtp(tcp, n),
            Self::Ftp => (format!("DELE f{n}\r\n").into_bytes(), b"250 Gone\r\n".to_vec()),
            Self::Modbus => binary::modbus(n),
            Self::Mqtt => return tcp.send(&binary::mqtt(n)),
            Self::Ldap => {
                let (ask, answer) = ldap::bind(n);
                tcp.send(&ask);
                tcp.reply(&answer);
                ldap::search(n)
            }
            Self::DceRpc => binary::dce_rpc(n),
            Self::Smb => return binary::smb(tcp, n),
            Self::Irc => return tcp.send(format!("JOIN #c{n}\r\n").as_bytes()),
            Self::Redis => text::redis(n),
            Self::Postgresql => text::postgresql(n),
            Self::Mysql => text::mysql(n),
            _ => binary::dnp3(n),
        };
        tcp.send(&ask);
        tcp.reply(&answer);
    }
}

impl fmt::Display for Dialogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gannet_base::Time;

    #[test]
    fn exchanges_have_the_requested_interval() {
        let ends = ("192.0.2.1:40000".parse().unwrap(), "198.51.100.1:53".parse().unwrap());
        for dialogue in Dialogue::ALL {
            let mut trace = Trace::new(Time::from_secs(1_700_000_000), 1);
            dialogue.play(&mut trace, ends, 10, Interval::from_secs(70));
            let apart = |pair: &[crate::Frame]| pair[1].time - pair[0].time;
            let long = trace.frames().windows(2).filter(|p| apart(p) >= Interval::from_secs(70));
            assert_eq!(long.count(), if dialogue.is_udp() { 9 } else { 10 }, "{dialogue}");
            assert!(dialogue.rows(ends.1, 10).iter().all(|r| r.values.len() >= 10), "{dialogue}");
        }
    }
}
