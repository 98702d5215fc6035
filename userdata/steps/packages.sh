# need PROGRAM PACKAGE: from the system's own package manager, where the image lacks it.
need() {
  if have "$1"; then return 0; fi
  phase "package name=$2"
  case $pm in
    apt)
      [ -n "${indexed:-}" ] || apt-get -qq -o DPkg::Lock::Timeout=300 update || die "reason=package-index"
      indexed=1
      DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "$2"
      ;;
    dnf) dnf -q -y install "$2" ;;
    *) false ;;
  esac || die "reason=package name=$2"
}
