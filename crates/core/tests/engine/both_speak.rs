//! Which bytes form one exchange if both ends speak at once?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::Kind;

use crate::packet_log::{End, each, log, ms, settled};
use crate::seen::Seen;

/// Both ends speak at once (SSH, HTTP/2): data that the server sent before the request can have
/// reached it is no reply, and the client's reaction to it is the client's own time in the middle
/// of its message.
#[test]
fn what_crosses_a_request_does_not_answer_it() {
    let rtt = ms(20);
    let crossing = log("handshake
         +5 C 40 #hello
         +3 S 41 #banner
         banner+0 C ack
         banner+1 S 700 #greeting
         banner+0.4 C 600 #offer
         greeting+60 C 300 #key
         +5 S 400
         +0 C ack")
    .rtt(rtt);
    crossing.both_ends(|seen| {
        seen.exchange(2).is_within(
            ms(1),
            &[
                (Cause::SenderThink, Client, ms(60.6)),
                (Cause::RoundTrip, Path, rtt),
                (Cause::ServerThink, Server, ms(5)),
            ],
        );
    });
}

/// Both ends begin with their settings (HTTP/2), the server before it has read the client's: the
/// client's answer to them leaves right after the acknowledgement of its own, and is not held. If
/// its second half was held before, this one counts as held too.
#[test]
fn what_answers_a_crossing_message_is_not_held() {
    let rtt = ms(20);
    let text = "handshake
         @25 C 82 #preface
         preface+0.03 S 46 ack=0 #settings
         preface+0.05 S ack
         preface+0.2 S 9 #done
         settings+0.15 C 9
         done+1 C 221 #call
         call+4 S 600
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        seen.exchange(1).is_within(ms(0.5), &[(Cause::RoundTrip, Path, rtt)]);
        let call = [(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(4))];
        seen.exchange(2).is_within(ms(0.5), &call);
    });
    let text = "handshake
         @25 C 82 #first
         first+40 S ack
         +0 C 9
         +0 S 100
         @150 C 82 #second
         second+0.03 S 46 ack=91 #told
         second+0.05 S ack
         told+0.15 C 9
         +0 S 100
         +0 C ack";
    let seen = log(text).rtt(rtt).seen_at(End::Client);
    assert!(seen.exchange(2).ns(Cause::Nagle, Client) >= ms(19), "{seen}");
}

/// A pipeline of commands is answered while it is still being sent: the window's rounds are not the
/// client's own time.
#[test]
fn a_long_request_goes_on_beside_its_first_answers() {
    let rtt = ms(26);
    let text = "handshake
         +0 C 1448x10 #first
         first+0 S ack #one
         +1 S 500 #some
         some+0 C ack
         one+0 C 1448x20 #second
         second+0 S ack ack=36200
         +0 C 1448x10
         +4 S 1000
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        assert_eq!(seen.count(Kind::Exchange), 1, "{seen}");
        seen.exchange(1).is_within(
            ms(2),
            &[
                (Cause::SlowStart, Client, rtt.times(2)),
                (Cause::RoundTrip, Path, rtt),
                (Cause::ServerThink, Server, ms(4)),
            ],
        );
    });
}

/// A program's pause between two different messages says nothing about this one.
#[test]
fn a_pause_of_another_message_does_not_hide_a_hold() {
    let rtt = ms(10);
    let text = format!(
        "handshake
         +5 C 1200 #offer
         +0 S ack
         offer+73 C 900
         +2 S 300 #done
         +0 C ack{}",
        "\n +5 C 16\n +40 S ack\n +0 C 44\n +1 S 44".repeat(2)
    );
    log(text).rtt(rtt).both_ends(|seen| {
        for n in [2, 3] {
            assert!(seen.exchange(n).ns(Cause::NagleDelayedAck, Client) >= ms(40), "{seen}");
        }
    });
}

/// A program starts cold: it takes 30 ms between the two writes of its first request, and makes the
/// later ones at once. Their second pieces are held for 44 ms each, and nothing shows how much of
/// that the program would have taken itself: its first pause may be its usual one or not.
#[test]
fn a_pause_that_was_seen_once_is_no_more_than_possibly_the_usual_one() {
    let rtt = ms(10);
    let text = "handshake
         +0 C 4 #head
         +0 S ack
         head+30 C 104
         +1 S 300
         +0 C ack"
        .to_owned()
        + &"\n +5 C 4 #head\n +44 S ack\n +0 C 104\n +1 S 300\n +0 C ack".repeat(4);
    log(text).rtt(rtt).both_ends(|seen| {
        for n in 2..=5 {
            let bill = seen.exchange(n);
            let held = bill.ns(Cause::NagleDelayedAck, Client);
            assert!(held >= ms(23), "{seen}");
            let pause = bill.ns(Cause::SenderThink, Client);
            assert!(pause <= ms(1) || bill.of(Cause::SenderThink).confidence == Possible, "{seen}");
        }
    });
}

