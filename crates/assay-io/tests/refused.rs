//! Where io_uring is forbidden, epoll is used instead, and the reason is reported.
//!
//! A seccomp filter forbids it to one thread, as container runtimes do to a process.

use assay_io::{Backend, Clock, Kernel};

/// `seccomp(2)`, `struct sock_filter` of classic BPF.
const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7FFF_0000;
const FAIL_WITH: u32 = 0x0005_0000;

/// Makes `io_uring_setup` fail with `errno` in this thread, from now on.
fn forbid(errno: i32) {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        step(LOAD_WORD, 0, 0, 0), // the number of the system call
        step(JUMP_IF_EQUAL, 0, 1, libc::SYS_io_uring_setup as u32),
        step(RETURN, 0, 0, FAIL_WITH | errno as u32),
        step(RETURN, 0, 0, ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: no pointers are passed.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the filter and its program live through the call, which copies them.
    let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_kernel_that_refuses_io_uring_leaves_epoll_and_a_reason() {
    for (errno, reason) in [
        (libc::ENOSYS, "not available in this kernel"),
        (libc::EPERM, "seccomp"),
        (libc::EINVAL, "Linux 6.1"),
        (libc::ENOMEM, "ulimit -l"),
    ] {
        let told = std::thread::spawn(move || {
            forbid(errno);
            let (backend, why) = Backend::best(usize::MAX, 1);
            assert_eq!(backend, Backend::Epoll);
            assert!(Kernel::new(backend, Clock::start(), 1).is_ok());
            assert!(Kernel::new(Backend::Uring, Clock::start(), 1).is_err());
            why
        });
        let why = told.join().unwrap().expect("it says why");
        // Where it is disabled anyway, that is the reason.
        assert!(why.contains(reason) || why.contains("io_uring_disabled"), "{why}");
    }
}
