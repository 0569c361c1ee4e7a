//! What do the captured bytes begin with? The link type in the capture file, and the headers that
//! the kernel removed and we restore.

use tcpwhy_wire::capture::LinkType;

use super::order::Held;
use super::ring::{Frame, Framing};

/// The format that this capture writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Ethernet, and loopback, which has an Ethernet header of zeroes.
    Ethernet,
    /// IPv4 or IPv6 with nothing before it: TUN and the other tunnels.
    Raw,
    /// The interface `any`: Linux cooked capture, version 2.
    LinuxSll2,
}

impl Link {
    /// The name in the file.
    pub(super) const fn link_type(self) -> LinkType {
        match self {
            Self::Ethernet => LinkType::ETHERNET,
            Self::Raw => LinkType::RAW,
            Self::LinuxSll2 => LinkType::LINUX_SLL2,
        }
    }

    /// The link of an interface of this kind. Anything but Ethernet is captured from its network
    /// header on: that is all that matters here, and there are some fifty link headers.
    pub(super) fn of_hardware(hardware: u16) -> Self {
        match hardware {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Self::Ethernet,
            _ => Self::Raw,
        }
    }

    pub(super) fn framing(self) -> Framing {
        match self {
            Self::Ethernet => Framing::Link,
            Self::Raw | Self::LinuxSll2 => Framing::Network,
        }
    }

    /// The packet in the form of the file.
    pub(super) fn dress(self, frame: &Frame<'_>, mut data: Vec<u8>) -> Held {
        let mut len = frame.len;
        match self {
            Self::Raw => data.extend_from_slice(frame.data),
            Self::Ethernet => match (frame.vlan, frame.data.split_at_checked(ETHERNET_ADDRESSES_BYTES)) {
                (Some(tag), Some((addresses, rest))) => {
                    data.extend_from_slice(addresses);
                    data.extend_from_slice(&tag);
                    data.extend_from_slice(rest);
                    len += tag.len() as u32;
                }
                _ => data.extend_from_slice(frame.data),
            },
            Self::LinuxSll2 => {
                data.extend_from_slice(&frame.protocol.to_be_bytes());
                data.extend_from_slice(&[0, 0]);
                data.extend_from_slice(&frame.interface_index.to_be_bytes());
                data.extend_from_slice(&frame.hardware.to_be_bytes());
                data.extend_from_slice(&[frame.direction, frame.address.1]);
                data.extend_from_slice(&frame.address.0);
                len += data.len() as u32;
                data.extend_from_slice(frame.data);
            }
        }
        Held { at_ns: frame.at_ns, len, data }
    }
}

const ETHERNET_ADDRESSES_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(data: &[u8]) -> Frame<'_> {
        Frame {
            at_ns: 7,
            len: 60,
            vlan: None,
            protocol: 0x0800,
            interface_index: 3,
            hardware: 1,
            direction: 4,
            address: ([1, 2, 3, 4, 5, 6, 0, 0], 6),
            data,
        }
    }

    #[test]
    fn a_vlan_tag_goes_back_behind_the_addresses() {
        let bytes: Vec<u8> = (0..20).collect();
        let held = Link::Ethernet.dress(&Frame { vlan: Some([0x81, 0, 0, 42]), ..frame(&bytes) }, Vec::new());
        assert_eq!(held.data[..12], bytes[..12]);
        assert_eq!(held.data[12..16], [0x81, 0, 0, 42]);
        assert_eq!(held.data[16..], bytes[12..]);
        assert_eq!(held.len, 64);
    }

    #[test]
    fn any_interface_is_dressed_as_linux_sll2() {
        // https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL2.html
        let held = Link::LinuxSll2.dress(&frame(&[0x45, 0]), Vec::new());
        #[rustfmt::skip]
        assert_eq!(held.data, [
            0x08, 0x00,              // protocol: IPv4
            0, 0,                    // reserved
            0, 0, 0, 3,              // interface index
            0, 1,                    // ARPHRD_ETHER
            4,                       // outgoing
            6,                       // address length
            1, 2, 3, 4, 5, 6, 0, 0,  // address
            0x45, 0,
        ]);
        assert_eq!(held.len, 80);
    }
}
