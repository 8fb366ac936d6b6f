//! The API server goes away: nobody who is served notices.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flexinfer_testkit::simulator::Settings;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::world::Site;

/// A way to the API server that the test can cut.
struct Line {
    address: SocketAddr,
    open: watch::Sender<bool>,
}

impl Line {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (open, state) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut state = state.clone();
                tokio::spawn(async move {
                    if !*state.borrow() {
                        return;
                    }
                    let Ok(mut server) = TcpStream::connect(server).await else { return };
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = state.wait_for(|open| !open) => {}
                    }
                });
            }
        });
        Self { address, open }
    }

    fn cut(&self) {
        self.open.send_replace(false);
    }

    fn mend(&self) {
        self.open.send_replace(true);
    }
}

/// The site's configuration, by way of `line`.
async fn reached_by_line(site: &Site) -> (Line, PathBuf) {
    let text = std::fs::read_to_string(site.models.world.cluster.kubeconfig()).unwrap();
    let server = text.split("https://").nth(1).unwrap();
    let server: String =
        server.chars().take_while(|letter| !"\"'\n ,/".contains(*letter)).collect();
    let line = Line::to(server.replace("localhost", "127.0.0.1").parse().unwrap()).await;
    let path = site.folder().join("kubeconfig");
    std::fs::write(&path, text.replace(&server, &line.address.to_string())).unwrap();
    (line, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_model_is_served_while_the_api_server_is_away_and_demand_arrives_afterwards() {
    let site = Site::new().await;
    site.simulated("ready").await;
    site.simulated("asleep").await;
    let (line, kubeconfig) = reached_by_line(&site).await;
    let gateway = site.gateway_by("one", kubeconfig, &[]).await;
    let engine = site.engine(Settings::default()).await;
    site.list("ready", &engine).await;
    assert_eq!(gateway.ask("ready").await.status(), 200);

    line.cut();
    let asleep = gateway.asking("asleep");
    let done = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let away = if std::env::var_os("FLEXINFER_FULL").is_some() { 60 } else { 8 };
    let mut served = 0;
    while began.elapsed() < Duration::from_secs(away) {
        let answer = gateway.ask("ready").await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        served += 1;
        sleep(Duration::from_millis(10)).await;
    }
    assert!(served > 10);
    // What is missed meanwhile is learnt afterwards: a model that came, and an engine.
    site.simulated("new").await;
    let second = site.engine(Settings::default()).await;
    site.list("asleep", &second).await;
    done.store(true, Ordering::SeqCst);

    line.mend();
    assert_eq!(asleep.await.unwrap().status(), 200);
    gateway.knows("new").await;
    site.traffic("asleep", |entry| entry["peak"].as_i64() > Some(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_without_an_api_server_is_not_ready_and_serves_once_it_is_there() {
    let site = Site::new().await;
    site.simulated("a").await;
    let (line, kubeconfig) = reached_by_line(&site).await;
    line.cut();
    let mending = tokio::spawn(async move {
        sleep(Duration::from_secs(1)).await;
        line.mend();
        line
    });
    let gateway = site.gateway_by("one", kubeconfig, &[]).await;
    gateway.knows("a").await;
    drop(mending.await.unwrap());
}
