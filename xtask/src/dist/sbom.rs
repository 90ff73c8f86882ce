//! All libraries, as CycloneDX (1.5) has them.

use std::path::PathBuf;

use serde_json::json;

use super::Dist;
use super::licences::libraries;
use super::write;

pub(super) fn build(dist: &Dist, features: &str) -> anyhow::Result<PathBuf> {
    let components: Vec<_> = libraries(features)?
        .into_iter()
        .map(|library| {
            let purl = format!("pkg:cargo/{}@{}", library.name, library.version);
            json!({
                "type": "library",
                "bom-ref": purl,
                "name": library.name,
                "version": library.version,
                "purl": purl,
                "licenses": [{"expression": library.licence.replace('/', " OR ")}],
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
    let to = dist.out.join(format!("gannet-{}.cdx.json", dist.version));
    write(&to, &format!("{bom:#}\n"), 0o644)?;
    Ok(to)
}
