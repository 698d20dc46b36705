//! Why a visit brought no page, or not a good one.
//!
//! A reason is data: it is stored as JSON and put into words only where it is shown, so that no
//! sentence has to be understood by a program.

mod undecoded;
mod unfetched;

use std::fmt;

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};

pub use self::{
    undecoded::Undecoded,
    unfetched::{Network, Step, Unfetched},
};
use crate::Lang;

/// Why a visit brought no page, or not a good one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The server answered with this status.
    Status(u16),
    /// A redirect with this status does not say where to.
    NoLocation(u16),
    /// A bot guard of this name sent a challenge instead of the page.
    Challenge(String),
    /// 304 to an unconditional request.
    NotModifiedUnasked,
    /// An unrequested part (206).
    PartUnasked,
    /// The page redirects to itself.
    RedirectToItself,
    /// More redirects in a row than this.
    TooManyRedirects(u32),
    /// Redirects lead back to where they began.
    RedirectLoop {
        /// The page that redirects.
        from: String,
        /// Where it leads first.
        to: String,
    },
    /// robots.txt could not be fetched, so nothing else may be fetched.
    RobotsUnreachable,
    /// robots.txt was answered with this status, so nothing else may be fetched.
    RobotsStatus(u16),
    /// robots.txt did not come, for this reason, so nothing else may be fetched.
    RobotsUnfetched(Box<Reason>),
    /// robots.txt forbids it.
    Robots {
        /// The line that forbids it, if one does: its number and text.
        line: Option<(u64, String)>,
    },
    /// The site's patterns leave it out.
    LeftOut,
    /// The site has a log-in, but the answer is for visitors who are not logged in.
    LoggedOut {
        /// Its status.
        status: u16,
        /// The log-in page to which it leads, if it does.
        to: Option<String>,
    },
    /// Asking for it would probably end the site's log-in.
    LogsOut,
    /// It is a request with a body, which is known only while its page is rendered.
    NothingToSend,
    /// The site's log-in cannot be read, for this reason.
    LoginUnreadable(String),
    /// The page redirects to where pages redirect that do not exist.
    RedirectsLikeMissingPages(String),
    /// The page looks like what the server shows for pages that do not exist.
    LooksLikeMissingPages,
    /// The request brought no answer.
    Unfetched(Unfetched),
    /// The body came, but cannot be decoded.
    Undecoded(Undecoded),
    /// The program failed while it read the answer.
    Internal(String),
}

impl Reason {
    /// The reason in words.
    pub fn text(&self, lang: Lang) -> String {
        match lang {
            Lang::En => self.english(),
            Lang::Ja => self.japanese(),
        }
    }

    /// Whether the site's log-in has ended or cannot be used, so that the site pauses.
    pub fn is_of_login(&self) -> bool {
        matches!(self, Self::LoggedOut { .. } | Self::LoginUnreadable(_))
    }

