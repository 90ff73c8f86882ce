//! A generator of random programs, nearly all of which type-check.

mod expressions;
mod statements;

use std::fmt::Write as _;

/// A random number generator.
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
    Subnet,
    Pattern,
    Port,
    Strings,
    Counts,
    Records,
    Nets,
    Func,
}

const TYPES: [Ty; 19] = [
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
    Ty::Subnet,
    Ty::Pattern,
    Ty::Port,
    Ty::Strings,
    Ty::Counts,
    Ty::Records,
    Ty::Nets,
    Ty::Func,
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
            Ty::Subnet => "subnet",
            Ty::Pattern => "pattern",
            Ty::Port => "port",
            Ty::Strings => "vector of string",
            Ty::Counts => "set[count]",
            Ty::Records => "table[string] of R",
            Ty::Nets => "table[subnet] of count",
            Ty::Func => "function(a: count): count",
        }
    }
}

/// The state of the generator of a program.
struct Maker {
    random: Random,
    text: String,
    /// Variables that are set, and their types.
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
}

/// Generates the program of a seed.
pub(super) fn program(seed: u64) -> String {
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
        "global to_upper: function(str: string): string; global sub_bytes: function(s: string, start: count, n: int): string;
global fmt: function(va_args: any): string; global cat: function(va_args: any): string; global reverse: function(str: string): string;
global gsub: function(str: string, re: pattern, repl: string): string; global strstr: function(big: string, little: string): count;
global join_string_vec: function(vec: vector of string, sep: string): string; global starts_with: function(str: string, sub: string): bool;
global split_string: function(str: string, re: pattern): vector of string;
type In: record { n: string &default=\"inner\"; };
type R: record { a: count; b: int &default=-3; c: string &optional; d: double &default=0.5; v: vector of count &default=vector(); inner: In &default=In(); };
global gc = 3; global gi: int = -4; global gd = 0.25; global gs = \"global string, long\";
global gv = vector(4, 5, 6); global gt: table[count] of string = table([1] = \"g\") &default=\"none\";
global gset: set[string, int] = set([\"a\", -1]); global gr = R($a=77);
global gsv = vector(\"global\", \"vector of strings\"); global gcs: set[count] = set(3, 7);
global grs: table[string] of R = table([\"g\"] = R($a=5)) &default=R($a=0); global gn: table[subnet] of count = table([10.1.0.0/16] = 16) &default=1;
global gdt: table[count] of count &default=function(k: count): count { return k + gc; };
global gf: function(a: count): count = function(a: count): count { return a + 1; };
global gh: hook(a: count); hook gh(a: count) &priority=1 { if ( a == 3 ) break; } hook gh(a: count) { ++gi; }
global ge: event(a: count); event ge(a: count) { gi += a % 5; print \"event\", a; }",
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
        // An error ends a body, so each function has separate bodies.
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
    let _ = writeln!(
        maker.text,
        "event zeek_init() &priority=-100 {{ print gs, gv, gt, gset, gr, gsv, gcs, grs, gn, gdt; }}"
    );
    maker.text
}
