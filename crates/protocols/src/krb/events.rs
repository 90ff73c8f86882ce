//! Events of Kerberos.

use std::sync::Arc;

use gannet_base::Addr;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::Packer;
use gannet_event::Type;
use gannet_files::x509::Certificate;

use super::message::Address;
use super::message::Principal;
use super::message::Ticket;
use super::message::UnixSeconds;

gannet_event::record! {
    /// Options of a request for a ticket (RFC 4120 §5.4.1).
    #[derive(Clone, Copy, Debug)]
    pub struct KdcOptions = "KRB::KDC_Options" {
        /// The ticket may be forwarded.
        forwardable: bool = "forwardable",
        /// The ticket is to be a forwarded one.
        forwarded: bool = "forwarded",
        /// The ticket is proxiable.
        proxiable: bool = "proxiable",
        /// The ticket is to be a proxy.
        proxy: bool = "proxy",
        /// The ticket may be postdated.
        allow_postdate: bool = "allow_postdate",
        /// The ticket is to be postdated.
        postdated: bool = "postdated",
        /// The ticket may be renewed.
        renewable: bool = "renewable",
        /// Hardware authenticates the user.
        opt_hardware_auth: bool = "opt_hardware_auth",
        /// The KDC is not to check transited realms.
        disable_transited_check: bool = "disable_transited_check",
        /// A renewable ticket is acceptable if a ticket with the requested lifetime cannot be issued.
        renewable_ok: bool = "renewable_ok",
        /// The ticket is to be encrypted with the session key of an additional ticket.
        enc_tkt_in_skey: bool = "enc_tkt_in_skey",
        /// The request is to renew a ticket.
        renew: bool = "renew",
        /// The request is to validate a postdated ticket.
        validate: bool = "validate",
    }
}

gannet_event::record! {
    /// Options of AP-REQ (RFC 4120 §5.5.1).
    #[derive(Clone, Copy, Debug)]
    pub struct ApOptions = "KRB::AP_Options" {
        /// The ticket is encrypted with a session key.
        use_session_key: bool = "use_session_key",
        /// The service must authenticate as well.
        mutual_required: bool = "mutual_required",
    }
}

gannet_event::record! {
    /// A typed value.
    #[derive(Clone, Copy, Debug)]
    pub struct TypeValue<'a> = "KRB::Type_Value" {
        /// The type.
        data_type: u64 = "data_type",
        /// The value.
        val: &'a [u8] = "val",
    }
}

gannet_event::record! {
    /// Encrypted data.
    #[derive(Clone, Copy, Debug)]
    pub struct EncryptedData<'a> = "KRB::Encrypted_Data" {
        /// Version of the key.
        kvno: Option<u64> = "kvno",
        /// The encryption type.
        cipher: u64 = "cipher",
        /// The data.
        ciphertext: &'a [u8] = "ciphertext",
    }
}

gannet_event::record! {
    /// An address of a host: exactly one of the fields is set.
    #[derive(Clone, Copy, Debug)]
    pub struct HostAddress<'a> = "KRB::Host_Address" {
        /// IP address.
        ip: Option<Addr> = "ip",
        /// NetBIOS name.
        netbios: Option<&'a [u8]> = "netbios",
        /// Address of another type.
        unknown: Option<TypeValue<'a>> = "unknown",
    }
}

gannet_event::record! {
    /// A message with a checksum.
    #[derive(Clone, Copy, Debug)]
    pub struct SafeMsg<'a> = "KRB::SAFE_Msg" {
        /// Version of the protocol.
        pvno: u64 = "pvno",
        /// Message type.
        msg_type: u64 = "msg_type",
        /// Data of the message.
        data: &'a [u8] = "data",
        /// Time of sending.
        timestamp: Option<Time> = "timestamp",
        /// Sequence number.
        seq: Option<u64> = "seq",
        /// Address of the sender.
        sender: Option<HostAddress<'a>> = "sender",
        /// Address of the recipient.
        recipient: Option<HostAddress<'a>> = "recipient",
    }
}

