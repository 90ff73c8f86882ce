//! Events of IRC.

use gannet_base::Addr;
use gannet_event::Connection;
use gannet_event::SetOf;

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

gannet_event::events! {
    crate::events::module::IRC;

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
            info_list: SetOf<JoinInfo<'a>> = "info_list",
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
    }
}
