//! Raises the event of a message.

use gannet_base::Dir;

use super::events::ControlMessage;
use super::events::Message as Record;
use super::events::Mode7Message;
use super::events::NtpMessage;
use super::events::StandardMessage;
use super::message::Body;
use super::message::Control;
use super::message::Message;
use super::message::NtpInterval;
use super::message::NtpTime;
use super::message::Private;
use super::message::Standard;
use super::rows::Rows;
use crate::Context;

/// Length in bytes of a time message before extension fields and authenticator.
const STANDARD_LEN: usize = 48;

/// Raises the event of the message in `data`.
#[inline]
pub(super) fn message(
    cx: &mut Context<'_>,
    rows: &mut Rows,
    from: Dir,
    message: &Message<'_>,
    data: &[u8],
) {
    cx.report(rows, |c| {
        let (mut std_msg, mut control_msg, mut mode7_msg) = (None, None, None);
        match &message.body {
            Body::Standard(m) => std_msg = Some(standard(m, data)),
            Body::Control(m) => control_msg = Some(control(m)),
            Body::Private(m) => mode7_msg = Some(private(m)),
            Body::Reserved => {}
        }
        let (version, mode) = (message.version.into(), message.mode.into());
        let msg = Record { version, mode, std_msg, control_msg, mode7_msg };
        NtpMessage { c, is_orig: from.is_orig(), msg }
    });
}

fn standard<'a>(m: &Standard, data: &'a [u8]) -> StandardMessage<'a> {
    let power = |exponent: i8| NtpInterval(2f64.powi(exponent.into()));
    // An authenticator: key identifier, and a digest of sixteen or twenty bytes.
    let mac = data.get(STANDARD_LEN..).filter(|mac| matches!(mac.len(), 20 | 24));
    let mac = mac.and_then(|mac| mac.split_first_chunk());
    StandardMessage {
        stratum: m.stratum.into(),
        poll: power(m.poll),
        precision: power(m.precision),
        root_delay: NtpInterval(m.root_delay),
        root_disp: NtpInterval(m.root_dispersion),
        kiss_code: (m.stratum == 0).then_some(m.reference_id),
        ref_id: (m.stratum == 1).then_some(m.reference_id),
        ref_addr: m.reference_addr(),
        ref_time: NtpTime(m.reference),
        org_time: NtpTime(m.origin),
        rec_time: NtpTime(m.receive),
        xmt_time: NtpTime(m.transmit),
        key_id: mac.map(|(key, _)| u32::from_be_bytes(*key)),
        digest: mac.map(|(_, digest)| digest),
        num_exts: m.extensions,
    }
}

fn control<'a>(m: &Control<'a>) -> ControlMessage<'a> {
    ControlMessage {
        op_code: m.operation().into(),
        resp_bit: m.response(),
        err_bit: m.error(),
        more_bit: m.more(),
        sequence: m.sequence,
        status: m.status,
        association_id: m.association_id,
        data: non_empty(m.data),
        key_id: m.mac.map(|(key, _)| key),
        crypto_checksum: m.mac.map(|(_, sum)| sum),
    }
}

fn private<'a>(m: &Private<'a>) -> Mode7Message<'a> {
    Mode7Message {
        req_code: m.request.into(),
        auth_bit: m.authenticated,
        sequence: m.sequence.into(),
        implementation: m.implementation.into(),
        err: m.error.into(),
        data: non_empty(m.data),
    }
}

fn non_empty(data: &[u8]) -> Option<&[u8]> {
    (!data.is_empty()).then_some(data)
}
