//! The sending end of a thread that follows a job for bsub: its news wakes a poll(2), and words for
//! stderr are news too.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;

/// The thread's end; what is written to it are words for stderr.
pub struct Teller<N> {
    pub tx: Sender<N>,
    pub wake: UnixStream,
}

impl<N> Teller<N> {
    pub fn tell(&mut self, news: N) {
        // A failure means that the receiver is gone and the process is about to end.
        let _ = self.tx.send(news);
        let _ = self.wake.write_all(&[0]);
    }
}

impl<N: From<Vec<u8>>> Write for Teller<N> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.tell(N::from(buf.to_vec()));
        Ok(buf.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
