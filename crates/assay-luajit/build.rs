//! Builds LuaJIT with a C compiler and nothing else.
//!
//! Why: `mlua-sys` can build LuaJIT itself (feature `vendored`), but needs `make`, which a machine with Rust and a C
//! compiler need not have, and takes options only from `CFLAGS`, which reaches every other C library too and is lost
//! when somebody sets their own.
//!
//! How: the sources come with the crate `luajit-src`. It copies them to a folder of ours, finds the compiler, runs
//! `make` there and collects the library; it does not say where its sources are, but it looks for `make` in `PATH`.
//! So this program puts itself there under that name (a real `make` is never used), and runs itself again:
//!
//! 1. as cargo starts it: makes the link `make`, and starts
//! 2. itself with the longer `PATH`, which calls `luajit-src`, which starts
//! 3. itself as `make`, which does what `src/Makefile` of LuaJIT does for `make amalg BUILDMODE=static` on Linux.
//!
//! The amalgamation compiles all C files as one; as fast a library, and no list of files to keep. Assertions and API
//! checks, which `luajit-src` asks for in debug builds, stay off in every profile: they would slow what we measure by.
//! Only x86_64 and aarch64 Linux; another target is refused by name. A new `luajit-src` means comparing `src/Makefile`.
//!
//! How to leave: `mlua-sys` with `vendored` instead of `external`, the `-D` of `FLAGS` in `CFLAGS`, and `make`.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, ExitCode, exit};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// For our tools and LuaJIT alike, as the two share headers. They follow what the profile and `CFLAGS` say, and win
/// where both speak, so that every profile gets the same library.
const FLAGS: [&str; 7] = [
    "-O2",
    "-g0",
    "-fomit-frame-pointer",
    "-fPIC",
    // Compiled loops look at debug hooks, by which the watchdog names and stops the script that holds a worker.
    "-DLUAJIT_ENABLE_CHECKHOOK",
    // With random seeds and string ids, `pairs` would walk a table in another order in every state, and the same seed
    // would not give the same statements.
    "-DLUAJIT_SECURITY_PRNG=0",
    "-DLUAJIT_SECURITY_STRID=0",
];

/// For LuaJIT alone. The Makefile looks whether the compiler writes unwind tables unasked and if so tells LuaJIT to
/// throw errors through C frames; we ask for both, as `src/lj_err.c` advises. Every compiler of our targets knows them.
const LIBRARY_FLAGS: [&str; 6] = [
    "-D_FILE_OFFSET_BITS=64",
    "-D_LARGEFILE_SOURCE",
    "-U_FORTIFY_SOURCE",
    "-fno-stack-protector",
    "-funwind-tables",
    "-DLUAJIT_UNWIND_EXTERNAL",
];

/// Lua's own libraries, in the order that numbers their functions (`LJLIB_O` of the Makefile).
const LIBRARIES: [&str; 12] = [
    "lib_base.c",
    "lib_math.c",
    "lib_bit.c",
    "lib_string.c",
    "lib_table.c",
    "lib_io.c",
    "lib_os.c",
    "lib_package.c",
    "lib_debug.c",
    "lib_jit.c",
    "lib_ffi.c",
    "lib_buffer.c",
];

/// Set for the second run of this program.
const INSIDE: &str = "ASSAY_LUAJIT_INSIDE";