/// Keystrokes of SSH cross each other and ask nothing; after them nothing is read. A login that
/// takes 267 ms after its request's acknowledgement (frames 36 to 38) is the server's time. If two
/// requests had been under way at once, the pairing is a guess.
#[test]
fn what_is_not_read_any_more_is_one_question_at_a_time_as_before() {
    for (beside, sure) in [("", Likely), ("+0.3 C 48 asks\n", Possible)] {
        let text = format!(
            "handshake
             +1 C 21 greets
             +7 S 41 greets
             +0 C ack
             @20 C 1000 serves #keys
             @20 S 1000 serves
             keys+4 C 48 asks
             {beside} +5 S 400 answers
             +0 C ack
             +5 C 60 mute
             +0.1 S 44 mute
             +0 C ack
             +5 C 112 #login
             +0 S ack
             login+267 S 760
             +0 C ack"
        );
        log(text).rtt(ms(0.4)).both_ends(|seen| {
            let thought = seen.longer(Cause::ServerThink, ms(260));
            assert_eq!(thought.first().map(|line| line.confidence), Some(sure), "{seen}");
        });
    }
}

/// A conference over TLS: client and server each send something every few milliseconds, and neither
/// waits for the other (frames 1 to 2491 of a call, captured from the middle on). Once it has shown
/// three times that both speak, no pause between the client's messages is certainly a wait.
#[test]
fn what_comes_between_the_words_of_both_ends_makes_their_pauses_possible_at_most() {
    let says = |n: i32| {
        let [own, other] = [36 * n, 36 * n + 18];
        let words = [(0, 125), (7, 857), (16, 122), (29, 1130)];
        let words = words.map(|(at, len)| format!("@{} C {len}\n", own + at));
        words.concat() + &format!("@{other}.5 S 340\n")
    };
    let text = format!("handshake\n{}", each(3..40, says));
    let midway = log(text).rtt(ms(34)).capture(End::Client).split_off(3);
    let seen = Seen::of(midway, "in a conference");
    let pauses = seen.lines(Cause::SenderThink, Client);
    assert!(pauses.len() > 20, "{seen}");
    let likely = pauses.iter().filter(|line| line.confidence > Possible).count();
    assert!(likely <= 3, "{likely}: {seen}");
}

/// A client sends a part of a request whose head announces more, all of it is acknowledged, and the
/// rest comes 10.5 s later, directly or after another request (frames 46 to 175 of an attack on
/// SMB): possibly nobody waited for the reply yet. With a pause of 2 s, somebody likely did.
#[test]
fn a_long_pause_in_the_middle_of_a_question_may_keep_nobody_waiting() {
    for (pause, sure) in [(10_500, Possible), (2_000, Likely)] {
        for beside in ["", "part+1000 C 53 asks=2\n +0 S 53 answers=2\n +0 C ack\n"] {
            let text = format!(
                "handshake\n +5 C 100 asks=0\n +0 S 50 answers=0\n +0 C ack\n @300 C 700 asks=1 opens #part\n part+0 S ack\n
                 {beside} part+{pause} C 700 asks=1 part\n +1 S 60 answers=1\n +0 C ack"
            );
            let seen = log(text).rtt(ms(0.2)).seen_at(End::Client);
            let pauses = seen.longer(Cause::SenderThink, ms(1_000));
            assert_eq!(pauses.iter().map(|line| line.confidence).collect::<Vec<_>>(), [sure], "{seen}");
        }
    }
}

/// A server that spoke first may be the one that asks: its client's 60 ms and its own 100 ms look the same
/// either way, all the more if all that it says is of one length.
#[test]
fn behind_a_greeting_no_time_is_certainly_the_server_s() {
    let turns = each(0..6, |_| "+60 C 561\n +0 S ack\n +100 S 265\n +0 C ack".to_owned());
    for (greeting, most) in
        [("+20 S 265\n +0 C ack\n", Possible), ("+20 S 300\n +0 C ack\n", Likely), ("", Certain)]
    {
        let seen = log(format!("handshake\n {greeting}{turns}")).rtt(ms(1)).seen_at(End::Server);
        let later = seen.connection().exchanges.iter().skip(2).flat_map(|exchange| &exchange.bill);
        let surest = later.filter(|line| line.cause == Cause::ServerThink).map(|line| line.confidence).max();
        assert_eq!(surest, Some(most), "{seen}");
    }
}

