rm -rf "$tmp"
phase leader-ready
