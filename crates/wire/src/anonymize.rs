//! How are addresses replaced so that the network structure stays and nobody can be identified?
//!
//! Prefix by prefix (Xu, Fan, Ammar and Moon, Prefix-Preserving IP Address Anonymization, 2002,
//! with SipHash-2-4 as the cipher): two addresses of one network stay in one network, an address
//! has the same replacement everywhere, and the original cannot be recovered without the key. Ports
//! stay, because they name the service, unless they are to be replaced as well.

use std::collections::BTreeMap;
use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;
use siphasher::sip128::{Hasher128 as _, SipHasher24 as Digest};

use crate::{Endpoint, Segment};

/// Addresses remembered; further ones are computed again each time.
const REMEMBERED: usize = 1 << 16;
/// The IPv4-mapped prefix of an IPv6 address.
const V4_MAPPED: u128 = 0xffff << 32;

/// Replaces addresses under one key.
#[derive(Clone, Debug)]
pub struct Anonymizer {
    key: [u8; 16],
    ports: bool,
    known: BTreeMap<u128, u128>,
}

/// A key derived from any secret.
pub fn key_of(secret: &[u8]) -> [u8; 16] {
    let mut digest = Digest::new();
    digest.write(secret);
    digest.finish128().as_bytes()
}

impl Anonymizer {
    /// Uses this key; replaces ports as well if `ports` is set.
    pub const fn new(key: [u8; 16], ports: bool) -> Self {
        Self { key, ports, known: BTreeMap::new() }
    }

    /// The segment with replaced endpoints.
    pub fn segment(&mut self, segment: &Segment) -> Segment {
        Segment { src: self.endpoint(segment.src), dst: self.endpoint(segment.dst), ..*segment }
    }

    /// The replacement of an endpoint, always the same one.
    pub fn endpoint(&mut self, endpoint: Endpoint) -> Endpoint {
        let port = if self.ports { self.port(endpoint.port) } else { endpoint.port };
        Endpoint { addr: self.address(endpoint.addr), port }
    }

    fn address(&mut self, addr: u128) -> u128 {
        if let Some(known) = self.known.get(&addr) {
            return *known;
        }
        let is_v4 = addr >> 32 == V4_MAPPED >> 32;
        let bits = if is_v4 { 32 } else { 128 };
        // Each bit is flipped or not, depending on the bits before it.
        let other = (0..bits).fold(addr, |other, bit| {
            let shift = bits - bit;
            let prefix = addr.checked_shr(shift).unwrap_or(0);
            other ^ u128::from(self.hash(bits as u8, bit as u8, prefix) & 1) << (shift - 1)
        });
        if self.known.len() < REMEMBERED {
            self.known.insert(addr, other);
        }
        other
    }

    /// A Feistel network of four rounds over the two bytes: no two ports map to the same one.
    fn port(&self, port: u16) -> u16 {
        let [left, right] = port.to_be_bytes();
        let round =
            |(left, right): (u8, u8), round: u8| (right, left ^ self.hash(1, round, u128::from(right)) as u8);
        let (left, right) = (0..4).fold((left, right), round);
        u16::from_be_bytes([left, right])
    }

    fn hash(&self, what: u8, at: u8, prefix: u128) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(&[what, at]);
        hasher.write(&prefix.to_be_bytes());
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn v4(address: [u8; 4]) -> u128 {
        Endpoint::v4(address, 0).addr
    }

    #[test]
    fn networks_stay_networks_and_one_is_always_the_same() {
        let mut names = Anonymizer::new(key_of(b"secret"), false);
        let addresses = [[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 7, 1], [10, 200, 0, 1], [192, 168, 0, 1]];
        let others = addresses.map(|address| names.address(v4(address)));
        for (i, a) in addresses.iter().enumerate() {
            for (j, b) in addresses.iter().enumerate() {
                let common = |a: u128, b: u128| (a ^ b).leading_zeros();
                assert_eq!(common(v4(*a), v4(*b)), common(others[i], others[j]), "{a:?} {b:?}");
            }
        }
        assert!(others.iter().all(|other| other >> 32 == V4_MAPPED >> 32), "IPv4 stays IPv4");
        let mut again = Anonymizer::new(key_of(b"secret"), false);
        assert_eq!(again.address(v4([10, 0, 7, 1])), others[2]);
        let mut other_key = Anonymizer::new(key_of(b"Secret"), false);
        assert_ne!(other_key.address(v4([10, 0, 7, 1])), others[2]);
        let six = Endpoint::v6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 443);
        let near = Endpoint { addr: six.addr + 1, ..six };
        assert_eq!(
            (names.address(six.addr) ^ names.address(near.addr)).leading_zeros(),
            (six.addr ^ near.addr).leading_zeros()
        );
    }

    #[test]
    fn ports_stay_unless_asked_and_never_meet() {
        let mut names = Anonymizer::new([7; 16], false);
        assert_eq!(names.endpoint(Endpoint::v4([10, 0, 0, 1], 443)).port, 443);
        let names = Anonymizer::new([7; 16], true);
        let ports: BTreeSet<u16> = (0..=u16::MAX).map(|port| names.port(port)).collect();
        assert_eq!(ports.len(), 1 << 16);
    }
}
