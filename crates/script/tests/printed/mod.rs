//! Standard output of a script in memory.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

/// Standard output of a script. Clones share the bytes.
#[derive(Clone, Default)]
pub(crate) struct Printed(pub(crate) Rc<RefCell<Vec<u8>>>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
