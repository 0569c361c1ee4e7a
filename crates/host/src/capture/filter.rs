//! Which packets should the kernel copy into the ring? Classic BPF, assembled for TCP and optionally one host
//! or port, or any of several ends.
//!
//! Every load is relative to the network header (`SKF_NET_OFF`) and the protocol comes from the packet's
//! metadata (`SKF_AD_PROTOCOL`, Documentation/networking/filter.rst), so one program serves Ethernet,
//! loopback, TUN and `any`. Packets that the filter cannot judge (ports after an IPv6 extension header, in a
//! later fragment, or inside a second VLAN tag) are kept: the analysis counts and names them, and a packet
//! that never reached the ring could not be named.

use std::fmt;
use std::net::IpAddr;

/// What to keep. The default is every TCP packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only packets from or to this address.
    pub host: Option<IpAddr>,
    /// Only packets from or to this TCP port.
    pub port: Option<u16>,
    /// Only packets from or to one of these ends; with an empty list, none.
    pub one_of: Option<Vec<End>>,
}

/// One end of a connection: a port, at one address or at any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct End {
    /// The address.
    pub host: Option<IpAddr>,
    /// The TCP port.
    pub port: u16,
}

/// The kernel rejects programs longer than 4,096 instructions (BPF_MAXINSNS); an end takes at most 28.
const ENDS_MAX: usize = 128;

impl fmt::Display for Filter {
    /// In tcpdump's language, for the capture's interface description.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tcp")?;
        if let Some(host) = self.host {
            write!(f, " and host {host}")?;
        }
        if let Some(port) = self.port {
            write!(f, " and port {port}")?;
        }
        let Some(ends) = self.ends() else { return Ok(()) };
        let told = ends.iter().map(|end| match end.host {
            Some(host) => format!("(host {host} and port {})", end.port),
            None => format!("port {}", end.port),
        });
        write!(f, " and ({})", told.collect::<Vec<_>>().join(" or "))
    }
}

/// One instruction, laid out as `struct sock_filter` (include/uapi/linux/filter.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Instruction {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    k: u32,
}

impl Filter {
    /// The ends, as far as they fit into a program: if too many, their ports; if still too many, all.
    fn ends(&self) -> Option<Vec<End>> {
        let mut ends = self.one_of.clone()?;
        if ends.len() > ENDS_MAX {
            ends = ends.into_iter().map(|end| End { host: None, ..end }).collect();
            ends.sort_unstable();
            ends.dedup();
        }
        (ends.len() <= ENDS_MAX).then_some(ends)
    }

    /// The program. It returns how many bytes to keep: `snaplen`, or none. With `interfaces`, only theirs.
    pub(super) fn assemble(&self, snaplen: u32, interfaces: &[i32]) -> Vec<Instruction> {
        let mut program = Program::default();
        if !interfaces.is_empty() {
            let one_of_them = program.label();
            program.load_word(SKF_AD_IFINDEX);
            for index in interfaces {
                program.jump_if_equal(index.cast_unsigned(), one_of_them);
            }
            program.jump(DROP);
            program.bind(one_of_them);
        }
        // Loopback delivers each packet twice, outgoing and incoming: keep the incoming one, as libpcap does.
        // Every network namespace's loopback has index 1 (LOOPBACK_IFINDEX): the rule holds on `any` as well.
        let not_loopback = program.label();
        program.load_word(SKF_AD_IFINDEX);
        program.jump_unless_equal(LOOPBACK_IFINDEX, not_loopback);
        program.load_byte(SKF_AD_PKTTYPE);
        program.jump_if_equal(PACKET_OUTGOING, DROP);
        program.bind(not_loopback);

        let (v6, other) = (program.label(), program.label());
        program.load_half(SKF_AD_PROTOCOL);
        program.jump_unless_equal(ETH_P_IP, v6);
        self.v4(&mut program);
        program.bind(v6);
        program.jump_unless_equal(ETH_P_IPV6, other);
        self.v6(&mut program);
        program.bind(other);
        // The outer tag is always removed before the tap (skb_vlan_untag): these packets had two tags.
        program.jump_if_equal(ETH_P_8021Q, KEEP);
        program.jump_if_equal(ETH_P_8021AD, KEEP);
        program.jump(DROP);
        program.finish(snaplen)
    }

