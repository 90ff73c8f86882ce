//! Common substrings of two strings: Smith-Waterman local alignment.

/// A common substring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Substring {
    /// The substring.
    pub bytes: Vec<u8>,
    /// Its offsets in the first and in the second string.
    pub at: [usize; 2],
    /// Whether it begins a new alignment.
    pub begins: bool,
}

/// Maximum size of the matrix: 64 million cells of 12 bytes.
const MAX_CELLS: usize = 1 << 26;

#[derive(Clone, Copy, Default)]
struct MatrixCell {
    score: i32,
    /// Index of the preceding cell; 0 for none.
    before: u32,
    matches: bool,
    visited: bool,
}

struct Matrix<'s> {
    cells: Vec<MatrixCell>,
    columns: usize,
    first: &'s [u8],
}

/// The common substrings of at least `min_len` bytes: those of the best alignment or, with `repeated`, all that
/// are not part of another. Empty if the product of the lengths exceeds 64 million.
#[must_use]
pub fn smith_waterman(first: &[u8], second: &[u8], min_len: u64, repeated: bool) -> Vec<Substring> {
    let min_len = usize::try_from(min_len).unwrap_or(usize::MAX);
    let (rows, columns) = (first.len() + 1, second.len() + 1);
    if first.len() < min_len || second.len() < min_len || rows.saturating_mul(columns) > MAX_CELLS {
        return Vec::new();
    }
    let mut cells = vec![MatrixCell::default(); rows * columns];
    let (mut best, mut best_score) = (0, 1);
    for (i, x) in first.iter().enumerate() {
        for (j, y) in second.iter().enumerate() {
            let at = (i + 1) * columns + j + 1;
            let (diagonal, left, top) = (at - columns - 1, at - 1, at - columns);
            let matches = x == y;
            let (score, before) = if matches {
                // A match that continues a sequence of matches has a higher score.
                (cells[diagonal].score + if cells[diagonal].matches { 100 } else { 1 }, diagonal)
            } else {
                let score = cells[top].score.max(cells[left].score).max(cells[diagonal].score);
                (score, if score == cells[top].score { top } else { left })
            };
            cells[at] = MatrixCell { score, before: before as u32, matches, visited: false };
            if score > best_score {
                (best, best_score) = (at, score);
            }
        }
    }
    let mut matrix = Matrix { cells, columns, first };
    let mut found = Vec::new();
    if repeated {
        matrix.collect_all(rows, min_len, &mut found);
    } else if best > 0 {
        found = matrix.collect(best, min_len);
    }
    let by = usize::from(first.len() <= second.len());
    found.sort_by_key(|part| part.at[by]);
    found
}

impl Matrix<'_> {
    /// The substrings of the alignment that ends at a cell, the last one first.
    fn collect(&mut self, end: usize, min_len: usize) -> Vec<Substring> {
        let mut found = Vec::new();
        let mut part = Vec::new();
        let (mut row, mut column) = (0, 0);
        let mut at = end;
        let mut finish = |part: &mut Vec<u8>, row: usize, column: usize| {
            part.reverse();
            let at = [row.saturating_sub(1), column.saturating_sub(1)];
            found.push(Substring { bytes: std::mem::take(part), at, begins: false });
        };
        loop {
            let columns = self.columns;
            let Some(cell) = self.cells.get_mut(at) else { break };
            cell.visited = true;
            if cell.matches {
                (row, column) = (at / columns, at % columns);
                part.extend(self.first.get(row - 1));
            } else {
                if part.len() >= min_len && row > 0 {
                    finish(&mut part, row, column);
                }
                part.clear();
            }
            // Cells of the first row and column have no predecessor.
            if at < columns || at.is_multiple_of(columns) {
                break;
            }
            at = self.cells[at].before as usize;
        }
        if !part.is_empty() {
            finish(&mut part, row, column);
        }
        if let Some(last) = found.last_mut() {
            last.begins = true;
        }
        found
    }

    fn collect_all(&mut self, rows: usize, min_len: usize, found: &mut Vec<Substring>) {
        let mut alignments: Vec<Vec<Substring>> = Vec::new();
        for row in (1..rows).rev() {
            for column in (1..self.columns).rev() {
                let at = row * self.columns + column;
                if !self.cells[at].matches || self.cells[at].visited {
                    continue;
                }
                let new = self.collect(at, min_len);
                let mut replaced = None;
                let covered = 'search: {
                    for (index, old) in alignments.iter().enumerate() {
                        for old in old {
                            for new in &new {
                                if covers(old, new) {
                                    break 'search true;
                                }
                                if covers(new, old) {
                                    replaced = Some(index);
                                    break 'search false;
                                }
                            }
                        }
                    }
                    false
                };
                if let Some(index) = replaced {
                    alignments[index].clear();
                }
                if !covered {
                    alignments.push(new);
                }
            }
        }
        found.extend(alignments.into_iter().flatten());
    }
}

fn covers(outer: &Substring, inner: &Substring) -> bool {
    outer
        .at
        .iter()
        .zip(&inner.at)
        .all(|(a, b)| a <= b && a + outer.bytes.len() >= b + inner.bytes.len())
}
