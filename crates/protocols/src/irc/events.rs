//! Events of IRC.

use std::borrow::Cow;

use gannet_base::Addr;
use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::Packer;
use gannet_event::SetOf;
use gannet_event::Type;

gannet_event::record! {
    /// Who joins a channel.
    #[derive(Clone, Copy, Debug)]
    pub struct JoinInfo<'a> = "irc_join_info" {
        /// The name.
        nick: &'a [u8] = "nick",
        /// The channel.
        channel: &'a [u8] = "channel",
        /// The key.
        password: &'a [u8] = "password",
        /// What the user may do there.
        usermode: &'a [u8] = "usermode",
    }
}

/// Who joins what.
#[derive(Clone, Copy, Debug)]
pub enum Joins<'a> {
    /// A user joins channels.
    Client {
        /// The user.
        nick: &'a [u8],
        /// Channels with their keys.
        channels: &'a [(&'a [u8], &'a [u8])],
    },
    /// A server sends the members of a channel.
    Server {
        /// The channel.
        channel: &'a [u8],
        /// Its members, each with marks of rank.
        users: &'a [&'a [u8]],
    },
}

impl<'a> Joins<'a> {
    /// Each of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = JoinInfo<'a>> + use<'a> {
        let (mut pairs, mut members) = match *self {
            Self::Client { nick, channels } => (Some((nick, channels.iter())), None),
            Self::Server { channel, users } => (None, Some((channel, users.iter()))),
        };
        std::iter::from_fn(move || {
            if let Some((nick, channels)) = &mut pairs {
                let &(channel, password) = channels.next()?;
                return Some(JoinInfo { nick, channel, password, usermode: b"" });
            }
            let (channel, users) = members.as_mut()?;
            let (nick, usermode) = rank(users.next()?);
            Some(JoinInfo { nick, channel, password: b"", usermode })
        })
    }
}

impl Arg for Joins<'_> {
    const TYPE: Type = SetOf::<JoinInfo<'_>>::TYPE;

    fn pack(&self, to: &mut Packer<'_>) {
        to.list(self.iter().count());
        self.iter().for_each(|join| join.pack(to));
    }
}

