//! Which questions and answers do databases speak?

use tcpwhy_heads::Protocol;

use crate::log::tells;

pub(crate) const LOGS: &[(&str, Protocol, &str)] = &[
    ("mysql_text", Protocol::MySql, MYSQL_TEXT),
    ("memcached_text", Protocol::Memcached, MEMCACHED_TEXT),
    ("memcached_binary", Protocol::Memcached, MEMCACHED_BINARY),
    ("mysql_prepared", Protocol::MySql, MYSQL_PREPARED),
    ("mongodb", Protocol::MongoDb, MONGODB),
    ("tds", Protocol::Tds, TDS),
];

const MYSQL_TEXT: &str = include_str!("../recorded/mysql_text.txt");
const MEMCACHED_TEXT: &str = include_str!("../recorded/memcached_text.txt");
const MEMCACHED_BINARY: &str = include_str!("../recorded/memcached_binary.txt");

#[test]
fn mysql_text() {
    tells(
        MYSQL_TEXT,
        "
        < 0 greeting answers len 104 first last
        = MySQL
        > 0 login asks len 119 first last
        < 104 OK answers len 11 first last
        > 119 COM_QUERY [SET NAMES utf8mb4] asks len 22 first last
        < 115 OK answers len 11 first last
        > 141 COM_QUERY [SET AUTOCOMMIT = 0] asks len 23 first last
        < 126 OK answers len 11 first last
        > 164 COM_QUERY [select 1] asks len 13 first last
        < 137 result answers len 5 first
        < 184 EOF answers len 9 last
        > 177 COM_QUERY [create database d] asks len 22 first last
        < 193 OK answers len 11 first last
        > 199 COM_QUERY [create table d.t (a int, b text)] asks len 37 first last
        < 204 OK answers len 11 first last
        > 236 COM_QUERY [insert into d.t values (1, 'x'), (2, null)] asks len 47 first last
        < 215 OK answers len 50 first last
        > 283 COM_QUERY [select * from d.t] asks len 22 first last
        < 265 result answers len 5 first
        < 356 EOF answers len 9 last
        > 305 COM_QUERY [select 1; select 2] asks len 23 first last
        < 365 result answers len 5 first
        < 412 EOF answers len 9
        < 421 result answers len 5
        < 468 EOF answers len 9 last
        > 328 COM_QUERY [select nope] asks len 16 first last
        < 477 ERR answers len 46 first last
        > 344 COM_QUERY [do 1] asks len 9 first last
        < 523 OK answers len 11 first last
        > 353 COM_PING asks len 5 first last
        < 534 OK answers len 11 first last
        > 358 COM_QUIT neither len 5 first last
        ",
    );
}

#[test]
fn memcached_text() {
    tells(
        MEMCACHED_TEXT,
        "
        > 0 set [set a 0 0 5] asks len 20 first last
        = Memcached
        < 0 OK answers len 8 first last
        > 20 get [get a] asks len 7 first last
        < 8 VALUE answers len 20 first
        < 28 END answers len 5 last
        > 27 get [get a none b] asks len 14 first last
        < 33 VALUE answers len 20 first
        < 53 END answers len 5 last
        > 41 set [set b 0 0 1 noreply] pushes len 24 first last
        > 65 incr [incr b 2] asks len 10 first last
        < 58 number answers len 3 first last
        > 75 delete [delete none] asks len 13 first last
        < 61 NOT_FOUND answers len 11 first last
        > 88 version [version] asks len 9 first last
        < 72 VERSION answers len 16 first last
        > 97 ms [ms m 2 T60] asks len 16 first last
        > 113 mg [mg m v] asks len 8 first last
        > 121 mg [mg none v] asks len 11 first last
        > 132 mn [mn] asks len 4 first last
        < 88 HD answers len 4 first last
        < 92 VA answers len 10 first last
        < 102 HD answers len 4 first last
        < 106 HD answers len 4 first last
        > 136 stats [stats items] asks len 13 first last
        > 149 get [get a b] asks len 9 first last
        < 110 STAT answers len 23 first
        < 929 END answers len 5 last
        < 934 VALUE answers len 20 first
        < 970 END answers len 5 last
        > 158 quit [quit] neither len 6 first last
        ",
    );
}

#[test]
fn memcached_binary() {
    tells(
        MEMCACHED_BINARY,
        "
        > 0 command asks #7 len 38 first last
        = Memcached
        < 0 response answers #7 len 24 first last
        > 38 quiet command pushes #8 len 25 first last
        > 63 quiet command pushes #9 len 28 first last
        > 91 command asks #10 len 24 first last
        < 24 response answers #8 len 33 first last
        < 57 response answers #10 len 24 first last
        ",
    );
}

