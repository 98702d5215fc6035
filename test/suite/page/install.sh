#!/bin/sh
# A headless Chromium from Debian's packages, and axe-core from npm, for make e2e-page.
set -eu
if ! command -v chromium-headless-shell >/dev/null && ! command -v chromium >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends chromium-headless-shell || apt-get install -y -qq --no-install-recommends chromium
fi
axe=${XDG_CACHE_HOME:-$HOME/.cache}/autoscaler-agent/axe-core-4.10.3
if [ ! -f "$axe/axe.min.js" ]; then
	command -v npm >/dev/null || apt-get install -y -qq --no-install-recommends npm
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	(cd "$work" && npm pack --silent axe-core@4.10.3 >/dev/null && tar -xzf axe-core-4.10.3.tgz)
	mkdir -p "$axe"
	cp "$work/package/axe.min.js" "$axe/axe.min.js.new"
	mv "$axe/axe.min.js.new" "$axe/axe.min.js"
fi
