use std::collections::BTreeSet;

use super::*;

const HOMES: usize = 256;
const LANES: usize = Block::<u64>::LANES;
const ENTRIES_MAX: usize = Block::<u64>::ENTRIES_MAX;

type Block<T> = super::Block<T, HOMES>;

/// A hash with this home, and with a tag that differs for 250 consecutive numbers.
fn hash(home: usize, tag: u64) -> u64 {
    (home as u64) << (u64::BITS - HOMES.ilog2()) | tag << 32
}

fn with(capacity: usize, counts: &[(usize, u64)]) -> Block<Box<u64>> {
    let mut block = Block::new(0, capacity);
    for (home, count) in counts {
        for tag in 0..*count {
            let hash = hash(*home, tag);
            assert_eq!(block.home(hash), *home);
            assert!(block.insert(hash, Box::new(hash), |v| **v).is_ok());
        }
    }
    block
}

/// Checks the invariant on which unsafe code depends, and that entries are in the windows of their
/// homes.
fn check_rules(block: &Block<Box<u64>>) {
    let mut numbers: Vec<u8> =
        block.filled_lane_indexes().map(|at| block.number(at.0 as usize)).collect();
    numbers.sort_unstable();
    let count = numbers.len();
    numbers.dedup();
    assert_eq!((numbers.len(), block.len()), (count, count));
    assert!(numbers.iter().all(|number| usize::from(*number) < block.capacity()));
    assert!(block.distances(|v| **v).all(|far| far < WINDOW));
}

/// Checks that `count` entries of this home are found, and not one more.
fn check(block: &Block<Box<u64>>, home: usize, count: u64) {
    check_rules(block);
    for tag in 0..count {
        let hash = hash(home, tag);
        assert!(block.find(hash, &mut |v| **v == hash).is_some(), "{home} {tag}");
    }
    let absent = hash(home, count);
    assert!(block.find(absent, &mut |v| **v == absent).is_none());
}

fn take(block: &mut Block<Box<u64>>, home: usize, tag: u64) -> Option<(u64, usize)> {
    let hash = hash(home, tag);
    let (_, lane) = block.find(hash, &mut |v| **v == hash)?;
    block.take(lane).map(|(v, left)| (*v, left))
}

fn insert(block: &mut Block<Box<u64>>, home: usize, tag: u64) -> bool {
    let hash = hash(home, tag);
    block.insert(hash, Box::new(hash), |v| **v).is_ok()
}

#[test]
fn others_make_room_for_an_entry_whose_window_is_full() {
    // Lanes 3 to 18 are filled; those of home 12 may move after them, which lets those of home 9
    // move.
    let mut block = with(100, &[(3, 10), (9, 3), (12, 3)]);
    assert_eq!(block.len(), 16);
    for tag in 0..6 {
        assert!(insert(&mut block, 4, tag), "{tag}");
    }
    for (home, count) in [(3, 10), (4, 6), (9, 3), (12, 3)] {
        check(&block, home, count);
    }
    // Sixteen of homes 3 and 4 leave one lane of the window of 4.
    assert!(insert(&mut block, 4, 6) && !insert(&mut block, 4, 7));
    check(&block, 4, 7);
}

#[test]
fn room_is_made_from_the_front_where_the_end_is_full() {
    let last = HOMES - 1;
    // Three homes fill the lanes from the eleventh before the last home on; then a lane before them
    // is freed.
    let mut block = with(100, &[(last - 11, 10), (last - 7, 9), (last, 1)]);
    let (_, lane) =
        block.find(hash(last - 11, 2), &mut |v| **v == hash(last - 11, 2)).expect("there");
    assert_eq!(lane, LaneIndex(last as u32 - 9));
    assert!(block.take(lane).is_some());
    assert!(insert(&mut block, last, 1));
    assert_eq!(block.iter().count(), 20);
    check(&block, last - 7, 9);
    check(&block, last, 2);
    // An entry in its home cannot move to the front.
    assert!(!insert(&mut block, last, 2));
    check(&block, last, 2);
}

