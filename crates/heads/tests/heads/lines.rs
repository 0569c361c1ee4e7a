//! Which lines of mail, file and shell servers answer which?

use tcpwhy_heads::Protocol;

use crate::log::tells;

pub(crate) const LOGS: &[(&str, Protocol, &str)] = &[
    ("smtp", Protocol::Smtp, SMTP),
    ("ftp", Protocol::Ftp, FTP),
    ("starttls", Protocol::Smtp, STARTTLS),
    ("imap", Protocol::Imap, IMAP),
    ("pop3", Protocol::Pop3, POP3),
    ("ssh", Protocol::Ssh, SSH),
    ("irc", Protocol::Irc, IRC),
    ("irc_chat", Protocol::Irc, IRC_CHAT),
];

const SMTP: &str = include_str!("../recorded/smtp.txt");
const FTP: &str = include_str!("../recorded/ftp.txt");
const IRC: &str = include_str!("../recorded/irc.txt");

#[test]
fn smtp() {
    tells(
        SMTP,
        "
        < 0 2xx answers len 25 first last
        = SMTP
        > 0 EHLO asks len 8 first last
        < 25 2xx answers len 7 first
        < 79 2xx answers len 10 last
        > 8 MAIL asks len 25 first last
        < 89 2xx answers len 8 first last
        > 33 RCPT asks len 15 first last
        < 97 2xx answers len 8 first last
        > 48 RCPT asks len 15 first last
        < 105 2xx answers len 8 first last
        > 63 DATA asks len 6 first last
        < 113 3xx answers len 37 first last
        > 69 message asks len 16 first
        > 101 message asks len 3 last
        < 150 2xx answers len 8 first last
        > 104 QUIT asks len 6 first last
        < 158 2xx answers len 9 first last
        ",
    );
}

#[test]
fn ftp() {
    tells(
        FTP,
        "
        < 0 2xx answers len 28 first last
        > 0 USER asks len 8 first last
        = FTP
        < 28 3xx answers len 33 first last
        > 8 PASS asks len 8 first last
        < 61 2xx answers len 23 first last
        > 16 FEAT asks len 6 first last
        < 84 2xx answers len 25 first
        < 242 2xx answers len 15 last
        > 22 PWD asks len 5 first last
        < 257 2xx answers len 35 first last
        > 27 TYPE asks len 8 first last
        < 292 2xx answers len 25 first last
        > 35 PASV asks len 6 first last
        < 317 2xx answers first last
        > 41 LIST asks len 6 first last
        < 365 1xx answers first last
        < 419 transfer pushes len 24 first last
        > 47 QUIT asks len 6 first last
        < 443 2xx answers len 14 first last
        ",
    );
}

/// A script sends everything at once before it is greeted, and each line gets its reply (frames
/// 2482 to 2498 of a laboratory's). If its commands are missing, a greeting counts as one, and
/// replies as usual: so this is not among [`LOGS`].
const FTP_AT_ONCE: &str = r"
    > user anonymous\npass test@test.com\nls\npwd\nquit\n
    < 220 (vsFTPd 3.0.3)\r\n
    < 331 Please specify the password.\r\n
    < 230 Login successful.\r\n
    < 500 Unknown command.\r\n
    < 257 x\r\n
    < 221 Goodbye.\r\n
";

#[test]
fn ftp_at_once() {
    tells(
        FTP_AT_ONCE,
        "
        > 0 USER asks len 15 first last
        > 15 PASS asks len 19 first last
        > 34 command asks len 3 first last
        > 37 PWD asks len 4 first last
        > 41 QUIT asks len 5 first last
        < 0 greeting pushes len 20 first last
        = FTP
        < 20 3xx answers len 34 first last
        < 54 2xx answers len 23 first last
        < 77 5xx answers len 22 first last
        < 99 2xx answers len 7 first last
        < 106 2xx answers len 14 first last
        ",
    );
}

/// RFC 3207: TLS from the next message on.
const STARTTLS: &str = r"
    < 220 x ESMTP\r\n
    > EHLO y\r\n
    < 250-x\r\n250 STARTTLS\r\n
    > STARTTLS\r\n
    < 220 go\r\n
    > \x16\x03\x01\x00-\x01\x00\x00)\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    < \x16\x03\x03\x00*\x02\x00\x00&\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    > \x17\x03\x03\x00\x13\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
";

