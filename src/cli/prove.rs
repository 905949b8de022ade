//! How a command proves who its user is, in whichever way the server takes and lsf.conf here
//! enables (LSF_AUTH in lsf.conf(5)).
//!
//! The built-in credential comes from this host's authd. Any other way is asked on top of it
//! where authd answers, because the frames are then signed with a secret; where it does not, the
//! session key is made from what everyone on the way can read.

use super::client::{ClientError, lost, read_some};
use super::site::LocalSite;
use crate::auth::eauth_aux::{self, EauthAux};
use crate::auth::shake::{self, Ask, Auth, AuthError, Claims, Grant, Hello, Who};
use crate::auth::{Way, Ways, eauth};
use crate::conf::load;
use crate::model::ByteStr;
use crate::net::sock;
use crate::proto::PROTO_LOW;
use crate::proto::frame::{
    Decoder, FrameHead, Kind, MAX_FRAME_EARLY, Session, SessionKey, write_frame,
};
use crate::sys::child::{Given, Io};
use crate::sys::files::{RealFiles, unsafe_program};
use crate::sys::users::{self, UserDatabase};
use crate::sys::words;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

/// Longest wait for authd: it only signs.
const AUTHD_TIMEOUT: Duration = Duration::from_secs(10);

/// The server's ways that are open here, in its order. The built-in credential always is.
pub fn ways(site: &LocalSite, hello: &Hello) -> Result<Vec<Way>, AuthError> {
    if hello.ways.is_empty() {
        return Ok(vec![Way::Key]);
    }
    let own = Ways::of(&site.lsf);
    let mut found: Vec<Way> = Vec::new();
    for way in hello.ways.split(' ').filter_map(Way::of) {
        let open = way == Way::Key || own.allows(way);
        if open && !found.contains(&way) {
            found.push(way);
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    // the file is compared when a daemon starts: it may have gone since
    if hello.ways == Way::Eauth.name() && site.lsf.auth().any(|word| word == Way::Eauth.name()) {
        let why = format!(
            "{} on {} was started with an eauth of the site, and {} of this host is none: put it \
             back, or run lsf_daemons restart on that host",
            hello.daemon.name(),
            hello.host,
            own.eauth.display()
        );
        return Err(AuthError::Unproved { way: Way::Eauth, why });
    }
    Err(AuthError::NotEnabled { way: hello.ways.chars().take(40).collect() })
}

/// Appends the client's first frame.
pub fn prove(
    site: &LocalSite,
    hello: &Hello,
    version: u16,
    way: Way,
    out: &mut Vec<u8>,
) -> Result<(Claims, Session), ClientError> {
    if way == Way::Key {
        let (claims, key) = credential(site, hello)?;
        let session = shake::write_auth(version, claims.clone(), &key, out)?;
        return Ok((claims, session));
    }
    let eauth = if way == Way::Eauth { Some(run_eauth(site, hello)?) } else { None };
    let (data, aux) = eauth.unwrap_or_default();
    // A helper on a privileged port has said it in the open.
    let signed = if way == Way::Setuid { None } else { credential(site, hello).ok() };
    let (claims, key) = match signed {
        Some((claims, key)) => (claims, Some(key)),
        None => (open_claims(&canonical(site))?, None),
    };
    let (way, claims) = (way.name().to_owned(), claims);
    let auth = Auth { version, claims: claims.clone(), way, data, aux };
    let key = match key {
        Some(key) => key,
        None => shake::open_key(&auth, &hello.target())?,
    };
    Ok((claims, shake::write_auth_of(auth, &key, out)?))
}

/// The user of this process, without a credential.
pub fn open_claims(host: &str) -> Result<Claims, ClientError> {
    let uid = rustix::process::getuid().as_raw();
    let gid = rustix::process::getgid().as_raw();
    let user = UserDatabase::default().find_uid(uid, users::GETENT_WAIT);
    let why = || AuthError::NoGrant { why: format!("uid {uid} has no name on this host") };
    let user = user.ok_or_else(why)?.name;
    Ok(Claims { key: String::new(), who: Who::User, uid, gid, user, host: host.to_owned() })
}

/// This host as the cluster spells it.
pub fn canonical(site: &LocalSite) -> String {
    let (base, _) = load::load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let name = base.as_ref().and_then(|b| b.hosts.canonical(&site.host));
    name.unwrap_or(&site.host).to_owned()
}

/// The output of the site's own eauth for the server's host, and its auxiliary data.
fn run_eauth(site: &LocalSite, hello: &Hello) -> Result<(ByteStr, String), ClientError> {
    let ways = Ways::of(&site.lsf);
    let (base, _) = load::load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let cluster = base.map_or(String::new(), |b| b.name);
    let server = format!("{}@{cluster}", hello.daemon.name());
    if let Some(why) = unsafe_program(&ways.eauth) {
        return Err(ClientError::Auth(AuthError::Unproved { way: Way::Eauth, why }));
    }
    let mut cmd = Command::new(&ways.eauth);
    cmd.args(["-c", &hello.host]).env("LSF_EAUTH_CLIENT", "user");
    cmd.env("LSF_EAUTH_SERVER", server).env("LSF_ENVDIR", &site.envdir);
    let fail = |why: String| {
        let why = format!("{} -c: {why}", ways.eauth.display());
        ClientError::Auth(AuthError::Unproved { way: Way::Eauth, why })
    };
    let beside = EauthAux::make();
    let beside = beside.map_err(|e| fail(format!("LSF_EAUTH_AUX_DATA: {}", words(&e))))?;
    beside.tell_client(&mut cmd);
    let given = Given { env: true, group: false, stdio: [Io::Null, Io::Pipe, Io::Ours] };
    match users::run_bounded(&cmd, given, eauth::WAIT) {
        Ok((text, true)) => {
            let aux = beside.take().map_err(fail)?;
            Ok((text.trim_end_matches(['\r', '\n']).into(), eauth_aux::pack(&aux)))
        }
        Ok((_, false)) => Err(fail("it failed".into())),
        Err(e) => Err(fail(words(&e))),
    }
}

/// Asks this host's authd who we are and for the session key.
fn credential(site: &LocalSite, hello: &Hello) -> Result<(Claims, SessionKey), ClientError> {
    let (target, keys) = (hello.target(), hello.keys.clone());
    match ask_authd(site, &Ask { target, keys, eauth: String::new(), user_server: None })? {
        Grant::Yes { claims, session } => Ok((claims, SessionKey::new(session.0))),
        Grant::No { why } => Err(AuthError::NoGrant { why }.into()),
        Grant::Eauth { .. } | Grant::Keys { .. } => Err(ClientError::Unexpected),
    }
}

/// Asks this host's authd one thing.
pub fn ask_authd(site: &LocalSite, ask: &Ask) -> Result<Grant, ClientError> {
    let path = site.authd_socket();
    let down = |e: io::Error| ClientError::Down(format!("{}: {}", path.display(), words(&e)));
    let mut sock = sock::with_unix_path(&path, |p| UnixStream::connect(p)).map_err(down)?;
    sock.set_read_timeout(Some(AUTHD_TIMEOUT)).map_err(down)?;
    let mut out = Vec::with_capacity(512);
    write_frame(&mut out, FrameHead::plain(Kind::Ask, PROTO_LOW), None, ask)?;
    sock.write_all(&out).map_err(|e| lost(&e))?;
    let mut dec = Decoder::new(MAX_FRAME_EARLY);
    let mut chunk = [0u8; 4096];
    loop {
        if let Some(raw) = dec.take()? {
            raw.expect(Kind::Grant)?;
            return Ok(raw.parse::<Grant>()?);
        }
        let n = read_some(&mut sock, &mut chunk)?;
        dec.push(&chunk[..n]);
    }
}
