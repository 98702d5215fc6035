rm -rf "$tmp"
phase leader-ready
echo 'next: autoscaler-agent install'
