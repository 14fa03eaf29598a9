--- pgbench's "simple update" script: adds an amount to an account and records it in the history.
require("pgbench_simple_update")
require("tpcb_common")
