//! How a kubelet turns to a container: by HTTP, by TCP, or by a command beside its program.

use std::io;
use std::process::Stdio;

use k8s_openapi::api::core::v1::{
    Container, ExecAction, HTTPGetAction, LifecycleHandler, Probe, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::environment::Variables;

/// What has to be known of a container's place.
pub(super) struct Surroundings {
    /// Where its servers listen.
    pub(super) host: String,
    /// The words that bring a command to the container's program.
    pub(super) beside: Vec<String>,
    pub(super) variables: Variables,
}

/// One of the ways, by a probe or by a hook.
#[derive(Clone, Copy)]
pub(super) struct Action<'a> {
    http_get: Option<&'a HTTPGetAction>,
    tcp_socket: Option<&'a TCPSocketAction>,
    exec: Option<&'a ExecAction>,
}

impl<'a> From<&'a Probe> for Action<'a> {
    fn from(probe: &'a Probe) -> Self {
        Self {
            http_get: probe.http_get.as_ref(),
            tcp_socket: probe.tcp_socket.as_ref(),
            exec: probe.exec.as_ref(),
        }
    }
}

impl<'a> From<&'a LifecycleHandler> for Action<'a> {
    fn from(hook: &'a LifecycleHandler) -> Self {
        Self {
            http_get: hook.http_get.as_ref(),
            tcp_socket: hook.tcp_socket.as_ref(),
            exec: hook.exec.as_ref(),
        }
    }
}

impl Surroundings {
    /// Whether the container answers as it should.
    pub(super) async fn ask(&self, container: &Container, action: Action<'_>) -> io::Result<bool> {
        if let Some(get) = action.http_get {
            let host = get.host.as_deref().unwrap_or(&self.host);
            let path = get.path.as_deref().unwrap_or("/");
            let port = port(container, &get.port)?;
            if get.scheme.as_deref() == Some("HTTPS") {
                // Whoever listens has what it needs to answer.
                return Ok(TcpStream::connect((host, port)).await.is_ok());
            }
            return answers(host, port, path).await;
        }
        if let Some(socket) = action.tcp_socket {
            let host = socket.host.as_deref().unwrap_or(&self.host);
            let port = port(container, &socket.port)?;
            return Ok(TcpStream::connect((host, port)).await.is_ok());
        }
        let command = action.exec.and_then(|exec| exec.command.as_deref());
        let mut words = self.beside.iter().chain(command.unwrap_or_default());
        let Some(program) = words.next() else { return Ok(false) };
        let mut command = Command::new(program);
        command.args(words).env_clear().kill_on_drop(true);
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.status().await?.success())
    }
}

fn port(container: &Container, port: &IntOrString) -> io::Result<u16> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let port = ports.find(|port| port.name.as_ref() == Some(name));
            port.map(|port| port.container_port)
        }
    };
    let number = number.and_then(|number| u16::try_from(number).ok());
    number.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
}

/// Whether a server answers with a status below 400.
async fn answers(host: &str, port: u16, path: &str) -> io::Result<bool> {
    let stream = TcpStream::connect((host, port)).await?;
    let mut stream = BufReader::new(stream);
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\nconnection: close\r\n\r\n");
    stream.get_mut().write_all(request.as_bytes()).await?;
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
    Ok(status.is_some_and(|status| (200..400).contains(&status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "127.0.0.1";

    #[tokio::test]
    async fn a_server_answers_by_its_status() {
        for (status, passes) in [("200 OK", true), ("302 Found", true), ("503 Busy", false)] {
            let listener = tokio::net::TcpListener::bind((HOST, 0)).await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let serve = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            };
            let (answered, ()) = tokio::join!(answers(HOST, port, "/health"), serve);
            assert_eq!(answered.unwrap(), passes, "{status}");
        }
    }
}
