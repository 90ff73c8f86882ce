//! Records of GTPv1 messages in events (3GPP TS 29.060 section 7.7).

use gannet_base::Addr;
use gannet_wire::tunnel::Element;
use gannet_wire::tunnel::Gtpv1;

gannet_event::record! {
    /// The header of a message.
    #[derive(Clone, Copy, Debug)]
    pub struct Gtpv1Hdr = "gtpv1_hdr" {
        /// Version: 1.
        version: u64 = "version",
        /// Protocol type: GTP, not GTP' (charging).
        pt_flag: bool = "pt_flag",
        /// Reserved bit.
        rsv: bool = "rsv",
        /// Whether there is an extension header.
        e_flag: bool = "e_flag",
        /// Whether the sequence number is valid.
        s_flag: bool = "s_flag",
        /// Whether the N-PDU number is valid.
        pn_flag: bool = "pn_flag",
        /// Type of the message.
        msg_type: u64 = "msg_type",
        /// Number of bytes after the first eight.
        length: u64 = "length",
        /// Tunnel endpoint identifier.
        teid: u64 = "teid",
        /// Sequence number.
        seq: Option<u64> = "seq",
        /// N-PDU number.
        n_pdu: Option<u64> = "n_pdu",
        /// Type of the first extension header.
        next_type: Option<u64> = "next_type",
    }
}

impl From<&Gtpv1<'_>> for Gtpv1Hdr {
    fn from(message: &Gtpv1<'_>) -> Self {
        let bit = |n: u8| message.flags >> n & 1 != 0;
        let optional = message.optional;
        Self {
            version: u64::from(message.flags >> 5),
            pt_flag: bit(4),
            rsv: bit(3),
            e_flag: bit(2),
            s_flag: bit(1),
            pn_flag: bit(0),
            msg_type: u64::from(message.message),
            length: u64::from(message.length),
            teid: u64::from(message.teid),
            seq: optional.map(|o| u64::from(o.sequence)),
            n_pdu: optional.map(|o| u64::from(o.n_pdu)),
            next_type: optional.map(|o| u64::from(o.next)),
        }
    }
}

gannet_event::record! {
    /// A routing area identity.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Rai = "gtp_rai" {
        /// Mobile country code.
        mcc: u64 = "mcc",
        /// Mobile network code.
        mnc: u64 = "mnc",
        /// Location area code.
        lac: u64 = "lac",
        /// Routing area code.
        rac: u64 = "rac",
    }
}

impl Rai {
    fn new(v: &[u8]) -> Self {
        let digit = |at: usize, high: bool| byte(v, at) >> (4 * u64::from(high)) & 15;
        let (mnc1, mnc2, mnc3) = (digit(2, false), digit(2, true), digit(1, true));
        // As in Zeek, a third digit other than zero is ignored.
        let mnc = if mnc3 == 0 { mnc1 * 100 + mnc2 * 10 } else { mnc1 * 10 + mnc2 };
        let mcc = digit(0, false) * 100 + digit(0, true) * 10 + digit(1, false);
        Self { mcc, mnc, lac: byte(v, 3) << 8 | byte(v, 4), rac: byte(v, 5) }
    }
}

gannet_event::record! {
    /// The address of an end user.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct EndUserAddr<'a> = "gtp_end_user_addr" {
        /// Organization of the type.
        pdp_type_org: u64 = "pdp_type_org",
        /// Type.
        pdp_type_num: u64 = "pdp_type_num",
        /// The address, if it is an IP address.
        pdp_ip: Option<Addr> = "pdp_ip",
        /// Another address.
        pdp_other_addr: Option<&'a [u8]> = "pdp_other_addr",
    }
}

impl<'a> EndUserAddr<'a> {
    fn new(v: &'a [u8]) -> Self {
        let bytes = v.get(2..).unwrap_or_default();
        let kind = byte(v, 1);
        let pdp_ip = match kind {
            0x21 => bytes.first_chunk().map(|b| Addr::v4(*b)),
            0x57 => bytes.first_chunk().map(|b| Addr::v6(*b)),
            _ => None,
        };
        let is_other = !bytes.is_empty() && !matches!(kind, 0x21 | 0x57);
        Self {
            pdp_type_org: byte(v, 0) & 15,
            pdp_type_num: kind,
            pdp_ip,
            pdp_other_addr: is_other.then_some(bytes),
        }
    }
}

