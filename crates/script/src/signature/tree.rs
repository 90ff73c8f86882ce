//! Rules grouped by common header tests.

use std::collections::{HashMap, HashSet};

use super::rules::*;
use crate::support::pattern::{PatternSet, PatternStats};

/// Limits of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of patterns per automaton (`sig_max_group_size`).
    pub group: usize,
    /// Depth of header tests up to which each node has automata of its own (`-T`).
    pub level: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { group: 50, level: 4 }
    }
}

/// Signatures, ready to match.
#[derive(Debug)]
pub struct Signatures {
    pub(super) rules: Vec<Rule>,
    /// For each rule, the rules that it requires, in the order of its `requires`.
    pub(super) required: Vec<Vec<usize>>,
    /// For each rule, the rules that require it.
    pub(super) dependents: Vec<Vec<usize>>,
    /// Nodes, the root first.
    pub(super) nodes: Vec<Node>,
    /// Patterns by their number in automata: rule, and index in its patterns.
    pub(super) patterns: Vec<(usize, usize)>,
    /// The automata for `file-magic`.
    pub(super) magic: Vec<Group>,
    has: [bool; Kind::ALL.len()],
    /// Whether a rule exists that is not about files.
    has_others: bool,
}

/// Rules with the same header tests.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) test: Option<Test>,
    pub(super) children: Vec<usize>,
    /// Rules without patterns.
    pub(super) pure: Vec<usize>,
    pub(super) patterned: Vec<usize>,
    pub(super) groups: Vec<Group>,
    pub(super) level: usize,
}

impl Node {
    pub(super) fn has(&self, rule: usize) -> bool {
        self.pure.contains(&rule) || self.patterned.contains(&rule)
    }
}

/// An automaton of patterns of one kind.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) kind: Kind,
    pub(super) set: PatternSet,
    /// The numbers of its patterns in [`Signatures::patterns`].
    pub(super) patterns: Vec<usize>,
}

impl Signatures {
    /// Builds the tree of the rules. Errors are reported to `names`.
    #[must_use]
    pub fn new(rules: Vec<Rule>, limits: Limits, names: &mut dyn Names) -> Self {
        let by_id: HashMap<&str, usize> =
            rules.iter().enumerate().map(|(at, rule)| (&*rule.id, at)).collect();
        let mut required = vec![Vec::new(); rules.len()];
        let mut dependents = vec![Vec::new(); rules.len()];
        for (at, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.active) {
            for other in &rule.requires {
                let Some(found) = by_id.get(&*other.id) else {
                    let Rule { id, file, line, .. } = rule;
                    let text = "unknown rule referenced";
                    names.error(&format!("Error in signature {id} ({file}:{line}): {text}"));
                    break;
                };
                required[at].push(*found);
                dependents[*found].push(at);
            }
        }
        let in_use = in_use(&rules, &required);
        let mut all = Self {
            nodes: vec![Node::default()],
            required,
            dependents,
            patterns: Vec::new(),
            magic: Vec::new(),
            has: [false; Kind::ALL.len()],
            has_others: false,
            rules,
        };
        for rule in 0..all.rules.len() {
            if in_use.contains(&rule) {
                all.insert(rule);
            } else if all.rules[rule].active {
                // Tests of native rules are ordered among those of other rules.
                all.node(rule);
            }
        }
        all.prune(0);
        all.compile(0, limits, names);
        let root = &mut all.nodes[0];
        let (magic, others) =
            std::mem::take(&mut root.groups).into_iter().partition(|g| g.kind == Kind::FileMagic);
        root.groups = others;
        all.magic = magic;
        all
    }

    /// The automata, each with the kind of its patterns and the names of their rules.
    pub fn automata(&self) -> impl Iterator<Item = (Kind, Vec<&str>, PatternStats)> {
        let groups = self.nodes.iter().flat_map(|node| &node.groups).chain(&self.magic);
        groups.map(|group| {
            let rule = |pattern: &usize| Some(&*self.rules.get(self.patterns.get(*pattern)?.0)?.id);
            let mut names: Vec<_> = group.patterns.iter().filter_map(rule).collect();
            names.dedup();
            (group.kind, names, group.set.stats())
        })
    }

    /// Whether patterns of `kind` exist.
    #[must_use]
    pub fn has(&self, kind: Kind) -> bool {
        self.has[kind as usize]
    }

    /// Whether rules about connections exist.
    #[must_use]
    pub fn has_connections(&self) -> bool {
        self.has_others
    }

    /// Whether a rule attaches an analyzer.
    #[must_use]
    pub fn starts_analyzers(&self) -> bool {
        let starts = |action: &Action| matches!(action, Action::Enable { .. });
        self.rules.iter().any(|rule| !rule.native && rule.actions.iter().any(starts))
    }

