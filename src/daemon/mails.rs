//! Mail that mbatchd sends itself: about requests of pipe queues. Each is sent once, on a thread of
//! its own, when the records that it is about are durable.

use super::mail;
use crate::proto::launch::Mail;

/// Most mails that wait for their records; later ones are logged alone.
const MAX_WAITING: usize = 10_000;

/// The mails that wait.
#[derive(Debug, Default)]
pub struct Mails {
    /// LSB_MAILPROG.
    pub program: String,
    waiting: Vec<(u64, Mail)>,
}

impl Mails {
    /// Mail through this program.
    pub fn new(program: &str) -> Mails {
        Mails { program: program.to_owned(), waiting: Vec::new() }
    }

    /// Sends a mail when this ticket is durable; `None`: now.
    pub fn put(&mut self, mail: Mail, ticket: Option<u64>) {
        match ticket {
            _ if !mail::possible(&mail.program.0) => {
                log::warn!("no mail to {}: there is no program for it", mail.to);
            }
            None => send(mail),
            Some(_) if self.waiting.len() >= MAX_WAITING => {
                log::error!("no mail to {}: {MAX_WAITING} mails wait", mail.to);
            }
            Some(ticket) => self.waiting.push((ticket, mail)),
        }
    }

    /// Everything up to this ticket is durable.
    pub fn durable(&mut self, ticket: u64) {
        for (_, mail) in self.waiting.extract_if(.., |(due, _)| *due <= ticket) {
            send(mail);
        }
    }

    /// The records that they are about were not written.
    pub fn void(&mut self) {
        self.waiting.clear();
    }
}

/// Sends a mail on a thread: its program may be slow.
fn send(mail: Mail) {
    let to = mail.to.clone();
    let sent = std::thread::Builder::new().name("mail".into()).spawn(move || {
        if let Err(e) = mail::send(&mail, None) {
            log::warn!("the mail to {}: {e}", mail.to);
        }
    });
    if let Err(e) = sent {
        log::warn!("the mail to {to}: {e}");
    }
}
