//! Redis: one conversation, and its readers of commands and values.
#![no_main]

use gannet_protocols::redis::command::Commands;
use gannet_protocols::redis::value::Values;

gannet_fuzz_support::protocol!(
    Redis,
    |data| {
        let (mut commands, mut data) = (Commands::default(), data);
        while let Ok(Some(_)) = commands.next(&mut data) {}
        data.is_empty()
    },
    |data| {
        let (mut values, mut data) = (Values::default(), data);
        while let Ok(Some(_)) = values.next(&mut data) {}
        data.is_empty()
    },
);
