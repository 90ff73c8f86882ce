//! Options of Zeek that gannet does not have. They are refused with a message that names an alternative.

/// The message for a refused option of one letter; `None` for other options.
pub(super) fn reason(letter: char) -> Option<&'static str> {
    Some(match letter {
        'c' => {
            "option '-c' (--capture-unprocessed): gannet keeps no record of packets that no analyzer processed; weird.log and \
             analyzer.log report what was not understood"
        }
        'd' => {
            "option '-d' (--debug-script): there is no debugger; --diagnostics rich explains errors, --event-trace FILE writes \
             the events of a run, and print shows values"
        }
        'j' => {
            "option '-j' (--jobs): there is no supervisor that starts the nodes of a cluster; --threads N analyzes in several \
             threads"
        }
        'P' => {
            "option '-P' (--prime-dns): no cache of DNS is kept in a file; scripts look names up when they run, and \
             ZEEK_DNS_FAKE invents answers"
        }
        'S' => {
            "option '-S' (--debug-rules): there is no dump of signatures; signatures.log and gannet script check show what they \
             do"
        }
        't' => {
            "option '-t' (--tracefile): calls of functions are not traced; --event-trace FILE writes the events of a run, and \
             --profile-scripts counts calls"
        }
        'W' => {
            "option '-W' (--watchdog): there is no watchdog; --script-budget TIME ends handlers that run too long"
        }
        'X' => {
            "option '-X' (--zeekygen): gannet generates no documentation; gannet script lsp shows that of each name"
        }
        _ => return None,
    })
}

/// The message for the refused `--test`.
pub(super) const TEST: &str =
    "option '--test': gannet has no unit tests of Zeek's code; its own run with cargo test";

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
    let mut text = "gannet optimizes all scripts as they run; --engine interp, jit or verify says how. These names of Zeek's \
                    optimizations are accepted and change nothing:\n"
        .to_owned();
    for name in OPTIMIZATIONS {
        text += &format!("    {name}\n");
    }
    text += "These ask for what only Zeek's compilers of scripts have, and are refused:\n";
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
            "option '-O {name}' asks for what only Zeek's compilers of scripts have; gannet script ir shows the code of \
             a script, and --profile-scripts where time is spent"
        )
    } else {
        format!("option '-O' does not know '{name}'; -O help lists what it knows")
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
