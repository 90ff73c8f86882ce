//! Raises the events of messages.

use gannet_base::Dir;

use super::events::*;
use super::message::Header;
use super::rows::Rows;
use crate::Context;
use crate::support::Bytes;

/// Value of a coil that is on.
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

/// Raises the event of an exception; its code is the body of a response.
pub(super) fn exception(cx: &mut Context<'_>, rows: &mut Rows, h: &Header, body: &[u8]) {
    if let Some(code) = body.first() {
        cx.report(rows, |c| ModbusException { c, headers: headers(h), code: (*code).into() });
    }
}

/// States of coils, one bit each: at most `count`.
fn coils(bytes: &[u8], count: usize) -> Vec<bool> {
    let bits = bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 != 0));
    bits.take(count).collect()
}

fn registers(bytes: &[u8]) -> Vec<u16> {
    bytes.as_chunks().0.iter().map(|r| u16::from_be_bytes(*r)).collect()
}

/// Registers to write: as many as the message counts, even if it holds more bytes.
fn written(bytes: &[u8], count: u16) -> Vec<u16> {
    bytes.as_chunks().0.iter().take(count.into()).map(|r| u16::from_be_bytes(*r)).collect()
}

/// Whether the event of a single coil has a listener.
pub(super) fn wants_single_coil(cx: &Context<'_>, from: Dir) -> bool {
    match from {
        Dir::Orig => cx.wants::<ModbusWriteSingleCoilRequest>(),
        Dir::Resp => cx.wants::<ModbusWriteSingleCoilResponse>(),
    }
}

/// Checks the data of a diagnostics request, as Zeek does if its event has a handler; returns
/// whether to raise the event.
fn diagnostics(cx: &mut Context<'_>, subfunction: u16, data: &[u8]) -> bool {
    let invalid = |cx: &mut Context<'_>| {
        let addl = if data.contains(&0) { b"<string-with-NUL>" } else { data };
        let env = &mut *cx.env;
        env.weirds.net_bytes(&mut env.logs, cx.now, "modbus_diag_invalid_request_data", addl);
    };
    if data.len() < 2 || !data.len().is_multiple_of(2) || (subfunction != 0 && data.len() != 2) {
        invalid(cx);
        return false;
    }
    let is_valid = match (subfunction, data) {
        (1, _) => matches!(data, [0 | 0xff, 0, ..]),
        (2 | 4 | 0x0a..=0x12 | 0x14, _) => matches!(data, [0, 0, ..]),
        (3, _) => matches!(data, [0..=0x7f, 0, ..]),
        _ => {
            let (env, name) = (&mut *cx.env, "modbus_diag_unknown_request_subfunction");
            env.weirds.net(&mut env.logs, cx.now, name, &subfunction.to_string());
            return true;
        }
    };
    if !is_valid {
        invalid(cx);
    }
    true
}

/// Raises the event of a body that was [checked](super::message::check), except [exceptions](exception).
pub(super) fn body(cx: &mut Context<'_>, from: Dir, h: &Header, body: &[u8]) {
    if cx.env.logs.events.any() {
        // A body that is too short for its function was already reported.
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
            if cx.wants::<ModbusDiagnosticsRequest<'_>>() && diagnostics(cx, subfunction, data) {
                cx.raise(|c| ModbusDiagnosticsRequest { c, headers, subfunction, data });
            }
        }
        0x0f => {
            let (start_address, count, bytes) = (first, b.u16()?, b.u8()?);
            let coils = coils(b.take(bytes.into())?, count.into());
            cx.raise(|c| ModbusWriteMultipleCoilsRequest { c, headers, start_address, coils });
        }
        0x10 => {
            let (start_address, count, bytes) = (first, b.u16()?, b.u8()?);
            let registers = written(b.take(bytes.into())?, count);
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
            let (write_start_address, count, bytes) = (b.u16()?, b.u16()?, b.u8()?);
            let write_registers = written(b.take(bytes.into())?, count);
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
    fn diagnostics_whose_data_are_wrong() {
        let weird = |subfunction: u16, data: &[u8]| {
            let mut h = Harness::new(Proto::Tcp, 502);
            h.listen("modbus_diagnostics_request");
            let header = Header { transaction: 1, length: 2, unit: 3, function: 8 };
            let mut bytes = subfunction.to_be_bytes().to_vec();
            bytes.extend_from_slice(data);
            body(&mut h.cx(), Dir::Orig, &header, &bytes);
            let events = h.events().iter().filter(|e| e.contains("modbus_diagnostics")).count();
            let rows = h.rows("weird");
            assert!(rows.len() < 2);
            (events, rows.first().map(|row| format!("{} {}", row["name"], row["addl"])))
        };
        let invalid = |addl: &str| Some(format!("modbus_diag_invalid_request_data {addl}"));
        assert_eq!(weird(0, b"abcd"), (1, unknown("0")));
        assert_eq!(weird(0, b""), (0, invalid("-")));
        assert_eq!(weird(4, b"\0\0\0\0"), (0, invalid("<string-with-NUL>")));
        assert_eq!(weird(1, b"\xff\0"), (1, None));
        assert_eq!(weird(1, b"a\xff"), (1, invalid("a\\xff")));
        assert_eq!(weird(3, b"a\0"), (1, None));
        assert_eq!(weird(3, b"ab"), (1, invalid("ab")));
        assert_eq!(weird(0x12, b"\0\0"), (1, None));
        assert_eq!(weird(0x13, b"\0\0"), (1, unknown("19")));
    }

    fn unknown(subfunction: &str) -> Option<String> {
        Some(format!("modbus_diag_unknown_request_subfunction {subfunction}"))
    }

    #[test]
    fn registers_to_write_are_as_many_as_counted() {
        let mut h = Harness::new(Proto::Tcp, 502);
        h.listen("modbus_");
        let header = Header { transaction: 1, length: 2, unit: 3, function: 0x10 };
        body(&mut h.cx(), Dir::Orig, &header, b"\0\x07\0\x01\x04\0\x01\0\x02");
        assert!(h.events()[0].contains("\"registers\":[1]"), "{:?}", h.events());
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
