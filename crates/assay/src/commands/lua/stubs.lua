---@meta
--- Types of assay's Lua API, for lua-language-server. Written by `assay lua stubs`; do not edit.

---@alias Cell string|number|boolean|integer|nil

--- The user's options and those of the workload, by name.
---@class sysbench.opt
---@field threads integer number of sessions
---@field databases integer number of --db
---@field time number
---@field events number
---@field rand_seed number
---@field terminals integer
---@field journal boolean
---@field [string] any

---@class sysbench.cmdline
---@field options table<string, table> options of the workload: name = {"what it is", default}
---@field commands table<string, table> further commands: name = {function, sysbench.cmdline.PARALLEL_COMMAND}
---@field own_rows boolean
---@field sessions integer
---@field argv string[]
---@field command string
---@field script_path string
---@field PARALLEL_COMMAND boolean
---@field ARG_BOOL integer
---@field ARG_DOUBLE integer
---@field ARG_FILE integer
---@field ARG_INT integer
---@field ARG_LIST integer
---@field ARG_MAX integer
---@field ARG_NULL integer
---@field ARG_SIZE integer
---@field ARG_STRING integer
local cmdline = {}

---@param name string
---@return boolean
function cmdline.command_defined(name) end

---@param name string
---@return boolean
function cmdline.command_parallel(name) end

---@param name string
function cmdline.call_command(name) end

function cmdline.print_test_options() end

function cmdline.read_cmdline_options() end

---@class sysbench.hooks
---@field before_restart_event? fun(failure: table)
---@field sql_error_ignorable? fun(failure: table): boolean
---@field report_intermediate? fun(stat: table)
---@field report_cumulative? fun(stat: table)

---@class sysbench.rand
local rand = {}

--- A number of the distribution of `--rand-type`, from `low` to `high`.
---@param low integer
---@param high integer
---@return integer
function rand.default(low, high) end

---@param low integer
---@param high integer
---@return integer
function rand.uniform(low, high) end

---@param low integer
---@param high integer
---@return integer
function rand.gaussian(low, high) end

---@param low integer
---@param high integer
---@return integer
function rand.special(low, high) end

---@param low integer
---@param high integer
---@return integer
function rand.pareto(low, high) end

---@param low integer
---@param high integer
---@return integer
function rand.zipfian(low, high) end

--- A number that does not occur again in the run.
---@return integer
function rand.unique() end

---@return integer
function rand.uniform_uint64() end

--- From 0 to 1.
---@return number
function rand.uniform_double() end

--- Replaces each `#` by a digit and each `@` by a letter.
---@param format string
---@return string
function rand.string(format) end

---@param low integer
---@param high integer
---@return string
function rand.varstring(low, high) end

---@class sysbench.histogram
local histogram = {}

---@param size integer
---@param low number
---@param high number
---@return table
function histogram.new(size, low, high) end

--- A parameter of a prepared statement.
---@class Parameter
local Parameter = {}

---@param value Cell
function Parameter:set(value) end

---@param format string
function Parameter:set_rand_str(format) end

--- Rows of an answer; valid until the next statement on the connection.
---@class Result
---@field nrows integer
---@field nfields integer
local Result = {}

--- The next row, as a list of texts; nil for NULL, and after the last row.
---@return (string|nil)[]
function Result:fetch_row() end

--- The value in a row and a column, both from 1; nil for NULL, and outside of the result.
---@param row integer
---@param column integer
---@return string|nil
function Result:value(row, column) end

function Result:free() end

--- A prepared statement.
---@class Statement
local Statement = {}

---@param type integer one of sysbench.sql.type
---@param length? integer
---@return Parameter
function Statement:bind_create(type, length) end

---@param ... Parameter
function Statement:bind_param(...) end

--- Executes the statement, with these values or those of its bound parameters.
---@param ... Cell
---@return Result
function Statement:execute(...) end

---@param ... Cell
function Statement:perform(...) end

---@param ... Cell
---@return string ...
function Statement:row(...) end

---@param ... Cell
---@return boolean is_deferred
function Statement:defer(...) end

---@param ... Cell
---@return boolean is_piped
function Statement:pipe(...) end

---@param columns? string what becomes of up to four columns: t, n or -
---@return LeanStatement
function Statement:lean(columns) end

function Statement:close() end

--- A prepared statement in a form that costs less to execute; up to nine values, those left out are NULL.
---@class LeanStatement
local LeanStatement = {}

--- Executes the statement, and returns up to four columns of its first row.
---@param ... Cell
---@return Cell ...
function LeanStatement:row(...) end

---@param ... Cell
---@return Result
function LeanStatement:execute(...) end

---@param ... Cell
function LeanStatement:perform(...) end

---@param ... Cell
---@return boolean is_deferred
function LeanStatement:defer(...) end

--- Appends many rows.
---@class Loader
local Loader = {}

---@param ... Cell
function Loader:row(...) end

function Loader:flush() end

function Loader:done() end

---@class Connection
---@field driver Driver
---@field sql_errno integer
local Connection = {}

--- Executes a text.
---@param text string
---@return Result
function Connection:query(text) end

--- Executes a text, and returns the columns of its first row.
---@param text string
---@return string ...
function Connection:query_row(text) end

---@param text string
---@param types? string
---@return Statement
function Connection:prepare(text, types) end

---@param table string
---@param columns string
---@param frozen? boolean
---@return Loader
function Connection:loader(table, columns, frozen) end

function Connection:close() end

function Connection:disconnect() end

function Connection:reconnect() end

function Connection:flush() end

function Connection:synchronize() end

