//! Conversion of message parts to events.

use gannet_base::Dir;

use super::events::*;
use super::part::MessagePart;
use crate::Context;

/// Raises the event of the link header at the start of a message.
pub(super) fn link(cx: &mut Context<'_>, from: Dir, fields: &[u8]) {
    let [_, _, len, ctrl, dest_0, dest_1, src_0, src_1, ..] = *fields else { return };
    cx.raise(|c| Dnp3HeaderBlock {
        c,
        is_orig: from.is_orig(),
        len: len.into(),
        ctrl: ctrl.into(),
        dest_addr: u16::from_le_bytes([dest_0, dest_1]).into(),
        src_addr: u16::from_le_bytes([src_0, src_1]).into(),
    });
}

/// Raises the event of a part of a message.
pub(super) fn part(cx: &mut Context<'_>, from: Dir, part: &MessagePart<'_>) {
    let is_orig = from.is_orig();
    match *part {
        MessagePart::Header { kind, qualifier, number, low, high } => {
            cx.raise(|c| Dnp3ObjectHeader {
                c,
                is_orig,
                obj_type: kind.into(),
                qua_field: qualifier.into(),
                number: number.into(),
                rf_low: low.into(),
                rf_high: high.into(),
            });
        }
        MessagePart::Prefix(prefix) => {
            let prefix_value = prefix.into();
            cx.raise(|c| Dnp3ObjectPrefix { c, is_orig, prefix_value });
        }
        MessagePart::Object { kind, body } => object(cx, is_orig, kind, body),
        MessagePart::Rest(debug) => cx.raise(|c| Dnp3DebugByte { c, is_orig, debug }),
        MessagePart::End(value) => {
            let data_value = value.into();
            cx.raise(|c| Dnp3ResponseDataObject { c, is_orig, data_value });
        }
        MessagePart::TooManyEmpty => cx.weird("dnp3_excessive_empty_objects", "", None),
    }
}

/// A number in little-endian order.
fn le(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, b| all << 8 | u64::from(*b))
}

/// Raises the event of an object, whose length [was checked](super::objects::visit).
fn object(cx: &mut Context<'_>, is_orig: bool, kind: u16, body: &[u8]) {
    let field = |at: usize, n: usize| le(body.get(at..at + n).unwrap_or_default());
    match kind {
        0x0000..=0x00ff => {
            let attribute_obj = body.get(2..).unwrap_or_default();
            let (data_type_code, leng) = (field(0, 1), field(1, 1));
            cx.raise(|c| Dnp3AttributeCommon { c, is_orig, data_type_code, leng, attribute_obj });
        }
        0x0c01 | 0x0c02 => {
            let (control_code, count8, status_code) = (field(0, 1), field(1, 1), field(10, 1));
            let (on_time, off_time) = (field(2, 4), field(6, 4));
            if kind == 0x0c01 {
                cx.raise(|c| Dnp3Crob {
                    c,
                    is_orig,
                    control_code,
                    count8,
                    on_time,
                    off_time,
                    status_code,
                });
            } else {
                cx.raise(|c| Dnp3Pcb {
                    c,
                    is_orig,
                    control_code,
                    count8,
                    on_time,
                    off_time,
                    status_code,
                });
            }
        }
        0x4605 => {
            let file_data = body.get(8..).unwrap_or_default();
            let (file_handle, block_num) = (field(0, 4), field(4, 4));
            cx.raise(|c| Dnp3FileTransport { c, is_orig, file_handle, block_num, file_data });
        }
        _ => point(cx, is_orig, kind, body),
    }
}

/// The fields of a counter or an analog input.
struct Point {
    flag: u64,
    value: u64,
    high: u64,
    time: u64,
}

impl Point {
    fn parse(kind: u16, body: &[u8]) -> Self {
        let [group, variation] = kind.to_be_bytes();
        // Static objects (groups below 32) may lack flags or a time.
        let (has_flag, is_wide, has_time) = match group {
            0x14 | 0x15 => {
                let has_time = matches!(kind, 0x1505 | 0x1506);
                (has_time || variation < 5, false, has_time)
            }
            0x1e => (!matches!(variation, 3 | 4), variation == 6, false),
            0x1f => (!matches!(variation, 5 | 6), variation == 8, matches!(variation, 3 | 4)),
            _ => (true, matches!(variation, 6 | 8), matches!(variation, 3 | 4 | 7 | 8)),
        };
        let (flag, rest) = body.split_at(usize::from(has_flag).min(body.len()));
        let (rest, time) = rest.split_at(rest.len().saturating_sub(if has_time { 6 } else { 0 }));
        let (low, high) = rest.split_at(if is_wide { 4.min(rest.len()) } else { rest.len() });
        Self { flag: le(flag), value: point_value(kind, low), high: le(high), time: le(time) }
    }
}

