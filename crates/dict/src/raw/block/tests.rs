use super::*;

/// The home among four groups in the upper bits of the low half, the tag in the high half; the value is the
/// hash.
fn hash(home: u64, tag: u64) -> u64 {
    (home << 30) | (tag + 1)
}

fn homes(block: &Block<Box<u64>>) -> Vec<(u32, u64)> {
    block.spots().map(|s| (s.group, block.get(s).map_or(9, |v| **v >> 30 & 3))).collect()
}

fn filled(count: [u64; 4]) -> Block<Box<u64>> {
    let mut block = Block::new(0, 4);
    for (home, count) in (0..).zip(count) {
        for tag in 0..count {
            let hash = hash(home, tag);
            assert!(block.insert(hash, Box::new(hash), |v| **v).is_ok());
        }
    }
    block
}

fn check(block: &Block<Box<u64>>, count: [u64; 4]) {
    assert_eq!(block.len() as u64, count.iter().sum::<u64>());
    for (home, count) in (0..).zip(count) {
        for tag in 0..count {
            assert!(block.find(hash(home, tag), |v| **v == hash(home, tag)).is_some());
        }
        assert!(block.find(hash(home, count), |v| **v == hash(home, count)).is_none());
    }
}

#[test]
fn entries_spill_in_the_order_of_their_homes_and_come_back() {
    // Two of home 1 are inserted when home 2 is full: they go first there, two of home 2 leave for 3.
    let mut block = filled([0, 15, 15, 3]);
    for tag in 15..17 {
        assert!(block.insert(hash(1, tag), Box::new(hash(1, tag)), |v| **v).is_ok());
    }
    check(&block, [0, 17, 15, 3]);
    let order = homes(&block);
    assert_eq!(order[15..17], [(2, 1), (2, 1)]);
    assert_eq!(order[30..35], [(3, 2), (3, 2), (3, 3), (3, 3), (3, 3)]);
    assert_eq!(block.distances(|v| **v).sum::<usize>(), 4);
    for tag in 0..2 {
        let spot = block.spot(hash(1, tag), |v| **v == hash(1, tag));
        let gone = block.remove(spot.expect("there"), |v| **v);
        assert_eq!(gone.map(|v| *v), Some(hash(1, tag)));
        let order = homes(&block);
        assert!(order.is_sorted_by_key(|(_, home)| *home), "{order:?}");
    }
    assert_eq!(block.distances(|v| **v).sum::<usize>(), 0);
    assert!((0..4).all(|at| block.group(at).tags.0[STATE] == 0));
}

#[test]
fn a_block_can_be_filled_to_its_last_cell_and_emptied() {
    let mut block = filled([2, 1, 0, 57]);
    check(&block, [2, 1, 0, 57]);
    assert!(block.insert(0, Box::new(0), |v| **v).is_err());
    for home in [3, 0, 1] {
        for tag in 0..57 {
            if let Some(spot) = block.spot(hash(home, tag), |v| **v == hash(home, tag)) {
                assert!(block.remove(spot, |v| **v).is_some());
            }
        }
    }
    assert_eq!(block.len(), 0);
    assert!((0..4).all(|at| block.group(at).tags.0 == [0; 16]));
    assert!(block.get(Spot { group: 0, lane: 15 }).is_none());
}

#[test]
fn what_is_taken_is_not_dropped_again() {
    let mut block = filled([3, 0, 0, 0]);
    let spots: Vec<Spot> = block.spots().collect();
    assert_eq!(block.take(spots[1]).map(|v| *v), Some(hash(0, 1)));
    assert_eq!(block.take(spots[1]), None);
    assert_eq!(block.iter().count(), 2);
    block.get_mut(spots[0]).into_iter().for_each(|v| **v += 1);
}
