//! irc.log: one row for each NICK, USER, JOIN and DCC transfer.

use gannet_base::Interval;

use super::events::*;
use super::shared::Endpoint;
use super::shared::IrcRow;
use crate::Context;
use crate::Expected;
use crate::OnEvent;
use crate::Tag;
use crate::stack::events::FileStarts;

/// Time for which an announced transfer is expected.
const EXPECT_TIMEOUT: Interval = Interval::from_secs(300);

/// Returns the announced endpoint, which is the responder of the connection.
pub(super) fn endpoint(cx: &Context<'_>) -> Endpoint {
    (cx.conn.id.resp_h, cx.conn.id.resp_p, cx.conn.is_global())
}

/// The rows of a connection to a server.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// A session was created for the connection.
    has_session: bool,
}

impl Rows {
    /// Returns the row of the session and updates its time.
    fn row<'c>(&mut self, cx: &'c mut Context<'_>) -> &'c mut IrcRow {
        self.has_session = true;
        let (now, uid, id) = (cx.now, cx.conn.uid, cx.conn.id);
        &mut cx.env.irc.session(now, uid, id).row
    }

    /// Ends the session at the end of the connection.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        if self.has_session {
            cx.env.irc.close(cx.conn.uid);
        }
    }
}

impl OnEvent<IrcNickMessage<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &IrcNickMessage<'_>) {
        let row = self.row(cx);
        if event.is_orig {
            row.command = Some("NICK");
            row.value = Some(event.newnick.to_vec());
            let complete = row.clone();
            row.nick = Some(event.newnick.to_vec());
            cx.log(&complete);
        }
    }
}

impl OnEvent<IrcUserMessage<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &IrcUserMessage<'_>) {
        let row = self.row(cx);
        if event.is_orig {
            row.command = Some("USER");
            row.value = Some(event.user.to_vec());
            row.addl = Some([event.host, event.server, event.real_name].join(&b' '));
            let complete = row.clone();
            row.user = Some(event.user.to_vec());
            cx.log(&complete);
        }
    }
}

impl OnEvent<IrcJoinMessage<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &IrcJoinMessage<'_>) {
        let row = self.row(cx);
        if !event.is_orig {
            return;
        }
        row.command = Some("JOIN");
        for join in event.info_list.iter() {
            let row = self.row(cx);
            row.value = Some(join.channel.to_vec());
            row.addl = Some(match join.password {
                [] => Vec::new(),
                key => [b" with channel key: '", key, b"'"].concat(),
            });
            let complete = row.clone();
            cx.log(&complete);
        }
    }
}

impl OnEvent<IrcDccMessage<'_>> for Rows {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &IrcDccMessage<'_>) {
        self.row(cx);
        let (now, uid) = (cx.now, cx.conn.uid);
        if event.dcc_type != b"SEND" {
            return;
        }
        if cx.env.irc.is_full(now) {
            cx.weird("irc_max_dcc_expected_transfers_exceeded", "", None);
            return;
        }
        let row = self.row(cx);
        row.dcc_file_name = Some(event.argument.to_vec());
        row.dcc_file_size = Some(event.size);
        let to = (event.address, event.dest_port);
        cx.env.irc.announce((to.0, to.1, cx.conn.is_global()), uid, now);
        cx.env.expect(
            cx.conn,
            None,
            to,
            Expected { tag: Tag::IrcData, parent: uid, expires: now + EXPECT_TIMEOUT },
            now,
        );
    }
}

/// Completes and writes the row of a transfer, which belongs to the session that offered it.
pub(super) struct Transfer;

impl OnEvent<FileStarts> for Transfer {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &FileStarts) {
        let (to, now) = (endpoint(cx), cx.now);
        if let Some(row) = cx.env.irc.announced(to, now) {
            row.fuid = event.fuid;
        }
    }
}

impl OnEvent<IrcDccFileType> for Transfer {
    fn on_event(&mut self, cx: &mut Context<'_>, event: &IrcDccFileType) {
        let (to, now) = (endpoint(cx), cx.now);
        let Some(row) = cx.env.irc.announced(to, now) else { return };
        let mut complete = row.clone();
        (row.dcc_file_name, row.dcc_file_size, row.dcc_mime_type) = (None, None, None);
        complete.command = Some("DCC");
        complete.dcc_mime_type = event.mime_type.or(complete.dcc_mime_type);
        cx.log(&complete);
        cx.env.irc.forget(to);
    }
}