/// A user of a channel without the marks of rank, and the rank.
fn rank(user: &[u8]) -> (&[u8], &'static [u8]) {
    match user {
        [b'@', b'@', nick @ ..] => (nick, b"creator"),
        [b'@', nick @ ..] => (nick, b"operator"),
        [b'+', nick @ ..] => (nick, b"voice"),
        nick => (nick, b"none"),
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Irc);

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Who sent it.
        prefix: &'a [u8] = "prefix",
    } {
        /// A client's command that no other event reports.
        pub struct IrcRequest<'a> = "irc_request", opt_in {
            /// The command, in upper case.
            command: &'a [u8] = "command",
            /// Its arguments.
            arguments: &'a [u8] = "arguments",
        }

        /// A server's reply that no other event reports.
        pub struct IrcReply<'a> = "irc_reply", opt_in {
            /// Its number.
            code: u16 = "code",
            /// What it says.
            params: &'a [u8] = "params",
        }

        /// A server's command that no other event reports.
        pub struct IrcMessage<'a> = "irc_message", opt_in {
            /// The command, in upper case.
            command: &'a [u8] = "command",
            /// Its arguments.
            message: &'a [u8] = "message",
        }

        /// A server reports an error.
        pub struct IrcErrorMessage<'a> = "irc_error_message", opt_in {
            /// What is wrong.
            message: &'a [u8] = "message",
        }

        /// A user invites another one to a channel.
        pub struct IrcInviteMessage<'a> = "irc_invite_message", opt_in {
            /// Who is invited.
            nickname: &'a [u8] = "nickname",
            /// The channel.
            channel: &'a [u8] = "channel",
        }

        /// A user is removed from a channel.
        pub struct IrcKickMessage<'a> = "irc_kick_message", opt_in {
            /// The channels.
            chans: &'a [u8] = "chans",
            /// Who is removed.
            users: &'a [u8] = "users",
            /// Why.
            comment: Cow<'a, [u8]> = "comment",
        }

        /// The mode of a user or a channel changes.
        pub struct IrcModeMessage<'a> = "irc_mode_message", opt_in {
            /// The user or channel, and the modes.
            params: &'a [u8] = "params",
        }

        /// A server leaves the network.
        pub struct IrcSquitMessage<'a> = "irc_squit_message", opt_in {
            /// The server.
            server: &'a [u8] = "server",
            /// Why.
            message: &'a [u8] = "message",
        }

        /// A user offers another one a connection.
        pub struct IrcDccMessage<'a> = "irc_dcc_message" {
            /// For whom it is.
            target: &'a [u8] = "target",
            /// What the connection is for.
            dcc_type: &'a [u8] = "dcc_type",
            /// A file's name, or a protocol's.
            argument: &'a [u8] = "argument",
            /// Who awaits the connection.
            address: Addr = "address",
            /// On which port.
            dest_port: u16 = "dest_port",
            /// Bytes of the file.
            size: u64 = "size",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Who sent it.
        source: &'a [u8] = "source",
        /// For whom it is.
        target: &'a [u8] = "target",
    } {
        /// A message to a user or channel.
        pub struct IrcPrivmsgMessage<'a> = "irc_privmsg_message", opt_in {
            /// What it says.
            message: &'a [u8] = "message",
        }

        /// A notice to a user or channel.
        pub struct IrcNoticeMessage<'a> = "irc_notice_message", opt_in {
            /// What it says.
            message: &'a [u8] = "message",
        }

        /// A message to a service.
        pub struct IrcSqueryMessage<'a> = "irc_squery_message", opt_in {
            /// What it says.
            message: &'a [u8] = "message",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
    } {
        /// Users join channels.
        pub struct IrcJoinMessage<'a> = "irc_join_message" {
            /// Who joins what.
            info_list: Joins<'a> = "info_list",
        }

        /// A user chooses a name.
        pub struct IrcNickMessage<'a> = "irc_nick_message" {
            /// Who sent it.
            who: &'a [u8] = "who",
            /// The name.
            newnick: &'a [u8] = "newnick",
        }

        /// A user logs in.
        pub struct IrcUserMessage<'a> = "irc_user_message" {
            /// The user.
            user: &'a [u8] = "user",
            /// The client.
            host: &'a [u8] = "host",
            /// The server.
            server: &'a [u8] = "server",
            /// The user's real name.
            real_name: &'a [u8] = "real_name",
        }

        /// A user sends a password.
        pub struct IrcPasswordMessage<'a> = "irc_password_message", opt_in {
            /// The password.
            password: &'a [u8] = "password",
        }

        /// The number of channels.
        pub struct IrcChannelInfo = "irc_channel_info", opt_in {
            /// How many there are.
            chans: u64 = "chans",
        }

        /// The topic of a channel.
        pub struct IrcChannelTopic<'a> = "irc_channel_topic", opt_in {
            /// The channel.
            channel: &'a [u8] = "channel",
            /// Its topic.
            topic: &'a [u8] = "topic",
        }

        /// The number of users of the network.
        pub struct IrcGlobalUsers<'a> = "irc_global_users", opt_in {
            /// The first word of the reply, with the space behind it.
            prefix: &'a [u8] = "prefix",
            /// The numbers, in words.
            msg: &'a [u8] = "msg",
        }

        /// A name cannot be had.
        pub struct IrcInvalidNick = "irc_invalid_nick", opt_in {}

        /// The users of a channel.
        pub struct IrcNamesInfo<'a> = "irc_names_info", opt_in {
            /// The kind of the channel.
            c_type: &'a [u8] = "c_type",
            /// The channel.
            channel: &'a [u8] = "channel",
            /// The users.
            users: SetOf<&'a [u8]> = "users",
        }

        /// The size of the network.
        pub struct IrcNetworkInfo = "irc_network_info", opt_in {
            /// How many users there are.
            users: u64 = "users",
            /// How many services.
            services: u64 = "services",
            /// How many servers.
            servers: u64 = "servers",
        }

        /// The size of a server.
        pub struct IrcServerInfo = "irc_server_info", opt_in {
            /// How many users it has.
            users: u64 = "users",
            /// How many services.
            services: u64 = "services",
            /// How many servers.
            servers: u64 = "servers",
        }

        /// A user wants to be an operator.
        pub struct IrcOperMessage<'a> = "irc_oper_message", opt_in {
            /// The user.
            user: &'a [u8] = "user",
            /// The password.
            password: &'a [u8] = "password",
        }

        /// The reply to a user who wants to be an operator.
        pub struct IrcOperResponse = "irc_oper_response", opt_in {
            /// Whether the user is one.
            got_oper: bool = "got_oper",
        }

        /// A user leaves channels.
        pub struct IrcPartMessage<'a> = "irc_part_message", opt_in {
            /// The user.
            nick: &'a [u8] = "nick",
            /// The channels.
            chans: SetOf<&'a [u8]> = "chans",
            /// A last word.
            message: &'a [u8] = "message",
        }

        /// A client asks who is in a channel.
        pub struct IrcWhoMessage<'a> = "irc_who_message", opt_in {
            /// The channel, or a pattern.
            mask: &'a [u8] = "mask",
            /// Whether only operators are asked for.
            oper: bool = "oper",
        }

        /// A user of those whom a client asks for.
        pub struct IrcWhoLine<'a> = "irc_who_line", opt_in {
            /// Who asks.
            target_nick: &'a [u8] = "target_nick",
            /// The channel.
            channel: &'a [u8] = "channel",
            /// The user.
            user: &'a [u8] = "user",
            /// The user's host.
            host: &'a [u8] = "host",
            /// The user's server.
            server: &'a [u8] = "server",
            /// The user's name in the network.
            nick: &'a [u8] = "nick",
            /// Flags.
            params: &'a [u8] = "params",
            /// How many servers are between.
            hops: u64 = "hops",
            /// The first word of the user's real name.
            real_name: &'a [u8] = "real_name",
        }

        /// A client asks about users.
        pub struct IrcWhoisMessage<'a> = "irc_whois_message", opt_in {
            /// The server that is asked, if any.
            server: &'a [u8] = "server",
            /// The users.
            users: &'a [u8] = "users",
        }

        /// The channels of a user.
        pub struct IrcWhoisChannelLine<'a> = "irc_whois_channel_line", opt_in {
            /// The first word of the reply.
            nick: &'a [u8] = "nick",
            /// The other words.
            chans: SetOf<&'a [u8]> = "chans",
        }

        /// A user is an operator.
        pub struct IrcWhoisOperatorLine<'a> = "irc_whois_operator_line", opt_in {
            /// The user.
            nick: &'a [u8] = "nick",
        }

        /// The names of a user.
        pub struct IrcWhoisUserLine<'a> = "irc_whois_user_line", opt_in {
            /// The name in the network.
            nick: &'a [u8] = "nick",
            /// The user.
            user: &'a [u8] = "user",
            /// The user's host.
            host: &'a [u8] = "host",
            /// The user's real name.
            real_name: Cow<'a, [u8]> = "real_name",
        }

        /// A user leaves.
        pub struct IrcQuitMessage<'a> = "irc_quit_message", opt_in {
            /// The user.
            nick: &'a [u8] = "nick",
            /// A last word.
            message: &'a [u8] = "message",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// TLS begins.
        pub struct IrcStarttls = "irc_starttls", opt_in {}

        /// The receiver of a file acknowledges how much of it arrived.
        pub struct IrcDccSendAck = "irc_dcc_send_ack", opt_in {
            /// Bytes that it has in all.
            bytes_received: u64 = "bytes_received",
        }
    }

    with {
        /// The connection of the transfer.
        c: Connection = "c",
    } {
        /// The type of the file that was offered is known, or will not be.
        pub struct IrcDccFileType = "gannet::irc_dcc_file_type", opt_in {
            /// The type.
            mime_type: Option<&'static str> = "mime_type",
        }
    }
}
