//! Arbitrary text is checked with all warnings, and each diagnostic has a message.
#![no_main]

use gannet_script::tools::render;
use gannet_script::tools::session;
use gannet_script::tools::session::Settings;
use gannet_script::tools::warn;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let settings = Settings {
        files: vec!["-".to_owned()],
        text: Some(data.to_vec()),
        bare: true,
        scripts: Some("nowhere".to_owned()),
        warnings: warn::Level::All,
        index: true,
        ..Settings::default()
    };
    let session = session::read(&settings);
    for finding in &session.findings {
        assert!(!render::render(&session.program.sources, finding).is_empty());
    }
});
