//! The list of protocols.
//!
//! It is a macro that passes the list to another one: [`Tag`](crate::Tag) and the [registry](crate::registry) are both made
//! from it. It imports nothing, so that both can.

/// Calls a macro with the list.
///
/// One line per folder: its tags in the order of its descriptor, each with the type of its
/// analyzer, if it has one. Detection patterns are tried in the order of the list.
macro_rules! with_protocols {
    ($then:ident) => {
        $then! {
            detect { Detector: Detector inline }
            bittorrent { Bittorrent: Peer, BittorrentTracker: Tracker }
            dce_rpc { DceRpc: Analyzer }
            dhcp { Dhcp: Analyzer }
            dnp3 { Dnp3Tcp: Tcp, Dnp3Udp: Udp }
            dns { Dns: Analyzer inline }
            finger { Finger: Analyzer }
            ftp { Ftp: Analyzer, FtpData: Data, Gridftp }
            gnutella { Gnutella: Analyzer }
            gssapi { Gssapi }
            http { Http: Analyzer }
            ident { Ident: Analyzer }
            imap { Imap: Analyzer }
            irc { Irc: Analyzer, IrcData: Data }
            krb { Krb: Udp, KrbTcp: Tcp }
            ldap { LdapTcp: Tcp, LdapUdp: Udp }
            login { Telnet: Telnet, Rlogin: Rlogin, Rsh: Rsh }
            modbus { Modbus: Analyzer }
            mqtt { Mqtt: Analyzer }
            mysql { Mysql: Analyzer }
            ncp { Ncp: Analyzer }
            netbios { Netbios: Analyzer }
            ntlm { Ntlm }
            ntp { Ntp: Analyzer }
            pop3 { Pop3: Analyzer }
            postgresql { Postgresql: Analyzer }
            quic { Quic: Analyzer }
            radius { Radius: Analyzer }
            rdp { Rdp: Analyzer, RdpEudp: Udp }
            redis { Redis: Analyzer }
            rfb { Rfb: Analyzer }
            rpc { Mount: Mount, Nfs: Nfs, Portmapper: Portmapper }
            sip { Sip: Analyzer }
            smb { Smb: Analyzer }
            smtp { Smtp: Analyzer }
            snmp { Snmp: Analyzer }
            socks { Socks: Analyzer }
            ssh { Ssh: Analyzer }
            ssl { Dtls: Dtls, Ssl: Analyzer }
            stream_event { StreamEvent: Analyzer }
            syslog { Syslog: Analyzer }
            tftp { Tftp: Analyzer }
            tunnel { Ayiya, Geneve, Gtpv1, Teredo, Vxlan }
            websocket { WebSocket: Analyzer }
            xmpp { Xmpp: Analyzer }
        }
    };
}