/// MySQL without EOF packets: a fast login, a prepared statement, two results, a command without an answer, a local file.
const MYSQL_PREPARED: &str = r"
    < J\x00\x00\x00\n8.0.36\x00\x09\x00\x00\x0012345678\x00\xff\xff\xff\x02\x00\xff\xdf\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00123456789012\x00caching_sha2_password\x00
    > &\x00\x00\x01\x8d\xa6\x0f\x01\x00\x00\x00\x01-\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00root\x00\x00
    < \x02\x00\x00\x02\x01\x03\x07\x00\x00\x03\x00\x00\x00\x02\x00\x00\x00
    > \x10\x00\x00\x00\x03select a from t
    < \x01\x00\x00\x01\x01\x17\x00\x00\x02\x03def\x00\x00\x00\x01a\x00\x0c?\x00\x01\x00\x00\x00\x03\x81\x00\x00\x00\x00\x02\x00\x00\x03\x01x\x07\x00\x00\x04\xfe\x00\x00\x02\x00\x00\x00
    > \x10\x00\x00\x00\x16select ? from t
    < \x0c\x00\x00\x01\x00\x01\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\x17\x00\x00\x02\x03def\x00\x00\x00\x01a\x00\x0c?\x00\x01\x00\x00\x00\x03\x81\x00\x00\x00\x00\x17\x00\x00\x03\x03def\x00\x00\x00\x01a\x00\x0c?\x00\x01\x00\x00\x00\x03\x81\x00\x00\x00\x00
    > \x12\x00\x00\x00\x17\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x03\x00\x07\x00\x00\x00
    < \x01\x00\x00\x01\x01\x17\x00\x00\x02\x03def\x00\x00\x00\x01a\x00\x0c?\x00\x01\x00\x00\x00\x03\x81\x00\x00\x00\x00\x06\x00\x00\x03\x00\x00\x07\x00\x00\x00\x07\x00\x00\x04\xfe\x00\x00\n\x00\x00\x00\x07\x00\x00\x05\x00\x00\x00\x02\x00\x00\x00
    > \x05\x00\x00\x00\x19\x01\x00\x00\x00\x01\x00\x00\x00\x0e
    < \x07\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00
    > \x01\x00\x00\x00\x09
    < \x09\x00\x00\x01Uptime: 5
    > (\x00\x00\x00\x03load data local infile 'x' into table t
    < \x02\x00\x00\x01\xfbx
    > \x04\x00\x00\x021,2\n\x00\x00\x00\x03
    < \x07\x00\x00\x04\x00\x01\x00\x02\x00\x00\x00
";

#[test]
fn mysql_prepared() {
    tells(
        MYSQL_PREPARED,
        "
        < 0 greeting answers len 78 first last
        = MySQL
        > 0 login asks len 42 first last
        < 78 authentication answers len 6 first
        < 84 OK answers len 11 first last
        > 42 COM_QUERY [select a from t] asks len 20 first last
        < 95 result answers len 5 first
        < 133 EOF answers len 11 last
        > 62 COM_STMT_PREPARE [select ? from t] asks len 20 first last
        < 144 OK answers len 16 first
        < 187 definition answers len 27 last
        > 82 COM_STMT_EXECUTE asks len 22 first last
        < 214 result answers len 5 first
        < 256 EOF answers len 11
        < 267 OK answers len 11 last
        > 104 COM_STMT_CLOSE neither len 9 first last
        > 113 COM_PING asks len 5 first last
        < 278 OK answers len 11 first last
        > 118 COM_STATISTICS asks len 5 first last
        < 289 statistics answers len 13 first last
        > 123 COM_QUERY [load data local infile 'x' into table t] asks len 44 first last
        < 302 LOCAL INFILE answers len 6 first last
        > 167 data asks len 8
        > 175 data asks len 4 last
        < 308 OK answers len 11 first last
        ",
    );
}

/// A client that asks for TLS sends its ClientHello when it is ready: the server says nothing in
/// between.
const MYSQL_TLS: &str = r"
    < J\x00\x00\x00\n8.0.36\x00\x09\x00\x00\x0012345678\x00\xff\xff\xff\x02\x00\xff\xdf\x15\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00123456789012\x00caching_sha2_password\x00
    > \x20\x00\x00\x01\x85\xae\x0f\x01\x00\x00\x00\x01-\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00
    > \x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03
    < \x16\x03\x03\x00\x06\x02\x00\x00\x02\x03\x03
";

#[test]
fn tls_within_mysql() {
    tells(
        MYSQL_TLS,
        "
        < 0 greeting answers len 78 first last
        = MySQL
        > 0 SSLRequest interim len 36 first last
        = TLS
        > 36 ClientHello asks len 11 first
        < 78 ServerHello answers len 11 first
        ",
    );
}

/// OP_QUERY, two calls answered in reverse order, a write without an answer, a stream of answers
/// (exhaust).
const MONGODB: &str = r#"
    > :\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xd4\x07\x00\x00\x00\x00\x00\x00admin.$cmd\x00\x00\x00\x00\x00\xff\xff\xff\xff\x13\x00\x00\x00\x10isMaster\x00\x01\x00\x00\x00\x00
    < 1\x00\x00\x00d\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\r\x00\x00\x00\x10ok\x00\x01\x00\x00\x00\x00
    > 5\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00\x00\x00\x00\x00\x00 \x00\x00\x00\x02find\x00\x06\x00\x00\x00items\x00\x02$db\x00\x02\x00\x00\x00d\x00\x00$\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00\x00\x00\x00\x00\x00\x0f\x00\x00\x00\x10ping\x00\x01\x00\x00\x00\x00
    < "\x00\x00\x00e\x00\x00\x00\x03\x00\x00\x00\xdd\x07\x00\x00\x00\x00\x00\x00\x00\r\x00\x00\x00\x10ok\x00\x01\x00\x00\x00\x00"\x00\x00\x00f\x00\x00\x00\x02\x00\x00\x00\xdd\x07\x00\x00\x00\x00\x00\x00\x00\r\x00\x00\x00\x10ok\x00\x01\x00\x00\x00\x00
    > ,\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00\x02\x00\x00\x00\x00\x17\x00\x00\x00\x02insert\x00\x06\x00\x00\x00items\x00\x00
    > %\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00\x00\x00\x01\x00\x00\x10\x00\x00\x00\x10hello\x00\x01\x00\x00\x00\x00
    < "\x00\x00\x00g\x00\x00\x00\x05\x00\x00\x00\xdd\x07\x00\x00\x02\x00\x00\x00\x00\r\x00\x00\x00\x10ok\x00\x01\x00\x00\x00\x00
    < "\x00\x00\x00h\x00\x00\x00g\x00\x00\x00\xdd\x07\x00\x00\x02\x00\x00\x00\x00\r\x00\x00\x00\x10ok\x00\x01\x00\x00\x00\x00
    < "\x00\x00\x00i\x00\x00\x00h\x00\x00\x00\xdd\x07\x00\x00\x00\x00\x00\x00\x00\r\x00\x00\x00\x10ok\x00\x01\x00\x00\x00\x00
"#;

#[test]
fn mongodb() {
    tells(
        MONGODB,
        "
        > 0 OP_QUERY asks #1 len 58 first last
        = MongoDB
        < 0 OP_REPLY answers #1 len 49 first last
        > 58 OP_MSG [find] asks #2 len 53 first last
        > 111 OP_MSG [ping] asks #3 len 36 first last
        < 49 OP_MSG answers #3 len 34 first last
        < 83 OP_MSG answers #2 len 34 first last
        > 147 OP_MSG pushes len 44 first last
        > 191 OP_MSG [hello] asks #5 len 37 first last
        < 117 OP_MSG answers #5 len 34 first last
        < 151 OP_MSG pushes #5 len 34 first last
        < 185 OP_MSG pushes #5 len 34 first last
        ",
    );
}

/// \[MS-TDS\] 2.2.1 and 2.2.3: an encrypted login between plain packets, an answer of two packets,
/// and a batch that is cancelled.
const TDS: &str = r"
    > \x12\x01\x00\x14\x00\x00\x01\x00\x00\x00\x06\x00\x06\xff\x10\x00\x00\x00\x00\x00
    < \x04\x01\x00\x14\x00\x00\x01\x00\x00\x00\x06\x00\x06\xff\x10\x00\x00\x00\x00\x00
    > \x17\x03\x03\x00\x04abcd
    < \x04\x01\x00\x0c\x00\x33\x01\x00abcd
    > \x01\x01\x00\x0e\x00\x00\x01\x00select
    < \x04\x00\x00\x0c\x00\x33\x01\x00abcd\x04\x01\x00\x0c\x00\x33\x02\x00abcd
    > \x03\x01\x00\x0e\x00\x00\x01\x00select
    > \x06\x01\x00\x08\x00\x00\x01\x00
    < \x04\x01\x00\x0c\x00\x33\x01\x00abcd
";

#[test]
fn tds() {
    tells(
        TDS,
        "
        > 0 prelogin asks len 20 first last
        = TDS
        < 0 result answers len 20 first last
        > 20 encrypted asks first
        < 20 result answers len 12 first last
        > 29 batch asks len 14 first last
        < 32 result answers len 12 first
        < 44 result answers len 12 last
        > 43 rpc asks len 14 first last
        > 57 attention neither len 8 first last
        < 56 result answers len 12 first last
        ",
    );
}