#[test]
fn starttls() {
    tells(
        STARTTLS,
        "
        < 0 2xx answers len 13 first last
        = SMTP
        > 0 EHLO asks len 8 first last
        < 13 2xx answers len 7 first
        < 20 2xx answers len 14 last
        > 8 STARTTLS asks len 10 first last
        < 34 2xx answers len 8 first last
        > 18 ClientHello asks len 50 first
        = TLS
        < 42 ServerHello answers len 47 first
        > 68 ApplicationData unknown len 24
        ",
    );
}

/// RFC 3501, 6 and RFC 2177: literals, two commands at once, a command that waits for news.
const IMAP: &str = r"
    < * OK [CAPABILITY IMAP4rev1] ready\r\n
    > a001 LOGIN u p\r\n
    < a001 OK done\r\n
    > a002 SELECT INBOX\r\n
    < * 3 EXISTS\r\n* 0 RECENT\r\na002 OK [READ-WRITE] done\r\n
    > a003 FETCH 1 BODY[]\r\na004 NOOP\r\n
    < * 1 FETCH (BODY[] {20}\r\na003 OK not really\r\n FLAGS (\\Seen))\r\na003 OK done\r\na004 OK done\r\n
    > a005 APPEND x {5}\r\n
    < + go on\r\n
    > hello\r\n
    < a005 OK done\r\n
    > a006 IDLE\r\n
    < + idling\r\n
    < * 4 EXISTS\r\n
    > DONE\r\n
    < a006 OK done\r\n
    < * BYE\r\n
";

#[test]
fn imap() {
    tells(
        IMAP,
        "
        < 0 greeting answers len 35 first last
        = IMAP
        > 0 LOGIN asks #1093677105 len 16 first last
        < 35 completion answers #1093677105 len 14 first last
        > 16 SELECT asks #1093677106 len 19 first last
        < 49 untagged answers len 12 first
        < 73 completion answers #1093677106 len 27 last
        > 35 FETCH asks #1093677107 len 21 first last
        > 56 NOOP asks #1093677108 len 11 first last
        < 100 untagged answers len 44 first
        < 161 completion answers #1093677107 len 14 last
        < 175 completion answers #1093677108 len 14 first last
        > 67 APPEND asks #1093677109 len 24 first
        < 189 + interim len 9 first last
        > 91 APPEND asks #1093677109 len 2 last
        < 198 completion answers #1093677109 len 14 first last
        > 93 IDLE subscribes len 11 first last
        < 212 + interim len 10 first last
        < 222 untagged pushes len 12 first last
        > 104 DONE asks #1093677110 len 6 first last
        < 234 completion answers #1093677110 len 14 first last
        ",
    );
}

/// RFC 3501, 6.2.2: the client of an authentication waits for the response to each line, which is
/// not the rest of an answer.
#[test]
fn imap_authentication() {
    tells(
        r"
        < * OK ready\r\n
        > a1 AUTHENTICATE LOGIN\r\n
        < + VXNlcm5hbWU6\r\n
        > dQ==\r\n
        < + UGFzc3dvcmQ6\r\n
        > cA==\r\n
        < a1 OK logged in\r\n
        > a2 NOOP\r\n
        < a2 OK done\r\n
        ",
        "
        < 0 greeting answers len 12 first last
        = IMAP
        > 0 AUTHENTICATE asks #16689 len 23 first last
        < 12 + answers #16689 len 16 first last
        > 23 line asks #16689 len 6 first last
        < 28 + answers #16689 len 16 first last
        > 29 line asks #16689 len 6 first last
        < 44 completion answers #16689 len 17 first last
        > 35 NOOP asks #16690 len 9 first last
        < 61 completion answers #16690 len 12 first last
        ",
    );
}

/// RFC 1939, 5 and RFC 2449: several commands at once, one of them with an argument that makes its response short.
const POP3: &str = r"
    < +OK ready <1@x>\r\n
    > USER u\r\n
    < +OK\r\n
    > PASS p\r\n
    < +OK logged in\r\n
    > STAT\r\nLIST\r\nLIST 1\r\nRETR 1\r\n
    < +OK 1 9\r\n+OK 1 messages\r\n1 9\r\n.\r\n+OK 1 9\r\n+OK\r\nSubject: x\r\n\r\n..hello\r\n.\r\n
    > RETR 7\r\n
    < -ERR no such message\r\n
    > QUIT\r\n
    < +OK bye\r\n
