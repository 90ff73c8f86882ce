//! Which analyzers may start, and on which ports: what scripts change while packets are read.

use std::collections::HashMap;
use std::collections::HashSet;

use gannet_base::Addr;
use gannet_base::Proto;
use gannet_base::Time;
use gannet_dict::KeyedHash;
use gannet_event::Command;

use crate::Env;
use crate::Tag;
use crate::registry::by_port;
use crate::registry::is_likely_server_port;

/// The analyzers that scripts allow. Without scripts, all of them, on their own ports.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    /// Ports that scripts registered; `None` while the registry's own hold.
    ports: Option<HashMap<(u8, u16), Vec<Tag>, KeyedHash>>,
    disabled: HashSet<Tag>,
    /// Ports that servers are likely to have, where scripts say so.
    likely: Option<HashSet<(u8, u16)>>,
    /// Analyzers that may be started for what a connection begins with; `None`: all.
    detected: Option<HashSet<Tag>>,
    /// Connections that scripts expect, with when that ends.
    scheduled: HashMap<Scheduled, (Tag, Time), KeyedHash>,
    /// Values of options that scripts have.
    settings: HashMap<&'static str, u64>,
}

/// Connections that are expected at the most. At more, those that did not come are dropped, then all.
const MAX_SCHEDULED: usize = 10_000;

/// A connection that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Scheduled {
    orig: Option<Addr>,
    resp: Addr,
    port: u16,
    proto: u8,
}

fn number(proto: Proto) -> u8 {
    match proto {
        Proto::Tcp => 6,
        Proto::Udp => 17,
        Proto::Icmp => 1,
        _ => 0,
    }
}

impl Steering {
    /// No analyzer but those that scripts register and detect.
    pub(crate) fn scripted() -> Self {
        Self { ports: Some(HashMap::default()), detected: Some(HashSet::new()), ..Self::default() }
    }

    /// Whether no script changed anything.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.ports.is_none() && self.disabled.is_empty()
    }

    /// Analyzers that are tried at once on a port.
    pub(crate) fn by_port(&self, proto: Proto, port: u16) -> Vec<Tag> {
        let all = match &self.ports {
            None => by_port(proto, port).to_vec(),
            Some(ports) => ports.get(&(number(proto), port)).cloned().unwrap_or_default(),
        };
        all.into_iter().filter(|tag| self.may_start(*tag)).collect()
    }

    /// Whether an analyzer is not disabled.
    #[inline]
    pub(crate) fn may_start(&self, tag: Tag) -> bool {
        self.disabled.is_empty() || !self.disabled.contains(&tag)
    }

    /// Whether an analyzer may be started for what a connection begins with.
    #[inline]
    pub(crate) fn may_detect(&self, tag: Tag) -> bool {
        // Where nothing is kept of how connections begin, nothing is found by that.
        let keeps = self.settings.get("dpd_buffer_size") != Some(&0);
        keeps
            && self.detected.as_ref().is_none_or(|tags| tags.contains(&tag))
            && self.may_start(tag)
    }

    /// What scripts expect a connection to be.
    pub(crate) fn scheduled(
        &mut self,
        orig: Addr,
        (resp, port): (Addr, u16),
        proto: Proto,
        now: Time,
    ) -> Option<Tag> {
        if self.scheduled.is_empty() {
            return None;
        }
        let proto = number(proto);
        [Some(orig), None].into_iter().find_map(|orig| {
            let key = Scheduled { orig, resp, port, proto };
            self.scheduled.get(&key).filter(|(_, until)| *until >= now).map(|(tag, _)| *tag)
        })
    }

    fn register(&mut self, tag: Tag, proto: Proto, port: u16, on: bool) {
        let Some(ports) = &mut self.ports else { return };
        let tags = ports.entry((number(proto), port)).or_default();
        tags.retain(|other| *other != tag);
        if on {
            tags.push(tag);
        }
    }
}

impl Env {
    /// Whether a server of a known protocol is likely to have this port.
    #[inline(always)]
    pub fn is_likely_server_port(&self, proto: Proto, port: u16) -> bool {
        match &self.steering.likely {
            None => is_likely_server_port(proto, port),
            Some(likely) => likely.contains(&(number(proto), port)),
        }
    }

    /// The value of an option, as scripts have it, or the default.
    #[inline]
    pub fn setting(&self, name: &'static str, default: u64) -> u64 {
        let settings = &self.steering.settings;
        if settings.is_empty() { default } else { settings.get(name).copied().unwrap_or(default) }
    }

    /// Whether scripts disabled an analyzer.
    #[inline]
    pub fn is_disabled(&self, tag: Tag) -> bool {
        !self.steering.may_start(tag)
    }

    /// Whether scripts say which analyzers are used.
    pub(crate) fn is_scripted(&self) -> bool {
        self.steering.detected.is_some()
    }

    /// The next connection between these hosts to a port of `resp` is of a protocol; `orig` is its originator. The
    /// connection that says so must [take it back](Self::unschedule) when it ends, so that there are never more
    /// expectations than connections.
    pub(crate) fn schedule(
        &mut self,
        orig: Addr,
        (resp, port): (Addr, u16),
        (tag, proto): (Tag, Proto),
        until: Time,
    ) {
        let key = Scheduled { orig: Some(orig), resp, port, proto: number(proto) };
        self.steering.scheduled.insert(key, (tag, until));
    }

