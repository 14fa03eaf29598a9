//! A NATS server with JetStream, for as long as a test needs it.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use assay_lab::Account;

use crate::folder::private_folder;
use crate::{Certificates, absent, free_port};

/// See the module.
pub struct Nats {
    child: Mutex<Child>,
    folder: PathBuf,
    port: u16,
}

/// Debian's, and where its package puts it.
const PROGRAMS: [&str; 2] = ["/usr/sbin/nats-server", "/usr/bin/nats-server"];
/// A server that has not begun to listen after this never will.
const START_TIMEOUT: Duration = Duration::from_secs(60);

impl Nats {
    /// Whether one can be started here; says aloud where not.
    pub fn present() -> bool {
        program().is_some() || absent("no nats-server (cargo xtask install)")
    }

    /// Starts one on a free port of the loopback interface; `config`: more lines of its configuration.
    pub fn start(config: &str) -> Result<Nats> {
        let (folder, port) = (private_folder("nats")?, free_port()?);
        let account = Account::choose(None)?;
        let store = folder.join("store");
        fs::create_dir(&store)?;
        account.own(&store)?;
        let listen = format!("listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\" }}\n", store.display());
        fs::write(folder.join("nats.conf"), listen + config)?;
        let child = Mutex::new(spawn(&folder)?);
        let nats = Nats { child, folder, port };
        nats.wait()?;
        Ok(nats)
    }

    /// Starts one that takes only TLS, with a certificate for `localhost`.
    pub fn with_tls() -> Result<(Nats, Certificates)> {
        let made = Certificates::make(&private_folder("certificates")?, &["localhost".to_owned()])?;
        let account = Account::choose(None)?;
        let (certificate, key) = &made.server;
        account.own(certificate)?;
        account.own(key)?;
        let tls = format!("tls {{ cert_file: \"{}\", key_file: \"{}\" }}\n", certificate.display(), key.display());
        Ok((Nats::start(&tls)?, made))
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL, for a user (`NAME:PASSWORD`), or for anybody.
    pub fn url(&self, user: &str) -> String {
        let login = if user.is_empty() { String::new() } else { format!("{user}@") };
        format!("nats://{login}127.0.0.1:{}", self.port)
    }

    /// Kills it, as a crash would, and starts it again with what it has stored.
    pub fn restart(&self) -> Result<()> {
        self.kill()?;
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = spawn(&self.folder)?;
        self.wait()
    }

    /// Kills it.
    pub fn kill(&self) -> Result<()> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait()?;
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            ensure!(ended.is_none() && begun.elapsed() < START_TIMEOUT, "nats-server does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn program() -> Option<&'static str> {
    PROGRAMS.into_iter().find(|path| std::path::Path::new(path).is_file())
}

fn spawn(folder: &std::path::Path) -> Result<Child> {
    let program = program().context("no nats-server")?;
    let log = fs::File::options().create(true).append(true).open(folder.join("log"))?;
    let child = Account::choose(None)?
        .command(program)
        .arg("-c")
        .arg(folder.join("nats.conf"))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    // For the guardian, should this process be killed.
    fs::write(folder.join("assay.pid"), format!("{}\n", child.id()))?;
    Ok(child)
}

/// The port of a link to a server (`HOST:PORT`) over which everything takes this long, either way; for as long as this
/// process lives.
pub fn slow_link(server: &str, delay: Duration) -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (port, server) = (listener.local_addr()?.port(), server.to_owned());
    std::thread::spawn(move || {
        for near in listener.incoming().flatten() {
            // Either side sees the other's end.
            let Ok(far) = TcpStream::connect(&server) else { continue };
            let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { continue };
            for (from, to) in [(near, far), (far_too, near_too)] {
                std::thread::spawn(move || late(from, to, delay));
            }
        }
    });
    Ok(port)
}

fn late(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        std::thread::sleep(delay);
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
