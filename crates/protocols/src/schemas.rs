//! The logs that protocols make.

use gannet_log::Schema;

macro_rules! schemas {
    ($($module:ident :: $row:ident $(<$life:lifetime>)?),* $(,)?) => {
        /// The schemas of all logs of protocols, in no particular order.
        pub fn schemas() -> Vec<Schema> {
            let mut all = vec![$( Schema::of::<crate::$module::$row $(<$life>)?>() ),*];
            all.extend(crate::Tag::ALL.iter().flat_map(|tag| tag.schemas()).map(|schema| schema()));
            all
        }
    };
}

schemas! {
    dce_rpc::DceRpcRow<'_>,
    dhcp::Dhcp,
    dnp3::Dnp3Row,
    dns::Dns<'_>,
    failure::AnalyzerRow<'_>,
    ftp::FtpRow<'_>,
    http::HttpRow<'_>,
    irc::IrcRow,
    krb::KerberosRow<'_>,
    ldap::LdapRow<'_>,
    ldap::SearchRow<'_>,
    modbus::ModbusRow<'_>,
    mqtt::ConnectRow<'_>,
    mqtt::PublishRow<'_>,
    mqtt::SubscribeRow<'_>,
    mysql::MysqlRow<'_>,
    ntlm::NtlmRow<'_>,
    ntp::Control,
    ntp::Ntp,
    ntp::Private,
    policy::CertificateRow<'_>,
    policy::HostRow,
    policy::LossRow,
    policy::ModbusRow,
    policy::ServiceRow<'_>,
    policy::SoftwareRow<'_>,
    policy::StatsRow<'_>,
    policy::UnknownRow<'_>,
    postgresql::PostgresqlRow<'_>,
    quic::QuicRow<'_>,
    radius::RadiusRow<'_>,
    rdp::RdpRow<'_>,
    redis::RedisRow<'_>,
    rfb::RfbRow<'_>,
    sip::SipRow<'_>,
    smb::FilesRow<'_>,
    smb::MappingRow<'_>,
    smtp::SmtpRow,
    snmp::SnmpRow<'_>,
    socks::SocksRow<'_>,
    ssh::SshRow<'_>,
    ssl::SslRow<'_>,
    ssl::X509Row<'_>,
    syslog::SyslogRow<'_>,
    tunnel::TunnelRow,
    websocket::WebSocketRow<'_>,
    weird::NoticeRow<'_>,
    weird::WeirdRow<'_>,
}