/// What the peer has acknowledged without an answer may have needed none: then nobody waited for what
/// its sender said next.
#[test]
fn a_message_that_was_acknowledged_alone_may_be_complete() {
    for (pause, most) in [(182, Likely), (30, Certain)] {
        let text = settled(2) + &format!("+20 C 64 #w\n w+5 S ack\n w+{pause} C 153\n +0.3 S 146\n +0 C ack");
        log(text).rtt(ms(20)).both_ends(|seen| {
            let pauses = seen.lines(Cause::SenderThink, Client);
            assert!(!pauses.is_empty() && pauses.iter().all(|line| line.confidence <= most), "{seen}");
        });
    }
}

/// Keys and moves of a mouse, 12 bytes each, and a host that acknowledges them every 200 ms (frames 176 to
/// 217 of a remote desktop): the first of two may be a message of its own, which needs no answer, though
/// nothing has acknowledged it. 30 ms later an answer could hardly have come, which says something of what an
/// end says in answer.
#[test]
fn what_was_not_answered_in_time_may_need_no_answer() {
    for (pause, most) in [(172, Likely), (30, Certain)] {
        let text = format!("handshake\n +1 C 12\n +{pause} C 12\n +0.5 S ack\n +11 S 60\n +0 C ack");
        let seen = log(text).rtt(ms(0.2)).seen_at(End::Client);
        assert_eq!(seen.exchange(1).of(Cause::SenderThink).confidence, Possible, "{pause}: {seen}");
        let beside = "+5 C 60\n +0.5 S 90\n +3 S 90\n +0 C ack\n".repeat(2);
        let text = format!("handshake\n {beside} +1 C 60\n +0.5 S 90\n +{pause} S 90\n +0 C ack");
        let seen = log(text).rtt(ms(0.2)).seen_at(End::Server);
        assert_eq!(seen.exchange(3).of(Cause::SenderThink).confidence, most, "{pause}: {seen}");
    }
}

/// A word at the heels of a reply, acknowledged by a timer, and then a question: the word may have confirmed that reply
/// (frames 58 to 65 of two Erlang nodes), and nobody was in the middle of anything. Behind a pause it begins a question
/// as any other piece does.
#[test]
fn a_word_at_the_heels_of_a_reply_may_be_no_part_of_the_next_question() {
    for (pause, most) in [(0.05, Possible), (30.0, Likely)] {
        let text = settled(3)
            + &format!("+{pause} C 53 #word\n word+40 S ack\n word+43.5 C 151\n +0.2 S 300\n +0 C ack");
        let seen = log(text).rtt(ms(18.5)).seen_at(End::Client);
        assert_eq!(seen.exchange(4).of(Cause::SenderThink).confidence, most, "{seen}");
    }
}

/// The end that accepts a connection gives out work of one length, and the worker takes its time for each piece: its
/// answers look like questions, and the next piece of work like the answer. The last one is followed by the end.
#[test]
fn replies_as_long_as_the_greeting_may_be_questions() {
    let rounds = "+0 C ack\n job+61 C 561 #done\n done+0 S ack\n done+100 S 265 #job\n".repeat(5);
    let text = format!(
        "handshake\n @32 S 265 #job\n{rounds}+0 C ack\n job+61 C 561\n +0 S ack\n +100 S fin\n +0 C fin"
    );
    let log = log(text).rtt(ms(1));
    log.both_ends(|seen| {
        for line in seen.lines(Cause::ServerThink, Server) {
            assert_eq!(line.confidence, Possible, "{seen}");
        }
    });
    // Nor does a missing SYN change that.
    for end in End::BOTH {
        let seen = Seen::of(log.capture(end).split_off(1), "without the SYN");
        let lines = seen.lines(Cause::ServerThink, Server);
        assert!(lines.len() > 3 && lines.iter().all(|line| line.confidence == Possible), "{seen}");
    }
}

/// A greeting that the client goes on from at once, and replies of other lengths, are what they seem.
#[test]
fn replies_of_other_lengths_than_the_greeting_s_are_answers() {
    let text = "handshake\n @32 S 120\n +0.3 C 561\n +0 S ack\n +100 S 265\n +0.3 C 561\n +0 S ack\n +100 S 280\n +0 C ack";
    let seen = log(text).rtt(ms(1)).seen_at(End::Server);
    for n in 1..=3 {
        assert!(seen.exchange(n).of(Cause::ServerThink).confidence > Possible, "{seen}");
    }
}

