//! Weirds: weird.log, its sampling and its suppression.
//!
//! A weird has a name, and its subject is a connection, a pair of hosts, a file, or nothing. As in
//! Zeek, two stages decide whether it becomes a row:
//!
//! 1. *Sampling* by name and subject: the first weirds of a kind pass, then only every n-th, until
//!    the window ends ([`WeirdSampling`]). All names of two hosts share one window, which starts
//!    with the first of them. Weirds of files are sampled by file analysis.
//! 2. *Policy* by name (the private `Action`): most names have one row per subject within
//!    [`WINDOW`]; some have one row per originator or connection and day, some have none, and some
//!    also have a row in notice.log. A periodic [check](Weirds::check_suppressed) finds expired
//!    entries.
//!
//! A repeated weird costs one lookup in a table. The table stores at most [`MAX_ENTRIES`] pairs of
//! name and subject; beyond that the oldest half is dropped, and dropped weirds are logged again.

mod action;
pub mod events;
mod rows;
#[cfg(test)]
mod tests;

pub use rows::NoticeRow;
pub use rows::WeirdRow;

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;
use std::hash::Hasher;

use gannet_base::Addr;
use gannet_base::ConnId;
use gannet_base::Interval;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_base::Uid;
use gannet_dict::KeyedHash;
use gannet_event::Id4;
use gannet_event::SamplingRate;
use gannet_event::Sinks;
use gannet_event::WeirdSampling;
use gannet_flow::Conn;

use self::action::Action;
use self::action::action;
use self::action::is_reported_by_scripts;
use self::action::repeats;
use self::events::ConnWeird;
use self::events::ExpiredConnWeird;
use self::events::FlowWeird;
use self::events::NetWeird;
use self::events::WeirdSeen;
use crate::conn_state::mention;
use crate::conn_state::mention_unless_known;
use crate::deferred::Queue;
use crate::policy::weirds::Stats;

/// Interval in which a logged weird is suppressed.
pub const WINDOW: Interval = Interval::from_secs(600);
/// Interval in which a name that is logged once per originator or connection is suppressed.
pub const DAY: Interval = Interval::from_secs(86_400);
/// Maximum number of pairs of name and subject in the table.
pub const MAX_ENTRIES: usize = 1 << 17;

/// A weird without the context of a connection's analyzer: of a packet or of a packet analyzer.
#[derive(Clone, Copy, Debug)]
pub struct PacketWeird<'a> {
    /// Name of the weird.
    pub name: &'static str,
    /// Details; may be empty.
    pub addl: &'a str,
    /// The packet analyzer that reports it, in upper case, if Zeek names one.
    pub source: Option<&'static str>,
    /// Whether the packet is within a tunnel: `_in_tunnel` is appended to the name.
    pub in_tunnel: bool,
}

/// A weird of a file, which was already sampled and raised as an event.
#[derive(Clone, Copy, Debug)]
pub struct FileWeirdSeen<'a> {
    /// The file.
    pub fuid: Uid,
    /// Name of the weird.
    pub name: &'static str,
    /// Details; may be empty.
    pub addl: &'a str,
    /// The analyzer of the file, if Zeek logs it.
    pub source: Option<&'static str>,
    /// Whether sampling excludes it from the log.
    pub is_sampled_out: bool,
}

/// A weird with its details, as bytes.
struct Report<'a> {
    name: &'static str,
    addl: &'a [u8],
    source: Option<&'static str>,
    in_tunnel: bool,
}

impl Report<'_> {
    /// Whether the weird is ignored.
    fn is_ignored(&self) -> bool {
        !self.in_tunnel && action(self.name) == Action::Ignore
    }
}

impl<'a> PacketWeird<'a> {
    fn report(&self) -> Report<'a> {
        let Self { name, addl, source, in_tunnel } = *self;
        Report { name, addl: addl.as_bytes(), source, in_tunnel }
    }
}

/// Name and subject of a weird.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    name: &'static str,
    in_tunnel: bool,
    /// Whether the key is for suppression during a day, not for sampling.
    daily: bool,
    /// All zero for a weird without subject; ports are 0 for a pair of hosts.
    id: ConnId,
}

