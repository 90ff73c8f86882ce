//! Events of Redis.

use gannet_base::Time;
use gannet_event::Connection;

use super::command::Command;

/// A known command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known(&'static str);

gannet_event::enumeration!(Known = "Redis::RedisCommand", |known| known.0);

impl Known {
    /// The command with this name in lower case.
    fn from_name(name: &[u8]) -> Option<Self> {
        Some(Self(match name {
            b"append" => "Redis::RedisCommand_APPEND",
            b"auth" => "Redis::RedisCommand_AUTH",
            b"bitcount" => "Redis::RedisCommand_BITCOUNT",
            b"bitfield" => "Redis::RedisCommand_BITFIELD",
            b"bitfield_ro" => "Redis::RedisCommand_BITFIELD_RO",
            b"bitop" => "Redis::RedisCommand_BITOP",
            b"bitpos" => "Redis::RedisCommand_BITPOS",
            b"blmpop" => "Redis::RedisCommand_BLMPOP",
            b"blpop" => "Redis::RedisCommand_BLPOP",
            b"brpop" => "Redis::RedisCommand_BRPOP",
            b"client" => "Redis::RedisCommand_CLIENT",
            b"copy" => "Redis::RedisCommand_COPY",
            b"decr" => "Redis::RedisCommand_DECR",
            b"decrby" => "Redis::RedisCommand_DECRBY",
            b"del" => "Redis::RedisCommand_DEL",
            b"dump" => "Redis::RedisCommand_DUMP",
            b"exists" => "Redis::RedisCommand_EXISTS",
            b"expire" => "Redis::RedisCommand_EXPIRE",
            b"expireat" => "Redis::RedisCommand_EXPIREAT",
            b"expiretime" => "Redis::RedisCommand_EXPIRETIME",
            b"get" => "Redis::RedisCommand_GET",
            b"getbit" => "Redis::RedisCommand_GETBIT",
            b"getdel" => "Redis::RedisCommand_GETDEL",
            b"getex" => "Redis::RedisCommand_GETEX",
            b"getrange" => "Redis::RedisCommand_GETRANGE",
            b"getset" => "Redis::RedisCommand_GETSET",
            b"hdel" => "Redis::RedisCommand_HDEL",
            b"hello" => "Redis::RedisCommand_HELLO",
            b"hget" => "Redis::RedisCommand_HGET",
            b"hset" => "Redis::RedisCommand_HSET",
            b"incr" => "Redis::RedisCommand_INCR",
            b"incrby" => "Redis::RedisCommand_INCRBY",
            b"keys" => "Redis::RedisCommand_KEYS",
            b"mget" => "Redis::RedisCommand_MGET",
            b"move" => "Redis::RedisCommand_MOVE",
            b"mset" => "Redis::RedisCommand_MSET",
            b"persist" => "Redis::RedisCommand_PERSIST",
            b"psubscribe" => "Redis::RedisCommand_PSUBSCRIBE",
            b"punsubscribe" => "Redis::RedisCommand_PUNSUBSCRIBE",
            b"quit" => "Redis::RedisCommand_QUIT",
            b"rename" => "Redis::RedisCommand_RENAME",
            b"reset" => "Redis::RedisCommand_RESET",
            b"set" => "Redis::RedisCommand_SET",
            b"strlen" => "Redis::RedisCommand_STRLEN",
            b"subscribe" => "Redis::RedisCommand_SUBSCRIBE",
            b"ssubscribe" => "Redis::RedisCommand_SSUBSCRIBE",
            b"sunsubscribe" => "Redis::RedisCommand_SUNSUBSCRIBE",
            b"ttl" => "Redis::RedisCommand_TTL",
            b"type" => "Redis::RedisCommand_TYPE",
            b"unsubscribe" => "Redis::RedisCommand_UNSUBSCRIBE",
            _ => return None,
        }))
    }
}

gannet_event::record! {
    /// A command of a client.
    #[derive(Debug)]
    pub struct AnyCommand<'a> = "Redis::Command" {
        /// Words of the command.
        raw: Vec<&'a [u8]> = "raw",
        /// The first word.
        name: &'a [u8] = "name",
        /// The key, if the command is known to have one.
        key: Option<&'a [u8]> = "key",
        /// The value, if the command is known to have one.
        value: Option<&'a [u8]> = "value",
        /// The command, if it is known.
        known: Option<Known> = "known",
    }
}

gannet_event::record! {
    /// The command SET.
    #[derive(Debug, Default)]
    pub struct SetCommand<'a> = "Redis::SetCommand" {
        /// Key.
        key: &'a [u8] = "key",
        /// Value.
        value: &'a [u8] = "value",
        /// Set only if the key does not exist.
        nx: bool = "nx",
        /// Set only if the key exists.
        xx: bool = "xx",
        /// Whether the old value is requested.
        get: bool = "get",
        /// Expiry time in seconds.
        ex: Option<u64> = "ex",
        /// Expiry time in milliseconds.
        px: Option<u64> = "px",
        /// Expiry as a Unix time in seconds.
        exat: Option<u64> = "exat",
        /// Expiry as a Unix time in milliseconds.
        pxat: Option<u64> = "pxat",
        /// Whether the old value's expiry is kept.
        keep_ttl: bool = "keep_ttl",
    }
}

