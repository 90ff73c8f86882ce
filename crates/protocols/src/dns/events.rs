//! Events of DNS. Names are in lower case unless stated otherwise.

use gannet_base::Addr;
use gannet_base::Interval;
use gannet_base::Time;
use gannet_event::Connection;

use super::head::Head;
use super::head::Msg;
use super::parts::Owner;
use super::parts::RecordData;
use super::parts::Section;

gannet_event::record! {
    /// The common fields of all resource records.
    #[derive(Clone, Copy, Debug)]
    pub struct Answer<'a> = "dns_answer" {
        /// Section: 1 for answers, 2 for authority, 3 for additional records.
        answer_type: u64 = "answer_type",
        /// Owner name of the record.
        query: &'a [u8] = "query",
        /// Type.
        qtype: u16 = "qtype",
        /// Class.
        qclass: u16 = "qclass",
        /// Time that the record may be cached.
        ttl: Interval = "TTL",
    }
}

gannet_event::record! {
    /// The OPT record of EDNS (RFC 6891 §6.1).
    #[derive(Clone, Copy, Debug)]
    pub struct Edns<'a> = "dns_edns_additional" {
        /// Name of the record, which is empty.
        query: &'a [u8] = "query",
        /// Section.
        qtype: u64 = "qtype",
        /// Type.
        t: u16 = "t",
        /// Maximum UDP payload size that the sender accepts, in bytes.
        payload_size: u16 = "payload_size",
        /// Extended response code: the upper bits from the record, the lower four from the header.
        extended_rcode: u64 = "extended_rcode",
        /// Version.
        version: u64 = "version",
        /// Flags.
        z_field: u64 = "z_field",
        /// The TTL field of the record, which holds code, version and flags.
        ttl: Interval = "TTL",
        /// 1 if the originator sent the message.
        is_query: u64 = "is_query",
    }
}

gannet_event::record! {
    /// The client subnet option of EDNS (RFC 7871).
    #[derive(Clone, Copy, Debug)]
    pub struct EdnsEcs = "dns_edns_ecs" {
        /// `v4` or `v6`.
        family: &'static str = "family",
        /// Number of address bits that the client sent.
        source_prefix_len: u64 = "source_prefix_len",
        /// Number of address bits to which the answer applies.
        scope_prefix_len: u64 = "scope_prefix_len",
        /// The address.
        address: Addr = "address",
    }
}

gannet_event::record! {
    /// The keep-alive option of EDNS (RFC 7828).
    #[derive(Clone, Copy, Debug)]
    pub struct EdnsKeepalive = "dns_edns_tcp_keepalive" {
        /// Whether the option has no timeout.
        keepalive_timeout_omitted: bool = "keepalive_timeout_omitted",
        /// The timeout, in units of 100 milliseconds.
        keepalive_timeout: u64 = "keepalive_timeout",
    }
}

gannet_event::record! {
    /// The cookie option of EDNS (RFC 7873).
    #[derive(Clone, Copy, Debug)]
    pub struct EdnsCookie<'a> = "dns_edns_cookie" {
        /// Cookie of the client.
        client_cookie: &'a [u8] = "client_cookie",
        /// Cookie of the server.
        server_cookie: Option<&'a [u8]> = "server_cookie",
    }
}

gannet_event::record! {
    /// Negotiation of a transaction key (RFC 2930).
    #[derive(Clone, Copy, Debug)]
    pub struct Tkey<'a> = "dns_tkey" {
        /// Name of the key.
        query: &'a [u8] = "query",
        /// Section.
        qtype: u64 = "qtype",
        /// Algorithm.
        alg_name: &'a [u8] = "alg_name",
        /// Time from which the key is valid.
        inception: Time = "inception",
        /// Time at which the key expires.
        expiration: Time = "expiration",
        /// Key agreement mode.
        mode: u16 = "mode",
        /// Error code.
        rr_error: u16 = "rr_error",
        /// Data of the key.
        key_data: &'a [u8] = "key_data",
        /// 1 if the originator sent the message.
        is_query: u64 = "is_query",
    }
}

