-- Pairs queries with their responses. Run by `cargo xtask pipes`.
local took = gannet.input(arg[2]):dns():join():latencies()
print(took.queries, took.answered, took.p50, took.max)
