//! Puts the stages together: front, shards, merge, limits, statistics.