gannet_event::record! {
    /// The signature of a message (RFC 8945).
    #[derive(Clone, Copy, Debug)]
    pub struct Tsig<'a> = "dns_tsig_additional" {
        /// Name of the key.
        query: &'a [u8] = "query",
        /// Section.
        qtype: u64 = "qtype",
        /// Algorithm.
        alg_name: &'a [u8] = "alg_name",
        /// The signature.
        sig: &'a [u8] = "sig",
        /// Time at which the message was signed.
        time_signed: Time = "time_signed",
        /// Permitted difference between clocks, in seconds.
        fudge: Time = "fudge",
        /// Transaction ID of the message that was signed.
        orig_id: u16 = "orig_id",
        /// Error code.
        rr_error: u16 = "rr_error",
        /// 1 if the originator sent the message.
        is_query: u64 = "is_query",
    }
}

gannet_event::record! {
    /// A parameter of a service binding (RFC 9460 §14.3).
    #[derive(Clone, Debug)]
    pub struct SvcbParam<'a> = "dns_svcb_param" {
        /// Key of the parameter.
        key: Option<u16> = "key",
        /// Keys that a client must understand.
        mandatory: Option<Vec<u64>> = "mandatory",
        /// Application protocols.
        alpn: Option<Vec<&'a [u8]>> = "alpn",
        /// Port.
        p: Option<u64> = "p",
        /// Addresses.
        hint: Option<Vec<Addr>> = "hint",
        /// Configuration of encrypted ClientHello, in Base64.
        ech: Option<String> = "ech",
        /// The value, if it is invalid or its key is unknown.
        raw: Option<&'a [u8]> = "raw",
    }
}

gannet_event::record! {
    /// A service binding (RFC 9460).
    #[derive(Clone, Debug)]
    pub struct Svcb<'a> = "dns_svcb_rr" {
        /// Priority; 0 for an alias.
        svc_priority: u16 = "svc_priority",
        /// Host name of the service.
        target_name: &'a [u8] = "target_name",
        /// Parameters.
        svc_params: Option<Vec<SvcbParam<'a>>> = "svc_params",
    }
}

gannet_event::record! {
    /// The start of a zone of authority (RFC 1035 §3.3.13).
    pub struct Soa<'a> = "dns_soa" {
        /// Name of the primary server.
        mname: &'a [u8] = "mname",
        /// Mailbox of the person responsible.
        rname: &'a [u8] = "rname",
        /// Serial number of the zone.
        serial: u32 = "serial",
        /// Time between refreshes.
        refresh: Interval = "refresh",
        /// Time to wait before the retry of a failed refresh.
        retry: Interval = "retry",
        /// Time after which the zone is no longer authoritative.
        expire: Interval = "expire",
        /// Time that negative answers may be cached.
        minimum: Interval = "minimum",
    }
}

gannet_event::record! {
    /// A signature (RFC 4034 §3).
    pub struct Rrsig<'a> = "dns_rrsig_rr" {
        /// Owner name of the record.
        query: &'a [u8] = "query",
        /// Section.
        answer_type: u64 = "answer_type",
        /// Type of the records that are signed.
        type_covered: u16 = "type_covered",
        /// Algorithm.
        algorithm: u64 = "algorithm",
        /// Number of labels of the signed name.
        labels: u64 = "labels",
        /// Original time to live of the signed records.
        orig_ttl: Interval = "orig_ttl",
        /// Time at which the signature expires.
        sig_exp: Time = "sig_exp",
        /// Time from which the signature is valid.
        sig_incep: Time = "sig_incep",
        /// Tag of the key.
        key_tag: u16 = "key_tag",
        /// Name of the signer.
        signer_name: &'a [u8] = "signer_name",
        /// The signature.
        signature: &'a [u8] = "signature",
        /// 1 if the originator sent the message.
        is_query: u64 = "is_query",
    }
}

