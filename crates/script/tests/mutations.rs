//! Damaged scripts: lexer, parser, checker, warnings and formatter neither panic nor hang, and formatting keeps tokens.

use std::path::Path;
use std::time::{Duration, Instant};

use gannet_script::tools::session::{self, Settings};
use gannet_script::tools::{format, render, tokens, warn};

/// The duration of the test; `GANNET_MUTATE_SECONDS` overrides the default.
fn time() -> Duration {
    let seconds = std::env::var("GANNET_MUTATE_SECONDS").ok();
    Duration::from_secs(seconds.and_then(|text| text.parse().ok()).unwrap_or(4))
}

/// Maximum time for one script.
const MAX_TIME: Duration = Duration::from_secs(10);

/// A random number generator with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit.max(1)
    }
}

/// Scripts to damage: those of `filetests/`, and Zeek's own if `ZEEKPATH` is set.
fn scripts() -> Vec<Vec<u8>> {
    let mut open = vec![Path::new("filetests").to_owned()];
    let path = std::env::var("ZEEKPATH").unwrap_or_default();
    open.extend(
        path.split(':')
            .map(|folder| Path::new(folder).join("base"))
            .filter(|folder| folder.is_dir()),
    );
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "zeek") {
                found.push(path);
            }
        }
    }
    found.sort();
    found.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

fn damaged(scripts: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let source = &scripts[random.below(scripts.len())];
    let from = random.below(source.len());
    let mut code = if source.len() > 4_000 {
        source[from..(from + 3_000).min(source.len())].to_vec()
    } else {
        source.clone()
    };
    for _ in 0..random.below(8) {
        if code.is_empty() {
            break;
        }
        let at = random.below(code.len());
        match random.below(5) {
            0 => drop(code.remove(at)),
            1 => code.insert(at, b"[](){}$&|=,;:\"/@?#\n\\"[random.below(20)]),
            2 => code.truncate(at.max(1)),
            3 => code[at] = u8::try_from(random.below(256)).unwrap_or(0),
            _ => {
                let other = &scripts[random.below(scripts.len())];
                let from = random.below(other.len());
                let piece = &other[from..(from + random.below(200)).min(other.len())];
                code.splice(at..at, piece.iter().copied());
            }
        }
    }
    code
}

#[test]
fn damaged_scripts_are_read_and_formatted() {
    let scripts = scripts();
    assert!(scripts.len() > 5, "filetests/ is found");
    let run = session::on_large_stack(move || {
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        let start = Instant::now();
        let mut formatted = 0;
        let mut rounds = 0;
        let time = time();
        while start.elapsed() < time {
            let code = damaged(&scripts, &mut random);
            let began = Instant::now();
            if let Ok(text) = format::format(&code) {
                formatted += 1;
                let (before, after) = (tokens::pieces(&code), tokens::pieces(&text));
                let texts = |pieces: &[tokens::Piece], source: &[u8]| {
                    pieces.iter().map(|piece| piece.text(source).to_vec()).collect::<Vec<_>>()
                };
                let before = before.map(|pieces| texts(&pieces, &code));
                let after = after.map(|pieces| texts(&pieces, &text));
                assert_eq!(before, after, "{}", String::from_utf8_lossy(&code));
                assert_eq!(
                    format::format(&text).as_ref(),
                    Ok(&text),
                    "{}",
                    String::from_utf8_lossy(&code)
                );
            }
            let path = Path::new("/damaged.zeek").to_owned();
            let settings = Settings {
                files: vec!["-".to_owned()],
                text: Some(code.clone()),
                bare: true,
                scripts: Some("filetests".to_owned()),
                warnings: warn::Level::All,
                overlay: [(path, Vec::new())].into(),
                index: true,
                ..Settings::default()
            };
            let session = session::read(&settings);
            for finding in &session.findings {
                assert!(!render::render(&session.program.sources, finding).is_empty());
            }
            assert!(began.elapsed() < MAX_TIME, "{}", String::from_utf8_lossy(&code));
            rounds += 1;
        }
        (rounds, formatted)
    });
    let (rounds, formatted) = run.unwrap_or_default();
    assert!(rounds > 50 && formatted > 5, "{rounds} scripts, {formatted} formatted");
}

#[test]
fn formatting_zeeks_scripts_is_idempotent() {
    for source in scripts() {
        let text = format::format(&source);
        let Ok(text) = text else { continue };
        assert_eq!(
            format::format(&text).as_ref(),
            Ok(&text),
            "{}",
            String::from_utf8_lossy(&source)
        );
    }
}