/// A cheap hash, for floods of weirds: of the name, only the end is hashed, since few weirds of one
/// subject have names with the same end.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let end = self.name.as_bytes().last_chunk().map_or(0, |end| u64::from_ne_bytes(*end));
        let kind = u64::from(self.in_tunnel) << 1 | u64::from(self.daily);
        let ports = u64::from(self.id.orig_p) << 48 | u64::from(self.id.resp_p) << 32;
        state.write_u128(u128::from_ne_bytes(self.id.orig_h.octets()));
        state.write_u128(u128::from_ne_bytes(self.id.resp_h.octets()));
        state.write_u128(u128::from(end) << 64 | u128::from(kind | ports));
    }
}

#[derive(Clone, Copy)]
struct Seen {
    /// The connection that sampling counts for: another connection may reuse its addresses and
    /// ports.
    uid: Option<Uid>,
    /// Number of occurrences, for sampling.
    count: u64,
    /// Time at which sampling, or its window, began.
    sampling: Time,
    /// Suppressed until a check later than this; `None` if it was not reported.
    suppressed_until: Option<Time>,
}

/// Times of the first and of the last check.
type Checks = Option<(Time, Time)>;

type Table = HashMap<Key, Seen, KeyedHash>;

/// Decides which weirds are logged.
#[derive(Default)]
pub struct Weirds {
    young: Table,
    old: Table,
    checks: Checks,
    /// Numbers of occurrences, if they are logged.
    pub(crate) stats: Option<Box<Stats>>,
    /// Whether Zeek's scripts run, which report their own weirds.
    scripted: bool,
    /// Sampling parameters.
    pub(crate) sampling: WeirdSampling,
    deferred: Queue<Item>,
}

/// A weird that a shard saw, for [`Weirds::decide`].
#[derive(Clone, Debug)]
pub struct Item {
    now: Time,
    subject: Subject,
    name: &'static str,
    addl: Box<[u8]>,
    source: Option<&'static str>,
    in_tunnel: bool,
    /// Number of consecutive occurrences.
    times: u64,
}

impl Item {
    fn is_repeated_by(&self, now: Time, subject: &Subject, what: &Report<'_>) -> bool {
        let Report { name, addl, source, in_tunnel } = *what;
        (self.name, self.source, self.in_tunnel) == (name, source, in_tunnel)
            && (self.now, &self.subject, &*self.addl) == (now, subject, addl)
    }
}

const NO_SUBJECT: Subject = Subject { uid: None, id: None, proto: None, file: None };

const NOTHING: ConnId =
    ConnId { orig_h: Addr::v6([0; 16]), resp_h: Addr::v6([0; 16]), orig_p: 0, resp_p: 0 };

/// Subject of a weird.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subject {
    uid: Option<Uid>,
    id: Option<ConnId>,
    /// Transport, if there is a connection.
    proto: Option<Proto>,
    /// For a file, whether sampling excludes the weird.
    file: Option<bool>,
}

impl Weirds {
    /// Creates an empty state. `stats` counts occurrences, if they are logged; `scripted` says
    /// whether Zeek's scripts report their own weirds.
    pub(crate) fn new(stats: Option<Box<Stats>>, scripted: bool) -> Self {
        Self { stats, scripted, ..Self::default() }
    }

    /// Checks the suppressed weirds at the time of a packet: those reported too long ago are no
    /// longer suppressed. Report times are rounded to whole seconds since the first check.
    pub fn check_suppressed(&mut self, packet: Time) {
        let first = self.checks.map_or(packet, |(first, _)| first);
        self.checks = Some((first, packet));
    }

    /// Reports a weird of a connection.
    pub fn conn(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        conn: &mut Conn,
        name: &'static str,
        addl: &str,
        source: Option<&'static str>,
    ) {
        self.conn_bytes(logs, now, conn, name, addl.as_bytes(), source);
    }

