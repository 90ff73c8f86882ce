//! A package for Debian and Ubuntu.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use anyhow::ensure;

use super::Dist;
use super::copy;
use super::has;
use super::licences;
use super::write;
use crate::workspace::check;
use crate::workspace::root;
use crate::workspace::say;

/// Scripts that dpkg runs at installation and removal of the package.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

const MAINTAINER: &str = "The gannet authors <gannet@example.invalid>";

pub(super) fn build(dist: &Dist) -> anyhow::Result<PathBuf> {
    ensure!(has("dpkg-deb"), "no dpkg-deb: the package dpkg has it");
    let stage = dist.stage("deb")?;
    let usr = stage.join("usr");
    copy(&dist.binary, &usr.join("bin/gannet"), 0o755)?;
    let man = usr.join("share/man/man1");
    dist.manuals(&man)?;
    for page in fs::read_dir(&man)?.collect::<Result<Vec<_>, _>>()? {
        gzip(&page.path())?;
    }
    let completions = stage.join("completions");
    dist.completions(&completions)?;
    for (name, to) in [
        ("gannet", "share/bash-completion/completions/gannet"),
        ("_gannet", "share/zsh/vendor-completions/_gannet"),
        ("gannet.fish", "share/fish/vendor_completions.d/gannet.fish"),
    ] {
        copy(&completions.join(name), &usr.join(to), 0o644)?;
    }
    fs::remove_dir_all(&completions)?;
    let systemd = root().join("packaging/systemd");
    copy(&systemd.join("gannet@.service"), &usr.join("lib/systemd/system/gannet@.service"), 0o644)?;
    copy(&systemd.join("gannet.sysusers"), &usr.join("lib/sysusers.d/gannet.conf"), 0o644)?;
    let doc = usr.join("share/doc/gannet");
    write(&doc.join("copyright"), &copyright(dist)?, 0o644)?;
    write(&doc.join("changelog"), &changelog(dist), 0o644)?;
    gzip(&doc.join("changelog"))?;
    write(
        &usr.join("share/lintian/overrides/gannet"),
        "# One file for every distribution: it is meant to be static.\n\
         gannet: statically-linked-binary usr/bin/gannet\n\
         gannet: statically-linked-binary [usr/bin/gannet]\n\
         gannet: embedded-library\n\
         # Static, and at any address all the same: nothing is to be loaded.\n\
         gannet: shared-library-lacks-prerequisites [usr/bin/gannet]\n\
         # All instances of a unit: no helper of Debian's has a name for them.\n\
         gannet: maintainer-script-calls-systemctl [prerm:5]\n",
        0o644,
    )?;
    let size = installed(&usr)? / 1024;
    let control = format!(
        "Package: gannet\nVersion: {}\nArchitecture: {}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {size}\nSection: net\nPriority: optional\n\
         Description: packet analysis: captures in, Zeek's logs out\n \
         gannet reads captures (pcap and pcapng, also compressed) and writes the logs\n \
         that Zeek writes: connections, DNS, HTTP, TLS, files and more, as TSV, JSON,\n \
         Parquet or Arrow. It filters and shows packets, runs scripts, and replays DNS.\n",
        dist.version,
        dist.debian_arch(),
    );
    write(&stage.join("DEBIAN/control"), &control, 0o644)?;
    for script in SCRIPTS {
        copy(
            &root().join("packaging/deb").join(script),
            &stage.join("DEBIAN").join(script),
            0o755,
        )?;
    }
    modes(&stage)?;
    let to = dist.out.join(format!("gannet_{}_{}.deb", dist.version, dist.debian_arch()));
    let mut command = Command::new("dpkg-deb");
    command.args(["--root-owner-group", "-Zxz", "--build"]).arg(&stage).arg(&to);
    command.env("SOURCE_DATE_EPOCH", dist.epoch.to_string());
    check(&mut command)?;
    match has("lintian") {
        true => check(Command::new("lintian").args(["--fail-on", "error"]).arg(&to))?,
        false => say("skipped: no lintian to look at the package"),
    }
    Ok(to)
}

/// Debian's form of the licences.
fn copyright(dist: &Dist) -> anyhow::Result<String> {
    let own = fs::read_to_string(root().join("LICENSE"))?;
    let mut text = String::from(
        "This package was made by `cargo xtask dist` from the sources of gannet.\n\n\
         Copyright: The gannet authors\n\n",
    );
    text.push_str(&own);
    text.push_str(
        "\nThe texts of the GPL, LGPL and Apache licence are in /usr/share/common-licenses.\n\n",
    );
    text.push_str(&without_apache(&licences::text(dist, false)?));
    Ok(text)
}

/// Removes the text of the Apache licence, which Debian provides for all packages. Texts that only
/// mention that licence are kept.
fn without_apache(text: &str) -> String {
    let (mut out, mut is_inside) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        // The title before this line has several forms.
        if line.contains("TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION") {
            is_inside = true;
            out.push_str("The text is in /usr/share/common-licenses/Apache-2.0.\n");
        } else if is_inside && line.contains("END OF TERMS AND CONDITIONS") {
            is_inside = false;
        } else if !is_inside {
            out.push_str(line);
        }
    }
    out
}

fn changelog(dist: &Dist) -> String {
    let date = Command::new("date")
        .args(["--utc", "--rfc-email", "--date", &format!("@{}", dist.epoch)])
        .env("LC_ALL", "C")
        .output();
    let date = date.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    format!(
        "gannet ({}) unstable; urgency=medium\n\n  * Built from commit {}.\n\n -- {MAINTAINER}  {}\n",
        dist.version,
        dist.commit,
        date.unwrap_or_default()
    )
}

fn gzip(path: &Path) -> anyhow::Result<()> {
    check(Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(path))
}

/// Bytes of all files below a folder.
fn installed(dir: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        bytes += if kind.is_dir() { installed(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// Sets the permissions of folders and files, independent of the umask.
fn modes(dir: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            modes(&path)?;
        } else {
            let is_script = |script: &&str| path.ends_with(Path::new("DEBIAN").join(script));
            let is_program = path.ends_with("usr/bin/gannet") || SCRIPTS.iter().any(is_script);
            fs::set_permissions(
                &path,
                fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 }),
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_apache_licence_is_named_and_not_repeated() {
        let text = "MIT, or the Apache License at your option\nMIT\n\
            \x20 Apache License\n==\n## TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION\nlong\n\
            \x20 _END OF TERMS AND CONDITIONS_\nb\nApache License of c\n";
        assert_eq!(
            without_apache(text),
            "MIT, or the Apache License at your option\nMIT\n  Apache License\n==\n\
             The text is in /usr/share/common-licenses/Apache-2.0.\nb\nApache License of c\n"
        );
    }
}
