//! How a request leaves this machine: from which address, through which proxy, and which
//! certificates it accepts at the other end.

use std::io;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nenrin_urls::Proxy;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How one request leaves this machine. What is not set is as in the options.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Road {
    /// The proxy.
    pub proxy: Option<Proxy>,
    /// The address to send from.
    pub source: Option<IpAddr>,
    /// Whether any certificate will do: an old one, one of another name, one of nobody known. Whoever
    /// sets this keeps the reason.
    pub any_certificate: bool,
}

/// The longest answer of an HTTP proxy to CONNECT.
const MAX_ANSWER_BYTES: usize = 16 << 10;

/// What a proxy is asked to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Address(IpAddr),
    /// The proxy looks it up.
    Name(String),
}

/// Whether a name means this machine or its own network wherever it is looked up.
pub(crate) fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    const LAST: [&str; 8] =
        ["localhost", "localdomain", "local", "internal", "intranet", "lan", "home", "corp"];
    let last = name.rsplit('.').next().unwrap_or_default();
    LAST.contains(&last) || !name.contains('.') || name.ends_with(".home.arpa")
}

/// The value of a `Proxy-Authorization`.
pub(crate) fn basic(login: &(String, String)) -> String {
    format!("Basic {}", STANDARD.encode(format!("{}:{}", login.0, login.1)))
}

/// Asks an HTTP proxy for a connection to a server.
pub(crate) async fn http_connect<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    host: &str,
    port: u16,
    login: Option<&(String, String)>,
) -> io::Result<()> {
    let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
    if let Some(login) = login {
        request += &format!("Proxy-Authorization: {}\r\n", basic(login));
    }
    request += "\r\n";
    stream.write_all(request.as_bytes()).await?;
    // Byte by byte, so that nothing of the server's own answer is taken.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= MAX_ANSWER_BYTES {
            return Err(io::Error::other("its answer is too long"));
        }
        answer.push(stream.read_u8().await?);
    }
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let status = line.split_ascii_whitespace().nth(1).unwrap_or_default();
    match status {
        "200" => Ok(()),
        "407" => Err(io::Error::other("it wants another user name or password (407)")),
        _ => Err(io::Error::other(format!("it answered `{}`", line.escape_debug()))),
    }
}

const SOCKS_VERSION: u8 = 5;
const NO_LOGIN: u8 = 0;
const WITH_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;

/// Asks a SOCKS5 proxy for a connection to a server (RFC 1928, RFC 1929).
pub(crate) async fn socks_connect<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    target: &Target,
    port: u16,
    login: Option<&(String, String)>,
) -> io::Result<()> {
    match login {
        Some(_) => stream.write_all(&[SOCKS_VERSION, 2, NO_LOGIN, WITH_PASSWORD]).await?,
        None => stream.write_all(&[SOCKS_VERSION, 1, NO_LOGIN]).await?,
    }
    let mut choice = [0; 2];
    stream.read_exact(&mut choice).await?;
    match (choice, login) {
        ([SOCKS_VERSION, NO_LOGIN], _) => {}
        ([SOCKS_VERSION, WITH_PASSWORD], Some(login)) => socks_login(stream, login).await?,
        ([SOCKS_VERSION, _], _) => {
            return Err(io::Error::other("it wants a user name and password"));
        }
        _ => return Err(io::Error::other("it does not speak SOCKS5")),
    }
    let mut request = vec![SOCKS_VERSION, CONNECT, 0];
    match target {
        Target::Address(IpAddr::V4(address)) => {
            request.push(1);
            request.extend_from_slice(&address.octets());
        }
        Target::Address(IpAddr::V6(address)) => {
            request.push(4);
            request.extend_from_slice(&address.octets());
        }
        Target::Name(name) => {
            let length = u8::try_from(name.len())
                .map_err(|_| io::Error::other("the host name is too long for SOCKS5"))?;
            request.extend_from_slice(&[3, length]);
            request.extend_from_slice(name.as_bytes());
        }
    }
    request.extend_from_slice(&port.to_be_bytes());
    stream.write_all(&request).await?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await?;
    if answer[0] != SOCKS_VERSION {
        return Err(io::Error::other("it does not speak SOCKS5"));
    }
    if answer[1] != 0 {
        return Err(io::Error::other(socks_refusal(answer[1])));
    }
    // The address that the proxy sends from: of no use here.
    let length = match answer[3] {
        1 => 4,
        4 => 16,
        3 => usize::from(stream.read_u8().await?),
        _ => return Err(io::Error::other("it does not speak SOCKS5")),
    };
    let mut rest = [0; 255 + 2];
    stream.read_exact(&mut rest[..length + 2]).await?;
    Ok(())
}

async fn socks_login<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    (user, password): &(String, String),
) -> io::Result<()> {
    let mut request = vec![1];
    for text in [user, password] {
        // The length was checked when the proxy was set.
        request.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        request.extend_from_slice(text.as_bytes());
    }
    stream.write_all(&request).await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    match answer[1] {
        0 => Ok(()),
        _ => Err(io::Error::other("it wants another user name or password")),
    }
}

fn socks_refusal(code: u8) -> &'static str {
    match code {
        2 => "its rules forbid this connection",
        3 => "it cannot reach the network",
        4 => "it cannot reach the host",
        5 => "the server refused the connection",
        6 => "it waited too long",
        7 | 8 => "it cannot do what it was asked for",
        _ => "it failed",
    }
}

/// What a proxy is asked for, if the host is an address already.
pub(crate) fn literal(host: Option<url::Host<&str>>) -> Option<IpAddr> {
    match host {
        Some(url::Host::Ipv4(address)) => Some(address.into()),
        Some(url::Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_network_are_known() {
        for (name, is_local) in [
            ("localhost", true),
            ("a.LOCALHOST.", true),
            ("printer.local", true),
            ("metadata.google.internal", true),
            ("intranet", true),
            ("router.home.arpa", true),
            ("example.com", false),
            ("local.example.com", false),
            ("x.onion", false),
        ] {
            assert_eq!(is_local_name(name), is_local, "{name}");
        }
    }
}
