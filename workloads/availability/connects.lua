--- What a session costs: connecting, the first query, and closing until the server is done, each a transaction.
local driver, con, step

local connect = assay.transaction("connect", function() con = driver:connect() end)
local first_query = assay.transaction("first_query", function() con:query("SELECT 1") end)
local close = assay.transaction("close", function() con:close() end)

local course = { connect, first_query, close }

function thread_init()
  driver, step = sysbench.sql.driver(), 1
  -- If the server is not available, the run ends before it starts.
  driver:connect():close()
end

--- Failed steps are repeated: the next one needs their result.
function event()
  course[step]()
  step = step % #course + 1
end

function thread_done()
  if con then con:disconnect() end
end
