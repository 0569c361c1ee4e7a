//! How do packets leave one host's kernel and enter another's? Through a TUN interface, with the
//! virtio header that allows checksums and segmentation to be left undone between two hosts on one
//! machine.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tcpwhy_twin::path::Offload;

use crate::{Error, sys};

/// The read and write end of a TUN interface. The interface goes away with it.
#[derive(Debug)]
pub(crate) struct Tun {
    fd: OwnedFd,
}

/// The work that the sending kernel leaves to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Checksums only: every packet comes as it would on a wire.
    Checksums,
    /// Checksums and segmentation: one read may bring a super-segment of up to 64 KiB.
    Segmentation,
}

impl Tun {
    /// Creates the interface `name` in the calling thread's network namespace, still down.
    pub(crate) fn create(name: &str, leave: Leave) -> Result<Self, Error> {
        let remedy = "Run it as root, or let this user open the device: chmod 666 /dev/net/tun (it gives no rights \
                      over existing interfaces)";
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty())
            .map_err(Error::permitted("open /dev/net/tun", remedy))?;
        sys::tun_create(&fd, name).map_err(Error::permitted("create a TUN interface", remedy))?;
        let features = match leave {
            Leave::Checksums => TUN_F_CSUM,
            Leave::Segmentation => TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6,
        };
        sys::tun_set_offload(&fd, features).map_err(Error::step("set the TUN interface's offloads"))?;
        Ok(Self { fd })
    }

    /// Reads a packet into `buffer` (of at least [`MAX_PACKET`] bytes), if one is waiting.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<Option<(usize, Offload)>, Errno> {
        let mut header = [0; HEADER];
        let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
        match rustix::io::readv(&self.fd, &mut parts) {
            Ok(len) => Ok(Some((len.saturating_sub(HEADER), decode(header)))),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands a packet to the kernel, which receives it before this returns.
    pub(crate) fn write(&self, packet: &[u8], offload: Offload) -> Result<(), Errno> {
        let header = encode(offload);
        rustix::io::writev(&self.fd, &[IoSlice::new(&header), IoSlice::new(packet)]).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The longest packet: the length field of IP has 16 bits.
pub(crate) const MAX_PACKET: usize = 65_535 + 40;

/// Length of `struct virtio_net_hdr` (virtio 1.2, 5.1.6, without `num_buffers`), in this machine's byte order.
const HEADER: usize = 10;

fn decode(header: [u8; HEADER]) -> Offload {
    let [flags, gso_type, l0, l1, g0, g1, s0, s1, o0, o1] = header;
    Offload {
        flags,
        gso_type,
        header_len: u16::from_ne_bytes([l0, l1]),
        gso_size: u16::from_ne_bytes([g0, g1]),
        csum_start: u16::from_ne_bytes([s0, s1]),
        csum_offset: u16::from_ne_bytes([o0, o1]),
    }
}

fn encode(offload: Offload) -> [u8; HEADER] {
    let [l0, l1] = offload.header_len.to_ne_bytes();
    let [g0, g1] = offload.gso_size.to_ne_bytes();
    let [s0, s1] = offload.csum_start.to_ne_bytes();
    let [o0, o1] = offload.csum_offset.to_ne_bytes();
    [offload.flags, offload.gso_type, l0, l1, g0, g1, s0, s1, o0, o1]
}

/// linux/if_tun.h
const TUN_F_CSUM: u32 = 0x01;
const TUN_F_TSO4: u32 = 0x02;
const TUN_F_TSO6: u32 = 0x04;
