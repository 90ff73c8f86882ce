//! A test for each fuzz target, made by `cargo xtask update` from their sources.

#[path = "../../../../fuzz/fuzz_targets/bittorrent.rs"]
mod bittorrent;

#[test]
fn bittorrent() {
    crate::run(bittorrent::target);
}

#[path = "../../../../fuzz/fuzz_targets/capture.rs"]
mod capture;

#[test]
fn capture() {
    crate::run(capture::target);
}

#[path = "../../../../fuzz/fuzz_targets/dce_rpc.rs"]
mod dce_rpc;

#[test]
fn dce_rpc() {
    crate::run(dce_rpc::target);
}

#[path = "../../../../fuzz/fuzz_targets/decode.rs"]
mod decode;

#[test]
fn decode() {
    crate::run(decode::target);
}

#[path = "../../../../fuzz/fuzz_targets/detect.rs"]
mod detect;

#[test]
fn detect() {
    crate::run(detect::target);
}

#[path = "../../../../fuzz/fuzz_targets/dhcp.rs"]
mod dhcp;

#[test]
fn dhcp() {
    crate::run(dhcp::target);
}

#[path = "../../../../fuzz/fuzz_targets/dict.rs"]
mod dict;

#[test]
fn dict() {
    crate::run(dict::target);
}

#[path = "../../../../fuzz/fuzz_targets/dnp3.rs"]
mod dnp3;

#[test]
fn dnp3() {
    crate::run(dnp3::target);
}

#[path = "../../../../fuzz/fuzz_targets/dns.rs"]
mod dns;

#[test]
fn dns() {
    crate::run(dns::target);
}

#[path = "../../../../fuzz/fuzz_targets/dtls.rs"]
mod dtls;

#[test]
fn dtls() {
    crate::run(dtls::target);
}

#[path = "../../../../fuzz/fuzz_targets/filter.rs"]
mod filter;

#[test]
fn filter() {
    crate::run(filter::target);
}

#[path = "../../../../fuzz/fuzz_targets/filter_bpf.rs"]
mod filter_bpf;

#[test]
fn filter_bpf() {
    crate::run(filter_bpf::target);
}

#[path = "../../../../fuzz/fuzz_targets/filter_engines.rs"]
mod filter_engines;

#[test]
fn filter_engines() {
    crate::run(filter_engines::target);
}

#[path = "../../../../fuzz/fuzz_targets/filter_program.rs"]
mod filter_program;

#[test]
fn filter_program() {
    crate::run(filter_program::target);
}

#[path = "../../../../fuzz/fuzz_targets/filter_stages.rs"]
mod filter_stages;

#[test]
fn filter_stages() {
    crate::run(filter_stages::target);
}

#[path = "../../../../fuzz/fuzz_targets/finger.rs"]
mod finger;

#[test]
fn finger() {
    crate::run(finger::target);
}

#[path = "../../../../fuzz/fuzz_targets/ftp.rs"]
mod ftp;

#[test]
fn ftp() {
    crate::run(ftp::target);
}

#[path = "../../../../fuzz/fuzz_targets/gnutella.rs"]
mod gnutella;

#[test]
fn gnutella() {
    crate::run(gnutella::target);
}

#[path = "../../../../fuzz/fuzz_targets/gssapi.rs"]
mod gssapi;

#[test]
fn gssapi() {
    crate::run(gssapi::target);
}

#[path = "../../../../fuzz/fuzz_targets/http.rs"]
mod http;

#[test]
fn http() {
    crate::run(http::target);
}

#[path = "../../../../fuzz/fuzz_targets/ident.rs"]
mod ident;

#[test]
fn ident() {
    crate::run(ident::target);
}

#[path = "../../../../fuzz/fuzz_targets/igmp.rs"]
mod igmp;

#[test]
fn igmp() {
    crate::run(igmp::target);
}

#[path = "../../../../fuzz/fuzz_targets/imap.rs"]
mod imap;

#[test]
fn imap() {
    crate::run(imap::target);
}

#[path = "../../../../fuzz/fuzz_targets/index.rs"]
mod index;

