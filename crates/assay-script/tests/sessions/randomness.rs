//! `sysbench.rand` and `math.random`: repeatable, in range.

use std::collections::HashSet;

use assay_script::*;

use crate::driver::*;

const DRAWS: &str = r#"
    function event()
      local r = sysbench.rand
      print(r.default(1, 1000), r.uniform(1, 1000), r.gaussian(1, 1000), r.special(1, 1000), r.pareto(1, 1000),
        r.zipfian(1, 1000), r.unique(), tostring(r.uniform_uint64()), r.uniform_double(), r.string('###-@@'),
        r.varstring(3, 9), math.random(6), math.random())
    end"#;

/// What these sessions print in three events each when they take turns in one state.
fn draws(seed: u64, numbers: &[u32]) -> Vec<Vec<String>> {
    let program = program(DRAWS);
    let mut state = LuaState::new(&program, &Setup { seed, ..setup() }).unwrap();
    let slots: Vec<Slot> = numbers.iter().map(|number| state.add_session(*number).unwrap()).collect();
    let mut driver = Driver::default();
    let mut answers: Vec<(Option<Answer>, u32)> = slots.iter().map(|_| (Some(Answer::Done), 3)).collect();
    let mut said = vec![Vec::new(); slots.len()];
    while answers.iter().any(|(answer, _)| answer.is_some()) {
        for (i, (answer, left)) in answers.iter_mut().enumerate() {
            if let Some(given) = answer.take() {
                let (line, next) = driver.answer(&mut state, slots[i], given, left);
                said[i].extend(line.strip_prefix("log ").map(str::to_owned));
                *answer = next;
            }
        }
    }
    said
}

#[test]
fn a_session_draws_the_same_whatever_runs_beside_it() {
    let alone = draws(7, &[3]);
    let among = draws(7, &[1, 2, 3, 4]);
    assert_eq!(alone[0], among[2]);
    assert_eq!(alone[0].len(), 3);
    assert_ne!(among[0], among[1]);
    assert_ne!(alone, draws(8, &[3]));
}

#[test]
fn unique_numbers_never_repeat_in_the_run() {
    let said = draws(1, &(0..300).collect::<Vec<_>>());
    let unique: HashSet<&str> = said.iter().flatten().map(|line| line.split('\t').nth(6).unwrap()).collect();
    assert_eq!(unique.len(), 900);
}

#[test]
fn bounds_wrap_and_fractions_truncate_as_unsigned_numbers_do() {
    let said = conversation(
        "function event() print(sysbench.rand.uniform(-3, -3), sysbench.rand.uniform(2.9, 2.1)) end",
        &setup(),
        Driver::default(),
    );
    assert!(said.contains("log 4294967293\t2"), "{said}");
}

#[test]
fn the_distribution_of_default_is_the_one_set_up() {
    let hot = |kind: &str| {
        let setup = Setup {
            distribution: Distribution { kind: DistributionKind::from_name(kind).unwrap(), ..Distribution::default() },
            ..setup()
        };
        let said = conversation(
            "function event() local n = 0 for i = 1, 10000 do if sysbench.rand.default(1, 1000) <= 200 then n = n + 1 end end print(n) end",
            &setup,
            Driver::default(),
        );
        said.lines().nth(2).unwrap()[4..].parse::<i32>().unwrap()
    };
    assert!((1_850..2_150).contains(&hot("uniform")));
    assert!((7_800..8_200).contains(&hot("pareto")));
    assert!(hot("gaussian") < 10);
}

#[test]
fn tables_are_walked_in_the_same_order_in_every_state() {
    let script = r#"function event()
        local t, order = {}, {}
        for word in ("alpha beta gamma delta epsilon zeta eta theta iota kappa"):gmatch("%a+") do t[word] = 1 end
        for word in pairs(t) do order[#order + 1] = word end
        print(table.concat(order, " "))
    end"#;
    let first = conversation(script, &setup(), Driver::default());
    for _ in 0..5 {
        assert_eq!(conversation(script, &setup(), Driver::default()), first);
    }
}
