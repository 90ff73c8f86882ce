//! Raises the events of replies and commands that have no rows.
//!
//! A command without a listener for its own event is raised as `irc_request` or `irc_message`.

use std::borrow::Cow;
use std::collections::HashSet;

use gannet_base::Dir;
use gannet_event::SetOf;

use super::events::*;
use super::message::Message;
use super::message::skip_spaces;
use super::message::until_nul;
use super::message::words;
use crate::Context;
use crate::support::text::integer;

/// `Ok` for a valid message; otherwise the name and the detail of a weird.
pub(super) type MessageResult = Result<(), (&'static str, String)>;

/// The error of a message with invalid parameters, without detail.
fn invalid(weird: &'static str) -> MessageResult {
    Err((weird, String::new()))
}

/// Removes a leading colon.
pub(super) fn without_colon(text: &[u8]) -> &[u8] {
    text.strip_prefix(b":").unwrap_or(text)
}

/// Returns the nickname in a prefix; empty without a `!`.
pub(super) fn nickname(prefix: &[u8]) -> &[u8] {
    memchr::memchr(b'!', prefix).map_or(&[], |at| &prefix[..at])
}

/// Parses a number like C's `atoi`; as in Zeek, the result is sign-extended to an unsigned number.
fn count(word: &[u8]) -> u64 {
    i64::from(integer(word).0 as i32) as u64
}

/// Parses the number before the last occurrence of one of the names; 0 if there is none.
fn count_of(params: &[u8], names: &[&[u8]]) -> u64 {
    let numbers = words(params, b' ').zip(words(params, b' ').skip(1));
    numbers.filter(|(_, name)| names.contains(name)).last().map_or(0, |(number, _)| count(number))
}

/// The distinct words in the order of their first occurrence, on which the order of a table with seeds depends.
fn set<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> SetOf<&'a [u8]> {
    let mut seen = HashSet::new();
    SetOf(words.into_iter().filter(|word| seen.insert(*word)).collect())
}

/// Joins words to a text without a leading colon.
fn sentence<'a>(words: &[&'a [u8]]) -> Cow<'a, [u8]> {
    match words {
        [] => Cow::Borrowed(&[]),
        [word] => Cow::Borrowed(until_nul(without_colon(word))),
        words => Cow::Owned(until_nul(without_colon(&words.join(&b' '))).to_vec()),
    }
}