gannet_event::record! {
    /// The address of a GPRS support node.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct GsnAddr<'a> = "gtp_gsn_addr" {
        /// The address, if it is an IP address.
        ip: Option<Addr> = "ip",
        /// Another address.
        other: Option<&'a [u8]> = "other",
    }
}

impl<'a> GsnAddr<'a> {
    fn new(v: &'a [u8]) -> Self {
        let ip = address(v);
        Self { ip, other: ip.is_none().then_some(v) }
    }
}

gannet_event::record! {
    /// A quality of service profile.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct QosProfile<'a> = "gtp_qos_profile" {
        /// Allocation/retention priority.
        priority: u64 = "priority",
        /// The rest of the profile.
        data: &'a [u8] = "data",
    }
}

impl<'a> QosProfile<'a> {
    fn new(v: &'a [u8]) -> Self {
        Self { priority: byte(v, 0), data: v.get(1..).unwrap_or_default() }
    }
}

gannet_event::record! {
    /// A private extension.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct PrivateExtension<'a> = "gtp_private_extension" {
        /// Identifier of the extension's owner.
        id: u64 = "id",
        /// Contents.
        value: &'a [u8] = "value",
    }
}

impl<'a> PrivateExtension<'a> {
    fn new(v: &'a [u8]) -> Self {
        Self { id: byte(v, 0) << 8 | byte(v, 1), value: v.get(2..).unwrap_or_default() }
    }
}

gannet_event::record! {
    /// Information elements of a Create PDP Context Request.
    #[derive(Clone, Debug, Default)]
    pub struct CreateRequest<'a> = "gtp_create_pdp_ctx_request_elements" {
        /// International mobile subscriber identity.
        imsi: Option<u64> = "imsi",
        /// Routing area.
        rai: Option<Rai> = "rai",
        /// Restart counter.
        recovery: Option<u64> = "recovery",
        /// Selection mode.
        select_mode: Option<u64> = "select_mode",
        /// Tunnel endpoint identifier for data.
        data1: Option<u64> = "data1",
        /// Tunnel endpoint identifier for control.
        cp: Option<u64> = "cp",
        /// Network service access point identifier.
        nsapi: Option<u64> = "nsapi",
        /// Network service access point identifier of the context that this one is linked to.
        linked_nsapi: Option<u64> = "linked_nsapi",
        /// Charging characteristics.
        charge_character: Option<u64> = "charge_character",
        /// Trace reference.
        trace_ref: Option<u64> = "trace_ref",
        /// Trace type.
        trace_type: Option<u64> = "trace_type",
        /// Address of the end user.
        end_user_addr: Option<EndUserAddr<'a>> = "end_user_addr",
        /// Access point name.
        ap_name: Option<&'a [u8]> = "ap_name",
        /// Protocol configuration options.
        opts: Option<&'a [u8]> = "opts",
        /// Address for signaling.
        signal_addr: Option<GsnAddr<'a>> = "signal_addr",
        /// Address for user data.
        user_addr: Option<GsnAddr<'a>> = "user_addr",
        /// Telephone number (MSISDN).
        msisdn: Option<&'a [u8]> = "msisdn",
        /// Quality of service profile.
        qos_prof: Option<QosProfile<'a>> = "qos_prof",
        /// Traffic flow template.
        tft: Option<&'a [u8]> = "tft",
        /// Trigger identifier.
        trigger_id: Option<&'a [u8]> = "trigger_id",
        /// Identifier of the operation and maintenance center.
        omc_id: Option<&'a [u8]> = "omc_id",
        /// Private extension.
        ext: Option<PrivateExtension<'a>> = "ext",
    }
}

impl<'a> CreateRequest<'a> {
    /// Builds the record from information elements; reports the types of unexpected ones to
    /// `invalid`.
    pub fn new(elements: impl Iterator<Item = Element<'a>>, mut invalid: impl FnMut(u8)) -> Self {
        let mut all = Self::default();
        for Element { kind, value: v } in elements {
            match kind {
                2 => all.imsi = Some(imsi(v)),
                3 => all.rai = Some(Rai::new(v)),
                14 => all.recovery = Some(byte(v, 0)),
                15 => all.select_mode = Some(byte(v, 0) & 1),
                16 => all.data1 = Some(number(v)),
                17 => all.cp = Some(number(v)),
                20 if all.nsapi.is_some() => all.linked_nsapi = Some(byte(v, 0) & 15),
                20 => all.nsapi = Some(byte(v, 0) & 15),
                26 => all.charge_character = Some(number(v)),
                27 => all.trace_ref = Some(number(v)),
                28 => all.trace_type = Some(number(v)),
                128 => all.end_user_addr = Some(EndUserAddr::new(v)),
                131 => all.ap_name = Some(v),
                132 => all.opts = Some(v),
                133 if all.signal_addr.is_some() => all.user_addr = Some(GsnAddr::new(v)),
                133 => all.signal_addr = Some(GsnAddr::new(v)),
                134 => all.msisdn = Some(v),
                135 => all.qos_prof = Some(QosProfile::new(v)),
                137 => all.tft = Some(v),
                142 => all.trigger_id = Some(v),
                143 => all.omc_id = Some(v),
                255 => all.ext = Some(PrivateExtension::new(v)),
                other => invalid(other),
            }
        }
        all
    }
}

