package attest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/bootstrap"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// kubeadm notes the token of its configuration and the key that a kubelet would find. Its
// first join fails, and its reset deletes the kubelet's directory as kubeadm's own does.
const kubeadm = `#!/bin/sh
set -eu
case $1 in
  reset) rm -rf "$JOIN_PKI"; exit 0 ;;
  join) ;;
  *) exit 2 ;;
esac
sed -n 's/.*"token": "\(.*\)".*/\1/p' "$3" >>"$SEEN/tokens"
sha256sum <"$JOIN_PKI/kubelet-client.key.tmp" >>"$SEEN/keys"
if [ ! -e "$SEEN/again" ]; then : >"$SEEN/again"; exit 1; fi
`

// TestRenderedJoinSectionAttests: the join section of rendered user data, which holds no
// token, writes one into kubeadm's configuration that is bound to this machine and to the
// key that the kubelet finds, also after a join that failed and a reset.
func TestRenderedJoinSectionAttests(t *testing.T) {
	r := newRig(t, 2, nil)
	// Of three leaders one acts: one stands by, and one is not there.
	acts, last := r.address, r.stop
	r.stop, r.deps.MayAct = nil, func() (bool, string) { return false, "standing by" }
	r.again(t)
	t.Cleanup(last)
	script, err := userdata.Render(userdata.Spec{
		Cloud: "aws", KubernetesVersion: "v1.36.3", Reservation: userdata.DefaultReservation(),
		Join: userdata.Join{Endpoint: "127.0.0.1:6443", CACertHashes: []string{r.hash}, Attest: r.address + ",127.0.0.1:1," + acts, CACert: r.caPEM},
	})
	if err != nil {
		t.Fatal(err)
	}
	section, err := userdata.JoinSection(script)
	if err != nil {
		t.Fatal(err)
	}
	for n, shell := range []string{"dash", "bash"} {
		t.Run(shell, func(t *testing.T) {
			w := r.worker(t, shell, r.members[n].ID, "openssl", "chmod", "cp", "tee", "tail", "head")
			if err := os.WriteFile(filepath.Join(w.dir, "bin", "kubeadm"), []byte(kubeadm), 0o700); err != nil {
				t.Fatal(err)
			}
			at, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("this host has no %s", shell)
			}
			c := exec.CommandContext(t.Context(), at, "-c", string(section))
			// What the script has to set itself is wrong in its environment.
			c.Env = append(w.env, "JOIN_ATTEST=127.0.0.1:1", "JOIN_CERT_HASH=", "JOIN_TOKEN=", "dir=/nonexistent",
				"JOIN_DIR="+filepath.Join(w.dir, "run"), "JOIN_CONSOLE=/dev/null", "SEEN="+w.dir)
			c.WaitDelay = time.Minute
			out, err := c.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "phase=retry left=4") || !strings.HasSuffix(string(out), "phase=joined\n") {
				t.Fatalf("%v\n%s", err, out)
			}
			tokens, keys := lines(t, filepath.Join(w.dir, "tokens")), lines(t, filepath.Join(w.dir, "keys"))
			if len(tokens) != 2 || tokens[0] != tokens[1] || len(keys) != 2 || keys[0] != keys[1] {
				t.Fatalf("%d tokens and %d keys for two attempts, or they differ", len(tokens), len(keys))
			}
			key := keyHash(t, filepath.Join(w.dir, "pki", "kubelet-client.key.tmp"))
			bound := false
			for _, s := range r.tokens() {
				if string(s.Data["token-id"])+"."+string(s.Data["token-secret"]) == tokens[0] {
					bound = s.Annotations[bootstrap.KeyAnnotation] == key && s.Annotations[bootstrap.InstanceAnnotation] == string(providerID(r.members[n]))
				}
			}
			arguments, err := os.ReadFile(w.args)
			if err != nil {
				t.Fatal(err)
			}
			if !bound || strings.Contains(string(out)+string(arguments), tokens[0]) {
				t.Errorf("the token is not bound to instance %s and key %s, or stands in output or arguments", r.members[n].ID, key)
			}
		})
	}
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
