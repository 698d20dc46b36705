//! Why a page is shown in a browser or not.

use serde::Serialize;

use crate::Lang;

/// Why a page is rendered in a browser after a change, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RenderReason {
    /// The site's setting says never.
    Never,
    /// The site's setting says always.
    Always,
    /// Pages of its family showed more in a browser.
    Useful,
    /// So many pages of its family were tried, which is not enough to know.
    Trial(u32),
    /// Pages of its family showed nothing more in a browser.
    Useless,
    /// None of its family was tried.
    Untried,
}

impl RenderReason {
    /// In words.
    pub fn text(self, lang: Lang) -> String {
        let (en, ja) = match self {
            Self::Never => {
                ("not rendered: the site's setting is never", "描画しません（サイトの設定）")
            }
            Self::Always => (
                "rendered after every change, as set for the site",
                "変更のたびに描画します（サイトの設定）",
            ),
            Self::Useful => (
                "rendered after every change: pages of its family showed more in a browser",
                "変更のたびに描画します（同じ種類のページはブラウザーで内容が増えました）",
            ),
            Self::Trial(1) => (
                "on trial: 1 page of its family was rendered so far",
                "試行中です（同じ種類のページを 1 件描画しました）",
            ),
            Self::Trial(tried) => {
                return match lang {
                    Lang::En => {
                        format!("on trial: {tried} pages of its family were rendered so far")
                    }
                    Lang::Ja => format!("試行中です（同じ種類のページを {tried} 件描画しました）"),
                };
            }
            Self::Useless => (
                "not rendered: pages of its family showed nothing more in a browser",
                "描画しません（同じ種類のページはブラウザーでも内容が増えませんでした）",
            ),
            Self::Untried => (
                "not rendered yet: it has no scripts, or has not changed since rendering was chosen",
                "まだ描画していません（スクリプトがないか、設定後に変更がありません）",
            ),
        };
        lang.t(en, ja).to_owned()
    }
}
