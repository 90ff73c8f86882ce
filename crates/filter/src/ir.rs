//! What a filter tests, without registers.
//!
//! A [`ValueId`] names a pure value of the packet, each held once in [`Values`]. Lowering builds
//! conditions over them (`Cond`), which [`Graph`] turns into blocks that each test one thing and go
//! on to one of two others. Passes shorten conditions and graphs; engines take a graph as it is, or
//! the classic BPF made from it. [`Set`] and [`Set6`] are how long lists of addresses and ports
//! reach them.

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
