//! Delivers to a webhook: one POST with JSON, signed if the user set a secret.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use steadfast_model::clock;
use steadfast_model::outbox::delivery::Delivery;
use steadfast_model::text;
use steadfast_system::config::NotifyConfig;
use ureq::http::StatusCode;

use super::{DeliveryFailure, LIMIT, payload};
use crate::http_client;

pub(super) fn post(config: &NotifyConfig, delivery: &Delivery) -> Result<(), DeliveryFailure> {
    let Some(url) = &config.webhook else {
        return Err(DeliveryFailure { is_final: true, ..DeliveryFailure::new("no webhook is configured any more") });
    };
    let body = payload(delivery);
    let mut request = http_client::new(LIMIT)
        .post(url)
        .header("Content-Type", "application/json")
        .header("X-Steadfast-Id", delivery.id())
        .header("X-Steadfast-Timestamp", (clock::wall() / 1_000).to_string());
    // Without its secret a message is not sent: the receiver could not trust it.
    if let Some(secret) = config.secret().map_err(|error| DeliveryFailure::new(error.to_string()))? {
        request = request.header("X-Steadfast-Signature", signature(&secret, &body)?);
    }
    // The address may contain a token, and errors are kept.
    let answer =
        request.send(&body).map_err(|error| DeliveryFailure::new(error.to_string().replace(url, "the webhook")))?;
    judge(answer.status())
}

fn signature(secret: &str, body: &str) -> Result<String, DeliveryFailure> {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|error| DeliveryFailure::new(error.to_string()))?;
    mac.update(body.as_bytes());
    Ok(format!("sha256={}", text::hex(&mac.finalize().into_bytes())))
}

/// A receiver that refuses the message would refuse it again, unless it is only busy.
fn judge(status: StatusCode) -> Result<(), DeliveryFailure> {
    if status.is_success() {
        return Ok(());
    }
    let is_busy = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS);
    Err(DeliveryFailure {
        error: format!("the webhook answered {status}"),
        is_final: !status.is_server_error() && !is_busy,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_signed_with_hmac_sha_256() {
        // printf 'what do ya want for nothing?' | openssl dgst -sha256 -hmac Jefe
        let expected = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signature("Jefe", "what do ya want for nothing?").unwrap(), expected);
    }

    #[test]
    fn only_a_busy_or_broken_receiver_is_asked_again() {
        for (status, is_final) in [(500, false), (503, false), (429, false), (408, false), (404, true), (307, true)] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(judge(status).unwrap_err().is_final, is_final, "{status}");
        }
        assert!(judge(StatusCode::NO_CONTENT).is_ok());
    }
}