    /// Like [`conn`](Self::conn), with details as they are on the wire.
    pub fn conn_bytes(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        conn: &Conn,
        name: &'static str,
        addl: &[u8],
        source: Option<&'static str>,
    ) {
        if logs.events.wants::<ConnWeird<'_>>() {
            // Weirds of scripts carry the connection's state at the end of the packet.
            if is_reported_by_scripts(name) {
                mention_unless_known(logs, conn);
                logs.events.record_end();
            } else {
                mention(logs, conn);
            }
        }
        let subject =
            Subject { uid: Some(conn.uid), id: Some(conn.id), proto: Some(conn.proto), file: None };
        self.handle(logs, now, &subject, &Report { name, addl, source, in_tunnel: false });
    }

    /// Reports a weird of a connection whose state was removed.
    pub fn expired_conn(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        uid: Uid,
        id: ConnId,
        what: &PacketWeird<'_>,
    ) {
        let subject = Subject { uid: Some(uid), id: Some(id), proto: None, file: None };
        self.handle(logs, now, &subject, &what.report());
    }

    /// Reports a weird of two hosts.
    pub fn flow(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        src: Addr,
        dst: Addr,
        what: &PacketWeird<'_>,
    ) {
        let id = ConnId { orig_h: src, resp_h: dst, orig_p: 0, resp_p: 0 };
        let proto = Some(Proto::Unknown);
        let subject = Subject { uid: None, id: Some(id), proto, file: None };
        self.handle(logs, now, &subject, &what.report());
    }

    /// Reports a weird without subject.
    pub fn net(&mut self, logs: &mut Sinks, now: Time, name: &'static str, addl: &str) {
        self.packet(logs, now, &PacketWeird { name, addl, source: None, in_tunnel: false });
    }

    /// Like [`net`](Self::net), with details as they are on the wire.
    pub fn net_bytes(&mut self, logs: &mut Sinks, now: Time, name: &'static str, addl: &[u8]) {
        let subject = NO_SUBJECT;
        self.handle(logs, now, &subject, &Report { name, addl, source: None, in_tunnel: false });
    }

    /// Reports a weird of a packet without IP header.
    pub fn packet(&mut self, logs: &mut Sinks, now: Time, what: &PacketWeird<'_>) {
        self.handle(logs, now, &NO_SUBJECT, &what.report());
    }

    /// Reports a weird of a file.
    pub fn file(&mut self, logs: &mut Sinks, now: Time, what: &FileWeirdSeen<'_>) {
        let FileWeirdSeen { fuid, name, addl, source, is_sampled_out } = *what;
        // Suppression ignores the file: one row per name.
        let addl = if addl.is_empty() { fuid.to_string() } else { format!("{fuid}: {addl}") };
        let subject = Subject { file: Some(is_sampled_out), ..NO_SUBJECT };
        let what = Report { name, addl: addl.as_bytes(), source, in_tunnel: false };
        self.handle(logs, now, &subject, &what);
    }

    #[inline]
    fn handle(&mut self, logs: &mut Sinks, now: Time, subject: &Subject, what: &Report<'_>) {
        if self.scripted && is_reported_by_scripts(what.name) {
            return;
        }
        if logs.key().is_some() {
            return self.defer(logs, now, subject, what);
        }
        if let Some(stats) = &mut self.stats {
            stats.seen(what.name, what.in_tunnel);
        }
        if logs.events.wants::<WeirdSeen<'_>>() {
            logs.events.raise_at_once(&WeirdSeen { name: &full_name(what) });
        }
        let is_ignored = what.is_ignored();
        if is_ignored && !logs.events.any() {
            return;
        }
        let id = subject.id.unwrap_or(NOTHING);
        let key = Key { name: what.name, in_tunnel: what.in_tunnel, daily: false, id };
        if subject.file.unwrap_or_else(|| self.is_sampled_out(now, subject, what, key)) {
            return;
        }
        let checks = self.checks;
        let is_suppressed = self.seen(key).is_suppressed(checks);
        if logs.events.any() && subject.file.is_none() {
            raise(logs, subject, what);
        }
        if is_suppressed || is_ignored {
            return;
        }
        self.policy(logs, now, subject, what, key);
    }

    /// Counts a weird; returns whether sampling excludes it.
    #[inline]
    fn is_sampled_out(
        &mut self,
        now: Time,
        subject: &Subject,
        what: &Report<'_>,
        key: Key,
    ) -> bool {
        if self.sampling.lists_names()
            && let Some(permits) = self.sampling.permits_name(now, &full_name(what))
        {
            return !permits;
        }
        let rate = self.sampling.rate;
        let mut seen = self.seen(key);
        if subject.uid.is_none() && seen.is_over(now, rate.duration) {
            let began = if subject.id.is_some() { self.pair_began(key.id, now) } else { now };
            seen = self.seen(key);
            (seen.count, seen.sampling) = (0, began);
        }
        seen.is_sampled_out(now, subject.uid, rate)
    }

    /// Time at which the window of two hosts began, with a weird of any name.
    #[cold]
    fn pair_began(&mut self, id: ConnId, now: Time) -> Time {
        let duration = self.sampling.rate.duration;
        let pair = self.seen(Key { name: "", in_tunnel: false, daily: false, id });
        if pair.is_over(now, duration) {
            (pair.count, pair.sampling) = (1, now);
        }
        pair.sampling
    }

    /// Defers the decision until the items of all shards are merged.
    #[cold]
    fn defer(&mut self, logs: &Sinks, now: Time, subject: &Subject, what: &Report<'_>) {
        if self.stats.is_none() && what.is_ignored() && !logs.events.any() {
            return;
        }
        // One message may raise the same weird a million times.
        if logs.events.is_none_since_ticket()
            && let Some(last) = self.deferred.last(logs)
            && last.is_repeated_by(now, subject, what)
        {
            last.times += 1;
            return;
        }
        let Report { name, addl, source, in_tunnel } = *what;
        let addl = addl.into();
        let item = Item { now, subject: *subject, name, addl, source, in_tunnel, times: 1 };
        self.deferred.push(logs, item);
    }

    /// The items that a shard deferred, in order.
    pub(crate) fn deferred(&mut self) -> &mut Queue<Item> {
        &mut self.deferred
    }

    /// Decides about an item that a shard deferred.
    pub fn decide(&mut self, logs: &mut Sinks, item: &Item) {
        let Item { now, subject, name, addl, source, in_tunnel, times } = item;
        let report = Report { name, addl, source: *source, in_tunnel: *in_tunnel };
        for _ in 0..*times {
            self.handle(logs, *now, subject, &report);
        }
    }

    /// Applies the action of the name, for a weird that is neither sampled out nor suppressed.
    #[cold]
    fn policy(
        &mut self,
        logs: &mut Sinks,
        now: Time,
        subject: &Subject,
        what: &Report<'_>,
        key: Key,
    ) {
        let action = if what.in_tunnel { Action::Log } else { action(what.name) };
        match action {
            Action::Ignore => return,
            Action::Log => {}
            Action::LogPerConn | Action::LogPerOrig | Action::NoticePerOrig => {
                let id = if action == Action::LogPerConn {
                    key.id
                } else {
                    ConnId { orig_h: key.id.orig_h, ..NOTHING }
                };
                let checks = self.checks;
                let daily = self.seen(Key { daily: true, id, ..key });
                if daily.is_suppressed(checks) {
                    return;
                }
                daily.suppressed_until = Some(suppression_end(checks, now, DAY));
            }
        }
        let long;
        let name = if what.in_tunnel {
            long = format!("{}_in_tunnel", what.name);
            &long
        } else {
            what.name
        };
        let addl = (!what.addl.is_empty()).then_some(what.addl);
        let notice = action == Action::NoticePerOrig;
        if notice {
            logs.write(&notice_row(now, subject, name, addl));
        }
        if what.in_tunnel || !repeats(what.name) {
            self.seen(key).suppressed_until = Some(suppression_end(self.checks, now, WINDOW));
        }
        let (uid, id) = (subject.uid, subject.id);
        let source = what.source;
        logs.write(&WeirdRow { ts: now, uid, id, name, addl, notice, peer: "zeek", source });
    }

    /// The entry of a name and subject, created if absent.
    fn seen(&mut self, key: Key) -> &mut Seen {
        if self.young.len() >= MAX_ENTRIES / 2 && !self.young.contains_key(&key) {
            // The table is cleared and not dropped: in a flood, new tables would be allocated all
            // the time.
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        let old = &mut self.old;
        self.young.entry(key).or_insert_with(|| {
            let found = if old.is_empty() { None } else { old.remove(&key) };
            found.unwrap_or(Seen {
                uid: None,
                count: 0,
                sampling: Time::ZERO,
                suppressed_until: None,
            })
        })
    }
}

