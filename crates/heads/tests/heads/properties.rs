//! Do segment boundaries, snap lengths and gaps change nothing but how much is reported?

use proptest::prelude::*;
use tcpwhy_heads::{Conversation, First, Protocol, recognise};

use crate::log::{CLIENT, Piece, SERVER, Told, all, read, read_piece};

/// Each piece cut at lengths given by `next`.
fn cut(pieces: &[Piece], mut next: impl FnMut() -> usize) -> Vec<Piece> {
    let mut shorter = Vec::new();
    for piece in pieces {
        let mut at = 0;
        while at < piece.bytes.len() {
            let end = (at + next().max(1)).min(piece.bytes.len());
            let bytes = piece.bytes[at..end].to_vec();
            shorter.push(Piece { from: piece.from, at: piece.at + at as u64, bytes });
            at = end;
        }
    }
    shorter
}

/// Whether `some` are among `all`, in order. A head may have less information: it need not be
/// marked as the first of its message, nor have the name of a handshake message.
fn is_part_of(some: &[Told], all: &[Told]) -> Result<(), String> {
    let mut rest = all.iter();
    for told in some {
        let alike = |other: &Told| {
            let kind = if told.kind == "handshake" { told.kind } else { other.kind };
            Told { kind, first: told.first && other.first, ..*other } == *told
        };
        if !rest.any(alike) {
            return Err(format!("{told:?} is none of the heads"));
        }
    }
    Ok(())
}

fn speaking(protocol: Protocol) -> Conversation {
    Conversation::speaking(protocol, CLIENT)
}

#[test]
fn every_log_is_recognised() {
    for (name, protocol, pieces) in all() {
        let mut conversation = Conversation::new();
        let told = read(&mut conversation, &pieces);
        assert!(!told.is_empty(), "{name}: nothing is told");
        assert_eq!(told, read(&mut speaking(protocol), &pieces), "{name}");
        assert!(!conversation.is_deaf(), "{name}");
    }
}

/// Each protocol says with which bytes it may begin, so that it is not tried for others: whatever
/// one of the first bytes is, and in either order of the sides, it does not fit a beginning that it
/// excludes (`recognise` checks this in builds with overflow checks).
#[test]
fn nothing_fits_that_begins_with_another_byte() {
    for (_, _, pieces) in all() {
        let first = |side| pieces.iter().find(|piece| piece.from == side).map(|piece| piece.bytes.as_slice());
        let firsts = [CLIENT, SERVER].map(|side| first(side).unwrap_or_default().to_vec());
        for (side, at, byte) in
            (0..2).flat_map(|side| (0..8).flat_map(move |at| (0..=255).map(move |byte| (side, at, byte))))
        {
            let mut changed = firsts.clone();
            let Some(old) = changed[side].get_mut(at) else { continue };
            *old = byte;
            recognise(changed.each_ref().map(|bytes| First::whole(bytes)));
            changed[1 - side].clear();
            recognise(changed.each_ref().map(|bytes| First::whole(bytes)));
        }
    }
}

#[test]
fn a_beginning_in_pieces_is_recognised() {
    for (name, protocol, pieces) in all() {
        let whole = read(&mut Conversation::new(), &pieces);
        for len in [4, 7, 16, 33] {
            let told = read(&mut Conversation::new(), &cut(&pieces, || len));
            // The length of MySQL's greeting, which is always written in one piece, is a part of
            // how it is recognised.
            let expected = if protocol == Protocol::MySql { &[][..] } else { &whole };
            assert_eq!(told, expected, "{name}: in pieces of {len}");
        }
    }
}

#[test]
fn boundaries_change_nothing() {
    for (name, protocol, pieces) in all() {
        let whole = read(&mut speaking(protocol), &pieces);
        for len in 1..80 {
            let told = read(&mut speaking(protocol), &cut(&pieces, || len));
            assert_eq!(told, whole, "{name}: in pieces of {len}");
        }
        for i in 0..pieces.len() {
            for at in 1..pieces[i].bytes.len().min(700) {
                let mut two = pieces.clone();
                let bytes = two[i].bytes.split_off(at);
                two.insert(i + 1, Piece { from: two[i].from, at: two[i].at + at as u64, bytes });
                assert_eq!(read(&mut speaking(protocol), &two), whole, "{name}: piece {i} cut at {at}");
            }
        }
    }
}

