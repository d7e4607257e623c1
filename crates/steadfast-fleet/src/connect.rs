//! The connection to the server: Temporal's own variables and profile say where it is; every failure becomes one line
//! with a hint.

use std::error::Error;
use std::process::Command;
use std::time::Duration;

use steadfast_system::config::FleetConfig;
use steadfast_system::env_vars;
use temporalio_client::envconfig::LoadClientConfigProfileOptions;
use temporalio_client::errors::ClientConnectError;
use temporalio_client::tonic::{Code, Status as RpcStatus};
use temporalio_client::{Client, ClientOptions, Connection, Url};
use temporalio_common::data_converters::{DataConverter, DefaultFailureConverter, PayloadConverter};

use crate::codec::{Codec, KeyError, PayloadKeys};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error("no Temporal server at {address}: {detail}")]
    NoServer { address: String, detail: String },
    #[error("the server at {address} does not speak TLS")]
    ServerWithoutTls { address: String },
    #[error("the server at {address} wants TLS")]
    ServerWithTls { address: String },
    #[error("the server's certificate is not accepted: {0}")]
    Certificate(String),
    #[error("the server at {address} closed the TLS connection: {detail}")]
    ClientCertificate { address: String, detail: String },
    #[error("the server refused the login: {0}")]
    Refused(String),
    #[error("there is no namespace `{0}` on the server")]
    NoNamespace(String),
    #[error("the connection settings are wrong: {0}")]
    Settings(String),
    #[error("the keys cannot be read: {0}")]
    KeysUnreadable(String),
    #[error(transparent)]
    Keys(#[from] KeyError),
    #[error("a payload cannot be read: {0}")]
    Payload(String),
    #[error("no run `{0}` on the server")]
    NotFound(String),
    #[error("a run `{0}` is already on the server")]
    AlreadyRunning(String),
    #[error("the run `{0}` is over")]
    Over(String),
    #[error("the schedule is wrong: {0}")]
    Schedule(String),
    #[error("the server does not answer: {0}")]
    Unavailable(String),
    #[error("the server reported an error: {0}")]
    Server(String),
}

impl FleetError {
    pub fn hint(&self) -> String {
        let text = match self {
            Self::NoServer { .. } => {
                "start one with `temporal server start-dev`, or set TEMPORAL_ADDRESS or `[fleet] address`"
            }
            Self::ServerWithoutTls { .. } => "set TEMPORAL_TLS=false, or unset TEMPORAL_API_KEY",
            Self::ServerWithTls { .. } => "set TEMPORAL_TLS=true, with TEMPORAL_TLS_CLIENT_CERT_PATH if it wants one",
            Self::Certificate(_) => "check TEMPORAL_TLS_SERVER_CA_CERT_PATH, TEMPORAL_TLS_SERVER_NAME and the address",
            Self::ClientCertificate { .. } => {
                "if it wants a client certificate, set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH"
            }
            Self::Refused(_) => "check TEMPORAL_API_KEY, and that the key may use the namespace",
            Self::NoNamespace(name) => {
                return format!(
                    "check TEMPORAL_NAMESPACE, or make it with `temporal operator namespace create -n {name}`"
                );
            }
            Self::Settings(_) => "check the TEMPORAL_* variables and the profile in temporal.toml",
            Self::KeysUnreadable(_) => "check STEADFAST_FLEET_KEY_FILE, or `key_file` and `key_command` of `[fleet]`",
            Self::Keys(error) => error.hint(),
            Self::Payload(_) => "set STEADFAST_FLEET_KEY_FILE to the key file of this fleet",
            Self::NotFound(_) => "list the runs with `steadfast fleet list`",
            Self::AlreadyRunning(_) => "choose another name, or follow that one with `steadfast fleet attach`",
            Self::Over(_) => "continue it with `steadfast fleet resume`",
            Self::Schedule(_) => "use five fields such as `0 3 * * *`",
            Self::Unavailable(_) => "check the server, and try again",
            Self::Server(_) => "look at the log of the Temporal server",
        };
        text.to_owned()
    }

    /// The exit code, as of the main program.
    pub fn code(&self) -> u8 {
        match self {
            Self::Schedule(_) => 1,
            Self::NotFound(_) => 2,
            Self::AlreadyRunning(_) | Self::Over(_) => 3,
            _ => 4,
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::NoServer { .. } | Self::Unavailable(_))
    }
}

/// Where a client connects to.
#[derive(Debug, Clone)]
pub struct ServerAddress {
    pub url: String,
    pub namespace: String,
}

