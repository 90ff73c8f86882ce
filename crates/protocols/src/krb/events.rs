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
    /// What a client wants of a ticket.
    #[derive(Clone, Copy, Debug)]
    pub struct KdcOptions = "KRB::KDC_Options" {
        /// It may be forwarded.
        forwardable: bool = "forwardable",
        /// It is one that was forwarded.
        forwarded: bool = "forwarded",
        /// The ticket is proxiable.
        proxiable: bool = "proxiable",
        /// It is a proxy.
        proxy: bool = "proxy",
        /// The ticket may be postdated.
        allow_postdate: bool = "allow_postdate",
        /// It is postdated.
        postdated: bool = "postdated",
        /// It may be renewed.
        renewable: bool = "renewable",
        /// Hardware authenticates the user.
        opt_hardware_auth: bool = "opt_hardware_auth",
        /// Realms on the way are not checked.
        disable_transited_check: bool = "disable_transited_check",
        /// A renewable one will do where no other lives as long.
        renewable_ok: bool = "renewable_ok",
        /// It is encrypted with the session key of another one.
        enc_tkt_in_skey: bool = "enc_tkt_in_skey",
        /// It is to be renewed.
        renew: bool = "renew",
        /// It is to be validated.
        validate: bool = "validate",
    }
}

gannet_event::record! {
    /// How a client authenticates to a service.
    #[derive(Clone, Copy, Debug)]
    pub struct ApOptions = "KRB::AP_Options" {
        /// The ticket is encrypted with a session key.
        use_session_key: bool = "use_session_key",
        /// The service has to authenticate as well.
        mutual_required: bool = "mutual_required",
    }
}

gannet_event::record! {
    /// A value of some type.
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
    /// An address of a host: one of these.
    #[derive(Clone, Copy, Debug)]
    pub struct HostAddress<'a> = "KRB::Host_Address" {
        /// Of IP.
        ip: Option<Addr> = "ip",
        /// Of NetBIOS.
        netbios: Option<&'a [u8]> = "netbios",
        /// Of another kind.
        unknown: Option<TypeValue<'a>> = "unknown",
    }
}

gannet_event::record! {
    /// A message with a checksum.
    #[derive(Clone, Copy, Debug)]
    pub struct SafeMsg<'a> = "KRB::SAFE_Msg" {
        /// Version of the protocol.
        pvno: u64 = "pvno",
        /// Kind of message.
        msg_type: u64 = "msg_type",
        /// What it says.
        data: &'a [u8] = "data",
        /// When it was sent.
        timestamp: Option<Time> = "timestamp",
        /// Its number.
        seq: Option<u64> = "seq",
        /// Who sent it.
        sender: Option<HostAddress<'a>> = "sender",
        /// Who is to receive it.
        recipient: Option<HostAddress<'a>> = "recipient",
    }
}

gannet_event::record! {
    /// A refusal.
    #[derive(Clone, Debug)]
    pub struct ErrorMsg<'a> = "KRB::Error_Msg" {
        /// Version of the protocol.
        pvno: Option<u64> = "pvno",
        /// Kind of message.
        msg_type: Option<u64> = "msg_type",
        /// The client's clock.
        client_time: Option<Time> = "client_time",
        /// The server's clock.
        server_time: Option<Time> = "server_time",
        /// What went wrong.
        error_code: u64 = "error_code",
        /// The client's realm.
        client_realm: Option<&'a [u8]> = "client_realm",
        /// The client.
        client_name: Option<&'a Principal<'a>> = "client_name",
        /// The service's realm.
        service_realm: Option<&'a [u8]> = "service_realm",
        /// The service.
        service_name: Option<&'a Principal<'a>> = "service_name",
        /// What went wrong, in words.
        error_text: Option<&'a [u8]> = "error_text",
        /// What authentication would be accepted.
        pa_data: Option<Padata<'a>> = "pa_data",
    }
}

gannet_event::record! {
    /// A ticket, as far as it is not encrypted.
    #[derive(Clone, Debug)]
    pub struct TicketRecord<'a> = "KRB::Ticket" {
        /// Version of the protocol.
        pvno: u64 = "pvno",
        /// The realm that issued it.
        realm: &'a [u8] = "realm",
        /// The service that it is for.
        service_name: &'a Principal<'a> = "service_name",
        /// The encryption type.
        cipher: u64 = "cipher",
        /// What is encrypted.
        ciphertext: Option<&'a [u8]> = "ciphertext",
        /// What a key table shows of it: always unset.
        authenticationinfo: Option<&'a [u8]> = "authenticationinfo",
    }
}

