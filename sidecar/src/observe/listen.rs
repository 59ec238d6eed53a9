//! Where it is served, and to whom.

use std::fmt;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::guarded::Guarded;
use super::routes;
use crate::lock::try_lock;

/// File name of the socket below the job's run directory.
pub const SOCKET_FILE: &str = "http.sock";
/// Clients that are served at a time, at each place.
pub const MAX_CLIENTS: usize = 32;
/// How long a connection lasts, and how long it does when nothing comes or goes (those who follow events hear something more often): who has
/// nothing to ask any more, or does not read, does not keep others out. Browsers and scrapers connect anew by themselves.
const LIFE: Duration = Duration::from_secs(600);
const IDLE: Duration = Duration::from_secs(30);
/// How often a place that cannot be had is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A place to serve at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A socket for this user and root.
    Unix(PathBuf),
    /// A TCP port, for whoever reaches it.
    Tcp(SocketAddr),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            return match path.is_absolute() {
                true => Ok(Self::Unix(path)),
                false => {
                    Err("the path of a socket must be absolute, as in unix:/run/x.sock".into())
                }
            };
        }
        text.parse().map(Self::Tcp).map_err(|_| {
            "not an address with a port, as in 127.0.0.1:9464 or [::1]:9464, nor a socket, as in unix:/run/x.sock".into()
        })
    }
}

/// Serves there for ever.
pub(super) async fn serve(place: Endpoint, routes: Router) {
    let mut said = false;
    loop {
        let served = match &place {
            Endpoint::Unix(path) => match bind(path) {
                Ok((listener, _lock)) => run(Guarded::new(listener), routes.clone()).await,
                Err(e) => Err(e),
            },
            Endpoint::Tcp(address) => match TcpListener::bind(address).await {
                Ok(listener) => {
                    tracing::info!(
                        "metrics and a page of this job are at http://{address}/, for everyone who reaches that"
                    );
                    let routes = match address.ip().to_canonical().is_loopback() {
                        true => routes::for_loopback(routes.clone()),
                        false => routes.clone(),
                    };
                    run(Guarded::new(listener), routes).await
                }
                Err(e) => Err(e),
            },
        };
        // The sidecar before this one may still have it.
        if let Err(error) = served
            && !std::mem::replace(&mut said, true)
        {
            tracing::warn!(
                %error, %place,
                "metrics and page cannot be served there; it is tried again. If another program has that place, choose another \
                 with --metrics"
            );
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn run<L: Listener>(listener: L, routes: Router) -> io::Result<()>
where
    L::Addr: fmt::Debug,
{
    axum::serve(listener, routes).await
}

/// A socket that nobody else may open, in place of one that another sidecar left; and the lock beside it, without which it is another
/// sidecar's, of the same job.
fn bind(path: &Path) -> io::Result<(UnixListener, File)> {
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => {
            return Err(io::Error::other("there is something that is no socket"));
        }
        _ => {}
    }
    let lock = try_lock(&beside(path, ".lock"))?
        .ok_or_else(|| io::Error::other("another sidecar of the job serves there"))?;
    let new = beside(path, ".phos-new");
    match std::fs::remove_file(&new) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(&new)?;
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&new, path)?;
    Ok((listener, lock))
}

/// A name beside this one.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Listeners that serve only so many clients at a time.
mod guarded {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio::time::{Instant, Sleep};

    use super::{
        Arc, IDLE, LIFE, Listener, MAX_CLIENTS, OwnedSemaphorePermit, Semaphore, TcpListener,
        TcpStream, UnixListener, UnixStream, io,
    };

    /// A listener with places for its clients.
    #[derive(Debug)]
    pub(super) struct Guarded<L> {
        listener: L,
        places: Arc<Semaphore>,
    }

    impl<L> Guarded<L> {
        pub(super) fn new(listener: L) -> Self {
            Self {
                listener,
                places: Arc::new(Semaphore::new(MAX_CLIENTS)),
            }
        }
    }

    /// Who is served.
    pub(super) trait Client: AsyncRead + AsyncWrite + Unpin + Send + 'static {
        /// Whether this one may be.
        fn is_allowed(&self) -> bool;
    }

    impl Client for TcpStream {
        fn is_allowed(&self) -> bool {
            true
        }
    }

    impl Client for UnixStream {
        fn is_allowed(&self) -> bool {
            let own = rustix::process::geteuid().as_raw();
            self.peer_cred()
                .is_ok_and(|peer| peer.uid() == 0 || peer.uid() == own)
        }
    }

    /// A client that has its place.
    #[derive(Debug)]
    pub(super) struct Served<S> {
        stream: S,
        life: Pin<Box<Sleep>>,
        idle: Pin<Box<Sleep>>,
        _place: OwnedSemaphorePermit,
    }

    impl<S> Served<S> {
        fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
            self.life.as_mut().poll(cx).is_ready() || self.idle.as_mut().poll(cx).is_ready()
        }

        /// Notes whether something came or went.
        fn after<T>(&mut self, polled: Poll<T>) -> Poll<T> {
            if polled.is_ready() {
                self.idle.as_mut().reset(Instant::now() + IDLE);
            }
            polled
        }
    }

    fn over() -> io::Error {
        io::ErrorKind::TimedOut.into()
    }

    impl<S: Client> AsyncRead for Served<S> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.is_over(cx) {
                return Poll::Ready(Err(over()));
            }
            let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
            self.after(polled)
        }
    }

    impl<S: Client> AsyncWrite for Served<S> {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.is_over(cx) {
                return Poll::Ready(Err(over()));
            }
            let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
            self.after(polled)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_shutdown(cx)
        }
    }

    impl Listener for Guarded<TcpListener> {
        type Io = Served<TcpStream>;
        type Addr = std::net::SocketAddr;

        async fn accept(&mut self) -> (Self::Io, Self::Addr) {
            accept(&mut self.listener, &self.places).await
        }

        fn local_addr(&self) -> io::Result<Self::Addr> {
            self.listener.local_addr()
        }
    }

    impl Listener for Guarded<UnixListener> {
        type Io = Served<UnixStream>;
        type Addr = tokio::net::unix::SocketAddr;

        async fn accept(&mut self) -> (Self::Io, Self::Addr) {
            accept(&mut self.listener, &self.places).await
        }

        fn local_addr(&self) -> io::Result<Self::Addr> {
            self.listener.local_addr()
        }
    }

    async fn accept<L: Listener>(
        listener: &mut L,
        places: &Arc<Semaphore>,
    ) -> (Served<L::Io>, L::Addr)
    where
        L::Io: Client,
    {
        loop {
            // Nobody closes it.
            let Ok(place) = Arc::clone(places).acquire_owned().await else {
                return std::future::pending().await;
            };
            let (stream, address) = Listener::accept(listener).await;
            if stream.is_allowed() {
                let served = Served {
                    stream,
                    life: Box::pin(tokio::time::sleep(LIFE)),
                    idle: Box::pin(tokio::time::sleep(IDLE)),
                    _place: place,
                };
                return (served, address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_addresses_or_sockets() {
        let parsed = |text: &str| text.parse::<Endpoint>();
        for good in [
            "127.0.0.1:9464",
            "[::1]:9464",
            "unix:/run/x.sock",
            "0.0.0.0:1",
        ] {
            assert_eq!(parsed(good).unwrap().to_string(), good);
        }
        for bad in [
            "",
            "9464",
            "localhost:9464",
            "127.0.0.1",
            "unix:x.sock",
            ":9464",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
