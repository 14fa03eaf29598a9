//! Whether a server that says nothing at login belongs to another family of products than its URL says.
//!
//! A server of MySQL speaks first, one of PostgreSQL waits for its client: each would wait for the other.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use assay_io::{Address, Target};
use assay_products::FAMILIES;

/// For a server of the URL's family to speak, and for the answer of another one.
const PATIENCE: Duration = Duration::from_millis(500);

/// What to write after `--db` for the family that this silent server belongs to; `None`: unknown, or the right one.
/// Blocks for less than two seconds.
pub(crate) fn family_of_silent(target: &Target) -> Option<&'static str> {
    let mine = target.database.driver();
    let Address::Tcp(address) = target.addresses.first()? else { return None };
    for family in FAMILIES.iter().filter(|family| family.driver.dialect.name != mine) {
        let Some(greeting) = family.greeting else { continue };
        let mut stream = TcpStream::connect_timeout(address, PATIENCE).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        let mut answer = [0; 16];
        match stream.read(&mut answer) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => return None,
        }
        stream.write_all(greeting.say).ok()?;
        let length = stream.read(&mut answer).ok()?;
        if (greeting.is_answer)(&answer[..length]) {
            return Some(family.example);
        }
    }
    None
}
