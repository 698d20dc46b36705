//! A window in which a person logs in.

use std::sync::Arc;
use std::time::Duration;

use nenrin_urls::CanonicalUrl;
use serde_json::{Value, json};

use crate::cdp::Cdp;
use crate::program::{chromium, fenced, is_root};
use crate::proxy::{Answers, Proxy};
use crate::{RenderError, RenderOptions};

/// How often the cookies are looked at: those of the last look before the window closes count.
const TICK: Duration = Duration::from_millis(500);

/// Opens a window with a page, every request of which is put to the caller, and waits until the person
/// closes it. Returns the cookies that are there then, as a `cookies.txt`.
///
/// # Errors
/// [`RenderError::NoBrowser`], [`RenderError::Root`] as for renderings; [`RenderError::NoDisplay`]
/// where no window can be opened.
pub async fn log_in(
    options: &RenderOptions,
    page: &CanonicalUrl,
    answers: Arc<dyn Answers>,
) -> Result<String, RenderError> {
    let program = chromium(options).ok_or(RenderError::NoBrowser)?;
    if is_root() && !options.as_root {
        return Err(RenderError::Root);
    }
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if cfg!(target_os = "linux") && !has_display {
        return Err(RenderError::NoDisplay);
    }
    let options = RenderOptions { as_root: options.as_root && is_root(), ..options.clone() };
    let profile = tempfile::Builder::new().prefix("nenrin-login-").tempdir()?;
    let proxy = Proxy::start(usize::MAX, u64::MAX).await?;
    proxy.open_for_person(answers);
    let reached = (proxy.port, proxy.key_hash.as_str());
    let mut cdp = Cdp::start(fenced(&options, (&program, true), profile.path(), reached))?;
    let opened = cdp.call(None, "Target.createTarget", json!({"url": page.as_str()})).await?;
    // The empty one with which the browser began is not wanted.
    let targets = cdp.call(None, "Target.getTargets", json!({})).await?;
    for target in pages(&targets).filter(|target| target["targetId"] != opened["targetId"]) {
        let which = json!({"targetId": target["targetId"]});
        cdp.call(None, "Target.closeTarget", which).await?;
    }
    let mut cookies = String::new();
    loop {
        tokio::time::sleep(TICK).await;
        while cdp.events.try_recv().is_ok() {}
        let Ok(found) = cdp.call(None, "Storage.getCookies", json!({})).await else { break };
        let Ok(targets) = cdp.call(None, "Target.getTargets", json!({})).await else { break };
        if pages(&targets).next().is_none() {
            break;
        }
        cookies = found["cookies"].as_array().into_iter().flatten().filter_map(line).collect();
    }
    cdp.end().await;
    Ok(cookies)
}

fn pages(targets: &Value) -> impl Iterator<Item = &Value> {
    let all = targets["targetInfos"].as_array().into_iter().flatten();
    all.filter(|target| target["type"] == "page")
}

/// A cookie as a line of a `cookies.txt`.
fn line(cookie: &Value) -> Option<String> {
    let text = |name: &str| cookie[name].as_str();
    let word = |is: bool| if is { "TRUE" } else { "FALSE" };
    let domain = text("domain")?;
    let expires_s = cookie["expires"].as_f64().filter(|at_s| *at_s > 0.0).unwrap_or(0.0) as u64;
    Some(format!(
        "{domain}\t{}\t{}\t{}\t{expires_s}\t{}\t{}\n",
        word(domain.starts_with('.')),
        text("path")?,
        word(cookie["secure"] == true),
        text("name")?,
        text("value")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_become_lines() {
        let wide = json!({"name": "a", "value": "b", "domain": ".e.com", "path": "/", "expires": 1.9e9, "secure": true});
        assert_eq!(line(&wide).unwrap(), ".e.com\tTRUE\t/\tTRUE\t1900000000\ta\tb\n");
        let own =
            json!({"name": "a", "value": "b", "domain": "e.com", "path": "/x", "expires": -1});
        assert_eq!(line(&own).unwrap(), "e.com\tFALSE\t/x\tFALSE\t0\ta\tb\n");
    }
}
