use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;

use super::events::Headers;
use super::events::ModbusException;
use super::events::ModbusMessage;
use crate::Context;
use crate::OnEvent;
use crate::context;

gannet_log::row! {
    /// One row for each Modbus message.
    pub struct ModbusRow<'a> = "modbus" {
        /// When it was sent.
        ts: Time = "ts",
        /// Its connection.
        uid: &'a Uid = "uid",
        /// Originator and responder of the connection.
        id: &'a ConnId = "id",
        /// Transaction identifier.
        tid: u16 = "tid",
        /// Unit identifier.
        unit: u64 = "unit",
        /// Function code.
        func: Function = "func",
        /// `REQ` or `RESP`.
        pdu_type: &'static str = "pdu_type",
        /// Reason of the failure.
        exception: Option<Exception> = "exception",
    }
}

/// A function code, written by name.
#[derive(Clone, Copy, Debug)]
pub struct Function(u64);

fn function(code: u64) -> Option<&'static str> {
    Some(match code {
        0x01 => "READ_COILS",
        0x02 => "READ_DISCRETE_INPUTS",
        0x03 => "READ_HOLDING_REGISTERS",
        0x04 => "READ_INPUT_REGISTERS",
        0x05 => "WRITE_SINGLE_COIL",
        0x06 => "WRITE_SINGLE_REGISTER",
        0x07 => "READ_EXCEPTION_STATUS",
        0x08 => "DIAGNOSTICS",
        0x09 => "PROGRAM_484",
        0x0a => "POLL_484",
        0x0b => "GET_COMM_EVENT_COUNTER",
        0x0c => "GET_COMM_EVENT_LOG",
        0x0d => "PROGRAM_584_984",
        0x0e => "POLL_584_984",
        0x0f => "WRITE_MULTIPLE_COILS",
        0x10 => "WRITE_MULTIPLE_REGISTERS",
        0x11 => "REPORT_SLAVE_ID",
        0x12 => "PROGRAM_884_U84",
        0x13 => "RESET_COMM_LINK_884_U84",
        0x14 => "READ_FILE_RECORD",
        0x15 => "WRITE_FILE_RECORD",
        0x16 => "MASK_WRITE_REGISTER",
        0x17 => "READ_WRITE_MULTIPLE_REGISTERS",
        0x18 => "READ_FIFO_QUEUE",
        0x28 => "PROGRAM_CONCEPT",
        0x29 => "MULTIPLE_FUNCTION_CODES",
        0x2b => "ENCAP_INTERFACE_TRANSPORT",
        0x5a => "PROGRAM_UNITY",
        0x5b => "OBJECT_MESSAGING",
        0x7d => "FIRMWARE_REPLACEMENT",
        0x7e => "PROGRAM_584_984_2",
        0x7f => "REPORT_LOCAL_ADDRESS",
        _ => return None,
    })
}

impl Value for Function {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        match function(self.0 & 0x7f) {
            Some(name) if self.0 & 0x80 == 0 => e.plain(name.as_bytes()),
            Some(name) => e.plain(format!("{name}_EXCEPTION").as_bytes()),
            None => e.plain(format!("unknown-{}", self.0).as_bytes()),
        }
    }
}

/// An exception code, written by name.
#[derive(Clone, Copy, Debug)]
pub struct Exception(u64);

impl Value for Exception {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        let name = match self.0 {
            0x01 => "ILLEGAL_FUNCTION",
            0x02 => "ILLEGAL_DATA_ADDRESS",
            0x03 => "ILLEGAL_DATA_VALUE",
            0x04 => "SLAVE_DEVICE_FAILURE",
            0x05 => "ACKNOWLEDGE",
            0x06 => "SLAVE_DEVICE_BUSY",
            0x08 => "MEMORY_PARITY_ERROR",
            0x0a => "GATEWAY_PATH_UNAVAILABLE",
            0x0b => "GATEWAY_TARGET_DEVICE_FAILED_TO_RESPOND",
            n => return e.plain(format!("unknown-{n}").as_bytes()),
        };
        e.plain(name.as_bytes());
    }
}

/// Bit of a function code that marks an exception.
const EXCEPTION: u64 = 0x80;

/// Writes one row per message; the row of an exception is written when its code is known.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Last>);

/// The last header of either side, from which the row of an exception is built.
#[derive(Clone, Copy, Debug)]
struct Last {
    ts: Time,
    is_orig: bool,
    headers: Headers,
}

impl OnEvent<ModbusMessage> for Rows {
    #[inline]
    fn on_event(&mut self, cx: &mut Context<'_>, event: &ModbusMessage) {
        let &ModbusMessage { headers, is_orig, .. } = event;
        let last = Last { ts: cx.now, is_orig, headers };
        self.0 = Some(last);
        let id = cx.conn.id;
        if let Some(mut policy) = cx.env.policy() {
            policy.modbus(cx.now, &id);
        }
        if headers.function_code & EXCEPTION == 0 {
            last.write(cx, None);
        }
    }
}

impl OnEvent<ModbusException> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &ModbusException) {
        if let Some(last) = self.0 {
            last.write(cx, Some(Exception(event.code)));
        }
    }
}

impl Last {
    fn write(self, cx: &mut Context<'_>, exception: Option<Exception>) {
        let Self { ts, is_orig, headers } = self;
        let conn = &*cx.conn;
        let row = move || ModbusRow {
            ts,
            uid: &conn.uid,
            id: &conn.id,
            tid: headers.tid,
            unit: headers.uid,
            func: Function(headers.function_code),
            pdu_type: if is_orig { "REQ" } else { "RESP" },
            exception,
        };
        context::log_every(cx.env, cx.now, row);
    }
}
