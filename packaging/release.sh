#!/bin/sh
# release.sh DIST KEY URL [MINISIGN]: signs what make dist has written to DIST (the rpms themselves, so that their bytes are others
# than those of make dist, and SHA256SUMS over everything), and makes of its
# packages a repository of apt and one of dnf in DIST/repo, directories that any web server can
# serve. KEY names a secret key of gpg, URL the address of DIST/repo, MINISIGN a secret key file.
set -eu
dist=$1 key=$2 url=${3%/}
here=$(cd "$(dirname "$0")" && pwd)

need() {
  command -v "$1" >/dev/null || { echo "release: $1 is not here: apt-get install $2" >&2; exit 1; }
}
need gpg gnupg
need reprepro reprepro
need createrepo_c createrepo-c
need rpmsign rpm
fingerprint=$(gpg --batch --with-colons --list-secret-keys "$key" | awk -F: '$1 == "fpr" { print $10; exit }')
[ -n "$fingerprint" ] || { echo "release: gpg has no secret key $key" >&2; exit 1; }
sign() {
  rm -f "$2"
  gpg --batch --yes --local-user "$fingerprint" --armor --detach-sign --output "$2" "$1"
}

(cd "$dist" && sha256sum --quiet --check SHA256SUMS)
for rpm in "$dist"/*.rpm; do
  rpmsign --quiet --define "__gpg $(command -v gpg)" --define "_gpg_name $fingerprint" --define '_gpg_sign_cmd_extra_args --batch' --addsign "$rpm" >/dev/null
done
(cd "$dist" && sed 's/^[^ ]*  //' SHA256SUMS | xargs -d '\n' sha256sum >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
sign "$dist/SHA256SUMS" "$dist/SHA256SUMS.asc"
if [ -n "${4:-}" ]; then
  need minisign minisign
  minisign -S -s "$4" -m "$dist/SHA256SUMS" -x "$dist/SHA256SUMS.minisig"
fi

repo=$dist/repo
rm -rf "$repo"
mkdir -p "$repo/rpm"
gpg --batch --armor --export "$fingerprint" >"$repo/autoscaler-agent.asc"
sed "s|@URL@|$url|" "$here/autoscaler-agent.sources" >"$repo/autoscaler-agent.sources"
sed "s|@URL@|$url|" "$here/autoscaler-agent.repo" >"$repo/autoscaler-agent.repo"

# reprepro's own books stay outside of what is served.
books=$(mktemp -d)
trap 'rm -rf "$books"' EXIT
mkdir "$books/conf"
cat >"$books/conf/distributions" <<END
Origin: autoscaler-agent
Label: autoscaler-agent
Codename: stable
Architectures: amd64 arm64
Components: main
Description: autoscaler-agent for self-managed Kubernetes
SignWith: $fingerprint
END
for deb in "$dist"/*.deb; do
  reprepro --silent --basedir "$books" --outdir "$(cd "$repo" && pwd)/apt" includedeb stable "$deb"
done

cp "$dist"/*.rpm "$repo/rpm/"
createrepo_c --quiet --checksum sha256 --simple-md-filenames "$repo/rpm"
sign "$repo/rpm/repodata/repomd.xml" "$repo/rpm/repodata/repomd.xml.asc"
echo "signed with $fingerprint; serve $repo as $url"
