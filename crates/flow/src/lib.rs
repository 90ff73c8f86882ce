//! Connections: keys, table, TCP state, reassembly, fragments, timers on packet time.