#[test]
fn a_window_holds_sixteen_of_one_home_and_a_free_lane_can_be_filled_again() {
    let mut block = with(20, &[(7, WINDOW as u64)]);
    assert!(!insert(&mut block, 7, 99));
    let gone = hash(7, 3);
    let (_, lane) = block.find(gone, &mut |v| **v == gone).expect("there");
    assert_eq!(block.take(lane).map(|(v, left)| (*v, left)), Some((gone, WINDOW - 1)));
    assert_eq!((block.take(lane), block.get(lane), block.len()), (None, None, WINDOW - 1));
    assert!(insert(&mut block, 7, 99));
    assert_eq!(block.get(lane).map(|v| **v), Some(hash(7, 99)));
    check_rules(&block);
}

#[test]
fn a_block_is_filled_to_the_last_cell_and_emptied_again() {
    let mut block = with(ENTRIES_MAX, &[]);
    for turn in 0..3 {
        for home in 0..ENTRIES_MAX {
            assert!(insert(&mut block, home, turn), "{turn} {home}");
        }
        assert!(!insert(&mut block, 255, turn));
        check_rules(&block);
        assert_eq!((block.len(), block.iter().count()), (ENTRIES_MAX, ENTRIES_MAX));
        for home in (0..ENTRIES_MAX).rev() {
            assert_eq!(take(&mut block, home, turn), Some((hash(home, turn), home)));
        }
        assert_eq!((block.len(), block.iter().count()), (0, 0));
    }
}

#[test]
fn cells_are_used_again_before_new_ones() {
    let mut block = with(3, &[(0, 3)]);
    assert!(!insert(&mut block, 0, 3));
    assert_eq!(take(&mut block, 0, 1), Some((hash(0, 1), 2)));
    assert_eq!(take(&mut block, 0, 0), Some((hash(0, 0), 1)));
    assert!(insert(&mut block, 0, 4) && insert(&mut block, 0, 5) && !insert(&mut block, 0, 6));
    check_rules(&block);
    let mut all: Vec<u64> = block.iter().map(|v| **v).collect();
    all.sort_unstable();
    assert_eq!(all, [2, 4, 5].map(|tag| hash(0, tag)));
}

#[test]
fn entries_move_to_the_first_cells_when_the_room_changes() {
    let mut block = with(60, &[(0, 10), (30, 15), (60, 5)]);
    for tag in (0..15).step_by(2) {
        assert!(take(&mut block, 30, tag).is_some());
    }
    assert!(take(&mut block, 0, 9).is_some());
    block.set_capacity(21);
    assert_eq!((block.len(), block.capacity()), (21, 21));
    check(&block, 0, 9);
    check(&block, 60, 5);
    for tag in (1..15).step_by(2) {
        assert!(block.find(hash(30, tag), &mut |v| **v == hash(30, tag)).is_some());
    }
    assert!(!insert(&mut block, 90, 0));
    block.set_capacity(40);
    assert!((0..19).all(|home| insert(&mut block, 100 + home, 0)));
    assert!(!insert(&mut block, 90, 0));
    check_rules(&block);
    assert_eq!(block.iter().count(), 40);
}

#[test]
#[should_panic(expected = "capacity >=")]
fn filled_cells_do_not_go() {
    with(20, &[(0, 10)]).set_capacity(9);
}

#[test]
fn tags_behind_the_lanes_are_no_lanes() {
    let mut block = with(20, &[(HOMES - 1, 9)]);
    let behind = LaneIndex(LANES as u32);
    assert!(block.get(behind).is_none() && block.take(behind).is_none());
    // Every tag of a hash, in the last window.
    for tag in 0..=255 {
        let hash = hash(HOMES - 1, tag) | 1;
        assert!(block.find(hash, &mut |v| **v == hash).is_none());
    }
    block.get_mut(LaneIndex(HOMES as u32)).into_iter().for_each(|v| **v += 1);
}

