//! The native part of the Python module `gannet`.
//!
//! It runs analyses (`run`), events (`events`) and filters (`packets`) in threads that do not hold the GIL, and exports
//! record batches through Arrow's C data interface (`arrow`). The Python code and the user documentation are in
//! `python/gannet`.

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

/// The allocator of this library only; Python keeps its own. The system's allocator returns the freed buffers of
/// batches to the kernel and faults them in again: 9,700 page faults for a capture of 234 MB, versus 95 with mimalloc.
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
