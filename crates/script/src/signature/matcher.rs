//! Matching of rules against the data of a connection.

use super::rules::*;
use super::tree::{Node, Signatures};
use crate::support::pattern::Stream;

/// The matching state of a connection.
#[derive(Debug, Default)]
pub struct Connection {
    /// The originator's side, then the responder's.
    sides: [Option<Side>; 2],
}

/// The headers of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Headers<'a> {
    /// IP version: 4 or 6.
    pub version: u8,
    /// The IP headers.
    pub header: &'a [u8],
    /// The payload after them.
    pub payload: &'a [u8],
    /// The protocol of the payload.
    pub protocol: u8,
}

/// A piece of the data that patterns of one kind are matched against.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its bytes.
    pub data: &'a [u8],
    /// Whether `^` matches before it; always true for the first data of a side.
    pub begins: bool,
    /// Whether `$` matches after it.
    pub ends: bool,
    /// Whether matching restarts with this piece, without the previous bytes.
    pub fresh: bool,
}

/// The context of a match.
#[derive(Debug, Clone, Copy)]
pub struct MatchContext<'a> {
    /// Whether the originator sent the data.
    pub is_orig: bool,
    /// Size of the first data in bytes; -1 before it.
    pub payload_size: i64,
    /// The data that completed the rule; `None` for rules without patterns.
    pub data: Option<&'a [u8]>,
    /// Length of the data up to the end of the match.
    pub end: u64,
}

/// Evaluates conditions and executes actions.
pub trait Host {
    /// Whether a condition holds that the matcher does not evaluate itself.
    fn holds(&mut self, rule: &Rule, condition: Condition, context: &MatchContext<'_>) -> bool;
    /// Executes an action.
    fn act(&mut self, rule: &Rule, action: &Action, context: &MatchContext<'_>);
}

/// One side of a connection.
#[derive(Debug)]
struct Side {
    /// Nodes whose tests passed and that contain rules.
    nodes: Vec<usize>,
    matchers: Vec<Matcher>,
    /// Rules that matched.
    matched: Vec<usize>,
    /// Rules whose patterns have all matched.
    complete: Vec<Complete>,
    payload_size: i64,
    /// Number of bytes of each kind.
    received: [u64; Kind::ALL.len()],
}

#[derive(Debug)]
struct Matcher {
    node: usize,
    group: usize,
    kind: Kind,
    stream: Stream,
}

/// A rule whose patterns have all matched.
#[derive(Debug)]
struct Complete {
    rule: usize,
    data: Vec<u8>,
    end: u64,
}

/// The data of a rule that may match.
#[derive(Clone, Copy)]
struct RuleData<'a> {
    data: Option<&'a [u8]>,
    /// Whether the connection ends, so that rules cannot match later.
    at_end: bool,
}

impl Connection {
    /// Whether [`Signatures::begin`] was called for a side.
    #[must_use]
    pub fn has_begun(&self, is_orig: bool) -> bool {
        self.sides[side_index(is_orig)].is_some()
    }
}

fn side_index(is_orig: bool) -> usize {
    usize::from(!is_orig)
}

impl Signatures {
    /// Starts a side with its first packet. Without a packet, only rules without header tests are matched.
    pub fn begin(
        &self,
        conn: &mut Connection,
        is_orig: bool,
        packet: Option<&Headers<'_>>,
        host: &mut dyn Host,
    ) {
        let side_index = side_index(is_orig);
        conn.sides[side_index] = Some(Side {
            nodes: Vec::new(),
            matchers: Vec::new(),
            matched: Vec::new(),
            complete: Vec::new(),
            payload_size: -1,
            received: [0; Kind::ALL.len()],
        });
        let mut open = vec![0];
        let mut next = 0;
        while let Some(number) = open.get(next).copied() {
            next += 1;
            let Some(node) = self.nodes.get(number) else { continue };
            if let Some(side) = &mut conn.sides[side_index]
                && (!node.pure.is_empty() || !node.patterned.is_empty())
            {
                side.nodes.push(number);
            }
            for rule in &node.pure {
                let rule_data = RuleData { data: None, at_end: false };
                if self.conditions_hold(conn, side_index, *rule, rule_data, host) {
                    self.act(conn, side_index, *rule, rule_data, host);
                }
            }
            if let Some(side) = &mut conn.sides[side_index] {
                side.matchers.extend(node.groups.iter().enumerate().map(|(group, g)| Matcher {
                    node: number,
                    group,
                    kind: g.kind,
                    stream: g.set.stream(),
                }));
            }
            if let Some(packet) = packet {
                let holds = |child: &&usize| {
                    self.nodes
                        .get(**child)
                        .and_then(|n| n.test.as_ref())
                        .is_some_and(|test| holds(test, packet))
                };
                open.extend(node.children.iter().filter(holds));
            }
        }
        // The beginning of the data.
        let data = Item { kind: Kind::Payload, data: b"", begins: true, ends: false, fresh: false };
        self.feed(conn, is_orig, &data, host);
    }

