--- TPC-B as run by pgbench: adds an amount to an account, a teller and a branch, and records it in the history.
local tpcb = require("tpcb_common")

tpcb.moves_tellers = true

local s

function thread_init()
  s = tpcb.prepare_statements { "start", "account", "balance", "teller", "branch", "history", "commit" }
end

function event()
  local aid, bid, tid, delta = tpcb.numbers()
  s.start:perform()
  s.account:perform(delta, aid)
  s.balance:perform(aid)
  s.teller:perform(delta, tid)
  s.branch:perform(delta, bid)
  s.history:perform(tid, bid, aid, delta)
  s.commit:perform()
end
