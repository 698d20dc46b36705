//! E-mail over SMTP.

mod settings;

use std::{
    io::Read,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use lettre::{
    Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, MultiPart},
    transport::smtp::{
        authentication::Credentials,
        client::{Certificate, Tls, TlsParameters},
    },
};

use crate::Letter;

pub(crate) use settings::DigestTime;
pub use settings::{MailSettings, Security};

/// The longest time that a server may take for one step.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest password; a longer file is not one.
const PASSWORD_BYTES_MAX: u64 = 4_096;

/// The largest file of certificates.
const CERTIFICATE_BYTES_MAX: u64 = 1 << 20;

/// Why e-mail cannot be set up or sent.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// A setting is missing or wrong.
    #[error("mail.{name} {reason}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The file of the password cannot be read.
    #[error("mail.password_file: {} cannot be read", path.display())]
    Password {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The letter could not be made of its parts.
    #[error("the letter could not be written")]
    Letter(#[from] lettre::error::Error),
    /// The server was not reached or refused the letter.
    #[error("the mail server {server} did not take the letter: {why}")]
    Server {
        /// As in the settings.
        server: String,
        /// What it said, or why it was not reached.
        why: String,
    },
}

/// What a server said. The library's text repeats itself for every layer of the connection.
fn reason(error: &lettre::transport::smtp::Error) -> String {
    let text = error.to_string();
    if text.contains("CaUsedAsEndEntity") {
        return "its certificate is that of an authority; give the server a certificate signed by it".to_owned();
    }
    let mut text = text.as_str();
    while let Some(rest) = text.strip_prefix("Connection error: ") {
        text = rest;
    }
    text.to_owned()
}

/// Sends letters.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    server: String,
    from: Mailbox,
    to: Vec<Mailbox>,
}

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailer").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Mailer {
    /// A mailer by these settings; `None` where no server is set. `password` is the one from the
    /// environment, which goes before the file.
    ///
    /// # Errors
    /// [`MailError::Setting`] or [`MailError::Password`].
    pub fn new(
        settings: &MailSettings,
        password: Option<String>,
    ) -> Result<Option<Self>, MailError> {
        if settings.server.is_empty() {
            return Ok(None);
        }
        let (host, port) = settings.host_and_port()?;
        let tls = match settings.security {
            Security::None => Tls::None,
            Security::Starttls => Tls::Required(tls_parameters(host, &settings.ca_file)?),
            Security::Tls => Tls::Wrapper(tls_parameters(host, &settings.ca_file)?),
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
            .port(port)
            .tls(tls)
            .timeout(Some(TIMEOUT));
        if !settings.user.is_empty() {
            let password = match password {
                Some(password) => password,
                None => read_password(settings)?,
            };
            builder = builder.credentials(Credentials::new(settings.user.clone(), password));
        }
        let from = mailbox("from", &settings.from)?;
        let to: Vec<Mailbox> =
            settings.to.iter().map(|to| mailbox("to", to)).collect::<Result<_, _>>()?;
        if to.is_empty() {
            let reason = "names nobody; write to = [\"you@example.org\"]".to_owned();
            return Err(MailError::Setting { name: "to", reason });
        }
        let server = settings.server.clone();
        Ok(Some(Self { transport: builder.build(), server, from, to }))
    }

    /// Sends a letter to everyone in the settings.
    ///
    /// # Errors
    /// [`MailError::Server`] with what the server said.
    pub async fn send(&self, letter: &Letter, now_s: i64) -> Result<(), MailError> {
        let now = Duration::from_secs(u64::try_from(now_s).unwrap_or(0));
        let mut message = Message::builder()
            .from(self.from.clone())
            .date(SystemTime::UNIX_EPOCH + now)
            .message_id(None)
            .subject(letter.subject.clone());
        for to in &self.to {
            message = message.to(to.clone());
        }
        let parts = MultiPart::alternative_plain_html(letter.text.clone(), letter.html.clone());
        let message = message.multipart(parts)?;
        self.transport
            .send(message)
            .await
            .map(drop)
            .map_err(|error| MailError::Server { server: self.server.clone(), why: reason(&error) })
    }
}

/// How the server proves who it is: by the usual authorities, and by that of a file.
fn tls_parameters(host: &str, ca_file: &str) -> Result<TlsParameters, MailError> {
    let mut builder = TlsParameters::builder(host.to_owned());
    if !ca_file.is_empty() {
        let wrong = |reason: String| MailError::Setting { name: "ca_file", reason };
        let mut pem = Vec::new();
        std::fs::File::open(ca_file)
            .and_then(|file| file.take(CERTIFICATE_BYTES_MAX).read_to_end(&mut pem))
            .map_err(|error| wrong(format!("`{ca_file}` cannot be read: {error}")))?;
        let certificate = Certificate::from_pem(&pem).map_err(|_| {
            wrong(format!(
                "`{ca_file}` is not a certificate; it begins with -----BEGIN CERTIFICATE-----"
            ))
        })?;
        builder = builder.add_root_certificate(certificate);
    }
    builder.build().map_err(|error| {
        let name = if ca_file.is_empty() { "server" } else { "ca_file" };
        MailError::Setting { name, reason: format!("`{host}`: {error}") }
    })
}

fn mailbox(name: &'static str, text: &str) -> Result<Mailbox, MailError> {
    let wrong = || MailError::Setting {
        name,
        reason: format!("`{text}` is not an e-mail address; write one like you@example.org"),
    };
    if text.chars().any(char::is_control) {
        return Err(wrong());
    }
    text.parse::<Mailbox>()
        .or_else(|_| text.trim().parse::<Address>().map(|address| Mailbox::new(None, address)))
        .map_err(|_| wrong())
}

fn read_password(settings: &MailSettings) -> Result<String, MailError> {
    if settings.password_file.is_empty() {
        let reason = "is empty and NENRIN_MAIL_PASSWORD is not set, but mail.user is".to_owned();
        return Err(MailError::Setting { name: "password_file", reason });
    }
    let path = PathBuf::from(&settings.password_file);
    let mut text = String::new();
    std::fs::File::open(&path)
        .and_then(|file| file.take(PASSWORD_BYTES_MAX).read_to_string(&mut text))
        .map_err(|source| MailError::Password { path, source })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