#[test]
fn a_snap_length_only_silences() {
    for (name, protocol, pieces) in all() {
        let whole = read(&mut speaking(protocol), &pieces);
        for len in [usize::MAX, 1, 7, 23, 60, 100, 536] {
            let pieces = cut(&pieces, || len);
            for snap in 0..200 {
                for mut conversation in [speaking(protocol), Conversation::new()] {
                    let mut told = Vec::new();
                    for piece in &pieces {
                        read_piece(&mut conversation, piece, snap, &mut told);
                    }
                    let part = is_part_of(&told, &whole);
                    assert_eq!(part, Ok(()), "{name}: in pieces of {len}, {snap} bytes of each");
                }
            }
        }
    }
}

#[test]
fn a_gap_only_silences() {
    for (name, protocol, pieces) in all() {
        let whole = read(&mut speaking(protocol), &pieces);
        for len in [usize::MAX, 1, 7, 23, 60, 100] {
            let pieces = cut(&pieces, || len);
            for missing in 0..pieces.len() {
                for count in [1, 2, 5] {
                    let mut rest = pieces.clone();
                    rest.drain(missing..(missing + count).min(pieces.len()));
                    let told = read(&mut speaking(protocol), &rest);
                    let part = is_part_of(&told, &whole);
                    assert_eq!(part, Ok(()), "{name}: in pieces of {len} without {missing} and {count}");
                }
            }
        }
    }
}

/// Random bytes are no protocol: 10^6 beginnings, alone and as request and answer.
#[test]
fn noise_is_not_recognised() {
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state ^ state >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8
    };
    let mut found = Vec::new();
    for _ in 0..500_000 {
        let mut bytes = [0_u8; 128];
        for chunk in bytes.as_chunks_mut().0 {
            *chunk = next().to_le_bytes();
        }
        let (a, b) = bytes.split_at(64);
        let len = 1 + next() as usize % 64;
        let (a, b) = (First { bytes: a, len: 64 + len as u32 }, First::whole(&b[..len]));
        found.extend(
            [[a, First::default()], [b, First::default()], [a, b]].map(recognise).into_iter().flatten(),
        );
    }
    assert!(found.len() <= 10, "{found:?}");
}

/// The messages of one protocol, from any byte on, are refused by the others.
#[test]
fn no_protocol_is_taken_for_another() {
    for (name, _, pieces) in all() {
        let mut conversation = Conversation::new();
        let mut spoken = vec![None];
        for piece in &pieces {
            read_piece(&mut conversation, piece, usize::MAX, &mut Vec::new());
            spoken.push(conversation.protocol());
        }
        for (i, piece) in pieces.iter().enumerate() {
            let other = pieces[i..].iter().find(|other| other.from != piece.from);
            let other = other.map_or(First::default(), |other| First::whole(&other.bytes));
            for begin in 0..piece.bytes.len().min(400) {
                let bytes = First::whole(&piece.bytes[begin..]);
                for with in [First::default(), other] {
                    let found = recognise([bytes, with]).map(|found| found.protocol);
                    assert!(
                        spoken.contains(&found),
                        "{name}: {found:?} at {begin} of piece {i}: {bytes:?} {with:?}"
                    );
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn cuts_change_nothing(lens in prop::collection::vec(1_usize..300, 1..20)) {
        for (name, protocol, pieces) in all() {
            let whole = read(&mut speaking(protocol), &pieces);
            let mut turn = lens.iter().cycle().copied();
            let told = read(&mut speaking(protocol), &cut(&pieces, || turn.next().unwrap_or(1)));
            prop_assert_eq!(told, whole, "{}", name);
        }
    }

    #[test]
    fn changed_bytes_do_no_harm(log in 0_usize..64, changes in prop::collection::vec((0_usize..5000, any::<u8>()), 1..8), snap in 1_usize..400) {
        let all = all();
        let (_, protocol, mut pieces) = all[log % all.len()].clone();
        let total: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
        for (at, byte) in changes {
            let mut at = at % total;
            let piece = pieces.iter_mut().find(|piece| { let here = at < piece.bytes.len(); if !here { at -= piece.bytes.len(); } here });
            piece.expect("a piece").bytes[at] = byte;
        }
        for mut conversation in [speaking(protocol), Conversation::new()] {
            let mut told = Vec::new();
            for piece in &pieces {
                read_piece(&mut conversation, piece, snap, &mut told);
            }
        }
    }
}
