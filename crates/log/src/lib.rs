//! Row schemas and the writers of logs: TSV and JSON.
