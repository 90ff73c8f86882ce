//! The parts of a record, which are read where they are asked for.

use gannet_event::Arg;
use gannet_event::Packer;
use gannet_event::Type;

use super::message::Cursor;
use super::message::Notes;
use super::records::Data;

/// A section of records, as far as they are read differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Answers.
    Answers = 1,
    /// What must hold for an update.
    Prerequisites = 4,
    /// What it changes.
    Updates = 5,
}

impl Arg for Section {
    const TYPE: Type = Type::Count;

    fn pack(&self, to: &mut Packer<'_>) {
        (*self as u64).pack(to);
    }
}

/// Where the parts of a record are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    pub(super) msg: &'a [u8],
    /// The name, if it had to be read already.
    pub(super) name: Option<&'a [u8]>,
    pub(super) name_at: usize,
    pub(super) long_labels: bool,
    pub(super) data_at: usize,
    pub(super) data_len: u16,
}

/// The name of a record, which is read where it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a>(pub(super) &'a Parts<'a>);

impl<'a> Owner<'a> {
    /// The name; `room` is for one that is not read yet.
    #[cold]
    pub(super) fn read<'b>(self, room: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        let parts = self.0;
        if let Some(name) = parts.name {
            return name;
        }
        room.clear();
        // It was passed without a fault.
        Cursor::new(parts.msg, parts.name_at).name(room, parts.long_labels, &mut Notes::new());
        room
    }
}

impl Arg for Owner<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        self.read(&mut Vec::new()).pack(to);
    }
}

/// The data of a record: what was read, and its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RecordData<'a> {
    /// What was read; `None` where the data does not matter.
    pub(super) read: Option<&'a Data<'a>>,
    pub(super) parts: &'a Parts<'a>,
}

impl Arg for RecordData<'_> {
    const TYPE: Type = Type::String;

    fn pack(&self, to: &mut Packer<'_>) {
        let Parts { msg, data_at, data_len, .. } = *self.parts;
        Cursor::new(msg, data_at).take(data_len.into()).pack(to);
    }
}
