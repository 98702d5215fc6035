rm -rf "$tmp" "$state/before-init" "$state/after-init"
phase leader-ready