/// Connects to the server of the environment, the profile or the configuration, in this order. `identity` is how the
/// server calls this process.
pub async fn connect(config: &FleetConfig, identity: &str) -> Result<(Client, ServerAddress), FleetError> {
    let keys = keys(config)?;
    let load = ClientOptions::load_from_config(LoadClientConfigProfileOptions::default());
    let (mut connection, mut options) = load.map_err(|error| FleetError::Settings(one_line(&error.to_string())))?;
    if let Some(address) = config.address.as_deref().filter(|_| is_default(connection.target.as_str())) {
        let scheme = if connection.tls_options.is_some() { "https" } else { "http" };
        let whole = if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") };
        connection.target = Url::parse(&whole).map_err(|error| FleetError::Settings(format!("{address}: {error}")))?;
    }
    if let Some(namespace) = config.namespace.as_deref().filter(|_| options.namespace == "default") {
        namespace.clone_into(&mut options.namespace);
    }
    let has_keys = keys.is_some();
    options.data_converter =
        DataConverter::new(PayloadConverter::default(), DefaultFailureConverter::new(has_keys), Codec(keys));
    connection.connect_timeout = Some(CONNECT_TIMEOUT);
    identity.clone_into(&mut connection.identity);
    let address = ServerAddress { url: connection.target.to_string(), namespace: options.namespace.clone() };
    let uses_tls = connection.tls_options.is_some() || connection.api_key.is_some();
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, Connection::connect(connection)).await;
    let no_answer = || FleetError::NoServer { address: address.url.clone(), detail: "no answer in 10 s".to_owned() };
    let connection = connected.map_err(|_| no_answer())?;
    let connection = connection.map_err(|error| of_connect(&error, &address.url, uses_tls))?;
    let client =
        Client::new(connection, options).map_err(|error| FleetError::Settings(one_line(&error.to_string())))?;
    Ok((client, address))
}

fn is_default(target: &str) -> bool {
    target.trim_end_matches('/') == "http://localhost:7233"
}

/// The keys of the environment or the configuration; `None` if the payloads are not encrypted.
pub fn keys(config: &FleetConfig) -> Result<Option<PayloadKeys>, FleetError> {
    let unreadable = |error: std::io::Error| FleetError::KeysUnreadable(error.to_string());
    let file = env_vars::path(env_vars::FLEET_KEY_FILE).or_else(|| config.key_file.clone());
    let text = match (file, &config.key_command) {
        (Some(file), _) => fs_err::read_to_string(file).map_err(unreadable)?,
        (None, Some(command)) => printed_by(command)?,
        (None, None) => return Ok(None),
    };
    Ok(Some(PayloadKeys::parse(&text)?))
}

fn printed_by(command: &str) -> Result<String, FleetError> {
    let failed = |detail: String| FleetError::KeysUnreadable(format!("`key_command` {detail}"));
    let output = Command::new("sh").args(["-c", command]).output().map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("ended with {}", output.status)));
    }
    String::from_utf8(output.stdout).map_err(|_| failed("printed no text".to_owned()))
}

fn of_connect(error: &ClientConnectError, address: &str, uses_tls: bool) -> FleetError {
    let address = address.to_owned();
    match error {
        ClientConnectError::SystemInfoCallError(status) => match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => FleetError::Refused(one_line(status.message())),
            _ => of_causes(&causes(status), address, uses_tls),
        },
        ClientConnectError::TonicTransportError(error) => of_causes(&causes(error), address, uses_tls),
        ClientConnectError::DnsResolutionError { host, source } => {
            FleetError::NoServer { address, detail: format!("{host}: {source}") }
        }
        other => FleetError::Settings(one_line(&other.to_string())),
    }
}

/// Tells what is wrong from the texts of all causes; the libraries below have no codes for it.
fn of_causes(causes: &str, address: String, uses_tls: bool) -> FleetError {
    let has = |words: &[&str]| words.iter().any(|word| causes.contains(word));
    let is_closed = has(&["h2 protocol error", "connection closed before", "broken pipe", "Connection reset"]);
    if has(&["InvalidContentType", "corrupt message"]) {
        FleetError::ServerWithoutTls { address }
    } else if has(&["CertificateRequired", "certificate required"]) {
        FleetError::ClientCertificate { address, detail: last_cause(causes) }
    } else if has(&["invalid peer certificate", "UnknownIssuer", "NotValidForName", "certificate"]) {
        FleetError::Certificate(one_line(causes))
    } else if uses_tls && is_closed {
        // The alert with the reason may be lost when the server closes the connection at once.
        FleetError::ClientCertificate { address, detail: last_cause(causes) }
    } else if !uses_tls && (is_closed || has(&["frame with invalid size"])) {
        FleetError::ServerWithTls { address }
    } else {
        FleetError::NoServer { address, detail: last_cause(causes) }
    }
}

/// The texts of an error and all its causes, the innermost last.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut texts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        texts.push(cause.to_string());
        next = cause.source();
    }
    texts.dedup();
    texts.join(": ")
}

fn last_cause(causes: &str) -> String {
    one_line(causes.rsplit(": ").next().unwrap_or(causes))
}

pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What an answer of the server means. `name` is the run that the call was about.
pub(crate) fn of_status(status: &RpcStatus, name: &str, namespace: &str) -> FleetError {
    let message = one_line(status.message());
    let is_namespace = message.to_lowercase().contains("namespace");
    match status.code() {
        Code::NotFound if is_namespace => FleetError::NoNamespace(namespace.to_owned()),
        Code::NotFound if message.contains("already completed") => FleetError::Over(name.to_owned()),
        Code::NotFound => FleetError::NotFound(name.to_owned()),
        Code::AlreadyExists => FleetError::AlreadyRunning(name.to_owned()),
        Code::Unauthenticated | Code::PermissionDenied => FleetError::Refused(message),
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => FleetError::Unavailable(message),
        Code::InvalidArgument if message.to_lowercase().contains("cron") => FleetError::Schedule(message),
        _ => FleetError::Server(message),
    }
}
