//! The settings of e-mail, as in the configuration.

use nenrin_archive::noticing::Happening;
use nenrin_lang::Lang;
use nenrin_revisit::CollectingWindow;
use serde::{Deserialize, Serialize};

use super::MailError;

/// How the connection to the server is protected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// Begins in the clear and must change to TLS; usually port 587.
    #[default]
    Starttls,
    /// TLS from the first byte; usually port 465.
    Tls,
    /// Never protected: for a server on the same machine.
    None,
}

/// `[mail]` of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MailSettings {
    /// Host and port; empty for no e-mail.
    pub server: String,
    /// How the connection is protected.
    pub security: Security,
    /// A file with the certificate of the authority that signed the server's; empty for the usual ones.
    pub ca_file: String,
    /// The name to log in with; empty for none.
    pub user: String,
    /// A file with the password.
    pub password_file: String,
    /// The sender's address.
    pub from: String,
    /// Who gets the letters.
    pub to: Vec<String>,
    /// Which events are sent; watches and incidents by default.
    pub events: Vec<Happening>,
    /// When nothing is sent; letters wait until then.
    pub quiet: Vec<CollectingWindow>,
    /// `daily 07:00 Asia/Tokyo` or `weekly 07:00`: when a summary of the changes is sent.
    pub digest: String,
    /// `en` or `ja`.
    pub language: String,
}

impl Default for MailSettings {
    fn default() -> Self {
        Self {
            server: String::new(),
            security: Security::default(),
            ca_file: String::new(),
            user: String::new(),
            password_file: String::new(),
            from: String::new(),
            to: Vec::new(),
            events: Vec::new(),
            quiet: Vec::new(),
            digest: String::new(),
            language: "en".to_owned(),
        }
    }
}

/// When a summary is sent, and of how many days.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DigestTime {
    pub(crate) window: CollectingWindow,
    pub(crate) days: i64,
}

impl MailSettings {
    /// Whether the settings can be used.
    ///
    /// # Errors
    /// [`MailError::Setting`] with the first that cannot.
    pub fn check(&self) -> Result<(), MailError> {
        self.lang()?;
        self.digest_time()?;
        if self.server.is_empty() {
            return Ok(());
        }
        // The password is only read when letters are sent.
        let without_user = Self { user: String::new(), ..self.clone() };
        super::Mailer::new(&without_user, None).map(drop)
    }

    /// Whether letters about this are sent.
    pub(crate) fn wants(&self, event: Happening) -> bool {
        match self.events.as_slice() {
            [] => event != Happening::Changed,
            events => events.contains(&event),
        }
    }

    /// Whether it is a time of rest.
    pub(crate) fn is_quiet(&self, at_s: i64) -> bool {
        self.quiet.iter().any(|window| window.is_open(at_s))
    }

    pub(crate) fn lang(&self) -> Result<Lang, MailError> {
        Lang::from_code(&self.language).ok_or_else(|| MailError::Setting {
            name: "language",
            reason: format!("is `{}`; write en or ja", self.language),
        })
    }

    pub(super) fn host_and_port(&self) -> Result<(&str, u16), MailError> {
        let default = match self.security {
            Security::Starttls => 587,
            Security::Tls => 465,
            Security::None => 25,
        };
        let (host, port) = match self.server.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()),
            _ => (self.server.as_str(), Some(default)),
        };
        let is_plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        match port {
            Some(port) if !host.is_empty() && host.chars().all(is_plain) => Ok((host, port)),
            _ => Err(MailError::Setting {
                name: "server",
                reason: format!("`{}` is not of the form smtp.example.org:587", self.server),
            }),
        }
    }

    pub(crate) fn digest_time(&self) -> Result<Option<DigestTime>, MailError> {
        if self.digest.is_empty() {
            return Ok(None);
        }
        let wrong = || MailError::Setting {
            name: "digest",
            reason: format!(
                "is `{}`; write `daily 07:00 Asia/Tokyo`, `weekly 07:00` or nothing",
                self.digest
            ),
        };
        let mut words = self.digest.split_whitespace();
        let (days_word, days) = match words.next() {
            Some("daily") => ("daily", 1),
            Some("weekly") => ("mon", 7),
            _ => return Err(wrong()),
        };
        let (hour, minute) =
            words.next().and_then(|time| time.split_once(':')).ok_or_else(wrong)?;
        let hour: u8 = hour.parse().map_err(|_| wrong())?;
        let end = (hour + 1) % 24;
        let zone = words.next().unwrap_or("UTC");
        let window = format!("{days_word} {hour:02}:{minute}-{end:02}:{minute} {zone}");
        let window = window.parse().map_err(|_| wrong())?;
        if words.next().is_some() { Err(wrong()) } else { Ok(Some(DigestTime { window, days })) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_setting_is_named() {
        let good = MailSettings {
            server: "smtp.example.org".into(),
            from: "Archive <a@example.org>".into(),
            to: vec!["b@example.org".into()],
            digest: "weekly 07:30 Asia/Tokyo".into(),
            ..MailSettings::default()
        };
        good.check().unwrap();
        for (wrong, name) in [
            (MailSettings { server: "a b".into(), ..good.clone() }, "mail.server"),
            (MailSettings { from: String::new(), ..good.clone() }, "mail.from"),
            (MailSettings { from: "a@e.com\r\nBcc: x@e.com".into(), ..good.clone() }, "mail.from"),
            (MailSettings { to: Vec::new(), ..good.clone() }, "mail.to"),
            (MailSettings { to: vec!["nobody".into()], ..good.clone() }, "mail.to"),
            (MailSettings { digest: "hourly".into(), ..good.clone() }, "mail.digest"),
            (MailSettings { digest: "daily 25:00".into(), ..good.clone() }, "mail.digest"),
            (MailSettings { language: "tlh".into(), ..good.clone() }, "mail.language"),
        ] {
            let error = wrong.check().unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
        MailSettings::default().check().unwrap();
    }

    #[test]
    fn quiet_hours_and_digests_follow_the_clock_of_their_zone() {
        let settings = MailSettings {
            quiet: vec!["22:00-07:00 Asia/Tokyo".parse().unwrap()],
            digest: "daily 07:00 Asia/Tokyo".into(),
            ..MailSettings::default()
        };
        let hour = 3_600;
        // 13:00 UTC is 22:00 in Tokyo.
        for (at_s, quiet) in
            [(12 * hour, false), (13 * hour, true), (21 * hour, true), (22 * hour, false)]
        {
            assert_eq!(settings.is_quiet(at_s), quiet, "{at_s}");
        }
        let time = settings.digest_time().unwrap().unwrap();
        assert!(time.window.is_open(22 * hour + 60) && !time.window.is_open(23 * hour + 60));
    }
}
