//! Where scripts and modules are found: the folder of an installed sysbench, edited stock scripts, modules written in
//! C.

use std::path::Path;
use std::process::Command;

use testkit::Kind;

use crate::bench::{Bench, options};

/// A folder with an installed sysbench: a program in `bin` and these scripts, which our program finds by `PATH` and
/// Debian's by `LUA_PATH`.
fn installed(scripts: &[(&str, &str)], files: &[(&str, &str)]) -> Bench {
    let scripts: Vec<(String, &str)> =
        scripts.iter().map(|(name, text)| (format!("opt/share/sysbench/{name}"), *text)).collect();
    let mut all: Vec<(&str, &str)> = scripts.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    all.extend_from_slice(files);
    all.push(("opt/bin/sysbench", "#!/bin/sh\nexec /usr/bin/sysbench \"$@\"\n"));
    let bench = Bench::new(&all);
    let path = format!("{}:/usr/bin:/bin", bench.path("opt/bin").display());
    let lua_path = format!("{}/?.lua;;", bench.path("opt/share/sysbench").display());
    bench.with("PATH", &path).with_for_oracle("LUA_PATH", &lua_path)
}

#[test]
fn a_script_in_the_folder_of_an_installed_sysbench_is_found_by_its_name() {
    let it = "print('mine', sysbench.cmdline.script_path, ...) function event() end";
    let bench = installed(&[("my.lua", it), ("folder/inner.lua", "return 'inner'")], &[]);
    bench.same("my run --events=1");
    let bench = installed(
        &[("folder/inner.lua", "return {...}")],
        &[("it.lua", "print(unpack(require('folder/inner'))) print(unpack(require('folder.inner')))")],
    );
    bench.same("it.lua");
}

#[test]
fn an_edited_stock_script_is_run_and_its_module_too() {
    let common = std::fs::read_to_string("/usr/share/sysbench/oltp_common.lua").expect("Debian's sysbench");
    let stock = std::fs::read_to_string("/usr/share/sysbench/oltp_point_select.lua").expect("Debian's sysbench");
    let edited = common.clone() + "\nfunction cleanup() print('edited') end\n";
    let line = "oltp_point_select cleanup --tables=1";
    let bench = installed(&[("oltp_common.lua", &edited), ("oltp_point_select.lua", &stock)], &[]);
    assert!(bench.same(line).stdout.contains("edited"));
    // An unchanged script next to a changed one is run as it is: they belong together.
    for kind in [Kind::MariaDb, Kind::Postgres] {
        let lines = ["prepare", "run --events=5", "cleanup"]
            .map(|command| format!("oltp_point_select --tables=1 --table-size=10 {command}"));
        bench.same_on(kind, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    }
    // A script that requires it from a folder gets it from there.
    let it = "print(pcall(require, 'kit/oltp_common')) print(type(cleanup)) function event() end";
    installed(&[], &[("kit/oltp_common.lua", &edited), ("it.lua", it)]).same("it.lua run");
}

#[test]
fn what_was_taken_is_shown_when_asked_for() {
    let server = Kind::MariaDb.shared();
    let place = options(server, &server.fresh_database().unwrap());
    let taken = |bench: &Bench, line: &str| {
        let did = bench.ours(&format!("{line} {place}"));
        let lines = did.stdout.lines().filter(|line| line.starts_with("Script ") || line.starts_with("Module "));
        let folder = bench.path("opt/share/sysbench").display().to_string();
        lines.map(|line| line.replace(&folder, "[INSTALLED]")).collect::<Vec<_>>()
    };
    let stock: Vec<(String, String)> = ["oltp_common", "oltp_point_select"]
        .map(|name| {
            (format!("{name}.lua"), std::fs::read_to_string(format!("/usr/share/sysbench/{name}.lua")).unwrap())
        })
        .into();
    let stock: Vec<(&str, &str)> = stock.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let command = "oltp_point_select cleanup --tables=1";
    let bench = installed(&stock, &[]);
    assert_eq!(
        taken(&bench, &format!("{command} --verbosity=4")),
        ["Script oltp_point_select: built in", "Module oltp_common: built in"]
    );
    assert!(taken(&bench, command).is_empty());
    let edited = stock[0].1.to_owned() + "\n-- mine\n";
    let bench = installed(&[("oltp_common.lua", &edited), stock[1]], &[]);
    assert_eq!(
        taken(&bench, &format!("{command} --verbosity=4")),
        [
            "Script oltp_point_select: [INSTALLED]/oltp_point_select.lua",
            "Module oltp_common: [INSTALLED]/oltp_common.lua"
        ]
    );
}

/// A module in C that counts, calls back and raises an error. It declares what it uses: Lua's headers are not needed.
const C_MODULE: &str = r#"
#include <stddef.h>
typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *);
typedef struct { const char *name; lua_CFunction func; } luaL_Reg;
void luaL_register(lua_State *, const char *, const luaL_Reg *);
double luaL_checknumber(lua_State *, int);
const char *luaL_checklstring(lua_State *, int, size_t *);
int luaL_error(lua_State *, const char *, ...);
void lua_pushnumber(lua_State *, double);
void lua_pushvalue(lua_State *, int);
void lua_call(lua_State *, int, int);

static int add(lua_State *L) { lua_pushnumber(L, luaL_checknumber(L, 1) + luaL_checknumber(L, 2)); return 1; }
static int twice(lua_State *L) {
  for (int i = 0; i < 2; i++) { lua_pushvalue(L, 1); lua_call(L, 0, 0); }
  return 0;
}
static int fail(lua_State *L) { return luaL_error(L, "failed: %s", luaL_checklstring(L, 1, NULL)); }
static const luaL_Reg functions[] = {{"add", add}, {"twice", twice}, {"fail", fail}, {NULL, NULL}};
int luaopen_counting(lua_State *L) { luaL_register(L, "counting", functions); return 1; }
"#;

#[test]
fn a_lua_module_in_c_is_loaded() {
    let script = r#"
        local counting = require("counting")
        function thread_init() n = 0 end
        function event()
          counting.twice(function() n = n + 1 end)
          print(counting.add(1, 2.5), n, counting == package.loaded.counting)
          print(pcall(counting.fail, "so"))
          print(pcall(counting.add, "x", 1))
          counting.fail("at the end")
        end"#;
    let bench = Bench::new(&[("it.lua", script), ("counting.c", C_MODULE)]);
    let folder = bench.path("");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "counting.so", "counting.c"])
        .current_dir(&folder)
        .status()
        .expect("a C compiler, which building needs too");
    assert!(status.success());
    bench.same("it.lua run --events=1");
}

#[test]
fn a_lua_module_of_the_distribution_is_loaded() {
    let folder = format!("/usr/lib/{}-linux-gnu/lua/5.1", std::env::consts::ARCH);
    assert!(Path::new(&folder).join("cjson.so").is_file(), "lua-cjson is missing; `cargo xtask install` gets it");
    let script = r#"
        local cjson = require("cjson")
        function event()
          local text = cjson.encode({ 1, "two", { three = 3.5 }, cjson.null })
          print(text, cjson.decode(text)[3].three, cjson.decode('[null]')[1] == cjson.null)
          print(pcall(cjson.decode, "{"))
        end"#;
    let bench = Bench::new(&[("it.lua", script)]).with_for_oracle("LUA_CPATH", &format!("{folder}/?.so;;"));
    bench.same("it.lua run --events=2 --threads=1");
}