    /// The reason as its JSON text, as it is stored.
    pub fn to_json(&self) -> String {
        // Plain data always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The reason of a stored JSON text, if it is one.
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    fn english(&self) -> String {
        match self {
            Self::Status(status) => format!("status {status}"),
            Self::NoLocation(status) => format!("status {status} without a usable Location"),
            Self::Challenge(guard) => format!("{guard} sent a challenge instead of the page"),
            Self::NotModifiedUnasked => {
                "the server answered 304 to an unconditional request".to_owned()
            }
            Self::PartUnasked => "the server sent an unrequested part (206)".to_owned(),
            Self::RedirectToItself => "the page redirects to itself".to_owned(),
            Self::TooManyRedirects(most) => format!("more than {most} redirects in a row"),
            Self::RedirectLoop { from, to } => {
                format!("redirect loop: {from} → {to} → … → {from}")
            }
            Self::RobotsUnreachable => {
                "robots.txt could not be fetched, so nothing else may be fetched".to_owned()
            }
            Self::RobotsStatus(status) => format!("robots.txt answered with status {status}"),
            Self::RobotsUnfetched(why) => {
                format!("robots.txt could not be fetched: {}", why.english())
            }
            Self::Robots { line: Some((number, text)) } => {
                format!("robots.txt line {number}: {text}")
            }
            Self::Robots { line: None } => "robots.txt forbids it".to_owned(),
            Self::LeftOut => "left out by the site's patterns".to_owned(),
            Self::LoggedOut { to: Some(to), .. } => format!("logged out: redirects to {to}"),
            Self::LoggedOut { status: 401, .. } => "logged out: status 401".to_owned(),
            Self::LoggedOut { .. } => "logged out: the log-in page came instead".to_owned(),
            Self::LogsOut => "not visited: it would probably end the log-in".to_owned(),
            Self::NothingToSend => {
                "not asked for: what to send is known once its page is rendered again".to_owned()
            }
            Self::LoginUnreadable(why) => format!("the log-in cannot be read: {why}"),
            Self::RedirectsLikeMissingPages(to) => {
                format!("soft 404: redirects to {to}, as for pages that do not exist")
            }
            Self::LooksLikeMissingPages => {
                "soft 404: looks like what the server shows for pages that do not exist".to_owned()
            }
            Self::Unfetched(why) => why.english(),
            Self::Undecoded(why) => why.english(),
            Self::Internal(why) => format!("the answer could not be read: {why}"),
        }
    }

    fn japanese(&self) -> String {
        match self {
            Self::Status(status) => format!("状態 {status}"),
            Self::NoLocation(status) => {
                format!("状態 {status} ですが、転送先 (Location) が使えません")
            }
            Self::Challenge(guard) => format!("ページの代わりに {guard} の確認画面が返りました"),
            Self::NotModifiedUnasked => "無条件の要求に 304（更新なし）が返りました".to_owned(),
            Self::PartUnasked => "求めていない部分応答（206）が返りました".to_owned(),
            Self::RedirectToItself => "ページが自分自身へ転送されます".to_owned(),
            Self::TooManyRedirects(most) => format!("転送が {most} 回を超えて続きました"),
            Self::RedirectLoop { from, to } => {
                format!("転送が循環しています：{from} → {to} → … → {from}")
            }
            Self::RobotsUnreachable => {
                "robots.txt を取得できないため、他のページも取得できません".to_owned()
            }
            Self::RobotsStatus(status) => format!("robots.txt の応答が状態 {status} でした"),
            Self::RobotsUnfetched(why) => {
                format!("robots.txt を取得できません：{}", why.japanese())
            }
            Self::Robots { line: Some((number, text)) } => {
                format!("robots.txt の {number} 行目：{text}")
            }
            Self::Robots { line: None } => "robots.txt で禁止されています".to_owned(),
            Self::LeftOut => "サイトのパターンで除外されています".to_owned(),
            Self::LoggedOut { to: Some(to), .. } => {
                format!("ログアウトされています：{to} へ転送されます")
            }
            Self::LoggedOut { status: 401, .. } => "ログアウトされています：状態 401".to_owned(),
            Self::LoggedOut { .. } => {
                "ログアウトされています：代わりにログイン画面が返りました".to_owned()
            }
            Self::LogsOut => "ログインが終了するおそれがあるため、訪問しません".to_owned(),
            Self::NothingToSend => {
                "送信する内容は、ページを次に描画するまで分からないため、要求しません".to_owned()
            }
            Self::LoginUnreadable(why) => format!("ログイン情報を読めません（{why}）"),
            Self::RedirectsLikeMissingPages(to) => {
                format!("存在しないページと同じ {to} へ転送されます（ソフト404）")
            }
            Self::LooksLikeMissingPages => "存在しないページと同じ内容です（ソフト404）".to_owned(),
            Self::Unfetched(why) => why.japanese(),
            Self::Undecoded(why) => why.japanese(),
            Self::Internal(why) => format!("応答を読めませんでした（{why}）"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.english())
    }
}

/// For programs: `detail` in words and `reason` as data, beside the other fields of a record.
///
/// # Errors
/// What the serializer says.
pub fn serialize_reason<S: Serializer>(
    reason: &Option<Reason>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_map(Some(2))?;
    fields.serialize_entry("detail", &reason.as_ref().map(Reason::english))?;
    fields.serialize_entry("reason", reason)?;
    fields.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Reason> {
        let text = || "x".to_owned();
        let mut all = vec![
            Reason::Status(404),
            Reason::NoLocation(301),
            Reason::Challenge(text()),
            Reason::NotModifiedUnasked,
            Reason::PartUnasked,
            Reason::RedirectToItself,
            Reason::TooManyRedirects(20),
            Reason::RedirectLoop { from: text(), to: text() },
            Reason::RobotsUnreachable,
            Reason::RobotsStatus(503),
            Reason::RobotsUnfetched(Box::new(Reason::Internal(text()))),
            Reason::Robots { line: Some((3, "Disallow: /".to_owned())) },
            Reason::Robots { line: None },
            Reason::LeftOut,
            Reason::LoggedOut { status: 302, to: Some(text()) },
            Reason::LoggedOut { status: 401, to: None },
            Reason::LoggedOut { status: 200, to: None },
            Reason::LogsOut,
            Reason::NothingToSend,
            Reason::LoginUnreadable(text()),
            Reason::RedirectsLikeMissingPages(text()),
            Reason::LooksLikeMissingPages,
            Reason::Internal(text()),
        ];
        all.extend(unfetched::tests::all().into_iter().map(Reason::Unfetched));
        all.extend(undecoded::tests::all().into_iter().map(Reason::Undecoded));
        all
    }

    #[test]
    fn every_reason_comes_back_from_its_stored_form() {
        for reason in all() {
            assert_eq!(Reason::from_json(&reason.to_json()), Some(reason));
        }
        assert_eq!(Reason::from_json("connect: refused"), None);
    }

    #[test]
    fn every_reason_has_words_in_both_languages() {
        for reason in all() {
            let (en, ja) = (reason.text(Lang::En), reason.text(Lang::Ja));
            assert_eq!(en, reason.to_string());
            assert!(!ja.is_ascii() && ja != en, "{en}: {ja}");
        }
    }

    #[test]
    fn what_came_from_the_web_stays_as_it_is() {
        let line = Some((3, "Disallow: /{0}<script>".to_owned()));
        let reason = Reason::Robots { line };
        assert_eq!(reason.text(Lang::Ja), "robots.txt の 3 行目：Disallow: /{0}<script>");
        assert_eq!(reason.text(Lang::En), "robots.txt line 3: Disallow: /{0}<script>");
    }

    #[test]
    fn common_reasons_are_stored_in_few_bytes() {
        assert_eq!(Reason::Status(404).to_json(), r#"{"status":404}"#);
        assert_eq!(Reason::RobotsUnreachable.to_json(), r#""robots-unreachable""#);
    }
}
