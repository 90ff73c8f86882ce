//! The help text of `-h`.

/// The help text. Names and meanings of the options are Zeek's.
pub(super) const HELP: &str = "\
Run Zeek scripts, over a capture or alone

Usage: gannet zeek [OPTIONS] [SCRIPT | NAME=VALUE]... [-- SCRIPT [ARGUMENTS]...]

  gannet zeek -C -r trace.pcap              Zeek's default scripts: their logs go to this folder
  gannet zeek -C -r trace.pcap detect.zeek  and a script of your own
  gannet zeek -b hello.zeek                 a script that needs only the language
  gannet zeek -e 'print 1 + 1;'             code of the command line

Zeek's own scripts come with every installation of Zeek (share/zeek). ZEEKPATH names their folders, with colons
between them, or --zeek-scripts DIR the one folder; gannet zeek -b needs none.

Input:
  -r, --readfile FILE       run over this capture; - is standard input
  -f, --filter FILTER       only packets that match, as in tcpdump
  -C, --no-checksums        do not verify checksums
  -s, --rulefile FILE       load these signatures

Scripts:
  -b, --bare-mode           load only scripts that are named, no default ones
  -e, --exec CODE           run this code, after all scripts (the last one counts)
  -p, --prefix PREFIX       load scripts of this prefix as well
  NAME=VALUE                set an option of a script, like LogAscii::use_json=T
  --zeek-scripts DIR        the folder of Zeek's scripts
  --spicy                   also run scripts of protocols that Zeek parses with Spicy: LDAP, PostgreSQL,
                            QUIC and Redis
  --script-budget TIME[,BYTES]
                            end handlers that run longer, or that take more memory: 500ms,100M
  --max-string BYTES        the maximum length of a string; a longer one is a script error (default 256M)
  --max-open-logs N         the maximum number of open logs; beyond it, the least recently written ones
                            are closed until their next row (default 512)
  --threads N               analyze in N threads; scripts run in one of them, in the order of packets
  --verbose                 report the number of analysis threads, and the reason if there is only one
  --sandbox                 scripts start no programs and touch no files but logs
  --no-script-cache         parse Zeek's own scripts even if they were parsed before
  --no-unused-warnings      no warnings about variables and functions that are not used

Checks:
  -a, --parse-only          parse and check, run nothing
  --diagnostics rich        errors with their line and a hint
  --profile-scripts[=FILE]  calls, time and allocations of functions and lines, at the end
  --profile-script-call-stacks
                            the same as calls and their stacks, in Zeek's format
  ZEEK_PROFILER_FILE=FILE   a variable of the environment: how often each statement ran
  -I, --print-id NAME       print this variable, and what is known about it

Repeatable runs:
  -D, --deterministic       all seeds are zero
  --zeek-order              the same: uids, timers and the ends of connections come in Zeek's order,
                            as they do under any seeds
  -G, --load-seeds FILE     seeds of hashes and random numbers
  -H, --save-seeds FILE     write the seeds of this run

Others:
  -E, --event-trace FILE    write a script that raises the events of this run again, without its packets
  -w, --writefile FILE      write the packets that are analyzed to this capture
  -N, --print-plugins       list analyzers, readers and writers, with -NN each of them
  -u, --usage-issues        warn of variables that are used and not set, with -uu of those that are not read
  -Q, --time                time and memory at the end
  -U, --status-file FILE    write the state of the process
  -V, --build-info          version and build, as JSON
  -v, --version             print the version
  -h, --help                print this

Options of Zeek that gannet does not have are refused with a reason; -O and -B change nothing.
docs/scripts.md is the manual.
";
