//! What a script finds: globals, libraries, the `sysbench` table, modules.

use crate::bench::Bench;

#[test]
fn the_search_path_of_modules_is_tried_in_order() {
    let bench = Bench::new(&[
        (
            "it.lua",
            "print(require('sibling'), require('src_only'), require('folder.inner'), require('package') == package)",
        ),
        ("sibling.lua", "return 'sibling'"),
        ("src/lua/sibling.lua", "return 'the wrong one'"),
        ("src/lua/src_only.lua", "return 'src'"),
        ("folder/inner.lua", "return 'inner'"),
    ]);
    let oracle = bench.oracle("it.lua");
    assert_eq!((oracle.code, oracle.stdout.lines().last()), (Some(0), Some("sibling\tsrc\tinner\ttrue")));
}