fn main() -> ExitCode {
    let outcome = if env::args().next().as_deref() == Some("make") {
        make()
    } else if env::var_os(INSIDE).is_some() {
        collect()
    } else {
        start()
    };
    if let Err(error) = outcome {
        println!("cargo::error={error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The first run: this program again, with itself as the first `make` in `PATH`.
fn start() -> Outcome {
    println!("cargo::rerun-if-changed=build.rs");
    let target = env::var("TARGET")?;
    if env::var("CARGO_CFG_TARGET_OS")? != "linux" {
        return Err(unsupported(&target));
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?).join("bin");
    let make = folder.join("make");
    fs::create_dir_all(&folder)?;
    if make.is_symlink() {
        fs::remove_file(&make)?;
    }
    symlink(env::current_exe()?, &make)?;

    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([folder].into_iter().chain(env::split_paths(&path)))?;
    let status = Command::new(env::current_exe()?).env("PATH", path).env(INSIDE, "1").status()?;
    // It has said what went wrong.
    if status.success() { Ok(()) } else { exit(1) }
}

/// The second run: `luajit-src` copies the sources, starts the third, and collects what that has made.
fn collect() -> Outcome {
    let artifacts = luajit_src::Build::new().debug(false).try_build().map_err(|error| error.to_string())?;
    artifacts.print_cargo_metadata();
    Ok(())
}

/// The third run, as `make` in a copy of LuaJIT's `src`: the steps of its Makefile.
fn make() -> Outcome {
    // A small Lua, for LuaJIT's own generators. They run for less time than optimizing them would take.
    run(host_cc()?.args(FLAGS).args(["-O0", "-I.", "-o", "host/minilua", "host/minilua.c", "-lm"]))?;
    let minilua = || Command::new("host/minilua");

    fs::copy("../.relver", "luajit_relver.txt")?;
    run(minilua().arg("host/genversion.lua"))?;

    // The interpreter's assembly, translated to tables for `buildvm`, which writes it out with what depends on it.
    if env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("musl") {
        register_frames_as_llvm_does()?;
    }
    let target = Target::inspect()?;
    let source = format!("vm_{}.dasc", target.name);
    run(minilua().arg("../dynasm/dynasm.lua").args(target.dynasm.iter().flat_map(|name| ["-D", name])).args([
        "-o",
        "host/buildvm_arch.h",
        &source,
    ]))?;
    let parts = ["", "_asm", "_peobj", "_lib", "_fold"].map(|part| format!("host/buildvm{part}.c"));
    run(host_cc()?.args(FLAGS).args(["-O0", "-I."]).args(&target.defines).args(["-o", "host/buildvm"]).args(parts))?;
    let buildvm = |mode: &str, file: &str, sources: &[&str]| {
        run(Command::new("host/buildvm").args(["-m", mode, "-o", file]).args(sources))
    };
    buildvm("elfasm", "lj_vm.S", &[])?;
    for mode in ["bcdef", "ffdef", "libdef", "recdef"] {
        buildvm(mode, &format!("lj_{mode}.h"), &LIBRARIES)?;
    }
    buildvm("folddef", "lj_folddef.h", &["lj_opt_fold.c"])?;

    for (object, source) in [("lj_vm.o", "lj_vm.S"), ("ljamalg.o", "ljamalg.c")] {
        run(tool("STATIC_CC")?.args(FLAGS).args(LIBRARY_FLAGS).args(["-c", "-o", object, source]))?;
    }
    run(tool("TARGET_AR")?.args(["libluajit.a", "lj_vm.o", "ljamalg.o"]))
}

/// Compiled code tells the unwinder how to pass errors through it. GNU's unwinder takes the section with that, LLVM's,
/// with which Rust links static programs, an entry of it; LuaJIT knows this of macOS only. Otherwise each state prints
/// `bad fde`, and such errors end the process.
fn register_frames_as_llvm_does() -> Outcome {
    let (file, name) = ("lj_err.c", "#define ERR_FRAME_JIT_OFS_REGISTER");
    let text = fs::read_to_string(file)?;
    let gnu = format!("{name}\t0\n");
    if text.matches(&gnu).count() != 1 {
        return Err(format!("{file} registers frames in another way than this build script knows").into());
    }
    Ok(fs::write(file, text.replace(&gnu, &format!("{name}\tERR_FRAME_JIT_OFS_FDE\n")))?)
}

/// What the generators must know of the target.
struct Target {
    /// As in `vm_*.dasc`.
    name: &'static str,
    /// What is defined for the assembler of that file.
    dynasm: Vec<String>,
    /// The compiler's options for `buildvm`, which runs on the host.
    defines: Vec<String>,
}

impl Target {
    /// As `lj_arch.h` decides it from what the target's compiler defines.
    fn inspect() -> Outcome<Self> {
        let mut compiler = tool("STATIC_CC")?;
        compiler.args(FLAGS).args(LIBRARY_FLAGS).args(["-E", "-dM", "lj_arch.h"]);
        let output = compiler.output().map_err(|error| format!("{compiler:?}: {error}"))?;
        if !output.status.success() {
            return Err(format!("{compiler:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let text = String::from_utf8(output.stdout)?;
        let macros: HashMap<&str, &str> =
            text.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(' ')).collect();
        let is = |name: &str| macros.get(name) == Some(&"1");

        let name = match () {
            // Without LJ_FR2, x86_64 would be built for the older 32-bit layout of values.
            () if is("LJ_TARGET_X64") && is("LJ_FR2") => "x64",
            () if is("LJ_TARGET_ARM64") && is("LJ_LE") => "arm64",
            () => return Err(unsupported(&env::var("TARGET")?)),
        };
        // Little-endian, 64 bits, and floating point in registers: what our targets have in common.
        let mut dynasm = ["ENDIAN_LE", "P64", "FPU", "HFABI"].map(str::to_owned).to_vec();
        let mut defines = vec![
            format!("-DLUAJIT_TARGET=LUAJIT_ARCH_{name}"),
            "-DLJ_ARCH_HASFPU=1".into(),
            "-DLJ_ABI_SOFTFP=0".into(),
        ];
        for option in ["HASJIT", "HASFFI", "DUALNUM"].into_iter().filter(|option| is(&format!("LJ_{option}"))) {
            dynasm.push(option.trim_start_matches("HAS").to_owned());
        }
        for option in ["BRANCH_TRACK", "SHADOW_STACK"].into_iter().filter(|option| is(&format!("LJ_ABI_{option}"))) {
            dynasm.push(option.to_owned());
            defines.push(format!("-DLJ_ABI_{option}=1"));
        }
        dynasm.push(format!("VER={}", macros.get("LJ_ARCH_VERSION").unwrap_or(&"")));
        Ok(Self { name, dynasm, defines })
    }
}

/// The compiler for what runs now: the target's own unless we build for another machine.
fn host_cc() -> Outcome<Command> {
    if env::var_os("HOST_CC").is_some() {
        tool("HOST_CC")
    } else if env::var_os("HOST") == env::var_os("TARGET") {
        tool("STATIC_CC")
    } else {
        Ok(Command::new("cc"))
    }
}

/// A command with its first arguments, as `luajit-src` or whoever builds says it in the environment.
fn tool(variable: &str) -> Outcome<Command> {
    let line = env::var(variable).map_err(|error| format!("{variable}: {error}"))?;
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().ok_or_else(|| format!("{variable} is empty"))?);
    command.args(words);
    Ok(command)
}

fn run(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

fn unsupported(target: &str) -> Box<dyn Error> {
    format!("LuaJIT is built for x86_64 and aarch64 Linux only, not for {target} (crates/assay-luajit/build.rs)").into()
}
