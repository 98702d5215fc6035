package userdata

import (
	"maps"
	"slices"
	"strings"
)

// system is an operating system that workers run.
type system struct {
	id       string // ID of /etc/os-release
	prefix   string // programs go to PREFIX/bin
	packages string // the package manager: apt, dnf or none
	format   string // the default
	// everyBoot tells that the system runs a script of user data at every boot.
	everyBoot bool
}

// systems are those that are known. /usr is read-only on Flatcar.
var systems = map[string]system{
	"flatcar":           {id: "flatcar", prefix: "/opt", packages: "none", format: "ignition", everyBoot: true},
	"debian":            {id: "debian", prefix: "/usr/local", packages: "apt", format: "script"},
	"ubuntu":            {id: "ubuntu", prefix: "/usr/local", packages: "apt", format: "script"},
	"amazon-linux-2023": {id: "amzn", prefix: "/usr/local", packages: "dnf", format: "script"},
	"rocky-9":           {id: "rocky", prefix: "/usr/local", packages: "dnf", format: "script"},
}

// Systems are the names of the operating systems that are known, sorted.
func Systems() []string { return slices.Sorted(maps.Keys(systems)) }

// RunsEveryBoot tells whether a system runs a script of user data at every boot.
func RunsEveryBoot(name string) bool { return systems[name].everyBoot }

// settings sets prefix, bin and pm for the machine's system. User data for one system stops
// on another: its packages and paths would be wrong.
func (s Spec) settings() string {
	name := shellQuote(systems[s.System].id)
	text := "ID=$(. /etc/os-release && echo \"$ID\")\n"
	if s.System != "" {
		sys := systems[s.System]
		text += "[ \"$ID\" = " + name + " ] || die \"reason=system want=" + sys.id + " is=$ID\"\n" +
			"prefix=" + sys.prefix + " pm=" + sys.packages + "\n"
	} else {
		text += `case $ID in
  flatcar) prefix=/opt pm=none ;;
  debian | ubuntu) prefix=/usr/local pm=apt ;;
  *) prefix=/usr/local pm=dnf ;;
esac
`
	}
	return text + "bin=$prefix/bin\n"
}

// selinux: a container runtime outside the system's own package has no policy, and a
// firewall between Nodes stops the network of the pods.
const selinux = `if have getenforce && [ "$(getenforce)" = Enforcing ]; then
  setenforce 0
  sed -i 's/^SELINUX=enforcing/SELINUX=permissive/' /etc/selinux/config
fi
systemctl disable --now firewalld.service 2>/dev/null || :
`

// needs are programs of the system that the script and kubeadm's preflight checks ask for, with the package
// of each by package manager.
func (s Spec) needs() [][3]string {
	n, _ := minor(s.KubernetesVersion)
	out := [][3]string{{"curl", "curl", "curl"}}
	if strings.Contains(s.NodeIP, ",") {
		out = append(out, [3]string{"ip", "iproute2", "iproute"})
	}
	if n < 32 { // kubernetes/kubernetes#126952
		out = append(out, [3]string{"conntrack", "conntrack", "conntrack-tools"})
	}
	if n < 36 {
		out = append(out, [3]string{"iptables", "iptables", "iptables-nft"})
	}
	return out
}
