--- What a session costs: connecting, the first query, and closing until the server is done, each a transaction.
local driver, con, step

local connect = assay.transaction("connect", function() con = driver:connect() end)
local first_query = assay.transaction("first_query", function() con:query("SELECT 1") end)
local close = assay.transaction("close", function() con:close() end)

local course = { connect, first_query, close }

function thread_init()
  driver, step = sysbench.sql.driver(), 1
  -- A server that is not there ends the run before it begins.
  driver:connect():close()
end

--- Steps that fail are begun again: the next one needs what they do.
function event()
  course[step]()
  step = step % #course + 1
end

function thread_done()
  if con then con:disconnect() end
end
