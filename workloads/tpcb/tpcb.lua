--- TPC-B as run by pgbench: adds an amount to an account, a teller and a branch, and records it in the history.
require("pgbench_tpcb_like")
require("tpcb_common").moves_tellers = true
