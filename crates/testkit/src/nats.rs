//! A NATS server with JetStream, for as long as a test needs it.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use assay_lab::Account;

use crate::folder::private_folder;
use crate::nats_operator::Operator;
use crate::{Certificates, NatsProgram, free_port};

/// See the module.
pub struct Nats {
    program: NatsProgram,
    child: Mutex<Child>,
    folder: PathBuf,
    port: u16,
}

/// A server that has not begun to listen after this never will.
const START_TIMEOUT: Duration = Duration::from_secs(60);

impl Nats {
    /// Starts a server on a free port of the loopback interface; `config`: more lines of its configuration.
    pub fn start(program: &NatsProgram, config: &str) -> Result<Nats> {
        let (folder, port) = (private_folder("nats")?, free_port()?);
        let account = Account::choose(None)?;
        let store = folder.join("store");
        fs::create_dir(&store)?;
        account.own(&store)?;
        let listen = format!("listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\" }}\n", store.display());
        fs::write(folder.join("nats.conf"), listen + config)?;
        let child = Mutex::new(spawn(program, &folder)?);
        let nats = Nats { program: program.clone(), child, folder, port };
        nats.wait()?;
        Ok(nats)
    }

    /// Starts one that takes only TLS, with a certificate for `localhost`.
    pub fn with_tls(program: &NatsProgram) -> Result<(Nats, Certificates)> {
        let made = Certificates::make(&private_folder("certificates")?, &["localhost".to_owned()])?;
        let account = Account::choose(None)?;
        let (certificate, key) = &made.server;
        account.own(certificate)?;
        account.own(key)?;
        let tls = format!("tls {{ cert_file: \"{}\", key_file: \"{}\" }}\n", certificate.display(), key.display());
        Ok((Nats::start(program, &tls)?, made))
    }

    /// Starts one that lets in whoever has a credentials file of an account that its operator has signed.
    pub fn with_operator(program: &NatsProgram) -> Result<(Nats, Operator)> {
        let operator = Operator::new(&private_folder("operator")?)?;
        Ok((Nats::start(program, &operator.config()?)?, operator))
    }

    /// Its log and the files of JetStream.
    pub fn stored(&self) -> Result<Vec<u8>> {
        let (mut folders, mut bytes) = (vec![self.folder.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => bytes.extend(fs::read(&path)?),
                }
            }
        }
        Ok(bytes)
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
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = spawn(&self.program, &self.folder)?;
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

fn spawn(program: &NatsProgram, folder: &Path) -> Result<Child> {
    let log = fs::File::options().create(true).append(true).open(folder.join("log"))?;
    let child = Account::choose(None)?
        .command(&program.path)
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
