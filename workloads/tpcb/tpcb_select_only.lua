--- pgbench's "select only" script: reads the balance of an account.
require("pgbench_select_only")
require("tpcb_common")
