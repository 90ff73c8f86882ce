//! Values of sequence codes (RFC 8878 section 3.1.1.3.2.1.1), and their tables.

use super::fse::Counts;
use super::fse::STATES;
use super::fse::TABLE_SIZE;
use super::job::Kind;
use super::job::TableDescription;

/// Literal lengths, offsets and match lengths, in the order in which they are described.
pub(super) const LITERALS: usize = 0;
pub(super) const OFFSETS: usize = 1;
pub(super) const MATCHES: usize = 2;

/// Number of codes of each.
pub(super) const SYMBOLS: [usize; 3] = [36, 32, 53];

/// Base-2 logarithms of the maximum table sizes.
pub(super) const LOGS: [u32; 3] = [9, 8, 9];

/// The tables of blocks that describe none (section 3.1.1.3.2.2).
pub(super) const PREDEFINED: [Counts; 3] = [
    Counts::known(
        6,
        [
            4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1,
            1, 1, 1, -1, -1, -1, -1,
        ],
    ),
    Counts::known(
        5,
        [
            1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1,
            -1,
        ],
    ),
    Counts::known(
        6,
        [
            1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
        ],
    ),
];

/// The meaning of a state of an FSE table.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Entry {
    /// Bits to read for the next state: at most 9.
    pub(super) state_bits: u8,
    /// Bits to read for the value: at most 31.
    pub(super) value_bits: u8,
    /// The next state, without those bits.
    pub(super) next: u16,
    /// The value, without those bits.
    pub(super) value: u32,
}

const fn entry(value_bits: u32, value: u32) -> Entry {
    Entry { state_bits: 0, value_bits: value_bits as u8, next: 0, value }
}

/// Codes from `first` on: each range begins where the previous one ended.
const fn meanings(mut value: u32, plain: usize, bits: &[u8]) -> [Entry; TABLE_SIZE] {
    let mut all = [entry(0, 0); TABLE_SIZE];
    let mut at = 0;
    while at < plain + bits.len() {
        let more = if at < plain { 0 } else { bits[at - plain] as u32 };
        all[at] = entry(more, value);
        value = value.wrapping_add(1 << more);
        at += 1;
    }
    all
}

const LITERAL_MEANINGS: [Entry; TABLE_SIZE] =
    meanings(0, 16, &[1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);

const MATCH_MEANINGS: [Entry; TABLE_SIZE] =
    meanings(3, 32, &[1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);

const OFFSET_MEANINGS: [Entry; TABLE_SIZE] = {
    let mut all = [entry(0, 0); TABLE_SIZE];
    let mut code = 0;
    while code < SYMBOLS[OFFSETS] {
        all[code] = entry(code as u32, 1 << code);
        code += 1;
    }
    all
};

/// The current tables of sequences, and their ids.
///
/// The next state of each entry, with all state bits set, is within its table.
#[derive(Debug)]
pub(super) struct Tables {
    ids: [u64; 3],
    /// Table sizes are 2 to the power of these.
    pub(super) logs: [u8; 3],
    pub(super) all: [[Entry; STATES]; 3],
}

impl Default for Tables {
    fn default() -> Self {
        Self { ids: [0; 3], logs: [0; 3], all: [[entry(0, 0); STATES]; 3] }
    }
}

impl Tables {
    /// Updates the tables to those described.
    pub(super) fn set(&mut self, described: &[TableDescription; 3]) {
        for (which, described) in described.iter().enumerate() {
            if self.ids[which] == described.id {
                continue;
            }
            let meanings = match which {
                LITERALS => &LITERAL_MEANINGS,
                OFFSETS => &OFFSET_MEANINGS,
                _ => &MATCH_MEANINGS,
            };
            let meaning = |symbol: u8| meanings[usize::from(symbol) % TABLE_SIZE];
            let table = &mut self.all[which];
            match &described.kind {
                Kind::Symbol(symbol) => {
                    table[0] = meaning(*symbol);
                    self.logs[which] = 0;
                }
                Kind::Counts(counts) => {
                    counts.build(|state, symbol, bits, next| {
                        table[state % STATES] =
                            Entry { state_bits: bits as u8, next: next as u16, ..meaning(symbol) };
                    });
                    self.logs[which] = counts.log as u8;
                }
            }
            self.ids[which] = described.id;
        }
    }
}
