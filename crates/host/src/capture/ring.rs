//! How do packets get from the kernel into our memory without a system call each? A TPACKET_V3 ring
//! (Documentation/networking/packet_mmap.rst): the kernel fills blocks, hands over a full or aged one, and gets it back.
//!
//! The only unsafe code of this crate. Everything above works on plain byte slices.
#![expect(
    unsafe_code,
    reason = "AF_PACKET rings have no safe interface: socket options by struct, mmap, shared status words"
)]

use std::ffi::CString;
use std::io;
use std::mem::{offset_of, size_of, size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::filter::Instruction;

/// A failed system call and its name.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {source}")]
pub struct CallError {
    /// The call, with its option.
    pub call: &'static str,
    /// The kernel's error.
    pub source: io::Error,
}

/// An interface of the calling thread's network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    /// `ifindex`.
    pub(super) index: i32,
    /// `ARPHRD_*`.
    pub(super) hardware: u16,
    /// `IFF_UP`.
    pub(super) up: bool,
}

/// Whether the ring sees link headers or begins at the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// `SOCK_RAW`.
    Link,
    /// `SOCK_DGRAM`.
    Network,
}

/// The layout of the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Bytes per block: a multiple of the page size.
    pub(super) block_bytes: u32,
    /// Number of blocks.
    pub(super) blocks: u32,
    /// A block with packets is handed over after this long, full or not.
    pub(super) retire_ms: u32,
}

/// Counts since the last query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Passed the filter and went into the ring.
    pub(super) stored: u64,
    /// Passed the filter and found the ring full.
    pub(super) dropped: u64,
}