/// The name of a weird, with the suffix `_in_tunnel` for a tunneled packet.
fn full_name(what: &Report<'_>) -> Cow<'static, str> {
    if what.in_tunnel { format!("{}_in_tunnel", what.name).into() } else { what.name.into() }
}

/// Raises the event of a weird that sampling does not exclude.
#[cold]
fn raise(sinks: &mut Sinks, subject: &Subject, what: &Report<'_>) {
    let name = &*full_name(what);
    let (addl, source) = (what.addl, what.source.unwrap_or_default());
    let events = &mut sinks.events;
    match (subject.uid, subject.id, subject.proto) {
        (Some(uid), Some(_), Some(_)) => {
            if let Some(c) = events.known_connection(uid)
                && events.wants::<ConnWeird<'_>>()
            {
                events.raise(&ConnWeird { name, c, addl, source });
                if is_reported_by_scripts(what.name) {
                    events.show_end(c);
                }
            }
        }
        (Some(uid), Some(id), None) => {
            if events.wants::<ExpiredConnWeird<'_>>() {
                let id = Id4(id, Proto::Unknown, 0);
                events.raise(&ExpiredConnWeird { name, id, uid, addl, source });
            }
        }
        (None, Some(id), _) => {
            if events.wants::<FlowWeird<'_>>() {
                let (src, dst) = (id.orig_h, id.resp_h);
                events.raise(&FlowWeird { name, src, dst, addl, source });
            }
        }
        _ => {
            if events.wants::<NetWeird<'_>>() {
                events.raise(&NetWeird { name, addl, source });
            }
        }
    }
}