gannet_event::record! {
    /// What a key distribution centre is asked for.
    #[derive(Clone, Debug)]
    pub struct KdcRequest<'a> = "KRB::KDC_Request" {
        /// Version of the protocol.
        pvno: u64 = "pvno",
        /// Kind of message.
        msg_type: u64 = "msg_type",
        /// Authentication that comes with it.
        pa_data: Option<Padata<'a>> = "pa_data",
        /// What the client wants of the ticket.
        kdc_options: Option<KdcOptions> = "kdc_options",
        /// The client.
        client_name: Option<&'a Principal<'a>> = "client_name",
        /// The service's realm.
        service_realm: Option<&'a [u8]> = "service_realm",
        /// The service.
        service_name: Option<&'a Principal<'a>> = "service_name",
        /// When the ticket is to become valid.
        from: Option<UnixSeconds> = "from",
        /// When it is to expire.
        till: Option<UnixSeconds> = "till",
        /// Until when it is to be renewable.
        rtime: Option<UnixSeconds> = "rtime",
        /// A random number.
        nonce: Option<u64> = "nonce",
        /// Encryption types, the preferred one first.
        encryption_types: Option<&'a Vec<u64>> = "encryption_types",
        /// Hosts that may use the ticket.
        host_addrs: Option<HostAddresses<'a>> = "host_addrs",
        /// Further tickets.
        additional_tickets: Option<Tickets<'a>> = "additional_tickets",
    }
}

gannet_event::record! {
    /// A ticket that was granted.
    #[derive(Clone, Debug)]
    pub struct KdcResponse<'a> = "KRB::KDC_Response" {
        /// Version of the protocol.
        pvno: u64 = "pvno",
        /// Kind of message.
        msg_type: u64 = "msg_type",
        /// Authentication that comes with it.
        pa_data: Option<Padata<'a>> = "pa_data",
        /// The client's realm.
        client_realm: Option<&'a [u8]> = "client_realm",
        /// The client.
        client_name: &'a Principal<'a> = "client_name",
        /// The ticket.
        ticket: TicketRecord<'a> = "ticket",
        /// What only the client can read.
        enc_part: EncryptedData<'a> = "enc_part",
    }
}

/// A certificate, as its subject.
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

/// As an event shows a ticket.
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

/// As an event shows an address.
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

    /// A client asks for its first ticket.
    pub struct KrbAsRequest<'a> = "krb_as_request" {
        /// The connection.
        c: Connection = "c",
        /// What it asks for.
        msg: KdcRequest<'a> = "msg",
    }

    /// A client was granted its first ticket.
    pub struct KrbAsResponse<'a> = "krb_as_response" {
        /// The connection.
        c: Connection = "c",
        /// What was granted.
        msg: KdcResponse<'a> = "msg",
    }

    /// A client asks for a ticket for a service.
    pub struct KrbTgsRequest<'a> = "krb_tgs_request" {
        /// The connection.
        c: Connection = "c",
        /// What it asks for.
        msg: KdcRequest<'a> = "msg",
    }

    /// A client was granted a ticket for a service.
    pub struct KrbTgsResponse<'a> = "krb_tgs_response" {
        /// The connection.
        c: Connection = "c",
        /// What was granted.
        msg: KdcResponse<'a> = "msg",
    }

    /// A client shows a ticket.
    pub struct KrbApRequest<'a> = "krb_ap_request" {
        /// The connection.
        c: Connection = "c",
        /// The ticket.
        ticket: TicketRecord<'a> = "ticket",
        /// How it authenticates.
        opts: ApOptions = "opts",
        /// Whether it does so to a key distribution centre.
        in_kdc_padata: bool = "in_kdc_padata",
    }

    /// A service accepted a ticket.
    pub struct KrbApResponse = "krb_ap_response" {
        /// The connection.
        c: Connection = "c",
    }

    /// An encrypted message.
    pub struct KrbPriv = "krb_priv", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    }

    /// A message with a checksum.
    pub struct KrbSafe<'a> = "krb_safe", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// What it says.
        msg: SafeMsg<'a> = "msg",
    }

    /// Tickets are forwarded.
    pub struct KrbCred<'a> = "krb_cred", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Tickets.
        tickets: Tickets<'a> = "tickets",
    }

    /// A request was refused.
    pub struct KrbError<'a> = "krb_error" {
        /// The connection.
        c: Connection = "c",
        /// Why.
        msg: ErrorMsg<'a> = "msg",
    }

    /// Pre-authentication data has a certificate (PKINIT, RFC 4556).
    pub struct KrbCertificate<'a> = "gannet::krb_certificate", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Whether it is the client's.
        is_client: bool = "is_client",
        /// Its file.
        fuid: Uid = "fuid",
        /// Its subject, if it can be parsed.
        subject: Option<Subject<'a>> = "subject",
    }
}
