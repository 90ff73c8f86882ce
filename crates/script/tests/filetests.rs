//! Scripts in `filetests/` and the text of their compilation stages. The first line of a script names the stages: `# stages: rich ast`.
//! The expected text is in the file of the same name that ends in `.out`; with `GANNET_UPDATE=1` the test writes it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use gannet_script::tools::session::{self, Session, Settings};
use gannet_script::tools::{format, render, stages, warn};

#[test]
fn stages_are_as_expected() {
    let mut scripts: Vec<PathBuf> = std::fs::read_dir("filetests")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "zeek"))
        .collect();
    scripts.sort();
    assert!(scripts.len() > 5, "filetests/ is found");
    let mut wrong = Vec::new();
    for script in scripts {
        let expected = script.with_extension("out");
        let path = script.to_string_lossy().into_owned();
        let text = session::on_large_stack(move || stages(&path)).unwrap_or_default();
        if std::env::var_os("GANNET_UPDATE").is_some() {
            let written = std::fs::write(&expected, &text);
            assert!(written.is_ok(), "{}", expected.display());
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != text {
            wrong.push(format!("{}:\n{text}", expected.display()));
        }
    }
    assert!(wrong.is_empty(), "GANNET_UPDATE=1 rewrites these:\n{}", wrong.join("\n"));
}

fn stages(path: &str) -> String {
    let source = std::fs::read(path).unwrap_or_default();
    let first = String::from_utf8_lossy(&source).lines().next().unwrap_or_default().to_owned();
    let stages = first.strip_prefix("# stages:").unwrap_or_default();
    let settings = Settings {
        files: vec![path.to_owned()],
        bare: true,
        scripts: Some("filetests".to_owned()),
        warnings: warn::Level::All,
        ..Settings::default()
    };
    let mut text = String::new();
    for stage in stages.split_whitespace() {
        let _ = writeln!(text, "=== {stage}");
        text.push_str(&shown(stage, &settings, &source));
    }
    assert!(!text.is_empty(), "{}: the first line names no stages", Path::new(path).display());
    text
}

fn shown(stage: &str, settings: &Settings, source: &[u8]) -> String {
    if stage == "fmt" {
        let text = format::format(source).unwrap_or_default();
        assert_eq!(format::format(&text).unwrap_or_default(), text, "formatting is idempotent");
        return String::from_utf8_lossy(&text).into_owned();
    }
    if stage == "tokens" {
        return stages::tokens(source);
    }
    let mut session = session::read(settings);
    match stage {
        "ast" => stages::ast(&session),
        "types" => stages::types(&session),
        "code" => stages::code(&mut session),
        "rich" => rich(&session),
        "zeek" => session.lines.iter().filter_map(|line| Some(line.zeek.clone()? + "\n")).collect(),
        other => format!("no stage {other}\n"),
    }
}

fn rich(session: &Session) -> String {
    session
        .findings
        .iter()
        .map(|finding| render::render(&session.program.sources, finding))
        .collect()
}
