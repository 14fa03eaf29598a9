//! Transactions that always do the same but for their random numbers, and so run without Lua.

use assay_options::OptionValue;
use assay_script::*;

use crate::driver::*;

/// A script whose `event` has this body, and counts its calls.
fn script(body: &str, is_straight: bool) -> String {
    let run = if is_straight { "assay.run_straight(list)" } else { "" };
    format!(
        "\
local rand, calls = sysbench.rand, 0
function thread_init()
  con = sysbench.sql.driver():connect()
  list = {{ con:prepare('SELECT ?', 'w'), con:prepare('UPDATE ? ?', 'tw'), commit = con:prepare('COMMIT', '') }}
  {run}
end
function event()
  calls = calls + 1
  {body}
end
function thread_done() print(calls .. ' calls') end"
    )
}

/// A set-up in which nothing is prepared, or everything.
fn set_up(prepares: bool) -> Setup {
    let mut setup = setup();
    if !prepares {
        setup.options.push(("db_ps_mode".into(), OptionValue::Text("disable".into())));
    }
    setup
}

/// What 20 transactions executed, how often `event` was called for that, and how they failed, if they did.
fn executed(body: &str, is_straight: bool, setup: &Setup, driver: Driver) -> (Vec<String>, String, Vec<String>) {
    let mut driver = Driver { transactions: 20, ..driver };
    let mut state = LuaState::new(&program(&script(body, is_straight)), setup).unwrap();
    let slot = state.add_session(0).unwrap();
    driver.run(&mut state, slot);
    let lines = |start: &str| {
        let of_start = driver.asked.iter().filter(|line| start.split(' ').any(|start| line.starts_with(start)));
        of_start.cloned().collect::<Vec<_>>()
    };
    assert_eq!(driver.asked.last().unwrap(), "finished true", "{:?}", driver.asked);
    (lines("execute query"), lines("log").concat(), lines("failed"))
}

/// How often 20 transactions that may run without Lua called `event`: with prepared statements, and with texts. They
/// executed the same as in Lua.
#[track_caller]
fn calls(body: &str) -> [u32; 2] {
    [set_up(true), set_up(false)].map(|setup| {
        let run = |is_straight| executed(body, is_straight, &setup, Driver::default());
        let (lua, plain) = (run(false), run(true));
        assert_eq!((plain.0, &lua.1[..]), (lua.0, "log 20 calls"), "{body}");
        plain.1.split(' ').nth(1).unwrap().parse().unwrap()
    })
}

#[test]
fn what_is_straight_runs_without_lua_and_executes_the_same() {
    for body in [
        "list[1]:perform(rand.default(1, 100))",
        "local id = rand.uniform(5, 50) list[1]:perform(id + 100 - 1) list[1]:perform(2 * id)",
        "list[2]:perform(rand.string('##-@@'), rand.default(1, 100)) list.commit:perform()",
        "for _ = 1, 3 do local text = rand.string('###') list[2]:perform(text, rand.uniform(1, 4)) end",
        "list[1]:perform(7)",
    ] {
        // The trace, and the first transaction.
        assert_eq!(calls(body), [2, 2], "{body}");
    }
}

#[test]
fn what_is_not_straight_runs_in_lua() {
    for body in [
        "con:query('SELECT 1')",
        "if rand.uniform(1, 2) > 1 then list[1]:perform(1) end",
        "list[1]:perform(rand.pareto(1, 100))",
        "list[1]:perform(math.floor(rand.uniform(1, 100) / 2))",
        "list[1]:perform(rand.uniform(1, 100) / 2)",
        "list[1]:perform(('%d'):format(rand.uniform(1, 100)))",
        "list[1]:execute(rand.uniform(1, 100))",
        "list[1]:perform(1.5)",
        "list[1]:perform(nil)",
        // A text is drawn for the next statement.
        "local text = rand.string('#') list.commit:perform() list[2]:perform(text, 1)",
        "for i = 1, 10001 do list[1]:perform(rand.uniform(1, 100)) end",
    ] {
        assert!(calls(body).iter().all(|calls| (20..=21).contains(calls)), "{body}");
    }
}

#[test]
fn a_statement_that_fails_does_so_in_its_place_and_with_the_same_numbers() {
    let body = "\
list[1]:perform(rand.uniform(1, 100))
  list[2]:perform(rand.string('###'), rand.uniform(1, 100))
  list.commit:perform()";
    for (verdict, setup) in
        [(Verdict::Restart, set_up(true)), (Verdict::Fatal, set_up(true)), (Verdict::Fatal, set_up(false))]
    {
        let key = if setup.options.len() == set_up(true).options.len() { "execute 1" } else { "COMMIT" };
        let failing = || {
            let fine = |driver: Driver, _| driver.reply(key, Default::default(), Verdict::Fatal);
            let driver = (0..5).fold(Driver::default(), fine).error(key, 1213, "40001", verdict);
            (0..5).fold(driver, fine).error(key, 1205, "HY000", verdict)
        };
        let run = |is_straight| executed(body, is_straight, &setup, failing());
        let (lua, plain) = (run(false), run(true));
        assert_eq!(plain.0, lua.0, "{verdict:?}");
        assert_eq!(plain.2, lua.2);
        assert_eq!(plain.2.len(), 2);
        assert!(
            verdict == Verdict::Restart
                || plain.2[0].contains(if key == "COMMIT" { "test.lua:11: " } else { "test.lua:10: " }),
            "{:?}",
            plain.2
        );
        // The trace, the first transaction, and three for each failure: what failed, its retry, and the next.
        assert_eq!(plain.1, "log 8 calls", "{verdict:?}");
    }
}

#[test]
fn an_event_that_asks_for_the_end_is_not_straight() {
    let text = script("list[1]:perform(1) return true", true);
    let mut driver = Driver { transactions: 20, ..Driver::default() };
    let mut state = LuaState::new(&program(&text), &setup()).unwrap();
    let slot = state.add_session(0).unwrap();
    driver.run(&mut state, slot);
    assert_eq!(driver.asked.iter().filter(|line| line.starts_with("execute")).count(), 1, "{:?}", driver.asked);
    assert!(driver.asked.contains(&"stop".to_owned()));
}