/// Raises the event of a server's reply.
pub(super) fn reply(
    cx: &mut Context<'_>,
    from: Dir,
    message: Message<'_>,
    code: u16,
) -> MessageResult {
    let (is_orig, prefix, params) = (from.is_orig(), message.prefix, message.params);
    let parts = || words(params, b' ').collect::<Vec<_>>();
    match code {
        251 => cx.raise(|c| IrcNetworkInfo {
            c,
            is_orig,
            users: count_of(params, &[b"users"]),
            services: count_of(params, &[b"services"]),
            servers: count_of(params, &[b"servers"]),
        }),
        254 => {
            cx.raise(|c| IrcChannelInfo { c, is_orig, chans: count_of(params, &[b":channels"]) });
        }
        255 => cx.raise(|c| IrcServerInfo {
            c,
            is_orig,
            users: count_of(params, &[b"users,", b"clients"]),
            services: count_of(params, &[b"services"]),
            servers: count_of(params, &[b"servers"]),
        }),
        266 if cx.wants::<IrcGlobalUsers<'_>>() => {
            let text = until_nul(params);
            let found = memchr::memchr(b' ', text).map(|space| text.split_at(space + 1));
            let colon = found.and_then(|(_, rest)| memchr::memchr(b':', rest));
            let (Some((prefix, rest)), Some(colon)) = (found, colon) else {
                return invalid("invalid_irc_global_users_reply");
            };
            cx.raise(|c| IrcGlobalUsers { c, is_orig, prefix, msg: &rest[colon + 1..] });
        }
        311 if cx.wants::<IrcWhoisUserLine<'_>>() => {
            let parts = parts();
            let [_, nick, user, host, _, name @ ..] = &parts[..] else {
                return invalid("irc_invalid_whois_user_line");
            };
            if name.is_empty() {
                return invalid("irc_invalid_whois_user_line");
            }
            let [nick, user, host] = [nick, user, host].map(|word| until_nul(word));
            let real_name = sentence(name);
            cx.raise(|c| IrcWhoisUserLine { c, is_orig, nick, user, host, real_name });
        }
        313 if cx.wants::<IrcWhoisOperatorLine<'_>>() => {
            let parts = parts();
            let [_, nick, _, ..] = parts[..] else {
                return invalid("irc_invalid_whois_operator_line");
            };
            cx.raise(|c| IrcWhoisOperatorLine { c, is_orig, nick: until_nul(nick) });
        }
        319 if cx.wants::<IrcWhoisChannelLine<'_>>() => {
            let parts = parts();
            let [nick, first, rest @ ..] = &parts[..] else {
                return invalid("irc_invalid_whois_channel_line");
            };
            let chans = set([without_colon(first)].into_iter().chain(rest.iter().copied()));
            cx.raise(|c| IrcWhoisChannelLine { c, is_orig, nick: until_nul(nick), chans });
        }
        332 if cx.wants::<IrcChannelTopic<'_>>() => {
            let parts = parts();
            let topic = memchr::memchr(b':', params).map(|colon| &params[colon + 1..]);
            let ([_, channel, _, _, ..], Some(topic)) = (&parts[..], topic) else {
                return invalid("irc_invalid_topic_reply");
            };
            let (channel, topic) = (until_nul(channel), until_nul(without_colon(topic)));
            cx.raise(|c| IrcChannelTopic { c, is_orig, channel, topic });
        }
        352 if cx.wants::<IrcWhoLine<'_>>() => {
            let parts: Vec<_> = words(params, b' ').map(until_nul).collect();
            let [target_nick, channel, user, host, server, nick, flags, hops, real_name, ..] =
                parts[..]
            else {
                return invalid("irc_invalid_who_line");
            };
            cx.raise(|c| IrcWhoLine {
                c,
                is_orig,
                target_nick,
                channel,
                user: user.strip_prefix(b"~").unwrap_or(user),
                host,
                server,
                nick,
                params: flags,
                hops: count(without_colon(hops)),
                real_name,
            });
        }
        353 if cx.wants::<IrcNamesInfo<'_>>() => {
            let parts = parts();
            let [_, c_type, channel, users @ ..] = &parts[..] else {
                return invalid("irc_invalid_names_line");
            };
            let first = users.first().map(|user| without_colon(user));
            let users = first.into_iter().chain(users.iter().skip(1).copied());
            let users = set(users.map(|user| user.strip_prefix(b"@").unwrap_or(user)));
            let (c_type, channel) = (until_nul(c_type), until_nul(channel));
            cx.raise(|c| IrcNamesInfo { c, is_orig, c_type, channel, users });
        }
        381 | 491 => cx.raise(|c| IrcOperResponse { c, is_orig, got_oper: code == 381 }),
        431..=433 | 436 => cx.raise(|c| IrcInvalidNick { c, is_orig }),
        266 | 311 | 313 | 319 | 332 | 352 | 353 => {}
        _ => cx.raise(|c| IrcReply { c, is_orig, prefix, code, params }),
    }
    Ok(())
}