gannet_event::record! {
    /// The command AUTH.
    #[derive(Debug)]
    pub struct AuthCommand<'a> = "Redis::AuthCommand" {
        /// User name.
        username: Option<&'a [u8]> = "username",
        /// Password.
        password: &'a [u8] = "password",
    }
}

gannet_event::record! {
    /// The command HELLO.
    #[derive(Debug)]
    pub struct HelloCommand<'a> = "Redis::HelloCommand" {
        /// Version of the protocol that the client requests.
        version: Option<&'a [u8]> = "requested_resp_version",
    }
}

gannet_event::record! {
    /// A reply of a server.
    #[derive(Debug)]
    pub struct ReplyData<'a> = "Redis::ReplyData" {
        /// Attributes that precede the reply.
        attributes: Option<&'a [u8]> = "attributes",
        /// The reply as text.
        value: &'a [u8] = "value",
        /// Lowest version of the protocol that has this type of reply.
        version: u64 = "min_protocol_version",
    }
}

gannet_event::events! {
    crate::events::module_of(crate::Tag::Redis);

    /// A client sets a value.
    pub struct Set<'a> = "Redis::set_command", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The command.
        command: SetCommand<'a> = "command",
    }

    /// A client requests a value.
    pub struct Get<'a> = "Redis::get_command", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Key.
        key: &'a [u8] = "key",
    }

    /// A client authenticates.
    pub struct Auth<'a> = "Redis::auth_command", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The command.
        command: AuthCommand<'a> = "command",
    }

    /// A client requests a version of the protocol.
    pub struct Hello<'a> = "Redis::hello_command" {
        /// The connection.
        c: Connection = "c",
        /// The command.
        command: HelloCommand<'a> = "command",
    }

    /// A client sends a command of any kind.
    pub struct CommandSeen<'a> = "Redis::command" {
        /// The connection.
        c: Connection = "c",
        /// The command.
        cmd: AnyCommand<'a> = "cmd",
    }

    /// A server replies.
    pub struct Reply<'a> = "Redis::reply" {
        /// The connection.
        c: Connection = "c",
        /// The reply.
        data: ReplyData<'a> = "data",
    }

    /// A server reports that a command failed.
    pub struct Error<'a> = "Redis::error" {
        /// The connection.
        c: Connection = "c",
        /// The error reply.
        data: ReplyData<'a> = "data",
    }

    /// A command and its reply are complete, or one of them is known to lack the other.
    pub struct ExchangeDone<'a> = "gannet::redis_exchange", opt_in {
        /// The connection.
        c: Connection = "c",
        /// Time of the first of them.
        ts: Time = "ts",
        /// The command.
        name: Option<&'a [u8]> = "name",
        /// Its key.
        key: Option<&'a [u8]> = "key",
        /// The value that the command writes to the key.
        value: Option<&'a [u8]> = "value",
        /// Whether the command succeeded.
        success: Option<bool> = "success",
        /// The reply.
        reply: Option<&'a [u8]> = "reply",
    }

    /// A server sends data that is not a reply to a command.
    pub struct ServerPush<'a> = "Redis::server_push", opt_in {
        /// The connection.
        c: Connection = "c",
        /// The data.
        data: ReplyData<'a> = "data",
    }
}

/// The record of a command.
pub(super) fn command_record(command: &Command) -> AnyCommand<'_> {
    AnyCommand {
        raw: command.words.iter().map(Vec::as_slice).collect(),
        name: command.name(),
        key: command.key(),
        value: command.value(),
        known: Known::from_name(command.lower().as_bytes()),
    }
}

/// The record of SET, if it has a key and a value (redis.io, "SET").
pub(super) fn set_record(command: &Command) -> Option<SetCommand<'_>> {
    let mut set = SetCommand { key: command.key()?, value: command.value()?, ..Default::default() };
    let mut words = command.words.iter().skip(3);
    while let Some(word) = words.next() {
        let word = word.to_ascii_lowercase();
        let mut number = || {
            let text = words.next().and_then(|w| std::str::from_utf8(w).ok());
            text.and_then(|text| text.parse().ok())
        };
        match &word[..] {
            b"nx" => set.nx = true,
            b"xx" => set.xx = true,
            b"get" => set.get = true,
            b"keepttl" => set.keep_ttl = true,
            b"ex" => set.ex = number(),
            b"px" => set.px = number(),
            b"exat" => set.exat = number(),
            b"pxat" => set.pxat = number(),
            _ => {}
        }
    }
    Some(set)
}