    /// The accumulator holds the protocol; leaves by KEEP or DROP.
    fn v4(&self, program: &mut Program) {
        program.load_byte(NET + 9);
        program.jump_unless_equal(IPPROTO_TCP, DROP);
        match self.host {
            Some(IpAddr::V4(host)) => program.either_word(NET + 12, NET + 16, u32::from(host)),
            Some(IpAddr::V6(_)) => return program.jump(DROP),
            None => {}
        }
        let ends = self.ends();
        if self.port.is_none() && ends.is_none() {
            return program.jump(KEEP);
        }
        // A later fragment has no ports.
        program.load_half(NET + 6);
        program.jump_if_any(0x1fff, KEEP);
        program.load_byte(NET);
        program.and(0x0f);
        program.shift_left(2);
        program.copy_to_index();
        let ports: [Load; 2] =
            [|program| program.load_half_indexed(NET), |program| program.load_half_indexed(NET + 2)];
        self.has_port(program, ports, ends.is_some());
        for End { host, port } in ends.unwrap_or_default() {
            let words: &[u32] = match host {
                Some(IpAddr::V4(host)) => &[u32::from(host)],
                Some(IpAddr::V6(_)) => continue,
                None => &[],
            };
            program.either_end([NET + 12, NET + 16], words, ports, port);
        }
        program.jump(DROP);
    }

    /// The accumulator holds the protocol; leaves by KEEP or DROP.
    fn v6(&self, program: &mut Program) {
        match self.host {
            Some(IpAddr::V6(host)) => program.either_address(NET + 8, NET + 24, host.octets()),
            Some(IpAddr::V4(_)) => return program.jump(DROP),
            None => {}
        }
        program.load_byte(NET + 6);
        for extension in IPV6_EXTENSIONS {
            program.jump_if_equal(extension, KEEP);
        }
        program.jump_unless_equal(IPPROTO_TCP, DROP);
        let ends = self.ends();
        if self.port.is_none() && ends.is_none() {
            return program.jump(KEEP);
        }
        let ports: [Load; 2] = [|program| program.load_half(NET + 40), |program| program.load_half(NET + 42)];
        self.has_port(program, ports, ends.is_some());
        for End { host, port } in ends.unwrap_or_default() {
            let words = match host {
                Some(IpAddr::V6(host)) => {
                    host.octets().as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect()
                }
                Some(IpAddr::V4(_)) => continue,
                None => Vec::new(),
            };
            program.either_end([NET + 8, NET + 24], &words, ports, port);
        }
        program.jump(DROP);
    }

    /// Continues if no port is required, or if either port matches and `more` is asked; otherwise leaves.
    fn has_port(&self, program: &mut Program, ports: [Load; 2], more: bool) {
        let Some(port) = self.port.map(u32::from) else { return };
        let found = if more { program.label() } else { KEEP };
        for load in ports {
            load(program);
            program.jump_if_equal(port, found);
        }
        program.jump(DROP);
        if more {
            program.bind(found);
        }
    }
}

/// A program that keeps nothing: packets on their way through the tap drain, and none follow.
pub(super) fn drop_all() -> Vec<Instruction> {
    vec![Instruction { code: RET_K, jump_true: 0, jump_false: 0, k: 0 }]
}

/// A jump target, bound once and always forward, as classic BPF requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Label(usize);

const KEEP: Label = Label(0);
const DROP: Label = Label(1);

/// Instructions whose jumps still refer to labels.
struct Program {
    steps: Vec<Step>,
    labels: Vec<Option<usize>>,
}

/// An instruction, and the targets of its branches unless they are the next one.
struct Step {
    code: u16,
    k: u32,
    on_true: Option<Label>,
    on_false: Option<Label>,
}

/// Loads something into the accumulator.
type Load = fn(&mut Program);

