--- Shared by the OLTP workloads: the tables, and the statements and transactions on them.
--
--
-- A workload requires this module, prepares in `prepare_statements()` what it will execute, and defines in `event()`
-- what one transaction is. Tables, options, defaults and statements are those of sysbench 1.0 and of its development
-- branch, so that results can be compared and scripts written for either run here: each function of `oltp_transactions`
-- and `oltp_tables` that is not `local` is a global that a script may replace, and it is looked up when it is called.

-- There may be thousands of sessions: they share the functions.
sysbench.cmdline.options = assay.share("oltp_transactions").options

-- Functions, not values: a script may replace the global after this file was loaded.
local PARALLEL = sysbench.cmdline.PARALLEL_COMMAND
sysbench.cmdline.commands = {
  prepare = { function() return cmd_prepare() end, PARALLEL },
  warmup = { function() return cmd_warmup() end, PARALLEL },
  prewarm = { function() return cmd_prewarm() end, PARALLEL },
  check = { function() return cmd_check() end, PARALLEL },
  cleanup = { function() return cmd_cleanup() end, PARALLEL },
}

-- Creating, filling, checking and dropping the tables is in a module that is loaded when it is needed.
assay.later("oltp_tables", {
  "get_c_value", "get_pad_value", "create_table", "cmd_prepare", "cleanup", "cmd_cleanup", "cmd_warmup", "cmd_prewarm",
  "expected_rows", "cmd_check", "compare_tables",
})
