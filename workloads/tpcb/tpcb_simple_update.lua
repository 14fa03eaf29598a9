--- pgbench's "simple update" script: adds an amount to an account and records it in the history.
local tpcb = require("tpcb_common")

local s

function thread_init() s = tpcb.prepare_statements { "start", "account", "balance", "history", "commit" } end

function event()
  local aid, bid, tid, delta = tpcb.numbers()
  s.start:perform()
  s.account:perform(delta, aid)
  s.balance:perform(aid)
  s.history:perform(tid, bid, aid, delta)
  s.commit:perform()
end
