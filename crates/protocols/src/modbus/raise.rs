//! Messages as events.

use gannet_base::Dir;

use super::events::*;
use super::message::Header;
use super::rows::Rows;
use crate::Context;
use crate::support::Bytes;

/// What a coil's value is when it is set.
const ON: u16 = 0xff00;

fn headers(h: &Header) -> Headers {
    Headers {
        tid: h.transaction,
        pid: 0,
        uid: h.unit.into(),
        function_code: h.function.into(),
        len: h.length.into(),
    }
}

/// Raises the event of a header.
#[inline]
pub(super) fn header(cx: &mut Context<'_>, rows: &mut Rows, from: Dir, h: &Header) {
    let is_orig = from.is_orig();
    cx.report(rows, |c| ModbusMessage { c, headers: headers(h), is_orig });
}

/// Raises the event of an exception, the body of a response.
pub(super) fn exception(cx: &mut Context<'_>, rows: &mut Rows, h: &Header, body: &[u8]) {
    if let Some(code) = body.first() {
        cx.report(rows, |c| ModbusException { c, headers: headers(h), code: (*code).into() });
    }
}

/// States of coils: at most as many as `count` says, a bit each.
fn coils(bytes: &[u8], count: usize) -> Vec<bool> {
    let bits = bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 != 0));
    bits.take(count).collect()
}

fn registers(bytes: &[u8]) -> Vec<u16> {
    bytes.as_chunks().0.iter().map(|r| u16::from_be_bytes(*r)).collect()
}

/// Raises the event of a body, but for [exceptions](exception), that was [checked](super::message::check).
pub(super) fn body(cx: &mut Context<'_>, from: Dir, h: &Header, body: &[u8]) {
    if cx.env.logs.events.any() {
        // A body that is too short for its function was reported already.
        let _ = match from {
            _ if matches!(h.function, 0x14 | 0x15) => file_records(cx, from, h, Bytes(body)),
            Dir::Orig => request(cx, h, Bytes(body)),
            Dir::Resp => response(cx, h, Bytes(body)),
        };
    }
}

/// Raises the event of records of files.
fn file_records(cx: &mut Context<'_>, from: Dir, h: &Header, mut b: Bytes<'_>) -> Option<()> {
    let headers = headers(h);
    let byte_count = b.u8()?;
    let mut b = Bytes(b.take(byte_count.into())?);
    let byte_count = byte_count.into();
    match (h.function, from) {
        (0x14, Dir::Orig) => cx.raise(|c| {
            let refs = std::iter::from_fn(|| file_record_request(&mut b)).collect();
            ModbusReadFileRecordRequest { c, headers, byte_count, refs }
        }),
        (0x14, Dir::Resp) => cx.raise(|c| {
            let refs = std::iter::from_fn(|| file_record_response(&mut b)).collect();
            ModbusReadFileRecordResponse { c, headers, byte_count, refs }
        }),
        (_, Dir::Orig) => cx.raise(|c| {
            let refs = std::iter::from_fn(|| file_reference(&mut b)).collect();
            ModbusWriteFileRecordRequest { c, headers, byte_count, refs }
        }),
        (_, Dir::Resp) => cx.raise(|c| {
            let refs = std::iter::from_fn(|| file_reference(&mut b)).collect();
            ModbusWriteFileRecordResponse { c, headers, byte_count, refs }
        }),
    }
    Some(())
}

fn file_record_request(b: &mut Bytes<'_>) -> Option<FileRecordRequest> {
    let (ref_type, file_num, record_num) = (b.u8()?.into(), b.u16()?, b.u16()?);
    Some(FileRecordRequest { ref_type, file_num, record_num, record_len: b.u16()? })
}

fn file_record_response<'a>(b: &mut Bytes<'a>) -> Option<FileRecordResponse<'a>> {
    let (len, ref_type) = (b.u8()?, b.u8()?.into());
    let record_data = b.take(len.into())?;
    Some(FileRecordResponse { file_len: len.into(), ref_type, record_data })
}

