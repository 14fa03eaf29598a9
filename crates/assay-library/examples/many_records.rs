//! Fills a folder with many records, for measurements: `many_records RECORD FOLDER NUMBER`.
//!
//! Each is a copy of RECORD with a start, a seed and tags of its own, in folders of a thousand.

use std::io::Write;
use std::path::Path;

use assay_record::{Record, Time};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, record, folder, number] = words.as_slice() else { panic!("expected RECORD FOLDER NUMBER") };
    let mut record = Record::read(Path::new(record)).expect("a readable record");
    // It follows from the rest, which changes.
    record.identity.clear();
    let text = zstd::decode_all(record.to_bytes().as_slice()).expect("what was just encoded");
    let end = text.iter().position(|byte| *byte == b'\n').expect("a record has lines") + 1;
    let head: serde_json::Value = serde_json::from_slice(&text[..end]).expect("an event");
    let rest = frame(&text[end..]);
    for at in 0..number.parse().expect("a number") {
        let below = Path::new(folder).join(format!("{:03}", at / 1000));
        std::fs::create_dir_all(&below).expect("a folder");
        let mut bytes = frame(changed(head.clone(), record.started, at).as_bytes());
        bytes.extend_from_slice(&rest);
        std::fs::write(below.join(format!("{at}.json.zst")), bytes).expect("room");
    }
}

fn changed(mut head: serde_json::Value, began: Time, at: u64) -> String {
    let started = &mut head["started"];
    started["started"] = Time::from_unix_ms(began.unix_ms() + at * 600_000).to_string().into();
    started["manifest"]["seed"] = at.into();
    started["manifest"]["workload"] = ["oltp_read_only", "oltp_read_write", "tpcc", "tpcb"][at as usize % 4].into();
    started["environment"]["host"] = format!("lab{}", at % 7).into();
    started["tags"]["commit"] = format!("{:07x}", (at / 5).wrapping_mul(0x9e37_79b9) & 0xfff_ffff).into();
    head.to_string() + "\n"
}

/// As the records of a run have them.
fn frame(text: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).expect("a level");
    encoder.include_checksum(true).expect("an option");
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}
