//! Generates statements.

use super::{Maker, Ty};

impl Maker {
    pub(super) fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn block(&mut self, statements: u64, depth: u32) {
        let mark = self.scope.len();
        self.line("{");
        for _ in 0..statements {
            self.statement(depth);
        }
        self.line("}");
        self.scope.truncate(mark);
    }

    pub(super) fn statement(&mut self, depth: u32) {
        let nested = depth > 0;
        match self.random.below(34) {
            22 if nested => self.switch(depth),
            23 if nested => {
                let (k, v) = (self.fresh(), self.fresh());
                // A loop whose body removes and adds entries might never end, so it iterates over a table that no other statement changes.
                let (over, from) = (self.fresh(), self.expr(Ty::Records, 1));
                self.line(&format!("local {over} = copy({from});"));
                self.line(&format!("for ( {k}, {v} in {over} )\n{{"));
                let mark = self.scope.len();
                self.scope.extend([(k.clone(), Ty::String), (v.clone(), Ty::Record)]);
                self.loops += 1;
                if self.random.below(3) == 0 {
                    let condition = self.expr(Ty::Bool, 1);
                    self.line(&format!("if ( {condition} )\ndelete {over}[{k}];"));
                }
                let value = self.expr(Ty::Count, 1);
                self.line(&format!("{v}$a += {value};"));
                self.statement(depth - 1);
                self.loops -= 1;
                self.scope.truncate(mark);
                self.line("}");
            }
            24 if nested => {
                let (s, i) = (self.fresh(), self.fresh());
                let over = self.expr(Ty::Set, 1);
                self.line(&format!("for ( [{s}, {i}] in copy({over}) )"));
                self.scope.extend([(s, Ty::String), (i, Ty::Int)]);
                self.loops += 1;
                self.block(2, depth - 1);
                self.loops -= 1;
                self.scope.truncate(self.scope.len() - 2);
            }
            25 if nested => {
                let (n, c) = (self.fresh(), self.fresh());
                let over = self.expr(Ty::Nets, 1);
                self.line(&format!("for ( {n}, {c} in copy({over}) )"));
                self.scope.extend([(n, Ty::Subnet), (c, Ty::Count)]);
                self.loops += 1;
                self.block(2, depth - 1);
                self.loops -= 1;
                self.scope.truncate(self.scope.len() - 2);
            }
            26 => {
                // With few keys, a loop visits entries that its body inserts.
                let k = self.random.one(&[
                    "\"a\"",
                    "\"aab\"",
                    "\"x\"",
                    "\"\"",
                    "\"another string, long\"",
                ]);
                let value = self.expr(Ty::Record, 2);
                let to = self.variable(Ty::Records).unwrap_or_else(|| "grs".to_owned());
                self.line(&format!("{to}[{k}] = {value};"));
            }
            27 => {
                let (k, value) = (self.expr(Ty::Subnet, 1), self.expr(Ty::Count, 2));
                let to = self.variable(Ty::Nets).unwrap_or_else(|| "gn".to_owned());
                self.line(&format!("{to}[{k}] = {value};"));
                if self.random.below(3) == 0 {
                    let k = self.expr(Ty::Subnet, 1);
                    self.line(&format!("delete {to}[{k}];"));
                }
            }
            28 => {
                let (k, value) = (self.random.below(6), self.expr(Ty::Count, 2));
                let op = self.random.one(&["=", "+=", "-="]);
                self.line(&format!("gdt[{k}] {op} {value};"));
                if self.random.below(3) == 0 {
                    let k = self.random.below(6);
                    self.line(&format!("delete gdt[{k}];"));
                }
            }
            29 => {
                if let Some(name) = self.variable(Ty::Record) {
                    let (c, n) = (self.expr(Ty::Count, 1), self.expr(Ty::String, 1));
                    let change = match self.random.below(4) {
                        0 => format!("delete {name}$c;"),
                        1 => format!("if ( |{name}$v| < 9 ) {name}$v += {c};"),
                        2 => format!("{name}$inner$n = {n};"),
                        _ => format!("{name} = [$a={c}, $c={n}];"),
                    };
                    self.line(&change);
                }
            }
            30 => {
                let (add, k) = (self.random.below(2) == 0, self.expr(Ty::Count, 1));
                if let Some(name) = self.variable(Ty::Counts) {
                    let verb = if add { "add" } else { "delete" };
                    self.line(&format!("{verb} {name}[{k}];"));
                }
            }
            31 => {
                let value = self.expr(Ty::Count, 1);
                self.line(&format!("event ge({value});"));
            }
            32 => {
                let ty = self.ty();
                let value = self.expr(ty, 2);
                self.line(&format!("print {value};"));
            }
            33 => {
                let value = self.expr(Ty::Strings, 1);
                let (a, b) = (self.fresh(), self.fresh());
                self.line(&format!("for ( {a}, {b} in {value} ) gs = sub_bytes({b}, 1, +200);"));
            }
            0..=3 => {
                let ty = self.ty();
                let value = self.expr(ty, 2);
                let name = self.fresh();
                self.line(&format!("local {name}: {} = {value};", ty.name()));
                self.scope.push((name, ty));
            }
            4..=6 => {
                let ty = self.ty();
                let value = self.expr(ty, 3);
                if let Some(name) = self.variable(ty) {
                    self.line(&format!("{name} = {value};"));
                }
            }
            7 | 8 => {
                let of = [Ty::Count, Ty::Int, Ty::Double, Ty::Interval, Ty::String];
                let at = self.random.below(of.len() as u64) as usize;
                let ty = of.get(at).copied().unwrap_or(Ty::Count);
                let value = self.expr(ty, 2);
                if let Some(name) = self.variable(ty) {
                    if ty == Ty::String {
                        self.line(&format!("if ( |{name}| < 2000 )\n{name} += {value};"));
                    } else {
                        let op = self.random.one(&["+=", "-="]);
                        self.line(&format!("{name} {op} {value};"));
                    }
                }
            }
            9 => {
                let ty = if self.random.below(2) == 0 { Ty::Count } else { Ty::Int };
                if let Some(name) = self.variable(ty) {
                    let op = self.random.one(&["++", "--"]);
                    self.line(&format!("{op}{name};"));
                }
            }
            10 if nested => {
                let condition = self.expr(Ty::Bool, 2);
                self.line(&format!("if ( {condition} )"));
                self.block(2, depth - 1);
                if self.random.below(2) == 0 {
                    self.line("else");
                    self.block(2, depth - 1);
                }
            }
            11 | 12 if nested => {
                let name = self.fresh();
                let turns = 1 + self.random.below(7);
                self.line(&format!("local {name} = 0;\nwhile ( {name} < {turns} )\n{{\n++{name};"));
                let mark = self.scope.len();
                self.loops += 1;
                for _ in 0..3 {
                    self.statement(depth - 1);
                }
                self.loops -= 1;
                self.scope.truncate(mark);
                self.line("}");
            }
            13 if nested => {
                let name = self.fresh();
                let over = self.expr(Ty::Vector, 1);
                self.line(&format!("for ( {name} in {over} )"));
                self.scope.push((name, Ty::Count));
                self.loops += 1;
                self.block(2, depth - 1);
                self.loops -= 1;
                self.scope.pop();
            }
            14 if nested => {
                let (k, v) = (self.fresh(), self.fresh());
                let over = self.expr(Ty::Table, 1);
                self.line(&format!("for ( {k}, {v} in copy({over}) )"));
                self.scope.extend([(k, Ty::Count), (v, Ty::String)]);
                self.loops += 1;
                self.block(2, depth - 1);
                self.loops -= 1;
                self.scope.truncate(self.scope.len() - 2);
            }
            15 => {
                let (i, value) = (self.random.below(6), self.expr(Ty::Count, 2));
                if let Some(name) = self.variable(Ty::Vector) {
                    self.line(&format!("{name}[{i}] = {value};"));
                }
            }
            16 => {
                let (k, value) = (self.random.below(6), self.expr(Ty::String, 2));
                if let Some(name) = self.variable(Ty::Table) {
                    self.line(&format!("{name}[{k}] = {value};"));
                }
            }
            17 => match self.random.below(3) {
                0 => {
                    let k = self.random.below(6);
                    if let Some(name) = self.variable(Ty::Table) {
                        self.line(&format!("delete {name}[{k}];"));
                    }
                }
                1 => {
                    let (s, i) = (self.expr(Ty::String, 1), self.expr(Ty::Int, 1));
                    if let Some(name) = self.variable(Ty::Set) {
                        self.line(&format!("add {name}[{s}, {i}];"));
                    }
                }
                _ => {
                    let value = self.expr(Ty::Count, 1);
                    if let Some(name) = self.variable(Ty::Vector) {
                        self.line(&format!("if ( |{name}| < 20 ) {name} += {value};"));
                    }
                }
            },
            18 => {
                let (field, ty) = match self.random.below(4) {
                    0 => ("a", Ty::Count),
                    1 => ("b", Ty::Int),
                    2 => ("c", Ty::String),
                    _ => ("d", Ty::Double),
                };
                let value = self.expr(ty, 2);
                if let Some(name) = self.variable(Ty::Record) {
                    self.line(&format!("{name}${field} = {value};"));
                }
            }
            19 if self.loops > 0 => {
                let leave = self.random.one(&["break;", "next;"]);
                let condition = self.expr(Ty::Bool, 1);
                self.line(&format!("if ( {condition} ) {leave}"));
            }
            20 => {
                if let Some(ty) = self.result {
                    let (condition, value) = (self.expr(Ty::Bool, 1), self.expr(ty, 2));
                    self.line(&format!("if ( {condition} ) return {value};"));
                }
            }
            _ => {
                let global = self.random.below(3);
                let (name, ty) = [("gc", Ty::Count), ("gi", Ty::Int), ("gd", Ty::Double)]
                    .get(global as usize)
                    .copied()
                    .unwrap_or(("gc", Ty::Count));
                let value = self.expr(ty, 2);
                self.line(&format!("{name} = {value};"));
            }
        }
    }
}

impl Maker {
    /// Generates a `switch` on a number or a string, with `fallthrough` cases.
    fn switch(&mut self, depth: u32) {
        let texts = self.random.below(2) == 0;
        let ty = if texts { Ty::String } else { Ty::Count };
        let value = self.expr(ty, 2);
        self.line(&format!("switch ( {value} )\n{{"));
        let labels =
            if texts { ["\"a\"", "\"aab\", \"x\"", "\"\""] } else { ["0, 1", "2", "100, 70000"] };
        for label in labels {
            self.line(&format!("case {label}:"));
            self.block(1, depth - 1);
            let end = self.random.one(&["break;", "break;", "fallthrough;"]);
            self.line(end);
        }
        self.line("default:");
        self.block(1, depth - 1);
        self.line("break;\n}");
    }
}
