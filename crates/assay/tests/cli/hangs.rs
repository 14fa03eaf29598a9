//! Scripts and servers that never answer: the program ends nevertheless, and says what it waits for.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::common::{Folder, Ran};

/// Ways in which Lua code does not return, each as the body of a function.
const ENDLESS_LUA: [(&str, &str); 6] = [
    ("loop", "while true do end"),
    ("caught", "local function f() error('again') end while true do pcall(f) end"),
    ("coroutine", "local co = coroutine.wrap(function() while true do end end) while true do co() end"),
    (
        "caught_coroutine",
        "while true do pcall(coroutine.wrap(function() local n = 0 while true do n = n + 1 end end)) end",
    ),
    ("rep", "while true do string.rep('x', 100000) end"),
    ("gsub", "local s = string.rep('ab', 50000) while true do s:gsub('a', 'c') end"),
];

/// A C function that does not return.
const ENDLESS_C: &str = "ffi.cdef('int poll(void *, unsigned long, int);')
local function forever() ffi.C.poll(nil, 0, -1) end\n";

fn ran(folder: &Folder, body: &str, options: &str) -> Ran {
    folder.write(
        "it.lua",
        &format!("local n = 0\nfunction event()\n  n = n + 1\n  if n <= 3 then return end\n  {body}\nend\n"),
    );
    folder.run(&format!("run ./it.lua {options} --record r.json.zst"))
}

#[test]
fn when_the_time_is_over_a_script_that_does_not_return_is_interrupted_and_its_transaction_is_unfinished() {
    for (name, body) in ENDLESS_LUA {
        let folder = Folder::new();
        let ran = ran(&folder, body, "--time 1s --grace 100ms");
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.shown());
        let place = "it.lua:5: in function";
        assert!(
            ran.stderr.contains("the script has blocked a worker for ") && ran.stderr.contains(place),
            "{name}: {}",
            ran.shown()
        );
        let json = folder.expect("show r.json.zst --format json", 0).stdout;
        assert!(json.contains("\"unfinished\": 1"), "{name}: {json}");
    }
}

#[test]
fn a_c_function_that_does_not_return_is_left_behind_and_the_record_is_written() {
    let folder = Folder::new();
    // Some transactions in the first intervals, which are known.
    let script = "ffi.cdef('int usleep(unsigned int)')
local n = 0
function event()
  n = n + 1
  if n <= 40 then ffi.C.usleep(5000) else forever() end
end\n";
    folder.write("it.lua", &format!("{ENDLESS_C}{script}"));
    let ran = folder.run("run ./it.lua --time 3s --interval 100ms --grace 100ms --record r.json.zst");
    assert_eq!(ran.code, Some(3), "{}", ran.shown());
    assert!(ran.stderr.contains("1 worker with 1 session did not respond within "), "{}", ran.shown());
    let json = folder.expect("show r.json.zst --format json", 0).stdout;
    assert!(json.contains("\"unfinished\": 1"), "{json}");
}

/// Each hook, in a script in which it says that it was reached and then does this.
fn hooks(body: &str) -> [(&'static str, String); 5] {
    let begun = format!("print('reached') {body}");
    [
        ("init", format!("function init() {begun} end\nfunction event() end\n")),
        ("thread_init", format!("function thread_init() {begun} end\nfunction event() end\n")),
        ("event", format!("function event() {begun} end\n")),
        ("thread_done", format!("function event() end\nfunction thread_done() {begun} end\n")),
        ("done", format!("function event() end\nfunction done() {begun} end\n")),
    ]
}

#[test]
fn one_signal_ends_a_run_within_ten_seconds_whatever_a_hook_does() {
    for (kind, body, prelude) in [("Lua", "while true do end", ""), ("C", "forever()", ENDLESS_C)] {
        for (hook, script) in hooks(body) {
            let folder = Folder::new();
            folder.write("it.lua", &format!("{prelude}{script}"));
            let mut started = folder.start("run ./it.lua --transactions 1 --no-record");
            started.wait_for("reached");
            let signalled = Instant::now();
            started.signal(Signal::SIGTERM);
            let ran = started.finish();
            let took = signalled.elapsed();
            // Not a measurement: a busy machine needs longer for what is left to do then.
            assert!(took < Duration::from_secs(30), "{hook} in {kind}: {took:?}\n{}", ran.shown());
            assert!(ran.code.is_some(), "{hook} in {kind}: {}", ran.shown());
        }
    }
}

#[test]
fn a_command_that_does_not_return_ends_with_one_signal() {
    for (name, body) in ENDLESS_LUA {
        let folder = Folder::new();
        folder.write("it.lua", &format!("function prepare() print('reached') {body} end\nfunction event() end\n"));
        let mut started = folder.start("prepare ./it.lua --db sqlite:x.db");
        started.wait_for("reached");
        started.signal(Signal::SIGINT);
        assert_eq!(started.finish().code, Some(130), "{name}");
    }
}

#[test]
fn an_inherited_decision_to_ignore_interrupts_is_respected() {
    let folder = Folder::new();
    folder.write("it.lua", "function event() end\n");
    let assay = env!("CARGO_BIN_EXE_assay");
    let shell = std::process::Command::new("sh")
        .args(["-c", &format!("trap '' INT; exec {assay} run ./it.lua --time 3s --rate 10 --interval 1s --no-record")])
        .current_dir(folder.path())
        .env("TMPDIR", folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let mut child = shell.unwrap();
    let mut said = String::new();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    while !said.contains("   1.0   ") {
        let length = std::io::BufRead::read_line(&mut stderr, &mut said).unwrap();
        assert!(length > 0, "{said}");
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    stderr.read_to_string(&mut said).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("interrupted"), "{said}");
}

/// How far a server goes before it says nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silent {
    /// It accepts the connection.
    Accepting,
    /// It asks for a password (PostgreSQL), or greets (MySQL).
    Asking,
    /// It has accepted the login.
    LoggedIn,
}

/// A server that falls silent; it holds its connections open. Returns its URL.
fn silent(protocol: &'static str, until: Silent) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // Ends with the test's process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || talk(protocol, until, stream.unwrap()));
        }
    });
    match protocol {
        "postgres" => format!("postgres://u:p@127.0.0.1:{port}/d?sslmode=disable"),
        _ => format!("mysql://u:p@127.0.0.1:{port}/d?ssl-mode=disabled"),
    }
}

