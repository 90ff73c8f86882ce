//! The engines agree: random programs that type-check print and report the same in the interpreter and as machine code.
#![cfg(feature = "jit")]

use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write;
use std::rc::Rc;

use gannet_script::diagnostics::Diagnostics;
use gannet_script::jit::Engine;
use gannet_script::parse::{Input, Parser};
use gannet_script::program::Program;
use gannet_script::vm::Machine;

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Output and reports together, in their order, and the exit status; none where the program is wrong.
fn run(code: &str, engine: Engine, heat: u32) -> Option<(String, i32)> {
    let printed = Shared::default();
    let mut reports = printed.clone();
    let diagnostics = Diagnostics::new(Box::new(move |diagnostic, _| {
        let mut line = diagnostic.line();
        line.push(b'\n');
        assert!(reports.write_all(&line).is_ok());
    }));
    let mut program = Program { diagnostics, ..Program::default() };
    let mut machine = Machine::new();
    machine.set_output(Box::new(printed.clone()));
    let input = Input::Text { name: "random.zeek".to_owned(), code: code.as_bytes().to_vec() };
    let parsed = Parser::new(&mut program, &mut machine, Vec::new()).run([input]);
    if parsed.is_err() || program.diagnostics.errors > 0 {
        return None;
    }
    machine.set_heat(heat);
    assert_eq!(machine.set_engine(engine), Ok(()));
    let status = machine.with(&mut program).run();
    machine.flush();
    let text = String::from_utf8_lossy(&printed.0.borrow()).into_owned();
    Some((text, status))
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of.get(self.below(of.len() as u64) as usize).copied().unwrap_or_default()
    }
}

/// The types of the programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ty {
    Bool,
    Count,
    Int,
    Double,
    Interval,
    String,
    Addr,
    Vector,
    Table,
    Set,
    Record,
}

const TYPES: [Ty; 11] = [
    Ty::Bool,
    Ty::Count,
    Ty::Int,
    Ty::Double,
    Ty::Interval,
    Ty::String,
    Ty::Addr,
    Ty::Vector,
    Ty::Table,
    Ty::Set,
    Ty::Record,
];

impl Ty {
    fn name(self) -> &'static str {
        match self {
            Ty::Bool => "bool",
            Ty::Count => "count",
            Ty::Int => "int",
            Ty::Double => "double",
            Ty::Interval => "interval",
            Ty::String => "string",
            Ty::Addr => "addr",
            Ty::Vector => "vector of count",
            Ty::Table => "table[count] of string",
            Ty::Set => "set[string, int]",
            Ty::Record => "R",
        }
    }
}

/// A program in the making.
struct Maker {
    random: Random,
    text: String,
    /// Variables that are set, and what they are.
    scope: Vec<(String, Ty)>,
    functions: Vec<(String, Vec<Ty>, Ty)>,
    names: u32,
    loops: u32,
    result: Option<Ty>,
}

