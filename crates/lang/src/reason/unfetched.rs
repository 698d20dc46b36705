//! Why a request brought no answer.

use std::{fmt, net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::translate;

/// Why a request brought no answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unfetched {
    /// The request cannot be sent.
    Request {
        /// What is wrong with it.
        why: String,
    },
    /// The host is at an address that may not be asked.
    Address {
        /// The host in the URL.
        host: String,
        /// The first address refused.
        address: IpAddr,
        /// What kind of address that is.
        network: Network,
    },
    /// The host name has no address.
    Dns {
        /// The host in the URL.
        host: String,
        /// What the resolver says.
        why: String,
    },
    /// No address of the host accepts a connection.
    Connect {
        /// The host in the URL.
        host: String,
        /// The port.
        port: u16,
        /// What the last address tried said.
        why: String,
    },
    /// No secure connection: a bad certificate, most often.
    Tls {
        /// The host in the URL.
        host: String,
        /// What went wrong.
        why: String,
    },
    /// The server closed the connection without a complete response head.
    Closed {
        /// The host in the URL.
        host: String,
    },
    /// What the server sent is not HTTP.
    Protocol {
        /// The host in the URL.
        host: String,
        /// What went wrong.
        why: String,
    },
    /// The status line and headers are too many or too long.
    HeadTooLarge {
        /// The host in the URL.
        host: String,
        /// The most bytes that are read.
        limit_bytes: u64,
        /// The most header lines that are read.
        limit_headers: u64,
    },
    /// The body is too long.
    BodyTooLarge {
        /// The host in the URL.
        host: String,
        /// The most bytes that are read.
        limit_bytes: u64,
        /// What Content-Length announced, if that was too much.
        announced_bytes: Option<u64>,
    },
    /// The body ended before or after the place where it should.
    BodyCut {
        /// The host in the URL.
        host: String,
        /// Bytes that had come.
        received_bytes: u64,
        /// What went wrong.
        why: String,
    },
    /// The body came and could not be put into a file.
    Unkept {
        /// The host in the URL.
        host: String,
        /// Bytes that had come.
        received_bytes: u64,
        /// What went wrong.
        why: String,
    },
    /// Time ran out.
    Timeout {
        /// The host in the URL.
        host: String,
        /// What was waited for.
        step: Step,
        /// The limit that was reached, in milliseconds.
        after_ms: u64,
    },
}

/// Kinds of network addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// The public internet.
    Public,
    /// The machine itself.
    Loopback,
    /// A private network.
    Private,
    /// Carrier-grade NAT.
    CarrierNat,
    /// Benchmarking networks.
    Benchmarking,
    /// Addresses for documentation.
    Documentation,
    /// One link only.
    LinkLocal,
    /// A cloud's metadata service.
    Metadata,
    /// Multicast.
    Multicast,
    /// "This network".
    Unspecified,
    /// Everything else that no website can have.
    Reserved,
}

impl Network {
    /// Whether a site's conditions can allow it.
    fn can_be_allowed(self) -> bool {
        matches!(
            self,
            Self::Loopback
                | Self::Private
                | Self::CarrierNat
                | Self::Benchmarking
                | Self::Documentation
        )
    }

    fn english(self) -> &'static str {
        match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::CarrierNat => "a carrier NAT address",
            Self::Benchmarking => "a benchmarking address",
            Self::Documentation => "a documentation address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud metadata address",
            Self::Multicast => "a multicast address",
            Self::Unspecified => "an unspecified address",
            Self::Reserved => "a reserved address",
        }
    }

    fn japanese(self) -> &'static str {
        match self {
            Self::Public => "公開アドレス",
            Self::Loopback => "このコンピューター自身のアドレス",
            Self::Private => "プライベートアドレス",
            Self::CarrierNat => "通信事業者 NAT のアドレス",
            Self::Benchmarking => "性能試験用のアドレス",
            Self::Documentation => "文書例示用のアドレス",
            Self::LinkLocal => "リンクローカルアドレス",
            Self::Metadata => "クラウドのメタデータ用アドレス",
            Self::Multicast => "マルチキャストアドレス",
            Self::Unspecified => "未指定アドレス",
            Self::Reserved => "予約済みアドレス",
        }
    }
}

