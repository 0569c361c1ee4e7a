//! What does a client ask of a SOCKS 5 proxy, and where does the tunnelled protocol begin? (RFC
//! 1928, RFC 1929)
//!
//! The client offers authentication methods and the server selects one; the client authenticates if
//! asked to, and then requests a connection: each is a request with an answer. After the last
//! answer another protocol follows.

use crate::head::{Head, Role};
use crate::talk::{CARRY, First, FirstBytes, Out, Side, Step, Talk, Turn};

const VERSION: u8 = 5;
/// Version of username/password authentication (RFC 1929, 2).
const PASSWORD_VERSION: u8 = 1;
/// Authentication methods (RFC 1928, 3): none, password, and no acceptable one.
const NONE: u8 = 0;
const PASSWORD: u8 = 2;
const REFUSED: u8 = 0xff;
/// Assigned and private methods.
const ASSIGNED_MAX: u8 = 9;
const PRIVATE_MIN: u8 = 0x80;
/// Types of address; a domain name begins with its length.
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// Version, command or reply, a reserved byte, the type of address, and its first byte.
const ADDRESS_AT: usize = 4;
const PORT_LEN: u64 = 2;

/// The next message of each side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Socks {
    sides: [Place; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Place {
    #[default]
    Methods,
    /// The client need not authenticate; the server's answer to it.
    SignsIn,
    Connects,
    /// Some messages were missed, or came too early.
    Unknown,
}

impl Talk for Socks {
    const FIRST: FirstBytes = FirstBytes::of(&[VERSION]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let &[VERSION, count, ref offered @ ..] = client.bytes else { return false };
        let known = |method: &u8| *method <= ASSIGNED_MAX || *method >= PRIVATE_MIN && *method != REFUSED;
        let &[VERSION, taken] = server.bytes else { return false };
        let whole = client.len as usize == client.bytes.len() && offered.len() == usize::from(count);
        server.len == 2
            && whole
            && offered.iter().all(known)
            && (offered.contains(&taken) || taken == REFUSED)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let told = if side.is_client() { self.on_client(bytes) } else { self.on_server(bytes) };
        let (kind, len) = match told {
            Ok(told) => told,
            Err(step) => return step,
        };
        let connects = kind == "connect";
        let role = if side.is_client() { Role::Asks } else { Role::Answers };
        let name = if connects && side.is_client() && bytes[ADDRESS_AT - 1] == NAME {
            // As much of it as was captured.
            out.span(ADDRESS_AT + 1, bytes.len().min(len as usize - PORT_LEN as usize))
        } else {
            None
        };
        out.put(Head { name, ..Head::whole(role, kind, len) });
        if connects && !side.is_client() && bytes[1] == 0 {
            out.turn = Some(Turn::Anew);
        }
        Step::Skip(len)
    }

    fn begins(&self, _: Side, _: First<'_>, _: bool) -> bool {
        false
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Place::Unknown;
    }
}

impl Socks {
    fn on_client(&mut self, bytes: &[u8]) -> Result<(&'static str, u64), Step> {
        let (next, kind, len) = match (self.sides[Side::Client as usize], bytes[0]) {
            (Place::Methods, VERSION) => {
                (Place::SignsIn, "methods", 2 + u64::from(*bytes.get(1).ok_or(Step::Need)?))
            }
            (Place::SignsIn, PASSWORD_VERSION) => {
                let user = usize::from(*bytes.get(1).ok_or(Step::Need)?);
                if user > CARRY - 3 {
                    return Err(Step::Wrong);
                }
                let password = *bytes.get(2 + user).ok_or(Step::Need)?;
                (Place::Connects, "sign-in", 3 + user as u64 + u64::from(password))
            }
            (Place::SignsIn | Place::Connects, VERSION) => (Place::Unknown, "connect", with_address(bytes)?),
            // Some clients do not wait until they are connected.
            _ => return Err(Step::Lose),
        };
        self.sides[Side::Client as usize] = next;
        Ok((kind, len))
    }

    fn on_server(&mut self, bytes: &[u8]) -> Result<(&'static str, u64), Step> {
        let (next, kind, len) = match (self.sides[Side::Server as usize], bytes[0]) {
            (Place::Methods, VERSION) => match *bytes.get(1).ok_or(Step::Need)? {
                NONE => (Place::Connects, "methods", 2),
                PASSWORD => (Place::SignsIn, "methods", 2),
                REFUSED => (Place::Unknown, "methods", 2),
                _ => return Err(Step::Wrong),
            },
            (Place::SignsIn, PASSWORD_VERSION) => (Place::Connects, "sign-in", 2),
            (Place::Connects, VERSION) => (Place::Unknown, "connect", with_address(bytes)?),
            _ => return Err(Step::Wrong),
        };
        self.sides[Side::Server as usize] = next;
        Ok((kind, len))
    }
}

/// The length of a message that ends with an address and a port.
fn with_address(bytes: &[u8]) -> Result<u64, Step> {
    let &[_, _, reserved, kind, first, ..] = bytes else { return Err(Step::Need) };
    let address = match kind {
        _ if reserved != 0 => return Err(Step::Wrong),
        IPV4 => 4,
        NAME => 1 + u64::from(first),
        IPV6 => 16,
        _ => return Err(Step::Wrong),
    };
    Ok(ADDRESS_AT as u64 + address + PORT_LEN)
}
