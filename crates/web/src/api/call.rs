//! One request to the API, and what its handlers read of it.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use nenrin_state::{Site, SiteId};
use nenrin_urls::CanonicalUrl;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::answers::{SiteAnswer, Sums};
use crate::{WebApp, WebError, format, guard::Fields, pages::site, visitor::Visitor};

const DEFAULT_LIMIT: usize = 100;
pub(super) const MAX_LIMIT: usize = 1_000;

/// One request.
pub(super) struct Call<'a> {
    pub(super) app: &'a WebApp,
    pub(super) visitor: &'a Visitor,
    pub(super) id: Option<String>,
    pub(super) query: Fields,
    pub(super) body: Vec<u8>,
}

impl Call<'_> {
    pub(super) fn site(&self) -> Result<Site, WebError> {
        site::find(self.app, self.id())
    }

    pub(super) fn limit(&self) -> Result<usize, WebError> {
        let limit = self.number("limit")?.unwrap_or(DEFAULT_LIMIT);
        let is_fitting = (1..=MAX_LIMIT).contains(&limit);
        if is_fitting { Ok(limit) } else { Err(bad("limit", "is not between 1 and 1000")) }
    }

    /// A number that may be missing but not wrong.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, WebError> {
        match self.query.given(name) {
            None => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| bad(name, "is not a number in the allowed range")),
        }
    }

    /// The day of a date, counted since the epoch.
    pub(super) fn day(&self, name: &str) -> Result<Option<i64>, WebError> {
        match self.query.given(name) {
            None => Ok(None),
            Some(text) => format::parse_date(text)
                .map(|at_s| Some(at_s.div_euclid(format::DAY_S)))
                .ok_or_else(|| bad(name, "is not a date")),
        }
    }

    pub(super) fn url(&self) -> Result<CanonicalUrl, WebError> {
        let text = self.query.get("url");
        // A text that is not a web address cannot be in the archive.
        CanonicalUrl::parse_typed(text).map_err(|e| WebError::not_found(format!("such page: {e}")))
    }

    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    pub(super) fn now_s(&self) -> i64 {
        self.visitor.now_s
    }

    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, WebError> {
        let value: Value =
            serde_json::from_slice(&self.body).map_err(|e| bad("the body", &e.to_string()))?;
        if has_list_for_object(&value) {
            return Err(bad("the body", "has a list instead of an object"));
        }
        serde_json::from_value(value).map_err(|e| bad("the body", &e.to_string()))
    }

    pub(super) fn shown(&self, site: SiteId) -> Result<SiteAnswer, WebError> {
        let site = site::find(self.app, &site.0.to_string())?;
        let logged_out = nenrin_archive::logged_out_of(&*self.app.state, &site)?;
        let mut answer = SiteAnswer::new(site, &self.sums()?);
        answer.logged_out = logged_out;
        Ok(answer)
    }

    pub(super) fn sums(&self) -> Result<Sums, WebError> {
        let state = &self.app.state;
        Ok(Sums {
            cost: self.app.site_sums(i64::MAX)?,
            worth: nenrin_archive::shown_worth(&**state)?,
        })
    }
}

/// Whether there is a list in the position of an object: serde would take its items for the fields
/// of a struct.
fn has_list_for_object(value: &Value) -> bool {
    const LISTS: [&str; 8] =
        ["tops", "windows", "paths", "include", "exclude", "headers", "ignored", "tags"];
    match value {
        Value::Array(_) => true,
        Value::Object(fields) => fields.iter().any(|(name, field)| match field {
            Value::Array(items) if LISTS.contains(&name.as_str()) => {
                items.iter().any(has_list_for_object)
            }
            field => has_list_for_object(field),
        }),
        _ => false,
    }
}

pub(super) fn ok(answer: impl Serialize) -> Result<Response, WebError> {
    Ok(Json(answer).into_response())
}

pub(super) fn bad(what: &str, reason: &str) -> WebError {
    WebError::BadParameter { what: what.to_owned(), reason: reason.to_owned() }
}
