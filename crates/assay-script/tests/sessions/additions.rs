//! The table `assay`, and loading.

use assay_script::*;
use assay_seam::{Cell, Dialect, Operation, RowsPool};

use crate::driver::*;

#[test]
fn a_transaction_type_is_named_once_per_event() {
    let script = r#"
        local pay = assay.transaction("payment", function(a, b) return nil, print(a, b) end)
        local order = assay.transaction("order", function() end)
        local n = 0
        function event()
          n = n + 1
          if n == 1 then pay(1, 2) pay(3, 4) else order() pay() end
        end"#;
    check(
        script,
        Driver { transactions: 2, decision: Decision::Skip, ..Driver::default() },
        "ready
         next
         type 1
         log 1\t2
         log 3\t4
         next
         type 2
         failed restart=false statement=false: test.lua:7: this transaction is already a \"order\" and cannot become a \"payment\": one event is one transaction of one type
         next
         finished true",
    );
    let program = program(script);
    let mut state = LuaState::new(&program, &setup()).unwrap();
    let slot = state.add_session(0).unwrap();
    Driver::default().run(&mut state, slot);
    assert_eq!(state.transaction_types(), ["test", "payment", "order"]);
}

#[test]
fn a_pipeline_waits_until_it_is_flushed() {
    check(
        r#"
        function event()
          local con = sysbench.sql.driver():connect()
          local add = con:prepare("UPDATE t SET a = a + ?", "i")
          con:synchronize()
          add:pipe(1)
          con:synchronize()
          assert(add:pipe(2) == true)
          con:flush()
          con:flush()
          add:pipe(3)
          print(con:in_transaction())
        end"#,
        Driver::default(),
        "ready
         next
         connect 0
         prepare 0.0: UPDATE t SET a = a + ?
         pipe 0.0: [Int(1)]
         synchronize 0
         pipe 0.0: [Int(2)]
         flush 0
         pipe 0.0: [Int(3)]
         flush 0
         in transaction 0?
         log false
         next
         finished true",
    );
}

#[test]
fn deferred_statements_are_sent_before_what_is_no_execution() {
    check(
        r#"
        function event()
          local con = sysbench.sql.driver():connect()
          local add = con:prepare("UPDATE t SET a = a + ?", "i")
          local drop = con:prepare("DELETE FROM t WHERE a = ?")
          local a = drop:bind_create(sysbench.sql.type.INT)
          drop:bind_param(a)
          a:set(7)
          assert(add:defer(1) == true)
          drop:defer()
          add:execute(2)
          print(pcall(add.defer, add))
          drop:defer()
          con:query("COMMIT")
          con:query("SELECT 1")
        end"#,
        Driver::default(),
        "ready
         next
         connect 0
         prepare 0.0: UPDATE t SET a = a + ?
         prepare 0.1: DELETE FROM t WHERE a = ?
         defer 0.0: [Int(1)]
         defer 0.1: [Int(7)]
         execute 0.0: [Int(2)]
         log false\ttest.lua:12: the statement takes 1 values, but 0 are given
         defer 0.1: [Int(7)]
         flush 0
         query 0: COMMIT
         query 0: SELECT 1
         next
         finished true",
    );
}

#[test]
fn sessions_of_a_run_share_counters_and_meet_at_barriers() {
    check(
        r#"
        function event()
          assay.expect(500)
          print(assay.claim("chunk"), assay.claim("chunk"))
          assay.barrier()
          assay.log("loaded", 2)
        end"#,
        Driver::default(),
        "ready
         next
         expect 500
         claim chunk
         claim chunk
         log 0\t1
         barrier
         log loaded\t2
         next
         finished true",
    );
}

