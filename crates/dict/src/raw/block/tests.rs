use super::*;

/// The home, below `HOMES`, in the upper half, and a distinguishing tag; the value is the hash.
fn hash(home: usize, tag: u64) -> u64 {
    let upper = ((home as u64) << 32).div_ceil(HOMES as u64) + tag;
    upper << 32
}

const HOMES: usize = 40;

fn with(counts: impl IntoIterator<Item = (usize, u64)>) -> Block<Box<u64>> {
    let mut block = Block::new(0, HOMES);
    for (home, count) in counts {
        for tag in 0..count {
            let hash = hash(home, tag);
            assert_eq!(block.home(hash), home);
            assert!(block.insert(hash, Box::new(hash), |v| **v).is_ok());
        }
    }
    block
}

fn check(block: &Block<Box<u64>>, home: usize, count: u64) {
    for tag in 0..count {
        let hash = hash(home, tag);
        assert!(block.find(hash, &mut |v| **v == hash).is_some(), "{home} {tag}");
    }
    let absent = hash(home, count);
    assert!(block.find(absent, &mut |v| **v == absent).is_none());
}

#[test]
fn others_make_room_for_an_entry_whose_window_is_full() {
    // Cells 3 to 18 are filled; those of home 12 may move behind them, and so let those of home 9 move.
    let mut block = with([(3, 10), (9, 3), (12, 3)]);
    assert_eq!(block.len(), 16);
    for tag in 0..6 {
        let hash = hash(4, tag);
        assert!(block.insert(hash, Box::new(hash), |v| **v).is_ok(), "{tag}");
    }
    for (home, count) in [(3, 10), (4, 6), (9, 3), (12, 3)] {
        check(&block, home, count);
    }
    let fits = |(at, far): (Spot, usize)| far < WINDOW && at.0 < 40;
    assert!(block.spots().zip(block.distances(|v| **v)).all(fits));
    // Sixteen of homes 3 and 4 leave one cell of the window of 4.
    let last = hash(4, 6);
    assert!(block.insert(last, Box::new(last), |v| **v).is_ok());
    let more = hash(4, 7);
    assert!(block.insert(more, Box::new(more), |v| **v).is_err());
    check(&block, 4, 7);
}

#[test]
fn room_is_made_from_the_front_where_the_end_is_full() {
    let last = HOMES - 1;
    // Homes 28 and 32 fill the cells from 28 on, home 39 the last one; then the cell in front of 31 is freed.
    let mut block = with([(28, 10), (32, 9), (last, 1)]);
    assert!(block.take(Spot(30)).is_some());
    let second = hash(last, 1);
    assert!(block.insert(second, Box::new(second), |v| **v).is_ok());
    assert_eq!(block.iter().count(), 20);
    check(&block, 32, 9);
    check(&block, last, 2);
    // An entry in its home cannot move to the front.
    let third = hash(last, 2);
    assert!(block.insert(third, Box::new(third), |v| **v).is_err());
}

#[test]
fn a_window_holds_sixteen_of_one_home_and_a_free_cell_can_be_filled_again() {
    let mut block = with([(7, WINDOW as u64)]);
    let more = hash(7, 99);
    assert_eq!(block.insert(more, Box::new(more), |v| **v).map_err(|v| *v), Err(more));
    let gone = hash(7, 3);
    let (_, spot) = block.find(gone, &mut |v| **v == gone).expect("there");
    assert_eq!(block.take(spot).map(|v| *v), Some(gone));
    assert_eq!((block.take(spot), block.get(spot), block.len()), (None, None, WINDOW - 1));
    assert!(block.insert(more, Box::new(more), |v| **v).is_ok());
    assert_eq!(block.get(spot).map(|v| **v), Some(more));
    assert!(block.is_crowded(more) && !block.is_sparse(more) && block.is_sparse(hash(30, 0)));
}

#[test]
fn tags_behind_the_cells_are_no_cells() {
    let mut block = with([(HOMES - 1, 9)]);
    assert_eq!(block.cells(), HOMES + TAIL);
    let behind = Spot(block.cells() as u32);
    assert!(block.get(behind).is_none() && block.take(behind).is_none());
    // Every tag of a hash, in the last window.
    for tag in 0..=255 {
        let hash = hash(HOMES - 1, 100) & !(0xff << 32) | tag << 32;
        assert!(block.find(hash, &mut |v| **v == 0).is_none());
    }
}

#[test]
fn what_is_taken_is_not_dropped_again() {
    let mut block = with([(5, 3)]);
    let spots: Vec<Spot> = block.spots().collect();
    assert_eq!(block.take(spots[1]).map(|v| *v), Some(hash(5, 1)));
    assert_eq!(block.take(spots[1]), None);
    assert_eq!(block.iter().count(), 2);
    block.get_mut(spots[0]).into_iter().for_each(|v| **v += 1);
}

#[test]
fn entries_of_no_size_or_much_alignment_fit() {
    #[derive(PartialEq, Debug)]
    #[repr(align(64))]
    struct Wide(u8);
    let (mut none, mut wide) = (Block::<()>::new(0, 30), Block::<Wide>::new(0, 30));
    for home in 0..30 {
        assert!(none.insert(home << 60, (), |()| 0).is_ok());
        assert!(wide.insert(home << 59, Wide(home as u8), |v| u64::from(v.0) << 59).is_ok());
    }
    assert_eq!((none.len(), wide.len()), (30, 30));
    assert_eq!(wide.find(7 << 59, &mut |v| v.0 == 7).map(|(v, _)| v), Some(&Wide(7)));
}

#[test]
fn entries_with_one_tag_are_parted_where_a_search_would_find_the_other_first() {
    // Cells 3 to 8 are filled by home 3; the last of them has the tag of an entry of home 6, which
    // is behind it.
    let (crowd, alike) = (hash(3, 77) | 5 << 32, hash(6, 0));
    let same_tag = |of: u64| of & !(0xff << 32) | (alike & (0xff << 32));
    let last = same_tag(crowd);
    let mut block = with([(3, 5)]);
    for hash in [last, alike] {
        assert!(block.insert(hash, Box::new(hash), |v| **v).is_ok());
    }
    assert_eq!((block.home(last), block.home(alike)), (3, 6));
    for hash in [last, alike] {
        assert!(block.find_first(hash, &mut |v| **v == hash).is_ok(), "{hash:x}");
        assert!(block.find(hash, &mut |v| **v == hash).is_some());
    }
    check(&block, 3, 5);
    assert_eq!(block.len(), 7);
    // Of one home one comes second.
    let third = same_tag(hash(6, 1 << 20));
    assert_eq!(block.home(third), 6);
    assert!(block.insert(third, Box::new(third), |v| **v).is_ok());
    let firsts = [alike, third].map(|hash| block.find_first(hash, &mut |v| **v == hash).is_ok());
    assert!(firsts[0] != firsts[1]);
    assert!([alike, third].iter().all(|hash| block.find(*hash, &mut |v| **v == *hash).is_some()));
}
