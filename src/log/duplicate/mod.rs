//! The duplicate event log: LSB_LOCALDIR (lsf.conf(5)) and EVENT_UPDATE_INTERVAL (lsb.params(5)).
//!
//! On the first master host the primary log lies in LSB_LOCALDIR, on a disk of that host; a copy is
//! kept in LSB_SHAREDIR. A request is acknowledged when it is durable in the primary log. The copy
//! is made by a thread of its own, which only reads the primary: a shared directory that hangs or
//! is away delays nobody. Every other master works in LSB_SHAREDIR and makes no copy.
//!
//! | file | what |
//! |---|---|
//! | notes | the small files that say whose copy it is, and who took it over |
//! | attach | who owns the copy; the claim of the first master |
//! | replica | one round of copying |
//! | generation | a copy that is not of this lsb.events: catching up over switches |
//! | resync | the first master returns: the shared log becomes the primary one |
//! | lacking | jobs that the copy lacked when it was taken over, and that come back |
//! | takeover | another master takes the copy over |
//! | files, bytes | the open files; copying and comparing |
//!
//! **The copy is a log.** Each file of it is a byte-exact prefix of the primary's, written in the
//! order in which a commit finishes (spool, records, checksums, accounting), and lsb.events is
//! replaced by the steps of a switch (`switch_names`): recovery reads a copy that was interrupted
//! at any place like a log that was. Old logs are copied too.
//!
//! **One owner.** The directory of the copy has the lock and the owner file of any log; the run
//! that copies must be the owner. It asks before and after each round, holds its files open, and
//! ends when another run owns the copy: a master that takes over gives the files new inodes
//! (`fence`). So two masters never write one file.
//!
//! **The last log.** The primary directory remembers the run under which it claimed
//! the copy last (`notes::ShareMark`). If the copy's owner is that run, nobody has written the copy
//! since, and the primary is the last log. If not, another master has taken over, and the shared
//! log is. The mark follows the claim only when the primary has become equal to the shared log, so
//! that a resynchronisation which is interrupted begins again.
//!
//! **Lag.** The copy may lack the last records. A master that takes over says so, leaves out
//! [`takeover::GAP`] job IDs, which the first master may have given, and notes where the copy ended
//! (`notes::Taken`). When the first master returns with its disk, the jobs with these IDs come back
//! with all their records; changes of older jobs that the copy lacked are told, and the former
//! primary log is kept beside.
//!
//! **A start without the shared directory** goes on from the primary alone only where the same
//! system has run since the last run of mbatchd, and that one did not end in order: otherwise
//! another master may have taken over meanwhile.

pub mod attach;
mod bytes;
mod files;
mod generation;
pub mod lacking;
pub mod notes;
pub mod replica;
pub mod resync;
pub mod takeover;
