//! Accepts connections on loopback, a bounded number at once, each with limits on its headers and its time.

use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1::{self, Connection};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use steadfast_engine::interrupt::EndRequest;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, oneshot, watch};

use super::router::App;
use super::timed::Timed;

const MOST_CONNECTIONS: usize = 256;
/// Until the headers of a request are there, also of the next one on a connection that stays open.
const HEADER_LIMIT: Duration = Duration::from_secs(10);
const WRITE_LIMIT: Duration = Duration::from_secs(30);
const MOST_HEADER_BYTES: usize = 32 << 10;
/// How long requests under way may take to end.
const GRACE: Duration = Duration::from_secs(2);
/// After a failed accept, when too many files may be open.
const PAUSE: Duration = Duration::from_millis(100);
/// Threads that build pages and wait for commands.
const WORKERS: usize = 16;

/// Serves until a request to end arrives, and returns it.
pub(super) fn serve(
    app: &Arc<App>,
    router: &Router,
    listener: TcpListener,
    requests: mpsc::Receiver<EndRequest>,
) -> std::io::Result<EndRequest> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(WORKERS).build()?;
    let looking = {
        let app = Arc::clone(app);
        std::thread::Builder::new().name("changes".into()).spawn(move || app.streams.work(&app.paths))?
    };
    let (sender, ended) = oneshot::channel();
    // Without a sender of signals, it works until it is killed.
    std::thread::Builder::new().name("signals".into()).spawn(move || requests.recv().map(|end| sender.send(end)))?;
    let end = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (ending, is_ending) = watch::channel(false);
        let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let end = tokio::select! {
            end = ended => end.unwrap_or(EndRequest::Terminate),
            never = accept(&listener, router, &slots, &is_ending) => match never {},
        };
        drop(listener);
        app.streams.end();
        // The receivers may be gone already.
        let _ = ending.send(true);
        let most = u32::try_from(MOST_CONNECTIONS).unwrap_or(u32::MAX);
        let _ = tokio::time::timeout(GRACE, slots.acquire_many(most)).await;
        Ok(end)
    });
    app.streams.end();
    // Commands under way end by themselves.
    runtime.shutdown_background();
    let _ = looking.join();
    end
}

async fn accept(
    listener: &tokio::net::TcpListener,
    router: &Router,
    slots: &Arc<Semaphore>,
    is_ending: &watch::Receiver<bool>,
) -> std::convert::Infallible {
    loop {
        // Further connections wait in the system's queue until one ends.
        let slot = Arc::clone(slots).acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (router, mut is_ending) = (router.clone(), is_ending.clone());
        tokio::spawn(async move {
            let _slot = slot;
            let mut connection = std::pin::pin!(connection(Timed::new(stream, WRITE_LIMIT), router));
            // An error is a client that went away or sent no HTTP.
            tokio::select! {
                _ = connection.as_mut() => return,
                _ = is_ending.changed() => connection.as_mut().graceful_shutdown(),
            }
            let _ = connection.await;
        });
    }
}

/// Serves the requests that arrive on a stream.
pub(super) fn connection<Stream>(
    stream: Stream,
    router: Router,
) -> Connection<TokioIo<Stream>, TowerToHyperService<Router>>
where
    Stream: AsyncRead + AsyncWrite + Unpin,
{
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_LIMIT)
        .max_buf_size(MOST_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
}
