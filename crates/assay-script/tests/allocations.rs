//! On the measured path of scripts our Rust code does not allocate once it is warm.
//!
//! In a file of its own, because the counting allocator covers the whole test program. Lua's own memory is not counted.

use std::sync::Arc;

use allocation_counter::measure;
use assay_script::*;
use assay_seam::{Dialect, Operation, Reply, RowsPool};

#[test]
fn statements_with_parameters_and_rows_allocate_nothing_once_warm() {
    let script = r#"
        local work = assay.transaction("work", function()
          for i = 1, 5 do
            id:set(sysbench.rand.default(1, 1000))
            text:set(sysbench.rand.string("@@@"))
            stmt:execute()
          end
          local row = con:query("SELECT 1"):fetch_row()
          assert(row[1] == "a value")
        end)
        function thread_init()
          con = sysbench.sql.driver():connect()
          stmt = con:prepare("SELECT ? + ?")
          id, text = stmt:bind_create(sysbench.sql.type.INT), stmt:bind_create(sysbench.sql.type.CHAR, 10)
          stmt:bind_param(id, text)
        end
        function event() work() end"#;
    let program = Program::from_text(&Arc::new(Library::default()), "test.lua", script, &TopLevel::default()).unwrap();
    let setup = Setup {
        command: "run".into(),
        entry: Entry::Thread,
        options: Vec::new(),
        driver: Dialect::plain("pgsql"),
        seed: 1,
        sessions: 20,
        distribution: Distribution::default(),
        argv: Vec::new(),
        front: None,
    };
    let mut state = LuaState::new(&program, &setup).unwrap();
    let mut pool = RowsPool::default();
    let slots: Vec<Slot> = (0..20).map(|number| state.add_session(number).unwrap()).collect();
    let mut waiting: Vec<Option<Answer>> = slots.iter().map(|_| Some(Answer::Done)).collect();
    let mut statements = 0;
    let mut run_until = |end: u32| {
        while statements < end {
            for (slot, waiting) in slots.iter().zip(&mut waiting) {
                let answer = match waiting.take().unwrap() {
                    // The rows arrive just before the session is resumed, as they do from a socket.
                    Answer::Reply(mut reply, verdict) => {
                        let mut rows = pool.take();
                        rows.begin_set(1);
                        rows.push_text(b"a value").unwrap();
                        reply.rows = Some(rows);
                        Answer::Reply(reply, verdict)
                    }
                    other => other,
                };
                *waiting = Some(match state.resume(*slot, answer, &mut pool) {
                    Request::Next => Answer::Proceed(true),
                    Request::Operation(_, operation) => {
                        if let Operation::Execute { parameters, .. } = operation {
                            assert_eq!(parameters.len(), 2);
                        }
                        statements += 1;
                        Answer::Reply(Reply::default(), Verdict::Fatal)
                    }
                    Request::Died(failure) => panic!("{failure:?}"),
                    _ => Answer::Done,
                });
            }
        }
    };
    run_until(10_000);
    assert_eq!(measure(|| run_until(50_000)).count_total, 0);
}
