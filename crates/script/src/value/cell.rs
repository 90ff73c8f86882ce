//! Copies of cells as 16 bytes, for all variants.
#![allow(unsafe_code)]

use std::mem::forget;
use std::rc::Rc;

use super::Value;

impl Value {
    /// A bitwise copy of a value that owns no memory.
    #[inline(always)]
    pub(super) fn copied(&self) -> Self {
        debug_assert!(!self.owns_memory());
        // SAFETY: `clone` calls this only if `owns_memory` is false: the variant's fields are numbers, arrays of bytes and other types
        // that are `Copy`, so that both copies may be used and dropped.
        unsafe { std::ptr::read(self) }
    }

    /// Appends clones of values: bitwise copies if none of them owns memory.
    pub(super) fn append(to: &mut Vec<Self>, from: &[Self]) {
        if from.iter().any(Self::owns_memory) {
            return to.extend_from_slice(from);
        }
        to.reserve(from.len());
        // SAFETY: `to` has capacity for the values after its length, and none of them owns memory, so that their bytes may be copied
        // as in `copied`. `from` does not overlap `to`, which is borrowed mutably.
        unsafe {
            let end = to.as_mut_ptr().add(to.len());
            std::ptr::copy_nonoverlapping(from.as_ptr(), end, from.len());
            to.set_len(to.len() + from.len());
        }
    }

    /// Appends `count` unset cells.
    pub(crate) fn append_unset(to: &mut Vec<Self>, count: usize) {
        to.reserve(count);
        // SAFETY: `to` has capacity for `count` values after its length, and each of them is written before the length includes it.
        unsafe {
            let end = to.as_mut_ptr().add(to.len());
            for index in 0..count {
                end.add(index).write(Self::Unset);
            }
            to.set_len(to.len() + count);
        }
    }

    /// A clone of a value that owns memory: another counted reference.
    pub(super) fn shared(&self) -> Self {
        // Most are records.
        if let Self::Record(rc) = self {
            forget(Rc::clone(rc));
            // SAFETY: as below.
            return unsafe { std::ptr::read(self) };
        }
        match self {
            Self::Addr6(rc) => forget(Rc::clone(rc)),
            Self::Net6(rc) => forget(Rc::clone(rc)),
            Self::Long(rc) => forget(Rc::clone(rc)),
            Self::Pattern(rc) => forget(Rc::clone(rc)),
            Self::Record(rc) => forget(Rc::clone(rc)),
            Self::Table(rc) => forget(Rc::clone(rc)),
            Self::Vector(rc) => forget(Rc::clone(rc)),
            Self::List(rc) => forget(Rc::clone(rc)),
            Self::Func(rc) => forget(Rc::clone(rc)),
            Self::File(rc) => forget(Rc::clone(rc)),
            Self::Opaque(rc) => forget(Rc::clone(rc)),
            Self::Iter(rc) => forget(Rc::clone(rc)),
            Self::Unset
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Count(_)
            | Self::Double(_)
            | Self::Time(_)
            | Self::Interval(_)
            | Self::Enum(..)
            | Self::Port(_)
            | Self::Addr4(_)
            | Self::Net4(..)
            | Self::Type(_)
            | Self::Short(_) => (),
        }
        // SAFETY: each variant holds one counted reference. The count was incremented and not decremented: the copy owns that reference. The
        // other variants are `Copy`, as above. The match names every variant, so that a new one cannot be forgotten here.
        unsafe { std::ptr::read(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_count_their_references() {
        let text = Rc::new(super::super::LongStr::new(b"a string that is long enough"));
        let value = Value::Long(Rc::clone(&text));
        let copies = [value.clone(), value.clone()];
        assert_eq!(Rc::strong_count(&text), 4);
        assert!(copies.iter().all(|copy| copy.str_bytes() == &**text));
        drop((value, copies));
        assert_eq!(Rc::strong_count(&text), 1);
    }

    #[test]
    fn short_strings_have_their_bytes_at_each_length() {
        let text = b"0123456789abcdefghij";
        for len in 0..=text.len() {
            let value = Value::string(&text[..len]);
            assert_eq!(value.str_bytes(), &text[..len]);
            assert_eq!(value.owns_memory(), len > super::super::SHORT);
            let upper = Value::string_mapped(&text[..len], |byte| byte.to_ascii_uppercase());
            assert_eq!(upper.str_bytes(), text[..len].to_ascii_uppercase());
        }
    }

    #[test]
    fn cells_are_appended_as_they_are() {
        let text = Rc::new(super::super::LongStr::new(b"a string that is long enough"));
        for owned in [Value::Long(Rc::clone(&text)), Value::Count(7)] {
            let mut cells = vec![Value::Bool(true)];
            Value::append(&mut cells, &[Value::string("short"), owned.clone(), Value::Unset]);
            Value::append_unset(&mut cells, 3);
            assert_eq!(cells.len(), 7);
            assert_eq!(cells[1].str_bytes(), b"short");
            assert_eq!(format!("{:?}", cells[2]), format!("{owned:?}"));
            assert!(cells[3..].iter().all(|cell| !cell.is_set()));
        }
        assert_eq!(Rc::strong_count(&text), 1);
        let mut none = Vec::new();
        Value::append_unset(&mut none, 0);
        Value::append(&mut none, &[]);
        assert!(none.is_empty());
    }

    #[test]
    fn results_go_to_cells_and_errors_do_not() {
        let text = Rc::new(super::super::LongStr::new(b"a string that is long enough"));
        let mut cell = Value::Long(Rc::clone(&text));
        assert_eq!(Value::put_result::<u8>(&mut cell, Err(3)), Err(3));
        assert_eq!(Rc::strong_count(&text), 2);
        assert_eq!(Value::put_result::<u8>(&mut cell, Ok(Value::Count(5))), Ok(()));
        assert_eq!((Rc::strong_count(&text), cell.count()), (1, 5));
        assert_eq!(Value::put_result::<u8>(&mut cell, Ok(Value::Long(text))), Ok(()));
        assert_eq!(cell.str_bytes(), b"a string that is long enough");
    }
}
