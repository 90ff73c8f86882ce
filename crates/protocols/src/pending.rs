//! How much may wait at one connection, by protocol.

/// Requests without a reply, and the like, that one connection may have.
///
/// The defaults are those of Zeek's scripts, where these have any. What happens at more is the
/// protocol's: those that wait are written as they are, or the newest is not followed. Each has a
/// weird, or rows without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// DNS: ids with queries, and queries of one id. At more, all are written.
    pub dns: usize,
    /// HTTP: requests. At more, all are written: `http_max_pending_requests`, as Zeek names it.
    pub http: usize,
    /// FTP: commands. More are not followed.
    pub ftp: usize,
    /// SMTP: commands. At more, those that wait are discarded.
    pub smtp: usize,
    /// POP3: commands sent ahead. At more, the oldest is discarded.
    pub pop3: usize,
    /// SMB: requests of one kind. At more, they are discarded.
    pub smb: usize,
    /// LDAP: operations, and searches. At more, all are written.
    pub ldap: usize,
    /// MQTT: deliveries, and subscriptions. More are not followed.
    pub mqtt: usize,
    /// SIP: transactions. At more, the oldest is written.
    pub sip: usize,
    /// DCE-RPC: fragmented packets. Beyond, the stream is given up.
    pub dce_rpc: usize,
    /// DHCP: transactions of all connections. At more, the oldest is written.
    pub dhcp: usize,
}

impl Default for Pending {
    fn default() -> Self {
        Self {
            dns: crate::dns::MAX_PENDING_IDS,
            http: 100,
            ftp: 20,
            smtp: 1_000,
            pop3: 10,
            smb: 1_000,
            ldap: 10,
            mqtt: 1_000,
            sip: 100,
            dce_rpc: 20,
            dhcp: crate::dhcp::MAX_TRANSACTIONS,
        }
    }
}
