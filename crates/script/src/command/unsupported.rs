//! Options of Zeek that gannet does not have. They are refused with a message that names an alternative.

/// The message for a refused option of one letter; `None` for other options.
pub(super) fn reason(letter: char) -> Option<&'static str> {
    Some(match letter {
        'c' => {
            "option '-c' (--capture-unprocessed): gannet does not write packets that no analyzer processed; see weird.log and \
             analyzer.log for protocol errors"
        }
        'd' => {
            "option '-d' (--debug-script): gannet has no debugger; use --diagnostics rich for detailed errors, --event-trace FILE for \
             the events of a run, and print for values"
        }
        'j' => {
            "option '-j' (--jobs): gannet has no supervisor for the nodes of a cluster; use --threads N to analyze with several \
             threads"
        }
        'P' => {
            "option '-P' (--prime-dns): gannet has no DNS cache file; scripts look up names when they run, and \
             ZEEK_DNS_FAKE provides fake answers"
        }
        'S' => {
            "option '-S' (--debug-rules): gannet cannot dump signatures; use gannet script check to check them, and see signatures.log for \
             matches"
        }
        't' => {
            "option '-t' (--tracefile): gannet does not trace function calls; use --event-trace FILE for the events of a run, and \
             --profile-scripts to count calls"
        }
        'W' => {
            "option '-W' (--watchdog): gannet has no watchdog; use --script-budget TIME to end handlers that run too long"
        }
        'X' => {
            "option '-X' (--zeekygen): gannet does not generate documentation; gannet script lsp shows that of each name"
        }
        _ => return None,
    })
}

/// The message for the refused `--test`.
pub(super) const TEST: &str =
    "option '--test': gannet does not have Zeek's unit tests; run its own with cargo test";

/// Names that `-O` accepts and ignores: gannet has its own compiler (`--engine`).
const OPTIMIZATIONS: &[&str] = &[
    "ZAM",
    "gen-ZAM-code",
    "inline",
    "keep-asserts",
    "no-inline",
    "no-event-handler-coalescence",
    "no-ZAM-opt",
    "optimize-all",
    "optimize-AST",
    "xform",
];

/// Names that `-O` refuses: they request output or programs of Zeek's compilers.
const REFUSED: &[&str] = &[
    "allow-cond",
    "dump-uds",
    "dump-xform",
    "dump-ZAM",
    "dump-final-ZAM",
    "gen-C++",
    "gen-standalone-C++",
    "profile-ZAM",
    "report-C++",
    "report-recursive",
    "report-uncompilable",
    "use-C++",
    "validate-ZAM",
];

/// The text of `-O help`.
pub(super) fn optimization_help() -> String {
    let mut text = "gannet compiles scripts itself (see --engine). It accepts these names of Zeek's optimizations, which \
                    have no effect:\n"
        .to_owned();
    for name in OPTIMIZATIONS {
        text += &format!("    {name}\n");
    }
    text +=
        "It does not support these names, which request output of Zeek's own script compilers:\n";
    for name in REFUSED {
        text += &format!("    {name}\n");
    }
    text
}

/// Checks the name of an optimization (`-O`).
///
/// # Errors
/// Returns a message of one line if the name is refused or unknown.
pub(super) fn check_optimization(name: &str) -> Result<(), String> {
    if OPTIMIZATIONS.contains(&name) {
        return Ok(());
    }
    Err(if REFUSED.contains(&name) {
        format!(
            "option '-O {name}' is not supported, because only Zeek's own script compilers have it; use gannet script ir \
             for the code of a script, or --profile-scripts for the time that it takes"
        )
    } else {
        format!("option '-O': unknown name '{name}'; -O help lists the known ones")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimizations_are_known_refused_or_unknown() {
        assert_eq!(check_optimization("ZAM"), Ok(()));
        assert!(check_optimization("gen-C++").is_err_and(|text| text.contains("only Zeek's")));
        assert!(check_optimization("zam").is_err_and(|text| text.contains("-O help")));
        assert!(optimization_help().contains("\n    ZAM\n"));
    }
}
