//! Signature files of any text are read, and match any data, without a panic.
#![no_main]

use gannet_script::signature::Action;
use gannet_script::signature::Condition;
use gannet_script::signature::Connection;
use gannet_script::signature::Global;
use gannet_script::signature::Headers;
use gannet_script::signature::Host;
use gannet_script::signature::Item;
use gannet_script::signature::Kind;
use gannet_script::signature::Limits;
use gannet_script::signature::MatchContext;
use gannet_script::signature::Names;
use gannet_script::signature::Rule;
use gannet_script::signature::Signatures;
use gannet_script::signature::Value;
use gannet_script::signature::parse;

/// Half of the names are defined.
struct Scripts;

impl Names for Scripts {
    fn global(&mut self, name: &str) -> Global {
        match name.len() % 4 {
            0 => Global::Missing,
            1 => Global::Values(vec![Value::Number(17), Value::Other]),
            2 => Global::Values(vec![Value::Subnet { base: [0; 16], bits: 96 }]),
            _ => Global::Text(name.into()),
        }
    }

    fn is_event(&mut self, name: &str) -> bool {
        name.len().is_multiple_of(2)
    }

    fn event(&mut self, _: Option<&str>, message: bool) -> Option<u32> {
        message.then_some(0)
    }

    fn condition(&mut self, name: &str) -> Result<u32, Vec<&'static str>> {
        u32::try_from(name.len()).map_err(|_| Vec::new())
    }

    fn analyzer(&mut self, name: &str) -> Option<Box<str>> {
        Some(name.into())
    }

    fn error(&mut self, _: &str) {}

    fn warning(&mut self, _: &str) {}
}

/// Counts actions, to check that each rule acts once per connection.
#[derive(Default)]
struct Count(usize);

impl Host for Count {
    fn holds(&mut self, _: &Rule, condition: Condition, place: &MatchContext<'_>) -> bool {
        !matches!(condition, Condition::Eval(number) if number % 2 == 0) || place.is_orig
    }

    fn act(&mut self, _: &Rule, _: &Action, place: &MatchContext<'_>) {
        assert!(place.end <= place.data.map_or(0, <[u8]>::len) as u64);
        self.0 += 1;
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // The text up to the first NUL byte is a signature file, the rest is data.
    let (text, data) = match data.iter().position(|b| *b == 0) {
        Some(at) => data.split_at(at),
        None => (data, &b"GET / HTTP/1.1\r\n"[..]),
    };
    let mut rules = Vec::new();
    parse("fuzzed.sig", text, false, &mut Scripts, &mut rules);
    let actions: usize = rules.iter().map(|rule| rule.actions.len()).sum();
    let all = Signatures::new(rules, Limits::default(), &mut Scripts);
    let mut conn = Connection::default();
    let mut count = Count::default();
    let headers = Headers { version: 4, header: data, payload: data, protocol: 6 };
    for is_orig in [true, false] {
        all.begin(&mut conn, is_orig, Some(&headers), &mut count);
        for (number, piece) in data.chunks(7).enumerate() {
            let kind = Kind::ALL[number % Kind::ALL.len()];
            let fresh = number % 3 == 0;
            let item = Item { kind, data: piece, begins: fresh, ends: fresh, fresh };
            all.feed(&mut conn, is_orig, &item, &mut count);
        }
        all.clear(&mut conn, is_orig, &mut count);
    }
    all.finish(&mut conn, &mut count);
    assert!(count.0 <= actions);
    let _ = all.mime_types(data);
});
