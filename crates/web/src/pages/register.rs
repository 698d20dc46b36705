//! Adding a site and changing its conditions.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use nenrin_archive::sites::{free_name, registered};
use nenrin_state::{Site, StateError};

use super::sheet::Sheet;
use crate::{
    WebApp, WebError,
    form::{SiteForm, Wrong},
    guard::Fields,
    visitor::Visitor,
};

pub(crate) fn new_site(app: &WebApp, visitor: &Visitor, query: &Fields) -> Response {
    let mut form = SiteForm::fresh(app.options.depth);
    let others = app.state.sites().unwrap_or_default();
    let copied = others.iter().find(|site| Some(site.id.0) == query.number("copy"));
    if let Some(site) = copied {
        form = SiteForm { name: String::new(), ..SiteForm::of("", &site.conditions) };
        form.more_tops.clear();
    }
    form.url = query.get("url").to_owned();
    Sheet { others: &others, copied, ..Sheet::of(visitor, &form, &Wrong::new()) }.show()
}

pub(crate) fn add(app: &WebApp, visitor: &Visitor, fields: &Fields) -> Result<Response, WebError> {
    let form = SiteForm::submitted(fields);
    let wrong = match form.read(visitor.lang) {
        Err(wrong) => wrong,
        Ok((_, conditions))
            if fields.get("again").is_empty()
                && let Some(site) = registered(&*app.state, &conditions.tops)? =>
        {
            return Ok(already(visitor, form, &free_name(&*app.state, &conditions)?, &site));
        }
        Ok((name, conditions)) => match app.state.add_site(&name, &conditions, visitor.now_s) {
            Ok(site) => {
                app.control.sites_changed();
                let started = app.control.collect_now(site.id).is_ok();
                let note = if started { "added" } else { "added-only" };
                let target = format!("/sites/{}?note={note}", site.id.0);
                return Ok(Redirect::to(&target).into_response());
            }
            Err(StateError::SiteExists { name }) => Wrong::from([("name", taken(visitor, &name))]),
            Err(error) => return Err(error.into()),
        },
    };
    Ok(Sheet::of(visitor, &form, &wrong).show())
}

/// The form again, with the site that already has this address, and a way to add it once more.
fn already(visitor: &Visitor, mut form: SiteForm, free_name: &str, site: &Site) -> Response {
    if form.name.trim().is_empty() || form.name.trim() == site.name {
        form.name = free_name.to_owned();
    }
    let mut response =
        Sheet { already: Some(site), ..Sheet::of(visitor, &form, &Wrong::new()) }.show();
    *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    response
}

fn taken(visitor: &Visitor, name: &str) -> String {
    match visitor.lang {
        nenrin_lang::Lang::En => {
            format!("a site named “{name}” exists already; choose another name")
        }
        nenrin_lang::Lang::Ja => format!("「{name}」という名前は既に使われています"),
    }
}

/// The form again, with the result of a first look at the site.
pub(crate) fn look(
    app: &WebApp,
    visitor: &Visitor,
    site: Option<&Site>,
    fields: &Fields,
) -> Response {
    let form = SiteForm::submitted(fields);
    let (wrong, look) = match form.read(visitor.lang) {
        Err(wrong) => (wrong, None),
        Ok((_, conditions)) => {
            let found = conditions
                .tops
                .first()
                .map(|top| app.control.preview(top, conditions.allow_private));
            (Wrong::new(), found.map(|found| found.map_err(|e| e.to_string())))
        }
    };
    Sheet { site, look, ..Sheet::of(visitor, &form, &wrong) }.show()
}

pub(crate) fn edit(visitor: &Visitor, site: &Site) -> Response {
    let form = SiteForm::of(&site.name, &site.conditions);
    Sheet { site: Some(site), ..Sheet::of(visitor, &form, &Wrong::new()) }.show()
}

pub(crate) fn save(
    app: &WebApp,
    visitor: &Visitor,
    site: &Site,
    fields: &Fields,
) -> Result<Response, WebError> {
    let form = SiteForm::submitted(fields);
    match form.read(visitor.lang) {
        Err(wrong) => Ok(Sheet { site: Some(site), ..Sheet::of(visitor, &form, &wrong) }.show()),
        Ok((name, conditions)) => {
            match app.state.rename_site(site.id, &name) {
                Err(StateError::SiteExists { name }) => {
                    let wrong = Wrong::from([("name", taken(visitor, &name))]);
                    return Ok(
                        Sheet { site: Some(site), ..Sheet::of(visitor, &form, &wrong) }.show()
                    );
                }
                done => done?,
            }
            app.state.set_site(site.id, &conditions, visitor.now_s)?;
            app.control.sites_changed();
            Ok(Redirect::to(&format!("/sites/{}?note=saved", site.id.0)).into_response())
        }
    }
}
