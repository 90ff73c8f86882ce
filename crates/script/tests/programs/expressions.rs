//! Generates expressions of each type.

use super::{Maker, Ty};

impl Maker {
    /// An expression of a type.
    pub(super) fn expr(&mut self, ty: Ty, depth: u32) -> String {
        if self.random.below(3) == 0
            && let Some(name) = self.variable(ty)
        {
            return name;
        }
        if depth == 0 {
            return self.leaf(ty);
        }
        let d = depth - 1;
        if self.random.below(9) == 0 {
            let (c, a, b) = (self.expr(Ty::Bool, d), self.expr(ty, d), self.expr(ty, d));
            return format!("({c} ? {a} : {b})");
        }
        if self.random.below(7) == 0
            && let Some(call) = self.call(ty, d)
        {
            return call;
        }
        match ty {
            Ty::Bool => self.truth(d),
            Ty::Count => match self.random.below(19) {
                9 => format!("gdt[{}]", self.expr(Ty::Count, d)),
                10 => format!("{}[{}]", self.expr(Ty::Nets, d), self.expr(Ty::Addr, d)),
                11 => format!("{}[{}]$a", self.expr(Ty::Records, d), self.expr(Ty::String, d)),
                12 => {
                    let size = [Ty::Strings, Ty::Counts, Ty::Records, Ty::Nets];
                    let at = self.random.below(size.len() as u64) as usize;
                    format!("|{}|", self.expr(size.get(at).copied().unwrap_or(Ty::Nets), d))
                }
                13 | 14 => {
                    let known = self.variable(Ty::Func).unwrap_or_else(|| "gf".to_owned());
                    format!("{known}({})", self.expr(Ty::Count, d))
                }
                15 => format!("(~ {})", self.expr(Ty::Count, d)),
                16 => format!("strstr({}, {})", self.expr(Ty::String, d), self.expr(Ty::String, d)),
                17 => {
                    let (v, at) = (self.expr(Ty::Vector, d), self.expr(Ty::Count, d));
                    format!("({v} + {v})[{at} % 2]")
                }
                0 => format!("|{}|", self.expr(Ty::String, d)),
                1 => format!("|{}|", self.expr(Ty::Vector, d)),
                2 => format!("|{}|", self.expr(Ty::Table, d)),
                3 => format!("{}$a", self.expr(Ty::Record, d)),
                4 => format!("{}[{}]", self.expr(Ty::Vector, d), self.expr(Ty::Count, d)),
                5 => {
                    let op = self.random.one(&["&", "|", "^"]);
                    format!("({} {op} {})", self.expr(Ty::Count, d), self.expr(Ty::Count, d))
                }
                _ => {
                    let op = self.random.one(&["+", "+", "*", "-", "/", "%"]);
                    format!("({} {op} {})", self.expr(Ty::Count, d), self.expr(Ty::Count, d))
                }
            },
            Ty::Int => match self.random.below(6) {
                0 => format!("{}$b", self.expr(Ty::Record, d)),
                1 => format!("(-{})", self.expr(Ty::Int, d)),
                2 => format!("({} + {})", self.expr(Ty::Int, d), self.expr(Ty::Count, d)),
                _ => {
                    let op = self.random.one(&["+", "-", "*", "/", "%"]);
                    format!("({} {op} {})", self.expr(Ty::Int, d), self.expr(Ty::Int, d))
                }
            },
            Ty::Double => match self.random.below(6) {
                0 => format!("{}$d", self.expr(Ty::Record, d)),
                1 => format!("({} * {})", self.expr(Ty::Double, d), self.expr(Ty::Count, d)),
                2 => format!("({} / {})", self.expr(Ty::Interval, d), self.expr(Ty::Interval, d)),
                _ => {
                    let op = self.random.one(&["+", "-", "*", "/"]);
                    format!("({} {op} {})", self.expr(Ty::Double, d), self.expr(Ty::Double, d))
                }
            },
            Ty::Interval => match self.random.below(3) {
                0 => format!("({} * {})", self.expr(Ty::Interval, d), self.expr(Ty::Double, d)),
                _ => {
                    let op = self.random.one(&["+", "-"]);
                    format!("({} {op} {})", self.expr(Ty::Interval, d), self.expr(Ty::Interval, d))
                }
            },
            Ty::String => match self.random.below(17) {
                5 => format!("to_upper({})", self.expr(Ty::String, d)),
                6 => format!(
                    "sub_bytes({}, {}, +3)",
                    self.expr(Ty::String, d),
                    self.expr(Ty::Count, d)
                ),
                7 | 8 => {
                    let of =
                        [Ty::Count, Ty::Addr, Ty::Subnet, Ty::Port, Ty::Record, Ty::Bool, Ty::Set];
                    let at = self.random.below(of.len() as u64) as usize;
                    let any = self.expr(of.get(at).copied().unwrap_or(Ty::Count), d);
                    let (n, s) = (self.expr(Ty::Int, d), self.expr(Ty::String, d));
                    format!("sub_bytes(fmt(\"%s|%d-%5s\", {any}, {n}, {s}), 1, +80)")
                }
                9 => format!(
                    "sub_bytes(cat({}, {}), 1, +50)",
                    self.expr(Ty::Double, d),
                    self.expr(Ty::Strings, d)
                ),
                10 => {
                    let (s, p) = (self.expr(Ty::String, d), self.expr(Ty::Pattern, d));
                    format!("gsub({s}, {p}, \"+\")")
                }
                11 => format!(
                    "sub_bytes(join_string_vec({}, \",\"), 1, +50)",
                    self.expr(Ty::Strings, d)
                ),
                12 => format!("{}[{}]", self.expr(Ty::Strings, d), self.expr(Ty::Count, d)),
                13 => format!("reverse({})", self.expr(Ty::String, d)),
                14 => format!("({}$inner$n + \".\")", self.expr(Ty::Record, d)),
                0 => format!("{}[{}]", self.expr(Ty::String, d), self.expr(Ty::Count, d)),
                1 => format!("{}[1:{}]", self.expr(Ty::String, d), self.expr(Ty::Count, d)),
                2 => format!("{}[{}]", self.expr(Ty::Table, d), self.expr(Ty::Count, d)),
                3 => format!("{}$c", self.expr(Ty::Record, d)),
                // Strings that double in nested loops would exhaust memory.
                15 => {
                    let (a, b) = (self.expr(Ty::String, d), self.expr(Ty::String, d));
                    format!("sub_bytes({a} + {b}, 1, +300)")
                }
                _ => format!("({} + {})", self.expr(Ty::String, d), self.leaf(Ty::String)),
            },
            Ty::Vector => match self.random.below(7) {
                3 => format!("copy({})", self.expr(Ty::Vector, d)),
                4 => format!("{}[1:{}]", self.expr(Ty::Vector, d), self.expr(Ty::Count, d)),
                5 => format!("({0} * {0})", self.expr(Ty::Vector, d)),
                0 => format!("{}$v", self.expr(Ty::Record, d)),
                _ => format!("vector({}, {})", self.expr(Ty::Count, d), self.expr(Ty::Count, d)),
            },
            Ty::Table if self.random.below(3) == 0 => format!("copy({})", self.expr(Ty::Table, d)),
            Ty::Table => {
                let (k, v) = (self.expr(Ty::Count, d), self.expr(Ty::String, d));
                format!("table([{k}] = {v})")
            }
            Ty::Record => {
                let (a, c) = (self.expr(Ty::Count, d), self.expr(Ty::String, d));
                match self.random.below(6) {
                    0 | 1 => format!("R($a={a}, $c={c})"),
                    2 => format!("R($a={a}, $inner=In($n={c}))"),
                    3 => format!("copy({})", self.expr(Ty::Record, d)),
                    4 => format!("{}[{c}]", self.expr(Ty::Records, d)),
                    _ => format!("R($a={a}, $d={})", self.expr(Ty::Double, d)),
                }
            }
            Ty::Set => match self.random.below(4) {
                0 => {
                    let op = self.random.one(&["|", "&", "-"]);
                    format!("({} {op} {})", self.expr(Ty::Set, d), self.expr(Ty::Set, d))
                }
                1 => format!("copy({})", self.expr(Ty::Set, d)),
                _ => self.leaf(ty),
            },
            Ty::Counts => match self.random.below(3) {
                0 => {
                    let op = self.random.one(&["|", "&", "-"]);
                    format!("({} {op} {})", self.expr(Ty::Counts, d), self.expr(Ty::Counts, d))
                }
                1 => format!("set({}, {})", self.expr(Ty::Count, d), self.expr(Ty::Count, d)),
                _ => self.leaf(ty),
            },
            Ty::Subnet => match self.random.below(2) {
                0 => format!(
                    "({} / {})",
                    self.expr(Ty::Addr, d),
                    self.random.one(&["8", "20", "30"])
                ),
                _ => self.leaf(ty),
            },
            Ty::Pattern => match self.random.below(4) {
                0 => format!("({} | {})", self.expr(Ty::Pattern, d), self.leaf(Ty::Pattern)),
                1 => format!("({} & {})", self.expr(Ty::Pattern, d), self.leaf(Ty::Pattern)),
                _ => self.leaf(ty),
            },
            Ty::Strings => match self.random.below(4) {
                0 => format!(
                    "split_string({}, {})",
                    self.expr(Ty::String, d),
                    self.expr(Ty::Pattern, d)
                ),
                1 => format!("copy({})", self.expr(Ty::Strings, d)),
                _ => format!("vector({}, {})", self.expr(Ty::String, d), self.expr(Ty::String, d)),
            },
            Ty::Records => {
                let (k, r) = (self.expr(Ty::String, d), self.expr(Ty::Record, d));
                match self.random.below(3) {
                    0 => format!("copy({})", self.expr(Ty::Records, d)),
                    _ => format!("table([{k}] = {r})"),
                }
            }
            Ty::Nets => {
                let (n, c) = (self.expr(Ty::Subnet, d), self.expr(Ty::Count, d));
                format!("table([{n}] = {c}, [10.0.0.0/8] = 8)")
            }
            Ty::Func => match self.variable(Ty::Count) {
                // Captures the current value of the variable.
                Some(captured) if captured.starts_with('v') => {
                    let op = self.random.one(&["+", "*", "-", "%"]);
                    let change = self.random.one(&["", "", "++"]);
                    format!(
                        "function[{captured}](a: count): count {{ {}return a {op} {captured}; }}",
                        if change.is_empty() {
                            String::new()
                        } else {
                            format!("{change}{captured}; ")
                        }
                    )
                }
                _ => self.leaf(ty),
            },
            Ty::Addr | Ty::Port => self.leaf(ty),
        }
    }

