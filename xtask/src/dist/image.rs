//! An image for containers: one layer with the binary, in the layout of OCI.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use serde_json::json;

use super::Dist;
use super::copy;
use super::sha256;
use super::write;
use crate::workspace::check;
use crate::workspace::root;

pub(super) fn build(dist: &Dist) -> anyhow::Result<PathBuf> {
    let stage = dist.stage("image")?;
    let files = stage.join("files");
    copy(&dist.binary, &files.join("usr/bin/gannet"), 0o755)?;
    copy(&root().join("LICENSE"), &files.join("usr/share/doc/gannet/LICENSE"), 0o644)?;
    fs::create_dir_all(files.join("data"))?;
    let layer = stage.join("layer.tar");
    dist.tar(&files, ".", &layer, "--no-auto-compress")?;
    // The configuration has the digest of the uncompressed layer, the manifest that of the stored
    // one.
    let plain = sha256(&layer)?;
    check(Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(&layer))?;
    let blobs = stage.join("image/blobs/sha256");
    fs::create_dir_all(&blobs)?;
    let created = date(dist.epoch)?;
    let config = json!({
        "created": created,
        "architecture": dist.debian_arch(),
        "os": "linux",
        "config": {
            "User": "65534:65534",
            "Entrypoint": ["/usr/bin/gannet"],
            "Cmd": ["--help"],
            "WorkingDir": "/data",
            "Env": ["PATH=/usr/bin"],
            "Labels": labels(dist, &created),
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{plain}")]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    });
    let layer =
        blob(&blobs, &stage.join("layer.tar.gz"), "application/vnd.oci.image.layer.v1.tar+gzip")?;
    let config = json_blob(&blobs, &stage, &config, "application/vnd.oci.image.config.v1+json")?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
    });
    let mut manifest =
        json_blob(&blobs, &stage, &manifest, "application/vnd.oci.image.manifest.v1+json")?;
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": dist.version});
    manifest["platform"] = json!({"architecture": dist.debian_arch(), "os": "linux"});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    let image = stage.join("image");
    write(&image.join("index.json"), &index.to_string(), 0o644)?;
    write(&image.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}", 0o644)?;
    let to = dist.out.join(format!("gannet-{}-{}.oci.tar", dist.version, dist.debian_arch()));
    dist.tar(&image, ".", &to, "--no-auto-compress")?;
    Ok(to)
}

fn labels(dist: &Dist, created: &str) -> Value {
    json!({
        "org.opencontainers.image.title": "gannet",
        "org.opencontainers.image.description": "Packets in, answers out: Zeek-compatible logs from captures.",
        "org.opencontainers.image.version": dist.version,
        "org.opencontainers.image.revision": dist.commit,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "BSD-3-Clause",
    })
}

/// Stores a file under its checksum; returns its descriptor.
fn blob(blobs: &Path, file: &Path, media: &str) -> anyhow::Result<Value> {
    let sum = sha256(file)?;
    fs::copy(file, blobs.join(&sum))?;
    let size = fs::metadata(file)?.len();
    Ok(json!({"mediaType": media, "digest": format!("sha256:{sum}"), "size": size}))
}

fn json_blob(blobs: &Path, stage: &Path, value: &Value, media: &str) -> anyhow::Result<Value> {
    let file = stage.join("blob.json");
    write(&file, &value.to_string(), 0o644)?;
    blob(blobs, &file, media)
}

fn date(epoch: u64) -> anyhow::Result<String> {
    let at = format!("@{epoch}");
    let output =
        Command::new("date").args(["--utc", "--date", &at, "+%Y-%m-%dT%H:%M:%SZ"]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