    /// The node for the header tests of a rule; added if missing.
    fn node(&mut self, rule: usize) -> usize {
        let mut node = 0;
        for test in self.rules[rule].tests.clone() {
            let same = |child: &usize| self.nodes[*child].test.as_ref() == Some(&test);
            node = match self.nodes[node].children.iter().copied().find(|child| same(child)) {
                Some(child) => child,
                None => {
                    let child = self.nodes.len();
                    let level = self.nodes[node].level + 1;
                    self.nodes.push(Node { test: Some(test), level, ..Node::default() });
                    // The newest child is tested first.
                    self.nodes[node].children.insert(0, child);
                    child
                }
            };
        }
        node
    }

    /// Removes nodes without rules. Returns whether any node remains.
    fn prune(&mut self, node: usize) -> bool {
        let mut children = std::mem::take(&mut self.nodes[node].children);
        children.retain(|child| self.prune(*child));
        let Node { pure, patterned, .. } = &self.nodes[node];
        let is_used = !(pure.is_empty() && patterned.is_empty() && children.is_empty());
        self.nodes[node].children = children;
        is_used
    }

    fn insert(&mut self, rule: usize) {
        let node = self.node(rule);
        let patterns = &self.rules[rule].patterns;
        self.has_others |= patterns.is_empty();
        for pattern in patterns {
            self.has[pattern.kind as usize] = true;
            self.has_others |= pattern.kind != Kind::FileMagic;
        }
        let list = match patterns.is_empty() {
            true => &mut self.nodes[node].pure,
            false => &mut self.nodes[node].patterned,
        };
        list.insert(0, rule);
    }

    /// Builds the automata of a node and its descendants. Returns the patterns without an automaton.
    fn compile(&mut self, node: usize, limits: Limits, names: &mut dyn Names) -> Vec<usize> {
        let mut own = Vec::new();
        for rule in self.nodes[node].patterned.clone() {
            for index in 0..self.rules[rule].patterns.len() {
                own.push(self.patterns.len());
                self.patterns.push((rule, index));
            }
        }
        let level = self.nodes[node].level;
        if level < limits.level {
            self.group(node, &own, limits, names);
        }
        let mut all = own;
        for child in self.nodes[node].children.clone() {
            all.extend(self.compile(child, limits, names));
        }
        if level == limits.level {
            self.group(node, &all, limits, names);
        }
        all
    }

    fn group(&mut self, node: usize, patterns: &[usize], limits: Limits, names: &mut dyn Names) {
        for kind in Kind::ALL {
            let of_kind = patterns.iter().copied().filter(|number| {
                let (rule, index) = self.patterns[*number];
                self.rules[rule].patterns[index].kind == kind
            });
            let of_kind: Vec<usize> = of_kind.collect();
            for some in of_kind.chunks(limits.group.max(1)) {
                // A dot matches newlines.
                let text = |number: &usize| {
                    let (rule, index) = self.patterns[*number];
                    [b"(?s:", &*self.rules[rule].patterns[index].text, b")"].concat()
                };
                let set = PatternSet::new(some.iter().map(text));
                for (number, error) in set.errors() {
                    let wrong = some.get(*number as usize).and_then(|p| self.patterns.get(*p));
                    let Some((rule, index)) = wrong else { continue };
                    let Rule { id, file, patterns, .. } = &self.rules[*rule];
                    let line = patterns[*index].line;
                    let text = String::from_utf8_lossy(error);
                    names.error(&format!("Error in signature {id} ({file}:{line}): {text}"));
                }
                self.nodes[node].groups.push(Group { kind, set, patterns: some.to_vec() });
            }
        }
    }

    /// Rule and index of a pattern of a group.
    pub(super) fn pattern(&self, group: &Group, number: u32) -> Option<(usize, usize)> {
        let number = group.patterns.get(usize::try_from(number).ok()?)?;
        self.patterns.get(*number).copied()
    }
}

/// The rules to match: the active rules of scripts, and the native rules that these require. A pattern that
/// matches the empty string is reported when any other pattern matches, so such a rule activates all native
/// rules about connections.
fn in_use(rules: &[Rule], required: &[Vec<usize>]) -> HashSet<usize> {
    let others = |rule: &Rule| rule.patterns.iter().all(|p| p.kind != Kind::FileMagic);
    let own = |rule: &&Rule| rule.active && !rule.native;
    let mut patterns =
        rules.iter().filter(own).filter(|rule| others(rule)).flat_map(|rule| &rule.patterns);
    let all = patterns.any(|pattern| matches_empty(&pattern.text));
    let is_used = |(at, rule): (usize, &Rule)| {
        (rule.active && (!rule.native || all && others(rule))).then_some(at)
    };
    let mut open: Vec<usize> = rules.iter().enumerate().filter_map(is_used).collect();
    let mut found = HashSet::new();
    while let Some(rule) = open.pop() {
        if found.insert(rule) {
            open.extend(required[rule].iter().copied().filter(|r| rules[*r].active));
        }
    }
    found
}

/// Whether a pattern matches the empty string.
fn matches_empty(text: &[u8]) -> bool {
    let set = PatternSet::new([[b"(?s:", text, b")"].concat()]);
    let mut stream = set.stream();
    set.feed(&mut stream, b"", false, false);
    !stream.matches().is_empty()
}