/// Raises the event of a command.
pub(super) fn command(
    cx: &mut Context<'_>,
    from: Dir,
    message: Message<'_>,
    word: &[u8],
) -> MessageResult {
    let (is_orig, prefix, params) = (from.is_orig(), message.prefix, message.params);
    let parts = || words(params, b' ').map(until_nul).collect::<Vec<_>>();
    let addressed = memchr::memchr(b' ', params)
        .map(|space| (&params[..space], without_colon(skip_spaces(&params[space + 1..]))));
    match word {
        b"NOTICE" if cx.wants::<IrcNoticeMessage<'_>>() => {
            let Some((target, message)) = addressed else {
                return invalid("irc_invalid_notice_message_format");
            };
            cx.raise(|c| IrcNoticeMessage { c, is_orig, source: prefix, target, message });
        }
        b"SQUERY" if cx.wants::<IrcSqueryMessage<'_>>() => {
            let Some((target, message)) = addressed else {
                return invalid("irc_invalid_squery_message_format");
            };
            cx.raise(|c| IrcSqueryMessage { c, is_orig, source: prefix, target, message });
        }
        b"OPER" if cx.wants::<IrcOperMessage<'_>>() => {
            let [user, password] = parts()[..] else {
                return invalid("irc_invalid_oper_message_format");
            };
            cx.raise(|c| IrcOperMessage { c, is_orig, user, password });
        }
        b"KICK" if cx.wants::<IrcKickMessage<'_>>() => {
            let parts = parts();
            let [chans, users, comment @ ..] = &parts[..] else {
                return invalid("irc_invalid_kick_message_format");
            };
            let comment = sentence(comment);
            cx.raise(|c| IrcKickMessage { c, is_orig, prefix, chans, users, comment });
        }
        b"PART" if cx.wants::<IrcPartMessage<'_>>() => {
            let (channels, message) = addressed.unwrap_or((params, b""));
            let nick = prefix.split(|&b| b == b'!').next().unwrap_or_default();
            let (nick, message) = (until_nul(nick), until_nul(message));
            let chans = set(words(channels, b','));
            cx.raise(|c| IrcPartMessage { c, is_orig, nick, chans, message });
        }
        b"QUIT" if cx.wants::<IrcQuitMessage<'_>>() => {
            let (nick, message) = (nickname(prefix), without_colon(params));
            cx.raise(|c| IrcQuitMessage { c, is_orig, nick, message });
        }
        b"WHO" if cx.wants::<IrcWhoMessage<'_>>() => {
            let parts = parts();
            let (mask, oper) = match parts[..] {
                [] => (&b""[..], false),
                [mask] => (mask, false),
                [mask, flag] => (mask, flag == b"o"),
                _ => return invalid("irc_invalid_who_message_format"),
            };
            cx.raise(|c| IrcWhoMessage { c, is_orig, mask: without_colon(mask), oper });
        }
        b"WHOIS" if cx.wants::<IrcWhoisMessage<'_>>() => {
            let (server, users) = match parts()[..] {
                [users] => (&b""[..], users),
                [server, users] => (server, users),
                _ => return invalid("irc_invalid_whois_message_format"),
            };
            cx.raise(|c| IrcWhoisMessage { c, is_orig, server, users });
        }
        b"ERROR" if cx.wants::<IrcErrorMessage<'_>>() => {
            let message = until_nul(without_colon(params));
            cx.raise(|c| IrcErrorMessage { c, is_orig, prefix, message });
        }
        b"INVITE" if cx.wants::<IrcInviteMessage<'_>>() => {
            let [nickname, channel] = parts()[..] else {
                return invalid("irc_invalid_invite_message_format");
            };
            let channel = without_colon(channel);
            cx.raise(|c| IrcInviteMessage { c, is_orig, prefix, nickname, channel });
        }
        b"MODE" if cx.wants::<IrcModeMessage<'_>>() => {
            if params.is_empty() {
                return invalid("irc_invalid_mode_message_format");
            }
            cx.raise(|c| IrcModeMessage { c, is_orig, prefix, params: until_nul(params) });
        }
        b"PASS" if cx.wants::<IrcPasswordMessage<'_>>() => {
            cx.raise(|c| IrcPasswordMessage { c, is_orig, password: params });
        }
        b"SQUIT" if cx.wants::<IrcSquitMessage<'_>>() => {
            let (server, message) = addressed.unwrap_or_default();
            let (server, message) = (until_nul(server), until_nul(message));
            cx.raise(|c| IrcSquitMessage { c, is_orig, prefix, server, message });
        }
        command => {
            let [prefix, command, params] = [prefix, command, params].map(until_nul);
            if is_orig {
                cx.raise(|c| IrcRequest { c, is_orig, prefix, command, arguments: params });
            } else {
                cx.raise(|c| IrcMessage { c, is_orig, prefix, command, message: params });
            }
        }
    }
    Ok(())
}
