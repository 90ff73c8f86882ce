//! The capture filter language.