fn file_reference<'a>(b: &mut Bytes<'a>) -> Option<FileReference<'a>> {
    let (ref_type, file_num, record_num, record_len) =
        (b.u8()?.into(), b.u16()?, b.u16()?, b.u16()?);
    let record_data = b.take(2 * usize::from(record_len))?;
    Some(FileReference { ref_type, file_num, record_num, record_len, record_data })
}

fn request(cx: &mut Context<'_>, h: &Header, mut b: Bytes<'_>) -> Option<()> {
    let headers = headers(h);
    let first = match h.function {
        0x2b => {
            let mei_type = b.u8()?.into();
            let data = b.rest();
            cx.raise(|c| ModbusEncapRequest { c, headers, mei_type, data });
            return Some(());
        }
        1..=6 | 8 | 0x0f | 0x10 | 0x16 | 0x17 | 0x18 => b.u16()?,
        _ => return None,
    };
    match h.function {
        1..=4 => {
            let (start_address, quantity) = (first, b.u16()?);
            match h.function {
                1 => cx.raise(|c| ModbusReadCoilsRequest { c, headers, start_address, quantity }),
                2 => cx.raise(|c| ModbusReadDiscreteInputsRequest {
                    c,
                    headers,
                    start_address,
                    quantity,
                }),
                3 => cx.raise(|c| ModbusReadHoldingRegistersRequest {
                    c,
                    headers,
                    start_address,
                    quantity,
                }),
                _ => cx.raise(|c| ModbusReadInputRegistersRequest {
                    c,
                    headers,
                    start_address,
                    quantity,
                }),
            }
        }
        5 => {
            let (address, value) = (first, b.u16()? == ON);
            cx.raise(|c| ModbusWriteSingleCoilRequest { c, headers, address, value });
        }
        6 => {
            let (address, value) = (first, b.u16()?);
            cx.raise(|c| ModbusWriteSingleRegisterRequest { c, headers, address, value });
        }
        8 => {
            let (subfunction, data) = (first, b.rest());
            cx.raise(|c| ModbusDiagnosticsRequest { c, headers, subfunction, data });
        }
        0x0f => {
            let (start_address, count, bytes) = (first, b.u16()?, b.u8()?);
            let coils = coils(b.take(bytes.into())?, count.into());
            cx.raise(|c| ModbusWriteMultipleCoilsRequest { c, headers, start_address, coils });
        }
        0x10 => {
            let (start_address, _, bytes) = (first, b.u16()?, b.u8()?);
            let registers = registers(b.take(bytes.into())?);
            cx.raise(|c| ModbusWriteMultipleRegistersRequest {
                c,
                headers,
                start_address,
                registers,
            });
        }
        0x16 => {
            let (address, and_mask, or_mask) = (first, b.u16()?, b.u16()?);
            cx.raise(|c| ModbusMaskWriteRegisterRequest { c, headers, address, and_mask, or_mask });
        }
        0x17 => {
            let (read_start_address, read_quantity) = (first, b.u16()?);
            let (write_start_address, _, bytes) = (b.u16()?, b.u16()?, b.u8()?);
            let write_registers = registers(b.take(bytes.into())?);
            cx.raise(|c| ModbusReadWriteMultipleRegistersRequest {
                c,
                headers,
                read_start_address,
                read_quantity,
                write_start_address,
                write_registers,
            });
        }
        _ => cx.raise(|c| ModbusReadFifoQueueRequest { c, headers, start_address: first }),
    }
    Some(())
}

