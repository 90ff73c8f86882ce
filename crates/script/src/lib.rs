//! Zeek's script language: lexer, parser, types, interpreter and built-in functions.
//!
//! # Stages
//!
//! ```text
//! file ──▶ lexer ──tokens──▶ parser ──▶ Program (typed, resolved AST) ──▶ compiler ──▶ interpreter
//!            ▲                 │  ▲
//!            └─ prefix position┘  └── Evaluate: values of initializers, `@if` conditions, priorities
//! ```
//!
//! The language requires a single pass: `@if` needs values, `@load` inserts the tokens of another
//! file, a type or a global exists from its declaration on, and a `/` begins a pattern only where
//! an expression may begin. So the parser requests one token at a time from the lexer, resolves
//! names and computes types immediately, and evaluates the initializer of each global once it is
//! parsed. Its result is complete: no later pass looks up a name or infers a type.
//!
//! # Modules
//!
//! | module | purpose |
//! |---|---|
//! | [`source`] | files that were read, spans |
//! | [`names`] | interned names |
//! | [`literal`] | constants in the AST |
//! | [`types`] | types and attributes |
//! | [`ast`] | expressions and statements, functions and their bodies |
//! | [`symbols`] | globals, scopes, modules |
//! | [`program`] | all arenas together: the result of the parser, which all later stages read |
//! | [`evaluate`] | the interface between the parser and the interpreter |
//! | [`diagnostics`] | errors and warnings, in Zeek's form |
//! | [`jit`] | execution engines: machine code for hot code |
//! | [`signature`] | signatures: patterns and conditions over packets and streams |
//! | [`coverage`] | execution count of each statement |
//! | [`cache`] | the parsed program, stored for the next start |
//! | [`bridge`] | from packets to scripts: typed events become calls of handlers |
//! | [`tools`] | for script authors: linter, formatter, dumps of each stage, queries of editors |
//! | [`support`] | algorithms that do not depend on programs: patterns, key bytes, formats, opaque values |
//!
//! All nodes are in arenas and addressed by ids of four bytes ([`ids`]); nothing is freed before the program.
//! Recursion over ASTs, types and values is bounded or runs on a stack of its own.

pub mod ast;
pub mod bif;
pub mod bridge;
pub mod cache;
pub mod code;
pub mod command;
mod comments;
pub mod compare;
pub mod components;
pub mod coverage;
pub mod describe;
pub mod diagnostics;
pub mod evaluate;
pub mod ids;
pub mod jit;
pub mod lexer;
pub mod literal;
pub mod names;
pub mod parse;
pub mod program;
pub mod report;
pub mod signature;
pub mod source;
pub mod support;
pub mod symbols;
pub mod tools;
pub mod types;
pub mod value;
pub mod vm;
pub mod walk;
