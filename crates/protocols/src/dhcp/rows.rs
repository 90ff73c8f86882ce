//! The row of dhcp.log.

use gannet_base::Dir;

use super::events::DhcpMessage;
use super::shared::Parts;
use super::shared::Seen;
use crate::Context;
use crate::Env;
use crate::OnEvent;
use crate::Tag;
use crate::policy::software::DetectedSoftware;

/// Adds messages to the transactions, which all connections share.
pub(super) struct Rows;

impl OnEvent<DhcpMessage<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &DhcpMessage<'_>) {
        let from = if event.is_orig { Dir::Orig } else { Dir::Resp };
        let (uid, id, now) = (cx.conn.uid, cx.conn.id, cx.now);
        add_message(cx.env, Seen { now, uid, id, from }, (&event.msg, &event.options));
    }
}

/// Adds a message to its transaction, and ends the transaction if its row is full.
fn add_message(env: &mut Env, seen: Seen, message: Parts<'_>) {
    let Env { dhcp, logs, weirds, pending, .. } = &mut *env;
    dhcp.add(logs, weirds, pending.of(Tag::Dhcp), seen, message);
    if env.policy.is_some() {
        record_software(env, seen, message);
    }
    env.dhcp.end_if_full(&mut env.logs, message.0.xid);
}

/// Records and reports the software of the sender that a message names.
fn record_software(env: &mut Env, seen: Seen, message: Parts<'_>) {
    env.dhcp.record_software(seen, message);
    if let (Some(text), false, Some(mut policy)) =
        (message.1.vendor_class, seen.from.is_orig(), env.policy())
    {
        let detected =
            DetectedSoftware { host: seen.id.resp_h, port: None, kind: "DHCP::SERVER", text };
        policy.software(seen.now, &detected);
    }
}
