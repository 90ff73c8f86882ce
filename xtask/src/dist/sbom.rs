//! A list of all libraries in CycloneDX 1.5 format.

use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use super::Dist;
use super::licences;
use super::write;

pub(super) fn build(dist: &Dist) -> anyhow::Result<PathBuf> {
    let to = dist.out.join(format!("gannet-{}.cdx.json", dist.version));
    write_to(dist, false, &to)?;
    Ok(to)
}

/// Writes the list of a package with the command, and with the module for Python.
pub(super) fn write_to(dist: &Dist, has_module: bool, to: &Path) -> anyhow::Result<()> {
    let of_crates =
        licences::libraries(&dist.features, has_module)?.into_iter().map(|one| ("cargo", one));
    let others = licences::runtime(dist)?.into_iter().map(|one| ("generic", one));
    let components: Vec<_> = of_crates
        .chain(others)
        .map(|(kind, library)| {
            let licence: Vec<_> = library.licence.split('/').map(str::trim).collect();
            let purl = format!("pkg:{kind}/{}@{}", library.name, library.version);
            json!({
                "type": "library",
                "bom-ref": purl,
                "name": library.name,
                "version": library.version,
                "purl": purl,
                "licenses": [{"expression": licence.join(" OR ")}],
            })
        })
        .collect();
    let bom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "gannet",
                "name": "gannet",
                "version": dist.version,
                "properties": [{"name": "commit", "value": dist.commit}],
            },
        },
        "components": components,
    });
    write(to, &format!("{bom:#}\n"), 0o644)
}