#[test]
fn a_filling_makes_the_block_that_insertion_makes() {
    let counts = [(0, 3), (5, 9), (9, 10), (200, 16), (255, 5)];
    let mut filling = Filling::<_, HOMES>::new(0, 43);
    let mut block = with(60, &[]);
    for (home, count) in counts {
        for tag in 0..count {
            let hash = hash(home, tag);
            assert!(filling.add(hash, Box::new(hash)).is_ok());
            assert!(insert(&mut block, home, tag));
        }
    }
    // No cell is free in this block, and no lane in another one.
    assert!(filling.add(hash(100, 0), Box::new(0)).is_err());
    let mut other = Filling::<_, HOMES>::new(0, 40);
    assert!((0..16).all(|tag| other.add(hash(7, tag), Box::new(0)).is_ok()));
    assert!(other.add(hash(7, 16), Box::new(0)).is_err());
    // An entry out of order, and a `Filling` that is dropped before it is finished.
    assert!(other.add(hash(2, 0), Box::new(0)).is_ok());
    drop(other);
    let mut filled = filling.finish();
    assert_eq!((filled.capacity(), filled.len()), (43, 43));
    assert_eq!(filled.tags(), block.tags());
    counts.iter().for_each(|(home, count)| check(&filled, *home, *count));
    let before: Vec<u64> = filled.iter().map(|v| **v).collect();
    let mut drained = Vec::new();
    filled.drain(|v| drained.push(*v));
    assert_eq!((drained, filled.len()), (before, 0));
    assert!(insert(&mut filled, 1, 0));
    check(&filled, 1, 1);
}

#[test]
fn a_block_with_half_the_homes_takes_entries_by_half_their_lanes() {
    type Half = super::Block<Box<u64>, { HOMES / 2 }>;
    let counts: &[(usize, u64)] = &[(0, 13), (1, 3), (40, 5), (41, 5), (100, 1), (255, 9)];
    let find = |half: &Half, hash: u64| half.find(hash, &mut |v| **v == hash).is_some();
    let all =
        || counts.iter().flat_map(|(home, count)| (0..*count).map(move |tag| hash(*home, tag)));
    for capacity in [36, 60] {
        let (mut wider, mut half) = (with(40, counts), Half::new(0, capacity));
        half.absorb_wider(&mut wider);
        // For 16 entries of one home there is one lane too few: that entry stays and is inserted by
        // its hash.
        assert_eq!((half.len(), wider.len()), (35, 1));
        let in_half = all().filter(|hash| find(&half, *hash)).count();
        let left = all().filter(|hash| wider.find(*hash, &mut |v| **v == *hash).is_some()).count();
        assert_eq!((in_half, left), (half.len(), wider.len()));
        assert!(half.distances(|v| **v).all(|far| far < WINDOW));
        check_rules(&wider);
        let mut rest = Vec::new();
        wider.drain(|v| rest.push(v));
        for entry in rest {
            assert!(half.insert(*entry, entry, |v| **v).is_ok());
        }
        assert!(all().all(|hash| find(&half, hash)));
        assert_eq!(half.iter_mut().map(|v| **v).collect::<BTreeSet<_>>(), all().collect());
    }
    // Where there are too few cells, entries stay.
    let (mut wider, mut half) = (with(40, counts), Half::new(0, 10));
    half.absorb_wider(&mut wider);
    assert_eq!((half.len(), wider.len()), (10, 26));
}

#[test]
fn entries_of_no_size_or_much_alignment_fit() {
    #[derive(PartialEq, Debug)]
    #[repr(align(64))]
    struct Wide(u8);
    let (mut none, mut wide) = (Block::<()>::new(0, 30), Block::<Wide>::new(0, 10));
    for home in 0..30 {
        assert!(none.insert(home << 59, (), |()| 0).is_ok());
        if wide.len() == wide.capacity() {
            wide.set_capacity(wide.capacity() + 10);
        }
        let entry = Wide(home as u8);
        assert!(wide.insert(home << 59, entry, |v| u64::from(v.0) << 59).is_ok());
    }
    assert_eq!((none.len(), wide.len()), (30, 30));
    assert!(none.insert(0, (), |()| 0).is_err());
    let lane = none.filled_lane_indexes().next().expect("there");
    assert_eq!((none.take(lane), none.insert(0, (), |()| 0)), (Some(((), 29)), Ok(())));
    assert_eq!(wide.find(7 << 59, &mut |v| v.0 == 7).map(|(v, _)| v), Some(&Wide(7)));
    assert!(wide.iter().all(|v| core::ptr::from_ref(v).addr() % 64 == 0));
}
