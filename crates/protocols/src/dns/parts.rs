//! The parts of a record in events, which are decoded only when they are used.

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use super::message::Cursor;
use super::message::Notes;
use super::records::Data;

/// A section of a message whose records are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Answers.
    Answers = 1,
    /// Prerequisites of a dynamic update.
    Prerequisites = 4,
    /// Changes of a dynamic update.
    Updates = 5,
}

impl Arg for Section {
    const TYPE: Type = Type::Count;

    fn pack(&self, to: &mut Packer<'_>) {
        (*self as u64).pack(to);
    }
}

/// Positions of the parts of a record in its message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) msg: &'a [u8],
    /// The name, if it is already decoded.
    pub(super) name: Option<&'a [u8]>,
    pub(super) name_at: usize,
    pub(super) long_labels: bool,
    pub(super) data_at: usize,
    pub(super) data_len: u16,
}

/// The owner name of a record, which is decoded only when it is used.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a>(pub(super) &'a Parts<'a>);

impl<'a> Owner<'a> {
    /// Returns the name; `buffer` is used to decode it.
    #[cold]
    pub(super) fn decode<'b>(self, buffer: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        let parts = self.0;
        if let Some(name) = parts.name {
            return name;
        }
        buffer.clear();
        // The name was skipped before without an error.
        Cursor::new(parts.msg, parts.name_at).name(buffer, parts.long_labels, &mut Notes::new());
        buffer
    }
}

impl Arg for Owner<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        self.decode(&mut Vec::new()).pack(to);
    }
}

/// The data of a record, parsed and as bytes.
#[derive(Clone, Copy, Debug)]
pub struct RecordData<'a> {
    /// The parsed data; `None` for a part of an update whose data is not used.
    pub(super) parsed: Option<&'a Data<'a>>,
    pub(super) parts: &'a Parts<'a>,
}

impl Arg for RecordData<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        let Parts { msg, data_at, data_len, .. } = *self.parts;
        Cursor::new(msg, data_at).take(data_len.into()).pack(to);
    }
}
