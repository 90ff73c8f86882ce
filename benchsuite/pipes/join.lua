-- Pairs queries with their responses, with the given number of threads. Run by `cargo xtask pipes`.
local took = gannet.input(arg[2]):dns():parallel(tonumber(arg[3])):join():latencies()
print(took.queries, took.answered, took.p50, took.max)