gannet_event::record! {
    /// Information elements of a Create PDP Context Response.
    #[derive(Clone, Debug, Default)]
    pub struct CreateResponse<'a> = "gtp_create_pdp_ctx_response_elements" {
        /// Cause.
        cause: Option<u64> = "cause",
        /// Whether packets must be reordered.
        reorder_req: Option<bool> = "reorder_req",
        /// Restart counter.
        recovery: Option<u64> = "recovery",
        /// Tunnel endpoint identifier for data.
        data1: Option<u64> = "data1",
        /// Tunnel endpoint identifier for control.
        cp: Option<u64> = "cp",
        /// Charging identifier.
        charging_id: Option<u64> = "charging_id",
        /// Address of the end user.
        end_user_addr: Option<EndUserAddr<'a>> = "end_user_addr",
        /// Protocol configuration options.
        opts: Option<&'a [u8]> = "opts",
        /// Address for control.
        cp_addr: Option<GsnAddr<'a>> = "cp_addr",
        /// Address for user data.
        user_addr: Option<GsnAddr<'a>> = "user_addr",
        /// Quality of service profile.
        qos_prof: Option<QosProfile<'a>> = "qos_prof",
        /// Address of the charging gateway.
        charge_gateway: Option<Addr> = "charge_gateway",
        /// Private extension.
        ext: Option<PrivateExtension<'a>> = "ext",
    }
}

impl<'a> CreateResponse<'a> {
    /// Builds the record from information elements; reports the types of unexpected ones to
    /// `invalid`.
    pub fn new(elements: impl Iterator<Item = Element<'a>>, mut invalid: impl FnMut(u8)) -> Self {
        let mut all = Self::default();
        for Element { kind, value: v } in elements {
            match kind {
                1 => all.cause = Some(byte(v, 0)),
                8 => all.reorder_req = Some(byte(v, 0) & 1 != 0),
                14 => all.recovery = Some(byte(v, 0)),
                16 => all.data1 = Some(number(v)),
                17 => all.cp = Some(number(v)),
                127 => all.charging_id = Some(number(v)),
                128 => all.end_user_addr = Some(EndUserAddr::new(v)),
                132 => all.opts = Some(v),
                133 if all.cp_addr.is_some() => all.user_addr = Some(GsnAddr::new(v)),
                133 => all.cp_addr = Some(GsnAddr::new(v)),
                135 => all.qos_prof = Some(QosProfile::new(v)),
                251 => all.charge_gateway = address(v),
                255 => all.ext = Some(PrivateExtension::new(v)),
                other => invalid(other),
            }
        }
        all
    }
}

gannet_event::record! {
    /// Information elements of an Update PDP Context Request.
    #[derive(Clone, Debug, Default)]
    pub struct UpdateRequest<'a> = "gtp_update_pdp_ctx_request_elements" {
        /// International mobile subscriber identity.
        imsi: Option<u64> = "imsi",
        /// Routing area.
        rai: Option<Rai> = "rai",
        /// Restart counter.
        recovery: Option<u64> = "recovery",
        /// Tunnel endpoint identifier for data.
        data1: Option<u64> = "data1",
        /// Tunnel endpoint identifier for control.
        cp: Option<u64> = "cp",
        /// Network service access point identifier.
        nsapi: Option<u64> = "nsapi",
        /// Trace reference.
        trace_ref: Option<u64> = "trace_ref",
        /// Trace type.
        trace_type: Option<u64> = "trace_type",
        /// Address for control.
        cp_addr: Option<GsnAddr<'a>> = "cp_addr",
        /// Address for user data.
        user_addr: Option<GsnAddr<'a>> = "user_addr",
        /// Quality of service profile.
        qos_prof: Option<QosProfile<'a>> = "qos_prof",
        /// Traffic flow template.
        tft: Option<&'a [u8]> = "tft",
        /// Trigger identifier.
        trigger_id: Option<&'a [u8]> = "trigger_id",
        /// Identifier of the operation and maintenance center.
        omc_id: Option<&'a [u8]> = "omc_id",
        /// Private extension.
        ext: Option<PrivateExtension<'a>> = "ext",
        /// Address of the end user.
        end_user_addr: Option<EndUserAddr<'a>> = "end_user_addr",
    }
}

