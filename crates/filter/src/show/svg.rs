//! The graph as a drawing in layers: each block one layer below the lowest of its predecessors, and
//! within a layer below the middle of them.

use std::fmt::Write;

use super::listing::step;
use crate::ir::{ACCEPT, Graph, Step};

/// Maximum number of drawn blocks.
const MAX_BLOCKS: usize = 400;
const CHAR: usize = 7;
const HIGH: usize = 26;
const GAP: usize = 24;
const LAYER: usize = 70;
/// Maximum length of a label in characters; longer ones are truncated.
const MAX_LABEL: usize = 48;

impl Graph {
    /// A drawing: solid lines where a test holds, dashed ones where it does not.
    pub fn to_svg(&self) -> String {
        let order: Vec<usize> = self.order().into_iter().take(MAX_BLOCKS).collect();
        let shown = |id: usize| order.contains(&id);
        let next = |id: usize| {
            let block = &self.blocks[id];
            let both = [(block.yes, true), (block.no, false)];
            let count = match block.step {
                Step::Return(_) => 0,
                Step::Set(..) => 1,
                _ => 2,
            };
            both.into_iter().take(count)
        };
        let mut layer = vec![0; self.blocks.len()];
        for id in &order {
            for (to, _) in next(*id) {
                layer[to] = layer[to].max(layer[*id] + 1);
            }
        }
        // The verdicts share the bottom layer.
        let bottom = order.iter().filter(|id| **id > ACCEPT).map(|id| layer[*id] + 1).max();
        for verdict in [0, ACCEPT] {
            layer[verdict] = bottom.unwrap_or(0);
        }
        let labels: Vec<String> = order
            .iter()
            .map(|id| {
                let full = step(&self.values, &self.blocks[*id].step);
                let mut text: String = full.chars().take(MAX_LABEL).collect();
                if text.len() < full.len() {
                    text.push('…');
                }
                text
            })
            .collect();
        let width = |i: usize| labels[i].chars().count() * CHAR + 16;
        // The centre of each block; those of a layer are side by side.
        let mut middle = vec![0; self.blocks.len()];
        let layers = order.iter().map(|id| layer[*id]).max().unwrap_or(0);
        let mut right = 0;
        for level in 0..=layers {
            let mut row: Vec<usize> =
                (0..order.len()).filter(|i| layer[order[*i]] == level).collect();
            let wanted = |middle: &[usize], i: usize| {
                let above = order.iter().filter(|id| next(**id).any(|(to, _)| to == order[i]));
                let all: Vec<usize> = above.map(|id| middle[*id]).collect();
                all.iter().sum::<usize>() / all.len().max(1)
            };
            row.sort_by_key(|i| wanted(&middle, *i));
            let mut x = GAP;
            for i in row {
                let half = width(i) / 2;
                let at = wanted(&middle, i).max(x + half);
                middle[order[i]] = at;
                x = at + half + GAP;
                right = right.max(x);
            }
        }
        let (w, h) = (right, (layers + 1) * LAYER + GAP);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" font-family=\"monospace\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let top = |id: usize| layer[id] * LAYER + GAP;
        for id in &order {
            for (to, yes) in next(*id).filter(|(to, _)| shown(*to)) {
                let (x1, y1, x2, y2) = (middle[*id], top(*id) + HIGH, middle[to], top(to));
                let (c1, c2) = (y1 + LAYER / 2, y2.saturating_sub(LAYER / 2));
                let style = match yes {
                    true => "stroke=\"#1a6\"",
                    false => "stroke=\"#a33\" stroke-dasharray=\"4 3\"",
                };
                let _ = writeln!(
                    out,
                    "<path d=\"M{x1} {y1}C{x1} {c1} {x2} {c2} {x2} {y2}\" fill=\"none\" {style}/>"
                );
            }
        }
        for (i, id) in order.iter().enumerate() {
            let (x, y) = (middle[*id] - width(i) / 2, top(*id));
            let round = if *id <= ACCEPT { HIGH / 2 } else { 3 };
            let text = labels[i].replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{HIGH}\" rx=\"{round}\" \
                 fill=\"#f6f8fa\" stroke=\"#555\"/><text x=\"{}\" y=\"{}\" \
                 text-anchor=\"middle\">{text}</text>",
                width(i),
                middle[*id],
                y + 17
            );
        }
        out.push_str("</svg>\n");
        out
    }
}
