--- An insert of a new row.

require("tests/include/oltp_legacy/common")

function event(thread_id)
  local name, k, c, pad = random_table(), random_id(), random_c(), random_pad()
  if oltp_auto_inc then
    db_query(("INSERT INTO %s (k, c, pad) VALUES (%d, '%s', '%s')"):format(name, k, c, pad))
  else
    -- A number of 32 bits without sign, moved to where an INTEGER has room.
    db_query(("INSERT INTO %s (id, k, c, pad) VALUES (%d, %d, '%s', '%s')"):format(name, sb_rand_uniq() - 2147483648, k,
      c, pad))
  end
end
