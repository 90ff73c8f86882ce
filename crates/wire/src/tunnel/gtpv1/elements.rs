//! Information elements of control messages (3GPP TS 29.060 §7.7).
//!
//! Elements of types below 128 have a fixed length; the others have a length field. As in Zeek, the
//! length of mobility contexts, PDP contexts and authentication quintuplets follows from their
//! contents, and their length field is ignored.

use crate::bytes;
use crate::tunnel::Refusal;

/// An information element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// Element type.
    pub kind: u8,
    /// Element value.
    pub value: &'a [u8],
}

type Result<'a, T> = std::result::Result<T, Refusal<'a>>;

/// The information elements of a control message, up to the first one that does not fit.
pub fn elements(body: &[u8]) -> impl Iterator<Item = Element<'_>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let (element, after) = element(rest).ok()?;
        rest = after;
        Some(element)
    })
}

/// Checks that all elements fit.
pub(super) fn check(mut rest: &[u8]) -> Result<'_, ()> {
    while !rest.is_empty() {
        (_, rest) = element(rest)?;
    }
    Ok(())
}

/// The first element, and the bytes after it.
fn element(data: &[u8]) -> Result<'_, (Element<'_>, &[u8])> {
    let kind = bytes::u8_at(data, 0);
    let mut d = Record { data, at: 1 };
    let n = if kind & 0x80 != 0 {
        d.take("InformationElement:tlv_len", 2)?;
        bytes::u16_at(data, 1)
    } else if fixed(kind).is_some() {
        0
    } else {
        return Err(Refusal::no_such_element());
    };
    let start = d.at;
    if let Some((record, len)) = fixed(kind) {
        d.record(|d| if kind == 9 { triplet(d) } else { d.take(record, len).map(drop) })?;
    } else if is_known(kind) {
        d.record(|d| stated(d, kind, n))?;
    } else {
        d.string("InformationElement:unknown", i64::from(n))?;
    }
    Ok((Element { kind, value: &data[start..d.at] }, &data[d.at..]))
}

/// Name and length of elements without a length field (3GPP TS 29.060 table 37).
fn fixed(kind: u8) -> Option<(&'static str, usize)> {
    Some(match kind {
        1 => ("Cause", 1),
        2 => ("IMSI", 8),
        3 => ("RAI", 6),
        4 => ("TLLI", 4),
        5 => ("P_TMSI", 4),
        8 => ("ReorderReq", 1),
        9 => ("AuthN_Triplet", 28),
        11 => ("MAP_Cause", 1),
        12 => ("P_TMSI_Sig:value", 3),
        13 => ("MS_Valid", 1),
        14 => ("Recovery", 1),
        15 => ("SelectionMode", 1),
        16 => ("TEID1", 4),
        17 => ("TEID_ControlPlane", 4),
        18 => ("TEID2", 5),
        19 => ("TeardownInd", 1),
        20 => ("NSAPI", 1),
        21 => ("RANAP_Cause", 1),
        22 => ("RAB_Ctx", 9),
        23 => ("RadioPrioritySMS", 1),
        24 => ("RadioPriority", 1),
        25 => ("PacketFlowID", 2),
        26 => ("ChargingCharacteristics", 2),
        27 => ("TraceReference", 2),
        28 => ("TraceType", 2),
        29 => ("MS_Not_Reachable_Reason", 1),
        127 => ("ChargingID", 4),
        _ => return None,
    })
}

/// Whether the contents of an element with a length field are parsed.
fn is_known(kind: u8) -> bool {
    matches!(kind, 128..=143 | 251 | 255)
}

/// Parses the value of an element with a length field.
fn stated<'a>(d: &mut Record<'a>, kind: u8, n: u16) -> Result<'a, ()> {
    let n = i64::from(n);
    let whole = match kind {
        128 => {
            d.take("EndUserAddr:pdp_type_num", 2)?;
            return d.string("EndUserAddr:pdp_addr", n - 2);
        }
        129 => return mobility(d),
        130 => return pdp(d),
        135 => return quality(d, n),
        136 => return quintuplet(d),
        140 => {
            d.take("RAB_SetupInfo:xxxx_nsapi", 1)?;
            if n == 1 {
                return Ok(());
            }
            d.inner().take("TEID1", 4)?;
            d.at += 4;
            return d.string("RAB_SetupInfo:rnc_addr", n - 5);
        }
        255 => {
            d.take("PrivateExt:id", 2)?;
            return d.string("PrivateExt:value", n - 2);
        }
        131 => "AP_Name:value",
        132 => "ProtoConfigOpts:value",
        133 => "GSN_Addr:value",
        134 => "MSISDN:value",
        137 => "TrafficFlowTemplate:value",
        138 => "TargetID:value",
        139 => "UTRAN_TransparentContainer:value",
        141 => "ExtHdrTypeList:value",
        142 => "TriggerID:value",
        143 => "OMC_ID:value",
        _ => "ChargingGatewayAddr:value",
    };
    d.string(whole, n)
}

