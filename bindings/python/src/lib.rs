//! The native part of the Python module `gannet`.
//!
//! It has what Python cannot do itself: it runs analyses (`run`), events (`events`) and filters
//! (`packets`) in threads without the interpreter's lock, and hands record batches over by Arrow's C interfaces
//! (`arrow`). Everything else, with the documentation for users, is in `python/gannet`.

mod arrow;
mod convert;
mod errors;
mod events;
mod gil;
mod info;
mod packets;
mod run;
mod source;
mod tasks;

use pyo3::prelude::*;

/// Of this library alone; Python keeps its own. The buffers of batches are freed and allocated again and again: the
/// system's allocator returns them and has them cleared: 9,700 page faults for a capture of 234 MB, and 95 with this one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule(gil_used = true)]
mod _gannet {
    #[pymodule_export]
    use crate::arrow::PyBatch;
    #[pymodule_export]
    use crate::arrow::schema_capsule;
    #[pymodule_export]
    use crate::events::EventRun;
    #[pymodule_export]
    use crate::events::event_declarations;
    #[pymodule_export]
    use crate::info::index;
    #[pymodule_export]
    use crate::info::info;
    #[pymodule_export]
    use crate::info::log_declarations;
    #[pymodule_export]
    use crate::info::log_names;
    #[pymodule_export]
    use crate::info::version;
    #[pymodule_export]
    use crate::packets::PacketRun;
    #[pymodule_export]
    use crate::packets::filter_to;
    #[pymodule_export]
    use crate::packets::packets_of;
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::tasks::plan;
}
