//! The reference of the `gannet` module, generated from the comments in its source.
//!
//! A block of `---` and `--` lines documents what follows it: a function of the module (`function
//! gannet.input(...)`), a method (`function Pipeline:filter(expression)`), or a value
//! (`gannet.version = ...`, `Pipeline.queries = ...`). The first block describes the module.

use std::fmt::Write;

/// The sources, in the order of the manual.
const SOURCES: [&str; 4] = [
    include_str!("lua/gannet.lua"),
    include_str!("lua/events.lua"),
    include_str!("lua/client.lua"),
    include_str!("lua/respdiff.lua"),
];

/// The reference as Markdown: a section per function, in the order of the source.
pub fn manual() -> String {
    let mut out = String::new();
    let mut block: Option<Vec<&str>> = None;
    for line in SOURCES.iter().flat_map(|source| source.lines()).map(str::trim_start) {
        if let Some(first) = line.strip_prefix("---").filter(|rest| !rest.starts_with('-')) {
            block = Some(vec![first.trim_start()]);
        } else if let Some(lines) = &mut block {
            match line.strip_prefix("--") {
                Some(text) => lines.push(text.strip_prefix(' ').unwrap_or(text)),
                None => {
                    // Writing to a string cannot fail.
                    write_entry(line, lines, &mut out).unwrap_or_default();
                    block = None;
                }
            }
        }
    }
    out
}

fn write_entry(code: &str, lines: &[&str], out: &mut String) -> std::fmt::Result {
    match heading(code) {
        Some(heading) => writeln!(out, "### `{heading}`\n")?,
        None => writeln!(out, "## Reference\n")?,
    }
    let mut in_list = false;
    for line in lines {
        let item = match line.strip_prefix("@param ").and_then(|l| l.split_once(' ')) {
            Some((name, what)) => Some(format!("- `{name}`: {what}")),
            None => line.strip_prefix("@return ").map(|what| format!("- returns {what}")),
        };
        match item {
            Some(item) => {
                out.push_str(if in_list { "" } else { "\n" });
                in_list = true;
                writeln!(out, "{item}")?;
            }
            None if in_list => writeln!(out, "  {line}")?,
            None => writeln!(out, "{line}")?,
        }
    }
    out.push('\n');
    Ok(())
}

/// The heading for the item that a line of source defines.
fn heading(code: &str) -> Option<String> {
    let name = match code.strip_prefix("function ") {
        Some(function) => function.to_owned(),
        None => {
            let (name, _) = code.split_once(" = ")?;
            if name.starts_with("local ") {
                return None;
            }
            let method = name.replace("Pipeline.", "Pipeline:");
            if method == name { method } else { method + "()" }
        }
    };
    Some(
        name.replace("Pipeline:", "pipeline:")
            .replace("Packet:", "packet:")
            .replace("Counts:", "counts:")
            .replace("Analysis:", "analysis:")
            .replace("Client:", "client:")
            .replace("Respdiff:", "respdiff:"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_with_a_comment_is_in_the_manual() {
        let text = manual();
        assert!(text.starts_with("## Reference\n\nPackets, DNS messages"));
        for name in [
            "gannet.input(...)",
            "pipeline:filter(expression)",
            "pipeline:queries()",
            "pipeline:join(timeout)",
            "packet:with(changes)",
            "counts:top(n)",
            "gannet.analyze(...)",
            "analysis:on(name, call)",
            "gannet.client(url, options)",
            "client:ask(message)",
            "respdiff:put(query, answers)",
            "gannet.version",
        ] {
            assert!(text.contains(&format!("### `{name}`\n")), "{name}");
        }
        let documented = SOURCES.iter().flat_map(|s| s.lines());
        let documented = documented.filter(|l| l.trim_start().starts_with("--- ")).count();
        assert_eq!(text.matches("\n### ").count() + 1, documented);
    }
}
