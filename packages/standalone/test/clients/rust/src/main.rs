//! Calls by the clients for Rust, each as its own user. What is to be read back is in ../../README.md.
use segment::Client;
use serde_json::json;
use std::env::var;

fn segment_calls(url: &str, key: &str) {
    use segment::message::{BatchMessage, Group, Identify, Page, Track, User};
    let u = "rs-segment".to_string();
    let user = || User::UserId { user_id: u.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = segment::HttpClient::new(reqwest12::Client::new(), url.to_string());
        let mut batcher = segment::Batcher::new(None);
        batcher.push(Identify { user: user(), traits: json!({"email": "rs-segment@example.com", "plan": "pro"}), ..Default::default() }).unwrap();
        batcher.push(Track { user: user(), event: "looked".into(), properties: json!({"k": 1}), ..Default::default() }).unwrap();
        batcher.push(BatchMessage::Page(Page { user: user(), name: "Home".into(), properties: json!({"url": "https://shop.example/"}), ..Default::default() })).unwrap();
        batcher.push(Group { user: user(), group_id: "company-rs-segment".into(), traits: json!({"name": "Acme"}), ..Default::default() }).unwrap();
        client.send(key.to_string(), batcher.into_message()).await.unwrap();
        client.send(key.to_string(), segment::Message::from(Track { user: user(), event: "last".into(), properties: json!(null), ..Default::default() })).await.unwrap();
    });
}

fn rudder_calls(url: &str, key: &str) {
    use rudderanalytics::message::{Group, Identify, Message, Page, Track};
    let u = Some("rs-rudder".to_string());
    let client = rudderanalytics::client::RudderAnalytics::load(key.to_string(), url.to_string());
    client.send(&Message::Identify(Identify { user_id: u.clone(), traits: Some(json!({"email": "rs-rudder@example.com", "plan": "pro"})), ..Default::default() })).unwrap();
    client.send(&Message::Track(Track { user_id: u.clone(), event: "looked".into(), properties: Some(json!({"k": 1})), ..Default::default() })).unwrap();
    client.send(&Message::Page(Page { user_id: u.clone(), name: "Home".into(), properties: Some(json!({"url": "https://shop.example/"})), ..Default::default() })).unwrap();
    client.send(&Message::Group(Group { user_id: u.clone(), group_id: "company-rs-rudder".into(), traits: Some(json!({"name": "Acme"})), ..Default::default() })).unwrap();
    client.send(&Message::Track(Track { user_id: u, event: "last".into(), ..Default::default() })).unwrap();
}

fn main() {
    let (url, key) = (var("SLUICE_INTAKE").unwrap(), var("SLUICE_WRITE_KEY").unwrap());
    segment_calls(&url, &key);
    rudder_calls(&url, &key);
    println!("sent");
}