";

#[test]
fn pop3() {
    tells(
        POP3,
        "
        < 0 +OK answers len 17 first last
        > 0 USER asks len 8 first last
        = POP3
        < 17 +OK answers len 5 first last
        > 8 PASS asks len 8 first last
        < 22 +OK answers len 15 first last
        > 16 STAT asks len 6 first last
        > 22 LIST asks len 6 first last
        > 28 LIST asks len 8 first last
        > 36 RETR asks len 8 first last
        < 37 +OK answers len 9 first last
        < 46 +OK answers len 16 first
        < 67 end answers len 3 last
        < 70 +OK answers len 9 first last
        < 79 +OK answers len 5 first
        < 107 end answers len 3 last
        > 44 RETR asks len 8 first last
        < 110 -ERR answers len 22 first last
        > 52 QUIT asks len 6 first last
        < 132 +OK answers len 9 first last
        ",
    );
}

/// RFC 4253: versions, key exchange, and nothing after NEWKEYS.
const SSH: &str = r"
    < SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and-more-than-forty\r\n
    > SSH-2.0-OpenSSH_9.2p1\r\n
    < \x00\x00\x00H\n\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    > \x00\x00\x00H\n\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    > \x00\x00\x000\n\x1e\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    < \x00\x00\x00\xd0\x06\x1f\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08\x06\x15\x00\x00\x00\x00\x00\x00
    > \x00\x00\x00\x08\x06\x15\x00\x00\x00\x00\x00\x00
    > \x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf
    < \x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0\xa1\xa2\xa3\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf\xb0\xb1\xb2\xb3
";

/// In a capture, either end may come first: the message numbers show which side asks.
#[test]
fn ssh() {
    let told = "
        < 0 version [SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 a] greets first last
        = SSH
        > 0 version [SSH-2.0-OpenSSH_9.2p1] greets first last
        < 60 KEXINIT neither len 76 first last
        > 23 KEXINIT neither len 76 first last
        > 99 key exchange asks len 52 first last
        < 136 key exchange answers len 212 first last
        < 348 NEWKEYS neither len 12 first last
        > 151 NEWKEYS unknown len 12 first last
        > 163 encrypted unknown
        < 360 encrypted unknown
        ";
    let turned = |log: &str| log.replace("  < ", "  ? ").replace("  > ", "  < ").replace("  ? ", "  > ");
    tells(SSH, told);
    tells(&turned(SSH), &turned(told));
}

/// NNTP has replies and a few words like FTP's (RFC 3977).
#[test]
fn nntp_is_not_ftp() {
    let log = r"
        < 200 news.example ready\r\n
        > MODE READER\r\n
        < 200 posting allowed\r\n
        > LIST\r\n
        < 215 list follows\r\n.\r\n
        > QUIT\r\n
        < 205 bye\r\n
    ";
    tells(log, "");
}

/// A server that gives up an idle connection sends 421 unasked (RFC 959, 5.4; RFC 5321, 3.8). After
/// a command it is the reply.
#[test]
fn a_service_that_closes_may_say_so_unasked() {
    let log = r"
        < 220 (vsFTPd 3.0.2)\r\n
        > USER u\r\n
        < 331 Please specify the password.\r\n
        < 421 Timeout.\r\n
        > PASS p\r\n
        < 421 Too many.\r\n
    ";
    tells(
        log,
        "
        < 0 2xx answers len 20 first last
        = FTP
        > 0 USER asks len 8 first last
        < 20 3xx answers len 34 first last
        < 54 closing pushes len 14 first last
        > 8 PASS asks len 8 first last
        < 68 4xx answers len 15 first last
        ",
    );
}