impl<'a> UpdateRequest<'a> {
    /// Builds the record from information elements; reports the types of unexpected ones to
    /// `invalid`.
    pub fn new(elements: impl Iterator<Item = Element<'a>>, mut invalid: impl FnMut(u8)) -> Self {
        let mut all = Self::default();
        for Element { kind, value: v } in elements {
            match kind {
                2 => all.imsi = Some(imsi(v)),
                3 => all.rai = Some(Rai::new(v)),
                14 => all.recovery = Some(byte(v, 0)),
                16 => all.data1 = Some(number(v)),
                17 => all.cp = Some(number(v)),
                20 => all.nsapi = Some(byte(v, 0) & 15),
                27 => all.trace_ref = Some(number(v)),
                28 => all.trace_type = Some(number(v)),
                128 => all.end_user_addr = Some(EndUserAddr::new(v)),
                133 if all.cp_addr.is_some() => all.user_addr = Some(GsnAddr::new(v)),
                133 => all.cp_addr = Some(GsnAddr::new(v)),
                135 => all.qos_prof = Some(QosProfile::new(v)),
                137 => all.tft = Some(v),
                142 => all.trigger_id = Some(v),
                143 => all.omc_id = Some(v),
                255 => all.ext = Some(PrivateExtension::new(v)),
                other => invalid(other),
            }
        }
        all
    }
}

gannet_event::record! {
    /// Information elements of an Update PDP Context Response.
    #[derive(Clone, Debug, Default)]
    pub struct UpdateResponse<'a> = "gtp_update_pdp_ctx_response_elements" {
        /// Cause.
        cause: Option<u64> = "cause",
        /// Restart counter.
        recovery: Option<u64> = "recovery",
        /// Tunnel endpoint identifier for data.
        data1: Option<u64> = "data1",
        /// Tunnel endpoint identifier for control.
        cp: Option<u64> = "cp",
        /// Charging identifier.
        charging_id: Option<u64> = "charging_id",
        /// Address for control.
        cp_addr: Option<GsnAddr<'a>> = "cp_addr",
        /// Address for user data.
        user_addr: Option<GsnAddr<'a>> = "user_addr",
        /// Quality of service profile.
        qos_prof: Option<QosProfile<'a>> = "qos_prof",
        /// Address of the charging gateway.
        charge_gateway: Option<Addr> = "charge_gateway",
        /// Private extension.
        ext: Option<PrivateExtension<'a>> = "ext",
    }
}

impl<'a> UpdateResponse<'a> {
    /// Builds the record from information elements; reports the types of unexpected ones to
    /// `invalid`.
    pub fn new(elements: impl Iterator<Item = Element<'a>>, mut invalid: impl FnMut(u8)) -> Self {
        let mut all = Self::default();
        for Element { kind, value: v } in elements {
            match kind {
                1 => all.cause = Some(byte(v, 0)),
                14 => all.recovery = Some(byte(v, 0)),
                16 => all.data1 = Some(number(v)),
                17 => all.cp = Some(number(v)),
                127 => all.charging_id = Some(number(v)),
                133 if all.cp_addr.is_some() => all.user_addr = Some(GsnAddr::new(v)),
                133 => all.cp_addr = Some(GsnAddr::new(v)),
                135 => all.qos_prof = Some(QosProfile::new(v)),
                251 => all.charge_gateway = address(v),
                255 => all.ext = Some(PrivateExtension::new(v)),
                other => invalid(other),
            }
        }
        all
    }
}

gannet_event::record! {
    /// Information elements of a Delete PDP Context Request.
    #[derive(Clone, Debug, Default)]
    pub struct DeleteRequest<'a> = "gtp_delete_pdp_ctx_request_elements" {
        /// Whether all contexts of the address are deleted.
        teardown_ind: Option<bool> = "teardown_ind",
        /// Network service access point identifier.
        nsapi: Option<u64> = "nsapi",
        /// Private extension.
        ext: Option<PrivateExtension<'a>> = "ext",
    }
}

