//! Logging in and out, and choosing a language.

use axum::response::{IntoResponse, Redirect, Response};
use maud::html;
use nenrin_lang::{LANG_COOKIE, Lang};

use crate::{
    guard::{Fields, Shared, set_cookie},
    layout::{self, Menu},
    session::{LogIn, SESSION_S},
    visitor::{SESSION_COOKIE, Visitor},
};

/// A path of this interface to go back to; anything else becomes the first page.
fn local(path: &str) -> &str {
    let is_local = path.starts_with('/')
        && !path.starts_with("//")
        && path.len() <= 8_000
        && path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    if is_local { path } else { "/" }
}

/// The form; without a password a link onwards, since there is nothing to type.
pub(crate) fn ask(visitor: &Visitor, back: &str) -> Response {
    if !visitor.has_accounts {
        return Redirect::to(local(back)).into_response();
    }
    form(visitor, back, None)
}

fn form(visitor: &Visitor, back: &str, problem: Option<&str>) -> Response {
    let t = |en, ja| visitor.t(en, ja);
    let content = html! {
        section.card.narrow {
            h1 { (t("Log in", "ログイン")) }
            form.sheet method="post" action="/login" {
                (layout::token(visitor))
                input type="hidden" name="back" value=(local(back));
                div.field.wrong[problem.is_some()] {
                    label for="password" { (t("Password", "パスワード")) }
                    input #password type="password" name="password" autocomplete="current-password" autofocus
                        aria-describedby="password-error";
                    @if let Some(problem) = problem { p.error #password-error role="alert" { (problem) } }
                }
                div.actions { button.primary { (t("Log in", "ログイン")) } }
            }
        }
    };
    layout::page(visitor, Menu::None, t("Log in", "ログイン"), content)
}

/// Tells what came of a log-in.
pub(crate) fn answer(visitor: &Visitor, back: &str, log_in: LogIn) -> Response {
    let t = |en, ja| visitor.t(en, ja);
    match log_in {
        LogIn::Done(id) => {
            let mut response = Redirect::to(local(back)).into_response();
            set_cookie(response.headers_mut(), SESSION_COOKIE, &id, Some(SESSION_S));
            response
        }
        LogIn::Wrong => {
            let problem = t("Wrong password.", "パスワードが違います。");
            let mut response = form(visitor, back, Some(problem));
            *response.status_mut() = axum::http::StatusCode::UNAUTHORIZED;
            response
        }
        LogIn::Wait(seconds) => {
            let problem = match visitor.lang {
                Lang::En => format!("Too many wrong passwords. Try again in {seconds} seconds."),
                Lang::Ja => format!("失敗が続いています。{seconds}秒後にもう一度お試しください。"),
            };
            let mut response = form(visitor, back, Some(&problem));
            *response.status_mut() = axum::http::StatusCode::TOO_MANY_REQUESTS;
            response
        }
    }
}

pub(crate) fn log_out(shared: &Shared, visitor: &Visitor) -> Response {
    shared.sessions.log_out(&visitor.session);
    let id = shared.sessions.new_id(&shared.app.options.secret, visitor.now_s);
    let mut response = Redirect::to("/").into_response();
    set_cookie(response.headers_mut(), SESSION_COOKIE, &id, None);
    response
}

pub(crate) fn choose_language(query: &Fields) -> Response {
    let mut response = Redirect::to(local(query.get("back"))).into_response();
    if let Some(lang) = Lang::from_code(query.get("to")) {
        set_cookie(response.headers_mut(), LANG_COOKIE, lang.code(), Some(365 * 86_400));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn only_paths_of_this_interface_are_gone_back_to() {
        assert_eq!(local("/sites/1?note=a"), "/sites/1?note=a");
        for elsewhere in ["", "//evil.example", "https://evil.example", "/\\evil", "x", "/\r\nX: y"]
        {
            assert_eq!(local(elsewhere), "/");
        }
    }
}
