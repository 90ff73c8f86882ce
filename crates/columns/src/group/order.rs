//! Reordering of the rows of a group.

use std::mem;

use super::buffer_pool::BufferPool;
use super::column::Column;
use super::column::MaybeDictionary;
use super::column::Values;
use super::dictionary::Texts;
use super::series::Series;
use super::series::SeriesSlice;

impl Column {
    /// Row indices sorted by a time column, nulls first; `None` if the rows are sorted already.
    pub(super) fn order(&self) -> Option<Vec<u32>> {
        let Values::Times(times, _) = &self.values else { return None };
        let times = times.all();
        let mut next = 0..times.len();
        let mut time = || match (next.next(), times) {
            (None, _) => i64::MIN,
            (_, SeriesSlice::Constant(time, _)) => time,
            (Some(at), SeriesSlice::Slice(times)) => times[at],
        };
        let keys: Vec<_> = match (self.definition_levels.all(), times) {
            (SeriesSlice::Constant(..), SeriesSlice::Constant(..)) => return None,
            (SeriesSlice::Constant(..), SeriesSlice::Slice(times)) if times.is_sorted() => {
                return None;
            }
            (SeriesSlice::Constant(..), _) => (0..times.len()).map(|_| time()).collect(),
            (SeriesSlice::Slice(levels), _) => {
                let key = |level: &u8| if *level == 0 { i64::MIN } else { time() };
                levels.iter().map(key).collect()
            }
        };
        if keys.is_sorted() {
            return None;
        }
        let mut order: Vec<_> = keys.into_iter().zip(0_u32..).collect();
        order.sort_by_key(|(key, _)| *key);
        Some(order.into_iter().map(|(_, at)| at).collect())
    }

    /// Moves row `order[n]` to position `n`.
    pub(super) fn reorder(&mut self, order: &[u32], pool: &mut BufferPool) {
        if self.repetition_levels.is_some() {
            return self.reorder_lists(order, pool);
        }
        match self.definition_levels.all() {
            SeriesSlice::Constant(0, _) => {}
            SeriesSlice::Constant(..) => self.values.reorder(order, pool),
            SeriesSlice::Slice(levels) => {
                let mut next = 0;
                let mut value_indices = Vec::with_capacity(levels.len());
                for level in levels {
                    value_indices.push(next);
                    next += u32::from(*level);
                }
                let non_null = order.iter().filter(|at| levels[**at as usize] > 0);
                let values: Vec<_> = non_null.map(|at| value_indices[*at as usize]).collect();
                self.definition_levels.reorder(order, &mut pool.bytes(order.len()));
                self.values.reorder(&values, pool);
            }
        }
    }

    fn reorder_lists(&mut self, order: &[u32], pool: &mut BufferPool) {
        let Some(repetition_levels) = &mut self.repetition_levels else { return };
        // Index of the first level and the first value of each row, and the ends of those of the last row.
        let mut starts = Vec::with_capacity(order.len() + 1);
        let mut next = 0;
        let definition_levels = match self.definition_levels.all() {
            // All rows are null or all are empty lists.
            SeriesSlice::Constant(level, _)
                if level < self.max_definition && repetition_levels.len() == order.len() =>
            {
                return;
            }
            SeriesSlice::Constant(level, times) => vec![level; times],
            SeriesSlice::Slice(levels) => levels.to_vec(),
        };
        for (at, (repetition, definition)) in
            repetition_levels.iter().zip(&definition_levels).enumerate()
        {
            if *repetition == 0 {
                starts.push((at, next));
            }
            next += u32::from(*definition == self.max_definition);
        }
        starts.push((repetition_levels.len(), next));
        let (mut levels, mut values) = (Vec::with_capacity(repetition_levels.len()), Vec::new());
        for row in order {
            let row = *row as usize;
            let ((start, first), (end, last)) = (starts[row], starts[row + 1]);
            levels.extend(start as u32..end as u32);
            values.extend(first..last);
        }
        *repetition_levels = levels.iter().map(|at| repetition_levels[*at as usize]).collect();
        self.definition_levels.reorder(&levels, &mut pool.bytes(levels.len()));
        self.values.reorder(&values, pool);
    }
}

impl Values {
    /// Moves value `order[n]` to position `n`.
    fn reorder(&mut self, order: &[u32], pool: &mut BufferPool) {
        match self {
            Self::Bools(all) => reorder_series(all, order, pool.bytes(order.len()), |buffer| {
                pool.put_bytes(buffer);
            }),
            Self::Ints(all) | Self::Ports(all) | Self::Times(all, _) => {
                reorder_series(all, order, pool.i64s(order.len()), |buffer| pool.put_i64s(buffer));
            }
            Self::Doubles(MaybeDictionary::Plain(all)) => {
                *all = order.iter().map(|at| all[*at as usize]).collect();
            }
            Self::Addrs(MaybeDictionary::Plain(all)) | Self::Texts(MaybeDictionary::Plain(all)) => {
                let mut texts = pool.texts(order.len(), all.bytes.len());
                for at in order {
                    texts.push_with(|bytes| gannet_log::append(bytes, all.get(*at as usize)));
                }
                pool.put_texts(mem::replace::<Texts>(all, texts));
            }
            Self::Doubles(MaybeDictionary::Dictionary(_, all))
            | Self::Addrs(MaybeDictionary::Dictionary(_, all))
            | Self::Texts(MaybeDictionary::Dictionary(_, all)) => {
                reorder_series(all, order, pool.u32s(order.len()), |buffer| {
                    pool.put_u32s(buffer);
                });
            }
        }
    }
}

fn reorder_series<T: Copy + PartialEq>(
    all: &mut Series<T>,
    order: &[u32],
    mut buffer: Vec<T>,
    recycle: impl FnOnce(Vec<T>),
) {
    all.reorder(order, &mut buffer);
    recycle(buffer);
}
