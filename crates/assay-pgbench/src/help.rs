//! The text of `--help`.

/// pgbench 15's options, and supported ones of later versions.
pub const HELP: &str = "\
pgbench is a benchmarking tool for PostgreSQL; this one is assay's.

Usage:
  pgbench [OPTION]... [DBNAME]

Initialization options:
  -i, --initialize         create and fill the tables
  -I, --init-steps=STEPS   steps to run, of dtgGvpf (default \"dtgvp\")
  -F, --fillfactor=NUM     fill factor of the tables
  -n, --no-vacuum          no VACUUM
  -q, --quiet              one message every 5 seconds
  -s, --scale=NUM          scale: 100,000 accounts per unit
  --foreign-keys           create foreign keys between the tables
  --index-tablespace=NAME  tablespace of the indexes
  --partition-method=NAME  range or hash (default: range)
  --partitions=NUM         partitions of pgbench_accounts (default: 0)
  --tablespace=NAME        tablespace of the tables
  --unlogged-tables        tables without write-ahead log

Options to select what to run:
  -b, --builtin=NAME[@W]   a built-in script with weight W (\"-b list\" lists them)
  -f, --file=FILENAME[@W]  a script of your own with weight W
  -N, --skip-some-updates  the same as \"-b simple-update\"
  -S, --select-only        the same as \"-b select-only\"

Benchmarking options:
  -c, --client=NUM         concurrent clients (default: 1)
  -C, --connect            a new connection for each transaction
  -D, --define=NAME=VALUE  a variable of the script
  -j, --jobs=NUM           number to report; assay uses at most one thread per CPU
  -l, --log                write a line per transaction to a file
  -L, --latency-limit=NUM  count transactions that take longer than NUM ms
  -M, --protocol=MODE      simple, extended or prepared (default: simple)
  -n, --no-vacuum          no VACUUM before the run
  -P, --progress=NUM       print progress every NUM seconds
  -r, --report-per-command latency, failures and retries of each command
  -R, --rate=NUM           transactions per second
  -s, --scale=NUM          scale to report
  -t, --transactions=NUM   transactions per client (default: 10)
  -T, --time=NUM           seconds
  -v, --vacuum-all         vacuum all four tables before the run
  --aggregate-interval=NUM log aggregates over NUM seconds
  --continue-on-error      count a transaction with an SQL error as failed, and continue (as in pgbench 19)
  --exit-on-abort          end the run if a client is aborted
  --failures-detailed      failures by kind
  --log-prefix=PREFIX      beginning of the log files' names (default: \"pgbench_log\")
  --max-tries=NUM          maximum number of tries per transaction (default: 1)
  --progress-timestamp     Unix time in progress lines
  --random-seed=SEED       \"time\", \"rand\" or a number
  --sampling-rate=NUM      share of the transactions to log
  --show-script=NAME       print a built-in script
  --verbose-errors         print each failure

Common options:
  -d, --debug              print what clients do
  --dbname=DBNAME          database to connect to
  --pgbench-version=NUM    what changed is as in this version: options (default: as in 15; from 17 on, -d is --dbname),
                           statements and messages (default: as in the version of the server)
  -h, --host=HOSTNAME      server's host, or directory of its socket
  -p, --port=PORT          server's port
  -U, --username=USERNAME  user to connect as
  -V, --version            print the version
  -?, --help               print this help

Report bugs to assay's developers: this is not PostgreSQL's pgbench.
";
