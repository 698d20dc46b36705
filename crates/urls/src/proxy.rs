use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// How requests leave this machine: directly, or through a proxy.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Proxy {
    /// Through none, even where the archive has one.
    Direct,
    /// Through this one.
    Server(ProxyServer),
}

/// A proxy.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProxyServer {
    /// What it speaks.
    pub kind: ProxyKind,
    /// Its host name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// User name and password, if it wants them.
    pub login: Option<(String, String)>,
}

/// What a proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProxyKind {
    /// HTTP: whole URLs for `http:`, CONNECT for `https:`.
    Http,
    /// SOCKS5 with addresses: host names are looked up here.
    Socks5,
    /// SOCKS5 with host names: the proxy looks them up.
    Socks5Names,
}

impl ProxyKind {
    fn scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Socks5 => "socks5",
            Self::Socks5Names => "socks5h",
        }
    }
}

impl Proxy {
    /// The text that it can be made from again, with its password.
    fn secret_text(&self) -> String {
        let Self::Server(server) = self else { return DIRECT.to_owned() };
        let Ok(mut url) = Url::parse(&server.to_string()) else { return server.to_string() };
        if let Some((user, password)) = &server.login {
            // Neither fails for a URL with a host.
            let _ = url.set_username(user);
            let _ = url.set_password(Some(password));
        }
        url.to_string()
    }
}

const DIRECT: &str = "direct";
const SOCKS_PORT: u16 = 1080;

/// Without user name and password, which nobody should read.
impl fmt::Display for ProxyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.kind.scheme(), self.host, self.port)
    }
}

impl fmt::Debug for ProxyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str(DIRECT),
            Self::Server(server) => server.fmt(f),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Proxy> for String {
    fn from(proxy: Proxy) -> Self {
        proxy.secret_text()
    }
}

impl TryFrom<String> for Proxy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Proxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The text may contain a password, so it is not repeated.
        let wrong = |why: &str| {
            format!(
                "not a proxy: {why}; write it like http://host:3128, socks5://host:1080, socks5h://user:password@host:1080, or direct"
            )
        };
        let text = text.trim();
        if text.eq_ignore_ascii_case(DIRECT) {
            return Ok(Self::Direct);
        }
        let url = Url::parse(text).map_err(|_| wrong("it is not an address"))?;
        let kind = match url.scheme() {
            "http" => ProxyKind::Http,
            "socks5" => ProxyKind::Socks5,
            "socks5h" => ProxyKind::Socks5Names,
            _ => return Err(wrong("only http, socks5 and socks5h are known")),
        };
        let host = match url.host() {
            Some(Host::Ipv6(address)) => format!("[{address}]"),
            Some(host) if !host.to_string().is_empty() => host.to_string(),
            _ => return Err(wrong("it has no host")),
        };
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("something follows its port"));
        }
        let port = url.port_or_known_default().unwrap_or(SOCKS_PORT);
        let login = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => {
                let plain = |text: &str| {
                    percent_decoded(text).ok_or_else(|| wrong("its login is not valid UTF-8"))
                };
                let login = (plain(user)?, plain(password.unwrap_or_default())?);
                if login.0.len() > 255 || login.1.len() > 255 {
                    return Err(wrong("user name and password may have 255 bytes each"));
                }
                Some(login)
            }
        };
        Ok(Self::Server(ProxyServer { kind, host, port, login }))
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let coded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match coded.filter(|_| byte == b'%') {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_written_as_an_address() {
        for (text, kind, host, port) in [
            ("http://p.example:3128", ProxyKind::Http, "p.example", 3128),
            ("http://p.example/", ProxyKind::Http, "p.example", 80),
            ("socks5://127.0.0.1", ProxyKind::Socks5, "127.0.0.1", 1080),
            ("socks5h://[::1]:9050", ProxyKind::Socks5Names, "[::1]", 9050),
        ] {
            let Ok(Proxy::Server(server)) = text.parse() else { panic!("{text}") };
            assert_eq!((server.kind, server.host.as_str(), server.port), (kind, host, port));
        }
        assert_eq!("Direct".parse(), Ok(Proxy::Direct));
        for wrong in
            ["", "p.example:3128", "https://p", "http://", "http://p/x", "ftp://p", "socks4://p"]
        {
            assert!(wrong.parse::<Proxy>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_kept_and_never_shown() {
        let proxy: Proxy = "socks5h://me:p%40%3Ass@p.example".parse().unwrap();
        let Proxy::Server(server) = &proxy else { panic!() };
        assert_eq!(server.login, Some(("me".to_owned(), "p@:ss".to_owned())));
        assert_eq!(proxy.to_string(), "socks5h://p.example:1080");
        assert!(!format!("{proxy:?}").contains("ss"), "{proxy:?}");
        let again = Proxy::try_from(String::from(proxy.clone())).unwrap();
        assert_eq!(again, proxy);
        let message = "x://me:secret@p".parse::<Proxy>().unwrap_err();
        assert!(!message.contains("secret"), "{message}");
    }
}
