use super::*;

fn request<'a>(network: &'a NetworkConfig, stream: &'a StreamConfig) -> MemoryRequest<'a> {
    MemoryRequest {
        network,
        size: NetworkSize {
            height: 378,
            width: 518,
        },
        camera_num_iterations: 4,
        weights: 4_640_000_000,
        stream,
        window_size: None,
    }
}

fn item(plan: &MemoryPlan, name: &str) -> MemoryItem {
    *plan.items.iter().find(|item| item.name == name).unwrap()
}

#[test]
fn the_official_numbers_are_those_of_the_architecture() {
    let (network, stream) = (NetworkConfig::official(), StreamConfig::default());
    let plan = request(&network, &stream).plan(1072);
    // 24 blocks, key and value of 1024 channels, 4 bytes: 196,608 bytes a token; 1005 tokens a frame.
    assert_eq!(item(&plan, "tokens: window").used, 64 * 1005 * 196_608);
    assert_eq!(item(&plan, "tokens: specials").used, 1000 * 6 * 196_608);
    assert_eq!(item(&plan, "camera caches").used, 1072 * 2 * 16 * 2048 * 4);
    assert_eq!(plan.attended_tokens, 72 * 1005 + 6000);
    assert!(plan.reserved() >= plan.used());
}

#[test]
fn windows_and_intervals_store_less() {
    let network = NetworkConfig::official();
    let stored = |stream: &StreamConfig, window_size| {
        let request = MemoryRequest {
            window_size,
            ..request(&network, stream)
        };
        request.plan(2000).stored
    };
    let stream = StreamConfig::default();
    assert_eq!(stored(&stream, None), 2000);
    assert_eq!(stored(&stream, Some(100)), 100);
    let every_fourth = StreamConfig {
        keyframe_interval: KeyframeInterval::Every(4),
        ..stream
    };
    assert_eq!(stored(&every_fourth, None), 8 + 498);
}

#[test]
fn a_budget_is_spent_on_history_and_never_exceeded() {
    let (network, stream) = (NetworkConfig::official(), StreamConfig::default());
    let request = request(&network, &stream);
    let least = request.within(0, true).unwrap_err();
    assert_eq!(least.window, None);
    for gib in [22, 24, 40] {
        let budget = gib << 30;
        let within = request.within(budget, false).unwrap();
        let planned = MemoryRequest {
            stream: &within,
            ..request
        };
        for frames in [10, 1000, 100_000] {
            assert!(planned.plan(frames).reserved() <= budget);
        }
        let one_more = planned.plan(100_000).reserved() + planned.history_frame_bytes();
        assert!(one_more > budget, "{gib} GiB have room for another frame");
    }
}

#[test]
fn a_budget_that_is_too_small_says_what_would_fit_or_takes_it() {
    let (network, stream) = (NetworkConfig::official(), StreamConfig::default());
    let request = request(&network, &stream);
    let error = request.within(12 << 30, false).unwrap_err();
    let window = error.window.unwrap();
    assert!(
        error
            .to_string()
            .contains(&format!("kv_cache_sliding_window {window} would fit"))
    );
    let fitted = request.within(12 << 30, true).unwrap();
    assert_eq!(fitted.kv_cache_sliding_window, window);
    let larger = StreamConfig {
        kv_cache_sliding_window: window + 1,
        ..stream
    };
    let larger = MemoryRequest {
        stream: &larger,
        ..request
    };
    assert!(larger.within(12 << 30, false).is_err());
}

#[test]
fn budgets_are_read() {
    let parse = |text: &str| text.parse::<MemoryBudget>();
    assert_eq!(parse("4GiB"), Ok(MemoryBudget::Bytes(4 << 30)));
    assert_eq!(parse("1.5 GB"), Ok(MemoryBudget::Bytes(1_500_000_000)));
    assert_eq!(parse("1000"), Ok(MemoryBudget::Bytes(1000)));
    assert_eq!(parse("auto"), Ok(MemoryBudget::Auto));
    for text in ["", "GiB", "-3GiB", "4 TB", "0", "NaN"] {
        assert!(parse(text).is_err(), "{text}");
    }
    assert!(MemoryBudget::Auto.bytes().unwrap() > 1 << 20);
}