impl Seen {
    /// Whether the window is over or has not begun, for subjects other than connections.
    #[inline]
    fn is_over(&self, now: Time, duration: Interval) -> bool {
        self.count == 0 || now >= self.sampling + duration
    }

    /// Counts a weird; returns whether sampling excludes it.
    ///
    /// The window of a connection's weirds begins when sampling starts, that of other subjects with
    /// the first weird.
    fn is_sampled_out(&mut self, now: Time, uid: Option<Uid>, rate: SamplingRate) -> bool {
        if self.uid != uid {
            self.uid = uid;
            self.count = 0;
        }
        self.count += 1;
        if self.count == rate.threshold.saturating_add(1) && uid.is_some() {
            self.sampling = now;
        }
        if self.count <= rate.threshold {
            return false;
        }
        if uid.is_some() && now > self.sampling + rate.duration {
            self.count = 1;
            return false;
        }
        !rate.permits(self.count)
    }

    /// Whether it was reported so recently that it is still suppressed after the last check.
    #[inline]
    fn is_suppressed(&self, checks: Checks) -> bool {
        self.suppressed_until.is_some_and(|until| checks.is_none_or(|(_, last)| last <= until))
    }
}

/// The time after which a check allows a weird reported `now` to be reported again.
fn suppression_end(checks: Checks, now: Time, silence: Interval) -> Time {
    let first = checks.map_or(now, |(first, _)| first);
    first + Interval::from_secs((now - first).as_nanos() / 1_000_000_000) + silence
}

fn notice_row<'a>(
    ts: Time,
    subject: &Subject,
    msg: &'a str,
    sub: Option<&'a [u8]>,
) -> NoticeRow<'a> {
    NoticeRow {
        uid: subject.uid,
        id: subject.id,
        proto: subject.proto,
        sub,
        src: subject.id.map(|id| id.orig_h),
        dst: subject.id.map(|id| id.resp_h),
        p: subject.id.map(|id| gannet_log::Port(id.resp_p)),
        ..NoticeRow::plain(ts, "Weird::Activity", msg)
    }
}
