//! Fills a folder with many records, for measurements: `many_records RECORD FOLDER NUMBER`.
//!
//! Each is a copy of RECORD with a start, a seed and tags of its own, in folders of a thousand.

use std::path::Path;

use assay_record::{Existing, Record, Time};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, record, folder, number] = words.as_slice() else { panic!("expected RECORD FOLDER NUMBER") };
    let mut record = Record::read(Path::new(record)).expect("a readable record");
    let number: u64 = number.parse().expect("a number");
    let began = record.started.unix_ms();
    for at in 0..number {
        let below = Path::new(folder).join(format!("{:03}", at / 1000));
        std::fs::create_dir_all(&below).expect("a folder");
        record.started = Time::from_unix_ms(began + at * 600_000);
        record.manifest.seed = at;
        record.manifest.workload = ["oltp_read_only", "oltp_read_write", "tpcc", "tpcb"][at as usize % 4].to_owned();
        record.environment.host.name = format!("lab{}", at % 7);
        record.tags.insert("commit".into(), format!("{:07x}", (at / 5).wrapping_mul(0x9e37_79b9) & 0xfff_ffff));
        record.create(&below.join(format!("{at}.json.zst")), Existing::Replace).expect("room");
    }
}