#[test]
fn index() {
    crate::run(index::target);
}

#[path = "../../../../fuzz/fuzz_targets/inflate.rs"]
mod inflate;

#[test]
fn inflate() {
    crate::run(inflate::target);
}

#[path = "../../../../fuzz/fuzz_targets/ip.rs"]
mod ip;

#[test]
fn ip() {
    crate::run(ip::target);
}

#[path = "../../../../fuzz/fuzz_targets/irc.rs"]
mod irc;

#[test]
fn irc() {
    crate::run(irc::target);
}

#[path = "../../../../fuzz/fuzz_targets/krb.rs"]
mod krb;

#[test]
fn krb() {
    crate::run(krb::target);
}

#[path = "../../../../fuzz/fuzz_targets/krb_udp.rs"]
mod krb_udp;

#[test]
fn krb_udp() {
    crate::run(krb_udp::target);
}

#[path = "../../../../fuzz/fuzz_targets/ldap.rs"]
mod ldap;

#[test]
fn ldap() {
    crate::run(ldap::target);
}

#[path = "../../../../fuzz/fuzz_targets/ldap_udp.rs"]
mod ldap_udp;

#[test]
fn ldap_udp() {
    crate::run(ldap_udp::target);
}

#[path = "../../../../fuzz/fuzz_targets/link.rs"]
mod link;

#[test]
fn link() {
    crate::run(link::target);
}

#[path = "../../../../fuzz/fuzz_targets/login.rs"]
mod login;

#[test]
fn login() {
    crate::run(login::target);
}

#[path = "../../../../fuzz/fuzz_targets/modbus.rs"]
mod modbus;

#[test]
fn modbus() {
    crate::run(modbus::target);
}

#[path = "../../../../fuzz/fuzz_targets/mqtt.rs"]
mod mqtt;

#[test]
fn mqtt() {
    crate::run(mqtt::target);
}

#[path = "../../../../fuzz/fuzz_targets/mysql.rs"]
mod mysql;

#[test]
fn mysql() {
    crate::run(mysql::target);
}

#[path = "../../../../fuzz/fuzz_targets/ncp.rs"]
mod ncp;

#[test]
fn ncp() {
    crate::run(ncp::target);
}

#[path = "../../../../fuzz/fuzz_targets/netbios.rs"]
mod netbios;

#[test]
fn netbios() {
    crate::run(netbios::target);
}

#[path = "../../../../fuzz/fuzz_targets/ntlm.rs"]
mod ntlm;

#[test]
fn ntlm() {
    crate::run(ntlm::target);
}

#[path = "../../../../fuzz/fuzz_targets/ntp.rs"]
mod ntp;

#[test]
fn ntp() {
    crate::run(ntp::target);
}

#[path = "../../../../fuzz/fuzz_targets/pop3.rs"]
mod pop3;

#[test]
fn pop3() {
    crate::run(pop3::target);
}

#[path = "../../../../fuzz/fuzz_targets/postgresql.rs"]
mod postgresql;

#[test]
fn postgresql() {
    crate::run(postgresql::target);
}

#[path = "../../../../fuzz/fuzz_targets/quic.rs"]
mod quic;

#[test]
fn quic() {
    crate::run(quic::target);
}

#[path = "../../../../fuzz/fuzz_targets/radius.rs"]
mod radius;

#[test]
fn radius() {
    crate::run(radius::target);
}

#[path = "../../../../fuzz/fuzz_targets/rdp.rs"]
mod rdp;

#[test]
fn rdp() {
    crate::run(rdp::target);
}

#[path = "../../../../fuzz/fuzz_targets/rdp_eudp.rs"]
mod rdp_eudp;

#[test]
fn rdp_eudp() {
    crate::run(rdp_eudp::target);
}

#[path = "../../../../fuzz/fuzz_targets/redis.rs"]
mod redis;

#[test]
fn redis() {
    crate::run(redis::target);
}

#[path = "../../../../fuzz/fuzz_targets/rfb.rs"]
mod rfb;

#[test]
fn rfb() {
    crate::run(rfb::target);
}

#[path = "../../../../fuzz/fuzz_targets/rpc.rs"]
mod rpc;

