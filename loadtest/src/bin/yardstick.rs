//! The yardstick: the least that a Pingora proxy must do to route by what is in the body. It reads the body to
//! its end, keeps it, and replays it to one fixed upstream. No names, queues, metrics or logs.

use anyhow::Result;
use async_trait::async_trait;
use clap::Parser;
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::{ProxyHttp, Session};

/// The allocator of the gateway, so that the comparison is of what each does and not of how it allocates.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Arguments {
    /// Where to listen
    #[arg(long)]
    listen: String,
    /// Where every request goes
    #[arg(long)]
    upstream: String,
    /// Worker threads
    #[arg(long)]
    threads: usize,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let settings = ServerConf {
        threads: arguments.threads,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(1),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, settings);
    server.bootstrap();
    let proxy = Buffering { upstream: arguments.upstream };
    let mut service = pingora_proxy::http_proxy_service(&server.configuration, proxy);
    service.add_tcp(&arguments.listen);
    server.add_service(service);
    server.run_forever()
}

struct Buffering {
    upstream: String,
}

#[async_trait]
impl ProxyHttp for Buffering {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn request_filter(
        &self,
        session: &mut Session,
        (): &mut (),
    ) -> pingora_core::Result<bool> {
        session.as_mut().enable_retry_buffering();
        while session.as_mut().read_request_body().await?.is_some() {}
        Ok(false)
    }

    async fn upstream_peer(
        &self,
        _session: &mut Session,
        (): &mut (),
    ) -> pingora_core::Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(&self.upstream, false, String::new())))
    }
}