    /// Matches data of a side that has begun.
    pub fn feed(&self, conn: &mut Connection, is_orig: bool, item: &Item<'_>, host: &mut dyn Host) {
        let side_index = side_index(is_orig);
        let Some(side) = &mut conn.sides[side_index] else { return };
        let mut begins = item.begins;
        if item.kind == Kind::Payload {
            begins = side.payload_size < 0;
            if side.payload_size <= 0 {
                side.payload_size = i64::try_from(item.data.len()).unwrap_or(i64::MAX);
            }
        }
        let received = &mut side.received[item.kind as usize];
        if item.fresh {
            *received = 0;
        }
        let before = *received;
        *received += item.data.len() as u64;
        let mut new = false;
        for matcher in side.matchers.iter_mut().filter(|m| m.kind == item.kind) {
            let group = self.nodes.get(matcher.node).and_then(|n| n.groups.get(matcher.group));
            let Some(group) = group else { continue };
            if item.fresh {
                matcher.stream.restart();
            }
            new |= group.set.feed(&mut matcher.stream, item.data, begins, item.ends);
        }
        if new {
            let complete = self.complete(side, item.kind, before);
            self.match_complete(conn, side_index, &complete, item.data, host);
        }
    }

    /// Rules whose patterns have all matched, in order, each with the end of the last match in the current
    /// data.
    fn complete(&self, side: &Side, kind: Kind, before: u64) -> Vec<(usize, u64)> {
        let mut matches: Vec<(usize, usize, u64)> = Vec::new();
        for matcher in &side.matchers {
            let Some(node) = self.nodes.get(matcher.node) else { continue };
            let Some(group) = node.groups.get(matcher.group) else { continue };
            for (number, end) in matcher.stream.matches() {
                if let Some((rule, index)) = self.pattern(group, *number) {
                    matches.push((rule, index, *end));
                }
            }
        }
        matches.sort_unstable();
        let mut complete: Vec<(usize, u64)> = Vec::new();
        for (rule, index, end) in &matches {
            let Some(patterns) = self.rules.get(*rule).map(|rule| &rule.patterns) else { continue };
            let matched = |index: usize| matches.iter().any(|m| (m.0, m.1) == (*rule, index));
            let is_complete =
                patterns.iter().enumerate().all(|(at, p)| matched(at) && *end <= p.depth);
            if !is_complete {
                continue;
            }
            let is_now = patterns.get(*index).is_some_and(|p| p.kind == kind);
            let end = if is_now { end.saturating_sub(before) } else { 0 };
            match complete.last_mut() {
                Some(last) if last.0 == *rule => last.1 = end,
                _ => complete.push((*rule, end)),
            }
        }
        complete
    }

    fn match_complete(
        &self,
        conn: &mut Connection,
        side_index: usize,
        complete: &[(usize, u64)],
        data: &[u8],
        host: &mut dyn Host,
    ) {
        for (rule, end) in complete {
            let Some(side) = &mut conn.sides[side_index] else { return };
            if side.matched.contains(rule) || !self.has_rule(side, *rule) {
                continue;
            }
            if !side.complete.iter().any(|known| known.rule == *rule) {
                side.complete.push(Complete { rule: *rule, data: data.to_vec(), end: *end });
            }
            let rule_data = RuleData { data: Some(data), at_end: false };
            if self.conditions_hold(conn, side_index, *rule, rule_data, host) {
                self.act(conn, side_index, *rule, rule_data, host);
            }
        }
    }

    /// Whether a rule is in a node whose tests passed.
    fn has_rule(&self, side: &Side, rule: usize) -> bool {
        self.node_of(side, rule).is_some()
    }

    fn node_of(&self, side: &Side, rule: usize) -> Option<&Node> {
        side.nodes.iter().filter_map(|node| self.nodes.get(*node)).find(|node| node.has(rule))
    }

