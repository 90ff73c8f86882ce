use std::fmt;

/// Why an expression is none, and where.
///
/// Its `Display` says so in a line, then shows the expression with a mark under the place:
///
/// ```text
/// expected a port from 0 to 65535, found 'http'
///   tcp port http
///            ^^^^
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}\n{}", Mark(self))]
pub struct Error {
    problem: Problem,
    expression: String,
    /// Characters before the place, and of the place.
    at: usize,
    width: usize,
}

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Something else should stand here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What should.
        expected: &'static str,
        /// What does.
        found: String,
    },
    /// The rest of pcap-filter(7).
    #[error(
        "{found} is beyond the simple filter language: tcp, udp, icmp, icmp6, ip, ip6, arp, \
         [src|dst] host, [src|dst] net, [tcp|udp] [src|dst] port and portrange, \
         and, or, not and parentheses"
    )]
    Beyond {
        /// What is.
        found: String,
    },
    /// An address with bits beyond the length of its network.
    #[error("{found} has bits set beyond its prefix length")]
    HostBits {
        /// The network.
        found: String,
    },
    /// Parentheses and negations inside of each other.
    #[error(
        "more than {} parentheses and negations inside of each other",
        crate::parser::MAX_NESTING
    )]
    Nesting,
}

impl Error {
    /// For the bytes `at..at + width` of an expression.
    pub(crate) fn new(problem: Problem, expression: &str, at: usize, width: usize) -> Self {
        let chars = |upto: usize| expression.char_indices().take_while(|(i, _)| *i < upto).count();
        let before = chars(at);
        let width = chars(at.saturating_add(width)) - before;
        Self { problem, expression: expression.to_owned(), at: before, width }
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The character it is wrong from, counted from one.
    pub fn column(&self) -> usize {
        self.at + 1
    }
}

/// The expression and the mark under it.
struct Mark<'a>(&'a Error);

impl fmt::Display for Mark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { expression, at, width, .. } = self.0;
        // Whatever is no plain character would move the mark.
        let shown = expression.chars().map(|c| if c.is_control() { ' ' } else { c });
        writeln!(f, "  {}", shown.collect::<String>())?;
        write!(f, "  {}{}", " ".repeat(*at), "^".repeat((*width).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use crate::Filter;

    fn rendered(expression: &str) -> String {
        Filter::parse(expression).unwrap_err().to_string()
    }

    #[test]
    fn the_place_is_marked() {
        assert_eq!(
            rendered("tcp port http"),
            "expected a port from 0 to 65535, found 'http'\n  tcp port http\n           ^^^^"
        );
        assert_eq!(
            rendered("tcp and"),
            "expected an expression, found the end\n  tcp and\n         ^"
        );
        assert_eq!(rendered("ü").lines().last(), Some("  ^"));
        assert_eq!(rendered("tcp\tport\tx").lines().nth(1), Some("  tcp port x"));
    }
}
