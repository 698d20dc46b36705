//! Proxy, source address, certificates and scripts in the form.

use std::net::IpAddr;

use nenrin_state::{RenderWhen, SiteConditions, SiteRoad, SiteScripts};
use nenrin_urls::{CanonicalUrl, Proxy};

use super::{SiteForm, check::Check, revisit::lines};

impl SiteForm {
    pub(super) fn set_road(&mut self, conditions: &SiteConditions) {
        let road = &conditions.road;
        self.proxy = road.proxy.as_ref().map(ToString::to_string).unwrap_or_default();
        self.source = road.source.map(|address| address.to_string()).unwrap_or_default();
        self.any_certificate = road.any_certificate.clone().unwrap_or_default();
        let login_page = conditions.login_page.as_ref();
        self.login_page = login_page.map(ToString::to_string).unwrap_or_default();
        let scripts = &conditions.scripts;
        self.render = scripts.render.name().into();
        self.render_paths = lines(&scripts.paths);
        self.likely_urls = scripts.likely_urls;
    }

    pub(super) fn road(&self, check: &mut Check) -> SiteRoad {
        let proxy = match self.proxy.trim() {
            "" => None,
            text => text.parse::<Proxy>().map_err(|error| check.error("proxy", &error)).ok(),
        };
        let source = match self.source.trim() {
            "" => None,
            text => text
                .parse::<IpAddr>()
                .map_err(|_| {
                    check.say(
                        "source",
                        "write an address of this machine, such as 192.0.2.7",
                        "この機器のアドレスを入力してください（例：192.0.2.7）",
                    )
                })
                .ok(),
        };
        let reason = self.any_certificate.trim();
        let any_certificate = (!reason.is_empty()).then(|| reason.to_owned());
        let road = SiteRoad { proxy, source, any_certificate };
        if let Some(problem) = road.problem() {
            check.error("proxy", problem);
        }
        road
    }

    pub(super) fn login_page(&self, check: &mut Check) -> Option<CanonicalUrl> {
        match self.login_page.trim() {
            "" => None,
            text => CanonicalUrl::parse_typed(text)
                .map_err(|error| check.error("login_page", &error.to_string()))
                .ok(),
        }
    }

    pub(super) fn scripts(&self, check: &mut Check) -> SiteScripts {
        // Forms of programs need not name every field.
        let text = if self.render.is_empty() { "never" } else { &self.render };
        let render = text.parse().unwrap_or_else(|_| {
            check.say_choose("render");
            RenderWhen::Never
        });
        SiteScripts {
            render,
            paths: check.lines("render_paths", &self.render_paths, SiteScripts::PATHS_MAX),
            likely_urls: self.likely_urls,
        }
    }
}