impl<'a> DeleteRequest<'a> {
    /// Builds the record from information elements; reports the types of unexpected ones to
    /// `invalid`.
    pub fn new(elements: impl Iterator<Item = Element<'a>>, mut invalid: impl FnMut(u8)) -> Self {
        let mut all = Self::default();
        for Element { kind, value: v } in elements {
            match kind {
                19 => all.teardown_ind = Some(byte(v, 0) & 1 != 0),
                20 => all.nsapi = Some(byte(v, 0) & 15),
                255 => all.ext = Some(PrivateExtension::new(v)),
                other => invalid(other),
            }
        }
        all
    }
}

gannet_event::record! {
    /// Information elements of a Delete PDP Context Response.
    #[derive(Clone, Debug, Default)]
    pub struct DeleteResponse<'a> = "gtp_delete_pdp_ctx_response_elements" {
        /// Cause.
        cause: Option<u64> = "cause",
        /// Private extension.
        ext: Option<PrivateExtension<'a>> = "ext",
    }
}

impl<'a> DeleteResponse<'a> {
    /// Builds the record from information elements; reports the types of unexpected ones to
    /// `invalid`.
    pub fn new(elements: impl Iterator<Item = Element<'a>>, mut invalid: impl FnMut(u8)) -> Self {
        let mut all = Self::default();
        for Element { kind, value: v } in elements {
            match kind {
                1 => all.cause = Some(byte(v, 0)),
                255 => all.ext = Some(PrivateExtension::new(v)),
                other => invalid(other),
            }
        }
        all
    }
}

fn byte(v: &[u8], at: usize) -> u64 {
    v.get(at).map_or(0, |b| u64::from(*b))
}

/// Decodes an integer of up to eight bytes.
fn number(v: &[u8]) -> u64 {
    v.iter().take(8).fold(0, |n, b| n << 8 | u64::from(*b))
}

/// Decodes decimal digits, the low half of each byte first; 15 is a filler.
fn imsi(v: &[u8]) -> u64 {
    let digits = v.iter().take(8).flat_map(|b| [b & 15, b >> 4]).filter(|digit| *digit != 15);
    digits.fold(0, |n, digit| n * 10 + u64::from(digit))
}

/// Decodes an address of four or sixteen bytes.
fn address(v: &[u8]) -> Option<Addr> {
    match v.len() {
        4 => v.first_chunk().map(|b| Addr::v4(*b)),
        16 => v.first_chunk().map(|b| Addr::v6(*b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(kind: u8, value: &[u8]) -> Element<'_> {
        Element { kind, value }
    }

    #[test]
    fn elements_of_a_creation() {
        let nsapi = [element(20, &[0xf5]), element(20, &[6])];
        let addrs = [element(133, &[10, 0, 0, 1]), element(133, &[1, 2, 3])];
        let other = [
            element(2, &[0x21, 0x43, 0x65, 0x87, 0x09, 0x21, 0x43, 0xf5]),
            element(3, &[0x62, 0xf2, 0x20, 0, 7, 9]),
            element(128, &[0xf1, 0x21, 192, 0, 2, 1]),
            element(135, &[3, 1, 2]),
            element(1, &[128]),
        ];
        let mut invalid = Vec::new();
        let all = nsapi.into_iter().chain(addrs).chain(other);
        let all = CreateRequest::new(all, |kind| invalid.push(kind));
        assert_eq!((all.nsapi, all.linked_nsapi), (Some(5), Some(6)));
        assert_eq!(all.imsi, Some(123_456_789_012_345));
        assert_eq!(all.rai, Some(Rai { mcc: 262, mnc: 2, lac: 7, rac: 9 }));
        assert_eq!(all.signal_addr.and_then(|a| a.ip), Some(Addr::v4([10, 0, 0, 1])));
        assert_eq!(all.user_addr.and_then(|a| a.other), Some(&[1, 2, 3][..]));
        let user = all.end_user_addr.map(|a| (a.pdp_type_org, a.pdp_type_num, a.pdp_ip));
        assert_eq!(user, Some((1, 0x21, Some(Addr::v4([192, 0, 2, 1])))));
        assert_eq!(all.qos_prof, Some(QosProfile { priority: 3, data: &[1, 2] }));
        assert_eq!(invalid, [1]);
    }
}
