/// A sentence in English and its Japanese translation. Holes in the English one are `{}` for any
/// text, `{t}` for a sentence and `{!}` for a sentence that must be known; in the Japanese one they
/// are numbered from 0. The first match is used, so general phrases come last.
pub(crate) type Phrase = (&'static str, &'static str);

pub(crate) const PHRASES: &[Phrase] = &[
    // Why a visit brought no page, or not a good one.
    ("{} sent a challenge instead of the page", "ページの代わりに {0} の確認画面が返りました"),
    (
        "the server answered 304 to an unconditional request",
        "無条件の要求に 304（更新なし）が返りました",
    ),
    ("the server sent an unrequested part (206)", "求めていない部分応答（206）が返りました"),
    ("the page redirects to itself", "ページが自分自身へ転送されます"),
    ("status {} without a usable Location", "状態 {0} ですが、転送先 (Location) が使えません"),
    ("status {}, leads to {}", "状態 {0}、転送先は {1}"),
    ("status {}, {}, {} bytes", "状態 {0}、{1}、{2} バイト"),
    ("status {}", "状態 {0}"),
    ("more than {} redirects in a row", "転送が {0} 回を超えて続きました"),
    ("redirect loop: {}", "転送が循環しています：{0}"),
    (
        "robots.txt could not be fetched, so nothing else may be fetched",
        "robots.txt を取得できないため、他のページも取得できません",
    ),
    ("robots.txt line {}: {}", "robots.txt の {0} 行目：{1}"),
    ("robots.txt forbids it", "robots.txt で禁止されています"),
    ("robots.txt answered with status {}", "robots.txt の応答が状態 {0} でした"),
    (
        "soft 404: redirects to {}, as for pages that do not exist",
        "存在しないページと同じ {0} へ転送されます（ソフト404）",
    ),
    (
        "soft 404: looks like what the server shows for pages that do not exist",
        "存在しないページと同じ内容です（ソフト404）",
    ),
    // Why a request brought no answer, after the word for programs.
    ("request: {!}", "{0}"),
    ("address-refused: {!}", "{0}"),
    ("dns: {!}", "{0}"),
    ("connect: {!}", "{0}"),
    ("tls: {!}", "{0}"),
    ("closed: {!}", "{0}"),
    ("protocol: {!}", "{0}"),
    ("head-too-large: {!}", "{0}"),
    ("too-large: {!}", "{0}"),
    ("body-cut: {!}", "{0}"),
    ("timeout: {!}", "{0}"),
    ("the request cannot be sent: {}", "要求を送れません（{0}）"),
    (
        "`{}` is at {}, {t}, which may not be fetched; if it is yours, make it a top page and allow it: `nenrin site set SITE --allow-private`",
        "「{0}」は {1}（{2}）にあるため取得できません。自分のものなら、トップページにして `nenrin site set SITE --allow-private` で許可してください",
    ),
    (
        "`{}` is at {}, {t}, which may not be fetched",
        "「{0}」は {1}（{2}）にあるため取得できません",
    ),
    ("a public address", "公開アドレス"),
    ("a loopback address", "このコンピューター自身のアドレス"),
    ("a private address", "プライベートアドレス"),
    ("a carrier NAT address", "通信事業者 NAT のアドレス"),
    ("a benchmarking address", "性能試験用のアドレス"),
    ("a documentation address", "文書例示用のアドレス"),
    ("a link-local address", "リンクローカルアドレス"),
    ("a cloud metadata address", "クラウドのメタデータ用アドレス"),
    ("a multicast address", "マルチキャストアドレス"),
    ("an unspecified address", "未指定アドレス"),
    ("a reserved address", "予約済みアドレス"),
    ("the host name `{}` was not found: {t}", "「{0}」のアドレスが見つかりません（{1}）"),
    ("no connection to `{}` port {}: {t}", "「{0}」のポート {1} に接続できません（{2}）"),
    ("no secure connection to `{}`: {t}", "「{0}」と安全に接続できません（{1}）"),
    ("`{}` closed the connection without answering", "「{0}」が応答せずに接続を閉じました"),
    (
        "the answer of `{}` is not valid HTTP: {}",
        "「{0}」の応答が HTTP として正しくありません（{1}）",
    ),
    (
        "`{}` sent a response head beyond the limit of {} bytes or {} headers",
        "「{0}」の応答ヘッダーが上限（{1} バイト、{2} 行）を超えています",
    ),
    (
        "the body from `{}` is announced as {} bytes, longer than the limit of {} bytes",
        "「{0}」の本文は {1} バイトと予告され、上限の {2} バイトを超えています",
    ),
    (
        "the body from `{}` is longer than the limit of {} bytes",
        "「{0}」の本文が上限の {1} バイトを超えています",
    ),
    (
        "the body from `{}` is cut after {} bytes: {}",
        "「{0}」の本文が {1} バイトで途切れました（{2}）",
    ),
    ("`{}` took longer than {} s: waited for {t}", "「{0}」が {1} 秒を超えても終わりません（{2}）"),
    ("its addresses", "アドレスの問い合わせ待ち"),
    ("a connection", "接続待ち"),
    ("the TLS handshake", "TLS の確立待ち"),
    ("the response head", "応答ヘッダー待ち"),
    ("more of the body", "本文の続き待ち"),
    ("a body that came too slowly", "本文の受信が遅すぎます"),
    ("the exchange to end", "応答の完了待ち"),
    ("Connection refused (os error {})", "接続が拒否されました"),
    ("Connection reset by peer (os error {})", "接続が相手側で切断されました"),
    ("Network is unreachable (os error {})", "ネットワークに到達できません"),
    ("No route to host (os error {})", "ホストへの経路がありません"),
    ("Connection timed out (os error {})", "接続が時間切れになりました"),
    // Why a body cannot be read.
    (
        "content coding `{}` is unknown; gzip, deflate, br, zstd and identity are read",
        "符号化「{0}」は読めません（読めるのは gzip、deflate、br、zstd、identity）",
    ),
    (
        "{} content codings in a row are more than the limit of {}",
        "符号化が {0} 段重なり、上限の {1} 段を超えています",
    ),
    (
        "the body is not valid {} after {} bytes: {}",
        "本文が {1} バイト以降、正しい {0} ではありません（{2}）",
    ),
    (
        "the {} body decodes to more than the limit of {} bytes",
        "{0} の本文を展開すると上限の {1} バイトを超えます",
    ),
    (
        "the {} body of {} bytes decodes to more than {} bytes, beyond the ratio of {}",
        "{0} の本文（{1} バイト）を展開すると {2} バイトを超え、上限の {3} 倍を上回ります",
    ),
    // A first look at a site.
    ("no answer within 20 seconds", "20 秒以内に応答がありません"),
    ("not reached: {t}", "到達できません（{0}）"),
    ("not fetched: robots.txt forbids it", "robots.txt で禁止されているため取得していません"),
    (
        "could not be fetched ({t}); nothing would be collected",
        "取得できません（{0}）。このままでは何も収集されません",
    ),
    (
        "answers with status {}; nothing would be collected",
        "応答が状態 {0} です。このままでは何も収集されません",
    ),
    ("none: everything may be collected", "ありません（すべて収集できます）"),
    ("allows the top page", "トップページを許可しています"),
    ("forbids the top page", "トップページを禁止しています"),
    (
        "robots.txt names none, and there is none at /sitemap.xml",
        "robots.txt に記載がなく、/sitemap.xml にもありません",
    ),
    ("{t}; robots.txt names {} more", "{0}（robots.txt にはほかに {1} 件）"),
    ("{}: status {}, not a sitemap", "{0}：状態 {1}、サイトマップではありません"),
    ("{}: an index of {} sitemaps", "{0}：{1} 件のサイトマップの索引"),
    ("{}: {} pages", "{0}：{1} ページ"),
    // Mistakes in what was typed.
    ("no web address given; write one like {}", "アドレスを入力してください（例：{0}）"),
    ("`{}` is not a web address: {t}", "「{0}」はアドレスとして読めません（{1}）"),
    (
        "`{}` begins with `{}`; only web pages can be archived; write http:// or https://",
        "「{0}」は「{1}」で始まっています。保存できるのはウェブのページだけです。http:// か https:// で始めてください",
    ),
    (
        "there is a user name or password before `{}`; only what every reader can see is collected; leave out everything up to the @",
        "「{0}」の前にユーザー名かパスワードがあります。誰でも見られるページだけを収集しますので、@ より前を除いてください",
    ),
    (
        "a URL of {} bytes is longer than the limit of {}",
        "URL が {0} バイトあり、上限の {1} バイトを超えています",
    ),
    (
        "a colon is missing before the slashes; write {}",
        "スラッシュの前にコロンがありません。{0} と書いてください",
    ),
    (
        "the scheme before the colon is missing; write {}",
        "コロンの前に http か https がありません。{0} と書いてください",
    ),
    (
        "port 0 cannot be used; ports go from 1 to 65535",
        "ポート 0 には接続できません。ポートは 1 から 65535 までです",
    ),
    ("ports go from 1 to 65535", "ポートは 1 から 65535 までです"),
    ("the host name is missing", "ホスト名がありません"),
    ("write one like {}", "{0} のように書いてください"),
    ("this is not an IP address", "IP アドレスとして正しくありません"),
    ("it does not begin with http:// or https://", "http:// か https:// で始まっていません"),
    (
        "'{}' is not a duration; write a number and a unit, such as {}",
        "「{0}」は時間ではありません。数と単位で書いてください（例：90s、15m、12h、7d）",
    ),
    (
        "'{}' is not a revisit policy; write one of {}",
        "「{0}」という再訪問規則はありません。使えるのは {1}",
    ),
    (
        "policy '{}': {}; write it as {}",
        "規則「{0}」を読めません（{1}）。{2} のように書いてください",
    ),
    (
        "'{}' is not a rule for paths: {t}; write it as '{}'",
        "「{0}」はパスの規則ではありません（{1}）。「{2}」のように書いてください",
    ),
    (
        "'{}' is not a collecting window: {t}; write it as '{}'",
        "「{0}」は収集時間帯ではありません（{1}）。「{2}」のように書いてください",
    ),
    ("the pattern is missing", "パターンがありません"),
    ("the pattern does not begin with / or *", "パターンが / か * で始まっていません"),
    (
        "the pattern is too long or has more than 10 stars",
        "パターンが長すぎるか、* が 10 個を超えています",
    ),
    ("'{}' is neither min= nor max=", "「{0}」は min= でも max= でもありません"),
    ("it has neither min= nor max=", "min= も max= もありません"),
    ("min is longer than max", "min が max より長くなっています"),
    (
        "'{}' is neither days, hours nor a time zone",
        "「{0}」は曜日でも時刻でもタイムゾーンでもありません",
    ),
    ("it is empty", "空です"),
    (
        "`{}` is not an age; write one like 30d or 12h",
        "「{0}」は期間ではありません。30d や 12h のように書いてください",
    ),
    (
        "`{}`: write one-per-day, one-per-week or one-per-month",
        "「{0}」：one-per-day、one-per-week、one-per-month のいずれかを書いてください",
    ),
    (
        "`{}` does not say what is kept afterwards; add for example one-per-month",
        "「{0}」には、その後に何を残すかがありません。たとえば one-per-month を加えてください",
    ),
    ("`{}` has more than {} steps", "「{0}」は {1} 段階を超えています"),
    (
        "`{}`: every step but the last needs an age until which it applies, for example one-per-day:90d, each older than the one before",
        "「{0}」：最後以外の各段階には期限（例：one-per-day:90d）が必要で、前の段階より長くします",
    ),
    // Why something is refused.
    (
        "nothing is collected in this process; start `nenrin run` instead of `nenrin serve`",
        "このプロセスでは収集しません。`nenrin serve` ではなく `nenrin run` を使ってください",
    ),
    (
        "the site was removed; restore it under “Removed sites”, unless it was deleted",
        "このサイトは削除されています。完全に消されていなければ「削除したサイト」から元に戻せます",
    ),
    ("there is no site `{}`; {}", "サイト「{0}」はありません"),
    ("a site named `{}` is registered already; {}", "「{0}」という名前のサイトは既にあります"),
    (
        "the content of site {} was deleted; register it again to collect it again",
        "サイト {0} の内容は消去済みです。もう一度収集するには、新しく追加してください",
    ),
    ("there is no site number {}", "番号 {0} のサイトはありません"),
    ("there is no such page here", "このアドレスには何もありません"),
    ("there is no such page: {t}", "ページが見つかりません：{0}"),
    ("there is no page {} in this archive", "{0} はこのアーカイブにありません"),
    ("there is no such report", "そのレポートはありません"),
    ("there is no such version", "その版はありません"),
    ("there is no removal of site number {} to undo", "番号 {0} のサイトは削除されていません"),
    (
        "this form has expired; go back, reload the page and try again",
        "前のページに戻り、再読み込みしてからやり直してください",
    ),
    ("the form is too large or not a form", "フォームが大きすぎるか、フォームではありません"),
    (
        "only an administrator may do this; log in with the administrator's password",
        "管理者のパスワードでログインしてください",
    ),
    (
        "`{}` is not a name of this archive; add it to `host_names` in the configuration",
        "「{0}」はこのアーカイブの名前ではありません。設定の host_names に加えてください",
    ),
    // A page and what happened to it; it would match anything with a colon.
    ("{}: {!}", "{0}：{1}"),
];
