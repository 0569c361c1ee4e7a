//! Which questions and answers does PostgreSQL speak?

use tcpwhy_heads::Protocol;

use crate::log::tells;

pub(crate) const LOGS: &[(&str, Protocol, &str)] =
    &[("postgresql", Protocol::PostgreSql, POSTGRESQL), ("extended", Protocol::PostgreSql, EXTENDED)];

const POSTGRESQL: &str = include_str!("../recorded/postgresql.txt");

#[test]
fn postgresql() {
    tells(
        POSTGRESQL,
        "
        > 0 SSLRequest asks len 8 first last
        = PostgreSQL
        < 0 encryption answers len 1 first last
        > 8 StartupMessage asks len 63 first last
        < 1 Authentication answers len 9 first
        < 409 ReadyForQuery answers len 6 last
        > 71 Query [select 1;] asks len 15 first last
        < 415 RowDescription answers len 34 first
        < 475 ReadyForQuery answers len 6 last
        > 86 Query [create table t (a int);] asks len 29 first last
        < 481 CommandComplete answers len 18 first
        < 499 ReadyForQuery answers len 6 last
        > 115 Query [copy t from stdin;] asks len 24 first last
        < 505 CopyInResponse answers len 10 first last
        > 139 CopyData asks len 12 first
        > 151 CopyDone asks len 5 last
        < 515 CommandComplete answers len 12 first
        < 527 ReadyForQuery answers len 6 last
        > 156 Query [listen c;] asks len 15 first last
        < 533 CommandComplete answers len 12 first
        < 545 ReadyForQuery answers len 6 last
        > 171 Query [notify c;] asks len 15 first last
        < 551 CommandComplete answers len 12 first
        < 563 NotificationResponse pushes len 12 first last
        < 575 ReadyForQuery answers len 6 last
        > 186 Query [copy t to stdout;] asks len 23 first last
        < 581 CopyOutResponse answers len 10 first
        < 622 ReadyForQuery answers len 6 last
        > 209 Query [select nope;] asks len 18 first last
        < 628 ErrorResponse answers len 104 first
        < 732 ReadyForQuery answers len 6 last
        > 227 Terminate neither len 5 first last
        ",
    );
}

/// Two extended queries at once (Pipelining), the second answered by an error, then an unsolicited
/// notification.
const EXTENDED: &str = r"
    > \x00\x00\x00\x0f\x00\x03\x00\x00user\x00a\x00
    < R\x00\x00\x00\x0c\x00\x00\x00\x05salt
    > p\x00\x00\x00\x06x\x00
    < R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I
    > P\x00\x00\x00\x10\x00select 1\x00\x00\x00B\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00E\x00\x00\x00\x09\x00\x00\x00\x00\x00S\x00\x00\x00\x04B\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x00S\x00\x00\x00\x04
    < 1\x00\x00\x00\x042\x00\x00\x00\x04D\x00\x00\x00\x0b\x00\x01\x00\x00\x00\x011C\x00\x00\x00\x0dSELECT 1\x00Z\x00\x00\x00\x05I
    < E\x00\x00\x00\x0cSERROR\x00\x00Z\x00\x00\x00\x05I
    < A\x00\x00\x00\x0b\x00\x00\x00\x01a\x00\x00
";

#[test]
fn extended() {
    tells(
        EXTENDED,
        "
        > 0 StartupMessage asks len 15 first last
        = PostgreSQL
        < 0 Authentication answers len 13 first last
        > 15 password asks len 7 first last
        < 13 Authentication answers len 9 first
        < 22 ReadyForQuery answers len 6 last
        > 22 Parse [select 1] asks len 17 first
        > 62 Sync asks len 5 last
        > 67 Bind asks len 13 first
        > 80 Sync asks len 5 last
        < 28 ParseComplete answers len 5 first
        < 64 ReadyForQuery answers len 6 last
        < 70 ErrorResponse answers len 13 first
        < 83 ReadyForQuery answers len 6 last
        < 89 NotificationResponse pushes len 12 first last
        ",
    );
}