/// A quality of service profile of `n` bytes; an empty one lacks the first byte.
fn quality<'a>(d: &mut Record<'a>, n: i64) -> Result<'a, ()> {
    d.take("QoS_Profile:alloc_retention_priority", 1)?;
    d.string("QoS_Profile:data", n - 1)
}

fn triplet<'a>(d: &mut Record<'a>) -> Result<'a, ()> {
    d.take("AuthN_Triplet:rand", 16)?;
    d.take("AuthN_Triplet:kc", 12).map(drop)
}

fn quintuplet<'a>(d: &mut Record<'a>) -> Result<'a, ()> {
    d.take("AuthN_Quintuplet:rand", 16)?;
    d.read_counted("AuthN_Quintuplet:xres_len", "AuthN_Quintuplet:xres")?;
    d.take("AuthN_Quintuplet:ck", 16)?;
    d.take("AuthN_Quintuplet:ik", 16)?;
    d.read_counted("AuthN_Quintuplet:autn_len", "AuthN_Quintuplet:autn")
}

/// A mobility management context (3GPP TS 29.060 §7.7.28).
fn mobility<'a>(d: &mut Record<'a>) -> Result<'a, ()> {
    let security = d.take("MM_Ctx:security_params", 2)?[1];
    let (mode, vectors) = (security >> 6, usize::from(security >> 3 & 7));
    if mode & 1 != 0 {
        d.take("MM_Ctx:kc", 8)?;
    } else {
        d.take("MM_Ctx:ck_ik", 32)?;
    }
    let (field, one): (_, fn(&mut Record<'a>) -> Result<'a, ()>) = if mode == 1 {
        ("MM_Ctx:triplets", triplet)
    } else {
        d.take("MM_Ctx:quint_len", 2)?;
        ("MM_Ctx:quintuplets", quintuplet)
    };
    let left = d.data.len() - d.at;
    if vectors > left {
        return Err(Refusal::out_of_bound(field, vectors as i64, left));
    }
    for _ in 0..vectors {
        d.record(one)?;
    }
    d.take("MM_Ctx:ms_net_capability_len", 3)?;
    d.read_counted_by_last("MM_Ctx:ms_net_capability")?;
    let len = d.take("MM_Ctx:container_len", 2)?;
    d.string("MM_Ctx:container", i64::from(bytes::u16_at(len, 0)))
}

/// A packet data protocol (PDP) context (3GPP TS 29.060 §7.7.29).
fn pdp<'a>(d: &mut Record<'a>) -> Result<'a, ()> {
    d.take("PDP_Ctx:qos_sub_len", 3)?;
    let n = d.last_byte();
    d.record(|d| quality(d, n))?;
    for len in ["PDP_Ctx:qos_req_len", "PDP_Ctx:qos_neg_len"] {
        d.take(len, 1)?;
        let n = d.last_byte();
        d.record(|d| quality(d, n))?;
    }
    d.take("PDP_Ctx:pdp_addr_len", 18)?;
    d.read_counted_by_last("PDP_Ctx:pdp_addr")?;
    d.read_counted("PDP_Ctx:ggsn_addr_control_plane_len", "PDP_Ctx:ggsn_addr_control_plane")?;
    d.read_counted("PDP_Ctx:ggsn_addr_user_traffic_len", "PDP_Ctx:ggsn_addr_user_traffic")?;
    d.take("PDP_Ctx:apn_len", 1)?;
    let n = d.last_byte();
    d.record(|d| d.string("AP_Name:value", n))?;
    d.take("PDP_Ctx:transaction_id", 2).map(drop)
}

