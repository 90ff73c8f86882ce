//! Events of IRC.

use std::borrow::Cow;

use gannet_base::Addr;
use gannet_event::Arg;
use gannet_event::Connection;
use gannet_event::Packer;
use gannet_event::SetOf;
use gannet_event::Type;

gannet_event::record! {
    /// A user who joins a channel.
    #[derive(Clone, Copy, Debug)]
    pub struct JoinInfo<'a> = "irc_join_info" {
        /// Nickname of the user.
        nick: &'a [u8] = "nick",
        /// The channel.
        channel: &'a [u8] = "channel",
        /// Key of the channel.
        password: &'a [u8] = "password",
        /// Status of the user in the channel.
        usermode: &'a [u8] = "usermode",
    }
}

/// Users who join channels.
#[derive(Clone, Copy, Debug)]
pub enum Joins<'a> {
    /// A user joins channels.
    Client {
        /// Nickname of the user.
        nick: &'a [u8],
        /// Channels with their keys.
        channels: &'a [(&'a [u8], &'a [u8])],
    },
    /// A server sends the members of a channel.
    Server {
        /// The channel.
        channel: &'a [u8],
        /// Members of the channel, each with status prefixes.
        users: &'a [&'a [u8]],
    },
}

impl<'a> Joins<'a> {
    /// Iterates over all pairs of user and channel.
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
            let (nick, usermode) = status(users.next()?);
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

/// Splits a member of a channel into nickname and status.
fn status(user: &[u8]) -> (&[u8], &'static [u8]) {
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
        /// Sender of the message.
        prefix: &'a [u8] = "prefix",
    } {
        /// A client's command that no other event reports.
        pub struct IrcRequest<'a> = "irc_request", opt_in {
            /// The command, in upper case.
            command: &'a [u8] = "command",
            /// Arguments of the command.
            arguments: &'a [u8] = "arguments",
        }