impl Maker {
    fn ty(&mut self) -> Ty {
        TYPES.get(self.random.below(TYPES.len() as u64) as usize).copied().unwrap_or(Ty::Count)
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn variable(&mut self, ty: Ty) -> Option<String> {
        let known: Vec<&String> =
            self.scope.iter().filter(|(_, of)| *of == ty).map(|(name, _)| name).collect();
        let at = self.random.below(known.len().max(1) as u64) as usize;
        known.get(at).map(|name| (*name).clone())
    }

    /// An expression of a type.
    fn expr(&mut self, ty: Ty, depth: u32) -> String {
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
            Ty::Count => match self.random.below(9) {
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
            Ty::String => match self.random.below(5) {
                0 => format!("{}[{}]", self.expr(Ty::String, d), self.expr(Ty::Count, d)),
                1 => format!("{}[1:{}]", self.expr(Ty::String, d), self.expr(Ty::Count, d)),
                2 => format!("{}[{}]", self.expr(Ty::Table, d), self.expr(Ty::Count, d)),
                3 => format!("{}$c", self.expr(Ty::Record, d)),
                _ => format!("({} + {})", self.expr(Ty::String, d), self.expr(Ty::String, d)),
            },
            Ty::Vector => match self.random.below(3) {
                0 => format!("{}$v", self.expr(Ty::Record, d)),
                _ => format!("vector({}, {})", self.expr(Ty::Count, d), self.expr(Ty::Count, d)),
            },
            Ty::Table => {
                let (k, v) = (self.expr(Ty::Count, d), self.expr(Ty::String, d));
                format!("table([{k}] = {v})")
            }
            Ty::Record => {
                let (a, c) = (self.expr(Ty::Count, d), self.expr(Ty::String, d));
                if self.random.below(2) == 0 {
                    format!("R($a={a}, $c={c})")
                } else {
                    format!("R($a={a}, $d={})", self.expr(Ty::Double, d))
                }
            }
            Ty::Addr | Ty::Set => self.leaf(ty),
        }
    }

    fn truth(&mut self, d: u32) -> String {
        match self.random.below(12) {
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

    fn line(&mut self, text: &str) {
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

    fn statement(&mut self, depth: u32) {
        let nested = depth > 0;
        match self.random.below(22) {
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
                    let op = if ty == Ty::String { "+=" } else { self.random.one(&["+=", "-="]) };
                    self.line(&format!("{name} {op} {value};"));
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
                self.line(&format!("for ( {k}, {v} in {over} )"));
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

/// A program that follows from a seed.
fn program(seed: u64) -> String {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut maker = Maker {
        random,
        text: String::new(),
        scope: Vec::new(),
        functions: Vec::new(),
        names: 0,
        loops: 0,
        result: None,
    };
    maker.random.next();
    maker.line(
        "type R: record { a: count; b: int &default=-3; c: string &optional; d: double &default=0.5; v: vector of count &default=vector(); };
global gc = 3; global gi: int = -4; global gd = 0.25; global gs = \"global string, long\";
global gv = vector(4, 5, 6); global gt: table[count] of string = table([1] = \"g\") &default=\"none\";
global gset: set[string, int] = set([\"a\", -1]); global gr = R($a=77);",
    );
    for index in 0..3 {
        let params: Vec<Ty> = (0..=maker.random.below(3)).map(|_| maker.ty()).collect();
        let result = maker.ty();
        let names: Vec<String> = params.iter().map(|_| maker.fresh()).collect();
        let list: Vec<String> =
            names.iter().zip(&params).map(|(name, ty)| format!("{name}: {}", ty.name())).collect();
        maker.line(&format!("function f{index}({}): {}\n{{", list.join(", "), result.name()));
        maker.scope = names.into_iter().zip(params.iter().copied()).collect();
        maker.result = Some(result);
        let statements = 3 + maker.random.below(5);
        for _ in 0..statements {
            maker.statement(2);
        }
        let value = maker.expr(result, 2);
        maker.line(&format!("return {value};\n}}"));
        maker.functions.push((format!("f{index}"), params, result));
    }
    maker.scope.clear();
    maker.result = None;
    for (index, (name, params, _)) in maker.functions.clone().into_iter().enumerate() {
        // An error ends a body: each function has bodies of its own.
        for turn in 0..2 {
            maker.line(&format!(
                "event zeek_init() &priority={}\n{{\nlocal i{index}{turn} = 0;\nwhile ( i{index}{turn} < 4 )\n{{\n++i{index}{turn};",
                -(index as i64 * 2 + turn)
            ));
            maker.scope = vec![(format!("i{index}{turn}"), Ty::Count)];
            let args: Vec<String> = params.iter().map(|ty| maker.expr(*ty, 1)).collect();
            maker.line(&format!(
                "print \"{name}\", {name}({}), gc, gi, gd;\n}}\n}}",
                args.join(", ")
            ));
        }
    }
    maker.scope.clear();
    let _ =
        writeln!(maker.text, "event zeek_init() &priority=-100 {{ print gs, gv, gt, gset, gr; }}");
    maker.text
}

/// Compares the engines on the programs of these seeds.
fn compare(seeds: std::ops::Range<u64>) {
    // Nested calls need the stack that the command has.
    let thread = std::thread::Builder::new().stack_size(1 << 28).spawn(move || {
        let mut right = 0;
        for seed in seeds.clone() {
            let code = program(seed);
            let Some(expected) = run(&code, Engine::Interp, 1) else { continue };
            right += 1;
            for (engine, heat) in [(Engine::Jit, 1), (Engine::Jit, 3), (Engine::Verify, 1)] {
                let found = run(&code, engine, heat);
                assert_eq!(Some(&expected), found.as_ref(), "seed {seed}, {engine:?}:\n{code}");
            }
        }
        let all = seeds.end - seeds.start;
        assert!(right * 4 >= all * 3, "{right} of {all} programs type-check");
    });
    let Ok(thread) = thread else { return };
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn random_programs_run_alike() {
    compare(0..150);
}

#[test]
#[ignore = "takes long: as many as a release is tested with"]
fn many_random_programs_run_alike() {
    let from = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_000_000);
    let n: u64 = std::env::var("PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    compare(from..from + n);
}
