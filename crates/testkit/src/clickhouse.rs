//! A ClickHouse server for as long as a test needs it.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use assay_lab::Account;

use crate::folder::private_folder;
use crate::{Certificates, free_port, installed};

/// See the module.
pub struct ClickHouse {
    child: Child,
    folder: PathBuf,
    port: u16,
    /// Of HTTP and HTTPS.
    http_ports: [u16; 2],
    certificates: Certificates,
}

/// Debian's.
const PROGRAM: &str = "/usr/sbin/clickhouse-server";
/// A server that has not begun to listen after this never will.
const START_TIMEOUT: Duration = Duration::from_secs(90);

impl ClickHouse {
    /// Whether it can be started here, for a test to continue or return; see `absent`.
    #[track_caller]
    pub fn present() -> bool {
        installed(PROGRAM)
    }

    /// Starts a server on a free port of the loopback interface, with the users `app`, without a password, and `jane`,
    /// whose password is `secret`.
    ///
    /// It listens for HTTP, too, and for HTTPS with a certificate for `localhost`. It keeps idle connections for 3
    /// seconds.
    pub fn start() -> Result<ClickHouse> {
        let (folder, port) = (private_folder("clickhouse")?, free_port()?);
        let http_ports = [free_port()?, free_port()?];
        let [http, https] = http_ports;
        let account = Account::choose(None)?;
        for name in ["data", "tmp", "files", "schemas"] {
            fs::create_dir(folder.join(name))?;
            account.own(&folder.join(name))?;
        }
        let certificates = Certificates::make(&folder, &["localhost".to_owned()])?;
        account.own(&certificates.server.1)?;
        let (certificate, key) = (certificates.server.0.display(), certificates.server.1.display());
        let place = folder.display();
        fs::write(
            folder.join("config.xml"),
            format!(
                "<yandex><logger><level>warning</level><console>1</console></logger><tcp_port>{port}</tcp_port>\
                 <http_port>{http}</http_port><https_port>{https}</https_port>\
                 <keep_alive_timeout>3</keep_alive_timeout><openSSL><server>\
                 <certificateFile>{certificate}</certificateFile><privateKeyFile>{key}</privateKeyFile>\
                 <verificationMode>none</verificationMode><loadDefaultCAFile>false</loadDefaultCAFile>\
                 </server></openSSL>\
                 <listen_host>127.0.0.1</listen_host><path>{place}/data/</path><tmp_path>{place}/tmp/</tmp_path>\
                 <user_files_path>{place}/files/</user_files_path>\
                 <format_schema_path>{place}/schemas/</format_schema_path><mark_cache_size>268435456</mark_cache_size>\
                 <timezone>UTC</timezone><users_config>users.xml</users_config>\
                 <default_profile>default</default_profile><default_database>default</default_database></yandex>"
            ),
        )?;
        let user = |name: &str, password: &str| {
            format!(
                "<{name}><password>{password}</password><networks><ip>127.0.0.1</ip></networks>\
                 <profile>default</profile><quota>default</quota></{name}>"
            )
        };
        let users = ["app", "default"].map(|name| user(name, "")).concat() + &user("jane", "secret");
        fs::write(
            folder.join("users.xml"),
            format!(
                "<yandex><profiles><default/></profiles><users>{users}</users><quotas><default/></quotas></yandex>"
            ),
        )?;
        let child = spawn(&folder)?;
        let mut server = ClickHouse { child, folder, port, http_ports, certificates };
        server.wait()?;
        Ok(server)
    }

    /// Its URL for a user: `app` or `jane:secret`.
    pub fn url(&self, user: &str) -> String {
        format!("clickhouse://{user}@127.0.0.1:{}/default", self.port)
    }

    /// The same over HTTP.
    pub fn http_url(&self, user: &str) -> String {
        format!("clickhouse+http://{user}@127.0.0.1:{}/default", self.http_ports[0])
    }

    /// The same over HTTPS.
    pub fn https_url(&self, user: &str) -> String {
        format!("clickhouse+https://{user}@localhost:{}/default", self.http_ports[1])
    }

    /// The certificate of HTTPS, and those who signed it and did not.
    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// The folder of its files, which its command line names.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.child.try_wait()?;
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            ensure!(ended.is_none() && begun.elapsed() < START_TIMEOUT, "clickhouse-server does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for ClickHouse {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn spawn(folder: &Path) -> Result<Child> {
    let log = fs::File::create(folder.join("log"))?;
    let child = Account::choose(None)?
        .command(PROGRAM)
        .arg(format!("--config-file={}", folder.join("config.xml").display()))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    // For the guardian, should this process be killed.
    fs::write(folder.join("assay.pid"), format!("{}\n", child.id()))?;
    Ok(child)
}