#[test]
fn irc() {
    tells(
        IRC,
        "
        > 0 CAP [CAP LS] asks #0 len 8 first last
        > 8 command neither len 9 first last
        > 17 USER neither len 17 first last
        = IRC
        < 0 echo answers #0 len 37 first last
        > 34 USER [CAP END] asks #34 len 9 first last
        < 37 numeric answers #34 len 77 first
        < 1178 numeric answers #34 len 42 last
        > 43 JOIN [JOIN #c] asks #43 len 9 first last
        < 1220 echo answers #43 len 28 first
        < 1279 numeric answers #43 len 43 last
        > 52 WHO [WHO #c] asks #52 len 8 first last
        > 60 PRIVMSG pushes len 25 first last
        > 85 command neither len 13 first last
        < 1322 numeric answers #52 len 62 first
        < 1384 numeric answers #52 len 41 last
        < 1425 message pushes len 32 first last
        > 98 PING [PING x] asks #98 len 8 first last
        < 1457 echo answers #98 len 34 first last
        > 106 WHOIS [WHOIS nobody] asks #106 len 14 first last
        < 1491 numeric answers #106 len 62 first
        < 1553 numeric answers #106 len 51 last
        > 120 command neither len 6 first last
        < 1604 message pushes len 82 first last
        < 1686 ERROR neither len 27 first last
        ",
    );
}

/// A server looks a client up before anything else, and sends a PING; the nickname is taken. Then
/// people talk, and each message has a source.
const IRC_CHAT: &str = r"
    < :far.example NOTICE * :*** Looking up your hostname...\r\n
    > NICK me\r\nUSER me 0 * :me\r\n
    < PING :1234\r\n
    > PONG :1234\r\n
    < :far.example 433 * me :Nickname is already in use\r\n
    > NICK me2\r\n
    < :far.example 001 me2 :Welcome\r\n:far.example 422 me2 :MOTD File is missing\r\n
    < :you!~you@far.example.with.a.name.longer.than.what.is.kept PRIVMSG me2 :are you there?\r\n
    > PRIVMSG you :yes\r\n
    > JOIN #closed itskey\r\n
    < :far.example 473 me2 #closed :Cannot join channel (+i)\r\n
    < @time=2026-11-28T10:00:00Z :you!~you@far.example QUIT :bye\r\n
";

#[test]
fn irc_chat() {
    tells(
        IRC_CHAT,
        "
        < 0 message pushes len 56 first last
        = IRC
        > 0 command neither len 9 first last
        > 9 USER [USER me] asks #9 len 17 first last
        < 56 PING neither len 12 first last
        > 26 command neither len 12 first last
        < 68 numeric answers #9 len 51 first
        > 38 command neither len 10 first last
        < 150 numeric answers #9 len 44 last
        < 194 message pushes len 88 first last
        > 48 PRIVMSG pushes len 18 first last
        > 66 JOIN [JOIN #closed] asks #66 len 21 first last
        < 282 numeric answers #66 len 56 first last
        < 338 message pushes len 60 first last
        ",
    );
    // An authentication secret is not the name of a request.
    tells(
        r"> NICK me\r\nAUTHENTICATE c2VjcmV0\r\n",
        "
        > 0 command neither len 9 first last
        > 9 AUTHENTICATE asks #9 len 23 first last
        = IRC
        ",
    );
    // A mode that is set already needs no answer, and a topic may be the same: what comes at the heels of a
    // later command answers that.
    tells(
        r"
        > NICK me\r\nUSER me 0 * :me\r\n
        < :far.example 001 me :Welcome\r\n:far.example 422 me :MOTD File is missing\r\n
        > MODE me +i\r\n
        > PING far.example\r\n
        < :far.example PONG far.example :far.example\r\n
        > JOIN #c\r\n
        < :me!~me@127.0.0.1 JOIN :#c\r\n:far.example MODE #c +nt\r\n:far.example 366 me #c :End\r\n
        > MODE #c b\r\n
        < :far.example 368 me #c :End of Channel Ban List\r\n
        > TOPIC #c :same\r\n
        > PING far.example\r\n
        < :far.example PONG far.example :far.example\r\n
        ",
        "
        > 0 command neither len 9 first last
        > 9 USER [USER me] asks #9 len 17 first last
        = IRC
        < 0 numeric answers #9 len 30 first
        < 30 numeric answers #9 len 43 last
        > 26 mode neither len 12 first last
        > 38 PING [PING far.example] asks #38 len 18 first last
        < 73 echo answers #38 len 44 first last
        > 56 JOIN [JOIN #c] asks #56 len 9 first last
        < 117 echo answers #56 len 28 first
        < 171 numeric answers #56 len 29 last
        > 65 MODE [MODE #c] asks #65 len 11 first last
        < 200 numeric answers #65 len 49 first last
        > 76 TOPIC [TOPIC #c] asks #76 len 16 first last
        > 92 PING [PING far.example] asks #92 len 18 first last
        < 249 echo answers #92 len 44 first last
        ",
    );
    // The USER of an FTP server is not a nickname.
    tells(r"> USER me\r\n", "");
}