#[test]
fn a_loader_sends_large_batches_and_smaller_ones_beside_many_sessions() {
    let script = r#"
        function top()
          local con = sysbench.sql.driver():connect()
          local load = con:loader("sbtest1", 'id, k, c, "a,b"')
          for i = 1, 40000 do load:row(i, i * 2, ("x"):rep(100), nil) end
          load:done()
          load:done()
        end"#;
    // 4.6 MB: in pieces of 4, 2 and 1 MiB.
    let elsewhere = [(1, 2), (8, 2), (16, 3), (32, 5), (1000, 5)].map(|(sessions, batches)| (None, sessions, batches));
    for (load_bytes_max, sessions, batches) in elsewhere.into_iter().chain([(Some(1 << 20), 1, 5)]) {
        let driver = Dialect { load_bytes_max, ..Dialect::plain("pgsql") };
        let setup = Setup { entry: Entry::Function("top".into()), sessions, driver, ..setup() };
        let said = conversation(script, &setup, Driver::default());
        let loads: Vec<usize> = said
            .lines()
            .filter_map(|line| line.strip_prefix("load 0: sbtest1 (id, k, c, \"a,b\"): "))
            .map(|rest| rest.trim_end_matches(" rows").parse().unwrap())
            .collect();
        assert_eq!(loads.len(), batches, "{said}");
        assert_eq!(loads.iter().sum::<usize>(), 40_000);
    }
}

