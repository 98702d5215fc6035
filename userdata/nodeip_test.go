package userdata

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// fakeIP answers as iproute2 does on a machine with both kinds of addresses; the file late holds how often of IPv6 it has
// none yet, and then a link-local one once.
const fakeIP = `ip() {
  case "$*" in
    "-4 -o route get 192.0.2.1") echo '192.0.2.1 via 10.0.0.1 dev eth0 src 10.0.0.7 uid 0 \    cache ' ;;
    "-6 -o route get 2001:db8::1")
      n=$(cat late); echo $((n - 1)) >late
      if [ "$n" -gt 1 ]; then echo 'RTNETLINK answers: Network is unreachable' >&2; return 2; fi
      if [ "$n" -eq 1 ]; then echo '2001:db8::1 from :: via fe80::1 dev eth0 proto ra src fe80::7 metric 100 pref medium'; return; fi
      echo '2001:db8::1 from :: via fe80::1 dev eth0 proto ra src 2001:db8:1::7 metric 100 mtu 1500 pref medium' ;;
    *) return 9 ;;
  esac
}
`

// TestNodeIP: the kubelet gets the addresses of each choice, in its order.
func TestNodeIP(t *testing.T) {
	for families, want := range map[string]string{"ipv4": "0.0.0.0", "ipv6": "::", "ipv4,ipv6": "10.0.0.7,2001:db8:1::7", "ipv6,ipv4": "2001:db8:1::7,10.0.0.7"} {
		for _, version := range []string{"v1.30.14", "v1.36.3"} {
			s := sample()
			s.NodeIP, s.KubernetesVersion = families, version
			section, err := JoinSection(rendered(t, s))
			if err != nil {
				t.Fatal(err)
			}
			begin, end := strings.Index(string(section), "node_ips()"), strings.Index(string(section), "cat >\"$dir/patches")
			steps, config := "", section[bytes.Index(section, []byte("<<JOIN\n")):]
			if begin > 0 {
				steps = string(section[begin:end])
				steps = steps[:strings.Index(steps, "\nJOIN_TOKEN=")+1]
			}
			config, _, _ = bytes.Cut(config, []byte("\nJOIN\n"))
			for _, shell := range []string{"dash", "bash", "busybox sh"} {
				words := strings.Fields(shell)
				if _, err := exec.LookPath(words[0]); err != nil {
					t.Logf("%s is not here", words[0])
					continue
				}
				cmd := exec.Command(words[0], append(words[1:], "-c", "set -eu\nsleep() { :; }\ndie() { echo \"$*\"; exit 1; }\necho 3 >late\n"+fakeIP+steps+
					"JOIN_ENDPOINT=e JOIN_TOKEN=t hashes=h NODE_NAME=n dir=d ZONE=z REGION=r INSTANCE_TYPE=i\ncat "+string(config)+"\nJOIN\n")...)
				cmd.Dir = t.TempDir()
				out, err := cmd.CombinedOutput()
				got := string(out)
				if form := map[string]string{"v1.30.14": `"node-ip": "` + want + `"`, "v1.36.3": "\"name\": \"node-ip\",\n    \"value\": \"" + want + `"`}[version]; err != nil || !strings.Contains(got, form) {
					t.Errorf("%s %s %s: %v\n%s\nlacks %s", families, version, shell, err, got, form)
				}
			}
		}
	}
	s := sample()
	s.NodeIP = "ipv6,ipv6"
	if _, err := Render(s); err == nil || !strings.Contains(err.Error(), "nodeIP: ") {
		t.Errorf("%v", err)
	}
}