/// Steps of a request that have a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Finding the host's addresses.
    Dns,
    /// Opening the TCP connection.
    Connect,
    /// The TLS or HTTP/2 handshake.
    Handshake,
    /// The response's status and headers.
    Head,
    /// The next part of the body.
    Body,
    /// A body that arrives slower than the lowest rate allowed.
    BodyRate,
    /// The whole exchange.
    Exchange,
}

impl Step {
    fn english(self) -> &'static str {
        match self {
            Self::Dns => "its addresses",
            Self::Connect => "a connection",
            Self::Handshake => "the TLS handshake",
            Self::Head => "the response head",
            Self::Body => "more of the body",
            Self::BodyRate => "a body that came too slowly",
            Self::Exchange => "the exchange to end",
        }
    }

    fn japanese(self) -> &'static str {
        match self {
            Self::Dns => "アドレスの問い合わせ待ち",
            Self::Connect => "接続待ち",
            Self::Handshake => "TLS の確立待ち",
            Self::Head => "応答ヘッダー待ち",
            Self::Body => "本文の続き待ち",
            Self::BodyRate => "本文の受信が遅すぎます",
            Self::Exchange => "応答の完了待ち",
        }
    }
}

impl Unfetched {
    pub(super) fn english(&self) -> String {
        match self {
            Self::Request { why } => format!("the request cannot be sent: {why}"),
            Self::Address { host, address, network } => {
                let way_out = match network.can_be_allowed() {
                    true => {
                        "; if it is yours, make it a top page and allow it: `nenrin site set SITE --allow-private`"
                    }
                    false => "",
                };
                let network = network.english();
                format!("`{host}` is at {address}, {network}, which may not be fetched{way_out}")
            }
            Self::Dns { host, why } => format!("the host name `{host}` was not found: {why}"),
            Self::Connect { host, port, why } => {
                format!("no connection to `{host}` port {port}: {why}")
            }
            Self::Tls { host, why } => format!("no secure connection to `{host}`: {why}"),
            Self::Closed { host } => format!("`{host}` closed the connection without answering"),
            Self::Protocol { host, why } => {
                format!("the answer of `{host}` is not valid HTTP: {why}")
            }
            Self::HeadTooLarge { host, limit_bytes, limit_headers } => format!(
                "`{host}` sent a response head beyond the limit of {limit_bytes} bytes or {limit_headers} headers"
            ),
            Self::BodyTooLarge { host, limit_bytes, announced_bytes: Some(announced) } => format!(
                "the body from `{host}` is announced as {announced} bytes, longer than the limit of {limit_bytes} bytes"
            ),
            Self::BodyTooLarge { host, limit_bytes, announced_bytes: None } => {
                format!("the body from `{host}` is longer than the limit of {limit_bytes} bytes")
            }
            Self::BodyCut { host, received_bytes, why } => {
                format!("the body from `{host}` is cut after {received_bytes} bytes: {why}")
            }
            Self::Unkept { host, received_bytes, why } => format!(
                "the body from `{host}` could not be kept beyond {received_bytes} bytes: {why}"
            ),
            Self::Timeout { host, step, after_ms } => {
                let after_s = Duration::from_millis(*after_ms).as_secs_f64();
                format!("`{host}` took longer than {after_s} s: waited for {}", step.english())
            }
        }
    }

