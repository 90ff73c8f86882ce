//! Sequences of operations on a dictionary agree with a tree map, with walks alive.
#![no_main]

use std::collections::BTreeMap;

use gannet_dict::{Cursor, Dict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut dict: Dict<u16, u8> = Dict::new();
    let mut model: BTreeMap<u16, u8> = BTreeMap::new();
    let mut cursors = [Cursor::default(), Cursor::default()];
    for step in data.chunks_exact(4) {
        let (key, value) = (u16::from_le_bytes([step[1], step[2]]), step[3]);
        match step[0] % 8 {
            0 | 1 => assert_eq!(dict.insert(key, value), model.insert(key, value)),
            2 | 3 => assert_eq!(dict.remove(&key), model.remove(&key)),
            4 => {
                for key in key..key.saturating_add(u16::from(value) * 4) {
                    assert_eq!(dict.insert(key, value), model.insert(key, value));
                }
            }
            5 => {
                for key in key..key.saturating_add(u16::from(value) * 4) {
                    assert_eq!(dict.remove(&key), model.remove(&key));
                }
            }
            6 => {
                let cursor = &mut cursors[usize::from(step[1] & 1)];
                for _ in 0..value {
                    let Some((key, value)) = dict.next(cursor) else { break };
                    assert_eq!(model.get(key), Some(value));
                }
            }
            _ => {
                let keys: Vec<u16> = (key..key.saturating_add(u16::from(value))).collect();
                let mut found = Vec::new();
                dict.get_many(&keys, &mut found);
                assert!(found.into_iter().eq(keys.iter().map(|key| model.get(key))));
            }
        }
        assert_eq!(dict.len(), model.len());
    }
    let all: BTreeMap<u16, u8> = dict.iter().map(|(key, value)| (*key, *value)).collect();
    assert_eq!(all, model);
});
