//! Checks every request before a page sees it, and adds headers to every answer.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{ConnectInfo, FromRequest, FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};
use nenrin_archive::{Outlook, PageSearch, SiteStructure, changes::SiteDifference};
use nenrin_lang::Lang;
use url::form_urlencoded;

use crate::{
    Role, WebApp, WebError, WebOptions,
    computed::Computed,
    downloads::Downloads,
    format, layout,
    pages::page_history::PageVisits,
    scans::Scans,
    session::{LogIn, Sessions},
    turns::Turns,
    visitor::{SESSION_COOKIE, Visitor, cookie, is_session_id, token},
};

/// The largest form.
const MAX_FORM_BYTES: usize = 256 * 1024;

/// A body comes within this time, or its connection would be held for ever.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) app: WebApp,
    pub(crate) sessions: Sessions,
    /// Turns for pages and for the API.
    pub(crate) turns: Turns,
    /// Turns for those among them that read the content of versions, which takes long.
    pub(crate) reading: Turns,
    /// Turns to check a password: one at a time, since hashing takes a processor and 19 MB.
    pub(crate) passwords: Turns,
    pub(crate) downloads: Downloads,
    pub(crate) structures: Arc<Computed<SiteStructure>>,
    pub(crate) outlooks: Arc<Computed<Option<Outlook>>>,
    pub(crate) differences: Scans<SiteDifference>,
    pub(crate) searches: Scans<PageSearch>,
    pub(crate) page_visits: Scans<PageVisits>,
    /// People who watch a site being collected.
    pub(crate) watchers: Arc<tokio::sync::Semaphore>,
}

/// Parts of paths whose answers read the content of versions.
const READING: [&str; 7] =
    ["blame", "between", "changes", "feed.atom", "picture", "search", "search.atom"];

impl Shared {
    /// The turns for a path: of a page or of the API, with its query or without.
    pub(crate) fn turns_for(&self, path: &str) -> &Turns {
        let path = path.split('?').next().unwrap_or_default();
        match path.split('/').any(|part| READING.contains(&part)) {
            true => &self.reading,
            false => &self.turns,
        }
    }

    /// Checks a password in its turn. Whoever has to wait hears so at once, without one.
    pub(crate) async fn check_password(
        self: &Arc<Self>,
        password: String,
        from: Option<IpAddr>,
        check: fn(&Sessions, &WebOptions, &str, Option<IpAddr>, i64) -> LogIn,
    ) -> Result<LogIn, WebError> {
        let now_s = (self.app.now_s)();
        let wait_s = self.sessions.wait_s(from, now_s);
        if wait_s > 0 {
            return Ok(LogIn::Wait(wait_s));
        }
        let shared = self.clone();
        let check = move || check(&shared.sessions, &shared.app.options, &password, from, now_s);
        self.passwords.run(from, check).await
    }
}

/// The whole body of a request, if it is not too long and comes in time.
pub(crate) async fn received(body: Body, max_bytes: usize) -> Option<Bytes> {
    tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, max_bytes)).await.ok()?.ok()
}

/// Paths that are open without logging in.
fn is_open(path: &str) -> bool {
    path.starts_with("/assets/") || path == "/login" || path == "/lang"
}

pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    mut request: Request,
    next: Next,
) -> Response {
    let program = match program_password(&shared.app, &request) {
        Some((password, from)) => program_session(shared.clone(), password, from).await,
        None => Ok(None),
    };
    let (program, refused) = match program {
        Ok(session) => (session, None),
        Err(refused) => (None, Some(refused)),
    };
    let (visitor, is_new) = welcome(&shared, &request, program);
    let replay = visitor.replay.clone();
    let session = visitor.session.clone();
    let is_over_tls = is_over_tls(request.headers());
    let admitted = refused.map_or_else(|| admit(&shared.app, &visitor, &request), Err);
    let response = match admitted {
        Ok(None) => {
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
        Ok(Some(elsewhere)) => elsewhere,
        Err(error) => layout::error(&visitor, &error),
    };
    let mut response = secured(response, &replay);
    if is_new && !response.headers().contains_key(header::SET_COOKIE) {
        set_cookie(response.headers_mut(), SESSION_COOKIE, &session, None);
    }
    if is_over_tls {
        keep_to_tls(response.headers_mut());
    }
    response
}

/// Whether the browser reached us over TLS, through a proxy in front of us. Whoever claims this
/// wrongly only loses their own cookie.
fn is_over_tls(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    text("origin").is_some_and(|origin| origin.starts_with("https://"))
        || text("x-forwarded-proto").is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
}

/// The cookies of an answer are never sent without TLS.
fn keep_to_tls(headers: &mut HeaderMap) {
    let cookies: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().cloned().collect();
    headers.remove(header::SET_COOKIE);
    for cookie in cookies {
        let secure = HeaderValue::from_bytes(&[cookie.as_bytes(), b"; Secure"].concat());
        headers.append(header::SET_COOKIE, secure.unwrap_or(cookie));
    }
}

/// Programs send the password with every request (HTTP Basic, any user name).
fn program_password(app: &WebApp, request: &Request) -> Option<(String, Option<IpAddr>)> {
    let path = request.uri().path();
    let for_programs = path.starts_with("/api/") || matches!(path, "/metrics" | "/feed.atom");
    if app.options.admin_hash.is_none() || !for_programs {
        return None;
    }
    let sent = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let decoded = decode_base64(sent.strip_prefix("Basic ")?)?;
    let password = String::from_utf8(decoded).ok()?.split_once(':')?.1.to_owned();
    let from = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    Some((password, from))
}

/// The session of a program; `None` where its password is wrong.
async fn program_session(
    shared: Arc<Shared>,
    password: String,
    from: Option<IpAddr>,
) -> Result<Option<String>, WebError> {
    let now_s = (shared.app.now_s)();
    let known = shared.sessions.known_program(&shared.app.options, &password, from, now_s);
    if known.is_some() {
        return Ok(known);
    }
    match shared.check_password(password, from, Sessions::new_program).await? {
        LogIn::Done(id) => Ok(Some(id)),
        LogIn::Wrong => Ok(None),
        LogIn::Wait(seconds) => Err(WebError::Guessing { seconds }),
    }
}

/// Base64 with or without padding; short, so it need not be fast.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut out = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for b in text.trim().trim_end_matches('=').bytes().take(4_000) {
        bits = (bits << 6 | u32::from(digit(b)?)) & 0xff_ffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
        }
    }
    Some(out)
}

fn welcome(shared: &Shared, request: &Request, program: Option<String>) -> (Visitor, bool) {
    let options = &shared.app.options;
    let now_s = (shared.app.now_s)();
    let text = |name| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let cookies = text(header::COOKIE);
    let sent = cookie(cookies, SESSION_COOKIE).filter(|id| is_session_id(id));
    let known = program.or_else(|| sent.map(str::to_owned));
    let is_new = known.is_none();
    let session = known.unwrap_or_else(|| shared.sessions.new_id(&options.secret, now_s));
    let has_accounts = options.admin_hash.is_some();
    let given = shared.sessions.role(&session, now_s);
    let role = match given {
        _ if !has_accounts => Some(Role::Admin),
        None if options.public_reading => Some(Role::Reader),
        role => role,
    };
    let lang = Lang::of_request(cookies, text(header::ACCEPT_LANGUAGE));
    let visitor = Visitor {
        lang,
        role,
        has_accounts,
        is_logged_in: given.is_some(),
        token: token(&options.secret, &session),
        session,
        replay: shared.app.replay_base.origin(host(request)),
        here: request.uri().path_and_query().map_or("/", |p| p.as_str()).to_owned(),
        from: request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip()),
        now_s,
    };
    (visitor, is_new)
}

fn host(request: &Request) -> &str {
    request
        .headers()
        .get(header::HOST)
        .and_then(|v| v.to_str().ok())
        .or_else(|| request.uri().authority().map(|a| a.as_str()))
        .unwrap_or("localhost")
}

/// Lets a request pass, redirects it, or refuses it.
fn admit(app: &WebApp, visitor: &Visitor, request: &Request) -> Result<Option<Response>, WebError> {
    let host = host(request);
    if !host_is_ours(app, host) {
        return Err(WebError::ForeignHost { host: host.to_owned() });
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && sent_from_elsewhere(request.headers(), host) {
        return Err(WebError::Forged);
    }
    let path = request.uri().path();
    match visitor.role {
        _ if is_open(path) => Ok(None),
        None if path.starts_with("/api/") || matches!(path, "/metrics" | "/feed.atom") => {
            Ok(Some(ask_for_password()))
        }
        None if reads => {
            let back = format::encoded(&visitor.here);
            Ok(Some(Redirect::to(&format!("/login?back={back}")).into_response()))
        }
        None => Err(WebError::NotAllowed),
        Some(Role::Reader) if !reads && path != "/logout" => Err(WebError::NotAllowed),
        Some(_) => Ok(None),
    }
}

fn ask_for_password() -> Response {
    let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"nenrin\"")];
    (StatusCode::UNAUTHORIZED, ask, "send the password by HTTP Basic authentication")
        .into_response()
}