/// A packet socket that is not yet bound: it receives nothing.
pub(super) struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    pub(super) fn open(framing: Framing) -> Result<Self, CallError> {
        let kind = match framing {
            Framing::Link => libc::SOCK_RAW,
            Framing::Network => libc::SOCK_DGRAM,
        };
        // Protocol 0: nothing arrives before the filter and the ring are in place.
        // SAFETY: no pointers; the result is checked before it is owned.
        let fd = check("socket(AF_PACKET)", unsafe {
            libc::socket(libc::AF_PACKET, kind | libc::SOCK_CLOEXEC, 0)
        })?;
        // SAFETY: a fresh descriptor, not owned by anything else.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Replaces the filter at once; packets already in the ring stay.
    pub(super) fn set_filter(&self, program: &[Instruction]) -> Result<(), CallError> {
        let filter = libc::sock_fprog {
            len: program.len() as u16,
            // The kernel copies the program and does not write to it.
            filter: program.as_ptr().cast_mut().cast(),
        };
        self.set("setsockopt(SO_ATTACH_FILTER)", libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
    }

    /// Sets up the ring and starts to receive: when this returns, the next packet is captured.
    pub(super) fn into_ring(self, interface_index: i32, layout: Layout) -> Result<Ring, CallError> {
        let version = libc::tpacket_versions::TPACKET_V3 as libc::c_int;
        self.set("setsockopt(PACKET_VERSION)", libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let request = libc::tpacket_req3 {
            tp_block_size: layout.block_bytes,
            tp_block_nr: layout.blocks,
            // Only checked for consistency: V3 packs frames of any length into a block.
            tp_frame_size: FRAME_BYTES,
            tp_frame_nr: layout.block_bytes / FRAME_BYTES * layout.blocks,
            tp_retire_blk_tov: layout.retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        self.set("setsockopt(PACKET_RX_RING)", libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let bytes = layout.block_bytes as usize * layout.blocks as usize;
        let map = Mapping::new(self.fd.as_fd(), bytes)?;
        self.bind(interface_index)?;
        Ok(Ring {
            socket: self,
            map,
            block_bytes: layout.block_bytes as usize,
            blocks: layout.blocks as usize,
            next: 0,
        })
    }

    /// From now on receives only packets of the interface with this index (0: all). Needs no rights
    /// but the socket.
    fn bind(&self, interface_index: i32) -> Result<(), CallError> {
        // SAFETY: all zeroes is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface_index;
        // SAFETY: the address is a live sockaddr_ll of the length given.
        let bound = unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of_val(&address) as libc::socklen_t,
            )
        };
        check("bind(AF_PACKET)", bound).map(drop)
    }

    fn set<T>(&self, call: &'static str, level: i32, option: i32, value: &T) -> Result<(), CallError> {
        // SAFETY: the value outlives the call and its true size is given.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        check(call, result).map(drop)
    }

    /// Looks up an interface. `None` if this network namespace has none of that name.
    pub(super) fn interface(&self, name: &str) -> Result<Option<Interface>, CallError> {
        let Some(mut request) = interface_request(name) else { return Ok(None) };
        let mut ask = |call, number| {
            // SAFETY: these three requests read the name and write the union of a live ifreq.
            check(call, unsafe { libc::ioctl(self.fd.as_raw_fd(), number, &raw mut request) })?;
            Ok(request.ifr_ifru)
        };
        let answer = match ask("ioctl(SIOCGIFINDEX)", libc::SIOCGIFINDEX) {
            Err(CallError { source, .. }) if source.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
            answer => answer?,
        };
        // SAFETY: SIOCGIFINDEX filled this member.
        let index = unsafe { answer.ifru_ifindex };
        // SAFETY: SIOCGIFHWADDR filled this member.
        let hardware = unsafe { ask("ioctl(SIOCGIFHWADDR)", libc::SIOCGIFHWADDR)?.ifru_hwaddr.sa_family };
        // SAFETY: SIOCGIFFLAGS filled this member.
        let flags = unsafe { ask("ioctl(SIOCGIFFLAGS)", libc::SIOCGIFFLAGS)?.ifru_flags };
        Ok(Some(Interface { index, hardware, up: i32::from(flags) & libc::IFF_UP != 0 }))
    }
}

/// The names of the calling thread's network interfaces; empty if they cannot be listed.
pub(super) fn interface_names() -> Vec<String> {
    // SAFETY: the list is read up to its terminator (index 0, no name) and freed once.
    unsafe {
        let list = libc::if_nameindex();
        let mut names = Vec::new();
        let mut entry = list;
        while !entry.is_null() && (*entry).if_index != 0 {
            names.push(std::ffi::CStr::from_ptr((*entry).if_name).to_string_lossy().into_owned());
            entry = entry.add(1);
        }
        if !list.is_null() {
            libc::if_freenameindex(list);
        }
        names
    }
}

/// An `ifreq` with this name; `None` if no interface can have it.
fn interface_request(name: &str) -> Option<libc::ifreq> {
    let name = CString::new(name).ok()?;
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { zeroed() };
    let bytes = name.as_bytes_with_nul();
    if bytes.len() > request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Some(request)
}

/// The shared memory of a ring.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned by one `Ring` and reached through `&mut Ring` only; nothing ties it
// to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(fd: BorrowedFd<'_>, bytes: usize) -> Result<Self, CallError> {
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        let failed = || CallError { call: "mmap(PACKET_RX_RING)", source: io::Error::last_os_error() };
        if start == libc::MAP_FAILED {
            return Err(failed());
        }
        Ok(Self { start: NonNull::new(start.cast()).ok_or_else(failed)?, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what mmap returned, and no slice of it outlives the ring.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A live ring. Blocks come in the order in which the kernel filled them.
pub(super) struct Ring {
    // Before the socket, so that the memory is unmapped before the socket closes.
    map: Mapping,
    socket: PacketSocket,
    block_bytes: usize,
    blocks: usize,
    next: usize,
}

/// Block header: `struct tpacket_block_desc` with `tpacket_hdr_v1` in it.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);
const PACKETS: usize = offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, num_pkts);
const FIRST: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt);
const FRAME_BYTES: u32 = 2048;

impl Ring {
    /// Passes the next block's packets to `each`, in order, and returns the block to the kernel.
    /// `false` if the kernel has not handed one over yet.
    pub(super) fn read_block<E>(
        &mut self,
        mut each: impl FnMut(Frame<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        // SAFETY: `next < blocks`, so the block is within the mapping, and blocks are page-aligned.
        let (block, status) = unsafe {
            let block = self.map.start.add(self.next * self.block_bytes);
            (block, AtomicU32::from_ptr(block.add(STATUS).as_ptr().cast()))
        };
        // Acquire: what the kernel wrote before it set the bit is visible after this load.
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return Ok(false);
        }
        // SAFETY: a block with TP_STATUS_USER belongs to user space until the bit is cleared below;
        // the slice begins after the status word and does not outlive this call.
        let bytes =
            unsafe { std::slice::from_raw_parts(block.add(PACKETS).as_ptr(), self.block_bytes - PACKETS) };
        let result = Frames::new(bytes).try_for_each(&mut each);
        // Release: every read above is done before the kernel may write again.
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
        result.map(|()| true)
    }

    /// Packets stored and dropped since the last call (the kernel resets its counters when they are
    /// read).
    pub(super) fn count(&self) -> Result<Counted, CallError> {
        // SAFETY: all zeroes is a valid tpacket_stats_v3.
        let mut stats: libc::tpacket_stats_v3 = unsafe { zeroed() };
        let mut length = size_of_val(&stats) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into the live struct.
        let result = unsafe {
            libc::getsockopt(
                self.socket.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut length,
            )
        };
        check("getsockopt(PACKET_STATISTICS)", result)?;
        // packet_getsockopt adds the drops to tp_packets.
        let dropped = u64::from(stats.tp_drops);
        Ok(Counted { stored: u64::from(stats.tp_packets).saturating_sub(dropped), dropped })
    }

    /// Takes the socket's pending error (the interface went down or away), so that polling can go on.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        let mut code: libc::c_int = 0;
        let mut length = size_of_val(&code) as libc::socklen_t;
        // SAFETY: the kernel writes an int into a live int.
        let result = unsafe {
            libc::getsockopt(
                self.socket.fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut code).cast(),
                &raw mut length,
            )
        };
        (result == 0 && code != 0).then(|| io::Error::from_raw_os_error(code))
    }

    pub(super) fn set_filter(&self, program: &[Instruction]) -> Result<(), CallError> {
        self.socket.set_filter(program)
    }

    /// See [`PacketSocket::interface`].
    pub(super) fn interface(&self, name: &str) -> Result<Option<Interface>, CallError> {
        self.socket.interface(name)
    }

    /// Continues with another interface.
    pub(super) fn bind(&self, interface_index: i32) -> Result<(), CallError> {
        self.socket.bind(interface_index)
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.fd.as_fd()
    }
}

