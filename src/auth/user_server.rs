//! Proof between two processes of one user on hosts of the cluster, one of which is a server that
//! the user runs: pam(1). The handshake is that of daemons (shake.rs); what a daemon would do with
//! the cluster key, both processes ask of the authds of their hosts.
//!
//! Invariants: authd gives the key of a session to the uid alone that is the server's and the
//! caller's; to the server for servers on its own host, to the caller as one of its own host; so
//! nobody else can speak for either side. The key is bound to the server's host and port and to
//! the nonce of the connection. No secret is in an argument or a file.

use super::shake::{
    Ask, AuthError, Claims, Grant, Hex32, Target, UserServer, Who, common, session_key,
};
use super::{HostLookup, KeyRing};
use crate::proto::Daemon;
use crate::proto::frame::{MacKey, SessionKey};
use std::net::IpAddr;

/// The key of a session between a user's server and a caller.
fn key(
    ring: &KeyRing,
    claims: &Claims,
    target: &Target,
    server: &UserServer,
) -> Result<SessionKey, AuthError> {
    let base = session_key(ring, claims, target)?;
    let (uid, port) = (server.uid.to_be_bytes(), server.port.to_be_bytes());
    let fields: [&[u8]; 3] = [b"lsf-user-server-1", &uid, &port];
    Ok(SessionKey::new(MacKey::new(base.expose()).of_fields(&fields)))
}

/// authd's judgement of a question about a user's server: who asks is told by the kernel.
pub fn grant(ring: &KeyRing, ask: &Ask, uid: u32, gid: u32, user: &str, host: &str) -> Grant {
    let no = |why: &str| Grant::No { why: why.to_owned() };
    let Some(server) = ask.user_server.as_deref().filter(|_| ask.target.daemon == Daemon::Pam)
    else {
        return no("no server of a user");
    };
    if server.uid != uid {
        return no("the server is another user's");
    }
    let claims = match &server.caller {
        Some(_) if ask.target.host != host => return no("the server is on another host"),
        Some(caller) if caller.uid != uid || caller.who != Who::User => {
            return no("the caller is another user's");
        }
        Some(caller) => Ok(caller.clone()),
        None if ask.keys.is_empty() => return Grant::Keys { keys: ring.ids() },
        None => common(ring, &ask.keys).map(|key| {
            let (user, host) = (user.to_owned(), host.to_owned());
            Claims { key, who: Who::User, uid, gid, user, host }
        }),
    };
    let made = claims.and_then(|claims| {
        let session = key(ring, &claims, &ask.target, server)?;
        Ok(Grant::Yes { session: Hex32(*session.expose()), claims })
    });
    made.unwrap_or_else(|e| Grant::No { why: e.to_string() })
}

/// Whether a caller of this host may come from this address. `own`: the server's host.
///
/// # Errors
/// The address is of no host of the cluster, or of another one.
pub fn comes_from(
    hosts: &dyn HostLookup,
    host: &str,
    addr: IpAddr,
    own: &str,
) -> Result<(), AuthError> {
    match hosts.host_of_addr(addr) {
        Some(name) if name == host => Ok(()),
        // loopback without a host of its own can only be this host
        None if addr.is_loopback() && host == own => Ok(()),
        None => Err(AuthError::NotOurHost { addr }),
        Some(_) => Err(AuthError::WrongHost { addr, host: host.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::shake::NONCE;

    const OWN: u32 = 1000;

    fn target(host: &str) -> Target {
        let nonce = Hex32([5; NONCE]);
        let (daemon, host, ways) = (Daemon::Pam, host.to_owned(), String::new());
        Target { daemon, host, nonce, lo: 1, hi: 1, ways }
    }

    fn ask(keys: Vec<String>, host: &str, uid: u32, port: u16, caller: Option<Claims>) -> Ask {
        let user_server = Some(Box::new(UserServer { uid, port, caller }));
        Ask { target: target(host), keys, eauth: String::new(), user_server }
    }

    fn ring() -> KeyRing {
        KeyRing::parse(crate::auth::new_key().unwrap().as_bytes()).unwrap()
    }

    fn why(grant: Grant) -> String {
        match grant {
            Grant::No { why } => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_processes_of_a_user_have_one_key_and_nobody_else_has_it() {
        let ring = ring();
        let of = |ask: &Ask, uid, host| grant(&ring, ask, uid, 100, "ann", host);
        let keys = match of(&ask(vec![], "h1", OWN, 70, None), OWN, "h1") {
            Grant::Keys { keys } => keys,
            other => panic!("{other:?}"),
        };
        let Grant::Yes { claims, session } = of(&ask(keys.clone(), "h1", OWN, 70, None), OWN, "h2")
        else {
            panic!("the caller has no key")
        };
        assert_eq!((claims.host.as_str(), claims.uid), ("h2", OWN));
        let server = ask(vec![], "h1", OWN, 70, Some(claims.clone()));
        let Grant::Yes { session: same, .. } = of(&server, OWN, "h1") else {
            panic!("the server has no key")
        };
        assert_eq!(session.0, same.0);
        // another port, another server
        let Grant::Yes { session: other, .. } =
            of(&ask(keys.clone(), "h1", OWN, 71, None), OWN, "h2")
        else {
            panic!("the caller has no key")
        };
        assert_ne!(session.0, other.0);
        // another user on either side
        let foreign = of(&ask(keys.clone(), "h1", OWN, 70, None), 1001, "h2");
        assert_eq!(why(foreign), "the server is another user's");
        assert_eq!(why(of(&server, 1001, "h1")), "the server is another user's");
        let thief = ask(vec![], "h1", 1001, 70, Some(claims));
        assert_eq!(why(of(&thief, 1001, "h1")), "the caller is another user's");
        // a server of another host
        assert_eq!(why(of(&server, OWN, "h3")), "the server is on another host");
        // the question of daemons gives no such key
        let plain = Ask { user_server: None, ..ask(keys.clone(), "h1", OWN, 70, None) };
        let no = crate::auth::shake::grant(&ring, &plain, OWN, 100, "ann", "h2");
        assert_eq!(why(no), "authd: pam is a user's");
        let mut daemon = ask(keys, "h1", OWN, 70, None);
        daemon.target.daemon = Daemon::Res;
        assert_eq!(why(of(&daemon, OWN, "h2")), "no server of a user");
    }
}
