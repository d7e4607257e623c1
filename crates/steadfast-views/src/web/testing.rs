//! The server of the page in memory: it reads bytes as it does from a connection, and answers with bytes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use steadfast_system::paths::Paths;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;

use super::guard::RequestGuard;
use super::router::{self, App};
use super::server;
use crate::actions::Actions;

const PORT: u16 = 7_777;
/// Room for all that a client sends before it reads.
const BUFFER: usize = 1 << 20;
/// Without a byte for so long, the answer is a stream of events.
const IDLE: Duration = Duration::from_millis(500);

/// A server without a port.
pub struct InMemory {
    app: Arc<App>,
    router: Router,
    runtime: Runtime,
}

impl InMemory {
    /// `program` runs the commands of actions.
    pub fn new(paths: Paths, program: PathBuf) -> io::Result<Self> {
        let actions = Actions::new(paths.clone(), program);
        let app = Arc::new(App::new(paths, RequestGuard::new(PORT, &[], None, None)?, actions, false));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { router: router::router(Arc::clone(&app)), app, runtime })
    }

    /// The name under which requests are served.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{PORT}")
    }

    /// The cookie of a browser that has opened a link.
    pub fn cookie(&self) -> io::Result<String> {
        let entered = self.app.guard.enter(self.app.guard.add_key()?.reveal()).unwrap_or_default();
        Ok(entered.split(';').next().unwrap_or_default().to_owned())
    }

    /// What a client gets that sends these bytes, and closes its end when the answer begins.
    pub fn answer(&self, sent: &[u8]) -> io::Result<Vec<u8>> {
        self.runtime.block_on(async {
            let (mut client, stream) = tokio::io::duplex(BUFFER);
            let serving = tokio::spawn(server::connection(stream, self.router.clone()));
            client.write_all(sent.get(..BUFFER / 2).unwrap_or(sent)).await?;
            let mut answer = Vec::new();
            // A head that has no end is answered when its time is over; the client does not wait for that.
            let mut is_open =
                sent.windows(2).any(|end| end == b"\n\n") || sent.windows(4).any(|end| end == b"\r\n\r\n");
            if !is_open {
                client.shutdown().await?;
            }
            while let Ok(read) = tokio::time::timeout(IDLE, client.read_buf(&mut answer)).await {
                if read? == 0 {
                    break;
                }
                // The server would wait for another request.
                if std::mem::take(&mut is_open) {
                    client.shutdown().await?;
                }
            }
            drop(client);
            // What is wrong with a connection is seen in its answer.
            let _ = tokio::time::timeout(IDLE, serving).await;
            Ok(answer)
        })
    }
}
