//! The clustered dictionary.
