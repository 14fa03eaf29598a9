//! Runs a tool while the kernel counts its resources, and computes statistics of a few such runs.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};

/// The resources of one run of a tool.
pub(super) struct Usage {
    /// From start to end, connecting and all.
    pub(super) elapsed: Duration,
    /// CPU time in and outside the kernel, all threads.
    pub(super) cpu: Duration,
    /// Largest resident set.
    pub(super) memory_bytes: u64,
    /// What it printed on stdout.
    pub(super) output: String,
}

/// Runs a command to its end. No other child of this process may end meanwhile: the kernel adds up the CPU time of all
/// children that ended.
pub(super) fn measure(command: &mut Command) -> Result<Usage> {
    let mut output = tempfile::tempfile()?;
    let mut errors = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(errors.try_clone()?);
    let before = children_cpu()?;
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut memory_bytes = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        memory_bytes = high_water_mark(&status_file).unwrap_or(memory_bytes);
        std::thread::sleep(Duration::from_millis(20));
    };
    let usage =
        Usage { elapsed: start.elapsed(), cpu: children_cpu()? - before, memory_bytes, output: text(&mut output)? };
    if !status.success() {
        bail!("{command:?}: {status}\n{}{}", usage.output, text(&mut errors)?);
    }
    Ok(usage)
}

fn children_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let microseconds = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    Ok(Duration::from_micros((microseconds(usage.user_time()) + microseconds(usage.system_time())) as u64))
}

/// The largest resident set of a process, in bytes; `None` once it is ending.
fn high_water_mark(status_file: &str) -> Option<u64> {
    let status = fs::read_to_string(status_file).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn text(file: &mut fs::File) -> Result<String> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// One number over several runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// Sorted, at least one.
    values: Vec<f64>,
}

impl Sample {
    /// `None` without values.
    pub(super) fn new(mut values: Vec<f64>) -> Option<Sample> {
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(Sample { values })
    }

    /// The middle value, or the mean of the two in the middle.
    pub(super) fn median(&self) -> f64 {
        let n = self.values.len();
        (self.values[(n - 1) / 2] + self.values[n / 2]) / 2.0
    }

    /// `9.31 [9.02–9.77]`: median, minimum and maximum.
    pub(super) fn text(&self, decimals: usize) -> String {
        let [least, most] = [self.values[0], self.values[self.values.len() - 1]];
        format!("{} [{}–{}]", number(self.median(), decimals), number(least, decimals), number(most, decimals))
    }
}

/// A number with thousands separators.
pub(super) fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    fraction.map_or(grouped.clone(), |fraction| format!("{grouped}.{fraction}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Other tests of this process have children too, so only a lower bound can be checked.
    #[test]
    fn a_child_is_charged_for_its_work() {
        let mut busy = Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done $i"]);
        let usage = measure(&mut busy).unwrap();
        assert_eq!(usage.output, "done 300000\n");
        assert!(usage.cpu > Duration::from_millis(10), "{:?} of {:?}", usage.cpu, usage.elapsed);
        assert!((100_000..1_000_000_000).contains(&usage.memory_bytes), "{}", usage.memory_bytes);
    }

    #[test]
    fn a_child_that_fails_is_quoted() {
        let error = measure(Command::new("sh").args(["-c", "echo because >&2; exit 3"])).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("because"), "{error}");
    }

    #[test]
    fn samples_are_shown_with_their_spread() {
        assert_eq!(Sample::new(vec![]), None);
        assert_eq!(Sample::new(vec![3.0, 1.0, 2.0]).unwrap().text(1), "2.0 [1.0–3.0]");
        assert_eq!(Sample::new(vec![1000.0, 2000.0]).unwrap().text(0), "1,500 [1,000–2,000]");
        assert_eq!(number(-1234567.891, 2), "-1,234,567.89");
        assert_eq!(number(-123.0, 0), "-123");
    }
}
