//! The fields of a site's conditions: the simple ones first, the others in groups, each with its
//! default and the reason for it.

use maud::{Markup, html};
use nenrin_urls::{CanonicalUrl, Scope};

use super::sheet::Sheet;
use crate::{
    form::{CONTINUOUS, OTHER, PERIODS, POLICIES},
    layout,
    visitor::Visitor,
};

/// A value, and its name in English and Japanese.
type Choice = (&'static str, &'static str, &'static str);

const SCOPES: [Choice; 5] = [
    ("host", "everything on this host (usual)", "このホストのすべて（標準）"),
    ("prefix", "only below this directory", "このディレクトリの下だけ"),
    ("domain", "all hosts of this domain", "このドメインの全ホスト"),
    ("list", "only the top pages themselves", "トップページ自身だけ"),
    ("any", "anything that is linked", "リンク先すべて"),
];

const RENDER: [Choice; 3] = [
    ("never", "Never", "しない"),
    ("auto", "Where a trial shows that it helps", "試して役立つ場合だけ"),
    ("always", "After every change", "変更のたびに"),
];
const SCHEDULE_BY: [Choice; 2] = [
    ("any", "any difference (usual)", "1バイトでも違えば変更（標準）"),
    ("significant", "only what a reader would call a change", "読者にとって意味のある変更だけ"),
];

const ROUNDS_BY: [Choice; 5] = [
    ("all", "every page (usual)", "全ページ（標準）"),
    (
        "structure(auto)",
        "the pages likely to have changed, as learnt",
        "学習により変わっていそうなページ",
    ),
    (
        "structure(A)",
        "by directory: its top pages, and the rest if one changed",
        "ディレクトリ別：先頭が変われば残りも",
    ),
    (
        "structure(B)",
        "by links: index pages, and what they link to if they changed",
        "リンク別：トップが変わればその先も",
    ),
    (
        "structure(C)",
        "as by links, but only below what changed",
        "リンク別で、変わったものの下だけ",
    ),
];

const ROBOTS: [Choice; 2] = [
    ("obey", "obey (usual)", "従う（標準）"),
    ("ignore", "ignore, with a reason", "理由があって確認しない"),
];

/// The scope of a site, in the words of the form.
pub(super) fn scope_words<'a>(visitor: &Visitor, scope: Scope) -> &'a str {
    let name = scope.to_string();
    let (_, en, ja) = SCOPES.into_iter().find(|(value, ..)| *value == name).unwrap_or(SCOPES[0]);
    visitor.lang.t(en, ja).trim_end_matches(" (usual)").trim_end_matches("（標準）")
}

impl Sheet<'_> {
    pub(super) fn simple_fields(&self) -> Markup {
        let form = self.form;
        html! {
            (self.text("url", self.t("Address", "アドレス"),
                self.t("Where collecting begins: a top page.", "収集を始めるトップページです。"),
                &form.url, "https://example.org/"))
            @if self.asks_about_private_network() { (self.own_network()) }
            (self.field("period", self.t("How often", "頻度"),
                self.t("A schedule for each page finds the most versions with the same number of visits.", "ページごとの自動調整が、同じ訪問数で最も多くの版を得ます。"), html! {
                select #period name="period" aria-describedby=(self.described("period")) {
                    @for (value, en, ja) in PERIODS {
                        option value=(value) selected[form.period == value] { (self.t(en, ja)) }
                    }
                    option value=(OTHER) selected[form.period == OTHER] { (self.t("another period…", "その他の間隔…")) }
                }
            }))
            div data-only-for="period" data-only-value=(OTHER) {
                (self.text("other_period", self.t("Period", "間隔"),
                    self.t("Only with “another period”: 15m, 12h, 7d …", "「その他の間隔」のとき：15m、12h、7d など"),
                    &form.other_period, "36h"))
            }
        }
    }

    pub(super) fn folded_fields(&self) -> Markup {
        html! {
            (self.group(self.t("What is collected", "収集するもの"), self.extent()))
            div data-only-for="period" data-only-value=(CONTINUOUS) {
                (self.group(self.t("When pages are visited again", "再訪問の間隔"), self.revisits()))
            }
            (self.group(self.t("Which pages, and how they are listed", "対象のページと一覧での分類"), self.choice()))
            (self.group(self.t("Scripts", "スクリプト"), self.scripts()))
            (self.group(self.t("How the site is visited", "サイトへの接し方"), self.manners()))
            (self.group(self.t("How much is stored", "保存する量"), self.keeping()))
        }
    }

    fn group(&self, legend: &str, fields: Markup) -> Markup {
        html! { fieldset.group { legend { (legend) } (fields) } }
    }

    fn select(
        &self,
        name: &str,
        label: &str,
        hint: &str,
        value: &str,
        choices: &[Choice],
    ) -> Markup {
        let input = html! {
            select #(name) name=(name) aria-describedby=(self.described(name))
                aria-invalid=[self.wrong.contains_key(name).then_some("true")] {
                @for (choice, en, ja) in choices {
                    option value=(choice) selected[value == *choice] { (self.t(en, ja)) }
                }
            }
        };
        self.field(name, label, hint, input)
    }

    fn area(&self, name: &str, label: &str, hint: &str, value: &str, placeholder: &str) -> Markup {
        let input = html! {
            // A line break right after the tag would not be part of the value.
            textarea #(name) name=(name) rows="3" spellcheck="false" placeholder=(placeholder)
                aria-describedby=(self.described(name))
                aria-invalid=[self.wrong.contains_key(name).then_some("true")] { "\n" (value) }
        };
        self.field(name, label, hint, input)
    }

    fn keeping(&self) -> Markup {
        let form = self.form;
        html! {
            (self.text("quota", self.t("Most space on disk", "使用容量の上限"),
                self.t("Collecting pauses while the site takes this much. Empty: the archive's setting (none unless set); 0: none.", "この容量を使っている間は収集を停止します。空欄：アーカイブの設定（既定は上限なし）。0：上限なし"), &form.quota, "10GB"))
            (self.text("prune", self.t("Thin out old versions", "古い版の間引き"),
                self.t("Empty: every version is kept, as an archive should. 30d,day:90d,month keeps all for 30 days, then one a day until 90 days old, then one a month; the first and the newest always stay.", "空欄：すべての版を残します（アーカイブの本来の目的です）。30d,day:90d,month は、30日間はすべて、90日までは1日1版、以後は月1版を残します。最初と最新の版は常に残ります。"),
                &form.prune, "30d,day:90d,month"))
        }
    }

    fn extent(&self) -> Markup {
        let form = self.form;
        html! {
            (self.text("name", self.t("Name", "名前"),
                self.t("If empty, the host's name is used.", "空欄のときはホスト名になります。"), &form.name, ""))
            (self.select("scope", self.t("What belongs to the site", "サイトの範囲"),
                self.t("Pages outside are not followed. One host is what most people call a site.", "範囲外のページはたどりません。多くの場合、1つのホストが1つのサイトです。"),
                &form.scope, &SCOPES))
            (self.area("more_tops", self.t("More top pages", "その他のトップページ"),
                self.t("One address per line, for pages that the first page does not link to.", "1行に1つのアドレス。最初のページからリンクされていないもの用です。"),
                &form.more_tops, "https://example.org/news/"))
            div.row {
                (self.text("depth", self.t("Depth", "深さ"),
                    self.t("How many links are followed; a top page is 1. The default is high, because old pages are at the end of long chains of lists.", "たどるリンクの数。トップページが1。古いページは一覧の連なりの先にあるため、深めにします。"), &form.depth, ""))
                (self.text("max_pages", self.t("Most pages in a round", "1巡の最大ページ数"),
                    self.t("Empty: no limit; traps are recognised anyway.", "空欄：制限なし。罠は別に検出します。"), &form.max_pages, ""))
            }
            (self.select("rounds_by", self.t("Pages of a round", "1巡で訪れるページ"),
                self.t("Only for sites collected in rounds; the first round always visits all.", "定期収集のサイトのみ。最初の1巡は必ず全ページです。"),
                &form.rounds_by, &ROUNDS_BY))
            (self.checkbox("embeds", form.embeds,
                self.t("Collect images, styles and scripts of a page from any host", "ページの画像・スタイル・スクリプトはどこにあっても収集する"),
                self.t("Usual: without them old pages look broken.", "標準。無いと古いページが崩れて見えます。")))
            (self.checkbox("signals", form.signals,
                self.t("Use sitemaps and feeds: they add pages, and changed pages are visited sooner", "サイトマップとフィードでページを補い、変更されたものを早く訪れる"),
                self.t("Usual: each is trusted as far as it was right before.", "標準。過去に正しかった程度だけ信用します。")))
        }
    }

    fn choice(&self) -> Markup {
        let form = self.form;
        let site = self.site.map(|site| site.id.0.to_string()).unwrap_or_default();
        html! {
            (self.area("include", self.t("Only pages like these", "対象とするページ"),
                self.t("One pattern per line, * is anything: /news/*, /*.pdf, print=1. Empty: every page inside the site.", "1行に1つのパターン。* は任意の文字列：/news/*、/*.pdf、print=1。空欄：範囲内のすべて"),
                &form.include, "/news/*"))
            (self.area("exclude", self.t("No pages like these", "除外するページ"),
                self.t("Excluded pages are not visited any more; their versions stay.", "除外したページはもう訪れません。保存済みの版は残ります。"),
                &form.exclude, "/calendar/*"))
            p.hint #pattern-count role="status" data-count="/sites/patterns" data-site=(site) data-fields="include exclude" {}
            (self.area("headers", self.t("Request headers", "リクエストヘッダー"),
                self.t("One per line, sent to the site's own servers only.", "1行に1つ。サイト自身のサーバーにだけ送ります。"),
                &form.headers, "Accept-Language: en"))
            (self.area("ignored", self.t("Parts whose changes do not count", "変更を数えない箇所"),
                self.t("One per line: a pattern of pages and a CSS selector. Changes in them do not count as significant; versions are stored whole.", "1行に1つ：ページのパターンとCSSセレクター。重要な変更の判定から除きます。版は完全に保存します。"),
                &form.ignored, "/* div.ad"))
            div.row {
                (self.text("group", self.t("Group", "グループ"),
                    self.t("Sites of a group are listed together.", "同じグループのサイトはまとめて表示します。"), &form.group, ""))
                (self.text("tags", self.t("Tags", "タグ"),
                    self.t("Words with commas between them.", "カンマで区切ります。"), &form.tags, ""))
            }
        }
    }

    fn revisits(&self) -> Markup {
        let form = self.form;
        html! {
            (self.select("policy", self.t("Rule", "規則"),
                self.t("The usual rule learns from every visit and from neighbouring pages.", "標準の規則は、訪問のたびに近隣のページからも学びます。"),
                &form.policy, &POLICIES))
            div data-only-for="policy" data-only-value=(OTHER) {
                (self.text("policy_text", self.t("The rule", "規則の書式"),
                    self.t("Only with “another rule”: auto(fair=1), mle.exact(0.5-2,2nd=7d), every(12h) …", "「その他の規則」のとき：auto(fair=1)、mle.exact(0.5-2,2nd=7d)、every(12h) など"),
                    &form.policy_text, "every(12h)"))
            }
            div.row {
                (self.text("visits_per_day", self.t("Most visits a day", "1日の訪問数の上限"),
                    self.t("Empty: a share of the archive's budget, if it has one.", "空欄：アーカイブ全体の予算から配分"), &form.visits_per_day, "5000"))
                (self.text("min", self.t("Shortest wait", "最短の間隔"),
                    self.t("Empty: one hour, or the value of `state.bucket`.", "空欄：1時間（state.bucket の値）"), &form.min, "1h"))
                (self.text("max", self.t("Longest wait", "最長の間隔"),
                    self.t("365d: a page that is never visited again is lost.", "365d：二度と訪問しないページは失われます。"), &form.max, "365d"))
            }
            (self.area("paths", self.t("Other intervals for some paths", "パスごとの間隔"),
                self.t("One rule per line, the first that matches applies; * is anything, $ the end. Empty: the same for all.", "1行に1つの規則。最初に合うものが有効です。* は任意、$ は末尾。空欄：全ページ共通"),
                &form.paths, "/news/* min=1h max=1d"))
            (self.select("schedule_by", self.t("What counts as a change", "変更とみなすもの"),
                self.t("Every version is stored either way; this only sets the intervals. Significant changes leave out counters, dates and so on.", "どちらでもすべての版を保存します。間隔の調整にだけ使われます。"),
                &form.schedule_by, &SCHEDULE_BY))
        }
    }

    fn manners(&self) -> Markup {
        let form = self.form;
        html! {
            (self.text("delay", self.t("Pause between requests", "要求の間隔"),
                self.t("The shortest pause per server. Empty: the archive's (1s unless set), longer if the server is slow or asks for it.", "サーバーごとの最小値。空欄：アーカイブの設定（既定は1s）。サーバーが遅いか求める場合は長くなります。"), &form.delay, "2s"))
            (self.area("windows", self.t("Only during these hours", "収集する時間帯"),
                self.t("One per line: days, hours, time zone; each may be left out. Empty: at any time, since requests are spread out anyway.", "1行に1つ：曜日、時刻、タイムゾーン（いずれも省略可）。空欄：いつでも（要求はもともと分散されます）"),
                &form.windows, "mon-fri 22:00-06:00 Asia/Tokyo"))
            (self.select("robots", "robots.txt",
                self.t("The site's own wishes, fetched before anything else.", "サイト自身の希望です。最初に確認します。"),
                &form.robots, &ROBOTS))
            div data-only-for="robots" data-only-value="ignore" {
                (self.text("robots_reason", self.t("The reason", "理由"),
                    self.t("Only when robots.txt is ignored.", "robots.txt を確認しない場合のみ"), &form.robots_reason, ""))
            }
            @if !self.asks_about_private_network() { (self.own_network()) }
            (self.road())
        }
    }

    /// How the site is reached.
    fn road(&self) -> Markup {
        let form = self.form;
        html! {
            div.row {
                (self.text("proxy", self.t("Proxy", "プロキシ"),
                    self.t("http://, socks5:// or socks5h://; direct for none. Empty: the archive's. A login belongs into the configuration.", "http://、socks5://、socks5h://。direct は使わない。空欄：アーカイブの設定。ログイン情報は設定ファイルに書きます。"), &form.proxy, "socks5h://127.0.0.1:9050"))
                (self.text("source", self.t("Send from this address", "送信元アドレス"),
                    self.t("An address of this machine. Empty: the system chooses.", "この機器のアドレス。空欄：システムが選びます。"), &form.source, "192.0.2.7"))
            }
            (self.text("any_certificate", self.t("Accept any certificate, because", "証明書を検証しない理由"),
                self.t("The reason is stored. Empty: certificates are checked, as usual.", "理由は保存されます。空欄：通常どおり検証します。"), &form.any_certificate, ""))
            (self.text("login_page", self.t("Log-in page", "ログイン画面"),
                self.t("Where visitors are led who are not logged in, for a site behind a log-in. The log-in itself is set with nenrin site set SITE --cookies FILE.", "ログインしていない訪問者が導かれるページ（ログインが必要なサイト用）。ログイン情報は nenrin site set SITE --cookies FILE で設定します。"), &form.login_page, "https://example.com/login"))
        }
    }

    /// What is done for the site's scripts.
    pub(super) fn scripts(&self) -> Markup {
        let form = self.form;
        html! {
            (self.select("render", self.t("Render pages in a browser", "ブラウザーで描画する"),
                self.t("For pages that show nothing until their scripts have run. Needs Chromium on this machine.", "スクリプトが動くまで何も表示しないページ用です。この機器に Chromium が必要です。"),
                &form.render, &RENDER))
            (self.area("render_paths", self.t("Other choices for some pages", "ページごとの指定"),
                self.t("One rule per line, the first that fits applies: a pattern and auto, never or always.", "1行に1つ。最初に合うものが有効です：パターンと auto・never・always"),
                &form.render_paths, "/app/* always"))
            (self.checkbox("likely_urls", form.likely_urls,
                self.t("Collect what looks like a file's address in scripts", "スクリプト内のファイルらしきアドレスも収集する"),
                self.t("Finds more parts of pages; some of the addresses lead nowhere.", "ページの部品が多く見つかりますが、存在しないものも含まれます。")))
        }
    }

    /// Whether the permission for private networks is shown right below the address that needs it.
    fn asks_about_private_network(&self) -> bool {
        let is_own = |url: CanonicalUrl| url.is_on_private_network();
        self.form.allow_private || CanonicalUrl::parse_typed(&self.form.url).is_ok_and(is_own)
    }

    fn own_network(&self) -> Markup {
        self.checkbox(
            "allow_private",
            self.form.allow_private,
            self.t(
                "This site may be on this computer or on your own network",
                "このコンピューターや自分のネットワーク内のサイトを許可する",
            ),
            self.t(
                "Unusual: without this check, links of other websites could reach into your network.",
                "標準では許しません。外部のリンクから内部に届くのを防ぎます。",
            ),
        )
    }

    fn checkbox(&self, name: &str, checked: bool, label: &str, hint: &str) -> Markup {
        let wrong = self.wrong.get(name);
        html! {
            div.tick.wrong[wrong.is_some()] {
                label.check {
                    input #(name) type="checkbox" name=(name) value="1" checked[checked] aria-describedby=(self.described(name));
                    span { (label) }
                }
                @if let Some(wrong) = wrong { p.error id=(format!("{name}-error")) { (layout::capitalised(wrong)) } }
                p.hint id=(format!("{name}-hint")) { (hint) }
            }
        }
    }
}