    /// Ends the connection.
    pub fn finish(&self, conn: &mut Connection, host: &mut dyn Host) {
        for side_index in [0, 1] {
            if conn.sides[side_index].is_none() {
                continue;
            }
            let end =
                Item { kind: Kind::Payload, data: b"", begins: false, ends: true, fresh: false };
            self.feed(conn, side_index == 0, &end, host);
            self.match_pure(conn, side_index, host);
            let complete = conn.sides[side_index].as_ref().map_or(0, |side| side.complete.len());
            for index in 0..complete {
                let Some(side) = &conn.sides[side_index] else { break };
                let Some(Complete { rule, data, .. }) = side.complete.get(index) else { break };
                let (rule, data) = (*rule, data.clone());
                self.match_rule(
                    conn,
                    side_index,
                    rule,
                    RuleData { data: Some(&data), at_end: true },
                    host,
                );
            }
        }
    }

    /// Ends the data of a side, before the next datagram.
    pub fn clear(&self, conn: &mut Connection, is_orig: bool, host: &mut dyn Host) {
        let side_index = side_index(is_orig);
        self.match_pure(conn, side_index, host);
        let Some(side) = &mut conn.sides[side_index] else { return };
        side.payload_size = -1;
        side.received = [0; Kind::ALL.len()];
        for matcher in &mut side.matchers {
            let group = self.nodes.get(matcher.node).and_then(|n| n.groups.get(matcher.group));
            if let Some(group) = group {
                matcher.stream = group.set.stream();
            }
        }
    }

    /// Matches rules without patterns that have not matched before.
    fn match_pure(&self, conn: &mut Connection, side_index: usize, host: &mut dyn Host) {
        let Some(side) = &conn.sides[side_index] else { return };
        let nodes = side.nodes.iter().filter_map(|node| self.nodes.get(*node));
        let rules: Vec<usize> = nodes.flat_map(|node| node.pure.iter().copied()).collect();
        for rule in rules {
            self.match_rule(conn, side_index, rule, RuleData { data: None, at_end: true }, host);
        }
    }

    /// Matches a rule whose patterns have all matched, unless it matched before.
    fn match_rule(
        &self,
        conn: &mut Connection,
        side_index: usize,
        rule: usize,
        rule_data: RuleData<'_>,
        host: &mut dyn Host,
    ) {
        let is_new =
            conn.sides[side_index].as_ref().is_some_and(|side| !side.matched.contains(&rule));
        // Conditions do not see the data here, but actions do.
        if is_new
            && self.conditions_hold(
                conn,
                side_index,
                rule,
                RuleData { data: None, ..rule_data },
                host,
            )
        {
            self.act(conn, side_index, rule, rule_data, host);
        }
    }

    fn conditions_hold(
        &self,
        conn: &Connection,
        side_index: usize,
        number: usize,
        rule_data: RuleData<'_>,
        host: &mut dyn Host,
    ) -> bool {
        let (Some(rule), Some(side)) = (self.rules.get(number), &conn.sides[side_index]) else {
            return false;
        };
        let required = self.required.get(number).map_or(&[][..], |required| required);
        for (requires, other) in rule.requires.iter().zip(required) {
            let side =
                if requires.reverse { conn.sides[1 - side_index].as_ref() } else { Some(side) };
            let Some(side) = side else { return false };
            // That a rule does not match is known only at the end.
            if requires.negated && !rule_data.at_end
                || side.matched.contains(other) == requires.negated
            {
                return false;
            }
        }
        let context = side.context(side_index, number, rule_data.data);
        rule.conditions.iter().all(|condition| match condition {
            Condition::IpOptions => false,
            Condition::PayloadSize(size) => size.holds(side.payload_size),
            other => host.holds(rule, *other, &context),
        })
    }

    fn act(
        &self,
        conn: &mut Connection,
        side_index: usize,
        number: usize,
        rule_data: RuleData<'_>,
        host: &mut dyn Host,
    ) {
        let matched =
            |side: &Option<Side>| side.as_ref().is_some_and(|side| side.matched.contains(&number));
        if matched(&conn.sides[1 - side_index]) {
            return;
        }
        let (Some(rule), Some(side)) = (self.rules.get(number), &mut conn.sides[side_index]) else {
            return;
        };
        side.matched.push(number);
        if !rule.native {
            let context = side.context(side_index, number, rule_data.data);
            rule.actions.iter().for_each(|action| host.act(rule, action, &context));
        }
        for dependent in self.dependents.get(number).into_iter().flatten() {
            for side in [side_index, 1 - side_index] {
                self.match_dependent(conn, side, *dependent, rule_data.at_end, host);
            }
        }
    }

