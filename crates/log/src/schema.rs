use crate::row::Field;
use crate::row::Row;

/// The description of a log stream, for the manual and for the selection of logs by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Name of the stream and of its file.
    pub path: &'static str,
    /// Description of a row, in one sentence.
    pub doc: &'static str,
    /// Whether it is written only on request.
    pub opt_in: bool,
    /// The columns in order.
    pub fields: Vec<Field>,
}

impl Schema {
    /// The schema of a row type.
    pub fn of<R: Row>() -> Self {
        Self { path: R::PATH, doc: R::DOC.trim(), opt_in: R::OPT_IN, fields: R::fields() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::row! {
        /// One row for each test.
        struct Sample = "sample" {
            /// How many.
            n: u64 = "n",
        }
    }

    #[test]
    fn a_row_type_describes_itself() {
        let schema = Schema::of::<Sample>();
        assert_eq!((schema.path, schema.doc), ("sample", "One row for each test."));
        assert_eq!(schema.fields.iter().map(|f| f.name).collect::<Vec<_>>(), ["n"]);
    }
}
