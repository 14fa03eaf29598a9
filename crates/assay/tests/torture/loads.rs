//! The loads of the matrix, and the workload that they run.

/// How work becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Load {
    Closed,
    ClosedCount,
    Open,
    Poisson,
    OpenCount,
    Ladder,
    TwoServers,
    Terminals,
    WarmUp,
}

/// Options of a load, and what a test must know about it.
struct Form {
    name: &'static str,
    options: &'static str,
    /// The run ends on its own, so its sessions are held until the fault is over.
    ends: bool,
    /// Sessions of the first stage.
    sessions: u32,
}

impl Load {
    pub(crate) const ALL: [Load; 9] = [
        Load::Closed,
        Load::ClosedCount,
        Load::Open,
        Load::Poisson,
        Load::OpenCount,
        Load::Ladder,
        Load::TwoServers,
        Load::Terminals,
        Load::WarmUp,
    ];

    fn form(self) -> Form {
        let (name, options, ends, sessions) = match self {
            Load::Closed => ("closed", "--sessions 4 --time 0", false, 4),
            Load::ClosedCount => ("closed, N", "--sessions 4 --transactions 240", true, 4),
            Load::Open => ("open", "--sessions 4 --rate 200 --time 0", false, 4),
            Load::Poisson => {
                ("Poisson", "--sessions 4 --rate 200 --arrival poisson --backlog-max 50 --time 0", false, 4)
            }
            Load::OpenCount => ("open, N", "--sessions 4 --rate 200 --transactions 240", true, 4),
            Load::Ladder => ("ladder", "--sessions 1,4,8 --transactions 120 --telemetry off", true, 1),
            Load::TwoServers => ("two servers", "--sessions 4 --time 0", false, 4),
            Load::Terminals => ("terminals", "--terminals 8 --connections 4 --time 0", false, 4),
            Load::WarmUp => ("warm-up", "--sessions 4 --warmup 300ms --time 0", false, 4),
        };
        Form { name, options, ends, sessions }
    }

    pub(crate) fn name(self) -> &'static str {
        self.form().name
    }

    pub(crate) fn ends(self) -> bool {
        self.form().ends
    }

    /// Sessions of the first stage.
    pub(crate) fn sessions(self) -> u32 {
        self.form().sessions
    }

    pub(crate) fn targets(self) -> usize {
        if self == Load::TwoServers { 2 } else { 1 }
    }

    /// How many of the first stage's sessions use the first target, the one that suffers.
    pub(crate) fn sessions_on_first(self) -> usize {
        self.sessions() as usize / self.targets()
    }

    /// Options of a run.
    pub(crate) fn options(self) -> String {
        let form = self.form();
        format!("{} --hold {}", form.options, if form.ends { HELD_AFTER } else { 0 })
    }
}

/// Transactions of each session of a load that ends on its own, before it waits for the end of the fault.
const HELD_AFTER: u32 = 25;

/// Every attempt of a transaction inserts a row with a key of its own, every other one within BEGIN and COMMIT.
pub(crate) const WORKLOAD: &str = r#"--- Inserts rows with keys of their own.

sysbench.cmdline.options = {
  hold = {"Transactions of a session until it waits for the file `go`", 0},
  body = {"Bytes of a row", 20},
}

local journal = assay.journal{"key"}
local con, insert, idle, attempts = nil, nil, nil, 0

function prepare()
  local con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE kept (id BIGINT NOT NULL PRIMARY KEY, body TEXT)")
  con:query("CREATE TABLE idle (body TEXT)")
end

function thread_init()
  con = sysbench.sql.driver():connect()
  insert = con:prepare("INSERT INTO kept VALUES (?, ?)", "it")
  idle = con:prepare("INSERT INTO idle VALUES (?)", "t")
end

local function body() return assay.random_text(sysbench.opt.body, sysbench.opt.body) end

-- Statements go on in the meantime, so that a fault finds something to damage.
local function wait_to_go()
  repeat
    local file = io.open("go")
    if file then return file:close() end
    idle:perform(body())
    assay.sleep(0.01)
  until false
end

function event()
  assay.think(0.02)
  assay.sleep(0.005)
  attempts = attempts + 1
  if sysbench.opt.hold > 0 and attempts > sysbench.opt.hold then wait_to_go() end
  local key = (sysbench.tid + 1) * 1000000 + attempts
  if attempts % 2 == 0 then
    con:query("BEGIN")
    insert:perform(key, body())
    con:query("COMMIT")
  else
    insert:perform(key, body())
  end
  journal{key}
end
"#;