#[test]
fn rpc() {
    crate::run(rpc::target);
}

#[path = "../../../../fuzz/fuzz_targets/script_cache.rs"]
mod script_cache;

#[test]
fn script_cache() {
    crate::run(script_cache::target);
}

#[path = "../../../../fuzz/fuzz_targets/script_check.rs"]
mod script_check;

#[test]
fn script_check() {
    crate::run(script_check::target);
}

#[path = "../../../../fuzz/fuzz_targets/script_data.rs"]
mod script_data;

#[test]
fn script_data() {
    crate::run(script_data::target);
}

#[path = "../../../../fuzz/fuzz_targets/script_format.rs"]
mod script_format;

#[test]
fn script_format() {
    crate::run(script_format::target);
}

#[path = "../../../../fuzz/fuzz_targets/script_lexer.rs"]
mod script_lexer;

#[test]
fn script_lexer() {
    crate::run(script_lexer::target);
}

#[path = "../../../../fuzz/fuzz_targets/script_parser.rs"]
mod script_parser;

#[test]
fn script_parser() {
    crate::run(script_parser::target);
}

#[path = "../../../../fuzz/fuzz_targets/script_run.rs"]
mod script_run;

#[test]
fn script_run() {
    crate::run(script_run::target);
}

#[path = "../../../../fuzz/fuzz_targets/signatures.rs"]
mod signatures;

#[test]
fn signatures() {
    crate::run(signatures::target);
}

#[path = "../../../../fuzz/fuzz_targets/sip.rs"]
mod sip;

#[test]
fn sip() {
    crate::run(sip::target);
}

#[path = "../../../../fuzz/fuzz_targets/smb.rs"]
mod smb;

#[test]
fn smb() {
    crate::run(smb::target);
}

#[path = "../../../../fuzz/fuzz_targets/smtp.rs"]
mod smtp;

#[test]
fn smtp() {
    crate::run(smtp::target);
}

#[path = "../../../../fuzz/fuzz_targets/sniff.rs"]
mod sniff;

#[test]
fn sniff() {
    crate::run(sniff::target);
}

#[path = "../../../../fuzz/fuzz_targets/snmp.rs"]
mod snmp;

#[test]
fn snmp() {
    crate::run(snmp::target);
}

#[path = "../../../../fuzz/fuzz_targets/socks.rs"]
mod socks;

#[test]
fn socks() {
    crate::run(socks::target);
}

#[path = "../../../../fuzz/fuzz_targets/ssh.rs"]
mod ssh;

#[test]
fn ssh() {
    crate::run(ssh::target);
}

#[path = "../../../../fuzz/fuzz_targets/ssl.rs"]
mod ssl;

#[test]
fn ssl() {
    crate::run(ssl::target);
}

#[path = "../../../../fuzz/fuzz_targets/stream_event.rs"]
mod stream_event;

#[test]
fn stream_event() {
    crate::run(stream_event::target);
}

#[path = "../../../../fuzz/fuzz_targets/syslog.rs"]
mod syslog;

#[test]
fn syslog() {
    crate::run(syslog::target);
}

#[path = "../../../../fuzz/fuzz_targets/tftp.rs"]
mod tftp;

#[test]
fn tftp() {
    crate::run(tftp::target);
}

#[path = "../../../../fuzz/fuzz_targets/unzstd.rs"]
mod unzstd;

#[test]
fn unzstd() {
    crate::run(unzstd::target);
}

#[path = "../../../../fuzz/fuzz_targets/websocket.rs"]
mod websocket;

#[test]
fn websocket() {
    crate::run(websocket::target);
}

#[path = "../../../../fuzz/fuzz_targets/x509.rs"]
mod x509;

#[test]
fn x509() {
    crate::run(x509::target);
}

#[path = "../../../../fuzz/fuzz_targets/xmpp.rs"]
mod xmpp;

#[test]
fn xmpp() {
    crate::run(xmpp::target);
}

#[path = "../../../../fuzz/fuzz_targets/zip.rs"]
mod zip;

#[test]
fn zip() {
    crate::run(zip::target);
}
