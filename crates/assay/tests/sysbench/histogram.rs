//! `sysbench.histogram`.

use crate::bench::Bench;

#[track_caller]
fn same(script: &str) {
    let text = format!("function prepare()\n{script}\nend\n");
    Bench::new(&[("it.lua", &text)]).same_figures("it.lua prepare");
}

#[test]
fn values_fall_into_logarithmic_buckets_and_outside_ones_into_the_ends() {
    same(
        r#"
        local h = sysbench.histogram.new(10, 1, 100)
        for i = 1, 120 do h:update(i) end
        h:update(0) h:update(-5) h:update(1e9) h:update(0.5)
        print(h:print())"#,
    );
}

#[test]
fn an_empty_histogram_prints_nothing() {
    same("print(sysbench.histogram.new(10, 1, 100):print())");
}

#[test]
fn the_histogram_of_latencies_has_the_same_buckets() {
    same(
        r#"
        local h = sysbench.histogram.new(1024, 0.001, 100000)
        for i = 1, 3000 do h:update(i * i / 90) end
        h:print()
        local g = sysbench.histogram.new(5, 0.5, 5000)
        g:update(7)
        g:print()"#,
    );
}
