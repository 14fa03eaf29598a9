//! What the program is made of, as CycloneDX 1.5: every crate that is linked into it or builds it, with its license.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::shared::VERSION;

/// The list, from `cargo metadata`.
pub(super) fn of(metadata: &Value) -> Result<Value> {
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        array(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<String, Vec<String>> =
        array(&metadata["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), needed(node))).collect();
    let root = packages.iter().find(|(_, package)| package["name"] == "assay").context("there is a package assay")?.0;
    let mut reached = BTreeSet::from([root.clone()]);
    let mut ahead = vec![root.clone()];
    while let Some(id) = ahead.pop() {
        ahead.extend(nodes.get(&id).into_iter().flatten().filter(|id| reached.insert((*id).clone())).cloned());
    }
    let component = |id: &String| {
        let package = &packages[id];
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let mut found = json!({
            "type": if id == root { "application" } else { "library" },
            "bom-ref": reference(package),
            "name": name,
            "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
        });
        if let Some(license) = package["license"].as_str() {
            found["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
        }
        if let Some(repository) = package["repository"].as_str() {
            found["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
        }
        found
    };
    let components: Vec<Value> = reached.iter().filter(|id| *id != root).map(component).collect();
    let dependency = |id: &String| {
        let on: BTreeSet<String> = nodes.get(id).into_iter().flatten().map(|id| reference(&packages[id])).collect();
        json!({ "ref": reference(&packages[id]), "dependsOn": on })
    };
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": component(root),
            "tools": { "components": [{ "type": "application", "name": "assay xtask", "version": VERSION }] },
        },
        "components": components,
        "dependencies": reached.iter().map(dependency).collect::<Vec<_>>(),
    }))
}

/// Dependencies of a node that are not for tests alone.
fn needed(node: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for dependency in node["deps"].as_array().into_iter().flatten() {
        let kinds = dependency["dep_kinds"].as_array().cloned().unwrap_or_default();
        if kinds.iter().any(|kind| kind["kind"] != "dev") {
            all.extend(dependency["pkg"].as_str().map(str::to_owned));
        }
    }
    all
}

/// Paths of this machine do not belong into the list, so it is not cargo's own identifier.
fn reference(package: &Value) -> String {
    format!("{}@{}", package["name"].as_str().unwrap_or_default(), package["version"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::steps::cargo;

    #[test]
    fn the_list_has_what_is_linked_with_licenses_and_nothing_that_only_tests_need() {
        let output = cargo(&["metadata", "--format-version", "1", "--locked", "--offline"]).output().unwrap();
        let list = of(&serde_json::from_slice(&output.stdout).unwrap()).unwrap();
        let components = list["components"].as_array().unwrap();
        let has = |name: &str| components.iter().any(|component| component["name"] == name);
        assert!(has("clap") && has("assay-engine") && has("rustls"));
        assert!(!has("insta") && !has("testkit") && !has("xtask"));
        assert!(components.iter().all(|component| component["licenses"].is_array()), "{list:#}");
        assert_eq!(list["metadata"]["component"]["name"], "assay");
        // Paths of the machine that builds it stay there.
        let root = xtask::steps::root();
        assert!(!list.to_string().contains(root.canonicalize().unwrap().to_str().unwrap()));
    }
}