    /// No such connection is expected any more.
    pub(crate) fn unschedule(&mut self, orig: Addr, (resp, port): (Addr, u16), proto: Proto) {
        if !self.steering.scheduled.is_empty() {
            let key = Scheduled { orig: Some(orig), resp, port, proto: number(proto) };
            self.steering.scheduled.remove(&key);
        }
    }

    /// Drops expectations that ended before `now`, if there are many.
    fn forget_scheduled(&mut self, now: Time) {
        let scheduled = &mut self.steering.scheduled;
        if scheduled.len() >= MAX_SCHEDULED {
            scheduled.retain(|_, (_, until)| *until >= now);
        }
        if scheduled.len() >= MAX_SCHEDULED {
            scheduled.clear();
            self.weirds.net(&mut self.logs, now, "too_many_scheduled_analyzers", "");
        }
    }

    /// More of a file that scripts read.
    fn input(&mut self, now: Time, name: &str, data: &[u8], ends: bool) {
        let id = match self.inputs.get(name) {
            Some(id) => *id,
            None => {
                let id = self.files.start_input(now, name);
                self.files.raise_new(&mut self.logs, id, None);
                self.files.obey(&mut self.logs, id);
                self.inputs.insert(name.to_owned(), id);
                id
            }
        };
        self.files.data(&mut self.logs, now, id, data);
        if ends {
            self.files.end(&mut self.logs, now, id);
            self.inputs.remove(name);
        }
        self.tell_of_files(now);
    }

    /// Carries out a request of scripts about analyzers.
    pub fn steer(&mut self, now: Time, command: Command) {
        let steering = &mut self.steering;
        match command {
            Command::Port { analyzer, proto, port, on } => {
                if let Some(tag) = Tag::of_zeek_name(&analyzer) {
                    steering.register(tag, proto, port, on);
                }
            }
            Command::Enable { analyzer: None, on: false } => {
                steering.disabled =
                    Tag::ALL.iter().copied().filter(|t| *t != Tag::Detector).collect();
            }
            Command::Enable { analyzer: None, on: true } => steering.disabled.clear(),
            Command::Enable { analyzer: Some(analyzer), on } if analyzer.starts_with("Files::") => {
                self.files.enable(&analyzer, on);
            }
            Command::Enable { analyzer: Some(analyzer), on } => {
                if let Some(tag) = Tag::of_zeek_name(&analyzer) {
                    if on {
                        steering.disabled.remove(&tag);
                    } else {
                        steering.disabled.insert(tag);
                    }
                }
            }
            Command::Detect { analyzer, on } => {
                if let Some(tag) = Tag::of_zeek_name(&analyzer)
                    && let Some(tags) = &mut steering.detected
                {
                    if on {
                        tags.insert(tag);
                    } else {
                        tags.remove(&tag);
                    }
                }
            }
            Command::Schedule { orig, resp, port, proto, analyzer, timeout } => {
                if let Some(tag) = Tag::of_zeek_name(&analyzer) {
                    self.forget_scheduled(now);
                    let key = Scheduled { orig, resp, port, proto: number(proto) };
                    self.steering.scheduled.insert(key, (tag, now + timeout));
                }
            }
            Command::LikelyPorts(ports) => {
                let all = ports.into_iter().map(|(proto, port)| (number(proto), port));
                steering.likely = Some(all.collect());
            }
            Command::Setting { name, value } => {
                steering.settings.insert(name, value);
                let most = usize::try_from(value).unwrap_or(usize::MAX);
                match name {
                    // 0 is no limit.
                    "SMB::max_pending_messages" if most == 0 => {
                        self.pending.set(Tag::Smb, usize::MAX);
                    }
                    "SMB::max_pending_messages" => self.pending.set(Tag::Smb, most),
                    "DCE_RPC::max_cmd_reassembly" => self.pending.set(Tag::DceRpc, most),
                    _ => {}
                }
            }
            Command::Contents { source, data, ends } => self.input(now, &source, &data, ends),
            Command::Connection { .. }
            | Command::File { .. }
            | Command::Filter(_)
            | Command::AskToDiscard
            | Command::Unchecked(_)
            | Command::Stop => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_decide_what_starts_on_a_port() {
        let mut all = Steering::default();
        assert_eq!(all.by_port(Proto::Tcp, 80), [Tag::Http]);
        all.disabled.insert(Tag::Http);
        assert!(all.by_port(Proto::Tcp, 80).is_empty());
        let mut none = Steering::scripted();
        assert!(none.by_port(Proto::Tcp, 80).is_empty() && !none.may_detect(Tag::Http));
        none.register(Tag::Http, Proto::Tcp, 8123, true);
        assert_eq!(none.by_port(Proto::Tcp, 8123), [Tag::Http]);
        none.register(Tag::Http, Proto::Tcp, 8123, false);
        assert!(none.by_port(Proto::Tcp, 8123).is_empty());
    }
}
