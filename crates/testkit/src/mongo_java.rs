//! mongo-java-server, which speaks MongoDB's protocol and keeps documents in memory: another implementation than
//! FerretDB's, with other commands and other mistakes. Without users and TLS.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use anyhow::Result;

use crate::ferretdb::{end, listens, succeeded};
use crate::folder::private_folder;
use crate::{absent, cache, free_port};

const VERSION: &str = "1.47.0";
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1";

/// It comes as a library only.
const PROGRAM: &str = "
public class Serve {
    public static void main(String[] arguments) {
        new de.bwaldvogel.mongo.InMemoryMongoServer().bind(\"127.0.0.1\", Integer.parseInt(arguments[0]));
    }
}
";

/// A running mongo-java-server. Dropping it kills it.
pub struct JavaMongo {
    child: Mutex<Child>,
    port: u16,
}

impl JavaMongo {
    /// Whether it can be started here; says aloud where not.
    pub fn present() -> bool {
        program().is_file() || absent("no mongo-java-server (cargo xtask install gets it from the Maven repository)")
    }

    /// The server that all tests of this process share. Panics if it cannot be started: call `present` first.
    pub fn shared() -> &'static JavaMongo {
        static SHARED: OnceLock<JavaMongo> = OnceLock::new();
        SHARED.get_or_init(|| JavaMongo::start().expect("mongo-java-server starts"))
    }

    fn start() -> Result<JavaMongo> {
        let (folder, port) = (private_folder("mongo-java")?, free_port()?);
        let log = fs::File::create(folder.join("log"))?;
        let home = home();
        let mut command = Command::new("java");
        command.arg("-Xmx256m").arg("-cp").arg(format!("{0}:{0}/jars/*", home.display()));
        command.args(["Serve", &port.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        // For the guardian, should this process be killed.
        fs::write(folder.join("assay.pid"), format!("{}\n", child.id()))?;
        let server = JavaMongo { child: Mutex::new(child), port };
        listens(&server.child, port, &folder.join("log"))?;
        Ok(server)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("mongodb://127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for JavaMongo {
    fn drop(&mut self) {
        let _ = end(&self.child);
    }
}

fn home() -> PathBuf {
    cache().join("mongo-java-server").join(VERSION)
}

fn program() -> PathBuf {
    home().join("Serve.class")
}

/// The version that `cargo xtask install` should fetch; `None`: it was fetched before.
pub fn missing_java_mongo() -> Option<&'static str> {
    (!program().is_file()).then_some(VERSION)
}

/// Fetches it and compiles its program, unless that was done before. Returns what the tests will use.
pub fn fetch_java_mongo() -> Result<String> {
    if !program().is_file() {
        let home = home();
        fetch_jars(&home, "de.bwaldvogel", "mongo-java-server", VERSION)?;
        fs::write(home.join("Serve.java"), PROGRAM)?;
        let mut compiler = Command::new("javac");
        compiler.current_dir(&home).stdin(Stdio::null()).args(["-cp", "jars/*", "Serve.java"]);
        succeeded(compiler.output(), "compile the program of mongo-java-server")?;
    }
    Ok(format!("{VERSION} (Maven)"))
}

/// Fetches a Java package and what it needs into the folder `jars`.
pub(crate) fn fetch_jars(home: &Path, group: &str, artifact: &str, version: &str) -> Result<()> {
    fs::create_dir_all(home)?;
    let dependency = format!(
        "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
    );
    let project = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>tests</groupId><artifactId>tests</artifactId>\
         <version>1</version><dependencies>{dependency}</dependencies></project>"
    );
    fs::write(home.join("pom.xml"), project)?;
    let mut maven = Command::new("mvn");
    maven.current_dir(home).stdin(Stdio::null());
    maven.args(["-B", "-q", &format!("{PLUGIN}:copy-dependencies"), "-DincludeScope=runtime"]);
    maven.arg(format!("-DoutputDirectory={}", home.join("jars").display()));
    succeeded(maven.output(), &format!("fetch {artifact}")).map(drop)
}
