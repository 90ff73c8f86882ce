//! Execution engines: the interpreter, and machine code for hot code.
//!
//! Bodies start in the interpreter, which counts calls and loop iterations. After `HOT` of them Cranelift
//! compiles the code in the same thread, and the machine code is entered at the next call or the next
//! iteration. Both engines share the frames: machine code may exit to the interpreter at any instruction, and
//! does so in all rare cases.
//!
//! | module | purpose |
//! |---|---|
//! | `flow` | operands, live registers, kinds of registers |
//! | `emit` | from register code to Cranelift's form |
//! | `layout` | tags, offsets, addresses |
//! | `tier` | execution counters, transitions to machine code and back |
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

/// The engine that runs scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// The interpreter of register code.
    #[default]
    Interp,
    /// The interpreter, and machine code for hot code.
    Jit,
    /// Machine code for everything. Calls without side effects are also run by the interpreter, and the results
    /// are compared.
    Verify,
}

impl Engine {
    /// The engine with this name.
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
    /// If this build or this processor supports only the interpreter.
    pub fn set_engine(&mut self, engine: Engine) -> Result<(), &'static str> {
        self.jit.start(engine)
    }

    /// Sets the number of calls and loop iterations after which code is compiled.
    pub fn set_heat(&mut self, heat: u32) {
        self.jit.set_heat(heat);
    }

    /// Updates the addresses that machine code uses.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        #[cfg(feature = "jit")]
        self.jit.set_addresses(self.stack.as_mut_ptr(), self.stack.len(), self.globals.as_ptr());
    }
}

/// The state of a build without the feature `jit`.
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
