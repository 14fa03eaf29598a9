--- pgbench's "select only" script: reads the balance of an account.
local tpcb = require("tpcb_common")

local s

function thread_init() s = tpcb.prepare_statements { "balance" } end

function event() s.balance:perform(tpcb.account()) end