    /// Matches a rule that requires the rule that has matched.
    fn match_dependent(
        &self,
        conn: &mut Connection,
        side_index: usize,
        rule: usize,
        at_end: bool,
        host: &mut dyn Host,
    ) {
        let Some(side) = &conn.sides[side_index] else { return };
        let Some(node) = self.node_of(side, rule) else { return };
        if node.pure.contains(&rule) {
            return self.match_rule(conn, side_index, rule, RuleData { data: None, at_end }, host);
        }
        let complete = side.complete.iter().find(|known| known.rule == rule);
        if let Some(data) = complete.map(|known| known.data.clone()) {
            self.match_rule(conn, side_index, rule, RuleData { data: Some(&data), at_end }, host);
        }
    }

    /// The MIME types of a file that begins with `data`, by descending strength; equal strengths stay in rule
    /// order.
    #[must_use]
    pub fn mime_types(&self, data: &[u8]) -> Vec<(i64, Vec<u8>)> {
        let mut matches: Vec<(usize, usize, u64)> = Vec::new();
        for group in &self.magic {
            let mut stream = group.set.stream();
            group.set.feed(&mut stream, data, true, false);
            for (number, end) in stream.matches() {
                if let Some((rule, index)) = self.pattern(group, *number) {
                    matches.push((rule, index, *end));
                }
            }
        }
        let mut types = Vec::new();
        for (rule, _, end) in &matches {
            let Some(rule_of) = self.rules.get(*rule) else { continue };
            let matched = |index: usize| matches.iter().any(|m| (m.0, m.1) == (*rule, index));
            let mut patterns = rule_of.patterns.iter().enumerate();
            if !patterns.all(|(at, p)| matched(at) && *end <= p.depth) {
                continue;
            }
            for action in &rule_of.actions {
                if let Action::Mime { mime, strength } = action {
                    types.push((*strength, mime.to_vec()));
                }
            }
        }
        types.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        types.dedup();
        types
    }
}

impl Side {
    fn context<'a>(
        &self,
        side_index: usize,
        rule: usize,
        data: Option<&'a [u8]>,
    ) -> MatchContext<'a> {
        let complete = self.complete.iter().find(|known| known.rule == rule);
        let end = complete.filter(|_| data.is_some()).map_or(0, |known| known.end);
        MatchContext { is_orig: side_index == 0, payload_size: self.payload_size, data, end }
    }
}

/// Whether the headers of a packet pass a test.
fn holds(test: &Test, packet: &Headers<'_>) -> bool {
    let at = |bytes: &[u8]| {
        let start = usize::try_from(test.offset).ok()?;
        let bytes = bytes.get(start..)?.get(..usize::try_from(test.size).ok()?)?;
        Some(bytes.iter().fold(0_u32, |value, b| value << 8 | u32::from(*b)))
    };
    let number = match test.field {
        Field::Source | Field::Destination => {
            let Some(addr) = address(packet, test.field == Field::Source) else { return false };
            return test.comparison.holds(&test.prefixes, |prefix| {
                crate::value::mask(addr, prefix.bits).cmp(&prefix.base)
            });
        }
        Field::Protocol => Some(u32::from(packet.protocol)),
        Field::Ip if packet.version == 4 => at(packet.header),
        Field::Ip6 if packet.version == 6 => at(packet.header),
        Field::Ip | Field::Ip6 => None,
        Field::Transport(_) => at(packet.payload),
    };
    number.is_some_and(|number| {
        test.comparison.holds(&test.values, |masked| (number & masked.mask).cmp(&masked.value))
    })
}

/// The source or destination address of a header; IPv4 as a mapped address.
fn address(packet: &Headers<'_>, source: bool) -> Option<[u8; 16]> {
    if packet.version == 4 {
        let start = if source { 12 } else { 16 };
        let four = packet.header.get(start..start + 4)?.try_into().ok()?;
        return Some(crate::value::v4(four));
    }
    let start = if source { 8 } else { 24 };
    packet.header.get(start..start + 16)?.try_into().ok()
}
