//! How are two endpoints hashed, so that nobody can make a capture whose connections collide?

use std::hash::{BuildHasher, Hasher};

use tcpwhy_wire::Endpoint;

/// Hash keys: nobody who does not know them can make a capture that collides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys([u64; 4]);

/// The hash of two endpoints, the same for both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mixed {
    /// Of their hosts alone.
    pub hosts: u64,
    /// Of hosts and ports.
    pub ends: u64,
}

impl Keys {
    pub(crate) fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 4].map(|()| split_mix(&mut state)))
    }

    #[inline]
    pub(crate) fn mix(&self, a: Endpoint, b: Endpoint) -> Mixed {
        let [k0, k1, k2, k3] = self.0;
        let host = |addr: u128| fold(addr as u64 ^ k0, (addr >> 64) as u64 ^ k1);
        let end = |host: u64, port: u16| fold(host ^ k2, u64::from(port) ^ k3);
        let (host_a, host_b) = (host(a.addr), host(b.addr));
        let ends = end(host_a, a.port).wrapping_add(end(host_b, b.port));
        Mixed { hosts: host_a.wrapping_add(host_b), ends }
    }
}

/// Maps of hosts use the same keys.
impl BuildHasher for Keys {
    type Hasher = KeyedHasher;

    fn build_hasher(&self) -> KeyedHasher {
        let [k0, k1, k2, _] = self.0;
        KeyedHasher { state: k2, keys: [k0, k1] }
    }
}

/// Folds one number after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyedHasher {
    state: u64,
    keys: [u64; 2],
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write_u128(&mut self, n: u128) {
        let [k0, k1] = self.keys;
        self.state = fold(self.state ^ fold(n as u64 ^ k0, (n >> 64) as u64 ^ k1), k0 | 1);
    }

    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.state = fold(self.state ^ u64::from(n), self.keys[0] | 1);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u128(u128::from(*byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

impl Mixed {
    /// The slot that a table tries first.
    #[inline]
    pub(crate) fn hash(self) -> u32 {
        (self.ends >> 32) as u32
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Steele, Lea and Flood: Fast splittable pseudorandom number generators, 2014.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
