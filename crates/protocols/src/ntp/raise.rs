//! The event of a message.

use gannet_base::Dir;
use gannet_base::Interval;
use gannet_base::Time;

use super::events::ControlMessage;
use super::events::Message as Record;
use super::events::Mode7Message;
use super::events::NtpMessage;
use super::events::StandardMessage;
use super::message::Body;
use super::message::Control;
use super::message::Message;
use super::message::Private;
use super::message::Standard;
use super::rows::micros;
use crate::Context;

/// Bytes of a time message before extension fields and checksum.
const STANDARD_LEN: usize = 48;

/// Raises the event of the message in `data`.
pub(super) fn message(cx: &mut Context<'_>, from: Dir, message: &Message<'_>, data: &[u8]) {
    cx.raise(|c| {
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
    let interval = |seconds: f64| Interval::from_nanos(nanos(seconds));
    let time = |seconds: f64| Time::from_nanos(nanos(seconds));
    let power = |exponent: i8| interval(2f64.powi(exponent.into()));
    // A key, and a checksum of sixteen or twenty bytes.
    let mac = data.get(STANDARD_LEN..).filter(|mac| matches!(mac.len(), 20 | 24));
    let mac = mac.and_then(|mac| mac.split_first_chunk());
    StandardMessage {
        stratum: m.stratum.into(),
        poll: power(m.poll),
        precision: power(m.precision),
        root_delay: interval(m.root_delay),
        root_disp: interval(m.root_dispersion),
        kiss_code: (m.stratum == 0).then_some(m.reference_id),
        ref_id: (m.stratum == 1).then_some(m.reference_id),
        ref_addr: m.reference_addr(),
        ref_time: time(m.reference),
        org_time: time(m.origin),
        rec_time: time(m.receive),
        xmt_time: time(m.transmit),
        key_id: mac.map(|(key, _)| u32::from_be_bytes(*key)),
        digest: mac.map(|(_, digest)| digest),
        num_exts: m.extensions,
    }
}

/// Nanoseconds, rounded to the microseconds that Zeek shows; the latest or earliest where they are too many.
fn nanos(seconds: f64) -> i64 {
    micros(seconds).unwrap_or((seconds * 1e6) as i64).saturating_mul(1_000)
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
        data: some(m.data),
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
        data: some(m.data),
    }
}

fn some(data: &[u8]) -> Option<&[u8]> {
    (!data.is_empty()).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_as_in_the_log() {
        // Six decimals of these doubles: their product with a million is rounded before it can be.
        assert_eq!(nanos(1_497_882_174.945_927_4), 1_497_882_174_945_927_000);
        assert_eq!(nanos(1_497_882_174.372_165_4), 1_497_882_174_372_165_000);
        assert_eq!(nanos(0.0078125), 7_812_000);
        // The interval of the largest exponent of a poll.
        assert_eq!(nanos(2f64.powi(127)), i64::MAX);
        assert_eq!(nanos(-(2f64.powi(127))), i64::MIN);
    }
}
