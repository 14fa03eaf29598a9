//! `sysbench.rand`: arguments, results, and distributions.

use crate::bench::Bench;

#[track_caller]
fn same(script: &str) {
    let text = format!(
        "function prepare()\nlocal r = sysbench.rand\nlocal function try(...) print(pcall(...)) end\n{script}\nend\n"
    );
    Bench::new(&[("it.lua", &text)]).same("it.lua prepare");
}

#[test]
fn bounds_are_numbers_that_truncate_and_wrap() {
    same(
        r#####"
        print(r.uniform(5, 5), r.uniform(3.7, 3.2), r.uniform(-3, -3), r.uniform(2^32 + 5, 2^32 + 5), r.uniform(true, 1))
        print(r.default(7, 7), r.gaussian(7, 7), r.pareto(7, 7), r.special(7, 7))
        for _, name in ipairs{"default", "uniform", "gaussian", "pareto", "special"} do
          try(r[name], "1", 5) try(r[name], 1) try(r[name]) try(r[name], {}, 1)
          local inside = 0
          for _ = 1, 1000 do local x = r[name](10, 20) if x >= 10 and x <= 20 and x % 1 == 0 then inside = inside + 1 end end
          print(name, inside)
        end
        try(function() local x = r.uniform("x", 1) return x end)
        try(function() print(sb_rand(1, "y")) end)
        try(r.nosuch)"#####,
    );
}

#[test]
fn texts_follow_their_format() {
    same(
        r#####"
        print(#r.string("###-@@@"), r.string("abc"), r.string(""), r.string("####"):match("^%d+$") ~= nil,
          r.string("@@@@"):match("^%l+$") ~= nil, r.string("#@-x"):match("^%d%l%-x$") ~= nil, #r.string(("#"):rep(5000)))
        try(r.string) try(r.string, 5) try(r.string, true)"#####,
    );
}

#[test]
fn other_generators_return_what_sysbenchs_do() {
    same(
        r#####"
        local x = r.uniform_uint64()
        print(type(x), tostring(x):match("^%d+ULL$") ~= nil, ffi.istype("uint64_t", x))
        local d = r.uniform_double()
        print(type(d), d >= 0 and d < 1)
        local u = r.unique()
        print(type(u), u % 1 == 0 and u >= 0 and u < 2^32, type(r.unique(0, 5)))
        print(sb_rand(1, 1), sb_rand_uniform(2, 2), sb_rand_gaussian(3, 3), sb_rand_special(4, 4), #sb_rand_str("##"),
          type(sb_rand_uniq()), type(sb_rnd()))
        local inside = true
        for _ = 1, 20 do local x = sb_rand_uniq(1, 100000000) inside = inside and x >= 1 and x <= 100000000 end
        print(inside)"#####,
    );
}

#[test]
fn unique_numbers_never_repeat_within_a_process() {
    // The same in every session and worker, and in `init()`.
    let script = r#####"
        local function draw(count) for _ = 1, count do io.write(sysbench.rand.unique() .. "\n") end end
        function init() draw(500) end
        function thread_init() draw(50) end
        function event() draw(100) end
        function thread_done() draw(50) end
        function done() draw(500) end"#####;
    let bench = Bench::new(&[("it.lua", script)]);
    for did in [bench.oracle("it.lua run --threads=7 --events=50"), bench.ours("it.lua run --threads=7 --events=50")] {
        let mut drawn: Vec<u32> = did.stdout.lines().filter_map(|line| line.parse().ok()).collect();
        assert_eq!(drawn.len(), 500 + 7 * 100 + 5000 + 500, "{}", did.shown());
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 6700);
    }
}