gannet_event::record! {
    /// An error message.
    #[derive(Clone, Debug)]
    pub struct ErrorMsg<'a> = "KRB::Error_Msg" {
        /// Version of the protocol.
        pvno: Option<u64> = "pvno",
        /// Message type.
        msg_type: Option<u64> = "msg_type",
        /// Time of the client's clock.
        client_time: Option<Time> = "client_time",
        /// Time of the server's clock.
        server_time: Option<Time> = "server_time",
        /// Error code.
        error_code: u64 = "error_code",
        /// The client's realm.
        client_realm: Option<&'a [u8]> = "client_realm",
        /// Name of the client.
        client_name: Option<&'a Principal<'a>> = "client_name",
        /// The service's realm.
        service_realm: Option<&'a [u8]> = "service_realm",
        /// Name of the service.
        service_name: Option<&'a Principal<'a>> = "service_name",
        /// Error text.
        error_text: Option<&'a [u8]> = "error_text",
        /// Accepted types of pre-authentication.
        pa_data: Option<Padata<'a>> = "pa_data",
    }
}

gannet_event::record! {
    /// The unencrypted part of a ticket.
    #[derive(Clone, Debug)]
    pub struct TicketRecord<'a> = "KRB::Ticket" {
        /// Version of the protocol.
        pvno: u64 = "pvno",
        /// The realm that issued the ticket.
        realm: &'a [u8] = "realm",
        /// Name of the service.
        service_name: &'a Principal<'a> = "service_name",
        /// The encryption type.
        cipher: u64 = "cipher",
        /// The encrypted part.
        ciphertext: Option<&'a [u8]> = "ciphertext",
        /// Authentication data decrypted with a key table. Never decrypted: unset, and empty for AP-REQ over TCP.
        authenticationinfo: Option<&'a [u8]> = "authenticationinfo",
    }
}

gannet_event::record! {
    /// A request to a key distribution center (KDC).
    #[derive(Clone, Debug)]
    pub struct KdcRequest<'a> = "KRB::KDC_Request" {
        /// Version of the protocol.
        pvno: u64 = "pvno",
        /// Message type.
        msg_type: u64 = "msg_type",
        /// Pre-authentication data.
        pa_data: Option<Padata<'a>> = "pa_data",
        /// Options of the request.
        kdc_options: Option<KdcOptions> = "kdc_options",
        /// Name of the client.
        client_name: Option<&'a Principal<'a>> = "client_name",
        /// The service's realm.
        service_realm: Option<&'a [u8]> = "service_realm",
        /// Name of the service.
        service_name: Option<&'a Principal<'a>> = "service_name",
        /// Requested start time of the ticket.
        from: Option<UnixSeconds> = "from",
        /// Requested expiration time of the ticket.
        till: Option<UnixSeconds> = "till",
        /// Requested time until which the ticket is renewable.
        rtime: Option<UnixSeconds> = "rtime",
        /// A random number.
        nonce: Option<u64> = "nonce",
        /// Encryption types, the preferred one first.
        encryption_types: Option<&'a Vec<u64>> = "encryption_types",
        /// Hosts that may use the ticket.
        host_addrs: Option<HostAddresses<'a>> = "host_addrs",
        /// Additional tickets.
        additional_tickets: Option<Tickets<'a>> = "additional_tickets",
    }
}

gannet_event::record! {
    /// A response of a KDC with a ticket.
    #[derive(Clone, Debug)]
    pub struct KdcResponse<'a> = "KRB::KDC_Response" {
        /// Version of the protocol.
        pvno: u64 = "pvno",
        /// Message type.
        msg_type: u64 = "msg_type",
        /// Pre-authentication data.
        pa_data: Option<Padata<'a>> = "pa_data",
        /// The client's realm.
        client_realm: Option<&'a [u8]> = "client_realm",
        /// Name of the client.
        client_name: &'a Principal<'a> = "client_name",
        /// The ticket.
        ticket: TicketRecord<'a> = "ticket",
        /// The part encrypted for the client.
        enc_part: EncryptedData<'a> = "enc_part",
    }
}

/// A certificate, packed as its subject.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a>(pub(super) &'a Arc<Certificate>);

impl Arg for Subject<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        let subject: &str = &self.0.subject;
        subject.pack(to);
    }
}

/// Pre-authentication data: types and values.
#[derive(Clone, Copy, Debug)]
pub struct Padata<'a>(pub(super) &'a [(u64, &'a [u8])]);

impl Arg for Padata<'_> {
    const TYPE: Type = Type::Vector(&TypeValue::TYPE);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        self.0.iter().for_each(|&(data_type, val)| TypeValue { data_type, val }.pack(to));
    }
}

