use axum::http::StatusCode;
use nenrin_state::StateError;

use crate::ControlError;

/// Why a page of the interface cannot be shown or a form is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// It does not exist.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// A form without a valid token, or one sent from another site.
    #[error("this form has expired; go back, reload the page and try again")]
    Forged,
    /// The form is larger than any real one.
    #[error("the form is too large or not a form")]
    BadForm,
    /// A parameter of the API that cannot be read.
    #[error("{what} {reason}")]
    BadParameter {
        /// Its name.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Only an administrator may do this.
    #[error("only an administrator may do this; log in with the administrator's password")]
    NotAllowed,
    /// The request used a host name that is not the interface's.
    #[error("`{host}` is not a name of this archive; add it to `host_names` in the configuration")]
    ForeignHost {
        /// The name.
        host: String,
    },
    /// Too many requests wait already.
    #[error("too many requests are waiting; try again in a moment")]
    Busy,
    /// Too many wrong passwords came from this address.
    #[error("too many wrong passwords; try again in {seconds} seconds")]
    Guessing {
        /// How long to wait.
        seconds: i64,
    },
    /// A defect: the answer was begun and not finished.
    #[error("the answer was not finished; the log says why")]
    Unfinished,
    /// The running program refused.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// Searching failed.
    #[error("{0}")]
    Search(String),
    /// The password cannot be hashed, or the stored hash is not valid.
    #[error("the password hash cannot be used: {reason}; set it with `nenrin config set-password`")]
    PasswordHash {
        /// What is wrong with it.
        reason: String,
    },
    /// The interface would be open to everyone who can reach the address.
    #[error(
        "listening on {address} needs a password: set one with `nenrin config set-password`, or \
         listen on 127.0.0.1"
    )]
    NeedsPassword {
        /// The address.
        address: std::net::IpAddr,
    },
}

impl WebError {
    pub(crate) fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound { what: what.into() }
    }

    /// A short message in Japanese; the error itself has the details.
    pub(crate) fn in_japanese(&self) -> &'static str {
        match self {
            Self::NotFound { .. } | Self::State(StateError::NoSuchSite { .. }) => {
                "お探しのものは、このアーカイブにありません。"
            }
            Self::Forged => {
                "フォームの有効期限が切れました。前のページに戻り、再読み込みしてからやり直してください。"
            }
            Self::BadForm => "フォームが大きすぎるか、フォームではありません。",
            Self::BadParameter { .. } => "指定された値を読み取れません。",
            Self::NotAllowed => {
                "管理者だけが実行できます。管理者のパスワードでログインしてください。"
            }
            Self::ForeignHost { .. } => {
                "この名前では利用できません。設定の host_names に追加してください。"
            }
            Self::Control(_)
            | Self::State(StateError::SiteExists { .. } | StateError::SiteDeleted { .. }) => {
                "現在の状態では実行できません。"
            }
            Self::State(_) => {
                "アーカイブの状態を読み書きできませんでした。しばらくしてからやり直してください。"
            }
            Self::Busy => "混み合っています。しばらくしてからやり直してください。",
            Self::Guessing { .. } => {
                "パスワードの誤りが続いています。しばらくしてからやり直してください。"
            }
            Self::Unfinished => "処理を完了できませんでした。",
            Self::Search(_) => "検索できませんでした。",
            Self::PasswordHash { .. } | Self::NeedsPassword { .. } => {
                "パスワードの設定に問題があります。"
            }
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NotFound { .. } | Self::State(StateError::NoSuchSite { .. }) => {
                StatusCode::NOT_FOUND
            }
            Self::Forged | Self::NotAllowed => StatusCode::FORBIDDEN,
            Self::BadForm | Self::BadParameter { .. } => StatusCode::BAD_REQUEST,
            Self::ForeignHost { .. } => StatusCode::MISDIRECTED_REQUEST,
            Self::Control(_)
            | Self::State(StateError::SiteExists { .. } | StateError::SiteDeleted { .. }) => {
                StatusCode::CONFLICT
            }
            Self::State(_) | Self::Search(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Busy | Self::Guessing { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::PasswordHash { .. } | Self::NeedsPassword { .. } | Self::Unfinished => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}