/// Other websites could reach a loopback interface by a name that resolves to it, so unknown names
/// are refused. Addresses are safe, and behind a password names do not matter.
fn host_is_ours(app: &WebApp, host: &str) -> bool {
    let url = url::Url::parse(&format!("http://{host}/"));
    let Ok(url) = url else { return false };
    match url.host() {
        _ if app.options.admin_hash.is_some() => true,
        Some(url::Host::Domain(name)) => {
            name == "localhost"
                || name.ends_with(".localhost")
                || app.options.host_names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
        }
        Some(_) => true,
        None => false,
    }
}

fn sent_from_elsewhere(headers: &HeaderMap, host: &str) -> bool {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    if let Some(site) = text("sec-fetch-site")
        && !matches!(site, "same-origin" | "none")
    {
        return true;
    }
    match text("origin") {
        None => false,
        Some(origin) => origin.split_once("://").is_none_or(|(_, from)| from != host),
    }
}

fn secured(mut response: Response, replay: &str) -> Response {
    let headers = response.headers_mut();
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; form-action 'self' {replay}; base-uri 'none'; frame-ancestors 'none'"
    );
    let policy = HeaderValue::from_str(&policy)
        .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"));
    // Lab reports have a policy of their own.
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
        ("x-robots-tag", "noindex, nofollow"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Sets a cookie that scripts cannot read. Values are ours: hexadecimal or a language code.
pub(crate) fn set_cookie(headers: &mut HeaderMap, name: &str, value: &str, max_age_s: Option<i64>) {
    let age = max_age_s.map(|s| format!("; Max-Age={s}")).unwrap_or_default();
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{age}");
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.append(header::SET_COOKIE, value);
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        // The guard runs before every route, so the visitor is always there.
        parts.extensions.get::<Self>().cloned().ok_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// The fields of a form that carried its token.
pub(crate) struct Submitted {
    pub(crate) visitor: Visitor,
    pub(crate) fields: Fields,
    /// The address it came from, where the server knows it.
    pub(crate) from: Option<IpAddr>,
}

/// Fields by name; if a field was sent twice, the last one counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(BTreeMap<String, String>);

impl Fields {
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).take(256).map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// The value; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The value as it was sent, if it was.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value without surrounding spaces; `None` if nothing is left.
    pub(crate) fn some(&self, name: &str) -> Option<&str> {
        Some(self.get(name).trim()).filter(|value| !value.is_empty())
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.some(name)?.parse().ok()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Fields {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default().as_bytes()))
    }
}

impl<S: Send + Sync> FromRequest<S> for Submitted {
    type Rejection = Response;

    async fn from_request(request: Request<Body>, state: &S) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let Some(body) = received(body, MAX_FORM_BYTES).await else {
            return Err(layout::error(&visitor, &WebError::BadForm));
        };
        let fields = Fields::parse(&body);
        // Hashes are compared, so that the time taken reveals nothing about the token.
        let sent = blake3::hash(fields.get("token").as_bytes());
        if sent != blake3::hash(visitor.token.as_bytes()) {
            return Err(layout::error(&visitor, &WebError::Forged));
        }
        let from = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
        Ok(Self { visitor, fields, from })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_kept_to_tls_where_the_browser_speaks_it() {
        let headers = |name: &'static str, value| {
            HeaderMap::from_iter([(
                header::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )])
        };
        assert!(is_over_tls(&headers("origin", "https://archive.example")));
        assert!(is_over_tls(&headers("x-forwarded-proto", "https")));
        assert!(!is_over_tls(&headers("origin", "http://localhost:8080")));
        assert!(!is_over_tls(&HeaderMap::new()));
        let mut answer = HeaderMap::new();
        set_cookie(&mut answer, "a", "1", None);
        set_cookie(&mut answer, "b", "2", Some(9));
        keep_to_tls(&mut answer);
        let cookies: Vec<_> = answer.get_all(header::SET_COOKIE).iter().collect();
        assert_eq!(cookies.len(), 2);
        assert!(cookies.iter().all(|cookie| cookie.to_str().unwrap().ends_with("; Secure")));
    }

    #[test]
    fn base64_is_read() {
        let read = |text| decode_base64(text).and_then(|bytes| String::from_utf8(bytes).ok());
        assert_eq!(read("dXNlcjpwYXNz").as_deref(), Some("user:pass"));
        assert_eq!(read("dTpw5pel").as_deref(), Some("u:p日"));
        assert_eq!(read("YQ==").as_deref(), Some("a"));
        assert_eq!(read("YWI").as_deref(), Some("ab"));
        assert_eq!(read("***"), None);
    }
}