/// Addresses of hosts.
#[derive(Clone, Copy, Debug)]
pub struct HostAddresses<'a>(pub(super) &'a [Address<'a>]);

impl Arg for HostAddresses<'_> {
    const TYPE: Type = Type::Vector(&HostAddress::TYPE);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        self.0.iter().for_each(|one| address(one).pack(to));
    }
}

/// Tickets.
#[derive(Clone, Copy, Debug)]
pub struct Tickets<'a>(pub(super) &'a [Ticket<'a>]);

impl Arg for Tickets<'_> {
    const TYPE: Type = Type::Vector(&TicketRecord::TYPE);

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.0.len());
        self.0.iter().for_each(|one| ticket(one).pack(to));
    }
}

/// Converts a ticket to its record in events.
pub(super) fn ticket<'a>(t: &'a Ticket<'a>) -> TicketRecord<'a> {
    TicketRecord {
        pvno: t.version,
        realm: t.realm,
        service_name: &t.service,
        cipher: t.cipher,
        ciphertext: Some(t.ciphertext),
        authenticationinfo: None,
    }
}

/// Converts an address to its record in events.
pub(super) fn address<'a>(&(family, bytes): &Address<'a>) -> HostAddress<'a> {
    let mut address = HostAddress { ip: None, netbios: None, unknown: None };
    if family == 2
        && let Ok(v4) = <[u8; 4]>::try_from(bytes)
    {
        address.ip = Some(Addr::v4(v4));
    } else if family == 24
        && let Ok(v6) = <[u8; 16]>::try_from(bytes)
    {
        address.ip = Some(Addr::v6(v6));
    } else if family == 20 {
        address.netbios = Some(bytes);
    } else {
        address.unknown = Some(TypeValue { data_type: family, val: bytes });
    }
    address
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Krb);

    /// A client requests its first ticket (AS-REQ).
    pub struct KrbAsRequest<'a> = "krb_as_request" {
        /// The connection.
        c: Connection = "c",
        /// The request.
        msg: KdcRequest<'a> = "msg",
    }

    /// A KDC grants the first ticket of a client (AS-REP).
    pub struct KrbAsResponse<'a> = "krb_as_response" {
        /// The connection.
        c: Connection = "c",
        /// The response.
        msg: KdcResponse<'a> = "msg",
    }

    /// A client requests a ticket for a service (TGS-REQ).
    pub struct KrbTgsRequest<'a> = "krb_tgs_request" {
        /// The connection.
        c: Connection = "c",
        /// The request.
        msg: KdcRequest<'a> = "msg",
    }

    /// A KDC grants a ticket for a service (TGS-REP).
    pub struct KrbTgsResponse<'a> = "krb_tgs_response" {
        /// The connection.
        c: Connection = "c",
        /// The response.
        msg: KdcResponse<'a> = "msg",
    }

    /// A client presents a ticket (AP-REQ).
    pub struct KrbApRequest<'a> = "krb_ap_request" {
        /// The connection.
        c: Connection = "c",
        /// The ticket.
        ticket: TicketRecord<'a> = "ticket",
        /// Options of the request.
        opts: ApOptions = "opts",
        /// Whether the ticket is in the pre-authentication data of a request to a KDC.
        in_kdc_padata: bool = "in_kdc_padata",
    }

    /// A service accepts a ticket (AP-REP).
    pub struct KrbApResponse = "krb_ap_response" {
        /// The connection.
        c: Connection = "c",
    }

    /// An encrypted message (KRB-PRIV).
    pub struct KrbPriv = "krb_priv", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A message with a checksum (KRB-SAFE).
    pub struct KrbSafe<'a> = "krb_safe", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// The message.
        msg: SafeMsg<'a> = "msg",
    }

    /// Tickets are forwarded (KRB-CRED).
    pub struct KrbCred<'a> = "krb_cred", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Tickets.
        tickets: Tickets<'a> = "tickets",
    }

    /// A KDC or a service reports an error (KRB-ERROR).
    pub struct KrbError<'a> = "krb_error" {
        /// The connection.
        c: Connection = "c",
        /// The error.
        msg: ErrorMsg<'a> = "msg",
    }

    /// Pre-authentication data has a certificate (PKINIT, RFC 4556).
    pub struct KrbCertificate<'a> = "gannet::krb_certificate", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the certificate belongs to the client.
        is_client: bool = "is_client",
        /// Identifier of the certificate as a file.
        fuid: Uid = "fuid",
        /// Subject of the certificate, if it can be parsed.
        subject: Option<Subject<'a>> = "subject",
    }
}
