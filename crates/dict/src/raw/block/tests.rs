use super::*;

const GROUPS: usize = 8;

/// A hash with this home and tag, distinguished by its lowest bits.
fn hash(home: usize, tag: u64, number: u64) -> u64 {
    (tag & 0xff) << 56 | (home as u64) << 37 | number
}

fn with(cells: usize, counts: impl IntoIterator<Item = (usize, u64)>) -> Block<Box<u64>> {
    let mut block = Block::new(0, GROUPS, cells);
    for (home, count) in counts {
        for number in 0..count {
            let hash = hash(home, number, number);
            assert_eq!(block.home(hash), home);
            assert!(block.insert(hash, Box::new(hash)).is_ok());
        }
    }
    block
}

fn find(block: &Block<Box<u64>>, hash: u64) -> Option<Spot> {
    block.find(hash, |v| **v == hash).ok().map(|(_, spot)| spot)
}

fn check(block: &Block<Box<u64>>, home: usize, count: u64) {
    assert!((0..count).all(|number| find(block, hash(home, number, number)).is_some()), "{home}");
    assert!(find(block, hash(home, count, count)).is_none());
}

#[test]
fn entries_whose_home_is_full_are_in_the_next_group_and_the_first_after_the_last() {
    let mut block = with(100, [(GROUPS - 1, 40), (0, 10), (3, 5)]);
    for (home, count) in [(GROUPS - 1, 40), (0, 10), (3, 5)] {
        check(&block, home, count);
    }
    let passed = |block: &Block<Box<u64>>, at: usize| block.group(at).passed();
    // Of 40, fifteen are at home and as many in the next group, which has no lane for its own.
    assert_eq!([7, 0, 1].map(|at| passed(&block, at)), [25, 20, 5]);
    let distances: Vec<usize> = block.distances(|v| **v).collect();
    assert_eq!((distances.iter().max(), distances.iter().sum::<usize>()), (Some(&2), 50));
    // Removal counts down, so that searches end early again.
    for number in 0..40 {
        let hash = hash(GROUPS - 1, number, number);
        let spot = find(&block, hash).expect("inserted");
        assert_eq!(block.take(hash, spot).map(|v| *v), Some(hash));
    }
    assert_eq!([7, 0, 1].map(|at| passed(&block, at)), [0, 10, 5]);
    check(&block, 0, 10);
}

#[test]
fn all_cells_are_filled_and_freed_ones_first() {
    let mut block = with(40, [(2, 40)]);
    assert!(block.is_full());
    let more = hash(5, 1, 99);
    assert_eq!(block.insert(more, Box::new(more)).map_err(|v| *v), Err(more));
    let gone = [3, 30, 17].map(|number| hash(2, number, number));
    let spots = gone.map(|hash| find(&block, hash).expect("inserted"));
    let cells = spots.map(|spot| block.group(spot.group()).cells[spot.lane()]);
    for (hash, spot) in gone.into_iter().zip(spots) {
        assert_eq!(block.take(hash, spot).map(|v| *v), Some(hash));
        assert_eq!((block.take(hash, spot), block.get(spot)), (None, None));
    }
    assert_eq!((block.len(), block.is_full()), (37, false));
    let again = [0, 1, 2].map(|number| hash(6, number, number));
    for hash in again {
        assert!(block.insert(hash, Box::new(hash)).is_ok());
    }
    let spots = again.map(|hash| find(&block, hash).expect("inserted"));
    let reused = spots.map(|spot| block.group(spot.group()).cells[spot.lane()]);
    assert_eq!(reused, [cells[2], cells[1], cells[0]]);
    assert!(block.is_full());
}

#[test]
fn a_block_takes_its_largest_number_of_entries() {
    let mut block: Block<u16> = Block::new(0, 16, CELLS_MAX);
    for i in 0..CELLS_MAX as u64 {
        // All have one home: the others are in the groups behind it.
        assert!(block.insert(i, i as u16).is_ok());
    }
    assert!(block.is_full() && block.insert(7, 7).is_err());
    assert!(block.iter().copied().eq(0..CELLS_MAX as u16));
    for i in 0..CELLS_MAX as u64 {
        let (_, spot) = block.find(i, |v| u64::from(*v) == i).ok().expect("inserted");
        assert_eq!(block.take(i, spot), Some(i as u16));
    }
    assert_eq!((block.len(), block.iter().count()), (0, 0));
    assert!((0..16).all(|at| block.group(at).passed() == 0));
}