impl Default for Program {
    fn default() -> Self {
        Self { steps: Vec::new(), labels: vec![None, None] }
    }
}

impl Program {
    fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    fn bind(&mut self, label: Label) {
        self.labels[label.0] = Some(self.steps.len());
    }

    fn push(&mut self, code: u16, k: u32) {
        self.steps.push(Step { code, k, on_true: None, on_false: None });
    }

    fn load_word(&mut self, offset: u32) {
        self.push(LD_W_ABS, offset);
    }

    fn load_half(&mut self, offset: u32) {
        self.push(LD_H_ABS, offset);
    }

    fn load_byte(&mut self, offset: u32) {
        self.push(LD_B_ABS, offset);
    }

    fn load_half_indexed(&mut self, offset: u32) {
        self.push(LD_H_IND, offset);
    }

    fn and(&mut self, mask: u32) {
        self.push(AND_K, mask);
    }

    fn shift_left(&mut self, bits: u32) {
        self.push(LSH_K, bits);
    }

    fn copy_to_index(&mut self) {
        self.push(TAX, 0);
    }

    fn jump_if_equal(&mut self, value: u32, to: Label) {
        self.steps.push(Step { code: JEQ_K, k: value, on_true: Some(to), on_false: None });
    }

    fn jump_unless_equal(&mut self, value: u32, to: Label) {
        self.steps.push(Step { code: JEQ_K, k: value, on_true: None, on_false: Some(to) });
    }

    fn jump_if_any(&mut self, mask: u32, to: Label) {
        self.steps.push(Step { code: JSET_K, k: mask, on_true: Some(to), on_false: None });
    }

    fn jump(&mut self, to: Label) {
        self.steps.push(Step { code: JA, k: 0, on_true: Some(to), on_false: None });
    }

    /// Goes to KEEP if one side has the address at its offset and the port; otherwise continues.
    fn either_end(&mut self, addresses: [u32; 2], words: &[u32], ports: [Load; 2], port: u16) {
        for (address, load_port) in addresses.into_iter().zip(ports) {
            let other = self.label();
            for (at, word) in (address..).step_by(4).zip(words) {
                self.load_word(at);
                self.jump_unless_equal(*word, other);
            }
            load_port(self);
            self.jump_if_equal(u32::from(port), KEEP);
            self.bind(other);
        }
    }

    /// Continues if the word at either offset has the value; otherwise goes to DROP.
    fn either_word(&mut self, first: u32, second: u32, value: u32) {
        let found = self.label();
        self.load_word(first);
        self.jump_if_equal(value, found);
        self.load_word(second);
        self.jump_unless_equal(value, DROP);
        self.bind(found);
    }

    /// The same for sixteen bytes.
    fn either_address(&mut self, first: u32, second: u32, address: [u8; 16]) {
        let (try_second, found) = (self.label(), self.label());
        for (start, otherwise) in [(first, try_second), (second, DROP)] {
            for (i, word) in address.as_chunks::<4>().0.iter().enumerate() {
                self.load_word(start + 4 * i as u32);
                self.jump_unless_equal(u32::from_be_bytes(*word), otherwise);
            }
            if start == first {
                self.jump(found);
                self.bind(try_second);
            }
        }
        self.bind(found);
    }

    /// Adds the two exits and turns labels into distances. A branch reaches 255 instructions; a longer one
    /// becomes a branch around an unconditional jump, which reaches any distance.
    fn finish(mut self, snaplen: u32) -> Vec<Instruction> {
        self.bind(KEEP);
        self.push(RET_K, snaplen);
        self.bind(DROP);
        self.push(RET_K, 0);
        let mut far = vec![false; self.steps.len()];
        loop {
            // The index of each step's first instruction.
            let places: Vec<usize> = far
                .iter()
                .scan(0, |at, far| {
                    let here = *at;
                    *at += 1 + usize::from(*far);
                    Some(here)
                })
                .collect();
            let target = |label: Label| {
                places[self.labels[label.0].expect("every label is bound before the program is finished")]
            };
            let distance = |i: usize, label: Label| target(label) - places[i] - 1;
            let grown: Vec<bool> = self
                .steps
                .iter()
                .enumerate()
                .map(|(i, step)| {
                    let reaches = |label: Label| u8::try_from(distance(i, label)).is_ok();
                    step.code != JA && !step.on_true.or(step.on_false).is_none_or(reaches)
                })
                .collect();
            if grown != far {
                // More instructions only push targets farther away, so this ends.
                far.iter_mut().zip(grown).for_each(|(far, grown)| *far |= grown);
                continue;
            }
            return self
                .steps
                .iter()
                .enumerate()
                .flat_map(|(i, step)| step.resolved(far[i], |label| distance(i, label)))
                .collect();
        }
    }
}