    fn truth(&mut self, d: u32) -> String {
        match self.random.below(21) {
            12 => format!("({} in {})", self.expr(Ty::Addr, d), self.expr(Ty::Nets, d)),
            13 => format!("({} in {})", self.expr(Ty::String, d), self.expr(Ty::Records, d)),
            14 => format!("({} == {})", self.expr(Ty::Pattern, d), self.expr(Ty::String, d)),
            15 => format!("({} in {})", self.expr(Ty::Pattern, d), self.expr(Ty::String, d)),
            16 => format!("({} in {})", self.expr(Ty::Addr, d), self.expr(Ty::Subnet, d)),
            17 => format!("({} !in {})", self.expr(Ty::Count, d), self.expr(Ty::Counts, d)),
            18 => format!("(hook gh({}))", self.expr(Ty::Count, d)),
            19 => {
                format!("starts_with({}, {})", self.expr(Ty::String, d), self.expr(Ty::String, d))
            }
            20 => format!("({} == {})", self.expr(Ty::Port, d), self.expr(Ty::Port, d)),
            0 => format!("({} && {})", self.expr(Ty::Bool, d), self.expr(Ty::Bool, d)),
            1 => format!("({} || {})", self.expr(Ty::Bool, d), self.expr(Ty::Bool, d)),
            2 => format!("(! {})", self.expr(Ty::Bool, d)),
            3 => format!("({} in {})", self.expr(Ty::Count, d), self.expr(Ty::Table, d)),
            4 => {
                let (s, i) = (self.expr(Ty::String, d), self.expr(Ty::Int, d));
                format!("([{s}, {i}] in {})", self.expr(Ty::Set, d))
            }
            5 => format!("({}?$c)", self.expr(Ty::Record, d)),
            6 => format!("({} in {})", self.expr(Ty::String, d), self.expr(Ty::String, d)),
            7 => format!("(/a+b|x/ in {})", self.expr(Ty::String, d)),
            8 => format!("({} in 10.0.0.0/8)", self.expr(Ty::Addr, d)),
            _ => {
                let of = [Ty::Count, Ty::Int, Ty::Double, Ty::Interval, Ty::String, Ty::Addr];
                let at = self.random.below(of.len() as u64) as usize;
                let ty = of.get(at).copied().unwrap_or(Ty::Count);
                let op = self.random.one(&["<", "<=", "==", "!=", ">", ">="]);
                format!("({} {op} {})", self.expr(ty, d), self.expr(ty, d))
            }
        }
    }