#[test]
fn lanes_without_entries_are_none() {
    let mut block = with(10, [(1, 9)]);
    for spot in [Spot(15), Spot(0), Spot(16 * GROUPS as u32), Spot(u32::MAX)] {
        assert!(block.get(spot).is_none() && block.take(0, spot).is_none(), "{spot:?}");
    }
    // The count of those that passed is no tag, whatever it is.
    let mut block = with(100, [(1, 60)]);
    for tag in 0..=255 {
        assert!(block.find(hash(1, tag, 1 << 20), |v| **v == 0).is_err());
    }
    assert_eq!(block.group_mut(1).passed(), 45);
}

#[test]
fn entries_move_to_blocks_of_other_sizes_and_are_dropped_once() {
    let value = std::rc::Rc::new(());
    let mut block = Block::new(3, GROUPS, 50);
    for i in 0..50_u64 {
        assert!(block.insert(i << 36, (i << 36, value.clone())).is_ok());
    }
    block.has_apart = true;
    let mut larger = block.with_more_cells(90);
    assert_eq!((block.len(), block.iter().count(), larger.len()), (0, 0, 50));
    assert!(larger.has_apart && larger.depth == 3 && larger.cells() == 90);
    drop(block);
    for i in 0..50_u64 {
        let (_, spot) = larger.find(i << 36, |v| v.0 == i << 36).ok().expect("moved");
        if i % 3 == 0 {
            drop(larger.take(i << 36, spot));
        }
    }
    assert_eq!(std::rc::Rc::strong_count(&value), 34);
    let mut smaller = Filling::new(Block::new(2, GROUPS / 2, 40));
    smaller.absorb(&mut larger);
    let mut smaller = smaller.done(false);
    assert_eq!((larger.len(), smaller.len(), smaller.cells()), (0, 33, 40));
    drop(larger);
    assert!(smaller.insert(1, (1, value.clone())).is_ok());
    let hashes: Vec<u64> = smaller.iter().map(|v| v.0).collect();
    let (mut other, mut count) = (Block::new(3, GROUPS, 34), 0);
    smaller.drain(&hashes, |hash, entry| {
        assert_eq!(hash, entry.0);
        count += 1;
        assert!(count > 30 || other.insert(hash, entry).is_ok());
    });
    assert_eq!((smaller.len(), other.len(), std::rc::Rc::strong_count(&value)), (0, 30, 31));
    drop((smaller, other));
    assert_eq!(std::rc::Rc::strong_count(&value), 1);
}

#[test]
fn entries_that_passed_groups_are_found_and_counted_in_the_block_that_takes_them() {
    // Homes 3 and 7 become one home, as do the groups behind them, the second of which is the first one.
    let mut block = with(100, [(3, 20), (7, 14), (0, 7), (5, 1)]);
    let mut other = with(20, [(3, 2), (2, 13)]);
    let mut both = Filling::new(Block::new(0, GROUPS / 2, 60));
    let mask = (GROUPS / 2 - 1) as u64;
    both.absorb(&mut block);
    both.absorb(&mut other);
    let mut both = both.done(false);
    assert_eq!((both.len(), block.len(), other.len()), (57, 0, 0));
    let hashes: Vec<u64> = both.iter().map(|v| **v).collect();
    for hash in hashes {
        // Numbers 0 and 1 of home 3 were inserted twice.
        let (_, spot) = both.find(hash, |v| **v == hash).ok().expect("moved");
        assert_eq!(both.home(hash) as u64, hash >> 37 & mask);
        assert!(both.take(hash, spot).is_some());
    }
    assert!((0..GROUPS / 2).all(|at| both.group(at).passed() == 0 && both.len() == 0));
}

#[test]
fn entries_of_no_size_or_much_alignment_fit() {
    #[derive(PartialEq, Debug)]
    #[repr(align(64))]
    struct Wide(u8);
    let (mut none, mut wide) = (Block::<()>::new(0, 2, 30), Block::<Wide>::new(0, 2, 30));
    for i in 0..30 {
        assert!(none.insert(i << 60, ()).is_ok() && wide.insert(i << 59, Wide(i as u8)).is_ok());
    }
    assert_eq!((none.len(), wide.len()), (30, 30));
    let (seven, spot) = wide.find(7 << 59, |v| v.0 == 7).ok().expect("inserted");
    assert_eq!(seven, &Wide(7));
    assert_eq!(wide.take(7 << 59, spot), Some(Wide(7)));
    let spot = none.spots().next().expect("filled");
    assert_eq!((none.vacate(spot), none.len()), (Some(()), 29));
    assert!(none.insert(5, ()).is_ok());
}