/// Returns the value of a point. Integer analog inputs are signed: as in Zeek, they are sign-extended to 64 bits.
fn point_value(kind: u16, value: &[u8]) -> u64 {
    let [group, variation] = kind.to_be_bytes();
    let is_float = match group {
        0x1e => variation > 4,
        0x1f => variation > 6,
        _ => variation > 4,
    };
    // Zeek parses these as unsigned numbers.
    let is_count = matches!(group, 0x14 | 0x15);
    let number = le(value);
    match value.len() {
        _ if is_float || is_count => number,
        // Only two of the four bytes count.
        _ if kind == 0x2104 => number as i16 as u64,
        2 => number as i16 as u64,
        4 => number as i32 as u64,
        _ => number,
    }
}

/// Raises the event of a counter or an analog input (groups 20, 21, 30 to 33).
fn point(cx: &mut Context<'_>, is_orig: bool, kind: u16, body: &[u8]) {
    macro_rules! points {
        ($($kind:literal $name:ident { $($field:ident: $part:ident),* })*) => {
            match kind {
                $($kind if cx.wants::<$name>() => {
                    let point = Point::parse(kind, body);
                    cx.raise(|c| $name { c, is_orig, $($field: point.$part),* });
                })*
                _ => {}
            }
        };
    }
    points! {
        0x1401 Dnp3Counter32wFlag { flag: flag, count_value: value }
        0x1402 Dnp3Counter16wFlag { flag: flag, count_value: value }
        0x1405 Dnp3Counter32woFlag { count_value: value }
        0x1406 Dnp3Counter16woFlag { count_value: value }
        0x1501 Dnp3FrozenCounter32wFlag { flag: flag, count_value: value }
        0x1502 Dnp3FrozenCounter16wFlag { flag: flag, count_value: value }
        0x1505 Dnp3FrozenCounter32wFlagTime { flag: flag, count_value: value, time48: time }
        0x1506 Dnp3FrozenCounter16wFlagTime { flag: flag, count_value: value, time48: time }
        0x1509 Dnp3FrozenCounter32woFlag { count_value: value }
        0x150a Dnp3FrozenCounter16woFlag { count_value: value }
        0x1e01 Dnp3AnalogInput32wFlag { flag: flag, value: value }
        0x1e02 Dnp3AnalogInput16wFlag { flag: flag, value: value }
        0x1e03 Dnp3AnalogInput32woFlag { value: value }
        0x1e04 Dnp3AnalogInput16woFlag { value: value }
        0x1e05 Dnp3AnalogInputSPwFlag { flag: flag, value: value }
        0x1e06 Dnp3AnalogInputDPwFlag { flag: flag, value_low: value, value_high: high }
        0x1f01 Dnp3FrozenAnalogInput32wFlag { flag: flag, frozen_value: value }
        0x1f02 Dnp3FrozenAnalogInput16wFlag { flag: flag, frozen_value: value }
        0x1f03 Dnp3FrozenAnalogInput32wTime { flag: flag, frozen_value: value, time48: time }
        0x1f04 Dnp3FrozenAnalogInput16wTime { flag: flag, frozen_value: value, time48: time }
        0x1f05 Dnp3FrozenAnalogInput32woFlag { frozen_value: value }
        0x1f06 Dnp3FrozenAnalogInput16woFlag { frozen_value: value }
        0x1f07 Dnp3FrozenAnalogInputSPwFlag { flag: flag, frozen_value: value }
        0x1f08 Dnp3FrozenAnalogInputDPwFlag { flag: flag, frozen_value_low: value, frozen_value_high: high }
        0x2001 Dnp3AnalogInputEvent32woTime { flag: flag, value: value }
        0x2002 Dnp3AnalogInputEvent16woTime { flag: flag, value: value }
        0x2003 Dnp3AnalogInputEvent32wTime { flag: flag, value: value, time48: time }
        0x2004 Dnp3AnalogInputEvent16wTime { flag: flag, value: value, time48: time }
        0x2005 Dnp3AnalogInputEventSPwoTime { flag: flag, value: value }
        0x2006 Dnp3AnalogInputEventDPwoTime { flag: flag, value_low: value, value_high: high }
        0x2007 Dnp3AnalogInputEventSPwTime { flag: flag, value: value, time48: time }
        0x2008 Dnp3AnalogInputEventDPwTime { flag: flag, value_low: value, value_high: high, time48: time }
        0x2101 Dnp3FrozenAnalogInputEvent32woTime { flag: flag, frozen_value: value }
        0x2102 Dnp3FrozenAnalogInputEvent16woTime { flag: flag, frozen_value: value }
        0x2103 Dnp3FrozenAnalogInputEvent32wTime { flag: flag, frozen_value: value, time48: time }
        0x2104 Dnp3FrozenAnalogInputEvent16wTime { flag: flag, frozen_value: value, time48: time }
        0x2105 Dnp3FrozenAnalogInputEventSPwoTime { flag: flag, frozen_value: value }
        0x2106 Dnp3FrozenAnalogInputEventDPwoTime { flag: flag, frozen_value_low: value, frozen_value_high: high }
        0x2107 Dnp3FrozenAnalogInputEventSPwTime { flag: flag, frozen_value: value, time48: time }
        0x2108 Dnp3FrozenAnalogInputEventDPwTime { flag: flag, frozen_value_low: value, frozen_value_high: high, time48: time }
    }
}