/// One packet in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// Nanoseconds since the epoch.
    pub(super) at_ns: i64,
    /// Bytes on the link.
    pub(super) len: u32,
    /// The VLAN tag that was removed, as it was in the packet: TPID and TCI.
    pub(super) vlan: Option<[u8; 4]>,
    /// `sll_protocol`, the EtherType.
    pub(super) protocol: u16,
    /// `sll_ifindex`.
    pub(super) interface_index: u32,
    /// `ARPHRD_*` of the interface on which it was seen.
    pub(super) hardware: u16,
    /// `PACKET_HOST`, `PACKET_OUTGOING`, ...
    pub(super) direction: u8,
    /// The sender's link address and its length.
    pub(super) address: ([u8; 8], u8),
    /// The captured bytes.
    pub(super) data: &'a [u8],
}

/// Walks the packets of a block, given the block from `PACKETS` on. Offsets come from the kernel; a
/// walk that would leave the block ends.
struct Frames<'a> {
    block: &'a [u8],
    at: usize,
    left: u32,
}

impl<'a> Frames<'a> {
    fn new(block: &'a [u8]) -> Self {
        let left = u32_at(block, 0).unwrap_or(0);
        let first = u32_at(block, FIRST - PACKETS).unwrap_or(0) as usize;
        Self { block, at: first.saturating_sub(PACKETS), left }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        use libc::{sockaddr_ll, tpacket_hdr_variant1, tpacket3_hdr};
        const HV1: usize = offset_of!(tpacket3_hdr, hv1);
        const ADDRESS: usize = size_of::<tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

        self.left = self.left.checked_sub(1)?;
        let frame = self.block.get(self.at..)?;
        let seconds = u32_at(frame, offset_of!(tpacket3_hdr, tp_sec))?;
        let nanos = u32_at(frame, offset_of!(tpacket3_hdr, tp_nsec))?;
        let captured = u32_at(frame, offset_of!(tpacket3_hdr, tp_snaplen))? as usize;
        let status = u32_at(frame, offset_of!(tpacket3_hdr, tp_status))?;
        let start = usize::from(u16_at(frame, offset_of!(tpacket3_hdr, tp_mac))?);
        let vlan = (status & libc::TP_STATUS_VLAN_VALID != 0)
            .then(|| {
                let tci = u32_at(frame, HV1 + offset_of!(tpacket_hdr_variant1, tp_vlan_tci))? as u16;
                let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
                    libc::ETH_P_8021Q as u16
                } else {
                    u16_at(frame, HV1 + offset_of!(tpacket_hdr_variant1, tp_vlan_tpid))?
                };
                let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
                Some([a, b, c, d])
            })
            .flatten();
        let address = frame.get(ADDRESS..ADDRESS + size_of::<sockaddr_ll>())?;
        let found = Frame {
            at_ns: i64::from(seconds) * 1_000_000_000 + i64::from(nanos),
            len: u32_at(frame, offset_of!(tpacket3_hdr, tp_len))?,
            vlan,
            protocol: u16::from_be(u16_at(address, offset_of!(sockaddr_ll, sll_protocol))?),
            interface_index: u32_at(address, offset_of!(sockaddr_ll, sll_ifindex))?,
            hardware: u16_at(address, offset_of!(sockaddr_ll, sll_hatype))?,
            direction: *address.get(offset_of!(sockaddr_ll, sll_pkttype))?,
            address: (
                *address.get(offset_of!(sockaddr_ll, sll_addr)..)?.first_chunk()?,
                *address.get(offset_of!(sockaddr_ll, sll_halen))?,
            ),
            data: frame.get(start..start + captured)?,
        };
        match u32_at(frame, offset_of!(tpacket3_hdr, tp_next_offset))? {
            0 => self.left = 0,
            next => self.at += next as usize,
        }
        Some(found)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

fn check(call: &'static str, result: libc::c_int) -> Result<libc::c_int, CallError> {
    if result < 0 { Err(CallError { call, source: io::Error::last_os_error() }) } else { Ok(result) }
}
