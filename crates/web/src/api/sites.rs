//! Sites in the API: registering, changing, renaming, copying.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use nenrin_state::SiteConditions;
use nenrin_urls::CanonicalUrl;
use serde::Deserialize;

use super::{
    call::{Call, bad, ok},
    conditions,
};
use crate::WebError;

const NAME_CHARS_MAX: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewSite {
    name: String,
    conditions: SiteConditions,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Copy {
    name: String,
    tops: Vec<CanonicalUrl>,
}

fn checked(name: &str) -> Result<&str, WebError> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        return Err(bad("the body", "a site needs a name of at most 100 characters"));
    }
    Ok(name)
}

fn register(
    call: &Call<'_>,
    name: &str,
    conditions: &SiteConditions,
) -> Result<Response, WebError> {
    let name = checked(name)?;
    conditions::check(conditions)?;
    let site = call.app.state.add_site(name, conditions, call.visitor.now_s)?;
    call.app.control.sites_changed();
    Ok((StatusCode::CREATED, Json(call.shown(site.id)?)).into_response())
}

pub(super) fn add(call: &Call<'_>) -> Result<Response, WebError> {
    let new: NewSite = call.json()?;
    register(call, &new.name, &new.conditions)
}

pub(super) fn one(call: &Call<'_>) -> Result<Response, WebError> {
    ok(call.shown(call.site()?.id)?)
}

pub(super) fn set(call: &Call<'_>) -> Result<Response, WebError> {
    let site = call.site()?;
    let conditions: SiteConditions = call.json()?;
    conditions::check(&conditions)?;
    call.app.state.set_site(site.id, &conditions, call.visitor.now_s)?;
    call.app.control.sites_changed();
    ok(call.shown(site.id)?)
}

pub(super) fn rename(call: &Call<'_>) -> Result<Response, WebError> {
    let site = call.site()?;
    let wanted: Name = call.json()?;
    call.app.state.rename_site(site.id, checked(&wanted.name)?)?;
    call.app.control.sites_changed();
    ok(call.shown(site.id)?)
}

pub(super) fn copy(call: &Call<'_>) -> Result<Response, WebError> {
    let site = call.site()?;
    let wanted: Copy = call.json()?;
    let conditions = SiteConditions { tops: wanted.tops, ..site.conditions };
    register(call, &wanted.name, &conditions)
}
