//! Rows of a group in another order.

use std::mem;

use super::column::Column;
use super::column::Numbered;
use super::column::Values;
use super::dictionary::Texts;
use super::series::Part;
use super::series::Series;
use super::spare::Spare;

impl Column {
    /// The order of the rows by the values of a time, missing ones first; `None` if they have it.
    pub(super) fn order(&self) -> Option<Vec<u32>> {
        let Values::Times(times, _) = &self.values else { return None };
        let times = times.all();
        let mut next = 0..times.len();
        let mut time = || match (next.next(), times) {
            (None, _) => i64::MIN,
            (_, Part::Same(time, _)) => time,
            (Some(at), Part::All(times)) => times[at],
        };
        let keys: Vec<_> = match (self.definitions.all(), times) {
            (Part::Same(..), Part::Same(..)) => return None,
            (Part::Same(..), Part::All(times)) if times.is_sorted() => return None,
            (Part::Same(..), _) => (0..times.len()).map(|_| time()).collect(),
            (Part::All(levels), _) => {
                let of = |level: &u8| if *level == 0 { i64::MIN } else { time() };
                levels.iter().map(of).collect()
            }
        };
        if keys.is_sorted() {
            return None;
        }
        let mut order: Vec<_> = keys.into_iter().zip(0_u32..).collect();
        order.sort_by_key(|(key, _)| *key);
        Some(order.into_iter().map(|(_, at)| at).collect())
    }

    /// Puts the rows into another order.
    pub(super) fn reorder(&mut self, order: &[u32], spare: &mut Spare) {
        if self.repetitions.is_some() {
            return self.reorder_lists(order, spare);
        }
        match self.definitions.all() {
            Part::Same(0, _) => {}
            Part::Same(..) => self.values.reorder(order, spare),
            Part::All(levels) => {
                let mut next = 0;
                let mut places = Vec::with_capacity(levels.len());
                for level in levels {
                    places.push(next);
                    next += u32::from(*level);
                }
                let there = order.iter().filter(|at| levels[**at as usize] > 0);
                let values: Vec<_> = there.map(|at| places[*at as usize]).collect();
                self.definitions.reorder(order, &mut spare.bytes(order.len()));
                self.values.reorder(&values, spare);
            }
        }
    }

    fn reorder_lists(&mut self, order: &[u32], spare: &mut Spare) {
        let Some(repetitions) = &mut self.repetitions else { return };
        // Where the levels and the values of each row begin, and those of the last one end.
        let mut begins = Vec::with_capacity(order.len() + 1);
        let mut next = 0;
        let definitions = match self.definitions.all() {
            // Every row has the same, and no values.
            Part::Same(level, _) if level < self.most && repetitions.len() == order.len() => return,
            Part::Same(level, times) => vec![level; times],
            Part::All(levels) => levels.to_vec(),
        };
        for (at, (repetition, definition)) in repetitions.iter().zip(&definitions).enumerate() {
            if *repetition == 0 {
                begins.push((at, next));
            }
            next += u32::from(*definition == self.most);
        }
        begins.push((repetitions.len(), next));
        let (mut levels, mut values) = (Vec::with_capacity(repetitions.len()), Vec::new());
        for row in order {
            let row = *row as usize;
            let ((start, first), (end, last)) = (begins[row], begins[row + 1]);
            levels.extend(start as u32..end as u32);
            values.extend(first..last);
        }
        *repetitions = levels.iter().map(|at| repetitions[*at as usize]).collect();
        self.definitions.reorder(&levels, &mut spare.bytes(levels.len()));
        self.values.reorder(&values, spare);
    }
}

impl Values {
    /// Those at these places, in this order.
    fn reorder(&mut self, order: &[u32], spare: &mut Spare) {
        match self {
            Self::Bools(all) => reordered(all, order, spare.bytes(order.len()), |memory| {
                spare.keep_bytes(memory);
            }),
            Self::Ints(all) | Self::Ports(all) | Self::Times(all, _) => {
                reordered(all, order, spare.longs(order.len()), |memory| spare.keep_longs(memory));
            }
            Self::Doubles(Numbered::Full(all)) => {
                *all = order.iter().map(|at| all[*at as usize]).collect();
            }
            Self::Addrs(Numbered::Full(all)) | Self::Texts(Numbered::Full(all)) => {
                let mut texts = spare.texts(order.len(), all.bytes.len());
                for at in order {
                    texts.push_with(|bytes| gannet_log::append(bytes, all.get(*at as usize)));
                }
                spare.keep_texts(mem::replace::<Texts>(all, texts));
            }
            Self::Doubles(Numbered::Numbers(_, all))
            | Self::Addrs(Numbered::Numbers(_, all))
            | Self::Texts(Numbered::Numbers(_, all)) => {
                reordered(all, order, spare.numbers(order.len()), |memory| {
                    spare.keep_numbers(memory);
                });
            }
        }
    }
}

fn reordered<T: Copy + PartialEq>(
    all: &mut Series<T>,
    order: &[u32],
    mut memory: Vec<T>,
    keep: impl FnOnce(Vec<T>),
) {
    all.reorder(order, &mut memory);
    keep(memory);
}
