//! Parsing of the objects of a message (IEEE 1815 clauses 4 and 11) into parts with checked lengths.
//!
//! Objects are not logged: [`check`] parses them only to validate the message, [`visit`] to report them. A
//! message is a list of
//! *object headers*: group and variation, a *qualifier*, and a range or count whose format the
//! qualifier determines. Responses have that many objects after each header, requests only for
//! groups that carry data to the outstation. The qualifier also determines a prefix before each
//! object.

use gannet_base::Dir;

use super::part::MessagePart;
use super::part::report;
use crate::support::OutOfBound;
use crate::support::Record;

/// Maximum number of empty objects of one message that are reported.
const MAX_EMPTY: u32 = 1 << 16;

/// Validates a complete message of one side, including the application header.
pub fn check(from: Dir, message: &[u8]) -> Result<(), OutOfBound> {
    parse(from, message, &mut None::<fn(MessagePart<'_>)>)
}

/// Like [`check`], but passes each part after the application header to `visit`.
pub fn visit(
    from: Dir,
    message: &[u8],
    visit: impl FnMut(MessagePart<'_>),
) -> Result<(), OutOfBound> {
    parse(from, message, &mut Some(visit))
}

fn parse<F: FnMut(MessagePart<'_>)>(
    from: Dir,
    message: &[u8],
    visit: &mut Option<F>,
) -> Result<(), OutOfBound> {
    let (record, header) = match from {
        Dir::Orig => ("DNP3_Application_Request_Header", 2),
        Dir::Resp => ("DNP3_Application_Response_Header", 4),
    };
    let mut d = Record::new(record, message);
    d.all(header)?;
    let function = message[1];
    let has_objects = match from {
        Dir::Orig => matches!(function, 1..=12 | 16..=18 | 20..=22 | 25..=33),
        Dir::Resp => matches!(function, 0x81..=0x83),
    };
    let mut rest = d.rest();
    if !has_objects && from == Dir::Resp {
        report(visit, MessagePart::Rest(rest));
    }
    let mut empty = MAX_EMPTY;
    while has_objects && !rest.is_empty() {
        rest = group(from, function, rest, &mut empty, visit)?;
    }
    Ok(())
}

/// Names of Zeek's records for ranges, by the range code of the qualifier: ranges of indices, then of addresses, with
/// fields of one, two and four bytes.
const RANGES: [&str; 6] = [
    "Range_Field_0",
    "Range_Field_1",
    "Range_Field_2",
    "Range_Field_3",
    "Range_Field_4",
    "Range_Field_5",
];

/// Parses an object header and its objects. Returns the rest of the data.
fn group<'a, F: FnMut(MessagePart<'_>)>(
    from: Dir,
    function: u8,
    data: &'a [u8],
    empty: &mut u32,
    visit: &mut Option<F>,
) -> Result<&'a [u8], OutOfBound> {
    let mut d = Record::new("Object_Header", data);
    let head = d.upto("qualifier_field", 3)?;
    let (kind, qualifier) = (u16::from_be_bytes([head[0], head[1]]), head[2]);
    let at = d.at;
    let part =
        |n: usize, size: usize| data.get(at + n * size..at + (n + 1) * size).unwrap_or_default();
    let number = |n: usize, size: usize| {
        part(n, size).iter().rev().fold(0u32, |all, b| all << 8 | u32::from(*b))
    };
    // Zeek reports addresses and counts in network order.
    let big_endian =
        |n: usize, size: usize| part(n, size).iter().fold(0u32, |all, b| all << 8 | u32::from(*b));
    let (count, low, high) = match qualifier & 0x0f {
        form @ 0..=5 => {
            let record = RANGES[usize::from(form)];
            let size = 1 << (form % 3);
            Record::new(record, d.rest()).all(2 * size)?;
            d.at += 2 * size;
            // A range of addresses does not determine the number of objects.
            if form < 3 {
                let (low, high) = (number(0, size), number(1, size));
                (high.wrapping_sub(low).wrapping_add(1) as i32, low, high)
            } else {
                (0, big_endian(0, size), big_endian(1, size))
            }
        }
        6 => (0, 0xffff, 0xffff),
        7 => {
            d.upto("range_field_7", 1)?;
            (number(0, 1) as i32, number(0, 1), 0)
        }
        8 => {
            d.upto("range_field_8", 2)?;
            (number(0, 2) as i32, big_endian(0, 2), 0)
        }
        9 => {
            d.upto("range_field_9", 4)?;
            (number(0, 4) as i32, big_endian(0, 4), 0)
        }
        0x0b => {
            d.upto("range_field_b", 1)?;
            (number(0, 1) as i32, number(0, 1), 0)
        }
        _ => {
            d.at = data.len();
            (0, 0, 0)
        }
    };
    report(visit, MessagePart::Header { kind, qualifier, number: count as u32, low, high });
    let (record, object_record) = match from {
        Dir::Orig => ("Request_Objects", "Request_Data_Object"),
        Dir::Resp => ("Response_Objects", "Response_Data_Object"),
    };
    let Some((field, packed)) = objects_field(from, kind) else { return Ok(d.rest()) };
    // Packed objects take one bit each.
    let count = if packed { count / 8 + i32::from(count > count / 8 * 8) } else { count };
    let mut rest = d.rest();
    let error = |have| OutOfBound::new(record, field, i64::from(count), have);
    let count = usize::try_from(count).map_err(|_| error(data.len()))?;
    if count > rest.len() {
        return Err(error(rest.len()));
    }
    for _ in 0..count {
        let mut o = Record::new(object_record, rest);
        object(&mut o, from, function, (kind, qualifier), visit)?;
        if o.at == 0 {
            // The other objects are empty as well, and only relevant for a listener.
            if visit.is_none() {
                break;
            }
            if *empty == 0 {
                report(visit, MessagePart::TooManyEmpty);
                break;
            }
            *empty -= 1;
        }
        rest = o.rest();
    }
    Ok(rest)
}

/// Name of Zeek's field for the objects after a header, and whether they are packed; `None` if no objects follow.
fn objects_field(from: Dir, kind: u16) -> Option<(&'static str, bool)> {
    if from == Dir::Resp {
        return Some(match kind {
            0x0101 => ("biwoflag", true),
            0x0301 => ("diwoflag", true),
            0x0a01 => ("bowoflag", true),
            0x0c03 => ("bocmd_PM", true),
            _ => ("objects", false),
        });
    }
    let field = match kind {
        0x0c01 => "g12v1_objs",
        0x0c02 => "g12v2_objs",
        0x0c03 => return Some(("bocmd_PM", true)),
        0x3201 => "g50v1_objs",
        0x3202 => "g50v2_objs",
        0x3203 => "g50v3_objs",
        0x3301 => "g51v1_objs",
        0x3302 => "g51v2_objs",
        0x3401 => "g52v1_objs",
        0x3402 => "g52v2_objs",
        0x4601 => "g70v1_objs",
        0x4602 => "g70v2_objs",
        0x4603 => "g70v3_objs",
        0x4604 => "g70v4_objs",
        0x4605 => "g70v5_objs",
        0x4606 => "g70v6_objs",
        0x4607 => "g70v7_objs",
        0x5001 => "g80v1_objs",
        0x7801 => "g120v1_objs",
        0x7802 => "g120v2_objs",
        0x7803 => "g120v3_objs",
        0x7804 => "g120v4_objs",
        0x7805 => "g120v5_objs",
        0x7806 => "g120v6_objs",
        0x7807 => "g120v7_objs",
        0x7808 => "g120v8_objs",
        0x7809 => "g120v9_objs",
        0x780a => "g120v10_objs",
        0x780b => "g120v11_objs",
        0x780c => "g120v12_objs",
        0x780d => "g120v13_objs",
        0x780e => "g120v14_objs",
        0x780f => "g120v15_objs",
        _ => return None,
    };
    Some((field, false))
}

/// Parses an object with its prefix.
fn object<F: FnMut(MessagePart<'_>)>(
    d: &mut Record<'_>,
    from: Dir,
    function: u8,
    (kind, qualifier): (u16, u8),
    visit: &mut Option<F>,
) -> Result<(), OutOfBound> {
    let mut p = Record::new("Prefix_Type", d.data);
    let prefix = match qualifier & 0xf0 {
        0x10 => p.upto("prefix8", 1)?,
        0x20 => p.upto("prefix16", 2)?,
        0x30 => p.upto("prefix32", 4)?,
        0x40 => p.upto("object_size8", 1)?,
        0x50 => p.upto("object_size16", 2)?,
        0x60 => p.upto("object_size32", 4)?,
        _ => &[],
    };
    let prefix = prefix.iter().rev().fold(0u32, |all, b| all << 8 | u32::from(*b));
    d.at = p.at;
    report(visit, MessagePart::Prefix(prefix));
    let mut value = 0xff;
    if number(d, from, kind)? {
        if matches!(kind, 0x0101 | 0x0102 | 0x0a01 | 0x0a02) {
            value = d.data.get(p.at).copied().unwrap_or(value);
        }
    } else {
        let mut o = Record::new("", d.rest());
        if !plain(&mut o, kind)? {
            variable(&mut o, from, function, kind, prefix)?;
        }
        let body = o.data.get(..o.at).unwrap_or_default();
        let part = if has_known_format(from, kind) {
            MessagePart::Object { kind, body }
        } else {
            MessagePart::Rest(body)
        };
        report(visit, part);
        d.at += o.at;
    }
    if from == Dir::Resp {
        report(visit, MessagePart::End(value));
    }
    Ok(())
}

/// Whether the format of an object that is not a single number is known. Any other object takes all remaining bytes.
fn has_known_format(from: Dir, kind: u16) -> bool {
    let is_plain = plain(&mut Record::new("", &[]), kind) != Ok(false);
    let [group, _] = kind.to_be_bytes();
    let is_variable = matches!(
        kind,
        0x3201..=0x3203
            | 0x3301
            | 0x3302
            | 0x4601..=0x4607
            | 0x5201
            | 0x5301
            | 0x5302
            | 0x5b01
            | 0x7801..=0x780f
    );
    is_plain
        || is_variable
        || matches!(group, 0x6e..=0x71)
        || is_attribute(kind)
        || matches!((from, kind), (Dir::Resp, 0x0301) | (Dir::Orig, 0x5001))
}

/// Whether an object is a device attribute (group 0).
fn is_attribute(kind: u16) -> bool {
    matches!(kind, 0x00d3..=0x00f3 | 0x00f5..=0x00fa | 0x00fc | 0x00fe | 0x00ff)
}

/// Parses an object that is a single number. Returns whether it is one.
fn number(d: &mut Record<'_>, from: Dir, kind: u16) -> Result<bool, OutOfBound> {
    let (field, n) = match kind {
        0x0101 => ("biwoflag", 1),
        0x0102 => ("biwflag", 1),
        0x0201 => ("biewoflag", 1),
        0x0302 => ("dbiflag", 1),
        0x0a01 => ("bowoflag", 1),
        0x0a02 => ("bowflag", 1),
        0x0b01 => ("boewflag", 1),
        0x0c03 => ("bocmd_PM", 1),
        0x0d01 => ("boceFlag", 1),
        0x2201 => ("ai_dead_16", 2),
        0x2202 => ("ai_dead_32", 4),
        0x2203 => ("ai_dead_sp", 4),
        0x3401 => ("time_coarse", 2),
        0x3402 => ("time_fine", 2),
        0x5001 if from == Dir::Resp => ("iin", 2),
        0x5602 => ("cha", 1),
        0x6501 => ("bcd_small", 2),
        0x6502 => ("bcd_medium", 4),
        0x6601 => ("unsigned_integer", 1),
        0x7804 => ("sessionKeyRequest", 2),
        _ => return Ok(false),
    };
    d.upto(field, n).map(|_| true)
}

/// Parses an object that consists of a few numbers and an optional time. Returns whether it is one.
fn plain(d: &mut Record<'_>, kind: u16) -> Result<bool, OutOfBound> {
    // The name of the record, the name of its last number if a time follows, and the size of the numbers in bytes.
    let (record, last, n) = match kind {
        0x0202 => ("BinInEveAtime", "flag", 1),
        0x0203 => ("BinInEveRtime", "", 3),
        0x0401 => ("DoubleInEveAtime", "flag", 1),
        0x0402 => ("DoubleInEveRtime", "", 3),
        0x0b02 => ("BinOutEveAtime", "flag", 1),
        0x0c01 => ("CROB", "", 11),
        0x0c02 => ("PCB", "", 11),
        0x0d02 => ("BinOutCmdEveAtime", "flag", 1),
        0x1401 => ("Counter32wFlag", "", 5),
        0x1402 => ("Counter16wFlag", "", 3),
        0x1405 => ("Counter32woFlag", "", 4),
        0x1406 => ("Counter16woFlag", "", 2),
        0x1501 => ("FrozenCounter32wFlag", "", 5),
        0x1502 => ("FrozenCounter16wFlag", "", 3),
        0x1505 => ("FrozenCounter32wFlagTime", "count_value", 5),
        0x1506 => ("FrozenCounter16wFlagTime", "count_value", 3),
        0x1509 => ("FrozenCounter32woFlag", "", 4),
        0x150a => ("FrozenCounter16woFlag", "", 2),
        0x1601 | 0x1701 => ("CounterEve32wFlag", "", 5),
        0x1602 | 0x1702 => ("CounterEve16wFlag", "", 3),
        0x1605 | 0x1705 => ("CounterEve32wFlagTime", "count_value", 5),
        0x1606 | 0x1706 => ("CounterEve16wFlagTime", "count_value", 3),
        0x1e01 => ("AnalogInput32wFlag", "", 5),
        0x1e02 => ("AnalogInput16wFlag", "", 3),
        0x1e03 => ("AnalogInput32woFlag", "", 4),
        0x1e04 => ("AnalogInput16woFlag", "", 2),
        0x1e05 => ("AnalogInputSPwFlag", "", 5),
        0x1e06 => ("AnalogInputDPwFlag", "", 9),
        0x1f01 => ("FrozenAnalogInput32wFlag", "", 5),
        0x1f02 => ("FrozenAnalogInput16wFlag", "", 3),
        0x1f03 => ("FrozenAnalogInput32wTime", "frozen_value", 5),
        0x1f04 => ("FrozenAnalogInput16wTime", "frozen_value", 3),
        0x1f05 => ("FrozenAnalogInput32woFlag", "", 4),
        0x1f06 => ("FrozenAnalogInput16woFlag", "", 2),
        0x1f07 => ("FrozenAnalogInputSPwFlag", "", 5),
        0x1f08 => ("FrozenAnalogInputDPwFlag", "", 9),
        0x2001 => ("AnalogInput32woTime", "", 5),
        0x2002 => ("AnalogInput16woTime", "", 3),
        0x2003 => ("AnalogInput32wTime", "value", 5),
        0x2004 => ("AnalogInput16wTime", "value", 3),
        0x2005 => ("AnalogInputSPwoTime", "", 5),
        0x2006 => ("AnalogInputDPwoTime", "", 9),
        0x2007 => ("AnalogInputSPwTime", "value", 5),
        0x2008 => ("AnalogInputDPwTime", "value_high", 9),
        0x2101 => ("FrozenAnaInputEve32woTime", "", 5),
        0x2102 => ("FrozenAnaInputEve16woTime", "", 3),
        0x2103 => ("FrozenAnaInputEve32wTime", "f_value", 5),
        // As in Zeek, the value has four bytes, although the standard has two.
        0x2104 => ("FrozenAnaInputEve16wTime", "f_value", 5),
        0x2105 => ("FrozenAnaInputEveSPwoTime", "", 5),
        0x2106 => ("FrozenAnaInputEveDPwoTime", "", 9),
        0x2107 => ("FrozenAnaInputEveSPwTime", "f_value", 5),
        0x2108 => ("FrozenAnaInputEveDPwTime", "f_value_high", 9),
        0x2801 => ("AnaOutStatus32", "", 5),
        0x2802 => ("AnaOutStatus16", "", 3),
        0x2803 => ("AnaOutStatusSP", "", 5),
        0x2804 => ("AnaOutStatusDP", "", 9),
        0x2901 => ("AnaOut32", "", 5),
        0x2902 => ("AnaOut16", "", 3),
        0x2903 => ("AnaOutSP", "", 5),
        0x2904 => ("AnaOutDP", "", 9),
        0x2a01 | 0x2b01 => ("AnaOutEve32woTime", "", 5),
        0x2a02 | 0x2b02 => ("AnaOutEve16woTime", "", 3),
        0x2a03 | 0x2b03 => ("AnaOutEve32wTime", "value", 5),
        0x2a04 | 0x2b04 => ("AnaOutEve16wTime", "value", 3),
        0x2a05 | 0x2b05 => ("AnaOutEveSPwoTime", "", 5),
        0x2a06 | 0x2b06 => ("AnaOutEveDPwoTime", "", 9),
        0x2a07 | 0x2b07 => ("AnaOutEveSPwTime", "value", 5),
        0x2a08 | 0x2b08 => ("AnaOutEveDPwTime", "value_high", 9),
        0x5101 => ("Dev_Store", "", 3),
        0x5501 | 0x5601 => ("DescEle", "", 5),
        0x6503 => ("BCD_Large", "", 8),
        _ => return Ok(false),
    };
    d.record = record;
    d.upto(last, n)?;
    if !last.is_empty() {
        d.upto("time48", 6)?;
    }
    Ok(true)
}

/// Parses an object with strings or lists, or of an unknown format.
fn variable(
    d: &mut Record<'_>,
    from: Dir,
    function: u8,
    kind: u16,
    prefix: u32,
) -> Result<(), OutOfBound> {
    // As in Zeek, sizes are signed numbers of 32 bits, or of 16 bits in records that store no more.
    let less = |n: u32| i64::from(prefix.wrapping_sub(n) as i32);
    let short = i64::from(prefix as u16);
    let [group, variation] = kind.to_be_bytes();
    match kind {
        _ if is_attribute(kind) => {
            d.record = "AttributeCommon";
            let head = d.upto("leng", 2)?;
            d.string("attribute_obj", i64::from(head[1]))
        }
        0x3201 | 0x3301 | 0x3302 => {
            d.record = "AbsTime";
            d.string("time48", 6)
        }
        0x3202 => {
            d.record = "AbsTimeInterval";
            d.string("time48", 6)?;
            d.upto("interval", 4).map(drop)
        }
        0x3203 => {
            d.record = "Last_AbsTime";
            d.string("time48", 6)
        }
        0x4601 => {
            d.record = "File_Control_ID";
            d.upto("file_size", 12)?;
            d.string("time_create", 6)?;
            d.upto("status_code", 16)?;
            d.string("file_name", d.length_at(0))?;
            d.at = d.data.len();
            Ok(())
        }
        // A request carries this object only with the function AUTHENTICATE_FILE.
        0x4602 if from == Dir::Orig && function != 0x1d => Ok(()),
        0x4602 => {
            d.record = "File_Control_Auth";
            d.upto("auth_key", 12)?;
            d.string("usr_name", d.length_at(2))?;
            d.string("pwd", d.length_at(6))
        }
        0x4603 => {
            d.record = "File_Control_Cmd";
            d.upto("name_size", 4)?;
            d.string("time_create", 6)?;
            d.upto("req_id", 16)?;
            d.string("file_name", d.length_at(2))
        }
        0x4604 => {
            d.record = "File_Control_Cmd_Status";
            d.upto("status_code", 13)?;
            d.string("opt_text", less(13))
        }
        0x4605 => {
            d.record = "File_Transport";
            d.upto("block_num", 8)?;
            d.string("file_data", less(8))
        }
        0x4606 => {
            d.record = "File_Transport_Status";
            d.upto("status", 9)?;
            d.string("opt_text", less(9))
        }
        0x4607 => {
            d.record = "File_Desc";
            d.upto("req_id", 20)?;
            d.string("f_name", d.length_at(2))
        }
        0x5201 => {
            d.record = "Dev_Profile";
            d.upto("count", 10)?;
            d.list("dev_headers", d.u16_at(8), 4)
        }
        0x5301 => {
            d.record = "PrivRegObj";
            d.upto("len", 8)?;
            d.string("data_objs", d.length_at(6))
        }
        0x5302 => {
            d.record = "PrivRegObjDesc";
            d.upto("count", 8)?;
            d.list("data_objs", d.u16_at(6), 4)
        }
        0x5b01 => activation(d),
        0x7801 => {
            d.record = "AuthChallenge";
            d.upto("reason", 8)?;
            d.string("chan_data", short - 8)
        }
        0x7802 => {
            d.record = "AuthReply";
            d.upto("user_num", 6)?;
            d.string("mac", short - 6)
        }
        0x7803 => {
            d.record = "AuthAggrRequest";
            d.all(6).map(drop)
        }
        0x7805 => {
            d.record = "AuthSessionKeyStatus";
            d.upto("cha_data_len", 11)?;
            let n = d.length_at(9);
            d.string("chan_data", n)?;
            d.string("mac", short - 11 - n)
        }
        0x7806 => {
            d.record = "AuthSessionKeyChange";
            d.upto("user_num", 6)?;
            d.string("key_wrap_data", short - 6)
        }
        0x7807 => {
            d.record = "AuthError";
            d.upto("error_code", 9)?;
            d.string("time_error", 6)?;
            d.string("error_text", short - 15)
        }
        0x7808 => {
            d.record = "UserCert";
            d.upto("cert_type", 2)?;
            d.string("cert_text", short - 2)
        }
        0x7809 => {
            d.record = "MAC";
            d.string("mac_text", short)
        }
        0x780a => {
            d.record = "UserStatusChange";
            d.upto("cert_data_len", 16)?;
            d.string("user_name", d.length_at(10))?;
            d.string("user_pubkey", d.length_at(12))?;
            d.string("cert_data", d.length_at(14))
        }
        0x780b => {
            d.record = "UpdateKeyReq";
            d.upto("master_cha_data_len", 5)?;
            d.string("user_name", d.length_at(1))?;
            d.string("master_cha_data", d.length_at(3))
        }
        0x780c => {
            d.record = "UpdateKeyRep";
            d.upto("outstation_cha_data_len", 10)?;
            d.string("outstation_cha_data", d.length_at(8))
        }
        0x780d => {
            d.record = "UpdateKey";
            d.upto("update_key_len", 8)?;
            d.string("update_key_data", d.length_at(6))
        }
        0x780e => {
            d.record = "UpdateKeySig";
            d.string("digital_sig", short)
        }
        0x780f => {
            d.record = "UpdateKeyCon";
            d.string("mac", short)
        }
        // Octet strings, whose length is the variation.
        _ if (0x6e..=0x71).contains(&group) => {
            d.record = "Default_Wrap";
            let names = ["oct_str", "oct_str_eve", "vir_ter_out_blk", "vir_ter_eve"];
            d.string(names[usize::from(group - 0x6e)], i64::from(variation))
        }
        // All other groups take the remaining bytes.
        _ => {
            d.at = d.data.len();
            Ok(())
        }
    }
}

/// Parses the status of an activation (group 91).
fn activation(d: &mut Record<'_>) -> Result<(), OutOfBound> {
    d.record = "ActivateConf";
    let head = d.upto("count", 5)?;
    let (count, remaining) = (head[4], d.rest().len());
    if usize::from(count) > remaining {
        return Err(OutOfBound::new(d.record, "elements", i64::from(count), remaining));
    }
    for _ in 0..count {
        let mut e = Record::new("StatusEle", d.rest());
        let head = e.upto("status_code", 2)?;
        e.string("ancillary", i64::from(head[0]) - 1)?;
        d.at += e.at;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(from: Dir, message: &[u8]) -> String {
        let e = check(from, message).map_or_else(|e| e.to_string(), |()| String::new());
        e.replace(crate::support::BINPAC, "")
    }

    #[test]
    fn headers() {
        use Dir::{Orig, Resp};
        assert_eq!(error(Orig, b"\xc0"), "out_of_bound: DNP3_Application_Request_Header: 2 > 1");
        assert_eq!(
            error(Resp, b"\xc0\x81\0"),
            "out_of_bound: DNP3_Application_Response_Header: 4 > 3"
        );
        // Class data of all objects, twice.
        assert_eq!(error(Orig, b"\xc0\x01\x3c\x02\x06\x3c\x03\x06"), "");
        let short = "out_of_bound: Object_Header:qualifier_field: 3 > 2";
        assert_eq!(error(Orig, b"\xc0\x01\x3c\x02\x06\x3c\x03"), short);
        assert_eq!(error(Orig, b"\xc0\x01\x1e\x02\0\x01"), "out_of_bound: Range_Field_0: 2 > 1");
        assert_eq!(
            error(Orig, b"\xc0\x01\x3c\x02\x08\x01"),
            "out_of_bound: Object_Header:range_field_8: 5 > 4"
        );
        // A confirmation has no objects; those of an unknown function are not parsed.
        assert_eq!(error(Orig, b"\xc0\0\xff"), "");
        assert_eq!(error(Resp, b"\xc0\x70\0\0\xff"), "");
        // An unknown qualifier takes the rest.
        assert_eq!(error(Orig, b"\xc0\x01\x1e\x02\x0f\x01"), "");
    }

    #[test]
    fn objects_of_responses() {
        use Dir::Resp;
        // Two analog inputs of three bytes, then nine packed bits.
        let mut m = b"\xc0\x81\0\0\x1e\x02\0\x03\x04\x01aa\x01bb\x01\x01\x07\x09\xff\x01".to_vec();
        assert_eq!(error(Resp, &m), "");
        m.pop();
        assert_eq!(error(Resp, &m), "out_of_bound: Response_Objects:biwoflag: 2 > 1");
        let m = b"\xc0\x81\0\0\x1e\x02\0\x03\x04\x01aa\x01b";
        assert_eq!(error(Resp, m), "out_of_bound: AnalogInput16wFlag: 3 > 2");
        // A range whose end precedes its start, with objects that have an index prefix.
        let m = b"\xc0\x81\0\0\x1e\x02\0\x04\x02";
        assert_eq!(error(Resp, m), "out_of_bound: Response_Objects:objects: -1 > 5");
        let m = b"\xc0\x81\0\0\x02\x02\x28\x01\0\x05\0\x81123456";
        assert_eq!(error(Resp, m), "");
        assert_eq!(error(Resp, &m[..m.len() - 1]), "out_of_bound: BinInEveAtime:time48: 7 > 6");
        assert_eq!(error(Resp, &m[..11]), "out_of_bound: BinInEveAtime:flag: 1 > 0");
        assert_eq!(error(Resp, &m[..10]), "out_of_bound: Prefix_Type:prefix16: 2 > 1");
        // One number is expected after a prefix.
        let m = b"\xc0\x81\0\0\x50\x01\x17\x01\x07\x01";
        assert_eq!(error(Resp, m), "out_of_bound: Response_Data_Object:iin: 3 > 2");
        // Octets by variation; unknown objects take the remaining bytes.
        assert_eq!(error(Resp, b"\xc0\x81\0\0\x6e\x03\0\0\0abc"), "");
        assert_eq!(
            error(Resp, b"\xc0\x81\0\0\x6e\x03\0\0\0ab"),
            "out_of_bound: Default_Wrap:oct_str: 3 > 2"
        );
        assert_eq!(error(Resp, b"\xc0\x81\0\0\xc8\x03\0\0\0ab"), "");
    }

    #[test]
    fn files_and_strings() {
        use Dir::{Orig, Resp};
        let m = b"\xc0\x81\0\0\x46\x05\x5b\x01\x0a\0\x01\0\0\0\0\0\0\0ab";
        assert_eq!(error(Resp, m), "");
        let m = b"\xc0\x81\0\0\x46\x05\x5b\x01\x07\0\x01\0\0\0\0\0\0\0ab";
        assert_eq!(error(Resp, m), "out_of_bound: File_Transport:file_data: 7 > 10");
        // A complete and a truncated control relay output block.
        let m = b"\xc0\x03\x0c\x01\x17\x01\x05\x03\x01\x64\0\0\0\x64\0\0\0\0";
        assert_eq!(error(Orig, m), "");
        assert_eq!(error(Orig, &m[..m.len() - 1]), "out_of_bound: CROB: 11 > 10");
        // File authentication is parsed only in requests with that function.
        assert_eq!(error(Orig, b"\xc0\x19\x46\x02\x07\x01\x3c\x02\x06"), "");
        let m = b"\xc0\x81\0\0\x5b\x01\x07\x01\0\0\0\0\x02\x02\x07x\0\x07";
        assert_eq!(error(Resp, m), "out_of_bound: StatusEle:ancillary: 1 > 2");
    }
}