gannet_event::record! {
    /// A public key (RFC 4034 §2).
    pub struct Dnskey<'a> = "dns_dnskey_rr" {
        /// Owner name of the record.
        query: &'a [u8] = "query",
        /// Section.
        answer_type: u64 = "answer_type",
        /// Flags.
        flags: u16 = "flags",
        /// Protocol: 3.
        protocol: u64 = "protocol",
        /// Algorithm.
        algorithm: u64 = "algorithm",
        /// The key.
        public_key: &'a [u8] = "public_key",
        /// 1 if the originator sent the message.
        is_query: u64 = "is_query",
    }
}

gannet_event::record! {
    /// Authenticated denial of existence with hashed names (RFC 5155 §3).
    pub struct Nsec3<'a> = "dns_nsec3_rr" {
        /// Owner name of the record.
        query: &'a [u8] = "query",
        /// Section.
        answer_type: u64 = "answer_type",
        /// Flags.
        nsec_flags: u64 = "nsec_flags",
        /// Hash function.
        nsec_hash_algo: u64 = "nsec_hash_algo",
        /// Iterations of the hash function.
        nsec_iter: u16 = "nsec_iter",
        /// Length of the salt, in bytes.
        nsec_salt_len: u64 = "nsec_salt_len",
        /// Salt.
        nsec_salt: &'a [u8] = "nsec_salt",
        /// Length of the hash, in bytes.
        nsec_hlen: u64 = "nsec_hlen",
        /// Hash of the next name.
        nsec_hash: &'a [u8] = "nsec_hash",
        /// Window blocks of the type bitmap.
        bitmaps: Vec<&'a [u8]> = "bitmaps",
        /// 1 if the originator sent the message.
        is_query: u64 = "is_query",
    }
}

gannet_event::record! {
    /// Parameters of name hashing (RFC 5155 §4).
    pub struct Nsec3Param<'a> = "dns_nsec3param_rr" {
        /// Owner name of the record.
        query: &'a [u8] = "query",
        /// Section.
        answer_type: u64 = "answer_type",
        /// Flags.
        nsec_flags: u64 = "nsec_flags",
        /// Hash function.
        nsec_hash_algo: u64 = "nsec_hash_algo",
        /// Iterations of the hash function.
        nsec_iter: u16 = "nsec_iter",
        /// Length of the salt, in bytes.
        nsec_salt_len: u64 = "nsec_salt_len",
        /// Salt.
        nsec_salt: &'a [u8] = "nsec_salt",
        /// 1 if the originator sent the message.
        is_query: u64 = "is_query",
    }
}

gannet_event::record! {
    /// The digest of a key (RFC 4034 §5).
    pub struct Ds<'a> = "dns_ds_rr" {
        /// Owner name of the record.
        query: &'a [u8] = "query",
        /// Section.
        answer_type: u64 = "answer_type",
        /// Tag of the key.
        key_tag: u16 = "key_tag",
        /// Algorithm of the key.
        algorithm: u64 = "algorithm",
        /// Algorithm of the digest.
        digest_type: u64 = "digest_type",
        /// Digest.
        digest_val: &'a [u8] = "digest_val",
        /// 1 if the originator sent the message.
        is_query: u64 = "is_query",
    }
}

gannet_event::record! {
    /// The signing state that BIND 9 stores in its zones.
    pub struct Binds<'a> = "dns_binds_rr" {
        /// Owner name of the record.
        query: &'a [u8] = "query",
        /// Section.
        answer_type: u64 = "answer_type",
        /// Algorithm of the key.
        algorithm: u64 = "algorithm",
        /// Tag of the key.
        key_id: u16 = "key_id",
        /// Whether the key is being removed.
        removal_flag: u64 = "removal_flag",
        /// Whether signing is complete.
        complete_flag: u64 = "complete_flag",
        /// 1 if the originator sent the message.
        is_query: u64 = "is_query",
    }
}

