use gannet_base::ConnId;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_log::Encoder;
use gannet_log::Type;
use gannet_log::Value;

use super::events::Dnp3ApplicationRequestHeader;
use super::events::Dnp3ApplicationResponseHeader;
use crate::Context;
use crate::OnEvent;

gannet_log::row! {
    /// One row for each request and its response.
    pub struct Dnp3Row = "dnp3" {
        /// Time of the response, or of the request if it has no response.
        ts: Time = "ts",
        /// Identifier of the connection.
        uid: Uid = "uid",
        /// Endpoints of the connection.
        id: ConnId = "id",
        /// Function code of the request.
        fc_request: Option<Function> = "fc_request",
        /// Function code of the response.
        fc_reply: Option<Function> = "fc_reply",
        /// The response's internal indications.
        iin: Option<u16> = "iin",
    }
}

/// A function code, written as its name.
#[derive(Clone, Copy, Debug)]
pub struct Function(u64);

const REQUESTS: [&str; 34] = [
    "CONFIRM",
    "READ",
    "WRITE",
    "SELECT",
    "OPERATE",
    "DIRECT_OPERATE",
    "DIRECT_OPERATE_NR",
    "IMMED_FREEZE",
    "IMMED_FREEZE_NR",
    "FREEZE_CLEAR",
    "FREEZE_CLEAR_NR",
    "FREEZE_AT_TIME",
    "FREEZE_AT_TIME_NR",
    "COLD_RESTART",
    "WARM_RESTART",
    "INITIALIZE_DATA",
    "INITIALIZE_APPL",
    "START_APPL",
    "STOP_APPL",
    "SAVE_CONFIG",
    "ENABLE_UNSOLICITED",
    "DISABLE_UNSOLICITED",
    "ASSIGN_CLASS",
    "DELAY_MEASURE",
    "RECORD_CURRENT_TIME",
    "OPEN_FILE",
    "CLOSE_FILE",
    "DELETE_FILE",
    "GET_FILE_INFO",
    "AUTHENTICATE_FILE",
    "ABORT_FILE",
    "ACTIVATE_CONFIG",
    "AUTHENTICATE_REQ",
    "AUTHENTICATE_REQ_NR",
];

impl Value for Function {
    const TYPE: Type = Type::Scalar("string");

    fn put<E: Encoder>(&self, e: &mut E) {
        let name = match self.0 {
            0x81 => "RESPONSE",
            0x82 => "UNSOLICITED_RESPONSE",
            0x83 => "AUTHENTICATE_RESP",
            n => match usize::try_from(n).ok().and_then(|n| REQUESTS.get(n)) {
                Some(name) => name,
                None => return e.plain(format!("unknown-{n}").as_bytes()),
            },
        };
        e.plain(name.as_bytes());
    }
}

/// Writes a row for each response, and for each request without a response.
#[derive(Debug, Default)]
pub(super) struct Rows(Option<Pending>);

/// A request that waits for its response.
#[derive(Debug)]
struct Pending {
    ts: Time,
    function: Function,
}

impl Rows {
    /// Writes the row of a request without response at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(Pending { ts, function }) = self.0.take() {
            write(cx, ts, Some(function), None, None);
        }
    }
}

impl OnEvent<Dnp3ApplicationRequestHeader> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &Dnp3ApplicationRequestHeader) {
        self.0 = Some(Pending { ts: cx.now, function: Function(event.fc) });
    }
}

impl OnEvent<Dnp3ApplicationResponseHeader> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &Dnp3ApplicationResponseHeader) {
        let request = self.0.take().map(|pending| pending.function);
        write(cx, cx.now, request, Some(Function(event.fc)), Some(event.iin));
    }
}

fn write(
    cx: &mut Context<'_>,
    ts: Time,
    fc_request: Option<Function>,
    fc_reply: Option<Function>,
    iin: Option<u16>,
) {
    let (uid, id) = (cx.conn.uid, cx.conn.id);
    cx.log(&Dnp3Row { ts, uid, id, fc_request, fc_reply, iin });
}
