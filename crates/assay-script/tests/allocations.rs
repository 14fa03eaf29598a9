//! The measured path of scripts allocates nothing on our side once it is warm.
//!
//! A file of its own, since the counting allocator serves the whole test program. Lua's memory is Lua's own matter.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use assay_script::*;
use assay_wire::{Operation, Reply, RowsPool};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
        driver: "pgsql",
        seed: 1,
        sessions: 20,
        distribution: Distribution::default(),
        argv: Vec::new(),
        host: None,
    };
    let mut state = State::new(&program, &setup).unwrap();
    let mut pool = RowsPool::default();
    let slots: Vec<Slot> = (0..20).map(|number| state.add_session(number).unwrap()).collect();
    let mut waiting: Vec<Option<Answer>> = slots.iter().map(|_| Some(Answer::Done)).collect();
    let mut statements = 0;
    let mut warm = 0;
    while statements < 50_000 {
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
        if statements < 10_000 {
            warm = ALLOCATIONS.with(Cell::get);
        }
    }
    assert_eq!(ALLOCATIONS.with(Cell::get) - warm, 0);
}
