--- Reads by primary key and by range in one transaction: 10 point selects, a plain, a SUM, an ORDER BY and a DISTINCT
--- range of 100 rows.
require("oltp_common")
assay.share("oltp_transactions").uses(
  "range_size", "point_selects", "range_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges",
  "skip_trx"
)

function prepare_statements()
  if not sysbench.opt.skip_trx then
    prepare_begin_read_only()
    prepare_commit()
  end
  prepare_point_selects()
  if sysbench.opt.range_selects then
    prepare_simple_ranges()
    prepare_sum_ranges()
    prepare_order_ranges()
    prepare_distinct_ranges()
  end
end

function event()
  if not sysbench.opt.skip_trx then begin() end
  execute_point_selects()
  if sysbench.opt.range_selects then
    execute_simple_ranges()
    execute_sum_ranges()
    execute_order_ranges()
    execute_distinct_ranges()
  end
  if not sysbench.opt.skip_trx then commit() end
  check_reconnect()
end
