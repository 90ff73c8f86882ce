//! The intermediate representation: tests over values, without registers.
//!
//! A [`ValueId`] names a pure value of the packet; [`Values`] stores each once. Lowering builds
//! conditions over them (`Cond`), which [`Graph`] turns into blocks that each test one thing and
//! continue to one of two others. Passes simplify conditions and graphs; engines take a graph
//! directly, or the classic BPF made from it. [`Set`] and [`Set6`] represent long lists of
//! addresses and ports.

mod cond;
mod graph;
mod lookup;
mod run;
mod set;
mod values;

pub(crate) use cond::{Cond, and, not, or};
pub(crate) use graph::Builder;
pub use graph::{ACCEPT, Block, BlockId, Graph, REJECT, Step, Test};
pub use lookup::{Lookup, Lookup6};
pub use set::{Ranges, Set, Set6, Word};
pub use values::{Node, ValueId, Values};
