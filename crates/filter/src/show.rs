//! Stages as text and drawings: the syntax tree, the graph as a listing, for Graphviz and as SVG,
//! the program as a function in C, and the expression in words.

mod ast;
mod c;
mod dot;
mod listing;
mod predicates;
mod svg;
mod words;

#[cfg(test)]
mod tests {
    use crate::{Compiled, NoNames, Options, compile};

    fn compiled(text: &str) -> Compiled {
        compile(text, 1, &Options::default(), &NoNames).unwrap()
    }

    #[test]
    fn stages_are_shown() {
        let c = compiled("ip and not tcp[13] & 2 = 0");
        let tree = "chain\n  proto ip @0..2\nand\n  not\n    (= (& tcp[13:1] 2) 0) @11..26\n";
        assert_eq!(c.ast(), tree);
        let tests = "all\n  packet[12:2] = 0x800\n  not\n    all\n";
        assert!(c.predicates().starts_with(tests), "{}", c.predicates());
        let passes = c.passes_listed();
        assert!(passes.starts_with("the graph as written: 5 tests\n"), "{passes}");
        assert!(passes.contains("the graph without sets: the same\n"), "{passes}");
        let graph = c.graph().unwrap();
        assert_eq!(
            graph.to_string().lines().next(),
            Some("b5: packet[12:2] = 0x800 ? b4 : reject")
        );
        assert_eq!(graph.to_dot().matches(" -> ").count(), 2 * (graph.blocks.len() - 2));
        let svg = graph.to_svg();
        assert_eq!(svg.matches("<path").count(), 2 * (graph.blocks.len() - 2));
        assert_eq!(svg.matches("<text").count(), graph.blocks.len());
        let function = c.program().to_c_function("matches");
        assert!(function.contains("uint32_t matches(const uint8_t *p"), "{function}");
        assert!(function.contains("goto l"), "{function}");
    }

    #[test]
    fn expressions_are_explained_in_words() {
        let told = |text| compiled(text).explain();
        assert_eq!(
            told("tcp port 80 or 443 and not src net 10"),
            "On DLT_EN10MB (Ethernet), lets through packets where (the port of the source or the \
             destination over tcp is 80, or the port of the source or the destination over tcp is \
             443), and it is not so that the network of the source is 10.\n\
             29 instructions of BPF.\n"
        );
        assert!(told("").contains("every packet"));
        assert_eq!(
            compiled("tcp port 80 or not (net 10 or 11)").ast(),
            "chain\n  id [tcp port] 80 @9..11\nor\n  not\n    chain\n      id [net] 10 @24..26\n    or\n      \
             id [net] 11 @30..32\n"
        );
        assert_eq!(compiled("").ast(), "everything\n");
        assert_eq!(compiled("").predicates(), "true\n");
    }
}
