//! Mail that mbatchd sends itself: about requests of pipe queues. Each is sent once, when the
//! records that it is about are durable, by one thread for all of them: the mail program may be
//! slow, and many requests may be given up at once.

use super::mail;
use crate::proto::launch::Mail;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Most mails that wait for their records, and most that wait for the mail program; later ones are
/// logged alone.
const MAX_WAITING: usize = 10_000;

/// The mails that wait.
#[derive(Debug, Default)]
pub struct Mails {
    /// LSB_MAILPROG.
    pub program: String,
    waiting: Vec<(u64, Mail)>,
    /// To the thread that sends them, once there is one.
    sender: Option<SyncSender<Mail>>,
}

impl Mails {
    /// Mail through this program.
    pub fn new(program: &str) -> Mails {
        Mails { program: program.to_owned(), ..Mails::default() }
    }

    /// Sends a mail when this ticket is durable; `None`: now.
    pub fn put(&mut self, mail: Mail, ticket: Option<u64>) {
        match ticket {
            _ if !mail::possible(&mail.program.0) => {
                log::warn!("no mail to {}: there is no program for it", mail.to);
            }
            None => self.send(mail),
            Some(_) if self.waiting.len() >= MAX_WAITING => {
                log::error!("no mail to {}: {MAX_WAITING} mails wait", mail.to);
            }
            Some(ticket) => self.waiting.push((ticket, mail)),
        }
    }

    /// Everything up to this ticket is durable.
    pub fn durable(&mut self, ticket: u64) {
        let due: Vec<_> = self.waiting.extract_if(.., |(due, _)| *due <= ticket).collect();
        due.into_iter().for_each(|(_, mail)| self.send(mail));
    }

    /// The records that they are about were not written.
    pub fn void(&mut self) {
        self.waiting.clear();
    }

    fn send(&mut self, mail: Mail) {
        let sender = match &self.sender {
            Some(sender) => sender.clone(),
            None => match begin_sending() {
                Ok(sender) => self.sender.insert(sender).clone(),
                Err(e) => return log::warn!("no mail to {}: {e}", mail.to),
            },
        };
        match sender.try_send(mail) {
            Ok(()) => {}
            Err(TrySendError::Full(mail)) => {
                log::error!("no mail to {}: {MAX_WAITING} mails wait for the program", mail.to);
            }
            Err(TrySendError::Disconnected(mail)) => {
                log::error!("no mail to {}: the thread that sends mail has ended", mail.to);
                self.sender = None;
            }
        }
    }
}

/// Begins the thread that sends mails one after the other.
fn begin_sending() -> std::io::Result<SyncSender<Mail>> {
    let (sender, mails) = sync_channel(MAX_WAITING);
    std::thread::Builder::new().name("mail".into()).spawn(move || send_all(&mails))?;
    Ok(sender)
}

fn send_all(mails: &Receiver<Mail>) {
    for mail in mails {
        if let Err(e) = mail::send(&mail, None) {
            log::warn!("the mail to {}: {e}", mail.to);
        }
    }
}