gannet_event::record! {
    /// A location in its encoded form (RFC 1876 §2).
    pub struct Loc<'a> = "dns_loc_rr" {
        /// Owner name of the record.
        query: &'a [u8] = "query",
        /// Section.
        answer_type: u64 = "answer_type",
        /// Version.
        version: u64 = "version",
        /// Diameter of the sphere.
        size: u64 = "size",
        /// Horizontal precision.
        horiz_pre: u64 = "horiz_pre",
        /// Vertical precision.
        vert_pre: u64 = "vert_pre",
        /// Latitude.
        latitude: u32 = "latitude",
        /// Longitude.
        longitude: u32 = "longitude",
        /// Altitude.
        altitude: u32 = "altitude",
        /// 1 if the originator sent the message.
        is_query: u64 = "is_query",
    }
}

gannet_event::record! {
    /// A rewrite rule for a name (RFC 2915 §2).
    pub struct Naptr<'a> = "dns_naptr_rr" {
        /// Order in which the records are processed.
        order: u16 = "order",
        /// Preference among records of the same order.
        preference: u16 = "preference",
        /// Flags that control the interpretation of the other fields.
        flags: &'a [u8] = "flags",
        /// The offered service.
        service: &'a [u8] = "service",
        /// Substitution expression.
        regexp: &'a [u8] = "regexp",
        /// Next name to query.
        replacement: &'a [u8] = "replacement",
    }
}

/// Declares events of a message or a record, whose first parameters are the connection and the header.
macro_rules! dns_events {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $(<$lt:lifetime>)? = $event:literal $(, $opt_in:ident)? { $( $(#[doc = $fdoc:literal])* $field:ident : $ty:ty = $param:literal ),* $(,)? }
    )*) => {
        gannet_event::events! {
            crate::events::module_of(crate::Tag::Dns);

            /// A message was received.
            pub struct Message<'a> = "dns_message" {
                /// The connection.
                c: Connection = "c",
                /// Whether the originator sent it.
                is_orig: bool = "is_orig",
                /// Header of the message.
                msg: Head<'a> = "msg",
                /// Length of the message, in bytes.
                len: u64 = "len",
            }

            /// A question of a query, with the values that rows use.
            pub struct QuestionRead<'a> = "gannet::dns_question", opt_in {
                /// The connection.
                c: Connection = "c",
                /// Header of the message.
                msg: Head<'a> = "msg",
                /// The name.
                query: &'a [u8] = "query",
                /// Requested type.
                qtype: u16 = "qtype",
                /// Requested class.
                qclass: u16 = "qclass",
                /// Whether the type is a NetBIOS name service type.
                is_netbios_type: bool = "is_netbios_type",
            }

            /// A record of the answer section or of a dynamic update.
            pub struct RecordRead<'a> = "gannet::dns_record", opt_in {
                /// The connection.
                c: Connection = "c",
                /// Header of the message.
                msg: Head<'a> = "msg",
                /// Section: 1 for answers, 4 for prerequisites, 5 for changes.
                section: Section = "section",
                /// Owner name of the record.
                owner: Owner<'a> = "query",
                /// Type.
                qtype: u16 = "qtype",
                /// Class.
                qclass: u16 = "qclass",
                /// Time that the record may be cached.
                ttl: Interval = "TTL",
                /// Data of the record.
                data: RecordData<'a> = "data",
            }

            /// The parsing of a message ended, successfully or not.
            pub struct MessageRead<'a> = "gannet::dns_message_read", opt_in {
                /// The connection.
                c: Connection = "c",
                /// Header of the message.
                msg: Head<'a> = "msg",
                /// Whether the message counts as completely parsed; some errors count as its end.
                ended: bool = "ended",
                /// Whether the reply has no records at all.
                rejected: bool = "rejected",
            }

            $(
                $(#[doc = $doc])*
                pub struct $name $(<$lt>)? = $event $(, $opt_in)? {
                    /// The connection.
                    c: Connection = "c",
                    /// Header of the message.
                    msg: Msg = "msg",
                    $( $(#[doc = $fdoc])* $field: $ty = $param, )*
                }
            )*
        }
    };
}