---@param seconds number
---@return string? channel
---@return string? text
function Connection:notification(seconds) end

---@return boolean
function Connection:in_transaction() end

---@param text string
function Connection:bulk_insert_init(text) end

---@param text string
function Connection:bulk_insert_next(text) end

function Connection:bulk_insert_done() end

---@class Driver
local Driver = {}

--- `pgsql`, `mysql`, `sqlite`, …
---@return string
function Driver:name() end

---@param n? integer
---@return Connection
function Driver:connect(n) end

---@class sysbench.sql
---@field type table<string, integer>
---@field error table<string, integer>
local sql = {}

---@return Driver
function sql.driver() end

---@class sysbench
---@field tid integer number of the session, from 0
---@field opt sysbench.opt
---@field cmdline sysbench.cmdline
---@field hooks sysbench.hooks
---@field rand sysbench.rand
---@field sql sysbench.sql
---@field histogram sysbench.histogram
---@field error table<string, integer>
---@field version string
---@field version_string string
sysbench = {}

---@class Rule
---@field name string
---@field clause? string
---@field part? string
---@field whole? string
---@field mean? string
---@field mix? string
---@field rolled_back? string
---@field percentile? number
---@field of? string
---@field total? string
---@field most? number
---@field part_total? string
---@field whole_total? string
---@field rate? string
---@field low? number
---@field high? number

---@class Rate
---@field name string
---@field of? string
---@field per? "second"|"minute"|"hour"
---@field rolled_back? boolean
---@field nominal? number

---@class History
---@field append fun(key: integer): integer
---@field list fun(key: integer, text: string)
---@field write fun(key: integer): integer
---@field replaced fun(number: integer, value: integer)
---@field read fun(key: integer, number: integer, value: integer)
---@field total fun(found: number, expected: number)

---@class assay
assay = {}

---@generic F: function
---@param name string
---@param fn F
---@return F
function assay.transaction(name, fn) end

---@param ... any
function assay.log(...) end

---@param text string
---@param ... any
function assay.tell(text, ...) end

---@param seconds number
function assay.sleep(seconds) end

---@param low integer
---@param high integer
---@return string
function assay.random_text(low, high) end

---@param low integer|string
---@param high? integer
---@return any
function assay.random_cell(low, high) end

---@generic T
---@param name string
---@param make fun(): T
---@return T
function assay.constant(name, make) end

---@param module string
---@return any
function assay.share(module) end

---@param module string
---@param names string[]
function assay.later(module, names) end

---@param ... number|string
function assay.seed(...) end

---@param name string
---@return integer
function assay.claim(name) end

function assay.barrier() end

---@param rows integer
function assay.expect(rows) end

---@param name string
---@param n? integer
function assay.count(name, n) end

---@return integer statements
---@return integer outside
---@return integer transactions
function assay.executed() end

---@param name string
---@param number number
function assay.total(name, number) end

---@param query {name: string, question?: string, text: string}
function assay.query(query) end

---@param name string
function assay.loaded(name) end

---@param factor number
function assay.scale(factor) end

function assay.rolled_back() end

---@param rule Rule
function assay.audit(rule) end

---@param rate Rate
function assay.rate(rate) end

---@param columns string[]
---@return fun(values: number[])
function assay.journal(columns) end

---@param options? {level?: string, megabytes?: integer}
---@return History
function assay.history(options) end

---@param option string
---@param value number|string
function assay.found(option, value) end

---@return table
function assay.terminal() end

---@param seconds? number
---@return number
function assay.think(seconds) end

---@param ... integer
function assay.acknowledge(...) end

---@return fun(): integer ...
function assay.acknowledged() end

--- The product that the scripts of before sysbench 1.0 are written for: `mysql`, or another one.
---@type string
db_driver = ""

--- The path of the script, for scripts of before sysbench 1.0.
---@type string
test = ""

--- Number of the session, from 0, for scripts of before sysbench 1.0.
---@type integer
thread_id = 0

DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED = 0, 1, 2

--- Functions of before sysbench 1.0 use one connection per session, which the first of them opens.
function db_connect() end

function db_disconnect() end

---@param text string
function db_query(text) end

---@param text string
function db_bulk_insert_init(text) end

---@param text string
function db_bulk_insert_next(text) end

function db_bulk_insert_done() end

---@param text string
---@return Statement
function db_prepare(text) end

--- Binds the elements of a table, which are read again at each `db_execute`.
---@param statement Statement
---@param values Cell[]
function db_bind_param(statement, values) end

---@param statement Statement
---@param values? table
function db_bind_result(statement, values) end

---@param statement Statement
---@return Result
function db_execute(statement) end

---@param result Result
function db_store_results(result) end

---@param result Result
function db_free_results(result) end

---@param statement Statement
function db_close(statement) end

--- A number of the distribution of `--rand-type`, from `low` to `high`.
---@param low integer
---@param high integer
---@return integer
function sb_rand(low, high) end

---@param low integer
---@param high integer
---@return integer
function sb_rand_uniform(low, high) end

---@param low integer
---@param high integer
---@return integer
function sb_rand_gaussian(low, high) end

---@param low integer
---@param high integer
---@return integer
function sb_rand_special(low, high) end

--- Replaces each `#` by a digit and each `@` by a letter.
---@param format string
---@return string
function sb_rand_str(format) end

--- A number that does not occur again in the run; with bounds, one within them.
---@param low? integer
---@param high? integer
---@return integer
function sb_rand_uniq(low, high) end

--- A number of 32 bits.
---@return integer
function sb_rnd() end
