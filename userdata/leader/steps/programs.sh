tmp=$(mktemp -d)
for name in $PROGRAMS; do
  if ! have "$name"; then
    fetch "$name" "$KUBERNETES/$name" "$tmp/$name"
    place "$tmp/$name"
  fi
done
