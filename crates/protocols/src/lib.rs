//! Application protocols: messages, analyzers, rows.