fn talk(protocol: &str, until: Silent, mut stream: TcpStream) {
    let mut bytes = [0; 4096];
    let greeting = b"\x0a8.0.31\0\x01\0\0\0abcdefgh\0\x09\xa2\x2d\x02\0\x08\0\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";
    if until != Silent::Accepting {
        if protocol == "postgres" {
            let _ = stream.read(&mut bytes);
            let asks = b"R\0\0\0\x08\0\0\0\x03";
            let accepts =
                b"R\0\0\0\x08\0\0\0\0S\0\0\0\x18server_version\x0015.0\0K\0\0\0\x0c\0\0\0\x01\0\0\0\x02Z\0\0\0\x05I";
            let _ = stream.write_all(if until == Silent::Asking { &asks[..] } else { &accepts[..] });
        } else {
            let _ = stream.write_all(&[&[greeting.len() as u8, 0, 0, 0][..], &greeting[..]].concat());
            if until == Silent::LoggedIn {
                let _ = stream.read(&mut bytes);
                let _ = stream.write_all(b"\x07\0\0\x02\0\0\0\x02\0\0\0");
            }
        }
    }
    while stream.read(&mut bytes).is_ok_and(|length| length > 0) {}
}

const CONNECTS: &str = "function thread_init() con = sysbench.sql.driver():connect() con:query('SELECT 1') end
function event() con:query('SELECT 1') end
function prepare() sysbench.sql.driver():connect():query('SELECT 1') end\n";

#[test]
fn a_server_that_says_nothing_before_the_login_is_given_up() {
    for protocol in ["postgres", "mysql"] {
        for until in [Silent::Accepting, Silent::Asking] {
            let folder = Folder::new();
            folder.write("it.lua", CONNECTS);
            let parameter = if protocol == "postgres" { "&connect_timeout=2" } else { "&connect-timeout=2" };
            let ran = folder.run(&format!("run ./it.lua --time 1s --db {}{parameter}", silent(protocol, until)));
            assert_eq!(ran.code, Some(4), "{protocol} {until:?}: {}", ran.shown());
            assert!(ran.stderr.contains("no answer to the login within"), "{protocol} {until:?}: {}", ran.shown());
        }
    }
}

#[test]
fn a_server_that_never_answers_a_statement_is_named_and_an_interrupt_ends_the_wait() {
    for protocol in ["postgres", "mysql"] {
        for command in ["run ./it.lua --time 1s", "prepare ./it.lua"] {
            let folder = Folder::new();
            folder.write("it.lua", CONNECTS);
            let mut started = folder.start(&format!("{command} --db {}", silent(protocol, Silent::LoggedIn)));
            started.wait_for(&format!("no answer from {protocol}://u@127.0.0.1:"));
            let signalled = Instant::now();
            started.signal(Signal::SIGINT);
            let ran = started.finish();
            assert_eq!(ran.code, Some(130), "{protocol} {command}: {}", ran.shown());
            assert!(signalled.elapsed() < Duration::from_secs(30), "{protocol} {command}: {}", ran.shown());
            assert!(ran.stderr.contains(" to a statement for 1"), "{protocol} {command}: {}", ran.shown());
        }
    }
}

#[test]
fn what_a_server_says_cannot_act_on_the_terminal() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31mred\u{202e}";
    for protocol in ["postgres", "mysql"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut message = Vec::new();
                if protocol == "postgres" {
                    let _ = stream.read(&mut [0; 4096]);
                    let fields = format!("SFATAL\0VFATAL\0C28000\0M{evil}\0\0");
                    message.push(b'E');
                    message.extend((fields.len() as u32 + 4).to_be_bytes());
                    message.extend(fields.as_bytes());
                } else {
                    let payload = [&b"\xff\x15\x04#28000"[..], evil.as_bytes()].concat();
                    message.extend([payload.len() as u8, 0, 0, 0]);
                    message.extend(payload);
                }
                let _ = stream.write_all(&message);
            }
        });
        let folder = Folder::new();
        folder.write("it.lua", CONNECTS);
        let off = if protocol == "postgres" { "sslmode=disable" } else { "ssl-mode=disabled" };
        let ran = folder.run(&format!("run ./it.lua --time 1s --db {protocol}://u:p@127.0.0.1:{port}/d?{off}"));
        assert_eq!(ran.code, Some(4), "{protocol}: {}", ran.shown());
        assert!(
            ran.stderr.contains("\\u001b]0;title\\u0007\\u001b[2J\\u009b31mred\\u202e"),
            "{protocol}: {}",
            ran.shown()
        );
        assert!(!ran.stderr.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{protocol}: {}", ran.shown());
    }
}