/// Three notifications that need no answer; 25 ms after the fourth the client says that it ends, and closes.
#[test]
fn what_follows_one_of_many_notifications_may_be_its_senders_own() {
    let news = each([1_400, 900, 840, 870], |after| format!("+{after} S 12\n +0 C ack"));
    let text = settled(1) + &news + "\n +25 C 5\n +0 C fin\n +0 S fin\n +0 C ack";
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    let lines = seen.lines(Cause::ServerThink, Client);
    assert!(!lines.is_empty() && lines.iter().all(|line| line.confidence == Possible), "{seen}");
}

/// Behind a beginning that is missing, nothing tells a client that asks 60 ms after each reply from a worker that
/// answers 60 ms after each question, if the other end takes longer than that. A client that waits longer than its
/// server asks.
#[test]
fn what_a_capture_begins_with_may_be_answers() {
    for (reacts, takes, most) in [(60, 100, Possible), (60, 30, Likely)] {
        let rounds = format!("+{takes} S 265\n +0 C ack\n +{reacts} C 561\n +0 S ack\n").repeat(4);
        let text = format!(
            "handshake\n +5 C 100\n +0 S ack\n +{takes} S 265\n +0 C ack\n +{reacts} C 561\n +0 S ack\n{rounds}"
        );
        for end in End::BOTH {
            let mut segments = log(text.clone()).rtt(ms(1)).capture(end);
            let seen = Seen::of(segments.split_off(7), "begun with an answer, or a question");
            let lines = seen.lines(Cause::ServerThink, Server);
            assert!(lines.len() > 2 && lines.iter().skip(1).all(|line| line.confidence == most), "{seen}");
        }
    }
}

/// The questions are missing, and the beginning of what answers them: what the client says 60 ms later answers nothing
/// for certain.
#[test]
fn what_follows_an_answer_to_what_is_missing_may_be_a_question() {
    let text = settled(2)
        + "+30 C 300 unseen #q\n q+100 S 400 unseen more\n +0 S 6\n +40 C ack\n +20 C 5\n +0 C fin\n +0 S fin\n +0 C ack";
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    let lines = seen.lines(Cause::ServerThink, Client);
    assert!(lines.iter().all(|line| line.confidence == Possible), "{seen}");
}

/// A client asks in two writes 20 ms apart. If the first is as long as what it has asked by itself before (a keep-alive of 29
/// bytes that has its own answer), or if it has gone on now and then without an answer, each may be a question, and if the first was
/// acknowledged before the second; if it always asks like that, or nothing is known of it, they are likely one.
#[test]
fn two_writes_may_be_two_questions() {
    let writes = |first: u32| format!("+500 C {first} #q\n q+20 C 300\n +10 S 50\n +0 C ack\n");
    let asks = |first: u32| format!("+500 C {first} #q\n q+2 S ack\n q+20 C 300\n +10 S 50\n +0 C ack\n");
    let known = |len: u32| format!("+500 C {len}\n +10 S 25\n +0 C ack\n");
    let cases = [
        (known(29).repeat(2) + &writes(29), Possible),
        (known(40).repeat(2) + &writes(70), Likely),
        (known(40).repeat(2) + &asks(70), Possible),
        ((known(40) + &asks(70)).repeat(4) + &known(40) + &writes(70), Possible),
        (asks(70).repeat(5), Likely),
    ];
    for (text, sure) in cases {
        log(format!("handshake\n {text}")).rtt(ms(1)).both_ends(|seen| {
            let last = seen.exchange(seen.count(Kind::Exchange));
            assert!(last.ns(Cause::SenderThink, Client) >= ms(19), "{seen}");
            assert_eq!(last.of(Cause::SenderThink).confidence, sure, "{seen}");
        });
    }
}

/// A word of 7 bytes follows the server's message by 15 ms and the question by another 60, on a path of 250 ms (DOF): it may
/// have confirmed that message.
#[test]
fn a_word_that_comes_sooner_than_what_follows_may_have_confirmed() {
    let text = "handshake\n +27 C 8\n +20 S 27\n +15 C 7 #word\n word+60 C 242\n +17 S 195\n +0 C ack";
    log(text).rtt(ms(250)).both_ends(|seen| {
        assert_eq!(seen.exchange(2).of(Cause::SenderThink).confidence, Possible, "{seen}");
    });
}
