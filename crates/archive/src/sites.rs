//! Finding and naming sites.

use nenrin_state::{Site, SiteConditions, State, StateError};
use nenrin_urls::Scope;

use crate::Result;

/// A site by its name or number.
pub fn find(state: &dyn State, name: &str) -> Result<Site> {
    let mut sites = state.sites()?;
    let place = sites
        .iter()
        .position(|site| site.name == name)
        .or_else(|| sites.iter().position(|site| site.id.0.to_string() == name));
    match place {
        Some(place) => Ok(sites.swap_remove(place)),
        None => Err(StateError::NoSuchSite { name: name.to_owned() }.into()),
    }
}

/// A name that no site has yet, made of the first top page's host and, where the scope is
/// narrower, its path.
pub fn free_name(state: &dyn State, conditions: &SiteConditions) -> Result<String> {
    let Some(top) = conditions.tops.first() else { return Ok("site".to_owned()) };
    let server = top.server();
    let host = server.as_str().split_once("://").map_or(server.as_str(), |(_, host)| host);
    let host = host.replacen(top.host(), &top.shown_host(), 1);
    let path = match conditions.scope {
        Scope::Prefix => top.directory().trim_end_matches('/'),
        Scope::List => top.path().trim_end_matches('/'),
        _ => "",
    };
    let taken: Vec<String> = state.sites()?.into_iter().map(|site| site.name).collect();
    let first = format!("{host}{path}");
    let name = std::iter::once(first.clone())
        .chain((2..).map(|n| format!("{first} ({n})")))
        .find(|name| !taken.contains(name));
    Ok(name.unwrap_or(first))
}
