//! Finding and naming sites.

use nenrin_state::{Site, SiteConditions, State, StateError};
use nenrin_urls::{CanonicalUrl, Scope};

use crate::{ArchiveError, Result};

/// A site by its name or number.
pub fn named(state: &dyn State, name: &str) -> Result<Site> {
    let sites = state.sites()?;
    let is_named = |site: &&Site| site.name == name;
    let is_numbered = |site: &&Site| site.id.0.to_string() == name;
    match sites.iter().find(is_named).or_else(|| sites.iter().find(is_numbered)) {
        Some(site) => Ok(site.clone()),
        None => Err(StateError::NoSuchSite { name: name.to_owned() }.into()),
    }
}

/// A site by its name, its number, or a URL: a top page, or the server of exactly one site.
pub fn find(state: &dyn State, name: &str) -> Result<Site> {
    let unknown = match named(state, name) {
        Err(ArchiveError::State(error @ StateError::NoSuchSite { .. })) => error,
        found => return found,
    };
    let sites = state.sites()?;
    // A name without a dot or scheme is a name that was mistyped, not a URL.
    if !name.contains('.') && !name.contains("://") {
        return Err(unknown.into());
    }
    let Ok(url) = CanonicalUrl::parse_typed(name) else { return Err(unknown.into()) };
    let has_top = |site: &Site| site.conditions.tops.contains(&url);
    let is_server = url.path() == "/" && url.query().is_none();
    let is_on_server = |site: &Site| is_server && Scope::Host.contains(&site.conditions.tops, &url);
    let by = |has: &dyn Fn(&Site) -> bool| -> Vec<&Site> {
        sites.iter().filter(|site| site.removed.is_none() && has(site)).collect()
    };
    let with_top = by(&has_top);
    let found = if with_top.is_empty() { by(&is_on_server) } else { with_top };
    match found[..] {
        [] => Err(unknown.into()),
        [site] => Ok(site.clone()),
        [first, second, ..] => Err(ArchiveError::Input(format!(
            "{url} is the address of several sites, such as `{}` and `{}`; name one of them",
            first.name, second.name
        ))),
    }
}

/// The site that is named, or the only one of the archive where none is.
pub fn named_or_only(state: &dyn State, name: Option<&str>) -> Result<Site> {
    if let Some(name) = name {
        return find(state, name);
    }
    let mut sites = state.sites()?;
    sites.retain(|site| site.removed.is_none());
    match &sites[..] {
        [site] => Ok(site.clone()),
        [] => Err(ArchiveError::Input(
            "the archive has no site yet; add it with `nenrin site add URL`".to_owned(),
        )),
        [first, second, ..] => Err(ArchiveError::Input(format!(
            "the archive has {} sites, such as `{}` and `{}`; name one of them with --site",
            sites.len(),
            first.name,
            second.name
        ))),
    }
}

/// What to do after a site was registered.
pub fn next_step(site: &Site) -> String {
    let conditions = &site.conditions;
    let is_own = conditions.tops.iter().any(CanonicalUrl::is_on_private_network);
    if is_own && !conditions.allow_private {
        return format!(
            "This address is on your own network, so nothing is fetched from it yet: `nenrin site set {} --allow-private` allows it.",
            site.id.0
        );
    }
    "`nenrin run` collects it and shows it in the browser; `nenrin collect` collects one round now."
        .to_owned()
}

/// The site that already has one of these top pages, unless it was removed.
pub fn registered(state: &dyn State, tops: &[CanonicalUrl]) -> Result<Option<Site>, StateError> {
    let has = |site: &Site| site.conditions.tops.iter().any(|top| tops.contains(top));
    Ok(state.sites()?.into_iter().find(|site| site.removed.is_none() && has(site)))
}

/// The name of a new site: the given one, or one made of its address. An address that is already
/// registered is refused, unless a name is given.
pub fn name_for(
    state: &dyn State,
    given: Option<String>,
    conditions: &SiteConditions,
) -> Result<String> {
    match (given, registered(state, &conditions.tops)?) {
        (Some(name), _) => Ok(name),
        (None, None) => Ok(free_name(state, conditions)?),
        (None, Some(site)) => {
            let (name, number) = (&site.name, site.id.0);
            Err(ArchiveError::Input(format!(
                "this address is already the site `{name}` (number {number}): `nenrin site show \
                 {number}` shows it, `nenrin site set {number}` changes its conditions, `nenrin \
                 collect` collects it now; `--name NAME` adds it a second time"
            )))
        }
    }
}

/// A name that no site has yet, made of the first top page's host and, where the scope is
/// narrower, its path.
pub fn free_name(state: &dyn State, conditions: &SiteConditions) -> Result<String, StateError> {
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