/// Draws of `name(1, buckets × width)`, counted in buckets of equal width.
fn drawn(ours: bool, name: &str, options: &str) -> Vec<f64> {
    let script = format!(
        r#####"
        function prepare()
          local count, draw = {{}}, sysbench.rand.{name}
          for i = 0, 19 do count[i] = 0 end
          for _ = 1, 100000 do
            local i = math.floor((draw(1, 2000) - 1) / 100)
            count[i] = count[i] + 1
          end
          for i = 0, 19 do io.write("count ", count[i], "\n") end
        end"#####
    );
    let bench = Bench::new(&[("it.lua", &script)]);
    let line = format!("it.lua prepare --rand-seed=42 {options}");
    let did = if ours { bench.ours(&line) } else { bench.oracle(&line) };
    let counts: Vec<f64> =
        did.stdout.lines().filter_map(|line| line.strip_prefix("count ")).map(|count| count.parse().unwrap()).collect();
    assert_eq!(counts.len(), 20, "{}", did.shown());
    counts
}

/// Pearson's statistic of `counts` against expected counts with the same sum; 19 degrees of freedom.
fn chi_square(counts: &[f64], expected: impl Fn(usize) -> f64) -> f64 {
    counts.iter().enumerate().map(|(i, count)| (count - expected(i)).powi(2) / expected(i)).sum()
}

/// A correct generator exceeds this for one seed in a million; ours is fixed.
const LIMIT: f64 = 63.0;

/// Compares with the same number of sysbench's own draws: both sides vary, so the variance of the difference doubles.
#[track_caller]
fn as_in_sysbench(name: &str, options: &str) {
    let (ours, theirs) = (drawn(true, name, options), drawn(false, name, options));
    let difference: f64 =
        ours.iter().zip(&theirs).filter(|(a, b)| *a + *b > 0.0).map(|(a, b)| (a - b).powi(2) / (a + b)).sum();
    assert!(difference < LIMIT, "{name} {options}: {difference}\n{ours:?}\n{theirs:?}");
}

#[test]
fn uniform_draws_every_value_alike() {
    let ours = drawn(true, "uniform", "");
    assert!(chi_square(&ours, |_| 5000.0) < LIMIT, "{ours:?}");
    as_in_sysbench("default", "--rand-type=uniform");
}

#[test]
fn pareto_follows_its_power() {
    // P(value ≤ x) = (x / range)^(1/p), p = ln h / ln(1 − h).
    for h in [0.2f64, 0.3] {
        let ours = drawn(true, "pareto", &format!("--rand-pareto-h={h}"));
        let power = (1.0 - h).ln() / h.ln();
        let below = |i: usize| (i as f64 / 20.0).powf(power) * 100_000.0;
        assert!(chi_square(&ours, |i| below(i + 1) - below(i)) < LIMIT, "{h}: {ours:?}");
    }
    as_in_sysbench("default", "--rand-type=pareto");
}

#[test]
fn gaussian_is_the_mean_of_uniforms() {
    as_in_sysbench("gaussian", "");
    as_in_sysbench("default", "--rand-type=gaussian --rand-spec-iter=3");
}

#[test]
fn special_has_its_hot_center() {
    as_in_sysbench("special", "");
    as_in_sysbench("default", "");
    as_in_sysbench("default", "--rand-spec-pct=20 --rand-spec-res=40 --rand-spec-iter=5");
}

#[test]
fn zipfian_follows_zipfs_law() {
    // sysbench 1.0 has none; its development branch does.
    for exponent in [0.8, 1.2] {
        let ours = drawn(true, "zipfian", &format!("--rand-zipfian-exp={exponent}"));
        let weight = |range: std::ops::Range<usize>| range.map(|rank| (rank as f64).powf(-exponent)).sum::<f64>();
        let all = weight(1..2001);
        let expected = |i: usize| weight(i * 100 + 1..i * 100 + 101) / all * 100_000.0;
        assert!(chi_square(&ours, expected) < LIMIT, "{exponent}: {ours:?}");
    }
    let default = drawn(true, "default", "--rand-type=zipfian");
    assert!(default[0] > 40_000.0, "{default:?}");
}
