//! Filters: which connections they match, and what they report when they cannot be parsed.

use std::net::SocketAddr;

use proptest::prelude::*;
use tcpwhy_wire::{Endpoint, Filter};

fn endpoint(text: &str) -> Endpoint {
    let addr: SocketAddr = text.parse().expect("an endpoint");
    match addr {
        SocketAddr::V4(addr) => Endpoint::v4(addr.ip().octets(), addr.port()),
        SocketAddr::V6(addr) => Endpoint::v6(addr.ip().octets(), addr.port()),
    }
}

fn filter(text: &str) -> Filter {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn picks_what_its_words_say() {
    let (client, server) = ("10.0.0.5:40000", "10.1.0.9:8080");
    let cases = [
        ("port 8080", true),
        ("port 80", false),
        ("src port 8080", false),
        ("dst port 8080", true),
        ("portrange 8000-8099", true),
        ("portrange 8081-8099", false),
        ("host 10.0.0.5", true),
        ("10.0.0.5", true),
        ("src 10.0.0.5", true),
        ("dst 10.0.0.5", false),
        ("10.1.0.9:8080", true),
        ("10.1.0.9:80", false),
        ("dst 10.1.0.9:8080", true),
        ("net 10.1.0.0/16", true),
        ("10.1.0.0/16", true),
        ("src net 10.1.0.0/16", false),
        ("net 0.0.0.0/0", true),
        ("net ::/0", true),
        ("net 2001:db8::/32", false),
        ("not port 8080", false),
        ("!port 80", true),
        ("not not port 8080", true),
        ("port 80 or port 8080", true),
        ("port 80 or 8080", true),
        ("port 80 or 443", false),
        ("port (80 or 8080)", true),
        ("src port (80 or 8080)", false),
        ("port 80 or 10.1.0.9:8080", true),
        ("src port 80 or 10.1.0.9:8080", false),
        ("src port 80 or (10.1.0.9:8080)", true),
        ("src host 10.0.0.6 or 10.0.0.5", true),
        ("src host 10.0.0.6 or 10.1.0.9", false),
        ("host 10.0.0.5 and port 8080", true),
        ("host 10.0.0.5 and not port 8080", false),
        ("host 10.0.0.5&&(port 80||port 8080)", true),
        ("(host 10.0.0.6 and port 8080) or port 80", false),
        ("tcp", true),
        ("ip", true),
        ("ip6", false),
        ("not ip6", true),
        ("tcp port 8080", true),
        ("tcp port 80", false),
        ("tcp port 80 or 8080", true),
        ("ip and tcp port 8080", true),
        ("ip6 port 8080", false),
        ("ip6 or port 8080", true),
        ("(ip6)", false),
        ("tcp and host 10.0.0.5", true),
        ("tcp src port 8080", false),
        ("ip host 10.0.0.5", true),
        ("ip6 port (80 or 8080)", false),
        ("port http-alt", true),
        ("port https", false),
        ("portrange http-8080", true),
        ("net 10", true),
        ("net 10/8", true),
        ("net 10.1", true),
        ("src net 10.1", false),
        ("net 11", false),
        ("src or dst port 8080", true),
        ("src and dst port 8080", false),
        ("src and dst net 10", true),
        ("net 10.1.0.0 mask 255.255.0.0", true),
        ("net 10.2.0.0 mask 255.255.0.0", false),
        // As in tcpdump: from left to right, `and` does not bind more tightly than `or`.
        ("port 8080 or host 10.0.0.6 and port 80", false),
        ("port 8080 or (host 10.0.0.6 and port 80)", true),
        ("port 80 and host 10.0.0.6 or port 8080", true),
        ("port 8080 or port 80 and host 10.0.0.5 and not port 22 or ip6", true),
    ];
    for (text, picked) in cases {
        assert_eq!(filter(text).matches(endpoint(client), endpoint(server)), picked, "{text}");
    }
    let v6 = filter("[2001:db8::1]:443 or net 2001:db8:1::/48");
    assert!(v6.matches(endpoint("[2001:db8::1]:443"), endpoint("[::1]:1")));
    assert!(v6.matches(endpoint("[::1]:1"), endpoint("[2001:db8:1::7]:1")));
    assert!(!v6.matches(endpoint("[::1]:1"), endpoint("[2001:db8::1]:442")));
}

#[test]
fn a_connection_is_picked_with_both_directions() {
    let filter = filter("src 10.0.0.5");
    let (one, other) = (endpoint("10.0.0.5:1"), endpoint("10.0.0.6:2"));
    assert!(filter.matches(one, other) && !filter.matches(other, one));
    assert!(filter.matches_connection(one, other) && filter.matches_connection(other, one));
}

#[test]
fn what_cannot_be_understood_is_pointed_at() {
    let cases = [
        (
            "",
            "\n^ expected `host`, `net`, `port`, `portrange`, `src`, `dst`, `tcp`, `ip6`, `not`, `(` or an address",
        ),
        ("port", "\n    ^ expected a port number or the name of a well-known service"),
        ("port 8080 adn host 10.0.0.5", "\n          ^^^ expected `and`, `or` or the end"),
        ("port 80800", "\n     ^^^^^ expected a port number or the name of a well-known service"),
        (
            "host example",
            "\n     ^^^^^^^ host names are not resolved, as they may have changed since the capture; expected an address, \
             such as 10.0.0.5 or 2001:db8::1",
        ),
        ("udp port 53", "\n^^^ only TCP is analysed"),
        ("tcp and less 100", "\n        ^^^^ connections can only be selected by addresses and ports"),
        (
            "tcp[13] & 2 != 0",
            "\n^^^^^^^ packets cannot be selected by their contents, only whole connections by addresses and ports",
        ),
        (
            "net 10.1.0.0 mask 255.0.255.0",
            "\n                  ^^^^^^^^^^^ expected an IPv4 netmask, such as 255.255.0.0",
        ),
        ("net 10.0.0.5/8", "\n    ^^^^^^^^^^ non-network bits set; did you mean `10.0.0.0/8`?"),
        ("net 10.0.0.0/33", "\n    ^^^^^^^^^^^ an IPv4 prefix has at most 32 bits"),
        ("portrange 9-8", "\n          ^^^ empty range: 9 is greater than 8"),
        ("(port 80", "\n        ^ expected `and`, `or` or `)`"),
        ("port 80)", "\n       ^ unmatched `)`"),
        (
            "ё port 80",
            "\n^ expected `host`, `net`, `port`, `portrange`, `src`, `dst`, `tcp`, `ip6`, `not`, `(` or an address",
        ),
        ("port 80 ё", "\n        ^ expected `and`, `or` or the end"),
    ];
    for (text, expected) in cases {
        let error = text.parse::<Filter>().expect_err(text).to_string();
        assert_eq!(error, format!("{text}{expected}"));
    }
    let escape = "port \x1b[31m".parse::<Filter>().expect_err("no port").to_string();
    assert!(escape.starts_with("port  [31m\n     ^^^^^ "), "{escape}");
}

#[test]
fn nesting_is_bounded() {
    for word in ["(", "not ", "!"] {
        let error =
            format!("{}port 1", word.repeat(100_000)).parse::<Filter>().expect_err("deep").to_string();
        assert!(error.ends_with("nested too deeply"));
    }
}

#[test]
fn mixed_operators_are_bounded_too() {
    let mixed = "port 1 or port 2 and ".repeat(100_000) + "port 3";
    let error = mixed.parse::<Filter>().expect_err("deep").to_string();
    assert!(error.ends_with("nested too deeply"));
    assert_eq!(filter("port 1 or port 2 and port 3").to_string(), "(port 1 or port 2) and port 3");
}

/// A deep expression in the first of many terms is inside the parentheses of all later terms when
/// shown.
#[test]
fn what_is_understood_is_understood_as_it_is_shown() {
    let text = |lists: usize| format!("{}port 1", "not ".repeat(30)) + &" and port 2 or port 3".repeat(lists);
    let shown = filter(&text(10)).to_string();
    assert_eq!(filter(&shown).to_string(), shown);
    let error = text(20).parse::<Filter>().expect_err("deep").to_string();
    assert!(error.ends_with("nested too deeply"), "{error}");
}

fn any_filter() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<u16>().prop_map(|port| format!("port {port}")),
        any::<(u16, u16)>().prop_map(|(a, b)| format!("portrange {}-{}", a.min(b), a.max(b))),
        any::<[u8; 4]>().prop_map(|ip| format!("host {}", std::net::Ipv4Addr::from(ip))),
        any::<u128>().prop_map(|ip| format!("host {}", std::net::Ipv6Addr::from(ip))),
        (any::<u32>(), 0..=32u32).prop_map(|(ip, len)| {
            let ip = ip & u32::MAX.checked_shl(32 - len).unwrap_or(0);
            format!("net {}/{len}", std::net::Ipv4Addr::from(ip))
        }),
        (any::<u128>(), 0..=128u32).prop_map(|(ip, len)| {
            let ip = ip & u128::MAX.checked_shl(128 - len).unwrap_or(0);
            format!("net {}/{len}", std::net::Ipv6Addr::from(ip))
        }),
        any::<([u8; 4], u16)>().prop_map(|(ip, port)| format!("{}:{port}", std::net::Ipv4Addr::from(ip))),
    ];
    let leaf =
        (prop::sample::select(vec!["", "src ", "dst "]), leaf).prop_map(|(which, is)| format!("{which}{is}"));
    leaf.prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|expr| format!("not ({expr})")),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("({})", all.join(") and ("))),
            prop::collection::vec(inner, 2..4).prop_map(|any| format!("({})", any.join(") or ("))),
        ]
    })
}

proptest! {
    #[test]
    fn a_filter_shown_and_parsed_again_is_the_same(text in any_filter()) {
        let parsed = filter(&text);
        prop_assert_eq!(filter(&parsed.to_string()), parsed, "{}", text);
    }

    #[test]
    fn no_words_make_it_panic(words in prop::collection::vec(
        prop_oneof![
            prop::sample::select(vec!["port", "host", "net", "src", "(", ")", "!", "and", "or", "10.0.0.1", "80", "::/0", "&", "mask"]).prop_map(String::from),
            ".{0,5}",
        ],
        0..12,
    )) {
        let text = words.join(" ");
        if let Err(error) = text.parse::<Filter>() {
            prop_assert_eq!(error.to_string().lines().count(), 2);
        }
    }
}