#[test]
fn loaded_values_keep_their_types() {
    let program = program(
        r#"
        function top()
          local load = sysbench.sql.driver():connect():loader("t", "a,b,c,d,e,f")
          load:row(1, 1.5, "text", nil, true, 9007199254740993LL)
          print(pcall(load.row, load, {}, 1, 1, 1, 1, 1))
          print(pcall(load.done, load))
          load = sysbench.sql.driver():connect():loader("t", "a,b,c,d,e,f")
          load:row(1, 1.5, "text", nil, true, 9007199254740993LL)
          load:done()
        end"#,
    );
    let setup = Setup { entry: Entry::Function("top".into()), ..setup() };
    let mut state = LuaState::new(&program, &setup).unwrap();
    let slot = state.add_session(0).unwrap();
    let mut pool = RowsPool::default();
    let mut logged = Vec::new();
    let mut found = None;
    loop {
        match state.resume(slot, Answer::Done, &mut pool) {
            Request::Operation(_, Operation::Load { rows, .. }) => {
                found =
                    Some((0..6).map(|column| format!("{:?}", rows.cell(0, 0, column).unwrap())).collect::<Vec<_>>());
                assert_eq!(rows.cell(0, 0, 2), Some(Cell::Text(b"text")));
            }
            Request::Log(line) => logged.push(String::from_utf8_lossy(line).into_owned()),
            Request::Finished { .. } => break,
            Request::Connect(..) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        found.unwrap(),
        ["Int(1)", "Double(1.5)", "Text([116, 101, 120, 116])", "Null", "Int(1)", "Int(9007199254740993)"]
    );
    assert_eq!(
        logged,
        [
            "false\ttest.lua:5: a table value cannot be loaded into a column",
            "false\ttest.lua:6: an earlier error has left this loader with half a row"
        ]
    );
}

#[test]
fn a_random_cell_is_another_text_in_every_row() {
    let program = program(
        r#"
        function top()
          local text, formatted = assay.random_cell(3, 5), assay.random_cell([[#####-@@@@@]])
          local load = sysbench.sql.driver():connect():loader("t", "a,b")
          for i = 1, 100 do load:row(text, formatted) end
          load:done()
        end"#,
    );
    let setup = Setup { entry: Entry::Function("top".into()), ..setup() };
    let mut state = LuaState::new(&program, &setup).unwrap();
    let slot = state.add_session(0).unwrap();
    let mut pool = RowsPool::default();
    let mut texts = Vec::new();
    loop {
        match state.resume(slot, Answer::Done, &mut pool) {
            Request::Operation(_, Operation::Load { rows, .. }) => {
                texts.extend((0..200).map(|i| match rows.cell(0, i / 2, i % 2) {
                    Some(Cell::Text(text)) => text.to_vec(),
                    other => panic!("{other:?}"),
                }));
            }
            Request::Finished { success } => break assert!(success),
            Request::Connect(..) => {}
            other => panic!("{other:?}"),
        }
    }
    let (formatted, free): (Vec<_>, Vec<_>) = texts.iter().partition(|text| text.contains(&b'-'));
    assert!(free.iter().copied().flatten().all(u8::is_ascii_alphanumeric));
    let lengths: std::collections::BTreeSet<usize> = free.iter().map(|text| text.len()).collect();
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!(formatted.len(), 100);
    for text in formatted {
        let (digits, letters) = (&text[..5], &text[6..]);
        assert!(
            digits.iter().all(u8::is_ascii_digit) && letters.iter().all(u8::is_ascii_lowercase) && text.len() == 11
        );
    }
    texts.sort();
    texts.dedup();
    assert!(texts.len() > 190, "{} of 200 texts differ", texts.len());
}

#[test]
fn what_is_seeded_alike_is_drawn_alike_whichever_session_draws() {
    let program = program(
        r#"
        function top()
          local function draw()
            local load = sysbench.sql.driver():connect():loader("t", "a,b")
            load:row(assay.random_cell(20, 30), assay.random_cell([[####]]))
            load:done()
            print(sysbench.rand.uniform(1, 1000000), sysbench.rand.uniform_double(), math.random(), assay.random_text(20, 30))
          end
          draw()
          assay.seed(7, "piece", 1)
          draw()
          assay.seed(7, "piece", 2)
          draw()
          assay.seed(7, "piece1")
          draw()
          print(pcall(assay.seed))
          print(pcall(assay.seed, 1, nil))
        end"#,
    );
    let setup = Setup { entry: Entry::Function("top".into()), ..setup() };
    let mut state = LuaState::new(&program, &setup).unwrap();
    let mut pool = RowsPool::default();
    let drawn = [0, 1].map(|number| {
        let slot = state.add_session(number).unwrap();
        let mut drawn = Vec::new();
        loop {
            match state.resume(slot, Answer::Done, &mut pool) {
                Request::Operation(_, Operation::Load { rows, .. }) => {
                    drawn.push(format!("{:?} {:?}", rows.cell(0, 0, 0), rows.cell(0, 0, 1)));
                }
                Request::Log(line) => drawn.push(String::from_utf8_lossy(line).into_owned()),
                Request::Finished { success } => break assert!(success),
                Request::Connect(..) => {}
                other => panic!("{other:?}"),
            }
        }
        drawn
    });
    let [first, second] = drawn;
    assert_eq!(first.len(), 10, "{first:?}");
    assert!(first[0] != second[0] && first[1] != second[1], "{first:?}");
    assert_eq!(first[2..], second[2..]);
    let different: std::collections::BTreeSet<_> = first[..8].iter().collect();
    assert_eq!(different.len(), 8, "{first:?}");
    assert_eq!(first[8], "false\ttest.lua:16: assay.seed needs something to seed the random numbers from");
    assert_eq!(first[9], "false\ttest.lua:17: assay.seed takes numbers and strings, not a nil");
}

#[test]
fn a_refused_load_is_a_statement_error() {
    let setup = Setup { entry: Entry::Function("top".into()), ..setup() };
    check_as(
        r#"function top()
          local load = sysbench.sql.driver():connect():loader("t", "a")
          load:row(1)
          load:done()
        end"#,
        &setup,
        Driver::default().error("load", 1062, "23000", Verdict::Fatal),
        "connect 0
         load 0: t (a): 1 rows
         died: test.lua:4: SQL error, errno = 1062, state = '23000': no luck
         test.lua:4: in function 'top'",
    );
}

#[test]
fn what_follows_rows_on_their_way_waits_for_their_answer_and_hears_of_its_error() {
    let setup = Setup { entry: Entry::Function("top".into()), ..setup() };
    check_as(
        r#"function top()
          local con = sysbench.sql.driver():connect()
          local load = con:loader("t", "a")
          load:row(1)
          load:flush()
          load:row(2)
          print(pcall(con.query, con, "SELECT 1"))
          con:query("SELECT 2")
          load:done()
          load:row(3)
          load:flush()
          con:disconnect()
        end"#,
        &setup,
        Driver { loads_ahead: true, ..Driver::default() }.error("load", 1062, "23000", Verdict::Fatal),
        "connect 0
         load 0: t (a): 1 rows
         flush 0
         log false\ttest.lua:7: SQL error, errno = 1062, state = '23000': no luck
         query 0: SELECT 2
         load 0: t (a): 1 rows
         flush 0
         load 0: t (a): 1 rows
         flush 0
         disconnect 0
         finished true",
    );
}

#[test]
fn a_script_declares_rules_and_rates_once_per_state() {
    let script = r#"
        function thread_init()
          assay.audit{ name = "remote lines", clause = "2.4.1.5", part = "remote", whole = "lines", low = 0.009 }
          assay.audit{ name = "remote lines", part = "said", whole = "again", low = 1 }
          assay.audit{ name = "slow", percentile = 90, of = "order", high = 5 }
          assay.rate{ name = "tpmC", of = "order", per = "minute", nominal = 12.86, rolled_back = true }
        end
        function event() end"#;
    check(
        script,
        Driver { transactions: 0, ..Driver::default() },
        r#"declare Rule(Rule { name: "remote lines", clause: "2.4.1.5", measure: Share { part: "remote", whole: "lines" }, low: Some(0.009), high: None })
         declare Rule(Rule { name: "slow", clause: "", measure: Percentile { of: "order", ppm: 900000 }, low: None, high: Some(5000000000.0) })
         declare Rate(NamedRate { name: "tpmC", of: Some("order"), rolled_back: true, per: Nanos(60000000000), nominal: Some(12.86) })
         ready
         next
         finished true"#,
    );
}

#[test]
fn a_rule_that_says_nothing_clear_is_refused_where_it_stands() {
    for (rule, wanted) in [
        ("{ low = 1 }", "assay.audit: `name` has to be a text"),
        ("{ name = 'x', mean = 'y' }", "assay.audit \"x\": give `low`, `high` or both"),
        ("{ name = 'x', mean = 'y', low = 2, high = 1 }", "assay.audit \"x\": `low` is above `high`"),
        ("{ name = 'x', mean = 'y', hihg = 1 }", "assay.audit \"x\": there is no field `hihg`"),
        ("{ name = 'x', part = 'y', high = 1 }", "assay.audit \"x\": `whole` has to be a text"),
        (
            "{ name = 'x', part = 'y', whole = 'z', mix = 'w', high = 1 }",
            "assay.audit \"x\": it looks at `part` and `mix`: one rule looks at one thing",
        ),
        (
            "{ name = 'x', percentile = 90, of = 'z', low = 1 }",
            "assay.audit \"x\": a percentile has a bound `high`, in seconds",
        ),
    ] {
        let script = format!("function thread_init() assay.audit{rule} end function event() end");
        let said = conversation(&script, &setup(), Driver::default());
        assert!(said.starts_with(&format!("died: test.lua:1: {wanted}")), "{said}");
    }
}

#[test]
fn what_is_counted_waits_beside_the_session_until_its_transaction_is_over() {
    let program = program(
        r#"
        function event()
          assay.count("lines", 7)
          assay.count("remote")
          assay.count("lines", 0)
          assay.count("lines")
          assay.rolled_back()
          print(pcall(assay.count, "lines", 0.5))
        end"#,
    );
    let mut state = LuaState::new(&program, &setup()).unwrap();
    let slot = state.add_session(0).unwrap();
    assert!(!state.has_marks());
    Driver::default().run(&mut state, slot);
    assert!(state.has_marks());
    assert_eq!(state.counter_names(), ["lines", "remote"]);
    let marks = state.marks(slot);
    assert_eq!((marks.rolled_back, marks.counts.as_slice()), (true, &[8, 1][..]));
    marks.clear();
    assert_eq!((marks.rolled_back, marks.counts.as_slice()), (false, &[0, 0][..]));
}
