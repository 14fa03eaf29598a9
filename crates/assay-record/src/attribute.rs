//! Attributes: what identifies the setting of a run, as data.
//!
//! Whoever knows something that makes two runs different writes it down as an attribute: what starts a server knows
//! what is in front of it, how its data was restored and where it may run; what reads its settings knows which of them
//! never make it faster or slower. Reports compare attributes without knowing what they mean.

use serde::{Deserialize, Serialize};

/// Something about a run that distinguishes it from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// What it belongs to.
    pub scope: AttributeScope,
    /// Which one of several, from 1; `None`: there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Its name: `shared_buffers`.
    pub name: String,
    /// The requested value, as written; `None`: nobody requested one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The value in effect; `None`: unknown.
    #[serde(default)]
    pub in_effect: Option<String>,
    /// The value that it has when nobody requests one; `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Whether the value in effect means what was requested: `131072kB` means `128MB`.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub as_asked: bool,
    /// Whether runs with different values have different settings.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub matters: bool,
}

/// What an attribute belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttributeScope {
    /// The run itself: workload, load, length.
    Run,
    /// An option of the workload.
    Option,
    /// The load generator and its machine.
    Generator,
    /// A server.
    Server,
    /// A program between clients and servers.
    Front,
    /// The replicas of a server.
    Replica,
    /// The image that a server's data came from.
    Image,
    /// The CPUs and the memory that a server may use.
    Placement,
    /// A step that an experiment did before the measured run.
    Step,
    /// How sessions were set up.
    Session,
    /// A tag of the user's.
    Tag,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_true(value: &bool) -> bool {
    *value
}

impl Attribute {
    /// An attribute that matters, without a value.
    pub fn unknown(scope: AttributeScope, name: &str) -> Attribute {
        let name = name.to_owned();
        let (number, asked, in_effect, default) = (None, None, None, None);
        Attribute { scope, number, name, asked, in_effect, default, as_asked: true, matters: true }
    }

    /// An attribute that matters.
    pub fn new(scope: AttributeScope, name: &str, in_effect: impl Into<String>) -> Attribute {
        Attribute { in_effect: Some(in_effect.into()), ..Attribute::unknown(scope, name) }
    }

    /// A requested setting, and whether the value in effect means the same.
    pub fn setting(name: &str, asked: Option<String>, in_effect: Option<String>, same: bool) -> Attribute {
        Attribute { asked, in_effect, as_asked: same, ..Attribute::unknown(AttributeScope::Server, name) }
    }

    /// A requested restriction, which holds.
    pub fn placement(name: &str, value: String) -> Attribute {
        Attribute { asked: Some(value.clone()), ..Attribute::new(AttributeScope::Placement, name, value) }
    }

    /// As `placement`, of memory: `4 GiB`.
    pub fn memory(name: &str, bytes: u64) -> Attribute {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes")];
        let (size, unit) = units.into_iter().find(|(size, _)| bytes.is_multiple_of(*size)).unwrap_or((1, "bytes"));
        Attribute::placement(name, format!("{} {unit}", bytes / size))
    }

    /// How a server's data was restored from an image: `copy`, or `reflink`, which changes the cost of writes.
    pub fn restored(method: &str) -> Attribute {
        Attribute::new(AttributeScope::Image, "image", method)
    }

    /// The front in this place of its server's fronts, from 0, of so many.
    pub fn front(place: usize, of: usize, program: String) -> Attribute {
        Attribute::new(AttributeScope::Front, "front", program).numbered(place, of)
    }

    /// A setting that a server reported: a setting without an origin has its default.
    pub fn reported(name: &str, value: &str, has_default: bool) -> Attribute {
        Attribute {
            default: has_default.then(|| value.to_owned()),
            ..Attribute::new(AttributeScope::Server, name, value)
        }
    }

    /// What it is about.
    pub(crate) fn key(&self) -> (AttributeScope, Option<u32>, &str) {
        (self.scope, self.number, &self.name)
    }

    /// Which of several it is about: `place` is from 0.
    pub fn numbered(self, place: usize, of: usize) -> Attribute {
        let number = (of > 1).then(|| u32::try_from(place + 1).unwrap_or(u32::MAX));
        Attribute { number, ..self }
    }

    /// What a step reached: whether it was complete matters; how far it got differs a little from trial to trial.
    pub fn step(name: &str, reached: &[String], complete: bool) -> Vec<Attribute> {
        let ended = Attribute::new(AttributeScope::Step, name, if complete { "complete" } else { "not complete" });
        let reached = Attribute {
            matters: false,
            ..Attribute::new(AttributeScope::Step, &format!("{name}: reached"), reached.join(", "))
        };
        if reached.in_effect.as_deref() == Some("") { vec![ended] } else { vec![ended, reached] }
    }
}
