//! Engines: the interpreter, and machine code for what is hot.
//!
//! Bodies begin in the interpreter, which counts calls and turns of loops. What is `HOT` is compiled by Cranelift, in the same thread, and entered at its
//! next call or at the next turn of its loop. Both engines share the frames: machine code may leave to the interpreter at any
//! instruction, and does so for whatever is unusual.
//!
//! | module | duty |
//! |---|---|
//! | `flow` | operands, live registers, kinds of registers |
//! | `emit` | from register code to Cranelift's form |
//! | `layout` | tags, offsets, addresses |
//! | `tier` | heat, the way into machine code and back |
//! | `verify` | calls that both engines run |
//! | `machine` | memory, calls in both directions: all unsafe code |

#[cfg(feature = "jit")]
mod emit;
#[cfg(feature = "jit")]
mod flow;
#[cfg(feature = "jit")]
mod layout;
#[cfg(feature = "jit")]
mod machine;
#[cfg(feature = "jit")]
mod tier;
#[cfg(feature = "jit")]
mod verify;

#[cfg(feature = "jit")]
pub(crate) use tier::{Jit, Tier};

use crate::vm::Machine;

/// What runs scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// The interpreter of register code.
    #[default]
    Interp,
    /// The same, and machine code for what is hot.
    Jit,
    /// Machine code for everything; calls without side effects are run by the interpreter, too, and the results compared.
    Verify,
}

impl Engine {
    /// The engine of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "interp" => Self::Interp,
            "jit" => Self::Jit,
            "verify" => Self::Verify,
            _ => return None,
        })
    }
}

impl Machine {
    /// Chooses the engine.
    ///
    /// # Errors
    /// Where this build or this processor has only the interpreter.
    pub fn set_engine(&mut self, engine: Engine) -> Result<(), &'static str> {
        self.jit.start(engine)
    }

    /// Sets after how many calls and turns of loops code is compiled.
    pub fn set_heat(&mut self, heat: u32) {
        self.jit.set_heat(heat);
    }

    /// Brings what machine code knows of addresses up to date.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        #[cfg(feature = "jit")]
        self.jit.moved(self.stack.as_mut_ptr(), self.stack.len(), self.globals.as_ptr());
    }
}

/// Without the feature `jit`.
#[cfg(not(feature = "jit"))]
#[derive(Debug, Default)]
pub(crate) struct Jit {}

#[cfg(not(feature = "jit"))]
impl Jit {
    fn start(&mut self, engine: Engine) -> Result<(), &'static str> {
        match engine {
            Engine::Interp => Ok(()),
            _ => Err("this build has no engine but the interpreter"),
        }
    }

    fn set_heat(&mut self, _: u32) {}

    pub(crate) const fn is_on(&self) -> bool {
        false
    }
}

#[cfg(not(feature = "jit"))]
impl crate::vm::Vm<'_> {
    #[expect(clippy::unused_self, reason = "the other variant uses it")]
    #[expect(clippy::unnecessary_wraps, reason = "the other variant fails")]
    pub(crate) fn run_hot(
        &mut self,
        _: &std::rc::Rc<crate::code::Code>,
        _: usize,
        _: usize,
    ) -> Result<Option<crate::value::Value>, crate::evaluate::Stop> {
        Ok(None)
    }
}
