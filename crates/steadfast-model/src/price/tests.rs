//! The shipped table, tiers, long contexts, and tables of the user.

use super::*;

#[test]
fn the_table_agrees_with_the_clients_own_bill() {
    // Claude Code 2.1.197 showed $0.0365 for four such responses of claude-opus-4-8.
    let four = cost("claude-opus-4-8[1m]", [1_000, 50, 300, 2_000]).map(|micros| micros * 4);
    assert_eq!(four, Some(36_500));
}

fn cost(model: &str, [input, output, cache_creation, cache_read]: [i64; 4]) -> Option<i64> {
    cost_in(Tier::Standard, model, [input, output, cache_creation, cache_read])
}

fn cost_in(tier: Tier, model: &str, [input, output, cache_creation, cache_read]: [i64; 4]) -> Option<i64> {
    let tokens = Tokens { input, output, cache_creation, cache_read, ..Tokens::default() };
    cost_micros(&Bill { model, tier, tokens: &tokens })
}

#[test]
fn fast_mode_and_tiers_multiply_the_rates() {
    let tokens = [1_000, 1_000, 1_000, 1_000];
    // Opus 4.6: 5 + 25 + 6.25 + 0.5 dollars per million.
    assert_eq!(cost("claude-opus-4-6", tokens), Some(36_750));
    assert_eq!(cost_in(Tier::Fast, "claude-opus-4-6", tokens), Some(6 * 36_750));
    assert_eq!(cost_in(Tier::Fast, "claude-opus-4-8", tokens), Some(2 * 36_750));
    assert_eq!(cost_in(Tier::Batch, "claude-opus-4-6", tokens), Some(36_750 / 2));
    // Fast mode over the whole context.
    assert_eq!(cost_in(Tier::Fast, "claude-opus-4-6", [500_000, 0, 0, 0]), Some(15_000_000));
    assert_eq!(cost_in(Tier::Fast, "gpt-5.6-sol", [300_000, 1_000, 0, 0]), Some(4_800_000 + 60_000));
    assert_eq!(cost_in(Tier::Fast, "gpt-5.4", [1_000, 0, 0, 0]), Some(5_000));
}

#[test]
fn a_tier_without_a_published_rate_has_no_cost() {
    let tokens = [1_000, 1_000, 0, 0];
    for (tier, model) in [
        (Tier::Fast, "claude-sonnet-5"),
        (Tier::Fast, "gpt-6-astra"),
        (Tier::Priority, "claude-opus-4-6"),
        (Tier::Flex, "gpt-5.4"),
        (Tier::Unknown, "claude-opus-4-6"),
        (Tier::Standard, "mystery-1"),
    ] {
        assert_eq!(cost_in(tier, model, tokens), None, "{tier} {model}");
    }
    assert_eq!(cost_in(Tier::Fast, "gpt-5.4", [300_000, 0, 0, 0]), None, "not offered for a long context");
}

#[test]
fn sonnet_above_200k_costs_the_long_rate_for_every_token() {
    assert_eq!(cost("claude-sonnet-4-5-20250929", [200_000, 1_000, 0, 0]), Some(600_000 + 15_000));
    assert_eq!(cost("claude-sonnet-4-5-20250929", [250_000, 1_000, 0, 0]), Some(1_500_000 + 22_500));
    assert_eq!(cost("claude-sonnet-4[1m]", [1, 0, 0, 200_000]), Some(120_006));
}

#[test]
fn the_table_is_complete() {
    let table = Table::shipped();
    assert!(table.models.len() > 30);
    for (name, price) in &table.models {
        assert_eq!(plain_model(name), name, "a name with a date would never be found");
        assert!(price.cache_read < price.input && price.input < price.output, "{name}");
        assert!(price.input_long.is_none() || price.long_context_above.is_some(), "{name}");
    }
}

#[test]
fn the_lines_of_one_model_agree_with_the_whole_table() {
    for (name, price) in &Table::shipped().models {
        assert_eq!(shipped_price(name), Some(*price), "{name}");
    }
    assert_eq!(shipped_price("claude"), None);
    assert_eq!(shipped_price("x]\ninput = 1\n[models.claude-opus-5"), None);
}

#[test]
fn the_table_in_the_repository_is_read() {
    assert!(!Table::shipped().models.is_empty());
    assert_ne!(Table::shipped().fingerprint(), 0);
}

#[test]
fn a_broken_table_is_refused_with_its_line() {
    let path = Path::new("prices.toml");
    let fine = "[models.x]\ninput = 2\noutput = 4\ncache_write_5m = 0\ncache_write_1h = 0\ncache_read = 0\n";
    for (text, about) in [
        ("[models.x]\ninput = \"much\"\n", "line 2"),
        ("models = 5", "line 1"),
        ("[models.x]\ninput = 1\n", "missing field"),
        (&fine.replace("= 2", "= -2"), "of x is negative"),
        (&fine.replace("= 2", "= nan"), "of x is negative"),
    ] {
        let error = Table::from_toml(text, path).unwrap_err().to_string();
        assert!(error.contains(about), "{text}: {error}");
    }
    let tokens = Tokens { input: 10, output: 1, ..Tokens::default() };
    let bill = Bill { model: "x", tier: Tier::Standard, tokens: &tokens };
    assert_eq!(Table::from_toml(fine, path).unwrap().cost_micros(&bill), Some(24));
}

#[test]
fn an_unknown_model_has_no_cost() {
    assert_eq!(cost("mystery-1", [5, 0, 0, 0]), None);
    assert_eq!(cost("", [5, 0, 0, 0]), None);
    assert_eq!(cost("gpt-6.1-sol-mystery", [5, 0, 0, 0]), None);
}

#[test]
fn a_release_date_does_not_change_the_price() {
    let tokens = [1_000, 100, 0, 0];
    assert_eq!(cost("claude-haiku-4-5-20251001", tokens), Some(1_500));
    assert_eq!(cost("claude-opus-4-20250514", tokens), Some(22_500));
    assert_eq!(cost("gpt-6.1-sol-2026-09-29", tokens), Some(3_000));
    assert_eq!(cost("gpt-6.1-sol", tokens), Some(3_000));
}

#[test]
fn a_long_context_has_its_own_rates_for_every_token() {
    // Exactly 272,000 tokens of input are still short.
    assert_eq!(cost("gpt-6.1-sol", [2_000, 1_000, 0, 270_000]), Some(4_000 + 10_000 + 27_000));
    assert_eq!(cost("gpt-6.1-sol", [2_001, 1_000, 0, 270_000]), Some(8_004 + 15_000 + 54_000));
    assert_eq!(cost("gpt-6.1-sol", [0, 0, 272_001, 0]), Some(1_360_005));
    // Claude Haiku 5.5: five times as much above 100,000 tokens. Output does not make a context long.
    assert_eq!(cost("claude-haiku-5-5", [10_000, 100_000, 0, 90_000]), Some(1_000 + 50_000 + 900));
    assert_eq!(cost("claude-haiku-5-5", [10_001, 0, 0, 90_000]), Some(5_001 + 4_500));
    // A million tokens of Claude Opus cost what fewer do.
    assert_eq!(cost("claude-opus-5", [1_000_000, 0, 0, 0]), Some(5_000_000));
}

#[test]
fn a_long_context_without_published_rates_has_no_cost() {
    assert_eq!(cost("gpt-6-astra", [272_000, 0, 0, 0]), Some(2_720_000));
    assert_eq!(cost("gpt-6-astra", [272_001, 0, 0, 0]), None);
}
