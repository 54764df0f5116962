//! What is named for which parameters, over calls made for a point.

use super::*;

fn call(layer: &'static str, op: &'static str, tracked: Option<bool>) -> Call<'static, u64> {
    Call { layer, op, inputs: Vec::new(), output: None, tracked }
}

fn linear(layer: &'static str) -> Call<'static, u64> {
    call(layer, "linear", Some(true))
}

fn norm(layer: &'static str) -> Call<'static, u64> {
    call(layer, "layer_norm", Some(false))
}

/// Each parameter with whether it lacks its gradient.
fn named(
    calls: &[Call<'_, u64>],
    parameters: &[(&'static str, bool)],
) -> Vec<(String, Vec<String>)> {
    let parameter = |&(key, lacks)| Parameter { root: "model", key, lacks };
    let parameters: Vec<_> = parameters.iter().map(parameter).collect();
    let of = |it: Severed| (it.layer, it.parameters.into_iter().map(|it| it.key).collect());
    find(Some(1), calls, &parameters).into_iter().map(of).collect()
}

fn one(layer: &str, keys: &[&str]) -> (String, Vec<String>) {
    (layer.to_owned(), keys.iter().map(|&key| key.to_owned()).collect())
}

#[test]
fn the_cut_nearest_to_the_loss_below_which_everything_is_missing_is_named() {
    let calls = [
        linear("embed"),
        norm("blocks.0.norm"),
        linear("blocks.0.up"),
        linear("blocks.0"),
        norm("norm"),
        linear("head"),
    ];
    let states = [
        ("blocks.0.norm.weight", true),
        ("blocks.0.up.weight", true),
        ("embed.weight", true),
        ("head.weight", false),
        ("norm.weight", true),
    ];
    let lost = ["blocks.0.norm.weight", "blocks.0.up.weight", "embed.weight", "norm.weight"];
    assert_eq!(named(&calls, &states), [one("norm", &lost)]);
}

#[test]
fn a_cut_beside_a_path_that_holds_is_named_for_what_it_cuts_off() {
    // Queries and keys go through the softmax, values and what comes in pass it by.
    let calls = [
        linear("embed"),
        linear("attn.q"),
        linear("attn.k"),
        linear("attn.v"),
        call("attn.softmax", "softmax_last_dim", Some(false)),
        linear("attn.o"),
        linear("attn"),
        norm("norm"),
        linear("head"),
    ];
    let states = [
        ("attn.k.weight", true),
        ("attn.o.weight", false),
        ("attn.q.weight", true),
        ("attn.v.weight", false),
        ("embed.weight", false),
        ("head.weight", false),
        ("norm.weight", true),
    ];
    let queries_and_keys = one("attn.softmax", &["attn.k.weight", "attn.q.weight"]);
    assert_eq!(named(&calls, &states), [queries_and_keys, one("norm", &["norm.weight"])]);
}

#[test]
fn what_went_in_decides_between_two_cuts_behind_a_layer() {
    let made = |layer, output| Call { output: Some(output), ..linear(layer) };
    let fed = |layer, input| Call { inputs: vec![input], ..norm(layer) };
    let calls = [linear("embed"), made("a", 1), made("b", 2), fed("norm_a", 1), fed("norm_b", 2)];
    let states = [("a.weight", true), ("b.weight", true), ("embed.weight", false)];
    assert_eq!(
        named(&calls, &states),
        [one("norm_a", &["a.weight"]), one("norm_b", &["b.weight"])]
    );
}

#[test]
fn a_layer_of_any_kind_is_named_where_it_was_seen_to_stop_the_gradient() {
    let made = Call { output: Some(1), ..linear("encoder.up") };
    let detached = Call { inputs: vec![1], ..call("encoder.frozen", "mine", Some(false)) };
    // What the layer is part of is as suspect, and says less.
    let whole = Call { inputs: vec![1], ..call("encoder", "encoder", Some(false)) };
    let calls = [made, detached, whole, linear("head")];
    let states = [("encoder.up.weight", true), ("head.weight", false)];
    assert_eq!(named(&calls, &states), [one("encoder.frozen", &["encoder.up.weight"])]);
    let unseen = calls.map(|call| Call { tracked: None, ..call });
    assert_eq!(named(&unseen, &states), [], "of a kind that nobody knows");
}

#[test]
fn without_a_suspect_nothing_is_named() {
    let calls = [linear("embed"), linear("up"), linear("head")];
    let states = [("embed.weight", false), ("up.weight", true), ("head.weight", false)];
    assert_eq!(named(&calls, &states), []);
    // A norm that was not contiguous passes the gradient on, and is no suspect.
    let slow = call("norm", "layer_norm", Some(true));
    assert_eq!(named(&[linear("up"), slow, linear("head")], &states), []);
    // Nor is one that only has gradients before it.
    assert_eq!(named(&[norm("norm"), linear("up")], &states), []);
}

#[test]
fn a_kind_that_cuts_is_suspected_where_nobody_looked_at_what_came_out() {
    let calls = [linear("up"), call("norm", "rms_norm", None)];
    let parameters = [Parameter { root: "model", key: "up.weight", lacks: true }];
    let found = find(None, &calls, &parameters);
    assert_eq!((found.len(), found[0].seen, found[0].step), (1, false, None));
    let said = found[0].to_string();
    assert!(said.contains("1 parameter gets no gradient, which likely stops at norm (rms_norm)"));
    assert!(said.contains("model:up.weight; `RmsNorm::forward_diff`"), "{said}");
}

#[test]
fn a_parameter_whose_layer_was_never_called_is_not_laid_to_a_cut() {
    let calls = [linear("attn.q"), call("attn.softmax", "softmax_last_dim", None), linear("attn")];
    let states = [("attn.q.weight", false), ("attn.spare.weight", true), ("spare.weight", true)];
    assert_eq!(named(&calls, &states), []);
}

#[test]
fn a_module_stands_for_what_it_is_made_of_where_nothing_within_it_is_known() {
    let calls = [linear("blocks.0"), norm("norm"), linear("head")];
    let states = [("blocks.0.attn.q.weight", true), ("head.weight", false), ("norm.bias", true)];
    assert_eq!(named(&calls, &states), [one("norm", &["blocks.0.attn.q.weight", "norm.bias"])]);
}

#[test]
fn an_address_from_a_file_is_looked_at_to_a_depth_that_is_bounded() {
    assert_eq!(above("a.b.c").collect::<Vec<_>>(), ["a.b", "a"]);
    assert_eq!(above(&".".repeat(1_000_000)).count(), DEPTH);
}

#[test]
fn calls_of_one_layer_are_one_finding() {
    let softmax = call("softmax_last_dim", "softmax_last_dim", Some(false));
    let calls = [linear("embed"), linear("q0"), softmax.clone(), linear("q1"), softmax];
    let states = [("embed.weight", false), ("q0.weight", true), ("q1.weight", true)];
    assert_eq!(named(&calls, &states), [one("softmax_last_dim", &["q0.weight", "q1.weight"])]);
}