    pub(super) fn japanese(&self) -> String {
        match self {
            Self::Request { why } => format!("要求を送れません（{why}）"),
            Self::Address { host, address, network } => {
                let way_out = match network.can_be_allowed() {
                    true => {
                        "。自分のものなら、それをトップページとし、自分のネットワークを許可したサイトを登録してください"
                    }
                    false => "",
                };
                let network = network.japanese();
                format!("「{host}」は {address}（{network}）にあるため取得できません{way_out}")
            }
            Self::Dns { host, why } => {
                format!("「{host}」のアドレスが見つかりません（{}）", of_system(why))
            }
            Self::Connect { host, port, why } => {
                format!("「{host}」のポート {port} に接続できません（{}）", of_system(why))
            }
            Self::Tls { host, why } => {
                format!("「{host}」と安全に接続できません（{}）", of_system(why))
            }
            Self::Closed { host } => format!("「{host}」が応答せずに接続を閉じました"),
            Self::Protocol { host, why } => {
                format!("「{host}」の応答が HTTP として正しくありません（{why}）")
            }
            Self::HeadTooLarge { host, limit_bytes, limit_headers } => format!(
                "「{host}」の応答ヘッダーが上限（{limit_bytes} バイト、{limit_headers} 行）を超えています"
            ),
            Self::BodyTooLarge { host, limit_bytes, announced_bytes: Some(announced) } => format!(
                "「{host}」の本文は {announced} バイトと予告され、上限の {limit_bytes} バイトを超えています"
            ),
            Self::BodyTooLarge { host, limit_bytes, announced_bytes: None } => {
                format!("「{host}」の本文が上限の {limit_bytes} バイトを超えています")
            }
            Self::BodyCut { host, received_bytes, why } => {
                format!("「{host}」の本文が {received_bytes} バイトで途切れました（{why}）")
            }
            Self::Unkept { host, received_bytes, why } => format!(
                "「{host}」の本文を {received_bytes} バイトより先は保存できません（{}）",
                of_system(why)
            ),
            Self::Timeout { host, step, after_ms } => {
                let after_s = Duration::from_millis(*after_ms).as_secs_f64();
                let step = step.japanese();
                format!("「{host}」が {after_s} 秒を超えても終わりません（{step}）")
            }
        }
    }
}

impl fmt::Display for Unfetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.english())
    }
}

/// What the operating system says, in Japanese where it is known.
fn of_system(why: &str) -> String {
    translate::in_japanese(why).unwrap_or_else(|| why.to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One of each kind.
    pub(in super::super) fn all() -> Vec<Unfetched> {
        let (host, why) = (|| "e.com".to_owned(), || "x".to_owned());
        let address = IpAddr::from([127, 0, 0, 1]);
        vec![
            Unfetched::Request { why: why() },
            Unfetched::Address { host: host(), address, network: Network::Loopback },
            Unfetched::Address { host: host(), address, network: Network::Metadata },
            Unfetched::Dns { host: host(), why: why() },
            Unfetched::Connect { host: host(), port: 80, why: why() },
            Unfetched::Tls { host: host(), why: why() },
            Unfetched::Closed { host: host() },
            Unfetched::Protocol { host: host(), why: why() },
            Unfetched::HeadTooLarge { host: host(), limit_bytes: 1, limit_headers: 2 },
            Unfetched::BodyTooLarge { host: host(), limit_bytes: 1, announced_bytes: Some(2) },
            Unfetched::BodyTooLarge { host: host(), limit_bytes: 1, announced_bytes: None },
            Unfetched::BodyCut { host: host(), received_bytes: 1, why: why() },
            Unfetched::Unkept { host: host(), received_bytes: 1, why: why() },
            Unfetched::Timeout { host: host(), step: Step::Head, after_ms: 1_500 },
        ]
    }

    #[test]
    fn what_the_system_says_is_translated_too() {
        let why = "Connection refused (os error 111)".to_owned();
        let refused = Unfetched::Connect { host: "e.com".to_owned(), port: 80, why };
        assert_eq!(
            refused.japanese(),
            "「e.com」のポート 80 に接続できません（接続が拒否されました）"
        );
    }
}
