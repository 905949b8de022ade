//! Every cap and deadline of a daemon's connections, by name, and the number of connections that
//! the descriptor limit permits.

/// Most connections of a daemon; less where the descriptor limit says so.
pub const MAX_CONNS: usize = 8192;
/// Descriptors left for everything that is not a connection.
pub const SPARE_FDS: u64 = 64;
/// Connections that are kept for daemons, out of all.
pub const DAEMON_RESERVE: usize = 256;
/// Most connections that are not yet authenticated, and no more than a quarter of all. Beyond it
/// the oldest gives way to a new one: whoever means it is done long before it is the oldest.
pub const MAX_EARLY: usize = 1024;
/// Younger than this an unauthenticated connection does not give way; new ones wait to be
/// accepted, microseconds.
pub const EARLY_GRACE_US: u64 = 5_000;
/// Longest time to authenticate, microseconds.
pub const EARLY_US: u64 = 5_000_000;
/// Longest time to look into a caller that does not prove itself by the key, microseconds; more
/// than the ways themselves take (auth::eauth::WAIT, auth::ident::WAIT and a name look-up).
pub const CHECK_US: u64 = 12_000_000;
/// Longest time to make and authenticate an outgoing connection, microseconds.
pub const CONNECT_US: u64 = 10_000_000;
/// Most authenticated connections of one user on one host.
pub const MAX_PER_USER: usize = 2048;
/// Longest time between the first and the last byte of a frame, microseconds.
pub const HALF_FRAME_US: u64 = 15_000_000;
/// Longest time output may wait for a peer that reads nothing, microseconds.
pub const STALL_US: u64 = 300_000_000;
/// Longest time to flush a connection that is being closed, microseconds.
pub const FLUSH_US: u64 = 5_000_000;
/// Longest wait for the peer to close after us, microseconds.
pub const LINGER_US: u64 = 1_000_000;
/// Bytes read at once.
pub const CHUNK: usize = 256 << 10;
/// Bytes read from one connection in one turn.
pub const READ_BUDGET: usize = 256 << 10;
/// Longest time for reading in one turn, microseconds; the rest is read in the next turn.
pub const READ_TURN_US: u64 = 6_000;
/// Share of one turn for long work while no peer sends messages, microseconds.
pub const WORK_TURN_US: u64 = 8_000;
/// Share of one turn for long work while peers send messages, microseconds.
pub const WORK_SHARE_US: u64 = 5_000;
/// Number of messages waiting for a sync at which long work pauses until the sync has ended.
pub const HELD_BEFORE_WORK: usize = 512;
/// Connections accepted in one turn.
pub const ACCEPT_BUDGET: usize = 64;
/// Pause of accepting after the descriptor limit was met, microseconds.
pub const ACCEPT_BACKOFF_US: u64 = 100_000;
/// Above this much waiting output a connection is not read any more, bytes.
pub const OUT_HIGH: usize = 1 << 20;
/// Waiting output below which a connection is read again and `Drained` is sent, bytes.
pub const OUT_LOW: usize = 128 << 10;
/// How many times as long as one piece of something long took to be made (a slice of a listing)
/// the next is waited with while there is other work.
pub const ROOM_PAUSE: u64 = 6;
/// A client that waits this long for a piece is served before earlier requests: clients
/// wait for LSB_API_RECVTIMEOUT (10 s), microseconds.
pub const ROOM_WAIT_US: u64 = 2_000_000;
/// A daemon that heard something less than this long ago has other work, microseconds.
pub const ROOM_QUIET_US: u64 = 10_000;
/// Most waiting output of a peer before the connection is given up, bytes.
pub const OUT_MAX: usize = 64 << 20;
/// Most messages of a connection that wait for the log before no more are read from it.
pub const MAX_HELD: usize = 1024;
/// Largest sum of incomplete frames over all connections, bytes.
pub const MAX_PARTIAL: usize = 64 << 20;
/// When [`MAX_PARTIAL`] is reached, connections with more than this of a frame are closed, bytes.
pub const PARTIAL_FAIR: usize = 256 << 10;
/// Backlog of the listening sockets.
pub const BACKLOG: i32 = 4096;
/// Datagrams read in one turn.
pub const DATAGRAM_BUDGET: usize = 256;
/// Longest time for reading datagrams in one turn, microseconds; the rest is read in the next turn.
pub const DATAGRAM_TURN_US: u64 = 10_000;
/// Longest name of a host that sends a datagram, bytes.
pub const MAX_HOST_NAME: usize = 255;
/// Hosts that asked to be let in of which the last datagram is known. Beyond it all are forgotten:
/// an old question that is asked again changes nothing.
pub const MAX_STRANGERS: usize = 1024;
/// How far a datagram's time may be behind ours, microseconds.
pub const DATAGRAM_WINDOW_US: i64 = 600_000_000;
/// How far a host's clock may be ahead of ours, microseconds. For so long at most can a datagram
/// from the future keep those of its host's present away: less than a LIM may be silent.
pub const CLOCK_AHEAD_US: i64 = 60_000_000;
/// Lines about refused peers in a second.
pub const REFUSALS_LOGGED: u32 = 10;

/// Raises the soft descriptor limit to the hard one; the connections that leaves room for.
pub fn max_conns() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = MAX_CONNS as u64 + SPARE_FDS;
    let soft = limit.maximum.map_or(wanted, |hard| hard.min(wanted));
    let have = limit.current.unwrap_or(u64::MAX);
    if have < soft {
        // A failure only leaves room for fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), ..limit });
    }
    let now = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    (now.saturating_sub(SPARE_FDS).max(16) as usize).min(MAX_CONNS)
}