/// A reader that starts at the beginning of a record. A field that does not fit is reported with
/// the end that the record would need and the number of bytes available.
struct Record<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Record<'a> {
    /// A reader for a record within this one, at the current position.
    fn inner(&self) -> Self {
        Self { data: &self.data[self.at..], at: 0 }
    }

    /// Parses a record within this one.
    fn record(&mut self, read: impl FnOnce(&mut Self) -> Result<'a, ()>) -> Result<'a, ()> {
        let mut inner = self.inner();
        read(&mut inner)?;
        self.at += inner.at;
        Ok(())
    }

    /// Reads the next `n` bytes; `field` is the last field in them.
    fn take(&mut self, field: &'static str, n: usize) -> Result<'a, &'a [u8]> {
        let end = self.at + n;
        let Some(got) = self.data.get(self.at..end) else {
            return Err(Refusal::out_of_bound(field, end as i64, self.data.len()));
        };
        self.at = end;
        Ok(got)
    }

    /// Skips a string of `n` bytes; a negative length is an error.
    fn string(&mut self, field: &'static str, n: i64) -> Result<'a, ()> {
        match usize::try_from(n) {
            Ok(n) => self.take(field, n).map(drop),
            Err(_) => Err(Refusal::out_of_bound(field, self.at as i64 + n, self.data.len())),
        }
    }

    /// The previous byte.
    fn last_byte(&self) -> i64 {
        i64::from(bytes::u8_at(self.data, self.at - 1))
    }

    /// Skips a string whose length is the previous byte.
    fn read_counted_by_last(&mut self, field: &'static str) -> Result<'a, ()> {
        self.string(field, self.last_byte())
    }

    /// Skips a length byte and a string of that length.
    fn read_counted(&mut self, len: &'static str, field: &'static str) -> Result<'a, ()> {
        self.take(len, 1)?;
        self.read_counted_by_last(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::Reason;

    fn reason(data: &[u8]) -> String {
        match check(data) {
            Ok(()) => String::new(),
            Err(Refusal::Violation {
                reason: Reason::OutOfBound { field, need, have }, ..
            }) => {
                format!("{field}: {need} > {have}")
            }
            Err(other) => format!("{other:?}"),
        }
    }

    #[test]
    fn values_of_elements() {
        let body = [14, 3, 131, 0, 2, 8, 9, 250, 0, 1, 7];
        let got: Vec<_> = elements(&body).map(|e| (e.kind, e.value)).collect();
        assert_eq!(got, [(14, &[3][..]), (131, &[8, 9]), (250, &[7])]);
        assert_eq!(reason(&[128, 0, 2, 0xf1, 0x21, 135, 0, 1, 0, 140, 0, 1, 5]), "");
    }

    #[test]
    fn truncated_elements() {
        assert_eq!(reason(&[1]), "Cause: 1 > 0");
        assert_eq!(reason(&[2, 1, 2]), "IMSI: 8 > 2");
        assert_eq!(reason(&[9, 1, 2]), "AuthN_Triplet:rand: 16 > 2");
        assert_eq!(reason(&[9; 28]), "AuthN_Triplet:kc: 28 > 27");
        assert_eq!(reason(&[131, 0]), "InformationElement:tlv_len: 3 > 2");
        assert_eq!(reason(&[131, 0, 2, 8]), "AP_Name:value: 2 > 1");
        assert_eq!(reason(&[250, 0, 2, 8]), "InformationElement:unknown: 5 > 4");
        assert!(reason(&[7, 1]).contains("NoSuchElement"));
        // Elements that are shorter than their fixed part.
        assert_eq!(reason(&[128, 0, 1, 0xf1, 0x21]), "EndUserAddr:pdp_addr: 1 > 2");
        assert_eq!(reason(&[128, 0, 2, 0xf1]), "EndUserAddr:pdp_type_num: 2 > 1");
        assert_eq!(reason(&[135, 0, 0, 7]), "QoS_Profile:data: 0 > 1");
        assert_eq!(reason(&[255, 0, 1, 1]), "PrivateExt:id: 2 > 1");
        assert_eq!(reason(&[140, 0, 2, 5, 0]), "TEID1: 4 > 1");
        assert_eq!(reason(&[140, 0, 2, 5, 0, 0, 0, 0]), "RAB_SetupInfo:rnc_addr: 2 > 5");
    }

    #[test]
    fn the_length_of_contexts_follows_from_their_contents() {
        // GSM keys and no triplets; the length field is ignored.
        let mut mm = vec![129, 0, 0, 0, 0x40, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 9, 0, 2, 5, 5];
        assert_eq!(reason(&mm), "");
        assert_eq!(reason(&mm[..mm.len() - 1]), "MM_Ctx:container: 18 > 17");
        mm[4] = 0x48;
        assert_eq!(reason(&mm), "AuthN_Triplet:rand: 16 > 8");
        assert_eq!(reason(&mm[..12]), "MM_Ctx:kc: 10 > 9");
        let mut pdp = vec![130, 0, 0, 5, 0, 2, 1, 2, 1, 1, 1, 1];
        pdp.extend([0; 17]);
        pdp.extend([4, 10, 0, 0, 1, 1, 7, 1, 7, 3, 1, 2, 3, 0, 0]);
        assert_eq!(reason(&pdp), "");
        assert_eq!(reason(&pdp[..pdp.len() - 1]), "PDP_Ctx:transaction_id: 41 > 40");
        assert_eq!(reason(&pdp[..15]), "PDP_Ctx:pdp_addr_len: 27 > 12");
    }
}