impl Step {
    /// One instruction, or two if its target is far; `distance` counts from the first of them.
    fn resolved(&self, is_far: bool, distance: impl Fn(Label) -> usize) -> Vec<Instruction> {
        let Self { code, k, on_true, on_false } = *self;
        let plain = |code, k, jump_true, jump_false| Instruction { code, jump_true, jump_false, k };
        let near = |label: Option<Label>| label.map_or(0, |label| distance(label) as u8);
        match (on_true, on_false) {
            (Some(to), _) if code == JA => vec![plain(JA, distance(to) as u32, 0, 0)],
            (Some(to), _) if is_far => vec![plain(code, k, 0, 1), plain(JA, distance(to) as u32 - 1, 0, 0)],
            (None, Some(to)) if is_far => {
                vec![plain(code, k, 1, 0), plain(JA, distance(to) as u32 - 1, 0, 0)]
            }
            _ => vec![plain(code, k, near(on_true), near(on_false))],
        }
    }
}

// include/uapi/linux/filter.h: special offsets, which are not bytes of the packet.
const SKF_AD: u32 = 0xffff_f000;
const SKF_AD_PROTOCOL: u32 = SKF_AD;
const SKF_AD_PKTTYPE: u32 = SKF_AD + 4;
const SKF_AD_IFINDEX: u32 = SKF_AD + 8;
const NET: u32 = 0xfff0_0000;

const LOOPBACK_IFINDEX: u32 = 1;
const PACKET_OUTGOING: u32 = 4;
const ETH_P_IP: u32 = 0x0800;
const ETH_P_IPV6: u32 = 0x86dd;
const ETH_P_8021Q: u32 = 0x8100;
const ETH_P_8021AD: u32 = 0x88a8;
const IPPROTO_TCP: u32 = 6;
/// Hop-by-hop, routing, fragment, destination options, mobility (RFC 8200, 4.1; RFC 6275).
const IPV6_EXTENSIONS: [u32; 5] = [0, 43, 44, 60, 135];