fn response(cx: &mut Context<'_>, h: &Header, mut b: Bytes<'_>) -> Option<()> {
    let headers = headers(h);
    match h.function {
        1 | 2 => {
            let bytes = usize::from(b.u8()?);
            let coils = coils(b.take(bytes)?, 8 * bytes);
            if h.function == 1 {
                cx.raise(|c| ModbusReadCoilsResponse { c, headers, coils });
            } else {
                cx.raise(|c| ModbusReadDiscreteInputsResponse { c, headers, coils });
            }
        }
        3 | 4 | 0x17 => {
            let bytes = usize::from(b.u8()?);
            let registers = registers(b.take(bytes)?);
            match h.function {
                3 => cx.raise(|c| ModbusReadHoldingRegistersResponse { c, headers, registers }),
                4 => cx.raise(|c| ModbusReadInputRegistersResponse { c, headers, registers }),
                _ => cx.raise(|c| ModbusReadWriteMultipleRegistersResponse {
                    c,
                    headers,
                    written_registers: registers,
                }),
            }
        }
        5 => {
            let (address, value) = (b.u16()?, b.u16()? == ON);
            cx.raise(|c| ModbusWriteSingleCoilResponse { c, headers, address, value });
        }
        6 => {
            let (address, value) = (b.u16()?, b.u16()?);
            cx.raise(|c| ModbusWriteSingleRegisterResponse { c, headers, address, value });
        }
        8 => {
            let (subfunction, data) = (b.u16()?, b.rest());
            cx.raise(|c| ModbusDiagnosticsResponse { c, headers, subfunction, data });
        }
        0x0f | 0x10 => {
            let (start_address, quantity) = (b.u16()?, b.u16()?);
            if h.function == 0x0f {
                cx.raise(|c| ModbusWriteMultipleCoilsResponse {
                    c,
                    headers,
                    start_address,
                    quantity,
                });
            } else {
                cx.raise(|c| ModbusWriteMultipleRegistersResponse {
                    c,
                    headers,
                    start_address,
                    quantity,
                });
            }
        }
        0x16 => {
            let (address, and_mask, or_mask) = (b.u16()?, b.u16()?, b.u16()?);
            cx.raise(|c| ModbusMaskWriteRegisterResponse {
                c,
                headers,
                address,
                and_mask,
                or_mask,
            });
        }
        0x18 => {
            let (_, count) = (b.u16()?, b.u16()?);
            let fifos = registers(b.take(2 * usize::from(count))?);
            cx.raise(|c| ModbusReadFifoQueueResponse { c, headers, fifos });
        }
        0x2b => {
            let mei_type = b.u8()?.into();
            let data = b.rest();
            cx.raise(|c| ModbusEncapResponse { c, headers, mei_type, data });
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use gannet_base::Proto;

    use super::*;
    use crate::testing::Harness;

    #[test]
    fn records_of_files() {
        let mut h = Harness::new(Proto::Tcp, 502);
        h.listen("modbus_");
        let mut event = |from, function, bytes: &[u8]| {
            let header = Header { transaction: 1, length: 2, unit: 3, function };
            body(&mut h.cx(), from, &header, bytes);
            let [event] = &h.events()[..] else { panic!() };
            let at = event.find("\"byte_count\"").unwrap();
            event[at..].trim_end_matches('}').to_owned()
        };
        assert_eq!(
            event(Dir::Orig, 0x14, b"\x07\x06\x00\x04\x00\x01\x00\x02"),
            r#""byte_count":7,"refs":[{"ref_type":6,"file_num":4,"record_num":1,"record_len":2}]"#
        );
        assert_eq!(
            event(Dir::Resp, 0x14, b"\x08\x02\x06ab\x02\x06cd"),
            r#""byte_count":8,"refs":[{"file_len":2,"ref_type":6,"record_data":"ab"},{"file_len":2,"ref_type":6,"record_data":"cd"}]"#
        );
        let written = r#""byte_count":9,"refs":[{"ref_type":6,"file_num":4,"record_num":7,"record_len":1,"record_data":"ab"}]"#;
        let bytes = b"\x09\x06\x00\x04\x00\x07\x00\x01ab";
        assert_eq!(event(Dir::Orig, 0x15, bytes), written);
        assert_eq!(event(Dir::Resp, 0x15, bytes), written);
    }

    #[test]
    fn coils_and_registers() {
        assert_eq!(
            coils(&[0b101, 1], 9),
            [true, false, true, false, false, false, false, false, true]
        );
        assert_eq!(coils(&[0xff], 2), [true, true]);
        assert_eq!(registers(&[1, 2, 3, 4, 5]), [0x102, 0x304]);
    }
}
