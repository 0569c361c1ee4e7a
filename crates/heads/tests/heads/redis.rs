//! Which commands and replies does Redis speak?

use tcpwhy_heads::Protocol;

use crate::log::tells;

pub(crate) const LOGS: &[(&str, Protocol, &str)] = &[
    ("redis2", Protocol::Redis, REDIS2),
    ("redis3", Protocol::Redis, REDIS3),
    ("redis_push", Protocol::Redis, REDIS_PUSH),
];

const REDIS2: &str = include_str!("../recorded/redis2.txt");
const REDIS3: &str = include_str!("../recorded/redis3.txt");
const REDIS_PUSH: &str = include_str!("../recorded/redis_push.txt");

#[test]
fn redis2() {
    tells(
        REDIS2,
        "
        > 0 command [SET] asks first
        > 20 command asks len 7 last
        = Redis
        < 0 reply answers len 5 first last
        > 27 command [GET] asks first
        > 40 command asks len 10 last
        < 5 reply answers len 5 first last
        > 50 command [RPUSH] asks first
        > 86 command asks len 7 last
        < 10 reply answers len 4 first last
        > 93 command [NOPE] asks first
        > 97 command asks len 10 last
        < 14 reply answers first last
        > 107 command [GET] asks first
        > 120 command asks len 7 last
        > 127 command [INCR] asks first
        > 141 command asks len 7 last
        > 148 command [LRANGE] asks first
        > 178 command asks len 8 last
        > 186 command [PING] asks len 6 first last
        < 71 reply answers len 7 first last
        < 78 reply answers len 4 first last
        < 82 reply answers first
        < 100 reply answers len 7 last
        < 107 reply answers len 7 first last
        ",
    );
}

#[test]
fn redis3() {
    tells(
        REDIS3,
        "
        > 0 command [HELLO] asks first
        > 15 command asks len 7 last
        = Redis
        < 0 reply answers first
        < 141 reply answers len 4 last
        > 22 command [HSET] asks first
        > 50 command asks len 7 last
        < 145 reply answers len 4 first last
        > 57 command [HGETALL] asks first
        > 74 command asks len 7 last
        < 149 reply answers first
        < 160 reply answers len 7 last
        > 81 command [GET] asks first
        > 94 command asks len 10 last
        < 167 reply answers len 3 first last
        > 104 command [SUBSCRIBE] asks first
        > 123 command asks len 7 last
        < 170 reply answers first
        < 196 reply answers len 4 last
        ",
    );
}

#[test]
fn redis_push() {
    tells(
        REDIS_PUSH,
        "
        > 0 command [SUBSCRIBE] asks first
        > 19 command asks len 7 last
        = Redis
        < 0 reply answers first
        < 26 reply answers len 4 last
        < 30 push pushes first
        < 54 push pushes len 11 last
        ",
    );
}