    fn leaf(&mut self, ty: Ty) -> String {
        match ty {
            Ty::Bool => self.random.one(&["T", "F"]),
            Ty::Count => self.random.one(&[
                "0",
                "1",
                "2",
                "3",
                "7",
                "100",
                "70000",
                "18446744073709551615",
                "gc",
            ]),
            Ty::Int => self.random.one(&["+0", "-1", "+5", "-40000", "9223372036854775807", "gi"]),
            Ty::Double => self.random.one(&["0.0", "1.5", "-2.25", "1e300", "gd"]),
            Ty::Interval => self.random.one(&["0sec", "1.5sec", "-2min", "1day"]),
            Ty::String => self.random.one(&[
                "\"\"",
                "\"a\"",
                "\"aab\"",
                "\"a string that is not short\"",
                "gs",
            ]),
            Ty::Addr => self.random.one(&["10.1.2.3", "192.168.0.1", "[2001:db8::1]"]),
            Ty::Vector => self.random.one(&["vector(1, 2, 3)", "vector(5)", "gv"]),
            Ty::Table => self.random.one(&["table([1] = \"one\", [2] = \"two\")", "gt"]),
            Ty::Set => self.random.one(&["set([\"a\", +1], [\"b\", -2])", "gset"]),
            Ty::Record => self.random.one(&["R($a=4)", "R($a=9, $b=-9, $c=\"cc\")", "gr"]),
            Ty::Subnet => self.random.one(&["10.1.0.0/16", "192.168.0.0/24", "[2001:db8::]/32"]),
            Ty::Pattern => self.random.one(&["/a+b?/", "/x|,/", "/^a|string$/", "/[0-9]+/i"]),
            Ty::Port => self.random.one(&["80/tcp", "53/udp", "8/icmp"]),
            Ty::Strings => self.random.one(&["vector(\"x\", \"a string of its own\")", "gsv"]),
            Ty::Counts => self.random.one(&["set(1, 2, 70000)", "gcs"]),
            Ty::Records => self.random.one(&["table([\"a\"] = R($a=1))", "grs"]),
            Ty::Nets => self.random.one(&["table([10.0.0.0/8] = 8, [10.1.2.0/24] = 24)", "gn"]),
            Ty::Func => {
                self.random.one(&["gf", "function(a: count): count { return a * 3 + gc; }"])
            }
        }
        .to_owned()
    }

    fn call(&mut self, ty: Ty, depth: u32) -> Option<String> {
        let known: Vec<_> =
            self.functions.iter().filter(|(_, _, result)| *result == ty).cloned().collect();
        let at = self.random.below(known.len().max(1) as u64) as usize;
        let (name, params, _) = known.get(at)?;
        let args: Vec<String> = params.iter().map(|ty| self.expr(*ty, depth)).collect();
        Some(format!("{name}({})", args.join(", ")))
    }
}