// include/uapi/linux/bpf_common.h
const LD_W_ABS: u16 = 0x20;
const LD_H_ABS: u16 = 0x28;
const LD_B_ABS: u16 = 0x30;
const LD_H_IND: u16 = 0x48;
const AND_K: u16 = 0x54;
const LSH_K: u16 = 0x64;
const TAX: u16 = 0x07;
const JA: u16 = 0x05;
const JEQ_K: u16 = 0x15;
const JSET_K: u16 = 0x45;
const RET_K: u16 = 0x06;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program by the rules of classic BPF, over an IP packet and the kernel's metadata.
    fn run(program: &[Instruction], protocol: u32, pkttype: u32, ifindex: u32, packet: &[u8]) -> u32 {
        let (mut a, mut x, mut pc) = (0_u32, 0_u32, 0_usize);
        let byte = |offset: u32| packet.get((offset.wrapping_sub(NET)) as usize).map(|b| u32::from(*b));
        let half = |offset: u32| Some(byte(offset)? << 8 | byte(offset + 1)?);
        loop {
            let Instruction { code, jump_true, jump_false, k } = program[pc];
            pc += 1;
            let loaded = match code {
                RET_K => return k,
                AND_K => Some(a & k),
                LSH_K => Some(a << k),
                TAX => {
                    x = a;
                    Some(a)
                }
                JA => {
                    pc += k as usize;
                    Some(a)
                }
                JEQ_K | JSET_K => {
                    let holds = if code == JEQ_K { a == k } else { a & k != 0 };
                    pc += usize::from(if holds { jump_true } else { jump_false });
                    Some(a)
                }
                LD_H_ABS if k == SKF_AD_PROTOCOL => Some(protocol),
                LD_B_ABS if k == SKF_AD_PKTTYPE => Some(pkttype),
                LD_W_ABS if k == SKF_AD_IFINDEX => Some(ifindex),
                LD_B_ABS => byte(k),
                LD_H_ABS => half(k),
                LD_H_IND => half(x.wrapping_add(k)),
                LD_W_ABS => half(k).zip(half(k + 2)).map(|(high, low)| high << 16 | low),
                other => panic!("{other:#x} is not assembled here"),
            };
            // A load beyond the packet ends the program with 0 (filter.rst).
            let Some(value) = loaded else { return 0 };
            a = value;
        }
    }

    fn v4(protocol: u8, options: usize, fragment: u16, ports: [u16; 2]) -> Vec<u8> {
        let mut packet = vec![0; 20 + options];
        packet[0] = 0x40 | (5 + options / 4) as u8;
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[9] = protocol;
        packet[12..16].copy_from_slice(&[10, 0, 0, 1]);
        packet[16..20].copy_from_slice(&[10, 0, 0, 2]);
        packet.extend(ports.into_iter().flat_map(u16::to_be_bytes));
        packet
    }

    fn v6(next: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        packet[6] = next;
        packet[8..24].copy_from_slice(&std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).octets());
        packet[24..40].copy_from_slice(&std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).octets());
        packet.extend(ports.into_iter().flat_map(u16::to_be_bytes));
        packet
    }

    fn keeps(filter: &Filter, protocol: u32, packet: &[u8]) -> bool {
        run(&filter.assemble(96, &[]), protocol, 0, 2, packet) == 96
    }

    #[test]
    fn tcp_is_kept_and_the_rest_is_not() {
        let all = Filter::default();
        assert!(keeps(&all, ETH_P_IP, &v4(6, 0, 0, [1, 2])));
        assert!(keeps(&all, ETH_P_IPV6, &v6(6, [1, 2])));
        assert!(!keeps(&all, ETH_P_IP, &v4(17, 0, 0, [1, 2])));
        assert!(!keeps(&all, ETH_P_IPV6, &v6(17, [1, 2])));
        assert!(!keeps(&all, 0x0806, &[0; 28]));
    }

    #[test]
    fn a_port_is_found_behind_ip_options_and_on_either_side() {
        let port = Filter { port: Some(8080), ..Filter::default() };
        for options in [0, 12] {
            assert!(keeps(&port, ETH_P_IP, &v4(6, options, 0, [8080, 2])));
            assert!(keeps(&port, ETH_P_IP, &v4(6, options, 0, [1, 8080])));
            assert!(!keeps(&port, ETH_P_IP, &v4(6, options, 0, [1, 2])));
        }
        assert!(keeps(&port, ETH_P_IPV6, &v6(6, [1, 8080])));
        assert!(!keeps(&port, ETH_P_IPV6, &v6(6, [1, 2])));
    }

    #[test]
    fn what_the_filter_cannot_see_passes() {
        let port = Filter { port: Some(8080), ..Filter::default() };
        assert!(keeps(&port, ETH_P_IP, &v4(6, 0, 185, [1, 2])), "a later fragment has no ports");
        assert!(keeps(&port, ETH_P_IPV6, &v6(60, [1, 2])), "ports stand behind an extension header");
        assert!(keeps(&port, ETH_P_8021Q, &[0; 40]), "a second VLAN tag");
    }

    #[test]
    fn a_host_is_found_on_either_side_of_its_own_family() {
        for (host, v4_kept, v6_kept) in [
            ("10.0.0.1", true, false),
            ("10.0.0.2", true, false),
            ("10.0.0.3", false, false),
            ("fd00::1", false, true),
            ("fd00::2", false, true),
            ("fd00::3", false, false),
        ] {
            let filter = Filter { host: host.parse().ok(), ..Filter::default() };
            assert_eq!(keeps(&filter, ETH_P_IP, &v4(6, 0, 0, [1, 2])), v4_kept, "{filter}");
            assert_eq!(keeps(&filter, ETH_P_IPV6, &v6(6, [1, 2])), v6_kept, "{filter}");
        }
    }

    #[test]
    fn loopback_is_kept_once() {
        let program = Filter::default().assemble(96, &[]);
        let packet = v4(6, 0, 0, [1, 2]);
        assert_eq!(run(&program, ETH_P_IP, PACKET_OUTGOING, 1, &packet), 0, "loopback, on its way out");
        assert_eq!(run(&program, ETH_P_IP, 0, 1, &packet), 96, "loopback, on its way in");
        assert_eq!(
            run(&program, ETH_P_IP, PACKET_OUTGOING, 2, &packet),
            96,
            "another interface, on its way out"
        );
    }

    const fn end(host: Option<IpAddr>, port: u16) -> End {
        End { host, port }
    }

    #[test]
    fn an_end_is_an_address_and_a_port_of_the_same_side() {
        let of = |host: &str, port| Filter {
            one_of: Some(vec![end(host.parse().ok(), port)]),
            ..Filter::default()
        };
        for (filter, v4_kept, v6_kept) in [
            (of("10.0.0.1", 1), true, false),
            (of("10.0.0.2", 2), true, false),
            (of("10.0.0.1", 2), false, false),
            (of("fd00::1", 1), false, true),
            (of("fd00::2", 2), false, true),
            (of("fd00::2", 1), false, false),
            (of("", 2), true, true),
            (of("", 3), false, false),
            (Filter { one_of: Some(Vec::new()), ..Filter::default() }, false, false),
            (Filter { port: Some(2), ..of("", 1) }, true, true),
            (Filter { port: Some(3), ..of("", 1) }, false, false),
        ] {
            assert_eq!(keeps(&filter, ETH_P_IP, &v4(6, 4, 0, [1, 2])), v4_kept, "{filter}");
            assert_eq!(keeps(&filter, ETH_P_IPV6, &v6(6, [1, 2])), v6_kept, "{filter}");
        }
    }

    #[test]
    fn as_many_ends_as_may_be_fit_the_kernel_and_more_are_widened_to_their_ports() {
        let many = |hosts: u16| {
            let v6 = |n| end(Some(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 1, n).into()), 443);
            Filter { one_of: Some((0..hosts).map(v6).chain([end(None, 1)]).collect()), ..Filter::default() }
        };
        let most = many(ENDS_MAX as u16 - 1);
        let length = most.assemble(96, &[3, 4]).len();
        assert!((1_000..4_096).contains(&length), "{length}");
        assert!(keeps(&most, ETH_P_IPV6, &v6(6, [1, 2])), "the last of them");
        assert!(keeps(&most, ETH_P_IP, &v4(6, 0, 0, [9, 1])));
        assert!(!keeps(&most, ETH_P_IPV6, &v6(6, [443, 2])), "another address");
        assert!(keeps(&many(400), ETH_P_IPV6, &v6(6, [443, 2])), "any address");
        assert!(!keeps(&many(400), ETH_P_IPV6, &v6(6, [444, 2])));
    }

    #[test]
    fn the_filter_is_written_as_tcpdump_has_it() {
        let filter = Filter { host: "fd00::1".parse().ok(), port: Some(80), ..Filter::default() };
        assert_eq!(filter.to_string(), "tcp and host fd00::1 and port 80");
        let ends = vec![end(None, 8080), end("10.0.0.2".parse().ok(), 5432)];
        let filter = Filter { one_of: Some(ends), ..Filter::default() };
        assert_eq!(filter.to_string(), "tcp and (port 8080 or (host 10.0.0.2 and port 5432))");
    }
}