        /// A server's reply that no other event reports.
        pub struct IrcReply<'a> = "irc_reply", opt_in {
            /// Number of the reply.
            code: u16 = "code",
            /// Parameters of the reply.
            params: &'a [u8] = "params",
        }

        /// A server's command that no other event reports.
        pub struct IrcMessage<'a> = "irc_message", opt_in {
            /// The command, in upper case.
            command: &'a [u8] = "command",
            /// Arguments of the command.
            message: &'a [u8] = "message",
        }

        /// A server reports an error.
        pub struct IrcErrorMessage<'a> = "irc_error_message", opt_in {
            /// Description of the error.
            message: &'a [u8] = "message",
        }

        /// A user invites another one to a channel.
        pub struct IrcInviteMessage<'a> = "irc_invite_message", opt_in {
            /// Nickname of the invited user.
            nickname: &'a [u8] = "nickname",
            /// The channel.
            channel: &'a [u8] = "channel",
        }

        /// A user is removed from a channel.
        pub struct IrcKickMessage<'a> = "irc_kick_message", opt_in {
            /// The channels.
            chans: &'a [u8] = "chans",
            /// Users who are removed.
            users: &'a [u8] = "users",
            /// Reason.
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
            /// Reason.
            message: &'a [u8] = "message",
        }

        /// A user offers a direct connection to another one (DCC).
        pub struct IrcDccMessage<'a> = "irc_dcc_message" {
            /// Recipient of the message.
            target: &'a [u8] = "target",
            /// Type of the connection.
            dcc_type: &'a [u8] = "dcc_type",
            /// Name of a file, or of a protocol.
            argument: &'a [u8] = "argument",
            /// Address that accepts the connection.
            address: Addr = "address",
            /// Port that accepts the connection.
            dest_port: u16 = "dest_port",
            /// Size of the file, in bytes.
            size: u64 = "size",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
        /// Whether the originator sent it.
        is_orig: bool = "is_orig",
        /// Sender of the message.
        source: &'a [u8] = "source",
        /// Recipient of the message.
        target: &'a [u8] = "target",
    } {
        /// A message to a user or channel.
        pub struct IrcPrivmsgMessage<'a> = "irc_privmsg_message", opt_in {
            /// Text of the message.
            message: &'a [u8] = "message",
        }

        /// A notice to a user or channel.
        pub struct IrcNoticeMessage<'a> = "irc_notice_message", opt_in {
            /// Text of the message.
            message: &'a [u8] = "message",
        }

        /// A message to a service.
        pub struct IrcSqueryMessage<'a> = "irc_squery_message", opt_in {
            /// Text of the message.
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
            /// Users and channels.
            info_list: Joins<'a> = "info_list",
        }

        /// A user changes the nickname.
        pub struct IrcNickMessage<'a> = "irc_nick_message" {
            /// Sender of the message.
            who: &'a [u8] = "who",
            /// The new nickname.
            newnick: &'a [u8] = "newnick",
        }

        /// A user registers.
        pub struct IrcUserMessage<'a> = "irc_user_message" {
            /// Name of the user.
            user: &'a [u8] = "user",
            /// Host of the user.
            host: &'a [u8] = "host",
            /// Name of the server.
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
            /// Number of channels.
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
            /// The first word of the reply and the space after it.
            prefix: &'a [u8] = "prefix",
            /// Text of the reply with the numbers.
            msg: &'a [u8] = "msg",
        }

        /// A nickname is invalid or already in use.
        pub struct IrcInvalidNick = "irc_invalid_nick", opt_in {}

        /// The users of a channel.
        pub struct IrcNamesInfo<'a> = "irc_names_info", opt_in {
            /// Type of the channel.
            c_type: &'a [u8] = "c_type",
            /// The channel.
            channel: &'a [u8] = "channel",
            /// The users.
            users: SetOf<&'a [u8]> = "users",
        }

        /// The size of the network.
        pub struct IrcNetworkInfo = "irc_network_info", opt_in {
            /// Number of users.
            users: u64 = "users",
            /// Number of services.
            services: u64 = "services",
            /// Number of servers.
            servers: u64 = "servers",
        }

        /// The size of a server.
        pub struct IrcServerInfo = "irc_server_info", opt_in {
            /// Number of users.
            users: u64 = "users",
            /// Number of services.
            services: u64 = "services",
            /// Number of servers.
            servers: u64 = "servers",
        }

        /// A user requests operator privileges.
        pub struct IrcOperMessage<'a> = "irc_oper_message", opt_in {
            /// The user.
            user: &'a [u8] = "user",
            /// The password.
            password: &'a [u8] = "password",
        }

        /// A server answers a request for operator privileges.
        pub struct IrcOperResponse = "irc_oper_response", opt_in {
            /// Whether the privileges were granted.
            got_oper: bool = "got_oper",
        }

        /// A user leaves channels.
        pub struct IrcPartMessage<'a> = "irc_part_message", opt_in {
            /// The user.
            nick: &'a [u8] = "nick",
            /// The channels.
            chans: SetOf<&'a [u8]> = "chans",
            /// Parting message.
            message: &'a [u8] = "message",
        }

        /// A client queries users (WHO).
        pub struct IrcWhoMessage<'a> = "irc_who_message", opt_in {
            /// Channel or pattern.
            mask: &'a [u8] = "mask",
            /// Whether only operators are requested.
            oper: bool = "oper",
        }

        /// A reply to WHO: one user.
        pub struct IrcWhoLine<'a> = "irc_who_line", opt_in {
            /// Nickname of the client.
            target_nick: &'a [u8] = "target_nick",
            /// The channel.
            channel: &'a [u8] = "channel",
            /// The user.
            user: &'a [u8] = "user",
            /// The user's host.
            host: &'a [u8] = "host",
            /// The user's server.
            server: &'a [u8] = "server",
            /// The user's nickname.
            nick: &'a [u8] = "nick",
            /// Flags.
            params: &'a [u8] = "params",
            /// Number of hops to the user's server.
            hops: u64 = "hops",
            /// The first word of the user's real name.
            real_name: &'a [u8] = "real_name",
        }

        /// A client queries details of users (WHOIS).
        pub struct IrcWhoisMessage<'a> = "irc_whois_message", opt_in {
            /// The queried server, if any.
            server: &'a [u8] = "server",
            /// The users.
            users: &'a [u8] = "users",
        }

        /// A reply to WHOIS: the channels of a user.
        pub struct IrcWhoisChannelLine<'a> = "irc_whois_channel_line", opt_in {
            /// The first word of the reply.
            nick: &'a [u8] = "nick",
            /// The other words.
            chans: SetOf<&'a [u8]> = "chans",
        }

        /// A reply to WHOIS: the user is an operator.
        pub struct IrcWhoisOperatorLine<'a> = "irc_whois_operator_line", opt_in {
            /// The user.
            nick: &'a [u8] = "nick",
        }

        /// A reply to WHOIS: the names of a user.
        pub struct IrcWhoisUserLine<'a> = "irc_whois_user_line", opt_in {
            /// Nickname of the user.
            nick: &'a [u8] = "nick",
            /// The user.
            user: &'a [u8] = "user",
            /// The user's host.
            host: &'a [u8] = "host",
            /// The user's real name.
            real_name: Cow<'a, [u8]> = "real_name",
        }

        /// A user leaves the network.
        pub struct IrcQuitMessage<'a> = "irc_quit_message", opt_in {
            /// The user.
            nick: &'a [u8] = "nick",
            /// Parting message.
            message: &'a [u8] = "message",
        }
    }

    with {
        /// The connection.
        c: Connection = "c",
    } {
        /// The connection switches to TLS.
        pub struct IrcStarttls = "irc_starttls", opt_in {}

        /// The receiver of a file acknowledges the number of bytes received.
        pub struct IrcDccSendAck = "irc_dcc_send_ack", opt_in {
            /// Total number of bytes received.
            bytes_received: u64 = "bytes_received",
        }
    }

    with {
        /// The connection of the transfer.
        c: Connection = "c",
    } {
        /// The MIME type of an offered file is final.
        pub struct IrcDccFileType = "gannet::irc_dcc_file_type", opt_in {
            /// The MIME type, if it was detected.
            mime_type: Option<&'static str> = "mime_type",
        }
    }
}