dns_events! {
    /// A message was completely parsed.
    End = "dns_end" {}

    /// A query contains a question.
    Request<'a> = "dns_request" {
        /// The name.
        query: &'a [u8] = "query",
        /// Requested type.
        qtype: u16 = "qtype",
        /// Requested class.
        qclass: u16 = "qclass",
        /// The name in its original case.
        original_query: &'a [u8] = "original_query",
    }

    /// A reply to a question has no records at all.
    Rejected<'a> = "dns_rejected" {
        /// The name.
        query: &'a [u8] = "query",
        /// Requested type.
        qtype: u16 = "qtype",
        /// Requested class.
        qclass: u16 = "qclass",
        /// The name in its original case.
        original_query: &'a [u8] = "original_query",
    }

    /// A reply repeats the question.
    QueryReply<'a> = "dns_query_reply", opt_in {
        /// The name.
        query: &'a [u8] = "query",
        /// Requested type.
        qtype: u16 = "qtype",
        /// Requested class.
        qclass: u16 = "qclass",
        /// The name in its original case.
        original_query: &'a [u8] = "original_query",
    }

    /// An A record.
    AReply<'a> = "dns_A_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The address.
        a: Addr = "a",
    }

    /// An AAAA record.
    AaaaReply<'a> = "dns_AAAA_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The address.
        a: Addr = "a",
    }

    /// An A6 record.
    A6Reply<'a> = "dns_A6_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The address.
        a: Addr = "a",
    }

    /// An NS record.
    NsReply<'a> = "dns_NS_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The server's name.
        name: &'a [u8] = "name",
    }

    /// A CNAME record.
    CnameReply<'a> = "dns_CNAME_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The canonical name.
        name: &'a [u8] = "name",
    }

    /// A PTR record.
    PtrReply<'a> = "dns_PTR_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The name.
        name: &'a [u8] = "name",
    }

    /// An MX record.
    MxReply<'a> = "dns_MX_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The mail exchange.
        name: &'a [u8] = "name",
        /// Preference of the mail exchange.
        preference: u16 = "preference",
    }

    /// An SRV record.
    SrvReply<'a> = "dns_SRV_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The server's name.
        target: &'a [u8] = "target",
        /// Priority of the server.
        priority: u16 = "priority",
        /// Weight of the server.
        weight: u16 = "weight",
        /// Port of the server.
        p: u16 = "p",
    }

    /// A SOA record.
    SoaReply<'a> = "dns_SOA_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The fields of the record.
        soa: Soa<'a> = "soa",
    }

    /// A WKS record.
    WksReply<'a> = "dns_WKS_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
    }

    /// An HINFO record.
    HinfoReply<'a> = "dns_HINFO_reply", opt_in {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The processor.
        cpu: Option<&'a [u8]> = "cpu",
        /// The operating system.
        os: Option<&'a [u8]> = "os",
    }

    /// A TXT record.
    TxtReply<'a> = "dns_TXT_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// Strings of the record.
        strs: Vec<&'a [u8]> = "strs",
    }

    /// An SPF record.
    SpfReply<'a> = "dns_SPF_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// Strings of the record.
        strs: Vec<&'a [u8]> = "strs",
    }

    /// A CAA record.
    CaaReply<'a> = "dns_CAA_reply", opt_in {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// Flags.
        flags: u64 = "flags",
        /// The property's name.
        tag: &'a [u8] = "tag",
        /// The property's value.
        value: &'a [u8] = "value",
    }

    /// A NAPTR record.
    NaptrReply<'a> = "dns_NAPTR_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The rule.
        naptr: Naptr<'a> = "naptr",
    }

    /// An RRSIG record.
    RrsigReply<'a> = "dns_RRSIG" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The signature.
        rrsig: Rrsig<'a> = "rrsig",
    }

    /// A DNSKEY record.
    DnskeyReply<'a> = "dns_DNSKEY" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The key.
        dnskey: Dnskey<'a> = "dnskey",
    }

    /// An NSEC record.
    NsecReply<'a> = "dns_NSEC" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The next name of the zone.
        next_name: &'a [u8] = "next_name",
        /// Window blocks of the type bitmap.
        bitmaps: Vec<&'a [u8]> = "bitmaps",
    }

    /// An NSEC3 record.
    Nsec3Reply<'a> = "dns_NSEC3" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The proof.
        nsec3: Nsec3<'a> = "nsec3",
    }

    /// An NSEC3PARAM record.
    Nsec3ParamReply<'a> = "dns_NSEC3PARAM" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The parameters.
        nsec3param: Nsec3Param<'a> = "nsec3param",
    }

    /// A DS record.
    DsReply<'a> = "dns_DS" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The digest.
        ds: Ds<'a> = "ds",
    }

    /// A record in which BIND 9 stores the signing state.
    BindsReply<'a> = "dns_BINDS" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The state.
        binds: Binds<'a> = "binds",
    }

    /// An SSHFP record.
    SshfpReply<'a> = "dns_SSHFP" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// Algorithm of the key.
        algo: u64 = "algo",
        /// Hash function.
        fptype: u64 = "fptype",
        /// The fingerprint.
        fingerprint: &'a [u8] = "fingerprint",
    }

    /// A LOC record.
    LocReply<'a> = "dns_LOC" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The location.
        loc: Loc<'a> = "loc",
    }

    /// A record of an unknown type.
    UnknownReply<'a> = "dns_unknown_reply" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
    }

    /// An OPT record of EDNS.
    EdnsAddl<'a> = "dns_EDNS_addl", opt_in {
        /// The record.
        ans: Edns<'a> = "ans",
    }

    /// A client subnet option of EDNS.
    EdnsEcsOption = "dns_EDNS_ecs", opt_in {
        /// The option.
        opt: EdnsEcs = "opt",
    }

    /// A TCP keep-alive option of EDNS.
    EdnsKeepaliveOption = "dns_EDNS_tcp_keepalive", opt_in {
        /// The option.
        opt: EdnsKeepalive = "opt",
    }

    /// A cookie option of EDNS.
    EdnsCookieOption<'a> = "dns_EDNS_cookie", opt_in {
        /// The option.
        opt: EdnsCookie<'a> = "opt",
    }

    /// A TKEY record.
    TkeyReply<'a> = "dns_TKEY", opt_in {
        /// The record.
        ans: Tkey<'a> = "ans",
    }

    /// A TSIG record.
    TsigAddl<'a> = "dns_TSIG_addl", opt_in {
        /// The record.
        ans: Tsig<'a> = "ans",
    }

    /// An SVCB record.
    SvcbReply<'a> = "dns_SVCB", opt_in {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The binding.
        svcb: Svcb<'a> = "svcb",
    }

    /// An HTTPS record.
    HttpsReply<'a> = "dns_HTTPS", opt_in {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
        /// The binding.
        https: Svcb<'a> = "https",
    }

    /// A dynamic update was completely parsed (RFC 2136).
    DynamicUpdate<'a> = "dns_dynamic_update", opt_in {
        /// Name of the zone.
        zname: &'a [u8] = "zname",
        /// Class of the zone.
        zclass: u16 = "zclass",
    }

    /// A prerequisite of a dynamic update.
    DynamicUpdatePre<'a> = "dns_dynamic_update_pre" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
    }

    /// A deletion in a dynamic update.
    DynamicUpdateDel<'a> = "dns_dynamic_update_del" {
        /// Common fields of the record.
        ans: Answer<'a> = "ans",
    }
}
