//! Message headers in events.

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use super::message::Header;

gannet_event::record! {
    /// The header of a message (RFC 1035 §4.1.1).
    #[derive(Clone, Copy, Debug)]
    pub struct Msg = "dns_msg" {
        /// Transaction ID.
        id: u16 = "id",
        /// Operation code.
        opcode: u64 = "opcode",
        /// Response code.
        rcode: u64 = "rcode",
        /// Whether the message is a reply.
        qr: bool = "QR",
        /// The server is authoritative for the name.
        aa: bool = "AA",
        /// The message was truncated.
        tc: bool = "TC",
        /// Recursion is desired.
        rd: bool = "RD",
        /// Recursion is available.
        ra: bool = "RA",
        /// Three reserved bits, AD and CD among them.
        z: u64 = "Z",
        /// The data is authentic (RFC 4035).
        ad: bool = "AD",
        /// Checking is disabled (RFC 4035).
        cd: bool = "CD",
        /// Number of questions; in an update, of zones.
        num_queries: u16 = "num_queries",
        /// Number of answers; in an update, of prerequisites.
        num_answers: u16 = "num_answers",
        /// Number of authority records; in an update, of changes.
        num_auth: u16 = "num_auth",
        /// Number of additional records.
        num_addl: u16 = "num_addl",
        /// Whether the message belongs to the NetBIOS name service.
        is_netbios: bool = "is_netbios",
    }
}

/// A header in events, whose fields are converted only when they are used.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    pub(super) header: &'a Header,
    /// The message belongs to the NetBIOS name service.
    pub(super) netbios: bool,
    /// Queries and replies of its operation are joined.
    pub(super) is_tracked: bool,
}

impl Head<'_> {
    /// Converts all fields.
    pub(super) fn as_record(&self) -> Msg {
        Msg {
            id: self.header.id,
            opcode: self.header.opcode().into(),
            rcode: self.header.rcode().into(),
            qr: self.header.is_reply(),
            aa: self.header.authoritative(),
            tc: self.header.truncated(),
            rd: self.header.recursion_desired(),
            ra: self.header.recursion_available(),
            z: self.header.z().into(),
            ad: self.header.flags & 0x20 != 0,
            cd: self.header.flags & 0x10 != 0,
            num_queries: self.header.questions,
            num_answers: self.header.answers,
            num_auth: self.header.authorities,
            num_addl: self.header.additionals,
            is_netbios: self.netbios,
        }
    }
}

impl Arg for Head<'_> {
    const TYPE: Type = Msg::TYPE;

    fn pack(&self, to: &mut Packer<'_>) {
        self.as_record().pack(to);
    }
}
